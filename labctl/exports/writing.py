"""`labctl export` as a use case: choose and mask, see that there is room, write whole or not at all, say what it was.

May not: know how a format is written, or overwrite anything unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from labctl.core.task import task_of
from labctl.errors import InputError
from labctl.exports.destination import check_destination, check_room, size, whole_folder
from labctl.exports.episode_files import Say, Write, write_each
from labctl.exports.recordings import Recordings
from labctl.exports.rrd import Drawing
from labctl.exports.selection import Selection, select
from labctl.exports.workers import Result
from labctl.pieces import HERE, Place
from labctl.plain import Json, count
from labctl.reporting.operations_table import Row
from labctl.store.campaign import Campaign
from labctl.store.verifying.verified import JOURNAL_ALONE, verified

WriteFormat = Callable[["Job", Path, Say], Mapping[str, Json]]  # what it adds to what is said of an export


@dataclass(frozen=True, slots=True)
class Grid:
    """How to put episodes on a uniform grid; None: as the campaign was recorded. For formats that have one."""

    fps: int | None = None
    max_error_ms: float | None = None
    action: str | None = None
    skip_inexact: bool = False
    recode: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for. `views` loads the module that draws .rrd files; other processes call it too, so
    it is something that can be pickled.
    """

    form: str
    out: Path
    where: tuple[str, ...] = ()
    for_arm: str | None = None
    force: bool = False
    views: Callable[[], Drawing] | None = None
    grid: Grid = field(default_factory=Grid)
    unverified: bool = False
    place: Place = HERE


@dataclass(frozen=True, slots=True)
class Job:
    """What a format writes from."""

    request: Request
    campaign: Campaign
    recordings: Recordings
    selection: Selection


@dataclass(frozen=True, slots=True)
class Format:
    """How to write one format, and the most it takes: bytes for each byte of samples (as numbers) and of video."""

    write: WriteFormat
    per_sample_byte: float
    per_video_byte: float
    on_grid: bool = False


def export_campaign(folder: Path, request: Request, say: Say) -> dict[str, Json]:
    """Write an export; what it holds: schema, format, out, episodes, rows, bytes, masked, and what the format adds.

    Raises BrokenRecord for a record that does not hold, InputError for the request or a taken place, StateError when
    the campaign has nothing to export or hides it still, StorageError for a full disk, MissingExtra.
    """
    if request.form not in FORMATS:
        raise InputError(f"unknown format {request.form!r}; this version exports: {', '.join(FORMATS)}")
    if request.grid != Grid() and not FORMATS[request.form].on_grid:
        on_grid = ", ".join(name for name, form in FORMATS.items() if form.on_grid)
        raise InputError(
            f"--fps, --max-error-ms, --action, --skip-inexact and --recode are for {on_grid}, not {request.form}"
        )
    check_destination(request.out, folder, force=request.force)
    with verified(folder, JOURNAL_ALONE, unverified=request.unverified) as shown:
        campaign, broken = shown.campaign, shown.broken
        selection = select(campaign, request.where, request.for_arm)
        if request.form not in TABLES:
            broken = shown.with_recordings([chosen.episode for chosen in selection.episodes])
        about: dict[str, Json] = {**selection.about, "format": request.form}
        made: dict[str, Json] = {"rows": len(selection.rows), "masked": selection.masked}
        if broken is not None:
            about["unverified"] = broken
            selection = replace(selection, rows=[{**row, "unverified": broken} for row in selection.rows])
        if request.form in TABLES:
            made["rows"] = _write_table(request, selection, campaign)
        else:
            made |= _write_folder(campaign, request, selection, about, say)
    unverified = {"unverified": broken} if broken else {}
    place = {"schema": about["schema"], "format": request.form, "out": str(request.out)}
    return {**place, **made, **unverified, **_written(request.out)}


def episode_rows(selection: Selection, campaign: Campaign) -> list[Row]:
    """The episodes table of a selection, masked as it is."""
    from labctl.reporting import episodes_table

    opened, ends = campaign.opened, {chosen.episode: chosen.ended for chosen in selection.episodes}
    said = selection.hide(opened.get("instruction", ""))
    record = campaign.record()
    judges = {chosen.episode: record.episodes[chosen.episode].scored_by for chosen in selection.episodes}
    rows = episodes_table.episodes(selection.rows, ends, said, selection.places, judges)
    rows = episodes_table.with_tasks(rows, opened, episodes_table.as_counted(selection.rows, selection.trials))
    rows = episodes_table.with_preferences(rows, record, selection.hide)
    return [{**row, "instruction": selection.hide(row["instruction"] or "") or None} for row in rows]


def _write_table(request: Request, selection: Selection, campaign: Campaign) -> int:
    """Write the operations table or that of episodes; how many rows it has."""
    from labctl.reporting.episodes_table import columns_of
    from labctl.reporting.operations_table import UNVERIFIED, write_table

    if request.out.is_dir():
        raise InputError(f"--out {request.out} is a folder; a table is one file: .csv, .parquet or .xlsx")
    request.out.parent.mkdir(parents=True, exist_ok=True)
    if request.form == "table":
        write_table(selection.rows, request.out)
        return len(selection.rows)
    rows = episode_rows(selection, campaign)
    mark = selection.rows[0].get(UNVERIFIED)
    rows = [{**row, UNVERIFIED: mark} for row in rows] if mark else rows
    write_table(rows, request.out, [*columns_of(rows), *([UNVERIFIED] if mark else [])])
    return len(rows)


def _write_folder(
    campaign: Campaign, request: Request, selection: Selection, about: dict[str, Json], say: Say
) -> dict[str, Json]:
    if not selection.episodes:
        of = f"scored episode of arm {request.for_arm}" if request.for_arm else "scored episode"
        none = f"no {of} has {' and '.join(request.where)}" if request.where else f"there is no {of}"
        raise InputError(f"{none}; recordings of voided ones are not exported, and nothing was written")
    form = FORMATS[request.form]
    with Recordings(campaign, selection) as recordings:
        samples, videos = recordings.stored_bytes()
        needed = round(samples * form.per_sample_byte + videos * form.per_video_byte)
        free = check_room(request.out, needed)
        say(f"{count(len(selection.episodes), 'episode')}; at most {size(needed)}, {size(free)} are free")
        with whole_folder(request.out, about, repr(request.grid), say) as building:
            made = form.write(Job(request, campaign, recordings, selection), building, say)
            about["contents"] = made
    return {"episodes": len(selection.episodes), **made}


def _written(out: Path) -> dict[str, int]:
    files = [path for path in out.rglob("*") if path.is_file()] if out.is_dir() else [out]
    return {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}


def _parquet(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.columnar import write_columnar

    return {
        "rows_of": write_columnar(job.campaign.folder, job.recordings, job.selection, folder, say, job.request.place)
    }


def _mcap(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.mcap import summed, write_episode

    return {"messages_of": summed(_each(job, folder, "{}.mcap", write_episode, say))}


def _rosbag2(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.mcap import summed
    from labctl.exports.rosbag2 import write_episode

    return {"messages_of": summed(_each(job, folder, "{0}/{0}.mcap", write_episode, say))}


def _lerobot(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.lerobot import LAYOUTS, terms_of, write_dataset

    grid, cell = job.request.grid, job.campaign.cell
    rates_hz = [camera.rate_hz for camera in cell.camera] or [cell.robot.observe_hz]
    terms = terms_of(grid.fps, max(rates_hz), grid.action, grid.max_error_ms, masked=job.selection.masked)
    return write_dataset(
        job.recordings,
        job.selection,
        folder,
        LAYOUTS[job.request.form],
        terms,
        instruction=lambda chosen: task_of(job.campaign.opened, chosen.trial.condition).instruction,
        cameras=[camera.name for camera in cell.camera],
        skip_inexact=grid.skip_inexact,
        recode=grid.recode,
        say=say,
        place=job.request.place,
    )


def _rrd(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.rrd import write_episode

    assert job.request.views is not None, "whoever asks for .rrd says what draws them"
    _each(job, folder, "{}.rrd", partial(write_episode, job.request.views, job.campaign.folder), say)
    return {}


def _npz(job: Job, folder: Path, say: Say) -> Mapping[str, Json]:
    from labctl.exports.npz import write_episode

    _each(job, folder, "{}.npz", write_episode, say)
    return {}


def _each(job: Job, folder: Path, file: str, write: Write[Result], say: Say) -> Sequence[Result]:
    read_bytes = sum(job.recordings.stored_bytes())
    return write_each(job.campaign.folder, job.selection, folder, file, write, read_bytes, say, job.request.place)


TABLES = ("table", "episodes")
FORMATS: Mapping[str, Format] = {
    **dict.fromkeys(TABLES, Format(lambda *_: {}, 0.0, 0.0)),
    "parquet": Format(_parquet, 1.3, 0.0),
    "mcap": Format(_mcap, 1.5, 1.2),
    "lerobot-v3": Format(_lerobot, 0.5, 4.0, on_grid=True),
    "lerobot-v2.1": Format(_lerobot, 0.5, 4.0, on_grid=True),
    "rrd": Format(_rrd, 2.0, 1.2),
    "rosbag2": Format(_rosbag2, 2.5, 12.0),
    "npz": Format(_npz, 1.0, 0.0),
}
