"""The 281 real blocks of seven policies as arrays, blocks in the order of the file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[2] / "unit" / "analysis" / "data" / "roboarena_blocks.csv"


@dataclass(frozen=True)
class RealBlocks:
    """`score` (281, 7); `site` and `evaluator` (281,); `compared` (281,) the two arms in order, `preferred` (281,)."""

    arms: tuple[str, ...]
    score: np.ndarray
    site: tuple[str, ...]
    evaluator: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]
    preferred: tuple[str, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(a, b) for i, a in enumerate(self.arms) for b in self.arms[i + 1 :]]

    def differences(self, a: str, b: str) -> np.ndarray:
        return self.score[:, self.arms.index(a)] - self.score[:, self.arms.index(b)]


def real_blocks() -> RealBlocks:
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    blocks = list(dict.fromkeys(row["block"] for row in rows))
    arms = tuple(sorted({row["arm"] for row in rows}))
    score = np.full((len(blocks), len(arms)), np.nan)
    first = {row["block"]: row for row in reversed(rows)}
    place = {block: i for i, block in enumerate(blocks)}
    for row in rows:
        score[place[row["block"]], arms.index(row["arm"])] = float(row["score"])
    compared = [first[block]["compared"].split("|") for block in blocks]
    return RealBlocks(
        arms,
        score,
        tuple(first[block]["site"] for block in blocks),
        tuple(first[block]["evaluator"] for block in blocks),
        tuple((a, b) for a, b in compared),
        tuple(first[block]["preferred"] for block in blocks),
    )
