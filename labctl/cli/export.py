"""`labctl export`: a campaign in a format that other tools read; `labctl import`: other people's results as a table.

May not: decide what may be shown (`labctl.exports.selection` does), or leave a half-written file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import click

from labctl.cli import completing
from labctl.cli.options import (
    PATH,
    STANDARD,
    Words,
    campaign_argument,
    example,
    json_option,
    lab_option,
    place_of,
    place_options,
    print_json,
    progress,
    unverified_option,
)
from labctl.errors import InputError
from labctl.plain import Json, count
from labctl.store.atomic_files import replace_file
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.analysis.episodes_table.importing import Imported
    from labctl.exports.rrd import Drawing

FORMATS = (
    "table",
    "episodes",
    "parquet",
    "mcap",
    "lerobot-v3",
    "lerobot-v2.1",
    "rrd",
    "rosbag2",
    "npz",
)
EPILOG = example(
    "labctl export first --to table --out operations.csv",
    "labctl export first --to episodes --out episodes.csv",
    "labctl export first --to parquet --where outcome=failure --out failures",
    "labctl export first --to lerobot-v3 --fps 15 --where outcome=failure --out failures",
    "labctl export first --to parquet --for-arm policy-a --out for-policy-a",
    "labctl export first --to mcap --out logs --cluster tcp://10.0.0.5:8786",
)
F = TypeVar("F", bound=Callable[..., object])


@click.command(epilog=EPILOG)
@campaign_argument()
@click.option(
    "--to",
    "form",
    required=True,
    metavar="FORMAT",
    shell_complete=completing.among(FORMATS),
    help=f"One of: {', '.join(FORMATS)}.",
)
@click.option(
    "--out", required=True, type=PATH, metavar="PATH", help="File (table) or folder to write; - prints a table."
)
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only episodes of which this is true: a column of the table, outcome or end_reason. Several are all true.",
)
@click.option(
    "--for-arm",
    metavar="ARM",
    shell_complete=completing.arms,
    help="For the people of one arm: the others are masked. After unblinding.",
)
@click.option("--force", is_flag=True, help="Replace an export that is at PATH already.")
@click.option("--fps", type=int, metavar="N", help="lerobot: frames a second [default: the fastest camera's].")
@click.option(
    "--max-error-ms",
    type=float,
    metavar="MS",
    help="lerobot: refuse to move anything further than this [default: a quarter more than its own period].",
)
@click.option("--action", metavar="KIND", help="lerobot: sent, limited, requested or measured [default: sent].")
@click.option("--skip-inexact", is_flag=True, help="lerobot: leave out episodes that do not fit the grid.")
@click.option(
    "--recode",
    is_flag=True,
    help="lerobot: code every picture again, a keyframe every other frame: slower to write, quicker to read anywhere.",
)
@place_options
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
    workers: int | None,
    cluster: str | None,
    unverified: bool,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Write the scored episodes of a campaign in a format of other tools.

    \b
    table         the operations table, by the ending of PATH: .csv, .parquet or .xlsx
    episodes      the episodes table: one row an episode, its score the share of its items that it moved
    parquet       every stream, and tables of operations, episodes and events
    mcap          one file an episode, for Foxglove
    lerobot-v3    a LeRobotDataset for training; lerobot-v2.1 the same as openpi and GR00T read it
    rrd           one file an episode, for Rerun, as `labctl show` draws it
    rosbag2       one bag an episode, for ROS 2: messages of standard types
    npz           the recorded states of the robot, for numpy and the replay driver

    Before unblinding there is no arm, and nothing that could tell one from another. --where outcome=failure keeps the
    episodes in which an item was left. --for-arm keeps the recordings of that arm's episodes; the others' rows stay in
    the table as other-1, other-2, … What is written is verified first. With --unverified a record that does not hold is
    written too: its table has a column that says so, a folder's labctl.json an entry. --workers and --cluster change
    where a folder is written, and not a byte of it.
    """
    from labctl.exports.writing import TABLES, Grid, Request, export_campaign

    table = form in TABLES
    with ExitStack() as stack:
        place = out if str(out) != STANDARD else _to_print(stack, table=table, as_json=as_json)
        request = Request(
            form=form,
            out=place,
            where=where,
            for_arm=for_arm,
            force=force,
            views=drawing,
            grid=Grid(fps, max_error_ms, action, skip_inexact, recode),
            unverified=unverified,
            place=place_of(workers, cluster),
        )
        quiet = as_json or place != out or sys.stderr.isatty()
        with progress(f"exporting {form}", quiet=quiet) as say:
            done = export_campaign(campaign_folder(campaign, lab), request, say)
        if place != out:
            click.echo(place.read_text("utf-8"), nl=False)
        elif as_json:
            print_json(done)
        else:
            click.echo(_summary(done))


def _to_print(stack: ExitStack, *, table: bool, as_json: bool) -> Path:
    """A passing file for what is to be printed. Raises InputError for what cannot be."""
    if not table:
        raise InputError("--out - prints a table: --to table or --to episodes; give any other format a folder")
    _refuse_both(as_json)
    return Path(stack.enter_context(TemporaryDirectory(prefix="labctl-"))) / "table.csv"


def _refuse_both(as_json: bool) -> None:

    if as_json:
        raise InputError("--out - and --json both go to standard output; leave one of them out")


def drawing() -> Drawing:
    """What draws .rrd files, in whichever process asks."""
    from labctl.ui.rerun import episode

    return episode


def _summary(done: Mapping[str, Json]) -> str:
    from labctl.exports.destination import size

    def counted(key: str) -> str:
        number = done[f"{key}s"]
        assert isinstance(number, int), number
        return count(number, key)

    written, skipped = done["bytes"], done.get("skipped")
    assert isinstance(written, int), written
    held = counted("episode" if "episodes" in done else "row")
    masked = "; masked: the campaign is not unblinded" if done["masked"] else ""
    if "max_error_ms" in done:
        held += f", {counted('frame')} at {done['fps']} Hz, moved by at most {done['max_error_ms']} ms"
    if isinstance(skipped, Sequence) and skipped:
        held += f", {len(skipped)} left out"
    masked += f"; {done['unverified']}" if "unverified" in done else ""
    return f"wrote {held} ({size(written)} in {counted('file')}) to {done['out']}{masked}"


IMPORT = example(
    "labctl import roboarena dump/ --out blocks.csv",
    "labctl import lerobot act/eval_info.json pi0/eval_info.json --out episodes.csv",
    "labctl import inspect-robots logs/adhoc_084f91f0.json --arm mine --out episodes.csv",
    "labctl import csv results.csv --map block=session --map arm=policy --out episodes.csv",
)


@click.group("import", cls=Words, epilog=IMPORT)
def import_() -> None:
    """Other people's results as an episodes table, which `labctl analyze` reads: docs/episodes.md."""


def _writes(command: F) -> F:
    """--out, --force and --json of every source."""
    out = click.option("--out", required=True, type=PATH, metavar="TABLE.csv", help="The table to write; - prints it.")
    force = click.option("--force", is_flag=True, help="Replace a table that is there already.")
    return out(force(json_option(command)))


_ARM = click.option(
    "--arm", "arms", multiple=True, metavar="NAME", help="The policy of a source, once for each source, in their order."
)
_SOURCES = click.argument("sources", nargs=-1, required=True, type=PATH, metavar="SOURCE...")


@import_.command(epilog=example("labctl import roboarena dump/ --out blocks.csv", "labctl analyze blocks.csv"))
@click.argument("folder", type=PATH, metavar="DIR")
@_writes
def roboarena(folder: Path, out: Path, force: bool, as_json: bool) -> None:
    """RoboArena's dump, two CSV files.

    DIR holds one of sessions and one of episodes, told apart by their columns. A valid session is a block; its
    evaluator's preference is kept, their name is not.
    """
    from labctl.analysis.episodes_table.from_roboarena import from_roboarena

    _write(from_roboarena(folder), out, force, as_json)


@import_.command(
    epilog=example(
        "labctl import lerobot act/eval_info.json pi0/eval_info.json --out episodes.csv",
        "labctl import lerobot a.json b.json --arm act --arm pi0 --out episodes.csv",
    )
)
@_SOURCES
@_ARM
@_writes
def lerobot(sources: tuple[Path, ...], arms: tuple[str, ...], out: Path, force: bool, as_json: bool) -> None:
    """eval_info.json of lerobot-eval.

    One file for each policy, which is called as the folder that its file lies in.
    """
    from labctl.analysis.episodes_table.from_lerobot import from_lerobot

    _write(from_lerobot(sources, arms), out, force, as_json)


@import_.command(
    "inspect-robots",
    epilog=example(
        "labctl import inspect-robots logs/*.json --out episodes.csv",
        "labctl import inspect-robots a.json b.json --arm one --arm two --scorer success_at_end --out episodes.csv",
    ),
)
@_SOURCES
@_ARM
@click.option("--scorer", metavar="NAME", help="The scorer to take [default: the operator's, else success at end].")
@_writes
def inspect_robots(
    sources: tuple[Path, ...], arms: tuple[str, ...], scorer: str | None, out: Path, force: bool, as_json: bool
) -> None:
    """Logs of Inspect Robots, one or more of each policy."""
    from labctl.analysis.episodes_table.from_inspect_robots import from_inspect_robots

    _write(from_inspect_robots(sources, arms, scorer), out, force, as_json)


@import_.command(
    "csv", epilog=example("labctl import csv results.csv --map block=session --map arm=policy --out episodes.csv")
)
@click.argument("source", type=PATH, metavar="SOURCE")
@click.option("--map", "given", multiple=True, metavar="COLUMN=THEIRS", help="Our column and what SOURCE calls it.")
@_writes
def csv_(source: Path, given: tuple[str, ...], out: Path, force: bool, as_json: bool) -> None:
    """Any CSV or Parquet file.

    One row an episode; columns that have our names already need no --map.
    """
    from labctl.analysis.episodes_table.from_csv import from_csv, mapping_of

    _write(from_csv(source, mapping_of(given)), out, force, as_json)


def _write(found: Imported, out: Path, force: bool, as_json: bool) -> None:
    """Check the table, put it in its place in one step, and say what it is."""
    if str(out) == STANDARD:
        _refuse_both(as_json)
        found.checked()
        click.echo(found.csv(), nl=False)
        for note in found.notes:
            click.echo(note, err=True)
        return
    if out.suffix.lower() != ".csv":
        raise InputError(f"--out {out}: the table is CSV; give a name that ends in .csv")
    if out.exists() and not force:
        raise InputError(f"--out {out} is there already; give another name, or --force to replace it")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}; make it first")
    table = found.checked()
    replace_file(out, found.csv().encode())
    held = {"episodes": len(table.lines), "blocks": len(table.blocks), "arms": list(table.arms)}
    if as_json:
        print_json({"schema": "labctl.import/1", "out": str(out), **held, "notes": list(found.notes)})
        return
    for note in found.notes:
        click.echo(note)
    parts = f"{count(len(table.arms), 'arm')} in {count(len(table.blocks), 'block')}"
    click.echo(f"wrote {count(len(table.lines), 'episode')} of {parts} to {out}")
