"""Every arm by itself: the main table, its mean with interval, Score beside SR, ranks, and time to success.

May not: compare two arms in words; `claims` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labctl.analysis import numerals
from labctl.analysis.episodes_report.claims import level
from labctl.analysis.episodes_report.drawing import SMALL, Dot, dots, name_lines, steps
from labctl.analysis.episodes_table.result import ArmOfEpisodes, EpisodesResult
from labctl.analysis.episodes_table.words import arms_in_order, rank, succeeded
from labctl.analysis.report.figures import RULE, Figure, Look, make, to_csv
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

Looks = Mapping[str, Look]
SUCCEEDED = (
    "Succeeded: episodes that did all of the task, of those judged, with the exact interval (over whole sets of blocks "
    "where blocks belong together). "
)
SCORE = "Score: mean over episodes, interval by whole blocks (whole sets where blocks belong together). "
RANK = "Rank: intervals hold for all arms at once. Arms that share a letter were not told apart."


def main_table(result: EpisodesResult) -> Table:
    """One row an arm, with the columns that the table can fill."""
    each = level(result)
    columns: list[tuple[Column, str | None, Callable[[ArmOfEpisodes], str]]] = [
        (ARM, None, lambda arm: arm["arm"]),
        (Column("Succeeded / episodes"), "rate", succeeded),
        (Column(f"Success % [{each} %]"), "rate", lambda a: numerals.estimate(a["rate"], a["rate_ci"], scale=100)),
        (Column(f"Score [{each} %]"), "score", lambda arm: numerals.estimate(arm["score"], arm["score_ci"], digits=3)),
        (Column("Rank [all at once]"), "rank", rank),
        (Column("Letters"), "letters", lambda arm: arm["letters"]),
        (Column(f"RMST s [{each} %]"), "rmst", lambda arm: numerals.estimate(arm["rmst"], arm["rmst_ci"])),
        (Column(f"HRT % [{each} %]"), "hrt", lambda a: numerals.estimate(a["hrt"], a["hrt_ci"], scale=100)),
        (Column("Episodes"), None, lambda arm: numerals.count(arm["episodes"])),
    ]
    several = len(result["arms"]) > 1
    columns = [column for column in columns if several or column[1] not in ("rank", "letters")]
    shown = [c for c in columns if c[1] is None or any(arm.get(c[1]) not in (None, "") for arm in result["arms"])]
    rows = tuple(tuple(cell(arm) for _, _, cell in shown) for arm in arms_in_order(result))
    note = (SUCCEEDED if _given(result, "rate") else "") + (SCORE if _given(result, "score") else "")
    note += RANK if several else ""
    if result["tasks"] and result["tasks"]["by"] == "task":
        note += " Means are over the episodes of all tasks; each task by itself stands below."
    if any(arm["rmst"] is not None for arm in result["arms"]):
        note += (
            f" RMST: mean time to success, cut at {numerals.number(result['tau'], 0)} s; without success the whole "
            "budget, also where an episode was ended early, or up to its end where the table has no budget for it."
        )
    if _given(result, "hrt"):
        note += f" HRT: RMST of {result['reference']} over that of the arm."
    return Table(tuple(column for column, _, _ in shown), rows, note)


def void_table(
    result: EpisodesResult, after_go: Mapping[str, int], judged: Mapping[str, int] | None = None
) -> Table | None:
    """The main numbers again, with every void after go counted as an episode without success or score; None without
    any. after_go: how many of each arm; judged: how many of those are of tasks that succeed or do not, None: all.
    """
    if not any(after_go.values()):
        return None
    measures = [(key, name) for key, name in (("rate", "Success %"), ("score", "Score")) if _given(result, key)]
    rows = []
    for arm in arms_in_order(result):
        voids = after_go.get(arm["arm"], 0)
        cells = []
        for key, _ in measures:
            value, scale, digits = arm[key], *((100.0, 1) if key == "rate" else (1.0, 3))
            counted, more = arm["episodes"], voids
            if key == "rate":
                counted, more = arm["judged"], (after_go if judged is None else judged).get(arm["arm"], 0)
            share = counted / max(1, counted + more)
            known = [None, None] if value is None else [scale * value, scale * value * share]
            cells += [numerals.number(one, digits) for one in known]
        rows.append((arm["arm"], numerals.count(voids), *cells))
    columns = [ARM, Column("Voids after go")]
    for _, name in measures:
        columns += [Column(name), Column(f"{name}, voids as none")]
    return Table(tuple(columns), tuple(rows))


def _given(result: EpisodesResult, key: str) -> bool:
    return any(arm.get(key) is not None for arm in result["arms"])


def means(result: EpisodesResult, looks: Looks) -> Section:
    """Every arm by itself: its mean and its rank, and score beside share of successes."""
    arms, of_score, each = arms_in_order(result), result["measure"] == "score", level(result)
    value, ci = ("score", "score_ci") if of_score else ("rate", "rate_ci")
    shown = [Dot(arm["arm"], arm[value], arm[ci], looks[arm["arm"]]) for arm in arms]
    axis = f"{'mean score' if of_score else 'share of successes'}, with its {each} % interval"
    figures = [
        dots("means", f"Mean {result['measure']}" if of_score else "Share of successes", shown, axis, limits=(0, 1))
    ]
    ranked = [a for a in arms if a["rank"] is not None and a["rank_ci"] is not None]
    if len(ranked) > 1:
        rows = [Dot(a["arm"], a["rank"], [float(r) for r in a["rank_ci"] or ()], looks[a["arm"]]) for a in ranked]
        figures.append(
            dots(
                "ranks", "Ranks", rows, "rank; the intervals hold for all arms at once",
                limits=(0.5, len(ranked) + 0.5), whole=True,
            )
        )  # fmt: skip
    both = [arm for arm in arms if of_score and arm["rate"] is not None and arm["score"] is not None]
    if both:
        figures.append(_beside(both, looks))
    note = (
        "Intervals of single arms are wider than what a comparison within blocks rests on: whether two arms differ is "
        "read from their pair, not from two intervals here."
    )
    if both:
        note += (
            " Score beside SR: whole successes alone hide how far the other episodes came. Above the line an arm earns "
            "points in episodes that it does not finish."
        )
    return Section("arms", "Every arm by itself", tuple(figures), (), note, wide=True, opened=True)


def _beside(arms: list[ArmOfEpisodes], looks: Looks) -> Figure:
    def draw(ax) -> None:
        ax.plot((0, 1), (0, 1), color=RULE, linewidth=0.8)
        for arm in arms:
            look, x, y = looks[arm["arm"]], arm["rate"], arm["score"]
            if arm["rate_ci"] is not None:
                ax.plot([*arm["rate_ci"]], [y, y], color=look.colour, linewidth=1.1)
            if arm["score_ci"] is not None:
                ax.plot([x, x], [*arm["score_ci"]], color=look.colour, linewidth=1.1)
            ax.plot(x, y, color=look.colour, marker=look.mark or "o", markersize=6, linestyle="none")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="SR, share of successes", ylabel="mean score")
        name_lines(ax, {arm["arm"]: looks[arm["arm"]] for arm in arms})

    head = ("arm", "rate", "rate_low", "rate_high", "score", "score_low", "score_high")
    rows = [(a["arm"], a["rate"], *(a["rate_ci"] or ("", "")), a["score"], *(a["score_ci"] or ("", ""))) for a in arms]
    return make("score-and-success", "Score beside SR", (SMALL + 0.8, SMALL), draw, to_csv(head, rows))


def times(result: EpisodesResult, looks: Looks) -> Section | None:
    """Time to success, where the table has times."""
    timed = [arm for arm in arms_in_order(result) if arm["curve"] is not None]
    tau = result["tau"]
    if not timed or tau is None:
        return None
    curves = {a["arm"]: (looks[a["arm"]], curve["t"], curve["F"]) for a in timed if (curve := a["curve"])}
    each = level(result)
    figures = [
        steps("time-to-success", "Done by then", curves, "share of episodes", tau),
        dots(
            "rmst", "RMST", [Dot(a["arm"], a["rmst"], a["rmst_ci"], looks[a["arm"]]) for a in timed],
            f"mean time to success up to {tau:g} s, with its {each} % interval", limits=(0, tau),
        ),
    ]  # fmt: skip
    note = (
        "Kaplan–Meier of the time to success, one operation an episode. An episode without success is censored at its "
        "full budget, also where somebody ended it early: giving up is not being quick; one for which the table has no "
        f"budget is censored where it ended. RMST is the area above the curve up to {tau:g} s."
    )
    return Section("times", "Time to success", tuple(figures), (), note, wide=True)
