"""`labctl report`: the report of a campaign, or of a bare table of operations or of episodes.

May not: verify, refuse or analyse by itself; `labctl.reporting.campaign_report` does.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from labctl.cli import completing
from labctl.cli.options import (
    ALPHA,
    FAMILY,
    PATH,
    STANDARD,
    commitment_option,
    estimator_option,
    example,
    factors_of,
    head_option,
    json_option,
    lab_option,
    listed,
    margin_of,
    margin_options,
    print_json,
    progress,
    random_option,
    refuse_of_operations,
    replicates_options,
    seed_option,
)
from labctl.errors import InputError
from labctl.store.lab_folder import campaign_folder

EPILOG = example(
    "labctl report first --out report",
    "labctl report first --out report --head 120:3f9a...  # a head noted outside the lab",
    "labctl report first --labels detector --out by-detector",
    "labctl report first second --out report  # second was opened with: labctl extend first ...",
    "labctl report two --out report           # a joint campaign: all cells whose folders are in this lab",
    "labctl report two-a two-b --out report   # the same, by its cells' folders",
    "labctl report published/two published/two-a published/two-b --out again",
    "labctl report operations.csv --reference human --out report",
    "labctl report episodes.csv --out report              # success, scores, stages of any task",
)

BESIDE_PUBLISHED = ("what", "out", "lab", "as_json")
BESIDE = (
    *("labctl.reporting.clips.cutting", "labctl.analysis.report.page", "av", "matplotlib.figure"),
    *("matplotlib.layout_engine", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
)
"""What the process that cuts clips and draws figures imports, while this one does so too and verifies."""


@click.command(epilog=EPILOG)
@click.argument("what", nargs=-1, required=True, metavar="CAMPAIGN...|TABLE.csv", shell_complete=completing.campaigns)
@click.option("--out", required=True, type=PATH, metavar="DIR", help="Folder to write.")
@click.option("--reference", metavar="ARM", help="For a table: the arm the others are compared with.")
@click.option("--tau", type=float, metavar="S", help="For a table: the horizon [default: the budget].")
@replicates_options
@seed_option
@click.option("--alpha", type=ALPHA, help="For a table: level of verdicts and letters [default: 0.05].")
@click.option("--family", metavar="NAMES", help="For a table: statistics that say whether a pair differs.")
@estimator_option
@margin_options
@random_option
@click.option(
    "--labels",
    type=click.Choice(["operator", "detector", "reviewed", "device"]),
    help="For a campaign: who says when items were moved [default: the review, else devices, else the detector].",
)
@click.option(
    "--lost",
    multiple=True,
    metavar="EPISODE",
    help="Leave out this episode's recording, which does not hold, and say so. Its outcome counts.",
)
@head_option
@commitment_option
@lab_option
@json_option
def report(
    what: tuple[str, ...],
    out: Path,
    reference: str | None,
    tau: float | None,
    boot: int,
    perm: int,
    seed: int,
    alpha: float | None,
    family: str | None,
    estimator: str | None,
    margin: float | None,
    non_inferior_to: str | None,
    random: str,
    labels: str | None,
    lost: tuple[str, ...],
    head: str | None,
    commitment: str | None,
    lab: Path | None,
    as_json: bool,
) -> int | None:
    """Write a self-contained HTML report, with JSON, Markdown and every figure as a file.

    Of a table its columns say which of the two it is, of operations or of episodes (docs/episodes.md).
    A campaign is verified first and must be unblinded; its report is provisional until it was reviewed and frozen.
    Of two linked campaigns (labctl extend) it is the report of the later one, with its arms held against those of the
    earlier through the anchors that ran in both. --head and --commitment are the later's, as `labctl verify` takes
    them; the report's provenance says what it was held against, or that it was not.
    Of a joint campaign (labctl joint) it is one report of all cells: named by its own name, or by their folders.
    Of a folder that `labctl publish` wrote it is made anew from the record in it, and held against the one in it; two
    such folders of linked campaigns give the report of both, and the parts of a joint campaign the one of all cells.
    """
    from labctl.analysis.report.report_folder import check_folder
    from labctl.cli.publishing.cells import are_of_cells, report_cells_published
    from labctl.cli.publishing.publish import is_published, report_published, report_two_published

    check_folder(out)  # before minutes of work
    published = [name for name in what if is_published(name)]
    if published:
        _refuse_beside_published(published[0])
        if len(published) == len(what) and are_of_cells(what):
            return report_cells_published(what, out, as_json=as_json)
    if published and len(what) == 1:
        return report_published(what[0], out, as_json=as_json)
    from labctl.processes import one_beside
    from labctl.reporting.cells.parts import parts_named
    from labctl.store.chain_heads import noted

    tables = [name for name in what if name == STANDARD or Path(name).suffix.lower() == ".csv"]
    if tables and len(what) > 1:
        raise InputError(f"{tables[0]} is a table; a report of two takes two linked campaigns, by name")
    if tables:
        if lost:
            raise InputError("--lost is for a campaign; a table has no recordings")
        if head is not None or commitment is not None:
            raise InputError("--head and --commitment are for a campaign; a table has no chain")
        if labels is not None:
            raise InputError("--labels is for a campaign; the rows of a table are of one stream already")
        from labctl.analysis.episodes_table.cohort import Plan
        from labctl.analysis.episodes_table.reading import read_either
        from labctl.analysis.episodes_table.table import EpisodesTable
        from labctl.reporting.measured_report import report_episodes
        from labctl.reporting.rows_report import report_table

        read = read_either(tables[0])
        if isinstance(read, EpisodesTable):
            further = (family, estimator, margin, non_inferior_to, random or None)
            refuse_of_operations(asked=any(value is not None for value in further))
            page = report_episodes(read, out, Plan(reference, tau, boot, perm, seed, alpha or 0.05))
        else:
            page = report_table(
                Path(tables[0]),
                out,
                tau=tau,
                reference=reference,
                alpha=alpha or 0.05,
                family=listed(family or FAMILY),
                boot=boot,
                perm=perm,
                seed=seed,
                margin=margin_of(margin, non_inferior_to),
                random_factors=factors_of(random),
                estimator=estimator or "kaplan_meier",
            )
    elif lost and len(what) > 1:
        raise InputError("--lost is for the report of one campaign; of two that are compared, both must hold")
    elif random or any(v is not None for v in (reference, tau, alpha, family, estimator, margin, non_inferior_to)):
        names = "--reference, --tau, --alpha, --family, --estimator, --margin, --non-inferior-to and --random"
        raise InputError(f"{names} of a campaign stand in its protocol; leave them out")
    else:
        known = noted(head, commitment)
        parts = None if published else parts_named(what, lab)
        if parts and (lost or head is not None or commitment is not None):
            raise InputError("--lost, --head and --commitment are of one chain; verify each cell by itself")
        if published and len(published) != len(what):
            raise InputError(f"{published[0]} was published, the other was not; publish both, or name both in the lab")
        folders = parts or [campaign_folder(name, lab) for name in what if not published]
        read_bytes = max(map(_recorded, folders), default=0)
        with progress("report", quiet=as_json) as say, one_beside(read_bytes, imports=BESIDE) as beside:
            from labctl.reporting.campaign_report import report_campaign, report_linked  # while the other one imports
            from labctl.reporting.cells.report import report_cells

            more = {"boot": boot, "perm": perm, "seed": seed, "labels": labels or "best", "say": say}
            own = {"noted": known, "beside": beside}
            if published:
                page = report_two_published(what, out)
            elif parts:
                page = report_cells(parts, out, **more)
            elif len(what) == 1:
                page = report_campaign(folders[0], out, lost=lost, **more, **own)
            else:
                page = report_linked(folders, out, **more, **own)
    if as_json:
        from labctl.software import analysed_by

        files = sorted(str(path.relative_to(page.parent)) for path in page.parent.rglob("*") if path.is_file())
        made = {"report": str(page), "files": files, "analysed_by": analysed_by()}
        print_json({"schema": "labctl.report_made/1", **made})
        return None
    click.echo(f"report: {page}")
    return None


def _refuse_beside_published(folder: str) -> None:
    """Raises InputError for an option that would say what a published folder's own manifest says."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        if name not in BESIDE_PUBLISHED and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"{option.opts[0]} does not go with {folder}, whose report is made again as it was published; "
                "leave it out (its chain is held to a head by: labctl verify DIR --head N:HASH)"
            )


def _recorded(folder: Path) -> int:
    """Bytes of a campaign's traces, which say how long its report takes; 0 where there are none."""
    traces = folder / "traces.db"
    return traces.stat().st_size if traces.is_file() else 0
