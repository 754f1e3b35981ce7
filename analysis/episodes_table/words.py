"""The result of an episodes table in tables and sentences, for a terminal.

May not: compute a statistic, or print.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labctl.analysis import numerals
from labctl.analysis.episodes_table.order import Order
from labctl.analysis.episodes_table.pairs import leader
from labctl.analysis.episodes_table.result import ArmOfEpisodes, EpisodesResult, PairOfEpisodes
from labctl.analysis.numerals import counted


@dataclass(frozen=True)
class Shown:
    """A table: headings, and rows of as many cells."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def level(result: EpisodesResult) -> str:
    """The level of one interval, in percent."""
    return f"{100 * (1 - result['alpha']):g} %"


def arms(result: EpisodesResult) -> Shown:
    """Every arm, best first, with the columns that the table can fill."""
    each = level(result)
    columns: list[tuple[str, str | None, Callable[[ArmOfEpisodes], str]]] = [
        ("arm", None, lambda arm: arm["arm"]),
        ("episodes", None, lambda arm: numerals.count(arm["episodes"])),
        ("succeeded", "rate", lambda arm: numerals.count(arm["successes"])),
        (f"success % [{each}]", "rate", lambda arm: numerals.estimate(arm["rate"], arm["rate_ci"], scale=100)),
        (f"score [{each}]", "score", lambda arm: numerals.estimate(arm["score"], arm["score_ci"], digits=3)),
        ("rank [all at once]", "rank", _rank),
        ("letters", "letters", lambda arm: arm["letters"]),
        (f"RMST s [{each}]", "rmst", lambda arm: numerals.estimate(arm["rmst"], arm["rmst_ci"])),
        (f"HRT % [{each}]", "hrt", lambda arm: numerals.estimate(arm["hrt"], arm["hrt_ci"], scale=100)),
    ]
    shown = [c for c in columns if c[1] is None or any(arm.get(c[1]) not in (None, "") for arm in result["arms"])]
    order = sorted(result["arms"], key=lambda arm: (arm["rank"] is None, arm["rank"], arm["arm"]))
    return Shown(tuple(head for head, _, _ in shown), [tuple(cell(arm) for _, _, cell in shown) for arm in order])


def _rank(arm: ArmOfEpisodes) -> str:
    if arm["rank"] is None or arm["rank_ci"] is None:
        return numerals.MISSING
    low, high = arm["rank_ci"]
    return f"{arm['rank']} [{low}, {high}]"


def stages(result: EpisodesResult) -> Shown | None:
    """The funnel: reached and median time of every stage; None for a table without stages."""
    count = max((len(arm["stages"]) for arm in result["arms"]), default=0)
    if not count:
        return None
    rows = [
        (arm["arm"], *(_stage(stage["reached"], stage["ci"], stage["median_s"]) for stage in arm["stages"]))
        for arm in result["arms"]
        if arm["stages"]
    ]
    return Shown(("arm", *(f"stage {k + 1}: reached % [{level(result)}], half by" for k in range(count))), rows)


def _stage(reached: int, ci: Sequence[float] | None, median: float | str | None) -> str:
    by = "" if median is None else f", {numerals.number(median)}{'' if median == 'inf' else ' s'}"
    return f"{reached} {numerals.interval(ci, scale=100)}{by}"


def pairs(result: EpisodesResult) -> Shown | None:
    """Every pair: verdict, difference, who wins, adjusted p, and where a look after each block would have stopped."""
    if not result["pairs"]:
        return None
    on_score = any(pair["score_difference"] is not None for pair in result["pairs"])
    each = level(result)
    head = ("pair", "blocks", "verdict", f"{'score' if on_score else 'success'} difference [{each}]")
    stopped = any(pair["sequence"] is not None for pair in result["pairs"])
    rows = [
        (
            f"{pair['a']} vs {pair['b']}",
            numerals.count(pair["blocks"]),
            verdict_words(pair),
            _difference(pair, on_score),
            numerals.estimate(pair["win"], pair["win_ci"], digits=3),
            numerals.p_value(pair["p_holm"], pair["p_holm_error"]),
            *((numerals.count(pair["stop_block"]),) if stopped else ()),
        )
        for pair in result["pairs"]
    ]
    return Shown((*head, f"win [{each}]", "p (Holm)", *(("stops at",) * stopped)), rows)


def verdict_words(pair: PairOfEpisodes) -> str:
    """The verdict of a pair in a few words."""
    ahead = leader(pair)
    return f"{ahead} better" if ahead else pair["verdict"] or "not tested"


def _difference(pair: PairOfEpisodes, on_score: bool) -> str:
    if on_score:
        return numerals.estimate(pair["score_difference"], pair["score_ci"], digits=3)
    return numerals.estimate(pair["success_difference"], pair["success_ci"], digits=3)


def sentences(result: EpisodesResult, order: Order) -> list[str]:
    """What is said of all arms at once, and of the order they ran in."""
    blocks = result["blocks"]
    said: list[str] = []
    if result["pairs"]:
        text = "win: how often the first of a pair does better within a block, ties one half"
        said.append(f"{text}; stops at: the block after which a look at every block would have stopped.")
    if blocks["friedman_chi2"] is not None:
        degrees = len(result["arms"]) - 1
        text = f"All arms at once, on {blocks['complete']} complete blocks: Friedman chi2 = "
        text += f"{blocks['friedman_chi2']:.1f} on {degrees}, {numerals.p_equals(blocks['friedman_p'], None)}"
        if blocks["cochran_q"] is not None:
            text += (
                f"; success, Cochran's Q = {blocks['cochran_q']:.1f}, {numerals.p_equals(blocks['cochran_p'], None)}"
            )
        said.append(text + ".")
    if blocks["position_chi2"] is not None:
        means = ", ".join(f"{mean:.3f}" for mean in order.places)
        text = f"By place within a block (first to last) the means are {means}: Friedman chi2 = "
        said.append(f"{text}{blocks['position_chi2']:.1f}, {numerals.p_equals(blocks['position_p'], None)}.")
    if order.after_p is not None and order.after:
        most = max(order.after, key=lambda arm: abs(order.after[arm]))
        text = f"Carry-over: most after {most}, by {order.after[most]:+.3f} on the next episode; of all arms together"
        said.append(f"{text} {numerals.p_equals(order.after_p, None)}.")
    if order.trend[0] is not None:
        text = f"Drift over blocks in the order of the table: Kendall's tau = {order.trend[0]:+.3f}"
        said.append(f"{text}, {numerals.p_equals(order.trend[1], None)}.")
    return said


def preference(result: EpisodesResult) -> tuple[Shown, list[str]] | None:
    """Strengths by preference, and what is said of it; None for a table without preferences."""
    found = result["preference"]
    if found is None:
        return None
    rows = [(s["arm"], numerals.estimate(s["strength"], s["ci"], digits=3)) for s in found["davidson"]]
    text = f"Preferred the first of two {found['first']} times, the second {found['second']}, neither {found['tie']}"
    effect = numerals.estimate(found["order_effect"], found["order_ci"], digits=2)
    said = [f"{text}; odds of the second over the first: {effect} [1: no order effect]."]
    if found["agreement"] is not None:
        share = numerals.percent(found["agreement"])
        said.append(f"Where one was preferred and scores differed, the higher score was preferred in {share} %.")
    return Shown(("arm", f"strength by preference [{level(result)}]"), rows), said


def factors(result: EpisodesResult) -> list[str]:
    """What sites and people add to the differences of arms."""
    said: list[str] = []
    for name, found in result["factors"].items():
        if found["tau2"] is None or found["i2"] is None:
            said.append(f"{name}: {counted(found['levels'], 'level')}; nothing can be told of how far they differ.")
            continue
        text = f"{name}: {found['levels']} levels; a pair's difference has a standard deviation of "
        said.append(f"{text}{found['tau2'] ** 0.5:.3f} between them (mean over pairs), I2 {100 * found['i2']:.0f} %.")
        clear = [p for p in found["prediction"] if p["low"] > 0 or p["high"] < 0]
        if found["prediction"]:
            named = "; ".join(f"{p['a']} vs {p['b']} [{p['low']:+.3f}, {p['high']:+.3f}]" for p in clear)
            text = f"At a further {name}, {len(clear)} of {len(found['prediction'])} differences are clear of 0"
            said.append(f"{text}{': ' if clear else ''}{named}.")
    return said


def rows(result: EpisodesResult) -> list[Shown]:
    """Axes, tags, retention and stress, where the table has them."""
    each, p = level(result), numerals.p_value
    found = [
        Shown(
            ("axis", "category", "arm", f"drop [{each}, all axes of an arm]", "p (Holm)", "pairs"),
            [
                (
                    *(d["axis"] or "all", d["category"], d["arm"], _estimate(d["drop"], d["ci"])),
                    *(p(d["p"], d["p_error"]), str(d["pairs"])),
                )
                for d in result["axes"]
            ],
        ),
        Shown(
            ("tag", "arm", f"effect of the tag [{each}]", "p"),
            [(t["tag"], t["arm"], _estimate(t["effect"], t["ci"]), p(t["p"], t["p_error"])) for t in result["tags"]],
        ),
        Shown(
            ("arm", f"retention, test / train [{each}]"),
            [(r["arm"], _estimate(r["retention"], r["ci"])) for r in result["retention"]],
        ),
        Shown(
            ("family", "level", "arm", f"score [{each}]"),
            [(s["family"], s["level"], s["arm"], _estimate(s["score"], s["ci"])) for s in result["stress"]],
        ),
    ]  # fmt: skip
    return [shown for shown in found if shown.rows]


def _estimate(value: float | None, ci: numerals.Bounds) -> str:
    return numerals.estimate(value, ci, digits=3)
