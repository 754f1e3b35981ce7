"""What every device in a hand does, whichever it is, each through its real library without hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from support.robots.teleop_devices import Puck, Servos, VirtualPad

from labctl.clock import MonotonicClock
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gamepad import Gamepad
from labctl.drivers.teleop.gate import Caps, Device, axis_map
from labctl.drivers.teleop.gello import Gello
from labctl.drivers.teleop.pucks import PUCKS
from labctl.drivers.teleop.spacemouse import SpaceMouse
from labctl.testing.hand import HandConformance, HandRig

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
Q, OPENING_M = np.zeros(7), (0.0, 0.08)
TICKS_TO_CLOSE = 456  # 0.7 rad of a leader's trigger, pulled to the end
Says = Callable[[bool, bool], None]


@contextmanager
def puck() -> Iterator[tuple[Device, Says]]:
    """Its second button closes and opens in turn."""
    made, was = Puck(), [False]

    def says(engaged: bool, closed: bool) -> None:
        made.press(int(engaged))
        if closed != was[0]:
            made.press(int(engaged) | 2)
            made.press(int(engaged))
        was[0] = closed

    made.move(0, 0, 0, 0, 0, 0)
    yield SpaceMouse(lambda: (made, PUCKS[0x256F, 0xC635]), CLOCK), says


@contextmanager
def pad() -> Iterator[tuple[Device, Says]]:
    made, was = VirtualPad(), [False]

    def says(engaged: bool, closed: bool) -> None:
        made.press("rightshoulder", engaged)
        made.press("b", closed)
        made.press("a", was[0] and not closed)
        was[0] = closed

    yield Gamepad(made.number, CLOCK), says
    made.unplug()


@contextmanager
def leader() -> Iterator[tuple[Device, Says]]:
    """Clutch and gripper are one trigger."""
    servos = Servos(dict.fromkeys(range(1, 9), 0))

    def says(engaged: bool, closed: bool) -> None:
        servos.ticks[8] = 0 if not engaged else TICKS_TO_CLOSE if closed else TICKS_TO_CLOSE // 8

    yield Gello(servos.port, 57600, [*range(1, 8)], np.ones(7), np.zeros(7), (8, 0.0, 0.7), CLOCK), says
    servos.end()


class TestEveryDeviceInAHand(HandConformance):
    @pytest.fixture(params=[puck, pad, leader], ids=lambda device: device.__name__)
    def hand(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandRig]:
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
        with request.param() as (device, says):
            axes = axis_map(("x", "y", "z", "rx", "ry", "rz"))
            made = Teleop(device, "device", Caps(ramp_s=0.0, stale_s=0.3), axes=axes, opening_m=OPENING_M)
            made.load()
            rig = HandRig(made, says, Q, OPENING_M)
            rig.until(OPENING_M[1])
            yield rig
            made.close()
