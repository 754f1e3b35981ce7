"""What a simulated policy makes of an instruction and of what it sees, and what it is weak at, by axes of BridgeV2-★.

May not: know an outcome, or draw from anything but the seed of an episode.

The instruction decides: the object whose name it says, or that a word for it means; of several to which the first such
word applies (the block that is blue), the one of whose name it says most. Weak at S-LANG: knows names alone,
and guesses where none is said. V-SC: among many things its attention goes to another one. VB-POSE: turns its hand no
farther than it was trained to. VSB-NOBJ: grasps an object it was not trained with as if it were another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from labctl.drivers.sim.options import Axis

STEM = 5  # letters by which a word is known, so that a towel is one of the towels
MEANT = {
    "towel": ("cloth", "fabric", "dishrag"),
    "spoon": ("ladle", "cutlery", "utensil"),
    "sciss": ("shears", "cutter"),
    "batte": ("cells", "accumulator", "power"),
}
MANY = 4  # things from which on a scene is cluttered
DISTRACTED = 0.65  # chance that a policy weak at clutter attends to another thing
TRAINED_RAD = 0.6  # to either side of the robot's bearing
CLUMSY = 5.0  # times the aim's error


class Mind:
    """See the module. names: of the fixture's objects, in its order; trained: of which it was trained with, all where
    none is named.
    """

    def __init__(self, names: Sequence[str], weak: Sequence[Axis] = (), trained: Sequence[str] = ()) -> None:
        self._stems = [_stems(name) for name in names]
        self._weak = frozenset(weak)
        self._new = frozenset(i for i, name in enumerate(names) if trained and name not in trained)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start an episode."""
        self._rng = np.random.Generator(np.random.PCG64([seed, 1]))
        self._taken: dict[str, int] = {}

    def wanted(self, instruction: str, staged: int, kinds: np.ndarray) -> int:
        """Which object is meant, as its place in the fixture. kinds (n,): of the things there; staged: the one of which
        a scene of one kind has its items.
        """
        there = sorted({int(kind) for kind in kinds})
        if len(there) < 2:
            return there[0] if there else staged
        if instruction not in self._taken:
            meant = self._meant(instruction, there)
            if "V-SC" in self._weak and len(kinds) >= MANY and self._rng.random() < DISTRACTED:
                meant = int(self._rng.choice([kind for kind in there if kind != meant]))
            self._taken[instruction] = meant
        return self._taken[instruction]

    def _meant(self, instruction: str, there: Sequence[int]) -> int:
        said = sorted(_stems(instruction), key=str.isdigit)  # a number is how many, where no other word tells
        for word in said:
            if kinds := [kind for kind in there if any(word in known for known in self._known(kind))]:
                return max(kinds, key=lambda kind: self._heard(kind, said))
        return int(self._rng.choice(there))

    def _known(self, kind: int) -> list[set[str]]:
        """What each word of an object's name is known by."""
        others = {} if "S-LANG" in self._weak else MEANT
        return [{stem, *(other[:STEM] for other in others.get(stem, ()))} for stem in self._stems[kind]]

    def _heard(self, kind: int, said: Sequence[str]) -> tuple[int, int]:
        """How much of an object's name is said, and how little is left."""
        known = self._known(kind)
        heard = sum(not words.isdisjoint(said) for words in known)
        return heard, heard - len(known)

    def turn(self, wanted_rad: float, bearing_rad: float) -> float:
        """How it turns its hand, of how the item asks for it and where the item lies."""
        if "VB-POSE" not in self._weak:
            return wanted_rad
        return min(max(wanted_rad, bearing_rad - TRAINED_RAD), bearing_rad + TRAINED_RAD)

    def clumsiness(self, thing: int) -> float:
        """What the error of its aim at this object is multiplied by."""
        return CLUMSY if "VSB-NOBJ" in self._weak and thing in self._new else 1.0


def _stems(text: str) -> list[str]:
    """What its words and numbers are known by, in order; "blue_block" is two words, "cube2" a word and a number."""
    return [word if word.isdigit() else word[:STEM] for word in re.findall(r"[^\W\d_]+|\d+", text.lower())]
