"""Statistics of a dataset's features, by the names that LeRobot's normalisation reads. Pure.

May not: read or write files.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from labctl.plain import Json

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
Stats = dict[str, Json]  # by name, lists of a number for each column, or shaped as pictures are


class Levels(TypedDict):
    """A histogram as JSON: how often each level occurs (3, 256), in how many pictures."""

    counts: list[list[int]]
    pictures: int


def of_columns(values: np.ndarray) -> Stats:
    """min, max, mean, std, count and quantiles of values (n, k) or (n,): a list of k each. What is not a number does
    not count; a column without any is all zero.
    """
    columns = np.asarray(values, float).reshape(len(values), -1)
    known = np.isfinite(columns)
    filled = np.where(known.any(axis=0), np.where(known, columns, np.nan), 0.0)
    found = {
        "min": np.nanmin(filled, axis=0),
        "max": np.nanmax(filled, axis=0),
        "mean": np.nanmean(filled, axis=0),
        "std": np.nanstd(filled, axis=0),
    }
    found |= dict(zip(QUANTILES, np.nanquantile(filled, list(QUANTILES.values()), axis=0), strict=True))
    return {**{name: value.tolist() for name, value in found.items()}, "count": [len(columns)]}


class Histogram:
    """How often each of 256 levels occurs in each of the three channels of some pictures."""

    def __init__(self) -> None:
        self.counts = np.zeros((3, 256), np.int64)
        self.pictures = 0

    def add(self, rgb: np.ndarray) -> None:
        """Count a picture (height, width, 3) uint8."""
        for channel in range(3):
            self.counts[channel] += np.bincount(rgb[:, :, channel].ravel(), minlength=256)
        self.pictures += 1

    def levels(self) -> Levels:
        """As JSON, for `of`."""
        return {"counts": self.counts.tolist(), "pictures": self.pictures}

    @classmethod
    def of(cls, levels: Levels) -> Histogram:
        """From what `levels` gave."""
        made = cls()
        made.counts, made.pictures = np.array(levels["counts"], np.int64), int(levels["pictures"])
        return made

    def merge(self, other: Histogram) -> None:
        self.counts += other.counts
        self.pictures += other.pictures

    def stats(self) -> Stats:
        """As `of_columns`, for levels 0 to 1, shaped (3, 1, 1) as pictures are normalised; count is of pictures."""
        levels = np.arange(256) / 255
        total = np.maximum(self.counts.sum(axis=1), 1)
        mean = (self.counts * levels).sum(axis=1) / total
        spread = np.sqrt(np.maximum((self.counts * levels**2).sum(axis=1) / total - mean**2, 0.0))
        below = self.counts.cumsum(axis=1)

        def at(share: float) -> np.ndarray:
            return levels[(below >= np.maximum(share * total, 1)[:, None]).argmax(axis=1)]

        found = {"min": at(0.0), "max": at(1.0), "mean": mean, "std": spread}
        found |= {name: at(share) for name, share in QUANTILES.items()}
        return {
            **{name: value.reshape(3, 1, 1).tolist() for name, value in found.items()},
            "count": [self.pictures],
        }
