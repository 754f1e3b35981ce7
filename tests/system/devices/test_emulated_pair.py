"""Two emulated UR5es in one cell, each through the real client at an address of its own: staged one after the other,
led through a whole campaign, and stopped together when one of them stops itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.robots.cells import cell_named, changed
from support.robots.emulators import Emulator
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.live_campaign import end_of, of_kind, running

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.devices import Setpoints
from labctl.store.verifying.verify import verify_campaign
from labctl.testing.robot_rig import RobotRig

pytestmark = [pytest.mark.real_time, pytest.mark.busy, pytest.mark.thorough, pytest.mark.limit(900)]

FIRST, SECOND_HOST = "127.0.0.6", "127.0.0.7"  # as the shipped cell says
# Of both at rest after one of them began to stop itself: a visit of 20 ms, then each robot's own braking of some tenth
# of a second. Of time in which somebody looked, or of the robot's own if that is less: neither goes on where this
# machine lets nobody run.
AT_REST_S, LOOK_NS, MOST_NS = 1.0, 10 * MILLISECOND, 50 * MILLISECOND


@pytest.fixture
def emulators() -> Iterator[tuple[Emulator, Emulator]]:
    both = Emulator("ur5e"), Emulator("ur5e")
    yield both
    for one in both:
        one.end()


def times(emulators: tuple[Emulator, Emulator]) -> list[float]:
    """What each robot's own clock shows, s."""
    return [float(one.stats()["robot_time_s"]) for one in emulators]


def moving_rig(emulators: tuple[Emulator, Emulator]) -> RobotRig:
    first, second = ({"options": {"driver_options": {"host": one.host}}} for one in emulators)
    rig = RobotRig(
        "pair", {}, changed(cell_named("emulated_pair"), {"robot": first, "second_robot": second}), live=True
    )
    rig.connect()
    return rig


@pytest.mark.parametrize("which", [0, 1], ids=["left", "right"])
def test_a_protective_stop_of_one_brings_both_to_rest_and_they_move_again_once_both_have_recovered(
    emulators: tuple[Emulator, Emulator], which: int
) -> None:
    rig = moving_rig(emulators)
    robot = rig.robot
    try:
        n, given, rest = 400, 0, [0.0, 0.0]
        s = ((1 - np.cos(np.linspace(0, np.pi, n))) / 2)[:, None]
        way = robot.observe()["q"] + s * 0.6 * (np.eye(12)[0] + np.eye(12)[6])
        period_ns, start_ns, stopped, looked_s = round(SECOND / robot.control_hz), rig.now_ns, False, 0.0
        from_s = [0.0, 0.0]
        while not all(rest):
            before_ns = rig.now_ns
            rig.wait(LOOK_NS)
            looked_s += min(rig.now_ns - before_ns, MOST_NS) / SECOND * stopped
            due = min((rig.now_ns - start_ns) // period_ns, n)
            if due > given:
                t_ns = start_ns + np.arange(given + 1, due + 1) * period_ns
                robot.follow(Setpoints(t_ns, way[given:due], np.full((due - given, 2), 0.08)))
                given = due
            dq = np.abs(robot.observe()["dq"]).reshape(2, 6).max(axis=1)
            if given > n // 2 and not stopped and (dq > 0.1).all():  # both are under way
                emulators[which].inject("protective_stop")
                stopped, from_s = True, times(emulators)
            assert stopped or given < n, "both were never under way at once"
            for i in (0, 1):
                if stopped and not rest[i] and dq[i] < 0.01:
                    rest[i] = min(looked_s, times(emulators)[i] - from_s[i])
            assert looked_s < 5.0, "one of them moves on"
        own, other = rest[which], rest[1 - which]
        sys.stderr.write(f"at rest after a stop of its own: {own:.3f} s, the other one: {other:.3f} s\n")
        assert max(own, other) < AT_REST_S
        assert robot.status().mode == "safety_stop"
        emulators[which].clear()
        rig.recover()
        assert robot.status().mode in ("idle", "moving")
        before = robot.observe()["q"]
        rig.follow(before + s[::4] * 0.1 * (np.eye(12)[0] + np.eye(12)[6]))
        rig.at_rest()
        assert (np.abs(robot.observe()["q"] - before)[[0, 6]] > 0.05).all()
    finally:
        robot.close()


def test_a_person_and_a_policy_move_items_with_both_robots_through_a_whole_campaign(
    emulators: tuple[Emulator, Emulator], tmp_path: Path
) -> None:
    placed = {host: one.host for host, one in zip((FIRST, SECOND_HOST), emulators, strict=True)}
    arms = [HUMAN, policy("policy-a", skill="swift")]
    opened = make_campaign(
        tmp_path, arms, base="emulated_pair", cell=placed, durable=True, live=True, items=2, budget=30.0,
    )  # fmt: skip
    log = tmp_path / "run.log"
    with running(opened.folder, log) as run:
        end_of(run)
    assert run.returncode == 0, log.read_text()
    assert len(of_kind(opened.folder, Kind.OUTCOME_RECORDED)) == 2
    did = [event.body for event in of_kind(opened.folder, Kind.OPERATION_RECORDED)]
    robots = {body["robot"] for body in did if body["result"] == "success"}  # none where a busy machine stopped both
    assert robots == {"left", "right"}
    assert verify_campaign(opened.folder).problems == []
