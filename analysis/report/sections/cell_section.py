"""The report's section on a campaign in several robots' cells: pairs by cell, how unlike cells are, arms by cell.

May not: estimate or claim: `cell_words` makes the sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labctl.analysis.cells_result import OverCells, PairOverCells
from labctl.analysis.numerals import MISSING, estimate, number, p_value, percent, ratio
from labctl.analysis.report import cell_words, figures, wording
from labctl.analysis.report.figures import INK, MUTED, RULE, Figure
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table
from labctl.analysis.report.wording import Claim
from labctl.analysis.survival.result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Cell by cell"


def section(result: AnalysisResult) -> Section | None:
    """The section; None of a campaign in one cell."""
    found = result.get("by_cell")
    if found is None:
        return None
    tables = [("", _pairs(found))] if found["pairs"] else []
    tables += [("How unlike the cells are", _spread(found))] if found["pairs"] else []
    tables += [("Arms in each cell", _arms(found, result))]
    drawn = (forest(found),) if found["pairs"] else ()
    text = cell_words.scope(result) or ""
    return Section("by-cell", TITLE, drawn, tuple(tables), text, wide=True, opened=True)


def claims(result: AnalysisResult) -> list[Claim]:
    """Of the first page: pairs that differ by cell, orders that hold in a further cell or do not, and of which cells
    all of it is.
    """
    found, scope = result.get("by_cell"), cell_words.scope(result)
    if found is None or scope is None:
        return []
    ahead = {(pair["a"], pair["b"]) for pair in result["pairs"] if wording.winner(pair) is not None}
    out = [Claim("depends", cell_words.unlike(pair)) for pair in cell_words.differs(result)]
    if found["sample"]:
        led = [pair for pair in found["pairs"] if (pair["a"], pair["b"]) in ahead and pair["prediction"]]
        holds = [cell_words.further(pair) for pair in led if cell_words.holds_further(pair)]
        lost = [cell_words.further(pair) for pair in led if not cell_words.holds_further(pair)]
        of = f"from {cell_words.cells(found)}, 95 % for each by itself"
        if holds:
            out.append(
                Claim("resolved", f"That holds in a further cell like these: time per item {'; '.join(holds)} ({of}).")
            )
        if lost:
            text = f"A further cell may show either order: time per item {'; '.join(lost)} ({of})."
            out.append(Claim("unresolved", text))
    return [*out, Claim("untested", scope)]


def _pairs(found: OverCells) -> Table:
    columns = (
        *(Column("Pair", "text"), Column("Cell", "text"), Column("Blocks")),
        *(Column("Time per item, ratio [95 %]"), Column("Mean of the others")),
    )
    note = (
        "RMST of the first of a pair over the second on the same rig, mean over objects with equal weights; blocks are "
        "the fewest at an object. Mean of the others: the ratio with this cell left out."
    )
    return Table(columns, cell_words.table_rows(found["pairs"]), note)


def _spread(found: OverCells) -> Table:
    columns = (
        *(Column("Pair", "text"), Column("These cells [95 %]"), Column("Welch’s F"), Column("p, no spread")),
        *(Column("Spread between cells (SD of log)"), Column("I2 %")),
        *((Column("Cells like these [95 %]"), Column("One further cell [95 %]")) if found["sample"] else ()),
    )
    rows = tuple(
        (
            f"{pair['a']} – {pair['b']}",
            ratio(pair["mean"], pair["fixed_ci"]),
            _f(pair),
            MISSING if pair["p_alike"] is None else p_value(pair["p_alike"], None),
            _sd(pair),
            MISSING if pair["i2"] is None else percent(pair["i2"], 0),
            *((ratio(pair["mean"], pair["ci"]), ratio(pair["mean"], pair["prediction"])) if found["sample"] else ()),
        )
        for pair in found["pairs"]
    )
    note = (
        "Whether a pair’s log ratio differs between cells: Welch (1951), each cell with its own error, its blocks "
        "less one as degrees of freedom; p is of each pair by itself. Spread: REML, with a profile interval of Q "
        "(Viechtbauer 2007); few cells say little of it."
    )
    if found["sample"]:
        note += " Intervals over cells: t on cells less one, from the spread of the cells’ own ratios."
    else:
        note += f" Below {found['fewest']} cells there is no interval of a further one."
    return Table(columns, rows, note)


def _f(pair: PairOverCells) -> str:
    if pair["f"] is None or pair["df"] is None:
        return MISSING
    return f"{number(pair['f'], 2)} on {number(pair['df'][0], 0)} and {number(pair['df'][1], 1)}"


def _sd(pair: PairOverCells) -> str:
    ends = pair["tau2_ci"]
    if pair["tau2"] is None:
        return MISSING
    return estimate(math.sqrt(pair["tau2"]), None if ends is None else [math.sqrt(end) for end in ends], digits=2)


def _arms(found: OverCells, result: AnalysisResult) -> Table:
    reference = result.get("reference")
    columns = (ARM, Column("Cell", "text"), Column("Episodes"), Column("RMST s [95 %]"))
    columns += (Column(f"HRT % against {reference} there [95 %]"),) if reference else ()
    rows = tuple(
        (
            one["arm"],
            one["cell"],
            str(one["episodes"]),
            estimate(one["rmst"], one["rmst_ci"]),
            *((estimate(one["hrt"], one["hrt_ci"], scale=100.0),) if reference else ()),
        )
        for one in found["arms"]
    )
    note = "Means over the objects met there."
    return Table(columns, rows, f"{note} HRT is relative to {reference} on the same rig." if reference else note)


def forest(found: OverCells) -> Figure:
    """Every pair's ratio in each cell with its interval, and over these cells: a square; dashed: one further cell."""
    lines: list[tuple[str, float | None, Sequence[float] | None, str]] = []
    for pair in found["pairs"]:
        lines.append((f"{pair['a']} over {pair['b']}", None, None, "head"))
        lines += [(one["cell"], one["log_rmst_ratio"], one["ci"], "cell") for one in pair["cells"]]
        lines.append(("these cells", pair["mean"], pair["fixed_ci"], "mean"))
        if pair["prediction"] is not None:
            lines.append(("one further cell", pair["mean"], pair["prediction"], "further"))

    def draw(ax: Axes) -> None:
        for y, (label, value, ends, kind) in enumerate(reversed(lines)):
            head = kind == "head"
            place = (0.0, y) if head else (0.02, y)
            ax.annotate(
                label, place, xycoords=("axes fraction", "data"), ha="left", va="center",
                color=INK if head else MUTED, fontweight="bold" if head else "normal",
            )  # fmt: skip
            colour = INK if kind != "cell" else "#0072B2"
            if ends is not None:
                style = (0, (4.0, 2.0)) if kind == "further" else "solid"
                ax.plot([math.exp(e) for e in ends], [y, y], color=colour, linewidth=1.6, linestyle=style)
            if value is not None and kind != "further":
                ax.plot(math.exp(value), y, color=colour, marker="s" if kind == "mean" else "o", markersize=5)
        known = [x for _, v, ends, _ in lines for x in (v, *(ends or ())) if x is not None]
        low, high = min([*known, -0.1]), max([*known, 0.1])
        width = high - low
        ax.set_xscale("log")
        ax.set(xlim=(math.exp(low - 0.45 * width), math.exp(high + 0.06 * width)), ylim=(-0.7, len(lines) - 0.3))
        ticks = [t for t in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10) if low - 0.05 <= math.log(t) <= high + 0.05]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.minorticks_off()
        ax.set_yticks([])
        ax.axvline(1.0, color=RULE, linewidth=1, zorder=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("time per item, first over second (logarithmic; below 1: the first is quicker)")

    rows = [
        (pair["a"], pair["b"], one["cell"], one["units"], one["log_rmst_ratio"], *(one["ci"] or (None, None)))
        for pair in found["pairs"]
        for one in pair["cells"]
    ]
    head = ("a", "b", "cell", "blocks", "log_rmst_ratio", "low", "high")
    size = (7.4, 0.9 + 0.24 * len(lines))
    return figures.make("by-cell", "Each pair in each cell", size, draw, figures.to_csv(head, rows))
