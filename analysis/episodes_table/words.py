"""The result of an episodes table in tables and sentences, for a terminal.

May not: compute a statistic, or print.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labctl.analysis import numerals
from labctl.analysis.blocks.enough import STATEMENTS
from labctl.analysis.blocks.heatmap import HARD
from labctl.analysis.episodes_table.pairs import leader
from labctl.analysis.episodes_table.result import ArmOfEpisodes, EpisodesResult, Factor, PairOfEpisodes, StageReached
from labctl.analysis.numerals import counted
from labctl.analysis.survival.intervals import FEWEST_TO_PREDICT


@dataclass(frozen=True)
class Shown:
    """A table: headings, and rows of as many cells."""

    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def level(result: EpisodesResult) -> str:
    """The level of one interval, in percent."""
    return f"{numerals.confidence(result['alpha'])} %"


def arms(result: EpisodesResult) -> Shown:
    """Every arm, best first, with the columns that the table can fill."""
    each = level(result)
    in_part = any(arm["judged"] < arm["episodes"] for arm in result["arms"])
    columns: list[tuple[str, str | None, Callable[[ArmOfEpisodes], str]]] = [
        ("arm", None, lambda arm: arm["arm"]),
        ("episodes", None, lambda arm: numerals.count(arm["episodes"])),
        ("succeeded / judged", "rate", succeeded)
        if in_part
        else ("succeeded", "rate", lambda arm: numerals.count(arm["successes"])),
        (f"success % [{each}]", "rate", lambda arm: numerals.estimate(arm["rate"], arm["rate_ci"], scale=100)),
        (f"score [{each}]", "score", lambda arm: numerals.estimate(arm["score"], arm["score_ci"], digits=3)),
        ("rank [all at once]", "rank", rank),
        ("letters", "letters", lambda arm: arm["letters"]),
        (f"RMST s [{each}]", "rmst", lambda arm: numerals.estimate(arm["rmst"], arm["rmst_ci"])),
        (f"HRT % [{each}]", "hrt", lambda arm: numerals.estimate(arm["hrt"], arm["hrt_ci"], scale=100)),
    ]
    shown = [c for c in columns if c[1] is None or any(arm.get(c[1]) not in (None, "") for arm in result["arms"])]
    rows = [tuple(cell(arm) for _, _, cell in shown) for arm in arms_in_order(result)]
    return Shown(tuple(head for head, _, _ in shown), rows)


def arms_in_order(result: EpisodesResult) -> list[ArmOfEpisodes]:
    """The arms, best first by the measure; those without a rank last."""
    return sorted(result["arms"], key=lambda arm: (arm["rank"] is None, arm["rank"], arm["arm"]))


def succeeded(arm: ArmOfEpisodes) -> str:
    """How many of its judged episodes did all of the task: "0 / 12"."""
    return numerals.MISSING if arm["successes"] is None else f"{arm['successes']} / {arm['judged']}"


def rank(arm: ArmOfEpisodes) -> str:
    """An arm's rank with its interval."""
    if arm["rank"] is None or arm["rank_ci"] is None:
        return numerals.MISSING
    low, high = arm["rank_ci"]
    return f"{arm['rank']} [{low}, {high}]"


def stages(result: EpisodesResult) -> Shown | None:
    """The funnel: reached and median time of every stage; None for a table without stages."""
    count = max((len(arm["stages"]) for arm in result["arms"]), default=0)
    if not count:
        return None
    rows = [(arm["arm"], *map(_stage, arm["stages"])) for arm in result["arms"] if arm["stages"]]
    return Shown(("arm", *(f"stage {k + 1}: reached % [{level(result)}] (n), half by" for k in range(count))), rows)


def _stage(stage: StageReached) -> str:
    share = stage["reached"] / stage["episodes"] if stage["episodes"] else None
    text = f"{numerals.estimate(share, stage['ci'], scale=100)} ({stage['reached']})"
    median = stage["median_s"]
    by = "" if median is None else f", {numerals.number(median)}{'' if median == 'inf' else ' s'}"
    return f"{text}{by}"


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
            numerals.estimate(*measured(pair, on_score), digits=3),
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


def measured(pair: PairOfEpisodes, on_score: bool) -> tuple[float | None, numerals.Bounds]:
    """A pair's difference in score, or in success, with its interval."""
    if on_score:
        return pair["score_difference"], pair["score_ci"]
    return pair["success_difference"], pair["success_ci"]


def sentences(result: EpisodesResult) -> list[str]:
    """What is said of all arms at once, and of the order they ran in."""
    blocks = result["blocks"]
    sentences: list[str] = []
    if result["pairs"]:
        text = "win: how often the first of a pair does better within a block, ties one half"
        sentences.append(f"{text}; stops at: the block after which a look at every block would have stopped.")
    if blocks["friedman_chi2"] is not None:
        degrees = len(result["arms"]) - 1
        text = f"All arms at once, on {blocks['complete']} complete blocks: Friedman chi2 = "
        text += f"{blocks['friedman_chi2']:.1f} on {degrees}, {numerals.p_equals(blocks['friedman_p'], None)}"
        if blocks["cochran_q"] is not None:
            text += (
                f"; success, Cochran's Q = {blocks['cochran_q']:.1f}, {numerals.p_equals(blocks['cochran_p'], None)}"
            )
        sentences.append(text + ".")
    sentences += of_order(result)
    if result["enough"]:
        sentences.append(f"Found in draws of so many blocks: {STATEMENTS[0].lower()}{STATEMENTS[1:]}")
    return sentences


def of_order(result: EpisodesResult) -> list[str]:
    """What is said of the order that arms ran in."""
    blocks, order = result["blocks"], result["order"]
    sentences: list[str] = []
    if blocks["position_chi2"] is not None:
        means = ", ".join(f"{mean:.3f}" for mean in order["places"])
        text = f"By place within a block (first to last) the means are {means}: Friedman chi2 = "
        sentences.append(f"{text}{blocks['position_chi2']:.1f}, {numerals.p_equals(blocks['position_p'], None)}.")
    after = order["after"]
    if order["after_p"] is not None and after:
        most = max(after, key=lambda arm: abs(after[arm]))
        text = f"Carry-over: most after {most}, by {numerals.signed(after[most])} on the next episode"
        sentences.append(f"{text}; of all arms together {numerals.p_equals(order['after_p'], None)}.")
    if order["trend"] is not None:
        text = f"Drift over blocks in the order of the table: Kendall's tau = {numerals.signed(order['trend'])}"
        sentences.append(f"{text}, {numerals.p_equals(order['trend_p'], None)}.")
    return sentences


def preference(result: EpisodesResult) -> tuple[Shown, list[str]] | None:
    """Strengths by preference, and what is said of it; None for a table without preferences."""
    found = result["preference"]
    if found is None:
        return None
    rows = [(s["arm"], numerals.estimate(s["strength"], s["ci"], digits=3)) for s in found["davidson"]]
    text = f"Preferred the first of two {found['first']} times, the second {found['second']}, neither {found['tie']}"
    effect = numerals.estimate(found["order_effect"], found["order_ci"], digits=2)
    known = found["order_effect"] is not None
    odds = (
        f"odds of the second over the first: {effect} [1: no order effect]" if known else "no effect of order is known"
    )
    sentences = [f"{text}; {odds}."]
    if found["agreement"] is not None:
        share = numerals.percent(found["agreement"])
        sentences.append(f"Where one was preferred and scores differed, the higher score was preferred in {share} %.")
    return Shown(("arm", f"strength by preference [{level(result)}]"), rows), sentences


def factors(result: EpisodesResult) -> list[str]:
    """What sites and people add to the differences of arms."""
    return [text for name, found in result["factors"].items() for text in of_factor(name, found)]


def of_factor(name: str, found: Factor) -> list[str]:
    """What one factor adds to the differences of arms."""
    if found["tau2"] is None or found["i2"] is None:
        return [f"{name}: {counted(found['levels'], 'level')}; nothing can be told of how far they differ."]
    text = f"{name}: {found['levels']} levels; a pair's difference has a standard deviation of "
    sentences = [f"{text}{found['tau2'] ** 0.5:.3f} between them (mean over pairs), I2 {100 * found['i2']:.0f} %."]
    if name == "cell" and not found["prediction"]:
        text = f"cell: what is said is of these {found['levels']}; an interval for a further one needs"
        sentences.append(f"{text} {FEWEST_TO_PREDICT}.")
    if found["prediction"]:
        clear = [p for p in found["prediction"] if p["low"] > 0 or p["high"] < 0]
        named = "; ".join(
            f"{p['a']} vs {p['b']} [{numerals.signed(p['low'])}, {numerals.signed(p['high'])}]" for p in clear
        )
        text = f"At a further {name}, {len(clear)} of {len(found['prediction'])} differences are clear of 0"
        sentences.append(f"{text}{': ' if clear else ''}{named}.")
    return sentences


def compositions(result: EpisodesResult) -> list[tuple[str, ...]]:
    """Of several axes at once: axes, arm, drop, single drops added up, what is beyond them, p, sets."""
    return [
        (
            one["axis"], one["arm"], numerals.number(one["drop"], 3), numerals.number(one["singles"], 3),
            _estimate(one["beyond"], one["ci"]), numerals.p_value(one["p"], None), str(one["pairs"]),
        )
        for one in result["compositions"]
    ]  # fmt: skip


def breaks(result: EpisodesResult) -> list[tuple[str, ...]]:
    """Of each arm along each family: the clearest break, the means on both sides of it, p of any break."""
    return [
        (
            one["family"], one["arm"], f"{one['holds']} to {one['breaks']}", numerals.number(one["before"], 3),
            numerals.number(one["after"], 3), numerals.p_value(one["p"], one["p_error"]),
        )
        for one in result["cliffs"]
    ]  # fmt: skip


def rows(result: EpisodesResult) -> list[Shown]:
    """Axes, tags, retention, stress, tasks by arms and fewer blocks, where the table has them."""
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
            ("axes together", "arm", "drop", "single drops added up", f"beyond [{each}]", "p", "sets"),
            compositions(result),
        ),
        Shown(
            ("tag", "arm", "tasks with / without", f"effect of the tag [{each}]", "p", "smallest p"),
            [
                (
                    t["tag"], t["arm"], f"{t['tasks_with']} / {t['tasks_without']}", _estimate(t["effect"], t["ci"]),
                    p(t["p"], t["p_error"]), p(t["smallest_p"], None),
                )
                for t in result["tags"]
            ],
        ),
        Shown(
            ("arm", "train", "test", f"retention, test / train [{each}]"),
            [
                (
                    r["arm"], numerals.number(r["train"], 3), numerals.number(r["test"], 3),
                    _estimate(r["retention"], r["ci"]),
                )
                for r in result["retention"]
            ],
        ),
        _by_family(result, each),
        Shown(
            ("family", "level", "arm", f"score [{each}]"),
            [(s["family"], s["level"], s["arm"], _estimate(s["score"], s["ci"])) for s in result["stress"]],
        ),
        Shown(
            ("family", "arm", "clearest break", "mean up to there", "mean from there on", "p of any break"),
            breaks(result),
        ),
        _by_task(result),
        _fewer(result),
    ]  # fmt: skip
    return [shown for shown in found if shown.rows]


def _by_family(result: EpisodesResult, each: str) -> Shown:
    arms = list(dict.fromkeys(one["arm"] for one in result["families"]))
    at = {(one["family"], one["arm"]): _estimate(one["score"], one["ci"]) for one in result["families"]}
    listed = dict.fromkeys(one["family"] for one in result["families"])
    rows = [(family, *(at.get((family, arm), numerals.MISSING) for arm in arms)) for family in listed]
    return Shown((f"family [{each}]", *arms), rows)


def _by_task(result: EpisodesResult) -> Shown:
    found = result["tasks"]
    if found is None:
        return Shown((), [])
    arms = list(dict.fromkeys(cell["arm"] for cell in found["cells"]))
    at = {(cell["task"], cell["arm"]): numerals.estimate(cell["mean"], cell["ci"], digits=2) for cell in found["cells"]}
    listed = dict.fromkeys(cell["task"] for cell in found["cells"])
    return Shown((found["by"], *arms), [(task, *(at[task, arm] for arm in arms)) for task in listed])


def _fewer(result: EpisodesResult) -> Shown:
    """How many blocks would have done, a column a number of blocks."""
    sizes = sorted({one["blocks"] for one in result["enough"]})
    at = {(one["a"], one["b"], one["blocks"]): one["detected"] for one in result["enough"]}
    pairs = dict.fromkeys((one["a"], one["b"]) for one in result["enough"])
    return Shown(
        ("found in draws of so many blocks, %", *map(str, sizes)),
        [(f"{a} vs {b}", *(numerals.percent(at.get((a, b, size)), 0) for size in sizes)) for a, b in pairs],
    )


def tasks(result: EpisodesResult) -> list[str]:
    """Tasks that are low for every arm, and pairs whose difference depends on the task."""
    found = result["tasks"]
    if found is None:
        return []
    sentences: list[str] = []
    if found["hard"]:
        named = "; ".join(
            f"{hard['task']} (best: {hard['best_arm']}, {numerals.estimate(hard['best'], hard['ci'], digits=2)})"
            for hard in found["hard"]
        )
        sentences.append(f"Low for every arm, the best one’s mean at most {HARD:g}: {named}.")
    for pair in found["complementary"]:
        text = f"The difference of {pair['a']} and {pair['b']} depends on the {found['by']}"
        text += f" ({numerals.p_equals(pair['p_holm'], None)}, Holm over pairs): {pair['a']} has the higher mean at "
        text += f"{numerals.listing(pair['a_leads'])}, {pair['b']} at {numerals.listing(pair['b_leads'])}. Choosing by "
        text += f"{found['by']} would have made {pair['together']:.3f} where one arm made {pair['single']:.3f}, on "
        sentences.append(f"{text}these same episodes, which flatters the choice.")
    if not found["complementary"] and result["pairs"]:
        sentences.append(f"No pair’s difference was shown to depend on the {found['by']} (Holm over pairs).")
    return sentences


def _estimate(value: float | None, ci: numerals.Bounds) -> str:
    return numerals.estimate(value, ci, digits=3)
