"""`labctl export`: a campaign as a table other tools read.

May not: write an arm before unblinding, or leave a half-written file.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, lab_option

FORMATS = ("table", "npz")
LATER = ("rrd", "mcap", "parquet", "lerobot-v3", "lerobot-v2.1")
EPILOG = example(
    "labctl export first --to table --out operations.csv",
    "labctl export first --to table --where outcome=failure --out failures.parquet",
    "labctl export first --to npz --out states/",
)


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument()
@click.option("--to", "form", required=True, metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="File to write.")
@click.option("--where", default=None, metavar="COLUMN=VALUE", help="Only episodes of which this is true.")
@lab_option
def export(campaign: str, form: str, out: Path, where: str | None, lab: Path | None) -> None:
    """Write the operations table, as CSV or, by the ending of PATH, as Parquet; or the recorded states of the arm
    (npz), one file an episode in the folder PATH.

    Before unblinding it has no arm column. `--where outcome=failure` keeps the episodes in which an item was left.
    """
    from labctl.errors import InputError

    if form not in FORMATS:
        known = "not in this version" if form in LATER else "unknown"
        raise InputError(f"format {form!r} is {known}; this version exports: {', '.join(FORMATS)}")

    from labctl.campaign import Campaign
    from labctl.errors import StateError
    from labctl.export import filter_rows, operations, write_table
    from labctl.lab import campaign_folder

    folder = campaign_folder(campaign, lab)
    with Campaign.open(folder) as opened:
        rows = operations(opened.events())
    if not rows:
        raise StateError(f"campaign {folder.name} has no scored episode yet; nothing was written")
    kept = filter_rows(rows, where) if where else rows
    if not kept:
        raise InputError(f"no episode of {folder.name} has {where}; nothing was written")
    if form == "npz":
        from labctl.dialect import sqlite_url
        from labctl.export_traces import write_states
        from labctl.traces import TraceStore

        store = TraceStore.open(sqlite_url(folder / "traces.db"), folder.name, readonly=True)
        try:
            written = write_states(store, list(dict.fromkeys(row["episode"] for row in kept)), out)
        finally:
            store.close()
        click.echo(f"wrote the states of {len(written)} episodes to {out}")
        return
    write_table(kept, out)
    click.echo(f"wrote {len(kept)} rows of {len({row['episode'] for row in kept})} episodes to {out}")
