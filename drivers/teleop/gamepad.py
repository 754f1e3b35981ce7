"""A gamepad by SDL: sticks are the twist, the right bumper the clutch, A and B open and close the gripper.

May not: open a window or make a sound; SDL is told so before it starts.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import GamepadOptions

from labctl.clock import Clock, MonotonicClock
from labctl.errors import DeviceLost, MissingExtra

# SDL's axes: left stick x y, right stick x y, triggers -1 (up) … 1 (pressed).
LEFT_X, LEFT_Y, RIGHT_X, RIGHT_Y, TRIGGER_LEFT, TRIGGER_RIGHT = range(6)
A, B, CLUTCH, DONE = 0, 1, 5, 7
WAIT_MS = 10


class Gamepad:
    """See the module. `number` counts SDL's joysticks from 0."""

    leader = False
    quiet = False

    def __init__(self, number: int, clock: Clock) -> None:
        self._number = number
        self._clock = clock
        self._pad: Any = None
        self._grip = 1.0

    def open(self) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
        os.environ.setdefault("SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", "1")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ModuleNotFoundError as error:
            raise MissingExtra("teleop", "a gamepad") from error
        pygame.display.init()
        pygame.joystick.init()
        there = pygame.joystick.get_count()
        if self._number >= there:
            raise DeviceLost(f"gamepad {self._number} is not there; SDL sees {there}; plug it in, or correct [teleop]")
        self._pad = pygame.joystick.Joystick(self._number)
        self._grip = 1.0

    def poll(self) -> Reading | None:
        import pygame

        pygame.time.wait(WAIT_MS)
        for event in pygame.event.get([pygame.JOYDEVICEREMOVED]):
            if event.instance_id == self._pad.get_instance_id():
                raise DeviceLost("it was unplugged")
        pygame.event.pump()
        pad = self._pad
        axes = [pad.get_axis(i) if i < pad.get_numaxes() else 0.0 for i in range(6)]
        down = [bool(pad.get_button(i)) if i < pad.get_numbuttons() else False for i in (A, B, CLUTCH, DONE)]
        self._grip = 1.0 if down[0] else 0.0 if down[1] else self._grip
        lift = (axes[TRIGGER_RIGHT] - axes[TRIGGER_LEFT]) / 2
        twist = np.array([-axes[LEFT_Y], -axes[LEFT_X], lift, 0.0, axes[RIGHT_Y], -axes[RIGHT_X]])
        return Reading(self._clock.now_ns(), axes=twist, engaged=down[2], grip=self._grip, done=down[3])

    def close(self) -> None:
        if self._pad is not None:
            self._pad.quit()
            self._pad = None


def build(options: GamepadOptions) -> Gamepad:
    """A gamepad."""
    return Gamepad(options.number, MonotonicClock())
