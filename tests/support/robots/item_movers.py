"""What a person sees and does at a device, and policies that see the same: for campaigns whose arms really move items.

Both look at what a running campaign publishes, as its console does; neither knows a process of labctl from inside.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Observation
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.picker import CLEAR_M, HOVER_M, OPEN_M, Picker, Skill
from labctl.errors import StateError
from labctl.runtime.attach import Attachment
from support.robots.virtual_hand import CLUTCH, OPEN, SHUT

CLOCK = MonotonicClock()
LOOK_NS = SECOND // 50
GAIN = 1.6  # 1/s: the closer, the slower; more swings about the goal, since what is seen is some 0.2 s old
EXACT_M, ROUGH_M, NEAR_RAD = 0.006, 0.025, 0.05
MISSED_M = 0.02  # fingers that close so far hold nothing
BAND = 0.05  # of the cell's [teleop], so that a small wish is one
FAR_M = 0.1  # a plan whose arm is elsewhere is no plan

Arrays = dict[str, np.ndarray]
MoveTo = tuple[float, float, float, float]  # x y z yaw
Leg = tuple[MoveTo, bool, float]  # where to, whether the fingers are closed there, how near is there


class Eyes:
    """The newest observation of a running campaign, looked at fifty times a second in a thread; `see` is told of it."""

    def __init__(self, folder: Path, see: Callable[[Arrays], None] = lambda arrays: None) -> None:
        self._folder, self._see = folder, see
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.newest: Arrays = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(5)

    def _look(self) -> None:
        while not self._over.wait(LOOK_NS / SECOND):
            try:
                console = Attachment(self._folder, read_only=True)
            except StateError:
                continue  # not yet
            with closing(console):
                while console.alive() and not self._over.wait(LOOK_NS / SECOND):
                    for message in console.poll():
                        if message.kind == "obs":
                            self.newest = dict(message.arrays)
                            self._see(self.newest)


class Held(Protocol):
    """A device as the person has it in the hand: buttons, and six axes from -1 to 1."""

    def press(self, *down: int, up: tuple[int, ...] = ()) -> bool: ...
    def drive(self, axes: Sequence[float]) -> bool: ...


class Person:
    """Picks the nearest item and carries it over, by sticks and buttons alone. linear_m_s, angular_rad_s: what full
    deflection means in the cell. Call it with what there is to see.
    """

    def __init__(self, hand: Held, *, linear_m_s: float, angular_rad_s: float) -> None:
        self._hand = hand
        self._full = np.array([linear_m_s] * 3 + [angular_rad_s])
        self._way: list[Leg] = []
        self._held = False

    def __call__(self, seen: Arrays) -> None:
        if not self._hand.press(CLUTCH):  # nobody asks for a hand
            self._way, self._held = [], False
            return
        items = seen["items"]
        here = self._here(seen)
        holding = bool((items[:, 7] > 0.5).any())
        if holding != self._held or not self._way:
            self._held = holding
            self._way = self._carry(here, seen["target_tote"]) if holding else self._pick(here, items)
        if not self._way:
            self._hand.drive(np.zeros(6))
            return
        there, closed, near = self._way[0]
        missing = self._missing(here, there)
        opening = float(seen["gripper"][0])
        waits = opening > MISSED_M if closed and not holding else not closed and opening < OPEN_M - 0.005
        if np.abs(missing[:3]).max() < near and abs(missing[3]) < NEAR_RAD and not waits:
            self._way.pop(0)
        self._hand.press(SHUT if closed else OPEN, up=(OPEN if closed else SHUT,))
        self._push(GAIN * missing / self._full)

    def _push(self, share: np.ndarray) -> None:
        """Shares of full speed along x, y, z and about z, as the gamepad's sticks and triggers."""
        x, y, z, turn = np.sign(share) * (BAND + (1 - BAND) * np.minimum(np.abs(share), 1.0))
        self._hand.drive((x, y, z, 0.0, 0.0, turn))

    def _here(self, seen: Arrays) -> MoveTo:
        tcp = seen["tcp"]
        return float(tcp[0]), float(tcp[1]), float(tcp[2]), 2 * math.atan2(float(tcp[4]), float(tcp[3]))

    def _missing(self, here: MoveTo, there: MoveTo) -> np.ndarray:
        """(4,) m and rad; the two fingers are alike, so half a turn is none."""
        turn = math.remainder(there[3] - here[3], math.pi)
        return np.array([there[0] - here[0], there[1] - here[1], there[2] - here[2], turn])

    def _pick(self, here: MoveTo, items: np.ndarray) -> list[Leg]:
        free = items[(items[:, 4] > 0.5) & (items[:, 5] < 0.5) & (items[:, 6] < 0.5)]
        if not len(free):
            return []
        x, y, z, yaw = (float(value) for value in free[0, :4])
        above, there = (x, y, z + HOVER_M, yaw), (x, y, z, yaw)
        return [(above, False, ROUGH_M / 2), (there, False, EXACT_M), (there, True, ROUGH_M)]

    def _carry(self, here: MoveTo, tote: np.ndarray) -> list[Leg]:
        x, y, z = (float(value) for value in tote[:3])
        yaw = here[3]
        up, over, low = (here[0], here[1], CLEAR_M, yaw), (x, y, CLEAR_M, yaw), (x, y, z + HOVER_M, yaw)
        return [(up, True, ROUGH_M), (over, True, ROUGH_M), (low, True, ROUGH_M), (low, False, ROUGH_M)]


def picking(eyes: Eyes, skill: Skill, *, after_s: float = 0.0) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """An openpi server's policy that picks items, in joint positions `skill.dt_s` apart. It looks through `eyes`, and
    answers `after_s` late.
    """
    picker = Picker(skill, [1.0] * 4)
    due: list[np.ndarray] = []  # where the tool should be when the next question comes

    def act(question: dict[str, Any]) -> dict[str, Any]:
        q, seen = np.asarray(question["observation/joint_position"], float), eyes.newest
        if due and np.abs(due[0] - seen["tcp"][:3]).max() > FAR_M:
            picker.reset(0)
        chunk = picker.infer(Observation(CLOCK.now_ns(), seen))
        due[:] = [chunk.values[min(chunk.execute, len(chunk.values)) - 1, :3]]
        closed = 1.0 - chunk.gripper / OPEN_M
        CLOCK.sleep_until(CLOCK.now_ns() + round(after_s * SECOND))
        return {"actions": np.column_stack([FR3.inverse(chunk.values, q), closed]).astype(np.float32)}

    return act
