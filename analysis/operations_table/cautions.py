"""Sentences a reader must see beside the numbers: what the table or its size does not support.

Changes no number and raises nothing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from labctl.analysis.early_ends import WITH_THE_RUN
from labctl.analysis.numerals import counted
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import MOST_TOGETHER, blocks_of, blocks_over_objects, unseen
from labctl.analysis.survival.curves import NEVER_NS, WANG_CHANG, rmst_with_error
from labctl.analysis.survival.ks import pair_of
from labctl.analysis.survival.resample import Exchange, smallest_attainable, swap_count, ways_of
from labctl.analysis.table import CENSORED, NS, UNKNOWN, WRONG_END, Table

Key = tuple[str, str]
FEW = 5
PERCENTILE_NEEDS = 20


def unequal_budgets(cells: Mapping[Key, Cell]) -> dict[Key, str]:
    """Pairs of arms, both ways round, whose episodes have other budgets at an object both met, with the sentence.

    Refused rather than tested: no resampling mends it (facts §4.4, rejects .08 to .17 at a nominal .05). Budgets are
    equal where either side has each as often in proportion, or where the two are compared within blocks and all
    episodes of a block have one budget.
    """
    out: dict[Key, str] = {}
    for a, b in itertools.combinations(sorted({arm for arm, _ in cells}), 2):
        for obj in sorted({o for arm, o in cells if arm == a} & {o for arm, o in cells if arm == b}):
            one, two = cells[a, obj], cells[b, obj]
            found = [Counter(c.budget_ns.tolist()) for c in (one, two)]
            if UNKNOWN in found[0] or UNKNOWN in found[1] or _alike(*found) or _by_block(one, two):
                continue
            texts = [_in_words(counts) for counts in found]
            out[a, b] = out[b, a] = (
                f"{a} and {b} had unequal time budgets at {obj} ({texts[0]} and {texts[1]}): not compared"
            )
    return out


def _alike(one: Counter[int], two: Counter[int]) -> bool:
    """Whether every budget is as frequent, in proportion, on both sides."""
    return one.keys() == two.keys() and all(one[v] * two.total() == two[v] * one.total() for v in one)


def _by_block(one: Cell, two: Cell) -> bool:
    """Whether all episodes have a block, and those of a block one budget."""
    if not (blocks_of(one) and blocks_of(one) == blocks_of(two)):
        return False
    met = {*zip(one.blocks, one.budget_ns.tolist(), strict=True), *zip(two.blocks, two.budget_ns.tolist(), strict=True)}
    return len(met) == len(blocks_of(one))


def _in_words(counts: Counter[int]) -> str:
    """`120 s`, or `18 × 120 s, 2 × 360 s`."""
    if len(counts) == 1:
        return f"{next(iter(counts)) / NS:g} s"
    return ", ".join(f"{n} × {v / NS:g} s" for v, n in sorted(counts.items()))


def cautions(
    table: Table,
    cells: Mapping[Key, Cell],
    together: Mapping[Key, Cell],
    tau_ns: int,
    refused: Mapping[Key, str],
    alpha: float,
    exchanges: Mapping[Key, Sequence[Exchange]],
) -> list[str]:
    """Every warning of the result, in a fixed order. together: the cells that are compared; exchanges: of the pairs
    whose labels the schedule moves.
    """
    arms = sorted({a for a, _ in cells})
    objects = sorted({o for _, o in cells})
    out = list(dict.fromkeys(refused.values()))
    out += [
        f"{a} has no episode at {o}: it is compared on its other objects only"
        for a in arms
        for o in objects
        if (a, o) not in cells
    ]
    out += [f"{arm}: every episode is void; the arm is left out" for arm in table.arms() if arm not in arms]
    voids = sum(e.void for e in table.episodes)
    if voids:
        out.append(f"{counted(voids, 'void episode')} left out")
    few = [f"{arm} / {obj}" for (arm, obj), c in cells.items() if c.episodes < FEW]
    if few:
        which = ", ".join(few) if len(few) < len(cells) or len(few) == 1 else f"every arm at every object ({len(few)})"
        out.append(f"fewer than {FEW} episodes, intervals mean little: {which}")
    small = sum(c.episodes < PERCENTILE_NEEDS for c in cells.values())
    if small:
        found = f"{small} of {len(cells)} pairs of an arm and an object have fewer than {PERCENTILE_NEEDS} episodes"
        out.append(f"{found}: their percentile intervals cover less than they say")
    if joined := blocks_over_objects(cells):
        most = f"beyond the {MOST_TOGETHER} that are drawn together"
        found = f"{joined} pairs of an arm and an object share blocks over several objects, {most}"
        out.append(f"{found}: intervals take the objects for independent")
    for (arm, obj), cell in cells.items():
        out += [f"{arm} / {obj}: {text}" for text in _of_cell(cell, tau_ns)]
    alone = Counter(e.arm for e in table.episodes if e.alone and not e.void)
    out += [
        f"{arm}: {counted(n, 'episode')} of extra blocks of its own count in its own numbers and HRT, and in no pair"
        for arm, n in sorted(alone.items())
    ]
    out += _of_pairs(together, arms, tau_ns, refused, alpha, exchanges)
    return out


def _of_cell(cell: Cell, tau_ns: int) -> list[str]:
    out = []
    if (cell.kind == CENSORED).all():
        out.append("no operation ended; RMST equals the follow-up or tau and its standard error 0 is no certainty")
    else:
        finite = cell.durations.time_ns[cell.durations.time_ns < NEVER_NS]
        longest = int(finite.max()) if len(finite) else 0
        still_open = not (cell.durations.event[cell.durations.time_ns >= longest]).all()
        if longest < tau_ns and still_open:
            seconds = round(longest / NS, 1)
            out.append(f"followed for {seconds:g} s only; its curve is carried flat to tau {tau_ns / NS:g} s")
    if cell.estimator == WANG_CHANG:
        value = rmst_with_error(cell.timed, tau_ns)[0]
        if unseen(value, cell.episodes, tau_ns / NS):
            more = (tau_ns / NS - value) / ((cell.episodes + 1) * value)
            found = f"one more episode, stuck until tau, would raise its RMST of {value:.3g} s by {100 * more:.0f} %"
            out.append(f"{found}: {cell.episodes} may have met none of that kind, and its interval is widened for it")
    stated = cell.budget_ns[cell.budget_ns != UNKNOWN]
    if len(stated) and stated.min() < tau_ns:
        out.append(f"a budget of {stated.min() / NS:g} s is shorter than tau {tau_ns / NS:g} s")
    if len(np.unique(cell.budget_ns)) > 1:
        out.append("episodes have different time budgets")
    if (cell.budget_ns == UNKNOWN).any():
        out.append("no budget_s; completion and mtbf are taken at tau")
    if cell.ended_early:
        who = "by a person or with the run" if WITH_THE_RUN in cell.cause else "by a person"
        out.append(f"{counted(cell.ended_early, 'episode')} ended early {who}")
    wrong = cell.cause.count(WRONG_END)
    if wrong:
        many = "episodes were" if wrong > 1 else "episode was"
        out.append(f"{wrong} {many} ended by a device while items remained; what was open is censored there")
    if cell.futile_without_budget:
        out.append("an episode ended for lack of progress has no budget_s; its tail stays as observed")
    return out


POOLED = 0.02
"""By how much the difference in items moved may change with the weights of objects before it is said."""


def _pooled(a: Sequence[Cell], b: Sequence[Cell]) -> list[str]:
    """That items moved, pooled over objects which two arms met unequally often, say another thing than per object."""
    if any((c.staged == UNKNOWN).any() for c in (*a, *b)):
        return []
    sides = [[(int(c.moved.sum()), int(c.staged.sum())) for c in arm] for arm in (a, b)]
    pooled = [sum(m for m, _ in arm) / sum(s for _, s in arm) for arm in sides]
    equal = [sum(m / s for m, s in arm) / len(arm) for arm in sides]
    if abs((pooled[0] - pooled[1]) - (equal[0] - equal[1])) <= POOLED:
        return []
    found = [f"{100 * one:.1f} % against {100 * two:.1f} %" for one, two in (pooled, equal)]
    return [
        f"items moved of {a[0].arm} and {b[0].arm}, {found[0]} pooled over objects, are {found[1]} with objects "
        "weighted equally: they met objects unequally often, so the pooled shares are not to be compared"
    ]


def _of_pairs(
    cells: Mapping[Key, Cell],
    arms: list[str],
    tau_ns: int,
    refused: Mapping[Key, str],
    alpha: float,
    exchanges: Mapping[Key, Sequence[Exchange]],
) -> list[str]:
    out = []
    for a, b in itertools.combinations(arms, 2):
        shared = sorted({o for arm, o in cells if arm == a} & {o for arm, o in cells if arm == b})
        if shared and (a, b) not in refused:
            by_design = exchanges.get((a, b)) or exchanges.get((b, a)) or ()
            pair = pair_of([cells[a, o] for o in shared], [cells[b, o] for o in shared], tau_ns)
            least = smallest_attainable(by_design, pair.strata, pair.is_a)
            if least > alpha:
                swaps = ways_of(by_design) if by_design else swap_count(pair.strata, pair.is_a)
                ways = counted(swaps, "relabelling")
                out.append(f"{a} and {b}: only {ways} within blocks; p cannot be below {least:.3g}")
            out += _pooled([cells[a, o] for o in shared], [cells[b, o] for o in shared])
        elif not shared:
            out.append(f"{a} and {b} have no object in common: not compared")
    return out
