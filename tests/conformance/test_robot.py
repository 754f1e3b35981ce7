"""What every robot does, whichever it is.

The contract of labctl.devices.Robot. A real cell joins by one more entry here.
"""

from __future__ import annotations

import threading
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.devices import Resettable, Robot, Setpoints, load
from labctl.errors import InputError

ROOT = Path(__file__).parents[2]
FIXTURE = tomllib.loads((ROOT / "fixtures" / "two_totes.toml").read_text())
QUIET = {"verb": "events", "fault": "raise", "after": 10**9}
ROBOTS = {
    "sim_fr3": ("sim_fr3", "sim_fr3", {}),
    "sim_ur5": ("sim_ur5", "sim_ur5", {}),
    "faults": ("faults", "sim_fr3", {"driver": "sim_fr3", **QUIET}),
}
START_NS = 5 * SECOND


def _cell(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "hw_configs" / f"{name}.toml").read_text())


@pytest.fixture(params=list(ROBOTS))
def made(request) -> tuple[Any, dict[str, Any]]:
    driver, cell_name, options = ROBOTS[request.param]
    cell = _cell(cell_name)
    robot = load(driver, options, cell=cell, fixture=FIXTURE)
    robot.connect(START_NS)
    if isinstance(robot, Resettable):
        robot.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1, START_NS)
    return robot, cell


@pytest.fixture
def robot(made):
    return made[0]


def _follow(robot: Any, q: np.ndarray, from_ns: int, opening: float = 0.08) -> tuple[Setpoints, Setpoints]:
    t_ns = from_ns + np.arange(1, len(q) + 1) * round(SECOND / robot.control_hz)
    return robot.follow(Setpoints(t_ns, q, np.full(len(q), opening)))


def _moved(robot: Any, by_rad: float = 0.1, n: int = 60) -> np.ndarray:
    """A smooth path of n setpoints that turns the first joint by `by_rad`."""
    s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
    return robot.observe()["q"] + by_rad * s[:, None] * np.eye(robot.dof)[0]


def test_it_is_a_robot_and_says_of_which_kind(robot):
    assert isinstance(robot, Robot)
    assert robot.kind in ("real", "sim", "replay", "faults", "emulated")
    assert len(robot.joint_names) == robot.dof == len(set(robot.joint_names))


def test_streams_are_declared_before_anything_connects(made):
    robot, cell = made
    names = [spec.name for spec in robot.streams]
    assert "arm/state" in names and len(names) == len(set(names))
    state = next(spec for spec in robot.streams if spec.name == "arm/state")
    assert state.rate_hz == cell["robot"]["state_hz"]
    assert [column for column in state.columns if column.startswith("q.")] == [
        f"q.{name}" for name in robot.joint_names
    ]


def test_an_observation_holds_the_arm_in_the_agreed_shapes(robot):
    seen = robot.observe()
    assert {name: seen[name].shape for name in ("q", "dq", "tcp", "gripper")} == {
        "q": (robot.dof,),
        "dq": (robot.dof,),
        "tcp": (7,),
        "gripper": (1,),
    }
    assert np.linalg.norm(seen["tcp"][3:]) == pytest.approx(1.0)


def test_joints_for_the_present_pose_are_the_present_joints(robot):
    seen = robot.observe()
    q = robot.to_joints(np.repeat(seen["tcp"][None, :], 4, axis=0), seen["q"])
    assert q.shape == (4, robot.dof)
    assert np.abs(q - seen["q"]).max() < 1e-6


def test_follow_answers_every_setpoint_at_its_time(robot):
    wanted = _moved(robot)
    limited, sent = _follow(robot, wanted, START_NS)
    for answer in (limited, sent):
        assert answer.q.shape == wanted.shape and answer.gripper.shape == (len(wanted),)
        assert (answer.t_ns[1:] > answer.t_ns[:-1]).all()
    assert np.abs(sent.q[-1] - wanted[-1]).max() < 0.02


def test_a_jump_is_limited_to_what_the_cell_allows_to_the_last_bit(made):
    robot, cell = made
    limits = cell["robot"]["limits"]
    rows, at_ns = [np.repeat(robot.observe()["q"][None, :], 2, axis=0)], START_NS
    for sign in (1, -1, 1):
        jump = np.repeat(robot.observe()["q"][None, :] + sign * 0.4, 40, axis=0)
        _, sent = _follow(robot, jump, at_ns)
        rows.append(sent.q)
        at_ns = int(sent.t_ns[-1])
    speed = np.diff(np.concatenate(rows), axis=0) * robot.control_hz
    assert (np.abs(speed) <= limits["velocity_rad_s"]).all()
    assert (np.abs(np.diff(speed, axis=0)) * robot.control_hz <= limits["acceleration_rad_s2"]).all()


def test_drain_gives_ascending_times_once_and_the_declared_columns(robot):
    batches = []
    at_ns = START_NS
    for _ in range(3):
        _, sent = _follow(robot, _moved(robot), at_ns)
        at_ns = int(sent.t_ns[-1])
        batches += robot.drain(at_ns)
    width = {spec.name: len(spec.columns) for spec in robot.streams}
    for batch in batches:
        assert batch.values.shape == (len(batch.t_ns), width[batch.stream])
        assert np.isfinite(batch.values).all()
    state = [batch.t_ns for batch in batches if batch.stream == "arm/state"]
    assert all(before[-1] < after[0] for before, after in pairwise(state))
    times = np.concatenate(state)
    assert (times[1:] > times[:-1]).all()
    assert robot.drain(at_ns) == []


def test_an_idle_robot_still_reports_its_state(robot):
    batch = next(batch for batch in robot.drain(START_NS + 2 * SECOND) if batch.stream == "arm/state")
    assert (batch.values[:, : robot.dof] == robot.observe()["q"]).all()
    assert batch.t_ns[-1] > START_NS + 1.9 * SECOND


def test_stop_works_from_another_thread_twice_and_holds(robot):
    _follow(robot, _moved(robot)[:30], START_NS)
    threads = [threading.Thread(target=robot.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert robot.status().mode == "stopped"
    robot.drain(START_NS + 3 * SECOND)
    stood = robot.observe()["q"]
    _follow(robot, stood + np.full((50, 1), 0.2), START_NS + 3 * SECOND)
    assert (robot.observe()["q"] == stood).all()
    assert np.abs(robot.observe()["dq"]).max() == 0.0


def test_recover_moves_nothing_and_allows_motion_again(robot):
    robot.stop()
    robot.drain(START_NS + SECOND)
    before = robot.observe()["q"]
    robot.recover()
    robot.recover()
    assert (robot.observe()["q"] == before).all()
    _, sent = _follow(robot, _moved(robot), START_NS + SECOND)
    assert np.abs(sent.q[-1] - before).max() > 0.05


def test_events_are_told_once(robot):
    robot.events()
    assert robot.events() == []


def test_a_closed_robot_does_not_move(robot):
    robot.close()
    robot.close()
    before = robot.observe()["q"]
    _follow(robot, _moved(robot), START_NS)
    assert (robot.observe()["q"] == before).all()


@pytest.mark.parametrize("name", list(ROBOTS))
def test_an_unknown_option_is_refused_by_name(name):
    driver, cell_name, options = ROBOTS[name]
    with pytest.raises(InputError, match="haste"):
        load(driver, {**options, "haste": 1}, cell=_cell(cell_name), fixture=FIXTURE)
