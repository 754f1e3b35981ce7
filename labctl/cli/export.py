"""`labctl export`: a campaign as a table other tools read.

May not: write an arm before unblinding, or leave a half-written file.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, lab_option

FORMATS = ("table",)
LATER = ("rrd", "mcap", "parquet", "lerobot-v3", "lerobot-v2.1")
EPILOG = example("labctl export first --to table --out operations.csv")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument()
@click.option("--to", "form", required=True, metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="File to write.")
@lab_option
def export(campaign: str, form: str, out: Path, lab: Path | None) -> None:
    """Write the operations table (CSV). Before unblinding it has no arm column, and so no statistics either."""
    from labctl.errors import InputError

    if form not in FORMATS:
        known = "not in this version" if form in LATER else "unknown"
        raise InputError(f"format {form!r} is {known}; this version exports: {', '.join(FORMATS)}")

    from labctl.export import export_table
    from labctl.lab import campaign_folder

    written = export_table(campaign_folder(campaign, lab), out)
    click.echo(f"wrote {written} rows to {out}")
