"""A LeRobot dataset, v3.0 or v2.1: one Parquet file and one video a camera for each episode, and the tables about them.

May not: put an episode on the grid that does not fit it, or leave one out without saying so.

Both versions hold the same frames; only names and the tables in `meta/` differ (`lerobot_meta`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import digest
from labctl.errors import InputError, StateError
from labctl.exports import statistics
from labctl.exports.arrow import Array, arrow
from labctl.exports.episode_files import Say
from labctl.exports.grid import milliseconds
from labctl.exports.lerobot_episode import (
    LARGEST_BOUND_NS,
    ActionKind,
    Feature,
    Misfit,
    Plan,
    Terms,
    features,
    parts_of,
    plan,
)
from labctl.exports.lerobot_meta import (
    LAYOUTS,
    PICTURES,
    WRITING,
    FeatureEntry,
    Layout,
    Written,
    WrittenEpisode,
    features_of,
    write_meta,
)
from labctl.exports.recordings import Recordings, episode_row
from labctl.exports.retime import retime
from labctl.exports.selection import Chosen, Selection
from labctl.exports.splice import Coding
from labctl.exports.workers import Job, processes_for, write_all
from labctl.pieces import HERE, Place
from labctl.plain import Json, count

__all__ = ["LAYOUTS", "terms_of", "write_dataset"]

ACTIONS: tuple[ActionKind, ...] = get_args(ActionKind)


def terms_of(
    fps: int | None, fastest_hz: float, action: str | None, max_error_ms: float | None, *, masked: bool
) -> Terms:
    """Terms from what was asked for; by default the fastest camera's rate and the sent action.

    Raises InputError for an action or a number that cannot be, StateError for actions that are still sealed.
    """
    if fps is not None and not 1 <= fps <= 1000:
        raise InputError(f"--fps {fps}: give 1 to 1000 frames a second")
    if max_error_ms is not None and not 0 <= max_error_ms <= LARGEST_BOUND_NS / MILLISECOND:
        raise InputError(f"--max-error-ms {max_error_ms}: give 0 or more")
    kind: ActionKind | None = next((one for one in ACTIONS if one == (action or "sent")), None)
    if kind is None:
        raise InputError(f"--action {action}: give one of {', '.join(ACTIONS)}")
    if masked and kind != "measured":
        raise StateError(
            "a dataset needs actions, and they stay sealed until the campaign is unblinded, since their shape can tell "
            "one policy from another; unblind it first, or take the next measured state with --action measured"
        )
    bound_ns = None if max_error_ms is None else round(max_error_ms * MILLISECOND)
    return Terms(fps or max(1, round(fastest_hz)), kind, bound_ns)


def write_dataset(
    recordings: Recordings,
    selection: Selection,
    folder: Path,
    layout: Layout,
    terms: Terms,
    *,
    instruction: Callable[[Chosen], str],
    cameras: Sequence[str],
    skip_inexact: bool,
    recode: bool,
    say: Say,
    place: Place = HERE,
) -> dict[str, Json]:
    """Fill a folder; how many episodes are in it, frames, tasks, resampling errors and what was left out.

    instruction: that of an episode; cameras: those every episode must have. recode: no picture is
    copied as it is coded. Raises InputError when an episode cannot be put on the grid exactly enough and `skip_inexact`
    is false, StateError for one without states or actions, MissingExtra without pyarrow.
    """
    arrow(WRITING)
    plans, skipped = _plans(recordings, selection, terms, cameras, skip_inexact, say)
    made = Written()
    info: dict[str, FeatureEntry] = {}
    units: dict[str, str] = {}
    videos = _videos(recordings, folder, layout, plans, terms, recode=recode, place=place)
    for number, found in enumerate(plans):
        chosen = found.recording.chosen
        tasks, of_frame = _tasks(found, instruction(chosen) or chosen.object)
        tasks = [selection.hide(task) for task in tasks]
        made.tasks += [task for task in dict.fromkeys(tasks) if task not in made.tasks]
        columns = features(found, terms, recordings.moved_s(chosen.episode))
        info = info or features_of(columns, {name: found.recording.pictures[name].path for name in cameras}, terms.fps)
        units = {name: one.unit for name, one in columns.items()}
        levels = {PICTURES + camera: statistics.Histogram.of(next(videos)) for camera in found.places_us}
        _write_episode(folder, layout, made, number, found, columns, terms, [tasks[k] for k in of_frame], levels)
        say(f"{number + 1}/{len(plans)} {chosen.episode} {count(found.frames, 'frame')}")
    first = plans[0].recording
    parts = parts_of([first.spec(stream) for stream in first.robots])
    write_meta(folder, layout, made, info, parts, fps=terms.fps, robot=selection.about["robot"])
    return {
        "episodes": len(plans),
        "frames": made.frames,
        "fps": terms.fps,
        "action": terms.action,
        "tasks": made.tasks,
        "max_error_ms": milliseconds(max(found.worst_ns for found in plans)),
        "error_ms": _errors(plans),
        "skipped": skipped,
        "units": units,
    }


def _videos(
    recordings: Recordings,
    folder: Path,
    layout: Layout,
    plans: Sequence[Plan],
    terms: Terms,
    *,
    recode: bool,
    place: Place,
) -> Iterator[statistics.Levels]:
    """Every video of every episode, and of each the levels of its pictures."""
    jobs: list[Job[Path, list[int], int, Coding | None]] = []
    read_bytes = 0
    for number, found in enumerate(plans):
        for camera, places in found.places_us.items():
            source = found.recording.pictures[camera].path
            read_bytes += source.stat().st_size
            video = None if recode else recordings.filmed.get(camera)
            places_us: list[int] = places.tolist()
            target = layout.video_file(folder, number, PICTURES + camera)
            same = digest([str(source), places_us, terms.fps, repr(video)])
            work = (source, places_us, terms.fps, video)
            jobs.append(Job(target.relative_to(folder).as_posix(), work, same))
    return write_all(folder, jobs, _video, processes_for(len(jobs), read_bytes), place)


def _video(target: Path, source: Path, places: list[int], fps: int, video: Coding | None) -> statistics.Levels:
    return retime(source, places, target, fps, video).levels()


def _tasks(found: Plan, first: str) -> tuple[list[str], np.ndarray]:
    """The tasks of an episode, that of go first, and the place of each frame's: a switch counts from when it was taken
    (n,).
    """
    switches = found.recording.episode.switches
    at_ns = np.array([switch["t_ns"] for switch in switches], np.int64)
    tasks = [first, *(switch["instruction"] for switch in switches)]
    return tasks, np.searchsorted(at_ns, found.t_ns[:-1], side="right")


def _plans(
    recordings: Recordings,
    selection: Selection,
    terms: Terms,
    cameras: Sequence[str],
    skip_inexact: bool,
    say: Say,
) -> tuple[list[Plan], list[str]]:
    """Every episode placed, before anything is written; and the episodes left out, if that was allowed."""
    plans: list[Plan] = []
    problems: list[Misfit] = []
    skipped: list[str] = []
    for chosen in selection.episodes:
        found = plan(recordings.of(chosen), terms, cameras)
        without = [name for name in cameras if name not in found.places_us]
        wrong = found.problems(terms)
        wrong += [Misfit(f"{chosen.episode} has no pictures of {name}") for name in without]
        if wrong:
            problems += wrong
            skipped.append(chosen.episode)
        else:
            plans.append(found)
    if problems and not skip_inexact:
        raise InputError(refusal(terms.fps, len(skipped), len(selection.episodes), problems))
    if not plans:
        raise InputError(f"no episode can be put on a grid of {count(terms.fps, 'frame')} a second: {problems[0].text}")
    for one in problems:
        say(f"left out: {one.text}")
    return plans, skipped


def refusal(fps: int, misfits: int, episodes: int, problems: Sequence[Misfit]) -> str:
    """Says that some of these episodes cannot be put on the grid, and only what helps."""
    worst = "; ".join(one.text for one in problems[:3])
    worst += f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    text = f"at {count(fps, 'frame')} a second {misfits} of {episodes} episodes cannot be put on the grid: {worst}"
    text += "; leave them out with --skip-inexact"
    if all(one.of_time for one in problems):
        return f"{text}, or allow more with --max-error-ms N"
    some = any(one.of_time for one in problems)
    return f"{text}; --max-error-ms N lets in only what is off by a time" if some else text


def _errors(plans: Sequence[Plan]) -> dict[str, dict[str, float]]:
    """Per stream, how far its samples were from the grid, ms: median and largest."""
    streams: dict[str, list[np.ndarray]] = {}
    for found in plans:
        for one in found.offsets:
            streams.setdefault(one.stream, []).append(one.error_ns)
    joined = {name: np.concatenate(errors) for name, errors in streams.items()}
    return {name: {"median": milliseconds(np.median(e)), "max": milliseconds(e.max())} for name, e in joined.items()}


def _write_episode(
    folder: Path,
    layout: Layout,
    made: Written,
    number: int,
    found: Plan,
    columns: Mapping[str, Feature],
    terms: Terms,
    tasks: Sequence[str],
    levels: Mapping[str, statistics.Histogram],
) -> None:
    n, first = found.frames, made.frames
    stats = {name: statistics.of_columns(one.values) for name, one in columns.items()}
    counters = {
        "timestamp": (np.arange(n) / terms.fps).astype(np.float32),
        "frame_index": np.arange(n),
        "episode_index": np.full(n, number),
        "index": np.arange(first, first + n),
        "task_index": np.array([made.tasks.index(task) for task in tasks], np.int64),
    }
    stats |= {name: statistics.of_columns(values) for name, values in counters.items()}
    _write_frames(layout.data_file(folder, number), columns, counters)
    for key, found_levels in levels.items():
        stats[key] = found_levels.stats()
        made.levels.setdefault(key, statistics.Histogram()).merge(found_levels)
    made.episodes.append(WrittenEpisode(number, list(dict.fromkeys(tasks)), n, _about(found), stats))
    made.frames += n


def _about(found: Plan) -> dict[str, Json]:
    """What the tables of episodes say beyond the format's own columns."""
    row, start_ns = episode_row(found.recording), int(found.t_ns[0])
    about = {key: row[key] for key in ("episode", "trial", "arm", "object", "condition", "block") if key in row}
    about["success"] = row["outcome"] == "success"
    about |= {key: row[key] for key in ("items_moved", "items_staged", "end_reason")}
    about |= {
        "first_frame_since_go": (start_ns - found.recording.go_ns) / SECOND,
        "first_frame_wall_ns": found.recording.wall_at(start_ns),
        "max_error_ms": milliseconds(found.worst_ns),
    }
    return {f"labctl.{key}": value for key, value in about.items()}


def _write_frames(path: Path, columns: Mapping[str, Feature], counters: Mapping[str, np.ndarray]) -> None:
    pa, pq = arrow(WRITING)
    arrays: dict[str, Array] = {}
    for name, one in columns.items():
        if one.values.ndim == 1:
            arrays[name] = pa.array(one.values)
        else:
            flat = pa.array(np.ascontiguousarray(one.values).reshape(-1))
            arrays[name] = pa.FixedSizeListArray.from_arrays(flat, one.values.shape[1])
    pq.write_table(pa.table(arrays | {name: pa.array(values) for name, values in counters.items()}), path)
