"""A 2F-85 is activated in the order that its manual gives: reset first, where it has been active before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.robots.interleaved import after_the_first_read

from labctl.drivers.robotiq.gripper import Registers, RobotiqGripper
from labctl.drivers.robotiq.scales import Scale
from labctl.errors import DeviceRefused

SCALE = Scale(speed=128, force=64, open_at=3, closed_at=228)
RESET = Registers(activation=False, state=0, object=0, fault=7, position=3)
RELEASED = Registers(activation=True, state=0, object=3, fault=15, position=3)  # an automatic release is over
ASKED = Registers(activation=True, state=0, object=0, fault=7, position=3)  # it has not begun to activate yet
ACTIVE = Registers(activation=True, state=3, object=3, fault=0, position=3)


class Line:
    """A gripper that needs its activation bit to rise."""

    period_s = 10.0

    def __init__(self, seen: Registers | None) -> None:
        self.seen, self.written, self.went = seen, list[bool](), list[int]()
        self.halts = 0

    def open(self) -> None: ...
    def close(self) -> None: ...
    def halt(self) -> None:
        self.halts += 1

    def go(self, position: int, speed: int, force: int) -> None:
        self.went.append(position)

    def read(self) -> Registers | None:
        return self.seen

    def activate(self, on: bool) -> None:
        self.written.append(on)
        rises = self.seen is None or not self.seen.activation
        self.seen = (replace(ACTIVE) if rises else self.seen) if on else RESET


@pytest.mark.parametrize(("seen", "written"), [(RESET, [True]), (RELEASED, [False, True])], ids=["new", "released"])
def test_a_gripper_is_reset_before_it_is_activated_if_it_was_active(seen: Registers, written: list[bool]):
    line = Line(seen)
    gripper = RobotiqGripper(line, SCALE)
    gripper._look()
    with pytest.raises(DeviceRefused, match="acknowledge to activate it"):
        gripper.recover()
    for _ in range(4):
        gripper._visit()
    assert line.written == written
    assert gripper.status().mode == "idle"
    gripper.recover()


def test_a_gripper_that_is_slow_to_begin_is_not_reset_meanwhile() -> None:
    line = Line(ASKED)
    gripper = RobotiqGripper(line, SCALE)
    gripper._look()
    with pytest.raises(DeviceRefused):
        gripper.recover()
    for _ in range(4):
        gripper._visit()
    assert line.written == [True] * 4


def recovered(gripper: RobotiqGripper) -> None:
    """A person's word, and all that follows from it."""
    with pytest.raises(DeviceRefused):
        gripper.recover()
    for _ in range(4):
        gripper._visit()
    gripper.recover()


def test_what_is_asked_for_before_and_in_a_fault_moves_nothing_once_it_is_acknowledged() -> None:
    line = Line(ACTIVE)
    gripper = RobotiqGripper(line, SCALE)
    gripper.target(0.01)
    line.seen = RELEASED
    gripper._look()
    gripper.target(0.02)
    recovered(gripper)
    assert not line.went
    gripper.target(0.02)
    gripper._visit()
    assert line.went == [SCALE.position(0.02)]


def test_the_same_target_as_before_the_fault_is_given_once_it_is_asked_for_again() -> None:
    """A reset takes back the order to go there, whatever was written before."""
    line = Line(ACTIVE)
    gripper = RobotiqGripper(line, SCALE)
    gripper.target(0.02)
    gripper._visit()
    line.seen = RELEASED
    gripper._look()
    recovered(gripper)
    gripper.target(0.02)
    gripper._visit()
    assert line.went == [SCALE.position(0.02)] * 2


def test_a_stop_between_two_looks_at_a_target_is_a_stop_and_no_fault() -> None:
    """The worker saw a target, and then read none: a lost gripper, with a fault of its driver for a reason."""
    line = Line(ACTIVE)
    gripper = RobotiqGripper(line, SCALE)
    gripper.target(0.02)
    with after_the_first_read(gripper._work, "asked", gripper.stop):
        gripper._visit()
    gripper._visit()
    assert gripper._work.asked.opening_m is None and gripper.status().mode == "idle"


def test_a_gripper_that_is_stopped_before_it_is_activated_is_not_activated() -> None:
    line = Line(RELEASED)
    gripper = RobotiqGripper(line, SCALE)
    gripper._look()
    with pytest.raises(DeviceRefused):
        gripper.recover()
    gripper.stop()
    for _ in range(3):
        gripper._visit()
    assert not line.written
    recovered(gripper)


def test_fingers_that_go_on_after_a_fault_in_which_nothing_was_reset_can_be_stopped() -> None:
    """What was written was forgotten, and a stop ends only what was written."""
    line = Line(ACTIVE)
    gripper = RobotiqGripper(line, SCALE)
    gripper.target(0.02)
    gripper._visit()
    line.seen = None  # an emergency stop
    gripper._look()
    with pytest.raises(DeviceRefused, match="emergency stop"):
        gripper.recover()
    line.seen = ACTIVE
    gripper._visit()
    gripper.recover()
    gripper.stop()
    gripper._visit()
    assert line.halts == 1 and not line.written
