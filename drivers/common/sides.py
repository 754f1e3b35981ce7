"""An observation of two robots as each of them would give it alone, and two robots' answers as one.

May not: know a driver, or decide what a robot does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from labctl.config.cell_schema import Cell
from labctl.devices import ActionChunk, Controller, Kind, Observation, Pace

PARTED = ("q", "dq", "gripper")  # the first robot's values, then the second's
LOOKS = ("links", "fingers", "stands")  # of a simulated robot, for cameras: the other one's say nothing of it


class Sides:
    """The two robots of a cell: their names, how many axes the arm and the hand of each has."""

    def __init__(self, cell: Cell) -> None:
        self.names = cell.names
        self._at = [np.cumsum([side.joints for side in cell.sides])[:-1], np.cumsum([s.hand for s in cell.sides])[:-1]]

    def arrays(self, seen: Mapping[str, np.ndarray], number: int) -> dict[str, np.ndarray]:
        """What robot 0 or 1 would have seen alone. Where it has nothing of its own by that name (what the cell has one
        of), it has the first one's.
        """
        own = f"{self.names[1]}."
        found = {key: value for key, value in seen.items() if not key.startswith(own)}
        if number:
            found = {key: value for key, value in found.items() if key not in LOOKS}
            found |= {key.removeprefix(own): value for key, value in seen.items() if key.startswith(own)}
        for key in PARTED:
            if key in seen:
                found[key] = np.split(np.ravel(seen[key]), self._at[key == "gripper"])[number]
        return found

    def observation(self, seen: Observation, number: int) -> Observation:
        """The same of a controller's observation; pictures are of both."""
        return Observation(seen.t_ns, self.arrays(seen.arrays, number), seen.instruction, seen.images)

    def together(self, chunks: Sequence[ActionChunk]) -> ActionChunk:
        """One answer for both, of two in one space and one step: the shorter one rests at its last action until the
        longer one is over. It is done when both are, and took as long as the slower one. Two of one length are kept
        whole, as of one robot: what follows the first `execute` is executed where some of those were past.
        """
        n = max(chunk.execute for chunk in chunks)
        rows = [np.asarray(chunk.values) for chunk in chunks]
        hands = [np.reshape(chunk.gripper, (len(chunk.gripper), -1)) for chunk in chunks]
        if len({(chunk.execute, len(chunk.values)) for chunk in chunks}) > 1:
            rows = [lengthened(part, chunk.execute, n) for part, chunk in zip(rows, chunks, strict=True)]
            hands = [lengthened(part, chunk.execute, n) for part, chunk in zip(hands, chunks, strict=True)]
        first = chunks[0]
        return ActionChunk(
            first.space,
            np.concatenate(rows, axis=1),
            np.concatenate(hands, axis=1),
            first.dt_s,
            n,
            max(chunk.delay_s for chunk in chunks),
            all(chunk.done for chunk in chunks),
            first.starts,
            server_s=_where_all_say(max, [chunk.server_s for chunk in chunks]),
            call_s=_where_all_say(max, [chunk.call_s for chunk in chunks]),
            gpu_memory_mb=_where_all_say(sum, [chunk.gpu_memory_mb for chunk in chunks]),
            about_m=first.about_m,
        )


def _where_all_say(joined: Callable[[Sequence[float]], float], told: Sequence[float]) -> float:
    """One number of what each server says; NaN where one of them says nothing."""
    return math.nan if any(math.isnan(one) for one in told) else joined(told)


def lengthened(rows: np.ndarray, execute: int, n: int) -> np.ndarray:
    """The executed rows, and the last of them again until there are n."""
    used = rows[:execute]
    return np.concatenate([used, np.repeat(used[-1:], n - len(used), axis=0)])


C = TypeVar("C", bound=Controller)


class TwoControllers:
    """A controller for each of two robots, as one of both. See `labctl.devices.Controller`, `Telling`; neither knows
    what the other does, and each waits for the other's longer answer.
    """

    def __init__(self, cell: Cell, both: tuple[Controller, Controller]) -> None:
        self._sides, self._both = Sides(cell), both
        self.kind: Kind = both[0].kind

    @property
    def pace(self) -> Pace:
        """The first one's, as it is now: much of it may be known only once it has loaded."""
        return self._both[0].pace

    @property
    def load_s(self) -> float:
        return sum(one.load_s for one in self._both)

    @property
    def warm_s(self) -> float:
        return sum(one.warm_s for one in self._both)

    @property
    def told(self) -> Mapping[str, float]:
        """What both need together, of all that both tell."""
        first, second = (getattr(one, "told", {}) for one in self._both)
        return {name: first[name] + second[name] for name in first if name in second}

    @property
    def software(self) -> Mapping[str, str]:
        """What either runs on; two versions of one name are both named, the first robot's first."""
        first, second = (getattr(one, "software", {}) for one in self._both)
        twice = [name for name in first if second.get(name, first[name]) != first[name]]
        return {**second, **first, **{name: f"{first[name]} + {second[name]}" for name in twice}}

    def load(self) -> None:
        """One after the other. Raises as each does."""
        for one in self._both:
            one.load()

    def warm(self, observation: Observation) -> None:
        """One after the other. Raises as each does."""
        for number, one in enumerate(self._both):
            one.warm(self._sides.observation(observation, number))

    def reset(self, seed: int) -> None:
        """Start an episode; each has a seed of its own."""
        for number, one in enumerate(self._both):
            one.reset(2 * seed + number)

    def infer(self, observation: Observation) -> ActionChunk:
        """What both want. Raises as each does."""
        return self._sides.together(
            [one.infer(self._sides.observation(observation, number)) for number, one in enumerate(self._both)]
        )

    def close(self) -> None:
        """Both, whatever becomes of one."""
        try:
            self._both[0].close()
        finally:
            self._both[1].close()


def of_cell(cell: Cell, make: Callable[[Cell], C]) -> C | TwoControllers:
    """One controller for the one robot of a cell; of two robots one for each, as one."""
    if cell.second_robot is None:
        return make(cell)
    first, second = (make(side) for side in cell.sides)
    return TwoControllers(cell, (first, second))
