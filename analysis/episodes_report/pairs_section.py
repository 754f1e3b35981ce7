"""Pairs of arms: effects with intervals before any p, who wins, where looking would have stopped, how many blocks.

May not: say in words which of two is better but by the verdict of the analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from labctl.analysis import numerals
from labctl.analysis.blocks.enough import STATEMENTS
from labctl.analysis.episodes_report.claims import effect, level, ordered
from labctl.analysis.episodes_report.drawing import WIDE, cells
from labctl.analysis.episodes_table.pairs import leader, wins
from labctl.analysis.episodes_table.result import EpisodesResult, PairOfEpisodes
from labctl.analysis.episodes_table.result import Sequence as Sequenced
from labctl.analysis.episodes_table.words import measured, verdict_words
from labctl.analysis.report.figures import INK, MUTED, Figure, make, to_csv
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table
from labctl.analysis.survival.verdicts import OPEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 3
"""Panels in a row of a picture with one for each pair."""
MOST_PANELS = 45
SEEN = 0.004
"""How far an end of a band moves before it is drawn anew."""


def pair_name(pair: PairOfEpisodes) -> str:
    """Both arms, the first of the difference first."""
    return f"{pair['a']} less {pair['b']}"


def effects(result: EpisodesResult) -> Section | None:
    """Effects and tests of every pair; None for a single arm."""
    if not result["pairs"]:
        return None
    each, pairs = level(result), result["pairs"]
    of_score = result["measure"] == "score"
    by_success = any(pair["success_difference"] is not None for pair in pairs)
    name = "Score difference" if of_score else "Success difference, points"
    columns = [Column("Pair", "text"), Column(f"{name} [Holm's level]"), Column("Verdict", "text")]
    columns += [Column(f"Win probability [{each} %]")]
    columns += [Column(f"Success difference, points [{each} %]")] if of_score and by_success else []
    columns += [Column("p (Holm)"), Column("Blocks")]
    rows = []
    for pair in pairs:
        row = [pair_name(pair), effect(pair, result).removesuffix(" percentage points"), verdict_words(pair)]
        row += [numerals.estimate(pair["win"], pair["win_ci"], digits=3)]
        success = numerals.estimate(pair["success_difference"], pair["success_ci"], scale=100)
        row += [success] if of_score and by_success else []
        rows.append((*row, numerals.p_value(pair["p_holm"], pair["p_holm_error"]), numerals.count(pair["blocks"])))
    note = (
        "Differences are of the first arm less the second, in blocks that have both. Win probability: how "
        "often the first does better within a block, ties one half. A verdict rests on the first interval, at "
        "the level of Holm's step, and on the Holm-adjusted p; the other intervals are of each pair by itself. Not "
        "resolved is an open question: more blocks may tell."
    )
    tables = [("Who is ahead", _matrix(result)), ("By how much they differ", Table(tuple(columns), tuple(rows), note))]
    tables.append(("Each pair by itself", _tests(result, name)))
    order, won = ordered(result), wins(pairs)
    grid = [[won.get((row, column)) for column in order] for row in order]
    figure = cells("win-matrix", "Who wins", order, order, grid, axis="against this arm", middle=True)
    sentences = _together(result)
    return Section("pairs", "Pairs of arms", (figure,), tuple(tables), _WIN_NOTE, sentences, wide=True, opened=True)


_WIN_NOTE = (
    "How often the arm of the row does better than that of the column within a block, ties one half; 0.50 is level. "
    "Shades show the estimate, not whether it is clear of 0.50: the table below has the intervals."
)


def _together(result: EpisodesResult) -> tuple[str, ...]:
    blocks = result["blocks"]
    if blocks["friedman_chi2"] is None:
        return ()
    text = (
        f"All arms at once, on {blocks['complete']} complete blocks: Friedman chi2 = {blocks['friedman_chi2']:.1f} on "
        f"{len(result['arms']) - 1}, {numerals.p_equals(blocks['friedman_p'], None)}"
    )
    if blocks["cochran_q"] is not None:
        q = numerals.p_equals(blocks["cochran_p"], None)
        text += f"; of successes alone Cochran's Q = {blocks['cochran_q']:.1f}, {q}"
    return (f"{text}. These say whether any arm differs from any other, not which.",)


def _matrix(result: EpisodesResult) -> Table:
    order = ordered(result)
    by = {frozenset((pair["a"], pair["b"])): pair for pair in result["pairs"]}
    ahead, behind = ("higher", "lower") if result["measure"] == "score" else ("more", "fewer")

    def cell(row: str, column: str) -> str:
        pair = by.get(frozenset((row, column)))
        if row == column or pair is None:
            return numerals.MISSING
        first = leader(pair)
        if first is not None:
            return ahead if first == row else behind
        if pair["p_holm"] is None:
            return "not tested"
        return "open" if pair["verdict"] in (None, OPEN) else "no order"

    rows = tuple((row, *(cell(row, column) for column in order)) for row in order)
    note = (
        f"The arm of the row has a {ahead} score, or a {behind} one"
        if ahead == "higher"
        else f"The row has {ahead} or {behind} successes"
    )
    return Table((ARM, *(Column(name, "text") for name in order)), rows, f"{note}; open: not resolved at this N.")


def _tests(result: EpisodesResult, name: str) -> Table:
    names = {"score": "p, score", "success": "p, success", "mcnemar": "p, McNemar exact"}
    kept = [key for key in names if any(pair["p"].get(key) is not None for pair in result["pairs"])]
    of_score = result["measure"] == "score"
    rows = []
    for pair in result["pairs"]:
        value, ci = measured(pair, of_score)
        own = numerals.estimate(value, ci, digits=3) if of_score else numerals.estimate(value, ci, scale=100)
        rows.append(
            (pair_name(pair), own, *(numerals.p_value(pair["p"].get(key), pair["p_error"].get(key)) for key in kept))
        )
    head = (Column("Pair", "text"), Column(f"{name} [{level(result)} %]"), *(Column(names[key]) for key in kept))
    note = (
        "Not adjusted over pairs. p of score and of success by exchanging the two labels within whole sets (blocks, "
        "where none belong together); ± is the Monte-Carlo error of random exchanges, and another seed gives another p."
    )
    return Table(head, tuple(rows), note)


def monitoring(result: EpisodesResult) -> Section | None:
    """Where a look after every block would have stopped, of each pair."""
    watched = [pair for pair in result["pairs"] if pair["sequence"] is not None]
    if not watched:
        return None
    rows = [
        (
            pair_name(pair),
            numerals.count(pair["blocks"]),
            numerals.count(pair["stop_block"]) if pair["stop_block"] else "never",
            _last(pair),
        )
        for pair in watched
    ]
    columns = (Column("Pair", "text"), Column("Blocks"), Column("Would have stopped after block"),
               Column(f"What is left at the end [{level(result)} %, at any time]"))  # fmt: skip
    note = (
        "Each pair by itself, looked at after every block in the order of the table: a band that holds the difference "
        f"at every block at once, with an error of {100 * result['alpha']:g} % however often one looks, and where it "
        "first left 0, the stop (dotted). Never: these blocks do not tell the two apart by this test, which asks more "
        "than one look at the end does."
    )
    figures = [_bands(watched[:MOST_PANELS])]
    table = ("Where each pair would have stopped", Table(columns, tuple(rows)))
    return Section("monitoring", "Looking after every block", tuple(figures), (table,), note, wide=True)


def _last(pair: PairOfEpisodes) -> str:
    sequence = pair["sequence"]
    if sequence is None or not sequence["low"] or sequence["low"][-1] is None:
        return numerals.MISSING
    return numerals.interval([sequence["low"][-1], sequence["high"][-1]], digits=3)


def _bands(pairs: Sequence[PairOfEpisodes]) -> Figure:
    """One panel a pair: its confidence sequence and the block where it would have stopped."""
    down = ceil(len(pairs) / ACROSS)

    def draw(whole: Axes) -> None:
        canvas = whole.figure
        whole.remove()
        panels = canvas.subplots(down, min(ACROSS, len(pairs)), squeeze=False, sharex=True, sharey=True).flat
        for ax, pair in zip(panels, [*pairs, *[None] * (down * ACROSS)], strict=False):
            sequence = pair["sequence"] if pair else None
            if pair is None or sequence is None:
                ax.set_visible(False)
                continue
            block, low, high = _changes(sequence, pair["stop_block"])
            ax.fill_between(block, low, high, step="post", color="#56B4E9", alpha=0.45, linewidth=0)
            ax.axhline(0, color=INK, linewidth=0.8)
            if pair["stop_block"]:
                ax.axvline(pair["stop_block"], color=INK, linewidth=1, linestyle=":")
                ax.annotate(str(pair["stop_block"]), (pair["stop_block"], 1), (3, -2), textcoords="offset points",
                            xycoords=ax.get_xaxis_transform(), va="top", fontsize=7.5)  # fmt: skip
            ax.set(ylim=(-1, 1), xlim=(1, max(2, len(sequence["block"]))))
            ax.set_title(f"{pair['a']}\nless {pair['b']}", fontsize=7.5, fontweight="normal", color=MUTED)
            ax.tick_params(labelsize=7.5)
        canvas.supxlabel("block", fontsize=9)

    rows = [
        (pair["a"], pair["b"], block, low, high, f"{e:.6g}")
        for pair in pairs
        if (s := pair["sequence"]) is not None
        for block, low, high, e in zip(s["block"], s["low"], s["high"], s["e_value"], strict=True)
    ]
    head = ("a", "b", "block", "low", "high", "e_value")
    return make("monitoring", "Looking after every block", (WIDE, 0.5 + 1.25 * down), draw, to_csv(head, rows))


def _changes(sequence: Sequenced, stop: int | None) -> tuple[list[int], list[float], list[float]]:
    """The blocks after which a band had visibly changed, that of the stop, and the last one: each as wide as it was."""
    found: list[tuple[int, float, float]] = []
    last = sequence["block"][-1]
    for block, low, high in zip(sequence["block"], sequence["low"], sequence["high"], strict=True):
        ends = (float("nan"), float("nan")) if low is None or high is None else (low, high)
        moved = not found or not max(abs(ends[0] - found[-1][1]), abs(ends[1] - found[-1][2])) < SEEN
        if moved or block in (stop, last):
            found.append((block, *ends))
    return [one[0] for one in found], [one[1] for one in found], [one[2] for one in found]


def enough(result: EpisodesResult) -> Section | None:
    """How often fewer blocks would have found what all of them did, of each pair."""
    found = result["enough"]
    if not found:
        return None
    sizes = sorted({one["blocks"] for one in found})
    by = {(one["a"], one["b"], one["blocks"]): one for one in found}
    pairs = [pair for pair in result["pairs"] if any((pair["a"], pair["b"], size) in by for size in sizes)]
    grid: list[list[float | None]] = []
    for pair in pairs:
        row = [by.get((pair["a"], pair["b"], size)) for size in sizes]
        grid.append([None if one is None else one["detected"] for one in row])
    figure = cells(
        "enough", "How many blocks would have done", [pair_name(p) for p in pairs], [str(s) for s in sizes], grid,
        axis="blocks (sets, where blocks belong together)",
    )  # fmt: skip
    wrong = max(found, key=lambda one: one["wrong_found"])
    note = (
        f"Share of draws of so many blocks in which the pair’s own test (p at most {result['alpha']:g}, not adjusted) "
        f"finds a difference. {STATEMENTS}"
    )
    if wrong["wrong_found"] > 0:
        note += (
            f" A sign other than that of all blocks was found in {numerals.percent(wrong['wrong_found'])} % of draws "
            f"at most, for {wrong['a']} and {wrong['b']} at {wrong['blocks']}."
        )
    return Section("enough", "How many blocks would have done", (figure,), (), note, wide=True)
