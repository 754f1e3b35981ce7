"""Our FR3 driver against franka-sim with limits and communication constraints enforced: `make peer-franka-sim`.

Its time is this machine's, or slower: claims are on violations and on where the robot comes to rest, not on how closely
it follows. As root it goes before other programs, as a controller with a computer of its own does.

What the driver commands is judged by itself too, wherever no cycle was lost. Where one was, on a busy machine, a jump
is nobody's law: the state after it repeats the reference before (seen in recordings), libfranka's low-pass filter
starts from that one, and its documentation says that lost cycles may end in a discontinuity. A failure names how many
were lost just before, by the simulator's own count, and one that had any lost is an expected failure ("xfailed": the
machine's, not ours). Its bodies go on by this machine's clock, its references by its cycles: on a busy machine they
were seen half a radian apart. Run it on a quiet one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import franky
import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address
from support.runs.live_campaign import wait_for

from labctl.drivers.common.robot_tables import FR3
from labctl.errors import DeviceLost
from labctl.testing.robot import RobotRig
from labctl.testing.robot_rig import SCENE

pytestmark = pytest.mark.interop

SERVER, RECORD = Path(__file__).with_name("franka_sim_server.py"), "commanded.jsonl"
CYCLE_S, JUST_BEFORE = 1e-3, 20
STOPPED_MS = 400.0  # of the issue: before, 619 and more; on our own emulator 142 to 222
NEAR_RAD = 0.1  # of a joint's end: it was led there
FURTHER_RAD = 0.5  # than where a joint could go at all: it is led so far
# Of the emulated cell's, the box ends a way before a joint does
WIDE = {"box_min_m": (-1.2, -1.2, -0.6), "box_max_m": (1.2, 1.2, 1.5), "tool_speed_m_s": 3.0}
# FCI documentation, limits of the FR3: rad/s2, rad/s3; of the tool's point m/s2, m/s3
MOST = {"dq": (10.0, 5000.0), "twist": (9.0, 4500.0)}


@pytest.fixture(params=["velocity", "cartesian", "impedance"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RobotRig]:
    """The driver in one of its servos, connected to a server of this test's own."""
    python, host = os.environ.get("FRANKA_SIM"), address()
    assert python, "set FRANKA_SIM to the Python of an environment with franka-sim"
    cell = cell_named("emulated_fr3")
    options = cell.robot.options["driver_options"]
    options |= {"host": host, "servo": request.param, "gripper": {"driver": "franka_hand"}}
    options |= {"tool_z_m": 0.0, "tool_rpy_rad": [0.0, 0.0, 0.0], "tool_kg": 0.0}  # it has no end effector
    options["silence_s"] = 5.0  # its time is this machine's
    table = cell.robot.model_copy(update={"limits": cell.robot.limits.model_copy(update=WIDE)})
    cell = cell.model_copy(update={"robot": table})
    made = RobotRig("franka", options, cell, live=True)
    record = tmp_path / RECORD
    process = subprocess.Popen([python, str(SERVER), host, str(record)])
    try:

        def connected() -> bool:
            try:
                made.robot.connect(made.now_ns)
            except DeviceLost:
                return False
            return True

        wait_for("franka-sim", connected)
        yield made
    finally:
        made.robot.close()
        process.terminate()
        process.wait(10)
        print(cycles(record))


def cycles(record: Path) -> str:
    """How many commands came in time, late and not at all, by the simulator's own count."""
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    late, lost = sum(bool(row.get("late")) for row in rows), sum("lost" in row for row in rows)
    return f"franka-sim: {sum('id' in row for row in rows) - late} cycles in time, {late} late, {lost} lost"


def swing(rig: RobotRig, joint: int, by_rad: float, n: int = 150) -> np.ndarray:
    s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
    return rig.robot.observe()["q"] + by_rad * s[:, None] * np.eye(7)[joint]


def violations(rig: RobotRig) -> list[str]:
    """What the robot says that was broken, whatever our driver made of it."""
    newest = rig.robot._link._reading.newest()
    return [newest.mode, *newest.errors] if newest.mode == "Reflex" or newest.errors else []


def commanded(record: Path, signal: str) -> tuple[float, float, str]:
    """The largest acceleration and jerk commanded wherever no cycle was lost (of a joint, or of the tool's point), and
    what was found broken with the cycles that were lost just before.
    """
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    lost = [row.get("lost", row.get("id")) for row in rows if "lost" in row or row.get("late")]
    runs: list[list[list[float]]] = [[]]
    last, bad = None, ""
    for row in rows:
        if "id" not in row or row["late"] or row["id"] != (last or row["id"] - 1) + 1:
            runs.append([])
        last = row["id"] if "id" in row and not row["late"] else None
        if last is not None:
            runs[-1].append(row[signal][:7] if signal == "dq" else row[signal][:3])
        if row.get("bad"):
            before = sum(row["id"] - JUST_BEFORE <= one <= row["id"] for one in lost)
            bad = f"{row['bad']}: {before} of the {JUST_BEFORE} cycles before it lost or late, {len(lost)} in all"
    most = [0.0, 0.0]
    for run in (np.array(run) for run in runs if len(run) > 3):
        for n in (1, 2):
            rates = np.diff(run, n, axis=0) / CYCLE_S**n
            size = np.abs(rates) if signal == "dq" else np.linalg.norm(rates, axis=1)
            most[n - 1] = max(most[n - 1], float(size.max()))
    return most[0], most[1], bad


def breaks_nothing(rig: RobotRig, record: Path, signal: str = "dq") -> None:
    """Fails where the robot found something broken that no lost cycle explains; an expected failure where one does."""
    if found := violations(rig):
        bad = commanded(record, signal)[2]
        if not bad.endswith(" 0 in all") and ": 0 of the" not in bad:
            pytest.xfail(f"cycles were lost just before, the machine is too busy: {bad or found}")
        pytest.fail(f"{found}: {bad}")


def test_every_joint_is_led_without_a_violation(rig: RobotRig, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The robot goes there; under `servo = "cartesian"` our own supervision may stop one that does not follow, for
    franka-sim resolves a tool's motions in a way of its own (issue 20.20).
    """
    servo = request.node.callspec.params["rig"]
    for joint in range(7):
        rig.until(lambda: not rig.robot._states.restless())  # it trembles, and one that does takes no setpoints
        path = swing(rig, joint, 0.15)
        rig.follow(path)
        rig.wait(2_000_000_000)
        breaks_nothing(rig, tmp_path / RECORD)
        if servo == "cartesian" and rig.robot.status().mode == "safety_stop":
            assert "does not follow" in rig.robot.status().reason
            return
        assert abs(rig.robot.observe()["q"][joint] - path[-1, joint]) < 0.01, (joint, rig.robot.status())


@pytest.mark.parametrize("joint", [0, 3, 5, 6])
def test_a_stop_in_motion_breaks_no_limit(
    rig: RobotRig, joint: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Issue 20.18: joints 6 and 7 fastest tripped the robot's own limits."""
    servo = request.node.callspec.params["rig"]
    rig.follow(swing(rig, joint, 0.4, 100)[:60])
    rig.robot.stop()
    rig.until(lambda: rig.robot.status().mode != "moving")
    rig.wait(1_000_000_000)
    acceleration, jerk, _ = commanded(tmp_path / RECORD, "twist" if servo == "cartesian" else "dq")
    if servo != "impedance":  # that one commands torques
        most = MOST["twist" if servo == "cartesian" else "dq"]
        assert acceleration <= most[0] and jerk <= most[1]
        assert acceleration > 0.1, "it was moved"
    breaks_nothing(rig, tmp_path / RECORD, "twist" if servo == "cartesian" else "dq")
    assert rig.robot.status().mode in ("stopped", "safety_stop")


@pytest.mark.parametrize("rig", ["velocity"], indirect=True)
def test_a_stop_on_the_way_home_breaks_no_limit_and_is_a_stop(rig: RobotRig, tmp_path: Path) -> None:
    robot = rig.robot
    rig.until(lambda: not robot._states.restless())
    start = robot.observe()["q"]
    robot._home = start + 0.5 * np.eye(7)[0]
    robot.stage(SCENE, 1, rig.now_ns)
    rig.until(lambda: np.abs(robot.observe()["q"] - start).max() > 0.03)
    robot.stop()
    rig.until(lambda: robot.status().mode != "moving")
    rig.wait(1_500_000_000)
    breaks_nothing(rig, tmp_path / RECORD)
    assert np.abs(robot.observe()["q"] - robot._home).max() > 0.1, "it went on"


@pytest.mark.parametrize("rig", ["velocity"] * 4, indirect=True)
def test_a_stop_on_the_way_home_is_one_after_a_recovered_reflex_too(rig: RobotRig, tmp_path: Path) -> None:
    """Issue 20.17: it was ignored 4 of 4 times, and the robot stood after 619 to 1,243 ms, when it was home. Each time
    in a session of its own: after a stop the bodies of franka-sim may tremble for ever (0.37 rad/s, seen).
    """
    robot, link = rig.robot, rig.robot._link
    rig.until(lambda: not robot._states.restless())
    reflex(link._robot)
    rig.until(lambda: robot.status().mode == "safety_stop")
    rig.recover()
    rig.until(lambda: not robot._states.restless())
    start = robot.observe()["q"]
    robot._home = start + 0.5 * np.eye(7)[0]
    robot.stage(SCENE, 1, rig.now_ns)
    rig.until(lambda: np.abs(robot.observe()["q"] - start).max() > 0.03)
    halt, halted_ms = link.halt, list[int]()  # by the robot's clock: what this machine adds is not the driver's
    link.halt = lambda: (halted_ms.append(link._reading.newest().number), halt())
    robot.stop()
    rig.until(lambda: halted_ms and not link._robot.is_in_control)
    rows = [json.loads(line) for line in (tmp_path / RECORD).read_text().splitlines()]
    stopped_ms = max(row["id"] for row in rows if "id" in row) - halted_ms[0]
    print(f"the motion had ended {stopped_ms} ms after the stop")
    breaks_nothing(rig, tmp_path / RECORD)
    assert np.abs(robot.observe()["q"] - robot._home).max() > 0.1, "it went on"
    assert stopped_ms < STOPPED_MS and robot.status().mode == "stopped"


def reflex(robot: franky.Robot) -> None:
    """The simulator's own judge ends a motion that no driver of ours would ask for: 15 rad/s2 of joint 7."""
    factor, limit = robot.relative_dynamics_factor, robot.joint_acceleration_limit
    before = limit.get()
    limit.set(limit.max)
    robot.relative_dynamics_factor = 1.0
    with contextlib.suppress(franky.ControlException):
        robot.move(franky.JointVelocityMotion([0.0] * 6 + [0.6], franky.Duration(300)))
    limit.set(before)
    robot.relative_dynamics_factor = factor


@pytest.mark.parametrize("rig", ["velocity"], indirect=True)
@pytest.mark.parametrize("way", [1, -1], ids=["up", "down"])
@pytest.mark.parametrize("joint", range(7))
def test_a_joint_led_far_beyond_its_end_stops_before_it(rig: RobotRig, joint: int, way: int, tmp_path: Path) -> None:
    """Issue 20.19: at 1.0 rad/s joint 4 ended in a reflex."""
    robot, ends = rig.robot, (FR3.lower, FR3.upper)
    rig.until(lambda: not robot._states.restless())
    start = robot.observe()["q"]
    outermost = FR3.ends.reachable()[(way + 1) // 2][joint] if FR3.ends else ends[(way + 1) // 2][joint]
    goal = start.copy()
    goal[joint] = ends[(way + 1) // 2][joint] + way * FURTHER_RAD
    steps = round(abs(goal[joint] - start[joint]) / 1.5 * robot.control_hz)
    rig.follow(start + np.linspace(0.0, 1.0, steps)[:, None] * (goal - start))
    for _ in range(20):  # the limits allow it less speed than it is asked for, and a busy machine's robot takes longer
        breaks_nothing(rig, tmp_path / RECORD)
        if abs(outermost - robot.observe()["q"][joint]) < NEAR_RAD:
            break
        rig.follow(np.repeat(goal[None, :], 50, axis=0))
    rig.wait(500_000_000)
    breaks_nothing(rig, tmp_path / RECORD)
    left = way * (ends[(way + 1) // 2][joint] - robot.observe()["q"][joint])
    assert robot.status().mode in ("idle", "moving"), robot.status()
    assert 0 <= left < NEAR_RAD + abs(ends[(way + 1) // 2][joint] - outermost), left
