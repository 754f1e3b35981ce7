"""A gamepad by SDL: sticks are the twist, the right bumper the clutch, A and B open and close the gripper.

May not: open a window or make a sound (SDL is told so before it starts), or read a pad whose layout SDL does not know.

Which raw axis is a trigger and which button a bumper differs from pad to pad and from one kernel driver to the next:
SDL's game controller layer has a table of them, and names what it reads by an Xbox pad's names.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from labctl.clock import Clock, MonotonicClock
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import GamepadOptions
from labctl.errors import DeviceLost, MissingExtra

FULL = 32767.0  # SDL: sticks from -32768 to 32767, triggers from 0 (up) to 32767 (pressed)
# What labctl reads, by SDL's own name in a mapping, and by the number of its enumeration. A trigger without a way of
# its own (a Switch pad's) is a button in the mapping, and reads 0 or full.
STICKS = {"leftx": 0, "lefty": 1, "rightx": 2, "righty": 3, "lefttrigger": 4, "righttrigger": 5}
BUTTONS = {"a": 0, "b": 1, "rightshoulder": 10, "start": 6}
WORDS = {
    "leftx": "left stick x",
    "lefty": "left stick y",
    "rightx": "right stick x",
    "righty": "right stick y",
    "lefttrigger": "left trigger",
    "righttrigger": "right trigger",
}
WAIT_MS = 10


class Gamepad:
    """See the module. `number` counts SDL's joysticks from 0."""

    leader = False
    quiet = False

    def __init__(self, number: int, clock: Clock) -> None:
        self._number = number
        self._clock = clock
        self._pad: Any = None
        self._grip: float | None = None

    def open(self) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
        os.environ.setdefault("SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", "1")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
            from pygame._sdl2 import controller
        except ModuleNotFoundError as error:
            raise MissingExtra("teleop", "a gamepad") from error
        pygame.display.init()
        pygame.joystick.init()
        controller.init()
        there = pygame.joystick.get_count()
        if self._number >= there:
            raise DeviceLost(f"gamepad {self._number} is not there; SDL sees {there}; plug it in, or correct [teleop]")
        if not controller.is_controller(self._number):
            stick = pygame.joystick.Joystick(self._number)
            raise DeviceLost(
                f"gamepad {self._number} ({stick.get_name()}, {stick.get_guid()}) has no layout in SDL's table; take "
                "another number, or give its layout in SDL_GAMECONTROLLERCONFIG"
            )
        pad = controller.Controller(self._number)
        known = pad.get_mapping()
        lacking = [name for name in (*STICKS, *BUTTONS) if name not in known]
        if lacking:
            pad.quit()
            raise DeviceLost(f"gamepad {self._number} ({pad.name}) has no {', '.join(lacking)}, by SDL's table")
        self._pad, self._grip = pad, None

    def poll(self) -> Reading | None:
        import pygame

        pygame.time.wait(WAIT_MS)
        pygame.event.clear()  # reads all pads, and lets no queue of unread events grow
        pad = self._pad
        if not pad.attached():
            raise DeviceLost("it was unplugged")
        at = {name: max(pad.get_axis(number) / FULL, -1.0) for name, number in STICKS.items()}
        down = {name: bool(pad.get_button(number)) for name, number in BUTTONS.items()}
        pressed = 1.0 if down["a"] else 0.0 if down["b"] else self._grip
        self._grip = pressed if down["rightshoulder"] else None  # a press of the next hold is a first one again
        lift = at["righttrigger"] - at["lefttrigger"]
        twist = np.array([-at["lefty"], -at["leftx"], lift, 0.0, at["righty"], -at["rightx"]])
        parts = {WORDS[name]: value for name, value in at.items()}
        return Reading(
            self._clock.now_ns(),
            axes=twist,
            engaged=down["rightshoulder"],
            grip=self._grip,
            done=down["start"],
            parts=parts,
        )

    def close(self) -> None:
        if self._pad is not None:
            self._pad.quit()
            self._pad = None


def build(options: GamepadOptions) -> Gamepad:
    """A gamepad."""
    return Gamepad(options.number, MonotonicClock())
