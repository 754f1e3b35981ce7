"""Two robots led as one: what stops one stops the other, they recover and go home in order, tools are kept apart."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support.robots.interleaved import after_the_first_write
from support.robots.pairs import START_NS, pair_cell, told_pair, ways

from labctl.axes import axes_of
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.devices import Actions, DeviceEvent, RobotStatus, Setpoints, load
from labctl.drivers.pair.joining import Answers
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.testing.given import FIXTURE

SCENE = {"object": "towels", "layout": "layout-1", "items": 3}
PERIOD_NS = 10 * MILLISECOND
STOPPED = RobotStatus("safety_stop", "protective stop")


def rows(robot, q: np.ndarray, start_ns: int) -> Setpoints:
    n = len(q)
    return Setpoints(start_ns + PERIOD_NS * np.arange(1, n + 1), q, np.full((n, 2), 0.08))


def test_axes_are_those_of_both_by_the_name_of_each_arms_before_hands() -> None:
    robot, *_ = told_pair()
    names = [axis.name for axis in axes_of(robot)]
    assert names[0] == "left.fr3_joint1" and names[7] == "right.fr3_joint1"
    assert names[-2:] == ["left.gripper", "right.gripper"] and robot.dof == 14


def test_the_first_robots_streams_keep_their_names_and_the_seconds_begin_with_its_own() -> None:
    robot, *_ = told_pair()
    assert [spec.name for spec in robot.streams] == ["arm/state", "tracker", "right/state", "right/tracker"]
    left, right = robot.streams[0], robot.streams[2]
    assert "q.left.fr3_joint1" in left.columns and "left.gripper" in left.columns and "tcp.x" in left.columns
    assert "q.right.fr3_joint1" in right.columns and right.units[right.columns.index("right.gripper")] == "m"
    assert left.units[left.columns.index("dq.left.fr3_joint1")] == "rad/s"
    assert {batch.stream for batch in robot.drain(START_NS + 50 * PERIOD_NS)} <= {spec.name for spec in robot.streams}


def test_an_observation_has_the_axes_of_both_and_each_ones_tool_in_its_own_base() -> None:
    robot, left, right = told_pair()
    seen = robot.observe()
    assert seen["q"].shape == (14,) and seen["gripper"].shape == (2,)
    assert (seen["tcp"] == left.observe()["tcp"]).all() and (seen["right.tcp"] == right.observe()["tcp"]).all()
    assert len(seen["items"]) == 2 and len(seen["right.items"]) == 1, "the first has the larger half"


@pytest.mark.parametrize("first", [True, False])
def test_a_latched_stop_of_either_stops_the_other_at_the_next_visit(first: bool) -> None:
    robot, left, right = told_pair()
    bad, other = (left, right) if first else (right, left)
    there = robot.observe()["q"] + 0.3 * np.eye(14)[0] + 0.3 * np.eye(14)[7]
    way = ways(robot, there)
    robot.follow(rows(robot, way[:50], START_NS))
    assert np.abs(other.observe()["dq"]).max() > 0.1, "both are under way"
    bad.bad = STOPPED
    before = other.stops
    status = robot.status()
    assert status.mode == "safety_stop" and status.reason == f"{'left' if first else 'right'}: protective stop"
    assert other.stops == before + 1 and other.status().mode == "stopped"
    robot.follow(rows(robot, way[50:], START_NS + 50 * PERIOD_NS))
    assert np.abs(other.observe()["dq"]).max() == 0.0, "it came to rest, whatever it was given"
    assert any("was stopped with" in str(event.body.get("reason")) for event in robot.events())
    robot.status()
    assert other.stops == before + 1, "told once"


def test_none_moves_again_before_both_have_recovered() -> None:
    robot, left, right = told_pair()
    left.bad, right.refuses = STOPPED, "its brakes are closing"
    assert robot.status().mode == "safety_stop"
    with pytest.raises(DeviceRefused, match="right: its brakes are closing"):
        robot.recover()
    assert left.status().mode == "idle", "the first one has recovered"
    status = robot.status()
    assert status.mode == "stopped"
    before = robot.observe()["q"]
    robot.follow(rows(robot, ways(robot, before + 0.3), START_NS))
    assert np.abs(robot.observe()["q"] - before).max() < 1e-9, "nor does the one that has recovered move alone"
    right.refuses = ""
    robot.recover()
    assert robot.status().mode == "idle"
    robot.follow(rows(robot, ways(robot, before + 0.1), START_NS + 200 * PERIOD_NS))
    assert np.abs(robot.observe()["q"] - before).max() > 0.05


def test_a_robot_that_takes_long_to_recover_has_a_call_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot's process that says nothing for five seconds is ended; two grippers that are activated take longer."""
    robot, left, right = told_pair()
    robot.stop()
    clock = ManualClock(SECOND)
    monkeypatch.setattr(robot, "_clock", clock)
    monkeypatch.setattr(left, "recover", lambda: clock.sleep_until(clock.now_ns() + 3 * SECOND))
    with pytest.raises(DeviceRefused, match="right: its turn is next"):
        robot.recover()
    assert right.status().mode == "stopped"
    robot.recover()
    assert right.status().mode == "idle"


def test_a_robot_that_is_lost_has_stopped_the_other_before_anybody_hears_of_it() -> None:
    robot, left, right = told_pair()

    def gone(now_ns: int) -> None:
        raise DeviceLost("the link is gone")

    right.drain = gone
    with pytest.raises(DeviceLost, match="right: the link is gone"):
        robot.drain(START_NS + PERIOD_NS)
    assert left.stops == 1


@pytest.mark.parametrize(
    ("order", "who"), [("first", ["left", "right"]), ("second", ["right", "left"]), ("together", ["left", "right"])]
)
def test_they_go_home_in_the_declared_order_one_after_the_other(order: str, who: list[str]) -> None:
    robot, left, right = told_pair(goes_home=order)
    names = {"left": left, "right": right}
    begun = {name: len(one.staged_at) for name, one in names.items()}
    left.slow_home = right.slow_home = 5
    robot.stage(SCENE, 2, START_NS)
    first, second = (names[name] for name in who)
    assert len(first.staged_at) == begun[who[0]] + 1
    assert (len(second.staged_at) == begun[who[1]] + 1) == (order == "together")
    looks = 0
    while not robot.staged():
        looks += 1
        assert looks < 30
    assert len(second.staged_at) == begun[who[1]] + 1


def test_a_stop_on_the_way_home_sends_neither_on() -> None:
    robot, left, right = told_pair()
    left.slow_home = 5
    begun = len(right.staged_at)
    robot.stage(SCENE, 2, START_NS)
    robot.stop()
    assert not any(robot.staged() for _ in range(10)) and len(right.staged_at) == begun


def facing(keep_apart_m: float = 0.2):
    """Two robots whose tools meet in the middle when both turn inwards."""
    return told_pair(base_m=[0.0, -0.9, 0.0], keep_apart_m=keep_apart_m)


def test_setpoints_that_would_bring_the_tools_too_near_are_held_and_those_that_part_them_are_not() -> None:
    robot, left, right = facing()
    home = robot.observe()["q"]
    turn = np.zeros(14)
    turn[0], turn[7] = -1.1, 1.1  # towards each other
    start = START_NS
    nearest = np.inf
    for part in np.array_split(ways(robot, home + turn, 600), 60):
        robot.follow(rows(robot, part, start))
        start += len(part) * PERIOD_NS
        between = np.linalg.norm(left.observe()["tcp"][:3] - right.observe()["tcp"][:3] - [0.0, -0.9, 0.0])
        nearest = min(nearest, float(between))
    assert 0.2 * 0.7 <= nearest < 0.25 and "the tools' distance of 0.2 m" in robot.clipped
    assert robot.status().mode in ("idle", "moving"), "held, not stopped"
    robot.follow(rows(robot, ways(robot, home, 600), start))
    assert np.abs(robot.observe()["q"] - home).max() < 0.01, "away from each other they go"
    assert not robot.clipped


def test_tools_that_are_measured_too_near_stop_both_until_somebody_parts_them() -> None:
    robot, left, right = facing()
    seen = left.observe()
    near = {**seen, "tcp": np.concatenate([right.observe()["tcp"][:3] + np.array([0.0, -0.9, 0.05]), seen["tcp"][3:]])}
    left.observe = lambda: near
    status = robot.status()
    assert status.mode == "safety_stop" and "are 0.050 m apart, nearer than 0.140 m" in status.reason
    assert left.stops == right.stops == 1
    with pytest.raises(DeviceRefused, match="move one of them away by hand"):
        robot.recover()
    left.observe = lambda: seen
    robot.recover()
    assert robot.status().mode == "idle"


def test_an_event_says_which_robot_it_is_of() -> None:
    robot, _, right = told_pair()
    right.world.events.append(DeviceEvent("success", 7, {"item": 0}))
    assert [(event.kind, event.body["robot"]) for event in robot.events()] == [("success", "right")]


def answered(t_ns: list[int], dof: int, value: float, *, own: bool = False) -> Actions:
    rows = np.full((len(t_ns), dof + 1), value)
    asked = np.full_like(rows, np.nan) if own else rows
    return Actions(np.array(t_ns), asked, rows, rows, np.zeros(len(t_ns)))


def test_setpoints_are_answered_once_both_have_and_a_stop_of_one_is_a_row_of_its_own() -> None:
    both = Answers((2, 1), (1, 1), [np.zeros(3), np.zeros(2)])
    both.give(np.array([10, 20]), np.array([[1.0, 1, 1, 1, 1], [2.0, 2, 2, 2, 2]]))
    both.take(0, answered([10, 20], 2, 1.0))
    assert not len(both.answered().t_ns), "the second has not answered yet"
    both.take(1, answered([10], 1, 3.0))
    first = both.answered()
    assert first.t_ns.tolist() == [10] and first.requested[0].tolist() == [1.0] * 5
    assert first.sent[0].tolist() == [1.0, 1.0, 3.0, 1.0, 3.0], "arms, then hands"
    both.take(1, answered([15], 1, 4.0, own=True))
    both.take(1, answered([20], 1, 5.0))
    rest = both.answered()
    assert rest.t_ns.tolist() == [15, 20]
    assert np.isnan(rest.requested[0]).all() and rest.sent[0].tolist() == [1.0, 1.0, 4.0, 1.0, 4.0]


def test_a_simulated_scene_is_not_shared() -> None:
    cell = pair_cell(scene="shared")
    with pytest.raises(InputError, match='say scene = "own"'):
        load(*cell.driver, cell=cell, fixture=FIXTURE)


def test_the_driver_is_of_no_use_in_a_cell_of_one_robot() -> None:
    with pytest.raises(InputError, match="this cell has no second one"):
        load("pair", {}, cell=pair_cell().sides[0], fixture=FIXTURE)


def test_a_stop_while_one_recovers_stops_both_until_the_next_word() -> None:
    robot, left, right = told_pair()
    robot.stop()
    recover = left.recover

    def meanwhile() -> None:
        left.recover = recover  # type: ignore[method-assign]
        recover()
        robot.stop()

    left.recover = meanwhile  # type: ignore[method-assign]
    with pytest.raises(DeviceRefused, match="both were stopped meanwhile"):
        robot.recover()
    assert robot.status().mode == "stopped" and right.status().mode == "stopped"
    robot.recover()
    assert robot.status().mode in ("idle", "moving")


@pytest.mark.parametrize("order", ["first", "together"])
def test_a_stop_while_one_is_sent_home_leaves_neither_on_its_way(order: str) -> None:
    robot, left, right = told_pair(goes_home=order)
    stage = left.stage

    def meanwhile(*given: Any) -> None:
        left.stage = stage  # type: ignore[method-assign]
        robot.stop()
        stage(*given)

    left.stage = meanwhile  # type: ignore[method-assign]
    robot.stage(SCENE, 1, START_NS)
    assert not robot.staged()
    assert left.status().mode == right.status().mode == "stopped"


def test_a_stop_between_two_looks_at_who_is_staged_next_is_a_stop() -> None:
    """There was one, and then none: an error of the loop's."""
    robot, left, _ = told_pair(goes_home="first")
    staged = left.staged

    def meanwhile() -> bool:
        left.staged = staged  # type: ignore[method-assign]
        robot.stop()
        return True

    robot.stage(SCENE, 1, START_NS)
    robot._staged, robot._staging, robot._to_stage = False, (0,), [(1,)]
    left.staged = meanwhile  # type: ignore[method-assign]
    assert not robot.staged()


@pytest.mark.parametrize("name", ["_waits", "_to_stage", "_staging", "_task"])
def test_a_pair_on_its_way_home_is_not_staged_while_it_is_being_stopped(name: str) -> None:
    """Nobody was on the way any more, and no stop to be seen yet: taken for staged."""
    robot, left, _ = told_pair(goes_home="first")
    left.slow_home = 50
    robot.stage(SCENE, 1, START_NS)
    seen: list[bool] = []
    with after_the_first_write(robot, name, lambda: seen.append(robot.staged())):
        robot.stop()
    assert seen == [False]


@pytest.mark.parametrize("on_its_way", [False, True])
def test_a_pair_that_was_stopped_is_staged_only_once_it_is_sent_home_again(on_its_way: bool) -> None:
    robot, left, _ = told_pair(goes_home="first")
    if on_its_way:
        left.slow_home = 50
        robot.stage(SCENE, 1, START_NS)
    robot.stop()
    robot.recover()
    left.slow_home = 0
    assert not robot.staged()
    robot.stage(SCENE, 1, START_NS)
    assert robot.staged()


def test_a_stop_that_is_overtaken_by_staging_and_overtakes_it_again_is_no_stop_lost() -> None:
    """It has begun, another thread forgets that and looks whom to send home, it ends, and only then one is sent home:
    nobody would stop that one any more.
    """
    robot, left, right = told_pair(goes_home="first")
    own, stage = type(robot), left.stage
    begun, goes_on = threading.Event(), threading.Event()
    stopping = threading.Thread(target=robot.stop)

    class Between(own):
        def __setattr__(self, key: str, value: Any) -> None:
            super().__setattr__(key, value)
            if key == "_task" and value is not None and not begun.is_set():
                stopping.start()
                begun.wait()
            elif key == "_waits" and threading.current_thread() is stopping and not begun.is_set():
                begun.set()
                goes_on.wait()

    def meanwhile(*given: Any) -> None:
        goes_on.set()
        stopping.join()
        stage(*given)

    left.stage = meanwhile  # type: ignore[method-assign]
    robot.__class__ = Between  # type: ignore[assignment]
    try:
        robot.stage(SCENE, 1, START_NS)
    finally:
        goes_on.set()
        stopping.join()
        robot.__class__ = own
    assert not robot.staged()
    assert left.status().mode == right.status().mode == "stopped"
    robot.recover()
    left.stage = stage  # type: ignore[method-assign]
    robot.stage(SCENE, 1, START_NS)
    assert robot.staged()


@pytest.mark.parametrize("name", ["_task", "_near", "_to_stage", "_staging", "_staged"])
def test_a_stop_in_the_middle_of_staging_a_pair_sends_neither_home(name: str) -> None:
    robot, left, right = told_pair(goes_home="first")
    begun = len(left.staged_at), len(right.staged_at)
    with after_the_first_write(robot, name, robot.stop):
        robot.stage(SCENE, 1, START_NS)
    assert not robot.staged()
    robot.recover()
    assert not robot.staged() and (len(left.staged_at), len(right.staged_at)) == begun
