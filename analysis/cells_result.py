"""What a campaign in several robots' cells says of each pair by cell, as types; times in seconds, ratios as logarithms.

May not: compute. An interval is [low, high] at 95 %; None is "the table has no answer".
"""

from __future__ import annotations

from typing import TypedDict

from labctl.analysis.results import Bounds


class PairInCell(TypedDict):
    """A pair in one cell: log(RMST_a / RMST_b), mean over the objects that both met there, its standard error, and the
    mean over the other cells (`without`). units: the fewest blocks of an arm at an object behind it, `df` one less,
    whatever the number of objects, since one object may carry all the error.
    """

    cell: str
    units: int
    log_rmst_ratio: float | None
    se: float | None
    df: int
    ci: Bounds
    without: float | None


class PairOverCells(TypedDict):
    """A pair over cells: `mean` of their log ratios with equal weights. `p_alike`: whether they differ by more than
    their blocks, Welch's F = `f` on `df`; tau2: variance between cells beyond that, REML; i2 its share of a typical
    cell's. opposed: one arm leads in a cell and the other in another, each at the level after Holm over cells.

    fixed_ci: of the mean over these very cells. ci, prediction: of the mean over cells like these, and of one further
    cell of about as many blocks, by t on cells less one; None below five cells, which are then all that is claimed of.
    """

    a: str
    b: str
    mean: float | None
    f: float | None
    df: list[float] | None
    p_alike: float | None
    tau2: float | None
    tau2_ci: Bounds
    i2: float | None
    opposed: bool
    fixed_ci: Bounds
    ci: Bounds
    prediction: Bounds
    cells: list[PairInCell]


class ArmInCell(TypedDict):
    """An arm in one cell: its RMST, mean over objects there, and HRT against the reference on the same rig."""

    arm: str
    cell: str
    episodes: int
    rmst: float | None
    rmst_ci: Bounds
    hrt: float | None
    hrt_ci: Bounds


class OverCells(TypedDict):
    """The cells of a joint campaign; `sample`: whether they are enough to be taken as a sample of more (`fewest`)."""

    cells: list[str]
    sample: bool
    fewest: int
    pairs: list[PairOverCells]
    arms: list[ArmInCell]
    warnings: list[str]
