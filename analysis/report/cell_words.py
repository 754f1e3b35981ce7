"""Several robots' cells, in words: which cells a claim is of, where arms differ by cell, and what a further one shows.

May not: estimate (`analysis.operations_table.over_cells` did), or claim of a further cell below five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.analysis.cells_result import OverCells, PairOverCells
from labctl.analysis.numerals import listing, p_equals, ratio
from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.survival.verdicts import holm

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def in_these(result: AnalysisResult) -> str:
    """ "these two cells", what every sentence of a report over several is of; "" where there is one."""
    found = result.get("by_cell")
    return "" if found is None else f"these {cells(found)}"


def cells(found: OverCells) -> str:
    """ "two cells"."""
    n = len(found["cells"])
    return f"{_COUNTS[n] if n < len(_COUNTS) else n} cells"


def scope(result: AnalysisResult) -> str | None:
    """What the numbers are of, and that nothing is said of another cell; None where there is one cell."""
    found = result.get("by_cell")
    if found is None:
        return None
    text = f"Arms are compared within a cell, on the same rig, and every number is a mean over {in_these(result)}"
    text = f"{text} ({listing(found['cells'])}), with equal weights of each object in each cell."
    if found["sample"]:
        return f"{text} What a further cell would show is said apart."
    return f"{text} Fewer than {found['fewest']} are no sample of others: nothing here is claimed of another cell."


def differs(result: AnalysisResult) -> list[PairOverCells]:
    """Pairs whose difference is not the same in every cell, by Welch's p after Holm over pairs, at the report's
    level.
    """
    found = result.get("by_cell")
    pairs = [] if found is None else found["pairs"]
    p: Mapping[int, float] = {i: one["p_alike"] for i, one in enumerate(pairs) if one["p_alike"] is not None}
    adjusted = holm(p) if p else {}
    return [pairs[i] for i, value in adjusted.items() if value <= result["alpha"]]


def unlike(pair: PairOverCells) -> str:
    """A sentence on a pair whose cells differ."""
    each = "; ".join(f"{one['cell']} {ratio(one['log_rmst_ratio'], one['ci'])}" for one in pair["cells"])
    turned = ": one leads here and the other there" if pair["opposed"] else ""
    return (
        f"How {pair['a']} and {pair['b']} compare depends on the cell{turned} (time per item of {pair['a']} over "
        f"{pair['b']}: {each}; {p_equals(pair['p_alike'], None)} of no spread)."
    )


def holds_further(pair: PairOverCells) -> bool:
    """Whether the interval of one further cell leaves out a ratio of 1."""
    ahead = pair["prediction"]
    return ahead is not None and not ahead[0] <= 0 <= ahead[1]


def further(pair: PairOverCells) -> str:
    """Time per item of a pair in one further cell."""
    return f"{pair['a']} over {pair['b']} {ratio(pair['mean'], pair['prediction'])}"


def table_rows(pairs: Sequence[PairOverCells]) -> tuple[tuple[str, ...], ...]:
    """A row for each pair and cell: ratio, blocks, the mean of the other cells."""
    return tuple(
        (
            f"{pair['a']} – {pair['b']}" if i == 0 else "",
            one["cell"],
            str(one["units"]),
            ratio(one["log_rmst_ratio"], one["ci"]),
            ratio(one["without"], None),
        )
        for pair in pairs
        for i, one in enumerate(pair["cells"])
    )
