"""A gripper that was lost to one glitch of its line is there again on a person's word, and moves nothing by that."""

from __future__ import annotations

import socket
import threading

import pytest

from labctl.drivers.robotiq.gripper import Registers, RobotiqGripper
from labctl.drivers.robotiq.scales import Scale
from labctl.drivers.robotiq.socket import SocketWire
from labctl.errors import DeviceLost, DeviceRefused

WAIT_S = 60.0


class Line:
    """A serial line that can break; `went` is what it was asked for."""

    period_s = 0.001

    def __init__(self) -> None:
        self.broken = self.refuses = False
        self.went: list[int] = []
        self.reads, self.lost = threading.Event(), threading.Event()
        self.opened = self.closed = 0

    def open(self) -> None:
        if self.broken:
            raise DeviceLost("the line cannot be opened")
        self.opened += 1

    def read(self) -> Registers:
        if self.broken:
            self.lost.set()
            raise DeviceLost("no gripper answers")
        if self.refuses:
            raise DeviceRefused("the gripper refused")
        self.reads.set()
        return Registers(activation=True, state=3, object=3, fault=0, position=120)

    def go(self, position: int, speed: int, force: int) -> None:
        self.went.append(position)

    def halt(self) -> None: ...
    def activate(self, on: bool) -> None: ...

    def close(self) -> None:
        self.closed += 1


def test_one_glitch_is_over_when_a_person_says_so() -> None:
    line = Line()
    gripper = RobotiqGripper(line, Scale(speed=128, force=64, open_at=3, closed_at=228))
    gripper.connect()
    try:
        gripper.target(0.0)
        line.broken = True
        assert line.lost.wait(WAIT_S)
        gripper._work._thread.join(WAIT_S)
        assert gripper.status().mode == "lost"
        with pytest.raises(DeviceRefused, match="gripper: the line cannot be opened"):
            gripper.recover()
        assert gripper.status().mode == "lost"
        line.broken = False
        line.went.clear()
        line.reads.clear()
        gripper.recover()
        assert gripper.status().mode == "idle" and line.opened == 2
        for _ in range(3):
            line.reads.clear()
            assert line.reads.wait(WAIT_S)
        assert not line.went, "what was asked for before is forgotten"
        gripper.target(0.0)
        line.reads.clear()
        for _ in range(2):
            line.reads.clear()
            assert line.reads.wait(WAIT_S)
        assert line.went == [255]
    finally:
        gripper.close()


def test_a_gripper_that_refuses_to_be_read_leaves_its_line_closed() -> None:
    line = Line()
    line.refuses = True
    gripper = RobotiqGripper(line, Scale(speed=128, force=64, open_at=3, closed_at=228))
    with pytest.raises(DeviceRefused, match="the gripper refused"):
        gripper.connect()
    assert line.opened == line.closed == 1


def test_the_end_of_a_refusal_that_comes_late_is_not_taken_for_the_next_answer() -> None:
    ours, theirs = socket.socketpair()
    wire = SocketWire("127.0.0.1")
    wire._socket = ours
    try:
        theirs.sendall(b"?")
        with pytest.raises(DeviceRefused, match="did not understand"):
            wire.halt()
        theirs.sendall(b"\nACT 1\nSTA 3\nOBJ 3\nFLT 0\nPOS 120\n")
        assert wire.read() == Registers(activation=True, state=3, object=3, fault=0, position=120)
    finally:
        wire.close()
        theirs.close()
