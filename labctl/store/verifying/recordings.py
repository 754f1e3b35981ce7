"""What verification finds of recordings: traces, videos, the index of their frames, and clocks.

May not: look at anything else of a campaign, repair or write anything, or stop at the first problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from labctl.core.event_bodies import CampaignUnblinded, Streams, body_of
from labctl.core.events import Event, Kind, digest, gap_words, sealed_gaps
from labctl.core.recorded.skew import clock_warnings
from labctl.errors import LabctlError
from labctl.messages.body_parts import GapBody, StreamEntry
from labctl.realtime import CORES
from labctl.store.atomic_files import file_errors
from labctl.store.database_backend import sqlite_url
from labctl.store.footage import check_files, check_strange, filmed, index_notes
from labctl.store.journal import events_of
from labctl.store.ledger import Ledger, sealed_values
from labctl.store.locks import OF_CAMPAIGN, holder
from labctl.store.media.looking import media_of
from labctl.store.problem import Found, Problem

if TYPE_CHECKING:  # whoever looks at no recording does not wait for its import
    from labctl.store.read_once import Samples
    from labctl.store.traces import Chunks, TraceStore
    from labctl.streams import StreamSpec

Seen: TypeAlias = "Callable[[Sequence[Event], str, Samples], None]"
"""Is given the events, an episode, and its samples once they were found to hold, in any thread."""
DAMAGED_SEAL = "damaged seal"
UNREADABLE = "unreadable traces"


def check_recordings(
    folder: Path, events: Sequence[Event], found: Found, chosen: Collection[str] | None, seen: Seen | None = None
) -> None:
    """Every recording, or those of the chosen episodes alone; what does not hold is added to `found`. seen: is given
    what holds, unless something else does not already or it is too much to be unpacked at once.
    """
    seen = None if found.problems else seen
    sealed = [event for event in events if event.kind == Kind.RECORDING_SEALED]
    if chosen is not None:
        sealed = [event for event in sealed if event.episode in chosen]
    for event in events:
        if event.kind == Kind.GAP:
            why = gap_words(event.body.get("lost"), event.body.get("why"))
            found.notes.append(f"gap in {event.body.get('stream')} of episode {event.episode}: {why}")
        elif event.kind == Kind.CAMPAIGN_UNBLINDED:
            found.notes += _sealed_gaps(event)
    found.of = 2 * len(sealed)  # traces, and then videos
    if sealed or chosen is None:
        found.guard(UNREADABLE, "traces.db", lambda: _check_traces(folder, events, sealed, found, seen))
    elsewhere, notes = media_of(folder, events)
    found.notes += notes
    gaps = _file_gaps(events)
    found.each(
        sealed, lambda event, own: _check_videos(folder, event, own, elsewhere, gaps.get(event.episode or "", ()))
    )


def _sealed_gaps(event: Event) -> list[str]:
    """The gaps that were sealed, since their streams tell arms apart, once they are opened."""
    try:
        opened = sealed_gaps(event.body.get("openings") or ())
        return [
            f"gap in {gap['stream']} of episode {name}: {gap_words(gap.get('lost'), gap['why'])}"
            for name, gaps in opened.items()
            for gap in gaps
        ]
    except (KeyError, TypeError, AttributeError):
        return []  # openings that are none are named where the seal is checked


def _file_gaps(events: Sequence[Event]) -> dict[str, list[GapBody]]:
    """By episode, the gaps that bind files which are no video."""
    found: dict[str, list[GapBody]] = {}
    for event in events:
        if event.kind == Kind.GAP and event.body.get("files"):
            found.setdefault(event.episode or "", []).append(body_of(event, GapBody))
    return found


def _check_videos(
    folder: Path, event: Event, found: Found, elsewhere: Collection[str], gaps: Sequence[GapBody] = ()
) -> None:
    episode = event.episode or ""
    for camera, video in event.body.get("videos", {}).items():
        whose = f"episode {event.episode}, {camera}"
        found.videos += 1
        found.guard(
            "unreadable video",
            f"{video['file']} ({whose})",
            lambda v=video, w=whose: found.of_recording(episode, check_files(folder, v, w, elsewhere=elsewhere)),
            episode=episode,
        )
    found.guard("unreadable video", f"episode {episode}", lambda: _check_strange(folder, event, gaps, found))


def _check_strange(folder: Path, event: Event, gaps: Sequence[GapBody], found: Found) -> None:
    """What lies among an episode's videos and is none, bound by a gap; and what no entry binds."""
    episode, whose = event.episode or "", f"episode {event.episode}"
    known: set[str] = set()
    for gap in gaps:
        problems, notes = check_strange(folder, gap, whose)
        found.of_recording(episode, problems)
        found.notes += notes
        known.update(entry["file"] for entry in gap.get("files") or ())
    for video in event.body.get("videos", {}).values():
        known.update(entry["file"] for entry in (video, video.get("depth"), video.get("about")) if entry)
    with file_errors(str(folder / "video" / episode)):
        there = sorted((folder / "video" / episode).glob("*")) if episode else []
    for name in (path.relative_to(folder).as_posix() for path in there):
        if name not in known:
            found.notes.append(f"{name} ({whose}) is bound by no entry of the journal: a change of it cannot be seen")


def _hidden_streams(folder: Path, events: Sequence[Event]) -> dict[str, Streams]:
    """The summaries of arm-dependent streams by their digest: the journal's own once it is unblinded."""
    unblinded = next((event for event in events if event.kind == Kind.CAMPAIGN_UNBLINDED), None)
    seal = Ledger.open(folder).open_all() if unblinded is None else body_of(unblinded, CampaignUnblinded)
    return sealed_values(seal, "streams", Streams)


def _check_unsealed(folder: Path, store: TraceStore, events: Sequence[Event], found: Found) -> None:
    """Rows that no entry of the journal speaks for."""
    recorded = store.episodes()
    known = {event.episode for event in events if event.kind == Kind.ARM_REVEALED}
    if not known.issuperset(recorded):  # one that began since
        known = {event.episode for event in events_of(folder) if event.kind == Kind.ARM_REVEALED}
    sealed = {event.episode for event in events if event.kind == Kind.RECORDING_SEALED}
    over = {event.episode: event.seq for event in events if event.kind in (Kind.EPISODE_ENDED, Kind.EPISODE_VOIDED)}
    on = max((event.seq for event in events if event.kind in (Kind.TRIAL_STAGING, Kind.RUN_STOPPED)), default=0)
    runs = holder(folder / OF_CAMPAIGN).startswith("run ")
    for episode in recorded:
        where = f"traces.db episode {episode}"
        if episode not in known:
            found.problems.append(Problem("unsealed trace", where, "the journal knows no such episode"))
    closed = any(event.kind == Kind.CAMPAIGN_CLOSED for event in events)
    for episode in sorted({*recorded, *filmed(folder)} & known - sealed):
        found.notes.append(
            f"what was recorded of episode {episode} is not sealed: {_why(over.get(episode), closed, runs, on)}"
        )


def _why(over: int | None, closed: bool, runs: bool, on: int) -> str:
    """Why a recording has no RecordingSealed, and what follows. over: the entry of its end or void; runs: whether a run
    goes; on: the last entry by which a run has gone on to another trial, or stopped.
    """
    if over is None:
        return "it goes on, or nobody concluded what a crash left; start this run again, which seals it"
    unproven = "nothing in the journal says what its traces and videos were, so that a change of them cannot be seen"
    if closed:
        return f"{unproven}; runs and closings of before 2026-11-26 left episodes so that were void before their seal"
    if runs and on < over:  # else that run gave it up
        return f"{unproven} yet; it is being sealed"
    return f"{unproven} yet; the next start of its run seals what is there, or labctl close"


def _check_traces(
    folder: Path, events: Sequence[Event], sealed: Sequence[Event], found: Found, seen: Seen | None
) -> None:
    from labctl.store.traces import TraceStore

    campaign = events[0].body["campaign"]
    store = TraceStore.open(sqlite_url(folder / "traces.db"), campaign, readonly=True, held=True)
    try:
        hidden: dict[str, Streams] = {}
        found.guard(DAMAGED_SEAL, "sealed stream summaries", lambda: hidden.update(_hidden_streams(folder, events)))
        _check_unsealed(folder, store, events, found)
        give = None if seen is None else partial(seen, events)
        found.each(sealed, lambda event, own: _check_recording(folder, store, event, hidden, own, give))
    finally:
        store.close()


def _check_recording(
    folder: Path,
    store: TraceStore,
    event: Event,
    hidden: Mapping[str, Streams],
    found: Found,
    give: Callable[[str, Samples], None] | None,
) -> None:
    streams = event.body["streams"]
    all_streams = {**streams, **hidden.get(event.body.get("sealed", ""), {})}
    found.chunks += sum(stream["chunks"] for stream in all_streams.values())
    roots = digest({name: stream["root"] for name, stream in streams.items()})
    if roots != event.body.get("root"):
        where = f"journal seq {event.seq} ({event.kind})"
        found.problems.append(Problem("broken recording root", where, "it is not the digest of its streams' roots"))
    where, episode = f"traces.db episode {event.episode}", event.episode or ""
    specs = [] if give is None else _unpackable(store, episode, all_streams)
    cameras = (f"camera/{camera}" for camera in event.body.get("videos", {}))
    read: Chunks = {name: [] for name in (*cameras, *(spec.name for spec in specs))}

    def traces() -> None:
        found.of_recording(episode, store.check(episode, all_streams, read))

    found.guard(UNREADABLE, where, traces, episode=episode)
    if all(problem.what != UNREADABLE for problem in found.problems):
        _check_indexes(folder, store, event, read, found)
    _check_clocks(event, found)
    if specs and give is not None and not found.problems:
        from labctl.store.read_once import Unpacked

        give(episode, Unpacked(specs, read))


def _unpackable(store: TraceStore, episode: str, sealed: Mapping[str, StreamEntry]) -> list[StreamSpec]:
    """The streams of an episode, where so many episodes at once as there are cores fit into what a reader may hold."""
    from labctl.store.read_once import MOST_BYTES

    try:
        specs = store.streams(episode)
        size = sum(8 * (1 + len(spec.columns)) * sealed[spec.name]["n"] for spec in specs)
    except (LabctlError, KeyError, TypeError):
        return []  # what is wrong with it is named by who checks it
    return specs if size * (len(CORES) or 1) <= MOST_BYTES else []


def _check_indexes(folder: Path, store: TraceStore, event: Event, indexes: Chunks, found: Found) -> None:
    """Has every frame of an index its picture, and the other way round? What a killed process took is no tampering.
    indexes: of each camera whose index holds.
    """
    episode = event.episode or ""
    specs = {spec.name: spec for spec in store.streams(episode)}
    for camera, video in event.body.get("videos", {}).items():
        spec = specs.get(f"camera/{camera}")
        chunks = indexes.get(f"camera/{camera}")
        if spec is None or chunks is None or not (folder / video["file"]).is_file():
            continue
        try:
            notes = index_notes(folder, video, spec.columns, [values for _, values in chunks])
        except LabctlError:
            continue  # what cannot be read is named where the files and the chunks themselves are checked
        found.notes += [f"episode {episode}: {note}" for note in notes]


def _check_clocks(event: Event, found: Found) -> None:
    """A clock that runs badly breaks no record, but whoever joins streams by time has to know."""
    for stream, fit in event.body.get("clocks", {}).items():
        found.notes += [f"episode {event.episode}: {text}" for text in clock_warnings(stream, fit)]
