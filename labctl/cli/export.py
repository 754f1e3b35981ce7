"""`labctl export`: a campaign in a format that other tools read.

May not: decide what may be shown (`labctl.exports.selection` does), or leave a half-written file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    CONTEXT,
    PATH,
    campaign_argument,
    example,
    json_option,
    lab_option,
    print_json,
    progress,
    unverified_option,
)
from labctl.plain import Json

if TYPE_CHECKING:
    from labctl.exports.rrd import Drawing

FORMATS = ("table", "parquet", "mcap", "lerobot-v3", "lerobot-v2.1", "rrd", "npz")
EPILOG = example(
    "labctl export first --to table --out operations.csv",
    "labctl export first --to parquet --where outcome=failure --out failures",
    "labctl export first --to lerobot-v3 --fps 15 --where outcome=failure --out failures",
    "labctl export first --to parquet --for-arm policy-a --out for-policy-a",
)


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument()
@click.option("--to", "form", required=True, metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")
@click.option("--out", required=True, type=PATH, metavar="PATH", help="File (table) or folder to write.")
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only episodes of which this is true: a column of the table, outcome or end_reason. Several are all true.",
)
@click.option("--for-arm", metavar="ARM", help="For the people of one arm: the others are masked. After unblinding.")
@click.option("--force", is_flag=True, help="Replace an export that is at PATH already.")
@click.option("--fps", type=int, metavar="N", help="lerobot: frames a second [default: the fastest camera's].")
@click.option(
    "--max-error-ms",
    type=float,
    metavar="MS",
    help="lerobot: refuse to move anything further than this [default: a quarter more than its own period].",
)
@click.option("--action", metavar="KIND", help="lerobot: sent, limited, requested or measured [default: sent].")
@click.option("--skip-inexact", is_flag=True, help="lerobot: leave out episodes that would be moved too far.")
@click.option(
    "--recode",
    is_flag=True,
    help="lerobot: code every picture again, a keyframe every other frame: slower to write, quicker to read anywhere.",
)
@unverified_option
@json_option
@lab_option
def export(
    campaign: str,
    form: str,
    out: Path,
    where: tuple[str, ...],
    for_arm: str | None,
    force: bool,
    fps: int | None,
    max_error_ms: float | None,
    action: str | None,
    skip_inexact: bool,
    recode: bool,
    unverified: bool,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Write the scored episodes of a campaign in a format of other tools.

    \b
    table         the operations table, by the ending of PATH: .csv, .parquet or .xlsx
    parquet       every stream, and tables of operations, episodes and events
    mcap          one file an episode, for Foxglove
    lerobot-v3    a LeRobotDataset for training; lerobot-v2.1 the same as openpi and GR00T read it
    rrd           one file an episode, for Rerun, as `labctl show` draws it
    npz           the recorded states of the arm, for numpy and the replay driver

    Before unblinding there is no arm, and nothing that could tell one from another. --where outcome=failure keeps the
    episodes in which an item was left. --for-arm keeps the recordings of that arm's episodes; the others' rows stay in
    the table as other-1, other-2, … What is written is verified first. With --unverified a record that does not hold is
    written too: its table has a column that says so, a folder's labctl.json an entry.
    """
    from labctl.exports.writing import Grid, Request, export_campaign
    from labctl.store.lab_folder import campaign_folder

    request = Request(
        form=form,
        out=out,
        where=where,
        for_arm=for_arm,
        force=force,
        views=drawing,
        grid=Grid(fps, max_error_ms, action, skip_inexact, recode),
        unverified=unverified,
    )
    with progress(f"exporting {form}", quiet=as_json or sys.stderr.isatty()) as say:
        done = export_campaign(campaign_folder(campaign, lab), request, say)
    if as_json:
        print_json(done)
        return
    click.echo(_summary(done))


def drawing() -> Drawing:
    """What draws .rrd files, in whichever process asks."""
    from labctl.ui.rerun import episode

    return episode


def _summary(done: Mapping[str, Json]) -> str:
    from labctl.exports.destination import size

    written, skipped = done["bytes"], done.get("skipped")
    assert isinstance(written, int), written
    held = f"{done['episodes']} episodes" if "episodes" in done else f"{done['rows']} rows"
    masked = "; masked: the campaign is not unblinded" if done["masked"] else ""
    if "max_error_ms" in done:
        held += f", {done['frames']} frames at {done['fps']} Hz, moved by at most {done['max_error_ms']} ms"
    if isinstance(skipped, Sequence) and skipped:
        held += f", {len(skipped)} left out"
    masked += f"; {done['unverified']}" if "unverified" in done else ""
    return f"wrote {held} ({size(written)} in {done['files']} files) to {done['out']}{masked}"
