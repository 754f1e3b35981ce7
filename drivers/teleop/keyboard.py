"""A keyboard in a terminal: W S A D R F move, Q E turn, G toggles the gripper; a key counts for as long as it repeats.

May not: need a window system; it reads the terminal named in the cell, which nobody else may be reading.

A terminal sends no key-up. A key moves the arm while it keeps repeating, and for 0.25 s: the hand has let go when
nothing came for 0.7 s, in which a key's repeat begins. So a keyboard is for practice and trouble, not for a reference.
"""

from __future__ import annotations

import os
import select
import termios
import tty
from pathlib import Path
from typing import Any

import numpy as np

from labctl.clock import Clock, MonotonicClock
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import KeyboardOptions
from labctl.errors import DeviceLost

HELD_NS = 250_000_000
ENGAGED_NS = 700_000_000  # a key's repeat begins after so long at most: until then the hand has not let go
WAIT_S = 0.02
MOVES = {
    "w": (0, 1.0),
    "s": (0, -1.0),
    "a": (1, 1.0),
    "d": (1, -1.0),
    "r": (2, 1.0),
    "f": (2, -1.0),
    "q": (5, 1.0),
    "e": (5, -1.0),
}
GRIP, DONE = "g", "\r\n"
NOBODY_NAMED = (
    "no terminal is named for it: terminal in [teleop.options] of the cell (of a second hand: in "
    "[second_teleop.options]), or, of a first hand alone, labctl run --hand-terminal /dev/pts/N"
)


class Keyboard:
    """See the module. `terminal` is a path such as "/dev/pts/3" (type `tty` in that terminal); None: none was named."""

    leader = False
    quiet = False
    clutch = "hold a key: W S A D R F Q E or G"
    momentary = True  # whoever starts the trial at the console types no key here meanwhile

    def __init__(self, terminal: Path | None, clock: Clock) -> None:
        self._terminal = terminal
        self._clock = clock
        self._file = -1
        self._before: Any = None
        self._held: dict[str, int] = {}
        self._presses = 0

    def open(self) -> None:
        if self._terminal is None:
            raise DeviceLost(NOBODY_NAMED)
        try:
            self._file = os.open(self._terminal, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        except (OSError, termios.error) as error:
            raise DeviceLost(f"{self._terminal} is no terminal that can be read ({error})") from error
        self._held = {}

    def poll(self) -> Reading | None:
        try:
            ready, _, _ = select.select([self._file], [], [], WAIT_S)
            typed = os.read(self._file, 64).decode("latin-1") if ready else None
        except (OSError, ValueError) as error:
            raise DeviceLost(f"its terminal is gone ({error})") from error
        if typed == "":
            raise DeviceLost("its terminal was closed")
        now_ns, done = self._clock.now_ns(), False
        for key in (typed or "").lower():
            if key in MOVES or key == GRIP:
                self._held[key] = now_ns
            if key == GRIP:
                self._presses += 1
            done = done or key in DONE
        axes = np.zeros(6)
        for key, at_ns in self._held.items():
            if key in MOVES and now_ns - at_ns < HELD_NS:
                axis, way = MOVES[key]
                axes[axis] += way
        held = any(now_ns - at_ns < ENGAGED_NS for at_ns in self._held.values())
        return Reading(now_ns, axes=axes, engaged=held, presses=self._presses, done=done)

    def close(self) -> None:
        if self._file >= 0:
            if self._before is not None:
                try:
                    termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)
                except (OSError, termios.error):
                    self._before = None  # the terminal is gone, and its settings with it
            os.close(self._file)
            self._file = -1


def build(options: KeyboardOptions) -> Keyboard:
    """A keyboard."""
    return Keyboard(None if options.terminal is None else Path(options.terminal), MonotonicClock())
