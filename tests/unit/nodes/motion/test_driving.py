"""What a base is asked for lasts for its step and no longer: the node never holds a speed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.robots.robot_bench import STALE, TICK, Bench, Robot

from labctl.axes import GRIPPER, Axis
from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Actions, Setpoints
from labctl.messages.motion import Stop, Target
from labctl.nodes.robot import RobotNode
from labctl.nodes.targets import Speeds


class Driving(Robot):
    """A joint and a base that drives along one axis; it remembers what it was asked for."""

    joint_names = ("j1", "base.vx")
    axes = (
        Axis("j1", "revolute", "rad"),
        Axis("base.vx", "twist", "m/s", velocity=1.0, acceleration=1.0),
        Axis(GRIPPER, "opening", "m", hand=True),
    )

    def __init__(self, *, takes_steps: bool = False) -> None:
        super().__init__(takes_steps)
        self.asked: list[tuple[int, float]] = []

    def follow(self, wanted: Setpoints) -> Actions:
        self.asked += zip(wanted.t_ns.tolist(), wanted.q[:, 1].tolist(), strict=True)
        return super().follow(wanted)


class Road(Bench):
    """The node of such a robot."""

    def __init__(self, *, takes_steps: bool = False) -> None:
        super().__init__()
        self.robot: Driving = Driving(takes_steps=takes_steps)
        self.node = RobotNode(self.robot, tick_ns=TICK, stale_ns=STALE)
        self.send()

    def drive(self, *speeds: float, ms: int = 100, space: str = "joint_position", **more: bool) -> Message:
        """Steps of so many ms from now on, each at a speed; the joint is at 0."""
        t_ns = self.now_ns + ms * MILLISECOND * np.arange(1, len(speeds) + 1)
        values = np.column_stack([np.zeros(len(speeds)), speeds])
        if space == "tcp_pose":
            values = np.column_stack([values, np.zeros((len(speeds), 5))])
        arrays = {"t_ns": t_ns, "values": values, "gripper": np.zeros(len(speeds))}
        return Target(1, "e", space, ms * MILLISECOND, int(t_ns[-1]), **more).to("arm", arrays)

    def asked(self, since_ns: int) -> list[float]:
        """What was asked of the base at each setpoint since then, m/s."""
        return [speed for t_ns, speed in self.robot.asked if t_ns > since_ns]


@pytest.fixture
def road() -> Road:
    return Road()


def test_a_speed_lasts_for_its_step_and_the_last_one_is_not_held_while_the_target_is_not_yet_stale(road: Road) -> None:
    start = road.now_ns
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3, 0.4))
    road.run(SECOND)
    assert road.asked(start) == [*10 * [0.3], *10 * [0.4], *20 * [0.0]], "and after STALE nothing is asked for"


def test_what_comes_later_takes_the_place_of_what_was_to_be_from_then_on(road: Road) -> None:
    start = road.now_ns
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3, 0.3, 0.3))
    road.run(150 * MILLISECOND)
    road.send(road.drive(-0.2))
    road.run(200 * MILLISECOND)
    assert road.asked(start) == [*15 * [0.3], *10 * [-0.2], *10 * [0.0]]


def test_between_two_chunks_it_is_asked_to_rest(road: Road) -> None:
    start = road.now_ns
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3))
    road.run(150 * MILLISECOND)
    road.send(road.drive(0.3))
    road.run(100 * MILLISECOND)
    assert road.asked(start) == [*10 * [0.3], *5 * [0.0], *10 * [0.3]]


def test_a_lapsed_lease_a_stop_and_another_epoch_end_it_in_mid_step(road: Road) -> None:
    road.send(road.lease(ns=50 * MILLISECOND), road.drive(0.3, ms=SECOND // MILLISECOND))
    lapses_ns = road.now_ns + 50 * MILLISECOND
    road.run(SECOND)
    assert road.robot.stops == 1 and max(t_ns for t_ns, _ in road.robot.asked) <= lapses_ns
    other = Road()
    other.send(other.lease(ns=5 * SECOND), other.drive(0.3, ms=SECOND // MILLISECOND))
    other.run(50 * MILLISECOND)
    other.send(Stop(1).to("arm"))
    count = len(other.robot.asked)
    other.send(other.lease(2, ns=5 * SECOND))
    other.run(SECOND)
    assert (other.robot.stops, len(other.robot.asked)) == (1, count), "a new lease takes up no old speed"


def test_actions_of_the_tool_ask_for_none_whatever_a_driver_makes_of_them(road: Road) -> None:
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3, space="tcp_pose"))
    start = road.now_ns
    road.run(100 * MILLISECOND)
    assert road.robot.to_joints(np.full((1, 7), 0.3), np.zeros(2))[0, 1] == 0.3
    assert road.asked(start) == 10 * [0.0]


def test_a_speed_among_joint_speeds_is_not_integrated(road: Road) -> None:
    start = road.now_ns
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3, 0.3, space="joint_velocity"))
    road.run(300 * MILLISECOND)
    assert road.asked(start) == [*20 * [0.3], *10 * [0.0]]


@pytest.mark.parametrize("takes_steps", [True, False])
def test_a_step_asks_nothing_of_a_base(takes_steps: bool) -> None:
    """It is added to what is measured: of a base that is a speed, which would be held on."""
    road = Road(takes_steps=takes_steps)
    start = road.now_ns
    road.send(road.lease(ns=5 * SECOND), road.drive(0.3, stepped=True))
    road.run(200 * MILLISECOND)
    assert road.asked(start) == 20 * [0.0]


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 5), st.integers(1, 60), st.floats(0.1, 1.0)), max_size=8),
    st.integers(0, 900),
)
def test_at_any_time_a_speed_is_that_of_the_newest_chunk_with_a_step_there_or_none(
    chunks: list[tuple[int, int, int, float]], at: int
) -> None:
    """A chunk begins somewhere, has so many steps, each so long, at one speed; the reference walks through them."""
    speeds, left = Speeds(1), list[tuple[int, int, float]]()
    for begin, steps, dt, value in chunks:
        t_ns = begin + dt * np.arange(1, steps + 1, dtype=np.int64)
        speeds.replace(t_ns, np.full((steps, 1), value), dt)
        left = [(b, min(e, begin), v) for b, e, v in left if b < begin]
        left.append((begin, begin + steps * dt, value))
    expected = next((v for b, e, v in left if b < at <= e), 0.0)
    assert speeds.sample(np.array([at]))[0, 0] == expected
