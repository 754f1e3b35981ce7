"""The tables of pairs of arms: how much they differ, the tests, and the matrix of verdicts.

May not: estimate anything, draw, or claim beyond the verdicts that the result holds.
"""

from __future__ import annotations

from labctl.analysis.numerals import MISSING, confidence, count, estimate, number, p_value
from labctl.analysis.report.tables import ARM, Column, Table, arm_order, without_empty
from labctl.analysis.report.wording import margin_words, matrix_words, time_ratio, verdict_words
from labctl.analysis.survival.result import AnalysisResult, Bounds, PairResult

TOO_NARROW = (
    "†: the interval excludes 0 and the exact p does not; where few blocks differ it is too narrow, and p counts: by "
    "items moved that pair is not resolved."
)
OF_BOTH = (
    "†: the interval excludes 0 (of a ratio 1) and the p of that measure does not; the two rest on different "
    "approximations, of few blocks the interval may be too narrow, and p counts: by that measure the pair is not "
    "resolved."
)


def moved_difference(difference: float | None, ci: Bounds, p: float | None, alpha: float) -> str:
    """A difference in items moved with its interval, in points, marked as by `marked`."""
    return marked(estimate(difference, ci, scale=100), ci, p, alpha)


def marked(shown: str, ci: Bounds, p: float | None, alpha: float) -> str:
    """What is shown of a difference, with † where its interval excludes 0 though its own p is above alpha."""
    return f"{shown} †" if ci is not None and p is not None and p > alpha and not ci[0] <= 0 <= ci[1] else shown


def pair_table(result: AnalysisResult) -> Table:
    """Every pair of arms once: by how much they differ, each with its interval, then the verdict and its p."""
    against_margin, alpha = result.get("margin") is not None, result["alpha"]
    columns = (
        *(Column("Pair", "text"), Column("Time per item, ratio, its family at once"), Column("Ratio alone [95 %]")),
        *(Column("Items per robot-hour, difference [95 %]"), Column("Items moved, points [95 %]")),
        *(Column("P(first is quicker) [95 %]"), Column("Verdict", "text"), Column("p Holm")),
        *([Column("Within the margin", "text")] if against_margin else []),
    )
    rows = tuple(
        (
            f"{pair['a']} – {pair['b']}",
            time_ratio(pair, adjusted=True),
            marked(time_ratio(pair, adjusted=False), pair.get("log_rmst_ratio_ci"), p.get("log_rmst_ratio"), alpha),
            marked(
                estimate(pair.get("uph_difference"), pair.get("uph_difference_ci")),
                pair.get("uph_difference_ci"),
                p.get("uph"),
                alpha,
            ),
            moved_difference(pair.get("moved_difference"), pair.get("moved_difference_ci"), pair.get("moved_p"), alpha),
            estimate(pair.get("auc"), pair.get("auc_ci"), digits=2),
            verdict_words(pair),
            computed(pair.get("p_holm"), pair.get("p_holm_error")),
            *([margin_words(pair)] if against_margin else []),
        )
        for pair in result.get("pairs") or []
        for p in (pair.get("p") or {},)
    )
    level, families = confidence(result["alpha"]), ""
    if reference := result.get("reference"):
        families = f" (those with {reference} are one family, all others another)"
    note = (
        "The first of a pair against the second, on the objects both met; the ratio of time per item is that of RMST. "
        f"Ratios in the first column hold for all pairs of a family at once at {level} %{families}: an order is "
        "claimed where that interval excludes 1, the pair differs, and neither items per hour nor P(first is quicker) "
        "points the other way. Items moved: t on differences of blocks; its exact p stands under Items moved, pair by "
        f"pair. {OF_BOTH} A value without an interval did not vary in these episodes, which "
        "is no certainty."
    )
    return without_empty(Table(columns, rows, note), MISSING)


TESTS = {
    "ks_sup_mean": "sup of mean",
    "ks_macro": "macro KS",
    "log_rmst_ratio": "log RMST",
    "uph": "items/h",
}


def test_table(result: AnalysisResult) -> Table:
    """Every pair once: whether it differs, by the family of statistics that was fixed, and each test by itself."""
    others = (("paper’s KS", "ks_macro_bootstrap"), ("logrank, clustered", "logrank_cluster"))
    tests = (
        *((TESTS[key], key) for key in result["family"]),
        *((TESTS[k], k) for k in TESTS if k not in result["family"]),
    )
    columns = (
        *(Column("Pair", "text"), Column("p Holm"), Column("p family")),
        *(Column(f"p {label}") for label, _ in (*tests, *others)),
        *(Column("KS macro"), Column("KS sup of mean"), Column("Labels exchanged", "text")),
    )
    rows = []
    for pair in result.get("pairs") or []:
        p, errors = pair.get("p") or {}, pair.get("p_error") or {}
        least = {"ks_macro_bootstrap": 1 / (result.get("boot", 0) + 1)} if result.get("boot") else {}
        keys = ("family", *(key for _, key in (*tests, *others)))
        tested = [computed(p.get(key), errors.get(key), least.get(key, 0.0)) for key in keys]
        by, ways = pair.get("relabelled_by"), count(pair.get("relabellings"))
        by = MISSING if by is None else f"{by} ({ways})"
        effects = [number(pair.get(key), 3) for key in ("ks_macro", "ks_sup_mean")]
        rows.append(
            (
                f"{pair['a']} – {pair['b']}",
                computed(pair.get("p_holm"), pair.get("p_holm_error")),
                *tested,
                *effects,
                by,
            )
        )
    families = " among the pairs with the reference and, apart, among the others" if result.get("reference") else ""
    note = (
        f"A pair differs where the Holm-adjusted p is at most alpha = {result['alpha']:g}, "
        f"Holm{families or ' over all'}. "
        f"The family, whose smallest p is tested: {', '.join(TESTS[key] for key in result['family'])}. Other p-values "
        "are context. Log RMST and items/h are tested in units of their standard error. Labels exchanged: as the "
        "schedule could have drawn them, or freely where it leaves too few ways or is unknown, and how many ways. ±, "
        "here and everywhere: the Monte-Carlo error of a p that random draws gave; where none stands a formula "
        "did, or every way was listed."
    )
    return without_empty(Table(columns, tuple(rows), note), computed(None))


def computed(p: float | None, error: float | None = None, least: float = 0.0) -> str:
    """A p as `p_value` has it, or that it was not computed."""
    return "not computed" if p is None else p_value(p, error, least)


def pair_matrix(result: AnalysisResult) -> Table:
    """Verdicts at a glance: row against column, with the Holm-adjusted p; arms that share a letter do not differ."""
    arms = arm_order(result)
    letters = {arm["arm"]: arm.get("letters") or "" for arm in result.get("arms") or []}
    pairs = {frozenset((p["a"], p["b"])): p for p in result.get("pairs") or []}

    def cell(row: str, column: str) -> str:
        pair = pairs.get(frozenset((row, column)))
        if row == column or pair is None:
            return "" if row == column else MISSING
        words = matrix_words(pair, row)
        return words if pair.get("p_holm") is None else f"{words} ({_holm(pair)})"

    rows = tuple((row, *(cell(row, column) for column in arms), letters[row]) for row in arms)
    note = (
        "Row against column, with the Holm-adjusted p: whether the row's arm took less or more time per item; "
        "no order: they differ, but are not ranked; open: not resolved at this N. Two arms share a letter unless they "
        f"differ at alpha = {result['alpha']:g}."
    )
    return Table((ARM, *map(Column, arms), Column("Letters", "text")), rows, note)


def _holm(pair: PairResult) -> str:
    return p_value(pair["p_holm"], pair.get("p_holm_error"))
