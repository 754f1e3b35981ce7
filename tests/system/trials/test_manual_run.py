"""A campaign in simulated time: the same bytes every time, a table true to its journal, a cohort in its order."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest
from support.runs.campaigns import HUMAN, ROOT, events_of, make_campaign, policy

import labctl.runtime.campaign_run
from labctl.bus import Message, Node, Step
from labctl.clock import SECOND, ManualClock
from labctl.config.protocol_schema import parse_protocol
from labctl.core.events import EndReason, Kind
from labctl.core.published_state import PublishedState
from labctl.core.record_fold import record_of
from labctl.core.trial import State, fold
from labctl.errors import DeviceLost
from labctl.reporting.operations_table import operations
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import close_campaign, freeze_campaign, unblind_campaign
from labctl.store.ledger import Ledger
from labctl.store.traces import TraceStore
from labctl.store.verify import verify_campaign
from labctl.store.video import frame_times

ARMS = [HUMAN, policy("policy-a", skill="swift"), policy("policy-b", skill="clumsy")]
ONE_SMALL_CAMERA = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}


@pytest.fixture(autouse=True)
def steady_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit journals the free disk space, which other programs change."""
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)


def run(folder: Path) -> list[str]:
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    return said


def everything(folder: Path) -> dict[str, bytes]:
    """Every row of both databases and the bytes of every other file, seal included."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix == ".db":
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                found[name] = "\n".join(db.iterdump()).encode()
        elif not name.endswith(("-wal", "-shm")):  # SQLite's own, with random salts; their rows are in the dump
            found[name] = path.read_bytes()
    return found


def test_the_same_entropy_gives_the_same_bytes(tmp_path: Path) -> None:
    """Journal with its hashes, traces, videos, heads and seal of two runs in different folders are equal."""
    made = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        opened = make_campaign(tmp_path / name, ARMS, cameras=True, budget=10.0, cell=ONE_SMALL_CAMERA)
        made.append((run(opened.folder), everything(opened.folder)))
    assert made[0][0] == made[1][0], "what the run says"
    one, other = made[0][1], made[1][1]
    assert list(one) == list(other)
    assert [name for name in one if one[name] != other[name]] == []
    assert sum(name.endswith(".mp4") for name in one) == 6


def test_other_entropy_gives_another_campaign(tmp_path: Path) -> None:
    """The equality above is not one of constants."""
    made = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        opened = make_campaign(tmp_path / name, ARMS, entropy=hashlib.sha256(name.encode()).digest())
        run(opened.folder)
        made.append(everything(opened.folder))
    assert made[0]["traces.db"] != made[1]["traces.db"] and made[0]["journal.db"] != made[1]["journal.db"]


def test_outcomes_operations_and_the_exported_table_agree(tmp_path: Path) -> None:
    """Per episode: outcome counts are those of its operation events; the table's rows add up to them and its times."""
    folder = make_campaign(tmp_path, ARMS, blocks=2, items=3, budget=15.0).folder
    run(folder)
    clock = ManualClock(events_of(folder)[-1].at_ns + SECOND)
    for finish in (close_campaign, partial(freeze_campaign, unreviewed=True), unblind_campaign):
        finish(folder, who="tester", anchor=clock.anchor())
    events = events_of(folder)
    counted: dict[str | None, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event.kind == Kind.OPERATION_RECORDED:
            counted[event.episode][event.body["result"]] += 1
    rows = defaultdict(list)
    for row in operations(record_of(events)):
        rows[row["episode"]].append(row)
    arms = {slot["trial"]: slot["arm"] for slot in Ledger.open(folder).open_all()["schedule"]}
    trials = fold(events).trials
    assert len(rows) == len(trials) == 6
    for trial in trials.values():
        outcome, table, happened = trial.outcome, rows[trial.episode], counted[trial.episode]
        assert outcome is not None and trial.go_ns is not None and trial.end_ns is not None
        assert (outcome.moved, outcome.lost) == (happened["success"], happened["lost"])
        assert outcome.moved + outcome.lost + outcome.remaining == outcome.items_staged == 3
        kinds = Counter(row["kind"] for row in table)
        assert kinds["success"] == outcome.moved and kinds["ghost"] >= outcome.lost
        assert {row["arm"] for row in table} == {arms[trial.id]}
        took_s = (trial.end_ns - trial.go_ns) / SECOND
        assert table[0]["end_s"] == pytest.approx(took_s, abs=1e-6) and took_s <= 45.0
        successes = sum(row["time_s"] for row in table if row["kind"] == "success")
        tail = sum(row["time_s"] for row in table if row["kind"] == "censored")
        assert successes + tail == pytest.approx(took_s, abs=1e-5) or kinds["ghost"]
        assert (trial.ended == EndReason.BUDGET) == (took_s == 45.0)
    assert sum(happened["success"] for happened in counted.values()) > 6
    assert verify_campaign(folder).problems == []


@pytest.mark.thorough
def test_a_cohort_of_the_papers_shape_comes_out_in_its_order(tmp_path: Path) -> None:
    """The arms of protocols/phail_like.toml, on one object: mean time per item human << gr00t, pi05 < act < smolvla.

    Source of the order: PhAIL (arXiv 2605.29710), table of RMST; its two middle policies do not differ clearly.
    """
    protocol = parse_protocol((ROOT / "protocols/phail_like.toml").read_text(), "phail_like.toml")
    arms = [
        {"name": arm.name, "kind": arm.kind, "controller": arm.controller, "options": dict(arm.options)}
        for arm in protocol.arm
    ]
    folder = make_campaign(tmp_path, arms, blocks=10, items=3, budget=30.0).folder
    run(folder)
    schedule = {slot["trial"]: slot["arm"] for slot in Ledger.open(folder).open_all()["schedule"]}
    spent, moved = Counter[str](), Counter[str]()
    for trial in fold(events_of(folder)).trials.values():
        assert trial.state == State.SCORED and trial.outcome and trial.go_ns and trial.end_ns
        spent[schedule[trial.id]] += (trial.end_ns - trial.go_ns) / SECOND
        moved[schedule[trial.id]] += trial.outcome.moved
    per_item = {name.removesuffix("-like"): spent[name] / moved[name] for name in spent}
    print({name: round(value, 1) for name, value in per_item.items()})
    middle = (per_item["gr00t"] + per_item["pi05"]) / 2
    assert 2 * per_item["human"] < min(per_item["gr00t"], per_item["pi05"])
    assert middle < per_item["act"] < per_item["smolvla"]


class Breaks:
    """A node that raises at its nth visit, once."""

    def __init__(self, inner: Node, visits: list[int], error: BaseException) -> None:
        self._inner, self._visits, self._error = inner, visits, error
        self.name, self.topics = inner.name, inner.topics

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self._visits[0] -= 1
        if self._visits[0] == 0:
            raise self._error
        return self._inner.step(now_ns, inbox)

    @property
    def finished(self) -> bool:
        return getattr(self._inner, "finished", True)


def run_broken(folder: Path, name: str, visit: int, error: BaseException) -> None:
    """A run in which one node raises at a visit; the count goes on over its restarts."""
    visits = [visit]
    run_campaign(
        folder,
        lambda line: None,
        manual=True,
        wrap=lambda node: Breaks(node, visits, error) if node.name == name else node,
    )


def test_an_interrupted_simulated_run_is_concluded_by_the_next(tmp_path: Path) -> None:
    """Ctrl-C in mid-episode: the next run says what it concluded, runs the trial again and finishes the campaign."""
    folder = make_campaign(tmp_path, ARMS, budget=10.0).folder
    with pytest.raises(KeyboardInterrupt):
        run_broken(folder, "arm", 120, KeyboardInterrupt())
    before = events_of(folder)
    open_trial = next(trial for trial in fold(before).trials.values() if trial.state == State.RUNNING)
    said = run(folder)
    after = events_of(folder)
    assert after[: len(before)] == before
    assert any(line.startswith("recovered: trial 1 of ") for line in said), "in the words of the screen"
    assert not any(open_trial.id in line for line in said if line.startswith("recovered"))
    done = fold(after).trials
    assert {trial.state for trial in done.values()} == {State.SCORED}
    assert done[open_trial.id].voids == 1 and len(done[open_trial.id].episodes) == 2
    assert verify_campaign(folder).problems == []


class Lid(ManualClock):
    """Of a host whose lid is closed once, when it is told to."""

    made: ClassVar[list[Lid]] = []

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.made.append(self)


def test_a_suspension_costs_one_episode_and_a_persons_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 17.19: the episode would have gone on with its budget and its lease as if no time had passed."""
    folder = make_campaign(tmp_path, ARMS, budget=10.0).folder
    monkeypatch.setattr(labctl.runtime.campaign_run, "ManualClock", Lid)
    Lid.made.clear()
    closed: list[str] = []

    def watch(state: PublishedState, live: bool) -> None:
        trial = state["trial"]
        if not closed and trial is not None and state["trial_state"] == "running":
            closed.append(trial)
            Lid.made[0].suspend(600 * SECOND)

    run_campaign(folder, lambda line: None, manual=True, watch=watch)
    events = events_of(folder)
    (ended,) = [event for event in events if event.body.get("reason") == "suspended"]
    (void,) = [event for event in events if event.kind == Kind.EPISODE_VOIDED]
    raised, cleared = (
        [event.body["code"] for event in events if event.kind == kind] for kind in (Kind.HOLD_RAISED, Kind.HOLD_CLEARED)
    )
    assert (ended.kind, ended.trial, void.body["reason"]) == (Kind.EPISODE_ENDED, closed[0], "process_lost")
    assert raised == cleared == ["suspended"]
    stamps = [event.at_ns for event in events]
    assert stamps == sorted(stamps)
    assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}
    assert verify_campaign(folder).problems == []


def test_an_arm_lost_in_simulated_time_costs_one_episode_and_a_persons_word(tmp_path: Path) -> None:
    """As with real processes: arm_lost, void by the rule, a hold that a person clears, the same trial again."""
    folder = make_campaign(tmp_path, ARMS, budget=10.0).folder
    run_broken(folder, "arm", 120, DeviceLost("the link to the robot is gone"))
    events = events_of(folder)
    reasons = [event.body["reason"] for event in events if event.kind == Kind.EPISODE_VOIDED]
    cleared = [(event.body["code"], event.who) for event in events if event.kind == Kind.HOLD_CLEARED]
    assert (reasons, cleared) == (["arm_lost"], [("arm_lost", "sim-operator")])
    assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}


FLAKY = {**ONE_SMALL_CAMERA, 'driver = "sim_camera"': 'driver = "support.cameras.flaky_camera:build"'}


@pytest.mark.thorough
def test_a_camera_that_comes_and_goes_costs_no_episode(tmp_path: Path) -> None:
    """Both cameras are gone for two seconds of every nine: no episode begins without them, none that began is lost,
    and gaps tell every hole.
    """
    folder = make_campaign(tmp_path, ARMS, cameras=True, items=4, budget=10.0, arming=2.0, cell=FLAKY).folder
    said = run(folder)
    events = events_of(folder)
    assert {trial.state for trial in fold(events).trials.values()} == {State.SCORED}
    voids = [event.body for event in events if event.kind == Kind.EPISODE_VOIDED]
    assert {(void["reason"], void["after_go"]) for void in voids} <= {("camera_lost", False)}
    gaps = [event for event in events if event.kind == Kind.GAP]
    assert len(gaps) > 4 and {gap.body["why"] for gap in gaps} == {"the cable is out"}
    store = TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)
    for event in (event for event in events if event.kind == Kind.RECORDING_SEALED):
        mine = [gap.body for gap in gaps if gap.episode == event.episode]
        assert event.body["gaps"] == len(mine)
        end_ns = next(e.body["end_ns"] for e in events if e.kind == Kind.EPISODE_ENDED and e.episode == event.episode)
        for name, video in event.body["videos"].items():
            t_ns, rows = store.read(event.episode, f"camera/{name}")
            assert len(rows) == video["frames"]
            holes = [(int(a), int(b)) for a, b in pairwise(t_ns) if b - a > SECOND]
            holes += [(int(t_ns[-1]), end_ns)] if end_ns - t_ns[-1] > SECOND else []
            assert holes == [(g["from_ns"], g["to_ns"]) for g in mine if g["stream"] == f"camera/{name}"]
            assert frame_times(folder / video["file"]).tolist() == rows[:, 3].tolist()
    store.close()
    assert any("the episode goes on, the gap is marked" in line for line in said)
    assert verify_campaign(folder).problems == []


def test_where_the_protocol_says_so_a_lost_camera_ends_the_episode(tmp_path: Path) -> None:
    folder = make_campaign(
        tmp_path, ARMS, cameras=True, budget=20.0, arming=2.0, cell=FLAKY, camera_lost="end", process_lost="score"
    ).folder
    run(folder)
    events = events_of(folder)
    ended = [event.body["reason"] for event in events if event.kind == Kind.EPISODE_ENDED]
    assert "camera_lost" in ended
    assert verify_campaign(folder).problems == []
