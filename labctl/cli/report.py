"""`labctl report`: the report of a campaign, or of a bare operations table.

May not: verify, refuse or analyse by itself; `labctl.reporting` does.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, lab_option

EPILOG = example("labctl report first --out report", "labctl report operations.csv --reference human --out report")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.argument("what", metavar="CAMPAIGN|TABLE.csv")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder to write.")
@click.option("--reference", default=None, metavar="ARM", help="For a table: the arm the others are compared with.")
@click.option("--tau", type=float, default=None, metavar="S", help="For a table: the horizon [default: the budget].")
@click.option("--boot", default=9999, show_default=True, type=click.IntRange(min=1), help="Bootstrap replicates.")
@click.option("--perm", default=9999, show_default=True, type=click.IntRange(min=1), help="Label swaps tried.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same bytes out.")
@lab_option
def report(
    what: str, out: Path, reference: str | None, tau: float | None, boot: int, perm: int, seed: int, lab: Path | None
) -> None:
    """Write a self-contained HTML report, with JSON, Markdown and every figure as a file.

    A campaign is verified first and must be unblinded; its report is provisional until it was reviewed and frozen.
    """
    from labctl.errors import InputError
    from labctl.lab import campaign_folder
    from labctl.reporting import report_campaign, report_table

    if Path(what).suffix.lower() == ".csv":
        page = report_table(Path(what), out, tau=tau, reference=reference, boot=boot, perm=perm, seed=seed)
    elif reference is not None or tau is not None:
        raise InputError("--reference and --tau of a campaign stand in its protocol; leave them out")
    else:
        page = report_campaign(campaign_folder(what, lab), out, boot=boot, perm=perm, seed=seed)
    click.echo(f"report: {page}")
