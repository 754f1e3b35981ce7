"""Recorded times become wall times by the episode's own anchor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.runs.handwritten_journal import OPENED, OUTCOME, PATHS, Book

from labctl.clock import SECOND, Anchor, ManualClock, wall_ns
from labctl.config.cell_schema import CameraTable, Video
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState, State, fold
from labctl.exports import columnar as _columnar
from labctl.exports import recordings as module
from labctl.exports.recordings import Pictures, Recording, Recordings
from labctl.exports.selection import Selection
from labctl.reporting.operations_table import operations
from labctl.streams import StreamSpec


def event(kind: Kind, at_ns: int, wall: str, boot: str = "b") -> Event:
    return Event(1, kind, at_ns, boot, wall, "run", "t", "e", {"reason": "budget", "end_ns": at_ns})


def recording(*events: Event, anchor: tuple[int, int] = (0, 0)) -> Recording:
    nothing: Any = None
    episode = record_of(events, CampaignState()).episodes.get("e", nothing)
    return Recording(nothing, (), {}, episode, events, 0, 0, anchor, nothing, {})


def test_an_anchors_wall_time_is_read_to_its_microsecond() -> None:
    assert wall_ns("1970-01-01T00:00:01.000001+00:00") == 1_000_001_000
    assert wall_ns("2026-01-01T00:00:00Z") == 1_767_225_600 * SECOND
    assert wall_ns("2026-01-01T02:00:00+02:00") == wall_ns("2026-01-01T00:00:00Z")
    anchor: Anchor = ManualClock(123 * SECOND).anchor()
    assert wall_ns(anchor.wall) - anchor.mono_ns == 1_767_225_600 * SECOND


def test_times_move_by_the_anchor_and_keep_their_nanoseconds() -> None:
    moved = recording(anchor=(1000, 1_767_225_600 * SECOND)).wall(np.array([999, 1000, 123_456_789_012_345]))
    assert (moved - 1_767_225_600 * SECOND).tolist() == [-1, 0, 123_456_789_011_345]


def test_drift_is_what_the_wall_clock_went_more_than_the_hosts() -> None:
    start = event(Kind.EPISODE_STARTED, 5 * SECOND, "2026-01-01T00:00:00Z")
    end = event(Kind.EPISODE_ENDED, 65 * SECOND, "2026-01-01T00:01:00.250000Z")
    anchor = (start.at_ns, wall_ns(start.wall))
    assert recording(start, end, anchor=anchor).drift_ns == SECOND // 4
    rebooted = event(Kind.EPISODE_ENDED, 2 * SECOND, "2026-01-01T00:09:00Z", boot="another")
    assert recording(start, rebooted, anchor=anchor).drift_ns == 0


@pytest.fixture
def corrected(monkeypatch: pytest.MonkeyPatch) -> tuple[Recording, Selection]:
    """An episode that was scored 40 s after it was armed, and corrected the next day on another boot, whose clock began
    anew.
    """
    told = [
        (Kind.ARM_REVEALED, 100, "00:00:00", "b", {}),
        (Kind.EPISODE_STARTED, 105, "00:00:05", "b", {}),
        (Kind.EPISODE_ENDED, 130, "00:00:30", "b", {"reason": "budget", "end_ns": 130 * SECOND}),
        (Kind.OUTCOME_RECORDED, 140, "00:00:40", "b", {"outcome": OUTCOME}),
        (Kind.OUTCOME_CORRECTED, 7, "23:00:00", "next", {"new": OUTCOME, "why": "one more"}),
    ]
    events = [
        Event(seq, kind, at_s * SECOND, boot, f"2026-01-01T{wall}Z", "run", "t", "e", body)
        for seq, (kind, at_s, wall, boot, body) in enumerate(told, 1)
    ]
    monkeypatch.setattr(module, "samples_of", lambda campaign: SimpleNamespace(streams=lambda episode: []))
    cell = SimpleNamespace(camera=[])
    campaign: Any = SimpleNamespace(folder=Path(), cell=cell, state=CampaignState(), events=lambda: events)
    chosen: Any = SimpleNamespace(episode="e", trial=SimpleNamespace(go_ns=106 * SECOND, end_ns=130 * SECOND))
    selection = Selection([], [], False, {}, {}, {})
    return Recordings(campaign, selection).of(chosen, pictured=False), selection


def test_what_was_written_on_another_boot_stands_at_its_wall_time(corrected: tuple[Recording, Selection]) -> None:
    """The next boot's clock begins near zero: a correction was written before its episode began."""
    recording, selection = corrected
    entries = [entry for _, entry in recording.journal(selection)]
    assert [entry.get("wall") for entry in entries] == [None] * 4 + ["2026-01-01T23:00:00Z"]
    (written,) = [event.at_ns for event in recording.episode.events if event.kind == Kind.OUTCOME_CORRECTED]
    assert recording.wall_at(written) == wall_ns("2026-01-01T23:00:00Z")
    assert _columnar._event_rows(recording, selection)[-1]["at_ns"] == written
    _, at, _, text = list(recording.lines(selection))[-1]
    assert (at, text) == (wall_ns("2026-01-01T23:00:00Z"), "outcome corrected: one more")


def test_a_file_of_an_episode_lasts_no_longer_than_until_it_was_scored(corrected: tuple[Recording, Selection]) -> None:
    """A bag of an episode that was corrected a day later played for a day."""
    recording, selection = corrected
    scored = wall_ns("2026-01-01T00:00:40Z")
    for places in ([at for at, *_ in recording.lines(selection)], [at for at, _ in recording.journal(selection)]):
        assert places == sorted(places) and places[-2:] == [scored, scored]


@pytest.mark.parametrize("latency_s", [0.0, 0.042])
def test_light_falls_before_a_picture_is_received(latency_s: float) -> None:
    pictures = Pictures(Path("v.mp4"), np.array([SECOND, 2 * SECOND]), np.array([0, 10**6]), latency_s)
    assert (pictures.t_ns - pictures.taken_ns == round(latency_s * SECOND)).all()


@pytest.mark.parametrize("masked", [True, False])
def test_a_gap_in_a_hidden_stream_is_in_no_masked_export(monkeypatch: pytest.MonkeyPatch, masked: bool) -> None:
    """How many samples of a policy's stream were lost tells how often it was asked, and that it is no person."""
    specs = [
        StreamSpec("policy", ("request_ns",), "ns", 1.0, arm_dependent=True),
        StreamSpec("gripper", ("width",), "m", 1.0, public_columns=("width",)),
    ]
    gap = {"from_ns": 0, "to_ns": 1, "lost": 7, "why": "late"}
    start = event(Kind.EPISODE_STARTED, 5 * SECOND, "2026-01-01T00:00:00Z")
    events = [start, *(replace(start, seq=seq, kind=Kind.GAP, body={**gap, "stream": spec.name})
                       for seq, spec in enumerate(specs, 2))]  # fmt: skip
    monkeypatch.setattr(module, "samples_of", lambda campaign: SimpleNamespace(streams=lambda episode: specs))
    cell = SimpleNamespace(camera=[])
    campaign: Any = SimpleNamespace(folder=Path(), cell=cell, state=CampaignState(), events=lambda: events)
    chosen: Any = SimpleNamespace(episode="e", trial=SimpleNamespace(go_ns=6 * SECOND, end_ns=7 * SECOND))
    recordings = Recordings(campaign, Selection([], [], masked, {}, {}, {}))
    found = recordings.of(chosen, pictured=False)
    shown = ["gripper"] if masked else ["policy", "gripper"]
    assert [gap["stream"] for gap in found.episode.gaps] == shown
    for entries in (found.entries, found.episode.events):
        assert [entry.body["stream"] for entry in entries if entry.kind == Kind.GAP] == shown


def test_the_light_of_an_edited_picture_fell_when_that_of_its_raw_one_did(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("wrist", "wrist.seen")
    specs = [StreamSpec(f"camera/{name}", ("host_ns", "pts_us"), "", 5.0, "<i8") for name in names]
    rows = np.array([[SECOND, 0], [2 * SECOND, 10**6]])
    store = SimpleNamespace(read=lambda episode, stream: (rows[:, 0], rows))
    monkeypatch.setattr(module, "samples_of", lambda campaign: store)
    table = CameraTable(name="wrist", driver="sim", width=64, height=48, rate_hz=5.0, latency_s=0.04)
    cell = SimpleNamespace(camera=[table], video=Video())
    campaign: Any = SimpleNamespace(folder=tmp_path, cell=cell, state=CampaignState(), events=list)
    for name in names:
        (tmp_path / f"{name}.mp4").touch()
    episode: Any = SimpleNamespace(id="e", videos={name: {"file": f"{name}.mp4", "frames": 2} for name in names})
    found = Recordings(campaign, Selection([], [], False, {}, {}, {}))._pictures(episode, specs)
    raw, seen = (found[name].taken_ns.tolist() for name in names)
    assert raw == seen == [SECOND - 40 * 10**6, 2 * SECOND - 40 * 10**6]


def test_items_of_an_episode_that_counts_as_no_success_were_moved_when_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[estimand] help = "no_success", and a person put something straight while it ran."""
    condition = {"id": "towels/layout-1", "object": "towels", "layout": "layout-1", "axes": [], "tags": []}
    condition |= {"tote_side": "left", "camera_side": "right", "instructions": "-"}
    opened = {**OPENED, "campaign": "c", "conditions": [condition], "estimand": {"help": "no_success"}}
    book = Book()
    book.events[0] = replace(book.events[0], body=opened)
    for kind in PATHS[State.RUNNING]:
        book.on(kind)
    book.on(Kind.GO, go_ns=SECOND)
    for index, at_s in enumerate((3, 4)):
        book.on(Kind.OPERATION_RECORDED, op_index=index, result="success", t_ns=at_s * SECOND, cause=None)
    touched = {"number": 0, "kind": "reset", "by": "console", "t_ns": 2 * SECOND, "note": ""}
    book.events.append(replace(book.events[-1], seq=len(book.events) + 1, kind=Kind.INTERVENTION_BEGAN, body=touched))
    book.on(Kind.EPISODE_ENDED, reason="operator", end_ns=9 * SECOND)
    book.on(Kind.RECORDING_SEALED)
    book.on(Kind.OUTCOME_RECORDED, outcome={**OUTCOME, "moved": 2, "lost": 0, "remaining": 2, "end_reason": "operator"})
    monkeypatch.setattr(module, "samples_of", lambda campaign: None)
    cell = SimpleNamespace(camera=[])
    campaign: Any = SimpleNamespace(folder=Path(), cell=cell, state=fold(book.events), events=lambda: book.events)
    assert [row["kind"] for row in operations(record_of(book.events))] == ["censored"]
    assert Recordings(campaign, Selection([], [], False, {}, {}, {})).moved_s("e-1") == [2.0, 3.0]
