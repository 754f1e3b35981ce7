"""How arms fail: shares by cause, and throughput against time between failures as the time allowed is swept.

May not: explain why a cause occurred; causes are the table's own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import Floats, curve, rmst
from labctl.analysis.table import CENSORED, GHOST, NS, SUCCESS, WRONG_END

SWEEP_S = tuple(range(30, 241, 15))
"""The paper's sweep of the time allowed for an operation."""
TIMED_OUT, LOST = "timed out", "lost"


@dataclass(frozen=True)
class FailureModes(Result):
    """Operations of an arm by what became of them: counts, and shares of all operations, by cause.

    `episodes_with` is the share of episodes in which a cause occurred at least once.
    """

    operations: int
    successes: int
    counts: Mapping[str, int]
    shares: Mapping[str, float]
    episodes_with: Mapping[str, float]


@dataclass(frozen=True)
class Sweep(Result):
    """Throughput against time between failures, as operations are allowed `tau` [k] seconds.

    `uph` is the paper's 3600 / mean time of the successes within tau, `mtbf` = RMST(tau) / (1 - F(tau)) in seconds,
    infinite where nothing failed; means over objects. NaN where no operation succeeded.
    """

    tau: Floats
    uph: Floats
    mtbf: Floats


def failure_modes(cells: Sequence[Cell]) -> FailureModes:
    """Decompose an arm's operations over its cells; a cause that is not named is "timed out" or "lost". What was open
    when a device ended an episode by mistake did not fail.
    """
    counts: dict[str, int] = {}
    touched: dict[str, int] = {}
    for c in cells:
        unnamed = np.where(c.kind == GHOST, LOST, np.where(c.kind == CENSORED, TIMED_OUT, ""))
        causes = np.array([cause or default for cause, default in zip(c.cause, unnamed, strict=True)])
        failed = (c.kind != SUCCESS) & (causes != WRONG_END)
        for cause in sorted(set(causes[failed].tolist())):
            here = failed & (causes == cause)
            counts[cause] = counts.get(cause, 0) + int(here.sum())
            touched[cause] = touched.get(cause, 0) + len(np.unique(c.durations.episode[here]))
    operations, episodes = sum(len(c.kind) for c in cells), sum(c.episodes for c in cells)
    order = sorted(counts, key=lambda cause: (-counts[cause], cause))
    return FailureModes(
        operations,
        sum(int((c.kind == SUCCESS).sum()) for c in cells),
        {cause: counts[cause] for cause in order},
        {cause: counts[cause] / operations for cause in order},
        {cause: touched[cause] / episodes for cause in order},
    )


def sweep(cells: Sequence[Cell], taus_s: Sequence[float] = SWEEP_S) -> Sweep:
    """An arm's trajectory in the plane of throughput and reliability, mean over its objects."""
    uph, mtbf = np.empty((len(cells), len(taus_s))), np.empty((len(cells), len(taus_s)))
    for i, c in enumerate(cells):
        times = c.observed.time_ns[c.kind == SUCCESS]
        for j, tau in enumerate(taus_s):
            tau_ns = round(tau * NS)
            within = times[times < tau_ns]
            uph[i, j] = 3600.0 * NS / within.mean() if within.sum() else np.nan
            grid, surviving = curve(c.observed, tau_ns)
            left = float(surviving[-1]) if len(grid) else 1.0
            area = float(rmst(surviving[None, :], grid, tau_ns)[0])
            mtbf[i, j] = area / left if left > 1e-12 else np.inf
    return Sweep(np.array(taus_s, dtype=float), uph.mean(axis=0), mtbf.mean(axis=0))
