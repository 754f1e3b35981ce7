"""What the FR3's driver asks franky for: however far the robot lags, no speed beyond the limits of the cell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.config.cell_schema import Limits, RobotTable
from labctl.drivers.common import kinematics
from labctl.drivers.common.limits import slowed
from labctl.drivers.common.robot_tables import FR3, FR3_ENDS
from labctl.drivers.franka.options import FrankaOptions

SPEEDS = st.lists(st.floats(-1.0, 1.0), min_size=7, max_size=7).map(np.array)
LAGS = st.lists(st.floats(-0.5, 0.5), min_size=7, max_size=7).map(np.array)


def _limit(value: float) -> Any:
    return SimpleNamespace(get=lambda: value)


def _link(servo: str, table: RobotTable) -> Any:
    pytest.importorskip("franky")
    from labctl.drivers.franka.robot import FrankaLink

    link = FrankaLink(FR3, FrankaOptions.read({"host": "127.0.0.1", "servo": servo}, "franka"), table)
    matrix = np.eye(4)
    tip, turn = kinematics.jacobian(FR3.chain, FR3.home[None, :])[1:]
    matrix[:3, :3], matrix[:3, 3] = turn[0], tip[0]
    link._reading = SimpleNamespace(present=lambda: SimpleNamespace(q=FR3.home, q_d=FR3.home, pose_c=matrix))
    link._robot = SimpleNamespace(translation_velocity_limit=_limit(1.5), rotation_velocity_limit=_limit(1.25))
    return link


@settings(max_examples=60, deadline=None)
@given(SPEEDS, LAGS)
def test_joint_speeds_that_catch_up_stay_within_the_cells_limits_of_joints_and_tool(given_speed, lag) -> None:
    table = _table()
    link = _link("velocity", table)
    (first, last) = link._motion(FR3.home + lag, given_speed).waypoints
    most = np.array(table.limits.velocity_rad_s)
    asked = np.array(first.target)
    jacobian = kinematics.jacobian(FR3.chain, FR3.home[None, :])[0][0, :3]
    assert (np.abs(asked) <= most * (1 + 1e-12)).all()
    assert np.linalg.norm(jacobian @ asked) <= 0.8 * (1 + 1e-12)
    wanted = given_speed + 8.0 * lag  # CORRECT_PER_S
    if (np.abs(wanted) <= most).all() and np.linalg.norm(jacobian @ wanted) <= 0.8:
        assert np.allclose(asked, wanted, rtol=0, atol=1e-12), "what is allowed is asked for as it is"
    assert not np.any(last.target), "and a stop stands behind it"


@settings(max_examples=60, deadline=None)
@given(SPEEDS, LAGS)
def test_a_tool_speed_that_catches_up_stays_within_the_limits_of_tool_and_joints(given_speed, lag) -> None:
    link = _link("cartesian", _table())
    twist = link._motion(FR3.home + lag, given_speed).waypoints[0].target
    assert np.linalg.norm(twist.end_effector_twist.linear) <= 0.8 * (1 + 1e-12)
    assert np.linalg.norm(twist.end_effector_twist.angular) <= 1.25 * (1 + 1e-12)
    parts = [*twist.end_effector_twist.linear, *twist.end_effector_twist.angular]
    rows = np.vstack([kinematics.jacobian(FR3.chain, FR3.home[None, :])[0][0], np.eye(7)[2]])
    joints = np.linalg.solve(rows, [*parts, 0.0])  # the robot keeps its elbow
    assert (np.abs(joints) <= np.array(_table().limits.velocity_rad_s) * (1 + 1e-9)).all()


@given(SPEEDS, st.floats(0.1, 2.0))
def test_a_velocity_that_is_slowed_keeps_its_direction(speed, most) -> None:
    out = slowed(speed, most)
    assert (np.abs(out) <= most * (1 + 1e-12)).all()
    share = 1.0 if not speed.any() else np.abs(out).max() / np.abs(speed).max()
    assert np.allclose(out, share * speed, atol=1e-15)


@pytest.mark.parametrize("ahead", ["q", "q_d"])
def test_near_its_end_a_joint_is_as_slow_as_the_nearer_of_the_commanded_and_the_measured_place_allows(ahead) -> None:
    """franka-sim judges a command by where the joint is measured (seen: 1.2 rad/s where 1.17 were allowed)."""
    link, near = _link("velocity", _table()), FR3.home.copy()
    near[6] = FR3_ENDS.upper[6] - 0.1
    places = {"q": FR3.home, "q_d": FR3.home} | {ahead: near}
    link._reading = SimpleNamespace(present=lambda: SimpleNamespace(**places))
    asked = link._motion(places["q_d"], 1.2 * np.eye(7)[6]).waypoints[0].target
    assert 0 < asked[6] <= FR3_ENDS.most(near, 0.12)[1][6] < 1.0


@pytest.mark.parametrize("servo", ["velocity", "cartesian"])
def test_a_speed_is_of_where_the_robot_is_when_it_is_given(servo: str) -> None:
    """This thread stood still for 60 ms after it had read where the robot was: franky gets the speed for where it is
    now. On a machine that always takes so long it gets one for as late; where that is too little again, none.
    """
    link, clock = _link(servo, _table()), ManualClock(SECOND)
    link._clock = clock
    taken: list[Any] = []
    link._move = taken.append
    of, stalls, given = link._motion, [60, 0], []

    def motion(q: np.ndarray, dq: np.ndarray, late_s: float) -> Any:
        given.append(late_s)
        made = of(q, dq, late_s)
        clock.sleep_until(clock.now_ns() + stalls.pop(0) * MILLISECOND)
        return made

    link._motion = motion
    link._give(FR3.home, np.zeros(7))
    assert len(taken) == 1 and not stalls, "the one that was computed anew"
    stalls += [60, 60]
    link._give(FR3.home, np.zeros(7))
    assert len(taken) == 2 and not stalls and given == [0.0, 0.12, 0.0, 0.12]
    stalls += [60, 150, 320]
    link._give(FR3.home, np.zeros(7))
    assert len(taken) == 2 and not stalls, "none is given"


def test_a_robot_whose_time_goes_slower_than_ours_is_given_its_own_to_arrive() -> None:
    """An emulated one on a busy machine had a fifth of its second and a half, and stood 0.01 rad beside its home."""
    link, state = _link("velocity", _table()), SimpleNamespace(number=1000, q=FR3.home, q_d=FR3.home, dq=np.zeros(7))
    link._reading.newest = lambda: state
    link._robot.is_in_control, link._given = True, link._kind()
    given, ended = [], []
    link._give = lambda q, dq: given.append(q)
    link.halt = lambda: ended.append(state.number)
    goal = FR3.home + 0.01
    for _ in range(700):  # visits, at one of which 2 ms have passed for the robot
        assert not link.hold(goal)
        state.number += 2
    assert len(given) == 700 and not ended
    state.number = 1000 + 1502
    assert not link.hold(goal) and ended == [2502], "the motion is ended in order"
    link._robot.is_in_control = False
    assert link.hold(goal)
    link._robot.is_in_control, state.number = True, 10_000
    link.send_setpoint(goal, np.zeros(7))
    assert not link.hold(goal) and ended == [2502], "each way has its own"


@pytest.mark.parametrize("home", [True, False], ids=["sent home", "home no more"])
@pytest.mark.parametrize("servo", ["cartesian", "impedance"])
@pytest.mark.parametrize("verb", ["send_setpoint", "hold"])
def test_a_motion_of_another_kind_ends_before_anything_is_given(verb: str, servo: str, home: bool) -> None:
    """franky refuses it: "The type of motion cannot change during runtime". A robot sent home was stopped by that."""
    import franky

    link, given = _link(servo, _table()), list[Any]()
    state = SimpleNamespace(number=1000, q=FR3.home, q_d=FR3.home, dq=np.zeros(7))
    link._reading.newest = lambda: state
    types = franky.ControlSignalType
    of = {"cartesian": types.CartesianVelocities, "impedance": types.Torques}[servo]
    before, after = (of, types.JointVelocities) if home else (types.JointVelocities, of)
    link._robot.is_in_control, link._given = True, before
    link._give = lambda q, dq: given.append(types.JointVelocities if link._by_joints else types.CartesianVelocities)
    link._pull = lambda q, anew: given.append(types.Torques if anew else None)
    halts = list[int]()
    link.halt = lambda: halts.append(state.number)
    goal, link._by_joints = FR3.home + 0.1, home
    for _ in range(3):
        if verb == "hold":
            assert link.hold(goal) is False
        else:
            assert link.send_setpoint(goal, np.zeros(7), by_joints=home) is False
        state.number += 1000
    assert not given and halts == [1000]
    link._robot.is_in_control = False
    link.hold(goal) if verb == "hold" else link.send_setpoint(goal, np.zeros(7), by_joints=home)
    assert given == [after] and link._given == after and not link._ending


def _table() -> RobotTable:
    limits = Limits(
        velocity_rad_s=[1.0, 1.0, 1.0, 1.0, 1.2, 1.2, 1.2],
        acceleration_rad_s2=[3.0] * 7,
        box_min_m=[0.15, -0.6, 0.0],
        box_max_m=[0.8, 0.6, 0.8],
        tool_speed_m_s=0.8,
    )
    return RobotTable(driver="franka", state_hz=1000, control_hz=100, observe_hz=50, limits=limits)
