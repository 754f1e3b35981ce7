"""What stands beside the headline numbers, as sections of the report: failures, sensitivity, configuration, pairs.

May not: estimate (see `supplement`), rank, or claim: a section shows numbers, `wording` makes the sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.analysis.numerals import MISSING, count, estimate, number, p_value, percent
from labctl.analysis.report import success_curves, supplementary_figures
from labctl.analysis.report.figures import Figure, Look
from labctl.analysis.report.pair_tables import TOO_NARROW, moved_difference
from labctl.analysis.report.tables import ARM, Column, Table
from labctl.analysis.supplement_result import Supplement
from labctl.analysis.survival.curves import WANG_CHANG
from labctl.analysis.survival.result import AnalysisResult


@dataclass(frozen=True)
class Section:
    """One part of the page: an anchor, a heading, sentences, figures, a note, tables with headings of their own ("" for
    none), and what only stands beside those. wide: its wide figures one under the other, narrow ones as panels; opened:
    shown unfolded.
    """

    id: str
    title: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    note: str = ""
    sentences: tuple[str, ...] = ()
    wide: bool = False
    opened: bool = False
    beside: tuple[Figure, ...] = ()


TREND_NOTE = (
    "A slope would be learning, fatigue or wear; p by shuffling blocks, each arm's by itself: of twenty arms without a "
    "slope one has a p below 0.05."
)

TREND_OF_CELLS = "The cells’ blocks stand one after the other; the slope of all is within cells."


def sections(found: Supplement, result: AnalysisResult, styles: Mapping[str, Look]) -> list[Section]:
    """Every section that the supplement has something for, in the report's order."""
    reference = result.get("reference")
    made = [
        _failures(found, styles),
        _sensitivity(found, result),
        _spatial(found),
        _time(found, styles, reference),
        _moved(found, result),
        _arms_against_arms(result, styles),
        _quantiles(found, styles, reference),
    ]
    return [section for section in made if section is not None and (section.figures or section.tables)]


def _failures(found: Supplement, styles: Mapping[str, Look]) -> Section | None:
    arms = [arm for arm in found["arms"] if arm.get("failures")]
    causes = list(dict.fromkeys(cause for arm in arms for cause in arm["failures"]["counts"]))
    if not arms:
        return None
    columns = (ARM, Column("Operations"), Column("Successes"), *(Column(_plain(cause)) for cause in causes))
    rows = []
    for arm in arms:
        modes = arm["failures"]
        cells = [_share(modes["counts"].get(cause), modes["shares"].get(cause)) for cause in causes]
        rows.append((arm["arm"], str(modes["operations"]), str(modes["successes"]), *cells))
    table = Table(columns, tuple(rows), "Counts, and their share of all operations of the arm.")
    sweep = tuple(supplementary_figures.sweep_figures(found, styles))
    note = (
        "Throughput against reliability, one panel per object, as the time allowed for an operation is swept from 30 s "
        "to the budget, or to 240 s: up and to the right is quicker and fails less often. Solid lines: 3600 × F(t) / "
        "RMST(t), where whatever was not done in time, a lost item or an end for futility or by an interlock among "
        "it, costs all the time allowed. Thin lines with open circles: the paper’s 3600 / mean time of the successes "
        "alone, where a failure costs nothing, so that an arm that loses items looks quick. MTBF/A is RMST(t) / "
        "(1 − F(t)); where F(t) reaches 100 % it is infinite and drawn on the dotted line, which says little of an "
        "arm most of whose operations timed out (see the numbers at risk under its curve)."
    )
    return Section("failures", "How arms fail", sweep, (("", table),), note if sweep else "")


def _sensitivity(found: Supplement, result: AnalysisResult) -> Section | None:
    cells = {(cell["arm"], cell["object"]): cell for cell in result.get("cells") or []}
    rows = []
    for entry in found["cells"]:
        cell, bounds = cells.get((entry["arm"], entry["object"])), entry.get("bounds")
        if cell is None or bounds is None:
            continue
        values = [cell.get(key) for key in ("rmst_kaplan_meier", "rmst_aalen_johansen", "rmst_first_operation")]
        alike = estimate(cell.get("rmst_wang_chang"), cell.get("rmst_wang_chang_ci"))
        rows.append(
            (entry["arm"], entry["object"], alike, *(number(v) for v in (*values, bounds["best"], bounds["worst"])))
        )
    columns = (
        *(ARM, Column("Object", "text"), Column("Wang–Chang [95 %]"), Column("Pooled"), Column("Aalen–Johansen")),
        *(Column("First operation"), Column("Timeouts a success at once"), Column("Timeouts never done")),
    )
    note = (
        "Seconds. Pooled is Kaplan–Meier over all operations, Wang–Chang counts every episode once (t on the scale "
        f"of rates); RMST elsewhere is {'Wang–Chang' if result.get('estimator') == WANG_CHANG else 'the pooled one'}. "
        "Aalen–Johansen counts lost items from when they were lost; the last two are the least and the most timeouts "
        "could mean."
    )
    tables = [("RMST by other estimators", Table(columns, tuple(rows), note))] if rows else []
    hrt = [
        (arm["arm"], percent(bounds["worst"]), percent(bounds["best"]))
        for arm in found["arms"]
        if (bounds := arm.get("hrt_bounds"))
    ]
    if hrt:
        columns = (ARM, Column("HRT %, at least"), Column("HRT %, at most"))
        note = (
            "At least: every timeout of the arm was never done, every one of the reference a success when its episode "
            "ended. At most: the other way round."
        )
        tables.append(("HRT if timeouts meant the worst, or the best", Table(columns, tuple(hrt), note)))
    order = _by_operation(found)
    return Section("sensitivity", "What else the numbers could mean", (), (*tables, *order))


def _by_operation(found: Supplement) -> list[tuple[str, Table]]:
    rows, most = [], 0
    for entry in found["cells"]:
        by = entry.get("by_operation")
        if by and by["index"]:
            most = max(most, len(by["index"]))
            cells = [f"{number(rmst)} (n = {n})" for rmst, n in zip(by["rmst"], by["episodes"], strict=True)]
            rows.append((entry["arm"], entry["object"], cells))
    if not rows or most < 2:
        return []
    columns = (ARM, Column("Object", "text"), *(Column(f"Operation {i}") for i in range(1, most + 1)))
    filled = tuple((arm, obj, *cells, *[MISSING] * (most - len(cells))) for arm, obj, cells in rows)
    note = "RMST in seconds of the first, second, … operation; later ones hold only episodes that came so far."
    return [("RMST by order of operation", Table(columns, filled, note))]


def _spatial(found: Supplement) -> Section | None:
    spatial = found.get("spatial")
    if not spatial:
        return None
    rows = tuple(
        (
            row["arm"],
            f"tote {row['tote_side']}, camera {row['camera_side']}",
            str(row["episodes"]),
            estimate(row["moved"], row["moved_ci"], scale=100.0),
            percent(row["completion"]),
        )
        for row in spatial["rows"]
    )
    columns = (
        ARM,
        Column("Configuration", "text"),
        Column("Episodes"),
        Column("Items moved % [95 %]"),
        Column("F(budget) %"),
    )
    together = f"Largest imbalance between an arm and all arms together: {number(spatial['imbalance'])} points."
    if len({(row["tote_side"], row["camera_side"]) for row in spatial["rows"]}) == 1:
        together = "Every episode was run in this one configuration: nothing here says what another would change."
    balance = (
        f"{together} F(budget): Kaplan–Meier share of operations done within the budget, mean over objects, as the "
        "paper’s completion; a timeout is slow there and not failed, so that it lies above items moved."
    )
    tables = [("", Table(columns, rows, balance))]
    sides = tuple(
        (side["arm"], *(percent(side[key]) for key in ("moved_same", "moved_opposite")),
         p_value(side["p"], side["p_error"]),
         *(percent(side[key]) for key in ("same", "opposite")))
        for side in spatial["sides"]
        if side["same"] is not None and side["opposite"] is not None
    )  # fmt: skip
    if sides:
        labels = ("Same side, items moved %", "Opposite sides", "p", "Same side, F(budget) %", "Opposite sides")
        note = "p is of items moved, by swapping configurations within objects."
        tables.append(
            ("Tote and camera on the same side, or opposite", Table((ARM, *map(Column, labels)), sides, note))
        )
    return Section("configuration", "Spatial configuration", (), tuple(tables))


def _time(found: Supplement, styles: Mapping[str, Look], reference: str | None) -> Section | None:
    figure = supplementary_figures.trend_figure(found["arms"], styles)
    tables: list[tuple[str, Table]] = []
    if figure:
        tables.append(("", _trends(found)))
    sessions = [by for arm in found["arms"] if (by := arm.get("sessions"))]
    if sessions:
        names = list(dict.fromkeys(name for entry in sessions for name in entry["session"]))
        rows = []
        for entry in sessions:
            by = dict(zip(entry["session"], zip(entry["moved"], entry["episodes"], strict=True), strict=True))
            cells = [f"{percent(by[name][0])} (n = {by[name][1]})" if name in by else MISSING for name in names]
            rows.append((entry["arm"], *cells, p_value(entry["p"], entry["p_error"])))
        columns = (ARM, *(Column(f"{name}, moved %") for name in names), Column("p"))
        tables.append(("By session", Table(columns, tuple(rows), "p by shuffling sessions within objects.")))
    people = found.get("teleoperators") or []
    note = f"{reference} is conditional on who teleoperated: {', '.join(people)}." if reference and people else ""
    return Section("time", "Over the campaign", (figure,) if figure else (), tuple(tables), note)


def _trends(found: Supplement) -> Table:
    """The slope of each arm, in a report of several cells with that in each."""
    several = any("trend_by_cell" in arm for arm in found["arms"])
    rows: list[tuple[str, ...]] = []
    for arm in found["arms"]:
        if whole := arm["trend"]:
            of_all = number(whole["slope"], 2), p_value(whole["p"], whole["p_error"])
            rows.append((arm["arm"], *(("all", count(len(whole["block"]))) if several else ()), *of_all))
        rows += [
            (arm["arm"], one["cell"], count(one["blocks"]), number(one["slope"], 2), p_value(one["p"], one["p_error"]))
            for one in arm.get("trend_by_cell", ())
        ]
    of = (Column("Cell", "text"), Column("Blocks")) if several else ()
    note = f"{TREND_NOTE} {TREND_OF_CELLS}" if several else TREND_NOTE
    return Table((ARM, *of, Column("Slope, s per block"), Column("p")), tuple(rows), note)


def _moved(found: Supplement, result: AnalysisResult) -> Section | None:
    rows = []
    for pair in found["pairs"]:
        moved = pair.get("moved")
        if not moved:
            continue
        rows.append(
            (
                f"{pair['a']} – {pair['b']}",
                moved_difference(moved["difference"], moved["interval"], moved["p"], result["alpha"]),
                p_value(moved["p"], moved["p_error"]),
                f"{moved['blocks']} {'blocks' if moved['paired'] else 'episodes'}",
                number(moved["per_hour"]),
                p_value(pair["logrank_stratified_cluster"], None),
                p_value(pair["logrank_stratified_permutation"], pair["logrank_stratified_permutation_error"]),
            )
        )
    columns = (
        *(Column("Pair", "text"), Column("Items moved, difference in points [95 %]"), Column("p"), Column("Of")),
        *(Column("Items per robot-hour"), Column("Logrank, robust p"), Column("Logrank, permutation p")),
    )
    note = (
        "Items moved of items staged, the first arm less the second, paired in blocks where there are any. Logrank "
        "tests are stratified by object; the ordinary one, which doubles the error, is not shown. p is exact, by "
        f"swaps, of each pair by itself; the interval is t on differences of blocks. {TOO_NARROW}"
    )
    table = Table(columns, tuple(rows), note)
    return Section("moved", "Items moved, pair by pair", (), (("", table),) if rows else ())


def _arms_against_arms(result: AnalysisResult, styles: Mapping[str, Look]) -> Section | None:
    figures = tuple(success_curves.arm_pp_figures(result, styles))
    note = (
        "Each point is one time t up to tau: what the arm below had done by then, and what the arm at the left had. On "
        "the dotted line they keep pace; above it, the arm at the left is ahead. Thick: the mean over the objects that "
        "both met; thin: each object. A line that crosses the diagonal means that which arm is ahead depends on t."
    )
    return Section("arms-pp", "Arm against arm: P–P plots", figures, (), note) if figures else None


def _quantiles(found: Supplement, styles: Mapping[str, Look], reference: str | None) -> Section | None:
    figures = tuple(supplementary_figures.qq_figures(found, styles, reference)) if reference else ()
    note = (
        f"By when {reference} and an arm had done the same share of operations, to tau. On the dotted line both need "
        "the same time. An open circle marks the last share that both reach."
    )
    return Section("quantiles", "The same share, in how much time", figures, (), note)


def _share(count: int | None, share: float | None) -> str:
    return MISSING if not count else f"{count} ({percent(share)} %)"


def _plain(cause: str) -> str:
    return cause.replace("_", " ").capitalize()


def all_figures(made: Sequence[Section]) -> list[Figure]:
    """The figures of all sections."""
    return [figure for section in made for figure in (*section.figures, *section.beside)]
