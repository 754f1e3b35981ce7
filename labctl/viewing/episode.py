"""Gathers what there is to see of one episode: streams, videos, timeline, events and facts, as values for a viewer.

May not: import a viewer, or hand out an arm or an arm-dependent stream while the campaign is blinded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from labctl.clock import SECOND, on_boot_of
from labctl.core import timeline
from labctl.core.events import Event
from labctl.core.outcome import Outcome
from labctl.core.record import Episode
from labctl.core.record_fold import record_of
from labctl.core.recorded.projection import capture_ns
from labctl.core.recorded.skew import clock_line
from labctl.core.task import ITEMS, Task, condition_of, task_of
from labctl.core.timeline import Mark
from labctl.core.trial import Trial
from labctl.core.trial_table import Void
from labctl.devices import OptionsTable, options_type
from labctl.errors import InputError, LabctlError
from labctl.plain import Json
from labctl.store.campaign import Campaign
from labctl.store.footage import note_beside
from labctl.store.lab_folder import strangers
from labctl.store.media.reading import local_file
from labctl.store.scene_references import journalled_photos
from labctl.store.traces import TraceStore
from labctl.store.verifying.verified import in_passing, samples_of
from labctl.streams import StreamSpec, of_both_pictures, unit_of
from labctl.ui.rerun.episode_view import Depth, EpisodeView, Second, Stream, Video

AFTER_NS = 2 * SECOND


def find_episode(folders: Sequence[Path], episode: str) -> Path:
    """The campaign folder that holds an episode. Raises InputError when none of them does."""
    for folder in folders:
        with in_passing(folder) as campaign:
            if any(episode in trial.episodes for trial in campaign.state.trials.values()):
                return folder
    looked = ", ".join(folder.name for folder in folders) or "this lab"
    one = folders[0].name if len(folders) == 1 else "CAMPAIGN"
    raise InputError(f"no episode {episode!r} in {looked}; list them with: labctl episodes {one}")


def look_at(folder: Path, episode: str, *, masked: bool = False, broken: str | None = None) -> EpisodeView:
    """Everything recorded of an episode.

    Before unblinding the view is masked whatever is asked for: `masked` is true, and neither the arm of the experiment
    nor any column is in it that its stream does not leave open (`StreamSpec.open_columns`). Whoever
    asks has verified it; `broken` is what does not hold, for the title.
    """
    with in_passing(folder) as campaign:
        events = campaign.events()
        record = record_of(events, campaign.state)
        own = record.episodes[episode]
        masked = masked or record.unblinding is None
        trial = campaign.state.trials[own.trial]
        store = samples_of(campaign)
        try:
            specs = {spec.name: spec for spec in store.streams(episode)}
            whole = {name: _stream(store, episode, spec) for name, spec in specs.items()}
        finally:
            store.close()
        open_to_all = {name: _open(whole[name], kept) for name, spec in specs.items() if (kept := spec.open_columns())}
        streams = open_to_all if masked else whole
        sealed = {name for name, spec in specs.items() if spec.arm_dependent} if masked else set[str]()
        own = replace(own, gaps=tuple(gap for gap in own.gaps if gap["stream"] not in sealed))
        entries = timeline.without_gaps(timeline.attempt(events, episode), sealed)
        start_ns = _start(own, open_to_all)
        first_ns, last_ns = _span(entries, open_to_all)
        task = task_of(campaign.opened, trial.condition)
        facts = _facts(campaign, trial, own, task, None if masked else record.arms[trial.id])
        latency_s = of_both_pictures({camera.name: camera.latency_s for camera in campaign.cell.camera})
        thing, layout = _staged(campaign, trial)
        return EpisodeView(
            title=f"{episode} {trial.condition}"
            + (f" {facts['arm']}" if "arm" in facts else "")
            + (f" NOT VERIFIED: {broken}" if broken else ""),
            start_ns=start_ns,
            wall=_wall(entries, start_ns),
            streams=streams,
            videos=_videos(folder, own, streams, latency_s),
            events=[line for line in timeline.event_lines(entries) if first_ns <= line[0] <= last_ns],
            timelines=_timelines(entries, own, specs, streams, (first_ns, last_ns), in_items=task.measure == ITEMS),
            facts={**facts, **_moments(own, start_ns)},
            robot=robot_model(campaign.cell.robot.driver, campaign.cell.robot.options, shipped=strangers(folder)),
            totes=_totes(campaign, layout),
            item_size_m=_item_size(campaign, thing),
            photos=_photos(folder, events, own),
            masked=masked,
            second=_second(campaign),
        )


def _second(campaign: Campaign) -> Second | None:
    if (robot := campaign.cell.second_robot) is None:
        return None
    model = robot_model(robot.driver, robot.options, shipped=strangers(campaign.folder))
    place = (robot.base_m, robot.base_yaw_rad, robot.scene == "own")
    return Second(robot.name, robot.first_name, model, *place)


def _stream(store: TraceStore, episode: str, spec: StreamSpec) -> Stream:
    t_ns, values = store.read(episode, spec.name)
    return Stream(spec.columns, t_ns, values, spec.unit)


def _open(stream: Stream, kept: Sequence[int]) -> Stream:
    """Of a stream what a blind role may see."""
    unit = unit_of(stream.unit, len(stream.columns), kept)
    columns, values = tuple(stream.columns[i] for i in kept), stream.values[:, list(kept)]
    return replace(stream, columns=columns, values=values, unit=unit)


def _start(episode: Episode, streams: Mapping[str, Stream]) -> int:
    """Go; for an episode that never went, its first sample, or when it was staged."""
    if episode.go_ns is not None:
        return episode.go_ns
    firsts = [int(stream.t_ns[0]) for stream in streams.values() if len(stream.t_ns)]
    return min(firsts, default=(episode.staged or episode.revealed).mono_ns)


def _wall(entries: Sequence[Event], start_ns: int) -> tuple[str, int]:
    """A wall-clock time (ISO 8601, UTC) of this episode, and how many ns after start_ns it was."""
    nearest = min(entries, key=lambda event: abs(event.at_ns - start_ns))
    return nearest.wall, nearest.at_ns - start_ns


def _facts(campaign: Campaign, trial: Trial, episode: Episode, task: Task, arm: str | None) -> dict[str, Json]:
    """What a reader searches episodes by, in the order it is shown. `arm` only when it may be known."""
    outcome = trial.outcome if trial.episode == episode.id else None
    found: dict[str, Json] = {
        "arm": arm,
        "condition": trial.condition,
        "outcome": _outcome(outcome, episode.void),
        "moved": outcome.moved if outcome and not outcome.measured else None,
        "reached_s": list(outcome.reached_s) if outcome and outcome.reached_s is not None else None,
        "score": outcome.score if outcome else None,
        "task": task.name or None,
        "staged": task.items,
        "end_reason": episode.end_reason,
        "duration_s": episode.duration_s,
        "budget_s": task.budget_s,
        "kind": episode.start["kind"] if episode.start else campaign.opened["kind"],
        "cell": campaign.cell.cell.name,
        "campaign": campaign.opened["campaign"],
        "trial": trial.id,
        "block": trial.block + 1,  # as everywhere that people read
        "sealed": episode.sealed is not None,
        "gaps": episode.sealed["gaps"] if episode.sealed else None,
        "clocks": "; ".join(clock_line(name, fit) for name, fit in episode.clocks.items()) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _outcome(outcome: Outcome | None, void: Void | None) -> str | None:
    if void is not None:
        return f"voided: {void.reason}"
    return outcome.extent if outcome else None


def _span(entries: Sequence[Event], streams: Mapping[str, Stream]) -> tuple[int, int]:
    """From the first sample to a little after the last: what a view covers, however long staging and scoring took.
    Without samples until the attempt was over.
    """
    edges = [int(t_ns) for stream in streams.values() if len(stream.t_ns) for t_ns in stream.t_ns[[0, -1]]]
    return (min(edges), max(edges) + AFTER_NS) if edges else (entries[0].at_ns, timeline.over_ns(entries))


def _moments(episode: Episode, start_ns: int) -> dict[str, float]:
    """When the scene was staged and committed and the episode scored, seconds since go."""
    committed = episode.scene.at if episode.scene else None
    moments = {"staging_s": episode.staged, "committed_s": committed, "scored_s": episode.scored}
    then = {name: on_boot_of(episode.revealed, at) for name, at in moments.items() if at is not None}
    return {name: round((at_ns - start_ns) / SECOND, 3) for name, at_ns in then.items()}


def _timelines(
    entries: Sequence[Event],
    episode: Episode,
    specs: Mapping[str, StreamSpec],
    streams: Mapping[str, Stream],
    between_ns: tuple[int, int],
    *,
    in_items: bool,
) -> dict[str, list[Mark]]:
    """The timelines that have anything on them between two times. in_items: the task is counted in them."""
    first_ns, last_ns = between_ns
    found = {
        "phase": timeline.phase_timeline(entries),
        "operations": timeline.operation_timeline(episode, in_items=in_items),
        "instruction": timeline.instruction_timeline(episode),
        "interventions": timeline.intervention_timeline(episode.interventions),
        "holds": timeline.hold_timeline(entries),
        "notes": timeline.note_timeline(entries),
    }
    gaps = timeline.recorded_gaps(episode.gaps, last_ns)
    for name in filter(timeline.is_steady, streams):
        gaps.setdefault(name, []).extend(timeline.measured_gaps(streams[name].t_ns, specs[name].rate_hz))
    found |= {f"gaps {name}": timeline.gap_timeline(spans) for name, spans in sorted(gaps.items())}
    shown = {name: timeline.within(marks, first_ns, last_ns) for name, marks in found.items()}
    return {name: marks for name, marks in shown.items() if any(mark.label for mark in marks)}


def _videos(
    folder: Path, episode: Episode, streams: Mapping[str, Stream], latency_s: Mapping[str, float]
) -> dict[str, Video]:
    """Frames stand at the time at which they were taken, which is before they were received."""
    found: dict[str, Video] = {}
    for camera, entry in episode.videos.items():
        index = streams.get(f"camera/{camera}")
        if index is None or not entry["frames"] or not len(index.values):
            continue
        path, depth = folder / entry["file"], entry.get("depth")
        columns = {name: index.values[:, i] for i, name in enumerate(index.columns)}
        times_ns = capture_ns(columns["host_ns"], latency_s.get(camera, 0.0))
        note = note_beside(path.with_suffix(".json"))
        about = note.get("about")
        # What a published folder lacks was withheld; no media store is asked for it.
        path_of = (lambda one: folder / one["file"]) if strangers(folder) else partial(local_file, folder)
        found[camera] = Video(
            path_of(entry),
            times_ns,
            columns["pts_us"],
            about if isinstance(about, Mapping) else {},
            _depth(
                path_of(depth) if depth else path.with_suffix(".depth.mkv"),
                note.get("depth"),
                times_ns,
                columns.get("depth_ms"),
            ),
        )
    return found


def _depth(path: Path, about: Json, times_ns: np.ndarray, depth_ms: np.ndarray | None) -> Depth | None:
    """The depth that lies beside a video, when there is some: which of its frames belongs to which time."""
    if depth_ms is None or not isinstance(about, Mapping) or not path.is_file():
        return None
    there = depth_ms >= 0
    scale_m = about.get("depth_scale_m")
    known_m = scale_m if isinstance(scale_m, int | float) else None
    return Depth(path, times_ns[there], depth_ms[there], known_m) if any(there) else None


def _photos(folder: Path, events: Sequence[Event], episode: Episode) -> dict[str, Path]:
    """The scene as it was staged and as it should have been, by camera; both were taken before an arm was revealed."""
    files = {photo["sha256"]: folder / photo["file"] for _, photo in journalled_photos(events)}
    found: dict[str, Path] = {}
    scene = episode.scene
    for camera, photo in (scene.photos if scene else {}).items():
        found[f"{camera}_staged"] = folder / photo["file"]
        reference = ((scene.matches if scene else {}).get(camera) or {}).get("reference")
        if reference in files:
            found[f"{camera}_reference"] = files[reference]
    return found


def robot_model(driver: str, options: Mapping[str, Json], *, shipped: bool = False) -> str:
    """Which robot a cell has: the driver's option `model` or `arm`, its default where it is left out, else the driver's
    name; wrappers are looked through. shipped: no driver is imported but those that come with labctl, since a stranger
    wrote the cell.
    """
    wrapped, inner = options.get("driver"), options.get("driver_options")
    if isinstance(wrapped, str):
        return robot_model(wrapped, inner if isinstance(inner, Mapping) else {}, shipped=shipped)
    read: OptionsTable | None = None
    with suppress(LabctlError):  # recorded by a driver, or with options, that this labctl does not know any more
        table = options_type(driver, shipped=shipped)
        read = table.read(options, driver) if table is not None else None
    stated = {key: getattr(read, key, options.get(key)) for key in ("model", "arm")}
    name = str(stated["model"] or stated["arm"] or driver)
    return {"franka": "fr3"}.get(name, name.removeprefix("sim_"))


def _staged(campaign: Campaign, trial: Trial) -> tuple[str, str]:
    """Which object a trial's condition has, and in which layout: a condition of the long form has a name of its own."""
    entry = condition_of(campaign.opened, trial.condition)
    return entry["object"], entry["layout"]


def _totes(campaign: Campaign, layout: str) -> dict[str, tuple[Sequence[float], Sequence[float], bool]]:
    """{name: (centre of the floor, inner size, whether items go there)}."""
    target = next((one.tote_side for one in campaign.fixture.layout if one.name == layout), None)
    return {tote.name: (tote.centre_m, tote.size_m, tote.name == target) for tote in campaign.fixture.tote}


def _item_size(campaign: Campaign, wanted: str) -> Sequence[float] | None:
    return next((thing.item_size_m for thing in campaign.fixture.object if thing.name == wanted), None)
