"""What counts in an episode, and what the clock makes due."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.robots.cells import ROOT
from support.runs.axes import cell_of

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, parse_cell
from labctl.config.reasons import MACHINE_VOID_REASONS, SENSOR_LIMIT, SENSOR_LOST
from labctl.core.events import EndReason
from labctl.core.rollout import (
    CLOSE_PATIENCE_NS,
    FOLLOWS,
    GO_PATIENCE_NS,
    MOVING,
    SETTLE_NS,
    VOIDABLE,
    Phase,
    Rollout,
    lost_reason,
    proposal,
    void_reason,
)
from labctl.core.trial_table import RUN_LEFT
from labctl.errors import StateError
from labctl.messages.driving import Prepare
from labctl.runtime.sealed_body import recording_gaps, steady_rates

GO = 100 * SECOND
BUDGET = 10 * SECOND
DEADLINE = GO + BUDGET


def read(name: str, changes: Mapping[str, str]) -> Cell:
    """A shipped cell with pieces of its text replaced."""
    text = (ROOT / "hw_configs" / f"{name}.toml").read_text("utf-8")
    for old, new in changes.items():
        text = text.replace(old, new)
    return parse_cell(text, f"{name}.toml")


def rollout(phase: Phase = Phase.RUNNING, reason: EndReason = EndReason.ALL_DONE, **given) -> Rollout:
    """An episode led to a phase in the order in which phases follow; go is at GO, an end too."""
    values = {"items": 3, "cameras": ["camera:wrist"], **given}
    made = Rollout(
        trial="t-1",
        episode="e-1",
        epoch=1,
        task=Prepare("d", {}, "policy", 0, "Move.", "e-1"),
        start_due_ns=GO - SECOND,
        budget_ns=BUDGET,
        producers=["arm", "controller", "camera:wrist"],
        **values,
    )
    for reached, lead in STEPS.items():
        if made.phase != phase:
            lead(made, reason)
            assert made.phase == reached
    return made


STEPS: dict[Phase, Callable[[Rollout, EndReason], None]] = {
    Phase.STARTED: lambda made, reason: made.start(GO - SECOND),
    Phase.RUNNING: lambda made, reason: made.go(GO),
    Phase.CLOSING: lambda made, reason: made.end(reason, GO, GO),
    Phase.DIGESTING: lambda made, reason: made.digest(),
    Phase.SEALED: lambda made, reason: made.seal(),
}


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("to", list(STEPS))
def test_a_phase_is_followed_by_what_the_table_names_and_by_nothing_else(phase, to):
    episode = rollout(phase)
    if to in FOLLOWS[phase]:
        STEPS[to](episode, EndReason.OPERATOR)
        assert episode.phase == to
        return
    with pytest.raises(StateError, match=f"episode e-1 is {phase}; {to} may not follow"):
        STEPS[to](episode, EndReason.OPERATOR)
    assert episode.phase == phase
    assert episode.reason == (None if phase in (Phase.ARMING, *MOVING) else EndReason.ALL_DONE), "nothing is changed"


def test_nothing_leads_back_and_everything_but_a_void_leads_to_a_sealed_recording():
    order = list(Phase)
    assert list(FOLLOWS) == order
    assert all(order.index(after) > order.index(before) for before, then in FOLLOWS.items() for after in then)
    assert [phase for phase, then in FOLLOWS.items() if not then] == [Phase.SEALED]


@pytest.mark.parametrize("t_ns", [GO - 1, DEADLINE + 1])
def test_an_operation_outside_go_and_budget_is_not_counted(t_ns):
    episode = rollout()
    assert episode.take_operation("success", t_ns, None) is None
    assert (episode.operations, episode.items_done) == ([], 0)


@pytest.mark.parametrize("t_ns", [GO, DEADLINE])
def test_an_operation_at_go_and_at_the_deadline_is_counted(t_ns):
    episode = rollout()
    found = episode.take_operation("success", t_ns, None)
    assert found == {"op_index": 0, "result": "success", "t_ns": t_ns, "cause": None}
    assert episode.items_done == 1


def test_an_operation_before_go_or_after_the_end_is_not_counted():
    assert rollout(Phase.STARTED).take_operation("success", GO, None) is None
    assert rollout(Phase.CLOSING, EndReason.OPERATOR).take_operation("success", GO + 1, None) is None


def test_an_operation_that_arrives_late_counts_at_its_measured_time():
    """The device's event of the last moment arrives after the budget: it counts, since the episode waits for it."""
    episode = rollout()
    assert episode.overdue(DEADLINE + SETTLE_NS - 1) is None
    assert episode.take_operation("success", DEADLINE - 1, None) is not None
    assert episode.overdue(DEADLINE + SETTLE_NS) == EndReason.BUDGET


def test_lost_items_are_done_with_and_a_safety_stop_is_not_an_item():
    episode = rollout()
    for kind, cause in (("lost", "outside"), ("success", None), ("safety_stop", "reflex")):
        episode.take_operation(kind, GO + 1, cause)
    assert episode.items_done == 2
    assert [operation["op_index"] for operation in episode.operations] == [0, 1, 2]


def test_the_lease_never_reaches_beyond_the_budget():
    assert rollout().lease_until(GO, SECOND) == GO + SECOND
    assert rollout().lease_until(DEADLINE - 1, SECOND) == DEADLINE
    assert rollout(Phase.STARTED).lease_until(GO, SECOND) == GO + SECOND


def test_an_episode_that_never_goes_lost_its_controller():
    episode = rollout(Phase.STARTED)
    last = GO - SECOND + GO_PATIENCE_NS
    assert episode.overdue(last) is None
    assert episode.overdue(last + 1) == EndReason.CONTROLLER_LOST
    assert episode.next_due(last) == last + 1


def test_an_episode_that_has_not_started_or_has_ended_is_never_overdue():
    assert rollout(Phase.ARMING).overdue(10 * DEADLINE) is None
    assert rollout(Phase.CLOSING).overdue(10 * DEADLINE) is None


def test_a_recording_is_delivered_when_the_recorder_and_every_camera_have_answered():
    episode = rollout(Phase.CLOSING)
    assert not episode.delivered(GO)
    episode.closed = {}
    assert not episode.delivered(GO), "the camera's video is still being written"
    episode.videos["camera:wrist"] = {}
    assert episode.delivered(GO)


def test_a_lost_camera_is_not_waited_for():
    assert rollout(Phase.CLOSING, EndReason.CAMERA_LOST, closed={}, lost={"camera:wrist"}).delivered(GO)


def test_delivery_is_waited_for_with_patience_and_no_longer():
    episode = rollout(Phase.CLOSING)
    assert not episode.delivered(GO + CLOSE_PATIENCE_NS - 1)
    assert episode.delivered(GO + CLOSE_PATIENCE_NS)
    assert episode.next_due(GO) == GO + CLOSE_PATIENCE_NS
    assert not rollout().delivered(10 * DEADLINE), "nothing was closed"


def test_every_loss_of_a_process_or_of_the_robot_may_void_and_no_other_end_does():
    names = ("arm", "controller", "recorder", "camera:wrist", "sensor:scale")
    stops = {
        EndReason.SENSOR_LIMIT,
        EndReason.PROCESS_LOST,
        EndReason.LEASE_LAPSED,
        EndReason.SUSPENDED,
        EndReason.ROBOT_FAULT,
    }
    assert {lost_reason(name) for name in names} | stops == VOIDABLE
    found = {void_reason(ended) for ended in VOIDABLE}
    assert found == {*MACHINE_VOID_REASONS, SENSOR_LOST, SENSOR_LIMIT}, "every protocol lists them"
    assert not VOIDABLE & {EndReason.BUDGET, EndReason.ALL_DONE, EndReason.SAFETY_STOP, EndReason.SHUTDOWN}


def test_an_end_before_go_is_void_for_what_ended_it():
    assert void_reason(EndReason.OPERATOR) == "operator" and void_reason(EndReason.SAFETY_STOP) == "safety_stop"
    assert void_reason(EndReason.SHUTDOWN) == RUN_LEFT, "as of a run that is left while an episode is armed"


def test_the_proposed_outcome_adds_up():
    happened = [{"result": kind} for kind in ("success", "lost", "success", "safety_stop")]
    assert proposal(happened, 5) == {"items_staged": 5, "moved": 2, "lost": 1, "remaining": 2}


def test_a_stream_that_stops_early_has_a_gap_and_a_slow_one_has_not():
    streams = {"arm/state": {"t1_ns": GO - SECOND}, "camera/wrist": {"t1_ns": GO - SECOND}}
    gaps = recording_gaps(streams, {"arm/state": 100.0, "camera/wrist": 2.0, "camera/lost": 2.0}, GO)
    assert [(gap["stream"], gap["from_ns"], gap["lost"]) for gap in gaps] == [
        ("arm/state", GO - SECOND, 100),
        ("camera/lost", None, None),
    ]


def test_odometry_that_stops_early_or_never_came_is_a_gap_of_a_robot_that_drives_and_of_no_other():
    base = read("sim_fr3", cell_of("sim_base"))
    rates = steady_rates(base)
    assert (rates["base/odometry"], rates["arm/state"]) == (base.robot.state_hz, base.robot.state_hz)
    streams = {name: {"t1_ns": GO} for name in rates} | {"base/odometry": {"t1_ns": GO - SECOND}}
    assert [(gap["stream"], gap["lost"]) for gap in recording_gaps(streams, rates, GO)] == [("base/odometry", 100)]
    del streams["base/odometry"]
    assert [gap["why"] for gap in recording_gaps(streams, rates, GO)] == ["nothing recorded"]
    assert "base/odometry" not in steady_rates(read("sim_fr3", cell_of("sim_rail")))


def test_what_is_told_already_is_not_told_again_at_the_end_of_a_stream():
    streams = {"camera/wrist": {"t1_ns": GO - 5 * SECOND}}
    marked = [{"stream": "camera/wrist", "to_ns": GO - 2 * SECOND}, {"stream": "arm/state", "to_ns": GO}]
    (gap,) = recording_gaps(streams, {"camera/wrist": 10.0}, GO, marked=marked, why={"camera/wrist": "unplugged"})
    assert (gap["from_ns"], gap["lost"], gap["why"]) == (GO - 2 * SECOND, 20, "unplugged")
    marked.append({"stream": "camera/wrist", "to_ns": GO - SECOND // 10})
    assert recording_gaps(streams, {"camera/wrist": 10.0}, GO, marked=marked) == []


def test_a_stream_without_a_sample_says_why_if_that_is_known():
    (gap,) = recording_gaps({}, {"camera/wrist": 10.0}, GO, why={"camera/wrist": "no camera 123 here"})
    assert gap["why"] == "nothing recorded: no camera 123 here"


def test_missing_frames_add_up_for_each_camera():
    gaps = [{"stream": "camera/wrist", "lost": 3}, {"stream": "camera/wrist", "lost": None}, {"stream": "x", "lost": 9}]
    assert rollout(gaps=gaps).missing("camera:wrist") == 3
    assert rollout(gaps=gaps).missing("camera:over_shoulder") == 0


def test_a_video_is_waited_for_until_nobody_can_write_it():
    given: dict[str, Any] = {"closed": {}, "lost": {"camera:wrist"}}
    assert not rollout(Phase.CLOSING, **given, dying={"camera:wrist"}).delivered(GO)
    assert rollout(Phase.CLOSING, **given).delivered(GO)
