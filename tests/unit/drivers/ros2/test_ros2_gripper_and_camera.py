"""What a gripper and a camera behind ROS 2 make of what is published, told by messages alone: no network."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="labctl[ros2]")

from labctl.devices import Frame
from labctl.drivers.ros2 import gripper as module
from labctl.drivers.ros2.camera import Topic, _raw
from labctl.drivers.ros2.gripper import Ros2Gripper
from labctl.drivers.ros2.messages import Float64MultiArray, Header, Image, JointState, duration
from labctl.drivers.ros2.options import Ros2CameraOptions, Ros2GripperOptions
from labctl.errors import DeviceLost, DeviceRefused

SILENT = "nobody says on"


def joint(at: float) -> JointState:
    return JointState(Header(), ["finger_joint"], [at])


class Domain:
    """Gives every network the messages of `says` and keeps what is sent; counts the networks that are open."""

    shown = "ROS 2 domain 0"

    def __init__(self) -> None:
        self.says: list[JointState] = []
        self.sent: list[Float64MultiArray] = []
        self.open, self.listen = 0, 1

    def __call__(self, *_: object) -> Domain:
        self.open += 1
        return self

    def publisher(self, *_: object) -> Any:
        return SimpleNamespace(send=self.sent.append, readers=lambda: self.listen)

    def subscribe(self, topic: str, kind: type, heard: Any) -> None:
        for message in self.says:
            heard(message)

    def close(self) -> None:
        self.open -= 1


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Domain:
    made = Domain()
    monkeypatch.setattr(module, "Network", made)
    monkeypatch.setattr(module, "FOUND_S", 0.0)
    return made


@pytest.fixture
def gripper(domain: Domain) -> Iterator[Ros2Gripper]:
    domain.says = [joint(0.4)]
    made = Ros2Gripper(Ros2GripperOptions(), "127.0.0.1")
    made._work.start = lambda: None  # type: ignore[method-assign]  # `_visit` is called by hand
    made.connect()
    yield made
    made.close()


def lost(gripper: Ros2Gripper) -> None:
    """The joint has been silent for too long."""
    gripper._silence.age_ns = lambda *_: gripper._silence_ns + 1  # type: ignore[method-assign]
    with pytest.raises(DeviceLost) as raised:
        gripper._visit()
    gripper._work.sound = module.RobotStatus("lost", str(raised.value))
    del gripper._silence.age_ns


def test_a_joint_whose_hardware_says_no_number_yet_is_not_taken_for_closed(gripper: Ros2Gripper) -> None:
    before = gripper.opening()
    gripper._read(joint(float("nan")))
    assert gripper.opening() == before == pytest.approx(0.0425)


def test_a_gripper_that_was_lost_is_back_only_once_its_joint_is_heard_again(
    gripper: Ros2Gripper, domain: Domain
) -> None:
    lost(gripper)
    domain.says = []
    with pytest.raises(DeviceRefused, match=SILENT):
        gripper.recover()
    domain.says = [joint(0.8)]
    gripper.recover()
    assert gripper.status().mode == "idle" and gripper.opening() == 0.0


def test_to_connect_anew_moves_nothing(gripper: Ros2Gripper, domain: Domain) -> None:
    gripper.target(0.08)
    lost(gripper)
    gripper.target(0.02)
    gripper.recover()
    gripper._visit()
    assert not domain.sent


def test_a_target_that_comes_while_the_one_before_is_sent_is_sent_too(gripper: Ros2Gripper, domain: Domain) -> None:
    """It was taken for sent: the worker looked again at what is asked for, and not at what it had sent."""
    gripper.target(0.08)
    send = gripper._send

    def meanwhile(opening_m: float) -> None:
        gripper._send = send  # type: ignore[method-assign]
        send(opening_m)
        gripper.target(0.02)

    gripper._send = meanwhile  # type: ignore[method-assign]
    gripper._visit()
    gripper._visit()
    assert len(domain.sent) == 2 and domain.sent[0] != domain.sent[1]


def test_a_target_from_before_its_controller_went_is_not_sent_when_it_is_back(
    gripper: Ros2Gripper, domain: Domain
) -> None:
    gripper.target(0.08)
    gripper._visit()
    domain.listen = 0
    gripper._visit()
    gripper.target(0.02)
    domain.listen = 1
    gripper._visit()
    assert gripper.status().mode in ("idle", "moving") and len(domain.sent) == 1
    gripper.target(0.08)
    gripper._visit()
    assert len(domain.sent) == 2, "what is asked for anew is sent, though the one before was the same"


def test_a_stop_while_its_controller_is_away_is_sent_when_it_is_back(gripper: Ros2Gripper, domain: Domain) -> None:
    """The controller may go on to its last target; a gripper that was sent nowhere is sent nowhere by a stop."""
    for sent in ([], [0.2, 0.4]):  # the target, and where the fingers stand
        domain.listen = 0
        gripper._visit()
        gripper.stop()
        domain.listen = 1
        gripper._visit()
        gripper._visit()
        assert [at for message in domain.sent for at in message.data] == pytest.approx(sent)
        if not sent:
            gripper.target(0.06375)
            gripper._visit()


def test_a_gripper_that_cannot_be_connected_leaves_no_network_open(domain: Domain) -> None:
    made = Ros2Gripper(Ros2GripperOptions(), "127.0.0.1")
    with pytest.raises(DeviceLost, match=SILENT):
        made.connect()
    domain.says = [joint(0.4)]
    made._silence.age_ns = lambda *_: made._silence_ns + 1  # type: ignore[method-assign]
    with pytest.raises(DeviceLost, match="nothing of the joint"):
        made.connect()
    assert domain.open == 0


def picture(*, step: int = 6, data: int = 6) -> Image:
    return Image(Header(), 1, 2, "rgb8", 0, step, np.arange(data, dtype=np.uint8).tolist())


def test_a_frame_keeps_its_number_whatever_comes_while_it_is_read() -> None:
    """A number that is counted back from the newest is another's, if the next comes between: a gap that is none."""
    topic = Topic(Ros2CameraOptions(topic="/c", compressed=False, width=2, height=1, rate_hz=30))
    read: list[Frame | None] = []

    class Read(queue.Queue[Any]):
        """The frame before is read while the next is put in."""

        def put(self, item: Any, *_: Any, **__: Any) -> None:
            if not self.empty():
                read.append(topic.read())
            super().put(item)

    topic._came = Read()
    for _ in range(3):
        topic._heard(picture())
    read.append(topic.read())
    assert [frame and frame.number for frame in read] == [1, 2, 3]


def test_pictures_that_are_all_read_at_the_moment_that_there_are_too_many_are_no_fault() -> None:
    """The oldest was to go, and there was none: the thread that hears the camera ended by that."""
    topic = Topic(Ros2CameraOptions(topic="/c", compressed=False, width=2, height=1, rate_hz=30))

    class Emptied(queue.Queue[Any]):
        def full(self) -> bool:
            self.queue.clear()
            return True

    topic._came = Emptied()
    topic._heard(picture())
    assert topic.read() is not None


@pytest.mark.parametrize("message", [picture(data=5), picture(step=5, data=5), picture(data=7)])
def test_a_picture_that_is_not_as_long_as_it_says_is_refused_in_words(message: Image) -> None:
    with pytest.raises(DeviceRefused, match=r"2 x 1 .* bytes"):
        _raw(message)
    assert _raw(picture()).tolist() == [[[0, 1, 2], [3, 4, 5]]]


@pytest.mark.parametrize("seconds", [0.0, 0.04, 1.25, 0.9999999999, 2.9999999996])
def test_no_duration_has_a_whole_second_of_nanoseconds(seconds: float) -> None:
    made = duration(seconds)
    assert made.nanosec < 10**9 and made.sec + made.nanosec / 1e9 == pytest.approx(seconds, abs=1e-9)
