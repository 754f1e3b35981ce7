"""What a robot, a gripper and a camera behind ROS 2 say when something is not as it should be; and pictures as they
came. Over real DDS on loopback; the robot and ROS are emulated.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from PIL import Image as Pictures
from support.robots.arriving import arrives, off
from support.robots.cells import cell_named
from support.robots.emulators import Emulator, own_domain
from support.runs.live_campaign import wait_for

from labctl.clock import MonotonicClock
from labctl.devices import Camera, load
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.ros2.action_messages import EXECUTING
from labctl.drivers.ros2.messages import CompressedImage, Header, Image, JointState, Time, time_of
from labctl.drivers.ros2.network import Network, within
from labctl.errors import DeviceLost, DeviceRefused
from labctl.testing.given import FIXTURE
from labctl.testing.robot import RobotRig
from labctl.testing.robot_rig import turned

pytestmark = pytest.mark.real_time
CELL = cell_named("emulated_ros2")
CLOCK = MonotonicClock()
ACTION = {"command": "action", "command_topic": "/joint_trajectory_controller/follow_joint_trajectory"}

TWIST = {"command": "twist", "command_topic": "/servo_node/delta_twist_cmds"}


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator("ros2")
    yield made
    made.end()


def rig(emulator: Emulator, **more: Any) -> RobotRig:
    options = cell_named("emulated_ros2").robot.options
    del options["driver_options"]["scaling_topic"]
    options["driver_options"] |= {"host": emulator.host, "domain": emulator.domain, **more}
    return RobotRig("emulated", options, CELL, live=True)


def test_a_robot_whose_joints_are_called_otherwise_says_which_there_are(
    monkeypatch: pytest.MonkeyPatch, emulator: Emulator
) -> None:
    made: Any = rig(emulator, joints=["a", "b", "c", "d", "e", "f"])
    link = made.robot._inner._link

    def heard(_: float, found: Callable[[], object]) -> bool:
        """Whether it came true by the time that the robot has said its names."""
        assert within(60.0, lambda: link._joints.missing)
        return bool(found())

    monkeypatch.setattr("labctl.drivers.ros2.robot.within", heard)
    with pytest.raises(DeviceRefused, match="has no joint a, b, c, d, e, f; its joints: shoulder_pan_joint, "):
        made.robot.connect(made.now_ns)


def test_a_domain_in_which_nobody_speaks_is_named(monkeypatch: pytest.MonkeyPatch, emulator: Emulator) -> None:
    monkeypatch.setattr("labctl.drivers.ros2.robot.FOUND_S", 0.3)
    made = rig(emulator, states_topic="/other/joint_states")
    words = f"ROS 2 domain {emulator.domain} on {emulator.host}: nobody speaks on /other/joint_states"
    with pytest.raises(DeviceLost, match=words):
        made.robot.connect(made.now_ns)


class Another:
    """A second node that says how the joints stand, 0.6 rad from where they are, until it is closed."""

    def __init__(self, domain: int) -> None:
        self._network, self._end = Network(domain, "127.0.0.1"), threading.Event()
        self._says = self._network.publisher("/joint_states", JointState)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        q = UR5E.home + np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])
        while not self._end.wait(0.01):
            stamp = time_of(CLOCK.now_ns())
            self._says.send(JointState(Header(stamp), list(UR5E.joint_names), q.tolist(), [0.0] * 6))

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._network.close()


def test_a_robot_of_which_two_nodes_speak_is_refused_and_one_that_comes_later_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, emulator: Emulator
) -> None:
    """A joint_state_publisher left from RViz: the arm leaped to where that said it was."""
    made, later = Another(emulator.domain), rig(emulator)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("labctl.drivers.ros2.robot.LISTEN_S", 60.0)  # for the second that it hears to speak
            with pytest.raises(
                DeviceRefused, match="two nodes say how joint shoulder_pan_joint stands on /joint_states"
            ):
                rig(emulator).robot.connect(CLOCK.now_ns())
        made.close()
        later.connect()
        later.at_rest()
        before, made = emulator.stats()["q"], Another(emulator.domain)
        later.until(lambda: later.robot.status().mode == "fault")
        assert "two nodes say" in later.robot.status().reason
        later.follow(later.robot.observe()["q"] + np.linspace(0, 0.2, 20)[:, None])
        assert emulator.stats()["q"] == pytest.approx(before, abs=1e-6)
        made.close()
        later.until(lambda: recovered(later))
    finally:
        made.close()
        later.robot.close()


def test_an_arm_that_stands_while_it_is_led_is_a_fault_that_asks_for_its_controller(emulator: Emulator) -> None:
    """One that is inactive hears commands as an active one does."""
    made = rig(emulator)
    try:
        made.connect()
        emulator.inject("controller_inactive")
        there, turn = made.robot.observe()["q"], np.eye(6)[0]
        for k in range(6):
            made.follow(there + 0.03 * np.sin(k + np.linspace(0, 1, 20))[:, None] * turn)
        made.until(lambda: made.robot.status().mode == "fault")
        assert "has not moved" in made.robot.status().reason
        assert "ros2 control list_controllers" in made.robot.status().reason
        emulator.clear()
        made.until(lambda: recovered(made))
        made.follow(turned(made.robot))
        made.until(lambda: off(made, there) > 0.01)
    finally:
        emulator.clear()
        made.robot.close()


def test_a_controller_that_is_not_there_is_a_fault_until_it_is(emulator: Emulator) -> None:
    made = rig(emulator)
    try:
        made.connect()
        emulator.inject("controller_unloaded")
        made.until(lambda: made.robot.status().mode == "fault")
        assert "ros2 control list_controllers" in made.robot.status().reason
        emulator.clear()
        made.until(lambda: made.robot.status().mode == "idle")
    finally:
        emulator.clear()
        made.robot.close()


SCALING = "/speed_scaling_state_broadcaster/speed_scaling"


def test_a_slow_robot_is_a_hold_that_says_so_until_it_is_back_and_is_recorded(emulator: Emulator) -> None:
    """Issue 20.11's kind: a UR whose slider stands at 50 % is as slow behind ROS 2, without a word."""
    made = rig(emulator, scaling_topic=SCALING)
    try:
        made.connect()
        assert [spec.columns for spec in made.robot.streams if spec.name == "arm/device"] == [("speed_scaling",)]
        emulator.inject("speed_slider", fraction=0.5)
        made.until(lambda: made.robot.status().mode == "fault")
        assert "50 %" in made.robot.status().reason and SCALING in made.robot.status().reason
        emulator.clear()
        made.recover()
        made.until(lambda: any(b.values[-1, 0] == 1.0 for b in made.batches[-2:] if b.stream == "arm/device"))
    finally:
        emulator.clear()
        made.robot.close()


def test_a_topic_that_says_no_speed_is_refused_and_a_ur_without_one_is_told(
    monkeypatch: pytest.MonkeyPatch, emulator: Emulator
) -> None:
    waits_s = iter([60.0, 60.0, 0.3, 60.0, 0.3])  # the last for a topic that says nothing
    with monkeypatch.context() as patched:
        patched.setattr("labctl.drivers.ros2.robot.within", lambda _, found: within(next(waits_s), found))
        made = rig(emulator, scaling_topic="/other/speed_scaling")
        with pytest.raises(DeviceRefused, match="nothing came on /other/speed_scaling"):
            made.robot.connect(made.now_ns)
    made = rig(emulator)
    try:
        made.connect()
        notes = [event.body["reason"] for event in made.robot.events()]
        assert any("scaling_topic" in note for note in notes), notes
    finally:
        made.robot.close()


@pytest.mark.parametrize(
    "more",
    [{}, ACTION, {"command": "positions", "command_topic": "/forward_position_controller/commands"}, TWIST],
    ids=["trajectory", "action", "positions", "twist"],
)
def test_it_goes_where_it_is_sent_by_each_kind_of_controller(emulator: Emulator, more: dict[str, Any]) -> None:
    made = rig(emulator, **more)
    try:
        made.connect()
        path = turned(made.robot)
        made.follow(path)
        arrives(made, path[-1])
    finally:
        made.robot.close()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("goal_aborted", "gave up a goal: PATH_TOLERANCE_VIOLATED (Aborted due to path tolerance violation)"),
        ("goals_refused", "/joint_trajectory_controller/follow_joint_trajectory refused a goal"),
    ],
)
def test_a_goal_that_is_given_up_or_refused_is_a_fault_in_words_until_a_person_has_looked(
    emulator: Emulator, fault: str, said: str
) -> None:
    """What a topic of trajectories cannot say: FollowJointTrajectory answers."""
    made = rig(emulator, **ACTION)
    try:
        made.connect()
        path = turned(made.robot)
        made.follow(path[: len(path) // 3])
        emulator.inject(fault)
        made.follow(path[len(path) // 3 :])
        made.until(lambda: said in made.robot.status().reason)
        assert made.robot.status().mode in ("safety_stop", "fault")
        emulator.clear()
        made.until(lambda: recovered(made))
        there = made.robot.observe()["q"]
        for _ in range(5):
            made.follow(np.repeat(there[None, :], 20, axis=0))
        assert made.robot.status().mode in ("idle", "moving")
    finally:
        emulator.clear()
        made.robot.close()


def recovered(made: RobotRig) -> bool:
    with contextlib.suppress(DeviceRefused):
        made.robot.recover()
    return made.robot.status().mode == "idle"


def test_a_goal_of_ours_is_over_when_the_robot_is_let_go_of(emulator: Emulator) -> None:
    made = rig(emulator, **ACTION)
    made.connect()
    made.follow(turned(made.robot))
    made.robot.close()
    wait_for(
        "the end of the goal, which is told to the controller over DDS", lambda: emulator.stats()["goal"] != EXECUTING
    )
    before, then = emulator.stats()["q"], emulator.stats()["robot_time_s"]
    wait_for("more of the robot's time", lambda: emulator.stats()["robot_time_s"] > then + 0.2)
    assert emulator.stats()["q"] == pytest.approx(before, abs=1e-6)


WIDE, HIGH = 64, 48


def picture(number: int) -> np.ndarray:
    image = np.zeros((HIGH, WIDE, 3), np.uint8)
    image[:, : 4 * (number % 16)] = (200, 30, 60)
    return image


class Node:
    """Publishes pictures as a camera's node does, until it is closed."""

    def __init__(self, domain: int, compressed: bool) -> None:
        self._network = Network(domain, "127.0.0.1")
        kind = CompressedImage if compressed else Image
        self._publisher = self._network.publisher("/camera/image", kind)
        self._compressed, self._end = compressed, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._end.wait(0.03):
            self._publisher.send(self.message(number))
            number += 1

    def message(self, number: int) -> CompressedImage | Image:
        header, image = Header(Time(100 + number, 500), "optical"), picture(number)
        if not self._compressed:
            flat = np.ascontiguousarray(image[:, :, ::-1]).tobytes()
            return Image(header, HIGH, WIDE, "bgr8", 0, 3 * WIDE, list(flat))
        coded = io.BytesIO()
        Pictures.fromarray(image).save(coded, "PNG")
        return CompressedImage(header, "rgb8; png compressed", list(coded.getvalue()))

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._network.close()


def camera(domain: int, width: int = WIDE, **more: Any) -> Camera:
    options = {"topic": "/camera/image", "domain": domain, "width": width, "height": HIGH, "rate_hz": 30.0, **more}
    return load("ros2_camera", options, cell=CELL, fixture=FIXTURE)


@pytest.mark.parametrize("compressed", [True, False], ids=["compressed", "raw"])
def test_pictures_are_those_that_were_published_with_the_times_of_both_clocks(compressed: bool) -> None:
    domain = own_domain("pictures")
    node, made = Node(domain, compressed), camera(domain, compressed=compressed)
    try:
        made.connect(CLOCK.now_ns())
        seen = []
        while len(seen) < 6:
            if (frame := made.grab(CLOCK.now_ns())) is not None:
                seen.append(frame)
        for frame in seen:
            number = round((frame.device_time - 0.0005) / 1e3) - 100
            np.testing.assert_array_equal(frame.image, picture(number))
            assert (frame.domain, frame.counted) == ("ros", False) and abs(CLOCK.now_ns() - frame.host_ns) < 60e9
        assert [frame.number for frame in seen] == sorted({frame.number for frame in seen})
    finally:
        made.close()
        node.close()


def test_a_camera_of_another_size_and_one_that_nobody_publishes_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = own_domain("pictures of another size")
    with monkeypatch.context() as patched:
        patched.setattr("labctl.drivers.ros2.camera.FOUND_S", 0.5)
        alone = camera(domain)
        with pytest.raises(DeviceLost, match="nobody publishes CompressedImage on /camera/image"):
            alone.connect(CLOCK.now_ns())
        alone.close()
    node, made = Node(domain, True), camera(domain, width=32)
    try:
        with pytest.raises(DeviceRefused, match="it gives pictures of 64 x 48, the cell asks for 32 x 48"):
            made.connect(CLOCK.now_ns())
    finally:
        made.close()
        node.close()
