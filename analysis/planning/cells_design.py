"""What several robots' cells can resolve: of these cells, of cells like these, and how often a further one turns round.

May not: promise anything of a further cell below five, or know where a spread between cells is from: it is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from scipy import optimize, special

from labctl.analysis.planning.power import ratio_resolvable
from labctl.analysis.survival.intervals import FEWEST_TO_PREDICT

BETWEEN = (0.1, 0.2, 0.4)
"""Spreads between cells that are shown where none is stated: standard deviations of a pair's log time ratio."""


class Between(TypedDict):
    """At a standard deviation `between` of a pair's log time ratio over cells: the ratio of two RMSTs that is found of
    these cells, whatever it is; of the mean over cells like these, None below five; and the share of further cells in
    which a ratio of `of_these` is the other way round.
    """

    between: float
    of_these: float | None
    like_these: float | None
    turned: float | None


class CellsResolved(TypedDict):
    """What `blocks` blocks over `cells` cells find with `power` at level `alpha`."""

    cells: int
    blocks: int
    power: float
    alpha: float
    by_spread: list[Between]


class EachCell(TypedDict):
    """One cell's share: blocks and trials at most, hours at the robot, evenings, and days by `blocks_per_day`, None
    without; day_hours: at the robot on a full one.
    """

    blocks: int
    trials: int
    hours: float
    evenings: int
    days: int | None
    day_hours: float | None


class PlannedCells(TypedDict):
    """names: of the cells; each: what one takes, all alike; resolvable: what they find at several spreads."""

    names: list[str]
    each: EachCell
    resolvable: CellsResolved


def cells_resolved(
    cells: int,
    blocks: int,
    spread: float,
    power: float,
    alpha: float,
    between: Sequence[float] = BETWEEN,
    *,
    reached: bool = True,
) -> CellsResolved:
    """`spread`: standard error of one arm's log RMST from one episode, as `power.ratio_resolvable` has it. reached:
    whether a pair's smallest p in so many blocks is as small as alpha.

    Of these cells by the normal approximation, all blocks together; of cells like these by t on cells less one, each
    cell's own ratio with variance between² + 2 spread² / (blocks / cells).
    """
    of_these = ratio_resolvable(blocks, spread, power, alpha) if reached else None
    rows: list[Between] = []
    for sd in between:
        se = math.sqrt((sd * sd + 2 * spread * spread * cells / blocks) / cells)
        like = math.exp(_found(se, cells - 1, power, alpha)) if cells >= FEWEST_TO_PREDICT else None
        turned = None if of_these is None else _turned(of_these, sd)
        rows.append({"between": sd, "of_these": of_these, "like_these": like, "turned": turned})
    return {"cells": cells, "blocks": blocks, "power": power, "alpha": alpha, "by_spread": rows}


def _turned(ratio: float, between: float) -> float:
    return float(special.ndtr(-math.log(ratio) / between)) if between else 0.0


def _found(se: float, df: int, power: float, alpha: float) -> float:
    """The mean that a two-sided t test at `alpha` finds with `power`, its standard error estimated on `df`."""
    reach = float(special.stdtrit(df, 1 - alpha / 2))

    def lacks(shift: float) -> float:
        return 1 - float(special.nctdtr(df, shift, reach)) - power

    return se * float(optimize.root_scalar(lacks, bracket=(0.0, 10 * reach + 20)).root)
