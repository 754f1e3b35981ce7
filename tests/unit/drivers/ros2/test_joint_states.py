"""Whose joints a robot, a gripper and a camera behind ROS 2 take for theirs, and by which clock: messages alone, and
times that the test gives.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="labctl[ros2]")
from support.robots.cells import cell_named

from labctl.clock import MILLISECOND, SECOND
from labctl.devices import RobotStatus
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.common.states import States
from labctl.drivers.ros2.camera import Topic
from labctl.drivers.ros2.gripper import Ros2Gripper
from labctl.drivers.ros2.joint_states import Joints, JointStates
from labctl.drivers.ros2.messages import Float64, Header, Image, JointState, time_of
from labctl.drivers.ros2.options import Ros2CameraOptions, Ros2GripperOptions, Ros2Options
from labctl.drivers.ros2.publishers import HANDED_OVER_NS, TOLD_NS, OnePublisher
from labctl.drivers.ros2.robot import Ros2Link
from labctl.drivers.ros2.speed_scaling import SILENT_NS, SpeedScaling
from labctl.errors import DeviceRefused

CELL = cell_named("emulated_ros2")
ROBOT, OTHER = 7, 8
EVERY = 10 * MILLISECOND
START = 1_000 * SECOND


class Times:
    """A clock that the test moves on."""

    def __init__(self) -> None:
        self.now = START

    def now_ns(self) -> int:
        return self.now


def by(publisher: int, message: Any) -> Any:
    """The message as it comes over DDS from that publisher."""
    message.sample_info = SimpleNamespace(publication_handle=publisher)
    return message


def joints(q: np.ndarray, stamp_ns: int, dq: list[float] | None = None) -> JointState:
    return JointState(Header(time_of(stamp_ns)), list(UR5E.joint_names), q.tolist(), dq or [])


def test_a_publisher_that_is_started_anew_takes_the_place_of_the_one_before() -> None:
    """However soon it is back: its messages are taken once the one before is silent, and nothing is said of two."""
    for pause_ns in (EVERY, HANDED_OVER_NS, 2 * SECOND):
        one = OnePublisher()
        assert all(one.takes(ROBOT, START + k * EVERY) for k in range(100))
        again = START + 99 * EVERY + pause_ns
        taken = [one.takes(OTHER, again + k * EVERY) for k in range(100)]
        assert taken[-1] and not one.several(again + 99 * EVERY), pause_ns
        assert sum(not each for each in taken) * EVERY <= HANDED_OVER_NS


@pytest.mark.parametrize("hz", [100.0, 10.0, 2.0, 1.0])
@pytest.mark.parametrize("other_hz", [100.0, 10.0, 1.0])
def test_two_publishers_are_two_at_any_rate_until_one_has_left(hz: float, other_hz: float) -> None:
    one = OnePublisher()
    came = [(k / hz, ROBOT) for k in range(int(6 * hz))] + [
        (k / other_hz + 3e-3, OTHER) for k in range(int(6 * other_hz))
    ]
    for s, who in sorted(came):
        now = START + round(s * SECOND)
        one.takes(who, now)
        assert one.several(now) or s <= 1 / hz + 1 / other_hz
    assert not one.several(now + TOLD_NS)


def a_link(**more: Any) -> tuple[Ros2Link, States, Times]:
    """One that was opened, without a network; `_commands.braked` counts how often it was told to brake."""
    link = Ros2Link(UR5E, Ros2Options(**more), CELL.robot)
    states, times = States(lambda: 0.0), Times()
    braked = list[int]()
    commands: Any = SimpleNamespace(
        readers=lambda: 1,
        problem=lambda: RobotStatus("idle"),
        go=lambda *_: None,
        forget=lambda: None,
        brake=lambda *_: braked.append(1),
        braked=braked,
    )
    link._states, link._clock, link._commands = states, times, commands  # type: ignore[assignment]
    return link, states, times


def test_a_robot_of_which_two_nodes_speak_is_not_led_and_not_recorded_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The arm leaped by 0.6 rad to where a second publisher said that it was, and labctl said "idle"."""
    link, states, times = a_link()
    commands: Any = link._commands
    there, away = UR5E.home, UR5E.home + np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])
    for k in range(60):
        times.now += EVERY // 2
        who = ROBOT if k < 20 or k % 2 else OTHER
        link._read(by(who, joints(there if who == ROBOT else away, times.now)))
        assert (link.start_q() == there).all()
        if k == 19:
            link.send_setpoint(there, np.zeros(6))
        if k > 21:
            status = link.health()
            assert status.mode == "fault" and "two nodes say how joint shoulder_pan_joint stands" in status.reason
            assert "ros2 topic info -v /joint_states" in status.reason
            with pytest.raises(DeviceRefused, match="two nodes say"):
                link.send_setpoint(there, np.zeros(6))
            assert commands.braked.pop(), "it does not stop dead at its last point"
    assert all((batch.values[:, :6] == there).all() for batch in states.drain())
    for _ in range(400):  # the other has left
        times.now += EVERY
        link._read(by(ROBOT, joints(there, times.now)))
    assert link.recover() and link.health().mode == "idle"


def test_a_robot_that_takes_commands_and_stands_is_a_fault_until_a_person_has_looked() -> None:
    """An inactive controller hears them all: whole episodes were played on an arm that stood, and scored."""
    link, _, times = a_link()
    led, refused = 0, 0
    for _ in range(2):
        for k in range(100):
            times.now += 2 * EVERY
            link._read(by(ROBOT, joints(UR5E.home, times.now)))
            assert link.health().mode == "idle"
            led += 1
            try:
                link.send_setpoint(UR5E.home + 0.001 * k * np.eye(6)[0], np.zeros(6))
            except DeviceRefused as error:
                refused += 1
                assert "has not moved" in str(error) and link.health().reason == str(error)
                break
        assert link.health().mode == "fault" and "ros2 control list_controllers" in link.health().reason
        assert link.recover()
    assert refused == 2 and led < 160


def test_a_robot_that_its_slider_holds_is_not_one_that_stands() -> None:
    """It says so itself."""
    link, _, times = a_link(scaling_topic="/s")
    assert link._scaling is not None
    link._scaling._clock = times  # type: ignore[assignment]
    for k in range(300):
        times.now += 2 * EVERY
        link._read(by(ROBOT, joints(UR5E.home, times.now)))
        link._scaling.read(Float64(0.0))
        link.send_setpoint(UR5E.home + 0.01 * min(k, 10) * np.eye(6)[0], np.zeros(6))
    assert "at 0 % of its speed" in link.health().reason


def test_two_nodes_of_other_joints_are_one_robot() -> None:
    link, _, times = a_link()
    for _ in range(20):
        times.now += EVERY
        link._read(by(ROBOT, joints(UR5E.home, times.now)))
        link._read(by(OTHER, JointState(Header(), ["finger_joint"], [0.1])))
    assert link.health().mode == "idle"


def test_fingers_of_which_two_nodes_speak_are_sent_nowhere() -> None:
    gripper, sent = Ros2Gripper(Ros2GripperOptions(), "127.0.0.1"), list[Any]()
    gripper._publisher = SimpleNamespace(send=sent.append, readers=lambda: 1)  # type: ignore[assignment]
    for _ in range(3):
        gripper._read(by(ROBOT, JointState(Header(), ["finger_joint"], [0.4])))
        gripper._read(by(OTHER, JointState(Header(), ["finger_joint"], [0.8])))
    assert gripper.opening() == pytest.approx(0.0425)
    gripper.target(0.01)
    gripper._visit()
    assert "two nodes say how joint finger_joint stands" in gripper.status().reason and not sent


def test_pictures_of_two_cameras_on_one_topic_are_refused() -> None:
    topic = Topic(Ros2CameraOptions(topic="/c", compressed=False, width=2, height=1, rate_hz=30))
    for who in (ROBOT, OTHER, ROBOT):
        topic._heard(by(who, Image(Header(), 1, 2, "rgb8", 0, 6, [0] * 6)))
    with pytest.raises(DeviceRefused, match="two nodes publish pictures on /c"):
        topic.read()


def heard(states: JointStates, stamp_ns: Any, way: Any, seconds: float = 2.0, speeds: bool = False) -> list[Joints]:
    """All that is taken of messages at 100 Hz; stamp_ns and way: of the time in s."""
    found = []
    for k in range(round(seconds * 100)):
        s = k / 100
        q = UR5E.home + way(s) * np.eye(6)[0]
        now = START + round(s * SECOND)
        found.append(states.read(joints(q, stamp_ns(s), [0.0] * 6 if speeds else None), now))
    return [joints for joints in found if joints is not None]


@pytest.mark.parametrize("stamp_ns", [lambda _: 0, lambda _: 5 * SECOND], ids=["zero", "standing"])
def test_stamps_that_do_not_go_on_are_replaced_by_the_times_of_receipt(stamp_ns: Any) -> None:
    """A robot that stood still was "near where it was sent" for ever, and one that moved stood, by its speeds."""
    states = JointStates("/joint_states", UR5E.joint_names, SECOND // 2)
    taken = heard(states, stamp_ns, lambda s: s)
    assert states.stamped is False and not states.wrong(START + 2 * SECOND)
    late = taken[50:]
    assert [one.device_s for one in late] == [one.host_ns / SECOND for one in late]
    assert all(one.dq[0] == pytest.approx(1.0) for one in late)


def test_stamps_that_go_on_are_the_robots_clock_and_a_fault_once_they_stand() -> None:
    states = JointStates("/joint_states", UR5E.joint_names, SECOND // 2)
    taken = heard(states, lambda s: round((3 + min(s, 1.0)) * SECOND), lambda s: min(s, 1.0))
    assert states.stamped
    assert [one.device_s for one in taken[:101]] == pytest.approx([3 + k / 100 for k in range(101)])
    assert all(one.dq[0] == pytest.approx(1.0) for one in taken[1:101])
    assert "stamps on /joint_states have stood still for 1.0 s" in states.wrong(START + 2 * SECOND)
    states.read(joints(UR5E.home, 5 * SECOND), START + 2 * SECOND)
    assert not states.wrong(START + 2 * SECOND)


def test_speeds_by_the_times_of_receipt_bear_messages_that_come_in_bunches() -> None:
    states = JointStates("/joint_states", UR5E.joint_names, SECOND // 2)
    heard(states, lambda _: 0, lambda _: 0.0, 1.0)
    speeds = []
    for k in range(100):
        bunch = k - k % 4
        now = START + SECOND + (bunch + 4) * EVERY + (k % 4) * 20_000
        taken = states.read(joints(UR5E.home + k / 100 * np.eye(6)[0], 0), now)
        assert taken is not None
        speeds.append(float(taken.dq[0]))
    assert max(speeds) < 2.0 and min(speeds[20:]) > 0.4


def scaled(full: float = 100.0) -> tuple[SpeedScaling, Times]:
    made, times = SpeedScaling("/s", full), Times()
    made._clock = times  # type: ignore[assignment]
    return made, times


def test_a_speed_that_is_not_said_any_more_is_a_fault() -> None:
    """The last value was recorded as if it had been said again: full speed, whatever the slider stood at."""
    scaling, times = scaled()
    assert not scaling.heard() and not scaling.wrong()
    scaling.read(Float64(100.0))
    for _ in range(SILENT_NS // (20 * MILLISECOND)):
        assert not scaling.wrong()
        times.now += 20 * MILLISECOND
    times.now += 20 * MILLISECOND
    assert "nothing on /s for 2.0 s" in scaling.wrong()
    scaling.read(Float64(100.0))
    assert not scaling.wrong()


def test_a_speed_that_is_no_number_says_nothing() -> None:
    scaling, _ = scaled()
    scaling.read(Float64(100.0))
    scaling.read(Float64(float("nan")))
    assert scaling.share == 1.0 and not scaling.wrong()


def test_a_speed_above_full_is_another_unit() -> None:
    """At a robot that says 100, `scaling_full = 1` saw no slider above 1 %."""
    scaling, _ = scaled(1.0)
    scaling.read(Float64(50.0))
    assert "/s says 50, more than `scaling_full` = 1" in scaling.misread() == scaling.wrong()


def test_two_nodes_that_say_how_fast_the_robot_goes_are_a_fault() -> None:
    """Each value of the one at full speed ended what the other had said."""
    scaling, _ = scaled()
    for who, says in ((ROBOT, 50.0), (OTHER, 100.0), (ROBOT, 50.0)):
        scaling.read(by(who, Float64(says)))
    assert scaling.share == 0.5 and "two nodes say how fast the robot goes on /s" in scaling.wrong()
