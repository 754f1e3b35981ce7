"""A simulated base: what it carries goes along, and an episode waits until a person has put it in its place."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.messages.motion import Lease, Stage
from labctl.nodes.robot import RobotNode
from labctl.testing.robot_rig import SCENE, RobotRig

TICK = 20 * MILLISECOND


@pytest.fixture
def rig() -> RobotRig:
    made = RobotRig("sim_base", {}, cell_named("sim_base"), live=False)
    made.connect()
    return made


def test_what_the_fingers_hold_goes_along_with_the_base(rig: RobotRig) -> None:
    robot = rig.robot
    x, y, z, yaw = robot.observe()["items"][0, :4]
    over = np.array([x, y, 0.25, np.cos(yaw / 2), np.sin(yaw / 2), 0.0, 0.0])
    for height, opening in ((0.25, 0.08), (z, 0.08), (z, 0.0), (0.25, 0.0)):
        over[2] = height
        here = robot.observe()["q"]
        there = robot.to_joints(over[None, :], here)[0]
        share = np.minimum(np.linspace(0, 1.2, 300), 1.0)[:, None]
        rig.follow(here + share * (there - here), opening=opening)
    before = robot.observe()
    assert before["items"][0, 7] == 1.0, "it is held"
    q = np.tile(before["q"], (200, 1))
    q[:100, 7:] = (0.1, -0.05, 0.1)
    rig.follow(q, opening=0.0)
    after = robot.observe()
    moved = after["tcp"][:3] - before["tcp"][:3]
    assert np.abs(moved).max() > 0.05 and after["items"][0, 7] == 1.0
    assert after["items"][0, :3] - before["items"][0, :3] == pytest.approx(moved, abs=0.01)  # the tracker has noise
    assert np.abs(robot.to_pose(after["q"]) - after["tcp"]).max() < 1e-9


class Home:
    """The robot's node, on its way home under a lease that is renewed."""

    def __init__(self, rig: RobotRig) -> None:
        self.node = RobotNode(rig.robot, tick_ns=TICK, stale_ns=500 * MILLISECOND, connected=True)
        self.now_ns = rig.now_ns
        self.said: list[Message] = []

    def visit(self, *sent: Message) -> None:
        self.now_ns += TICK
        lease = Lease(7, None, self.now_ns + SECOND).to("@lease")
        self.said += self.node.step(self.now_ns, [*sent, lease]).out

    @property
    def shown(self) -> str:
        """What a console shows beside the robot's mode."""
        return next(message.body["reason"] for message in reversed(self.said) if message.kind == "obs")

    @property
    def staged(self) -> bool:
        return any(message.kind == "staged" for message in self.said)


def test_the_console_shows_how_far_off_the_base_is_until_a_person_has_put_it_in_its_place(rig: RobotRig) -> None:
    q = np.tile(rig.robot.observe()["q"], (200, 1))
    q[:, 7] = 0.2
    rig.follow(q)
    rig.at_rest()
    home = Home(rig)
    home.visit(Stage("t-1", SCENE, 1, 7, None, home.now_ns + SECOND).to("arm"))
    home.visit()
    assert home.shown.startswith("put the base in its place (0, 0, 0°): by its odometry it is at x +0.40 m, y +0.00 m")
    for _ in range(4 * SECOND // TICK):
        home.visit()
    assert not home.staged and rig.robot.observe()["odometry"][0] > 0.3, "nothing has driven it"
    for _ in range(2 * SECOND // TICK):
        home.visit()
    assert home.staged and home.shown == "" and not rig.robot.observe()["odometry"].any()


def test_a_base_that_is_near_enough_to_its_place_stays_there(rig: RobotRig) -> None:
    q = np.tile(rig.robot.observe()["q"], (20, 1))
    q[:, 8] = 0.05
    rig.follow(q)
    rig.at_rest()
    place = rig.robot.observe()["odometry"]
    assert 0.001 < place[1] < 0.02
    rig.robot.stage(SCENE, 1, rig.now_ns)
    assert rig.robot.staged() and rig.robot.status().reason == ""
    assert rig.robot.observe()["odometry"].tolist() == place.tolist()
