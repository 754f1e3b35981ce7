"""The studies of docs/statistics-calibration.md, by name: what each simulates, and how often at most."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from labctl.analysis.planning.distributions import Distribution
from support.statistics import budgets
from support.statistics.assurance import by_row, promises
from support.statistics.calibration import coverage, rejections
from support.statistics.claims import EVEN, WIDE, positions, unequal_spreads, verdicts
from support.statistics.cohorts import DISTRIBUTIONS
from support.statistics.evenings import Evenings
from support.statistics.evenings import coverage as further
from support.statistics.few_blocks import coverage as few
from support.statistics.interim_looks import DRAWN, stopped, stopped_by_the_test
from support.statistics.linked_campaigns import told_apart
from support.statistics.marginals import Paced, biases
from support.statistics.marginals import coverage as held
from support.statistics.margins import at_margin, within
from support.statistics.several_cells import Joint
from support.statistics.several_cells import held as joint

Row = Mapping[str, float]
NAMED = ("bias %", "±")
Column = Callable[[range], Row]


@dataclass(frozen=True)
class Study:
    """`table` makes columns by name, each with its rows by name, of some runs; `runs` are those of the page where CPU
    allows it, from number `first` on. Each run is a pure function of its number. shares: of runs, all of them.
    """

    says: str
    runs: int
    table: Callable[[range], Mapping[str, Row]]
    first: int = 0
    shares: bool = True


M1, M4 = DISTRIBUTIONS["m1"], DISTRIBUTIONS["m4"]
SCENE, HEAVY, EASY = replace(M1, scene=0.8), replace(M1, frailty=0.9), replace(M1, frailty=0.0, shape=3.0)
NULLS = {
    **{f"{a} v {b}": (a, b, "m1", False) for a, b in ((5, 5), (10, 10), (20, 20), (35, 35), (10, 30))},
    "20 v 20, slow arm": (20, 20, "m4", False),
    "20 blocks": (20, 20, "m1", True),
}
# of each: the law of the first arm, that of the second up to its speed, and what is asked
MARGINS: dict[str, tuple[Distribution, Distribution, dict[str, float]]] = {
    "m1, 1.5": (M1, M1, {"ratio": 1.5}),
    "m1, 2": (M1, M1, {"ratio": 2.0}),
    "m1, four objects, 1.25": (M1, M1, {"ratio": 1.25, "objects": 4}),
    "m1, four objects, 1.5": (M1, M1, {"ratio": 1.5, "objects": 4}),
    "m1, shared scenes, 1.5": (SCENE, SCENE, {"ratio": 1.5, "blocks": True}),
    "frailty .9, 1.5": (HEAVY, HEAVY, {"ratio": 1.5}),
    "even, then frailty .9, 1.5": (EASY, HEAVY, {"ratio": 1.5}),
    "frailty .9, then even, 1.5": (HEAVY, EASY, {"ratio": 1.5}),
    "m4, 1.25": (M4, M4, {"ratio": 1.25}),
    "m4, four objects, 1.25": (M4, M4, {"ratio": 1.25, "objects": 4}),
}
EVENINGS = {
    **{f"{n} evenings": Evenings(n) for n in (4, 5, 6, 8)},
    "4, alike": Evenings(4, apart=0.0),
    "8, apart by .6": Evenings(8, apart=0.6),
    "4, of 5 blocks at 4 objects": Evenings(4, each=5, objects=4),
    "6, 4 people": Evenings(6, people=4, persons=0.3),
    "6, one of 6 people each": Evenings(6, people=6, persons=0.3, turns=1),
    "8 of 4 blocks, 5 people": Evenings(8, each=4, people=5, persons=0.3),
}
CELLS = {
    **{f"{n} cells, alike": Joint(n) for n in (2, 3, 5)},
    "2 of 4 blocks, alike": Joint(2, 4),
    **{f"{n} cells, apart by .3": Joint(n, apart=0.3) for n in (2, 5, 8)},
}
MEANS_S = (10.0, 40.0, 90.0, 200.0)
LOOKS = ((12, 24, 40), (20, 30, 40), (8, 16, 24, 32, 40))


def _margin(name: str, episodes: int, *, alike: bool) -> Column:
    first, second, asked = MARGINS[name]
    ratio = 1.0 if alike else asked["ratio"]
    return lambda runs: within((first, at_margin(first, second, ratio)), episodes, runs, **asked)


def _bias(mean_s: float, episodes: int) -> Column:
    def column(runs: range) -> Row:
        found = biases(Paced(mean_s), episodes, len(runs))
        return {f"{name}, {what}": 100 * v for name, both in found.items() for what, v in zip(NAMED, both, strict=True)}

    return column


def _by_the_test(after: tuple[int, ...]) -> Column:
    return lambda runs: {"any look stops": stopped_by_the_test(after, runs)}


def _each(columns: Mapping[str, Column]) -> Callable[[range], Mapping[str, Row]]:
    return lambda runs: {name: column(runs) for name, column in columns.items()}


_told = functools.partial
STUDIES: dict[str, Study] = {
    "coverage": Study(
        "Share of cohorts whose 95 % intervals hold the truth, by episodes of an arm at each of four objects.",
        10_000,
        _each({f"N = {n}": _told(coverage, ("m1", "m3", "m4"), n) for n in (10, 20, 35)}),
    ),
    "few-blocks": Study(
        "Share of campaigns of few blocks whose 95 % interval of P(T_arm < T_reference) holds the truth.",
        1_000,
        _each(
            {
                **{f"{n} blocks": _told(few, n) for n in (5, 8, 10, 15, 20)},
                "5 blocks of 2 objects each": _told(few, 5, objects=2),
            }
        ),
    ),
    "type-one": Study(
        "Share of pairs of like arms that each test tells apart at .05.",
        10_000,
        _each(
            {
                name: functools.partial(
                    lambda of, runs: rejections(*of[:2], DISTRIBUTIONS[of[2]], runs, blocks=of[3]), of
                )
                for name, of in NULLS.items()
            }
        ),
    ),
    "gamma-frailty-bias": Study(
        "Bias in % of the truth under gamma frailty of variance .5, and its Monte-Carlo error, by RMST of the arm.",
        2_000,
        _each({f"{Paced(m).rmst_s:.3g} s, N = {n}": _bias(m, n) for m in MEANS_S for n in (10, 20)}),
        shares=False,
    ),
    "gamma-frailty": Study(
        "Share of campaigns whose 95 % intervals of Wang & Chang's estimator hold the truth under gamma frailty of "
        "variance .5; the second arm is 1.3 times as slow.",
        2_000,
        _each(
            {
                f"{Paced(m).rmst_s:.3g} s, N = {n}": _told(held, (Paced(m), Paced(1.3 * m)), n)
                for m in MEANS_S
                for n in (10, 20)
            }
        ),
        first=10_000,  # the rule of its intervals was chosen by runs below
    ),
    "shape-only": Study(
        "Share of campaigns in which two arms of equal mean item time and another shape differ, and are ordered, which "
        "is wrong; how often intervals hold the truth.",
        10_000,
        _each(
            {f"N = {n}": _told(verdicts, {"wide": WIDE, "even": EVEN}, n, tau_s=120.0, objects=1) for n in (5, 10, 20)}
        ),
    ),
    "directions": Study(
        "The same of 77 s against 99 s, four objects.",
        2_000,
        _each(
            {
                f"N = {n}": _told(verdicts, {"m1": M1, "m3": DISTRIBUTIONS["m3"]}, n, tau_s=240.0, objects=4)
                for n in (10, 20)
            }
        ),
    ),
    "unequal-variance": Study(
        "Share of pairs of equal means and unequal spreads that each signed test tells apart at .05.",
        10_000,
        _each({f"{a} v {b}": _told(unequal_spreads, a, b) for a, b in ((30, 10), (10, 30), (20, 20))}),
    ),
    "unequal-budgets": Study(
        "Share of pairs of like arms (m1, one object, 20 episodes) that each test would tell apart at .05 if it were "
        "asked, and share that `labctl analyze` refuses to compare; some episodes had 120 s, the others 360.",
        2_000,
        _each(
            {
                f"{a} v {b} of 120 s": _told(budgets.told_apart, a, b, 20)
                for a, b in ((10, 10), (18, 2), (2, 18), (20, 0))
            }
        ),
    ),
    "positions": Study(
        "Share of pairs told apart at .05 where places in a block matter, by the schedule's relabellings and by free "
        "ones.",
        2_000,
        _each(
            {
                f"{arms} arms, {by}, × {slower:g}, place × {math.exp(effect):.2g}": _told(
                    positions, arms, blocks, effect=effect, slower=slower, design=by == "schedule"
                )
                for slower in (1.0, 1.35)
                for arms, blocks in ((2, 20), (3, 24))
                for effect in (0.0, 0.5)
                for by in ("schedule", "free")
            }
        ),
    ),
    "margins": Study(
        "Share of pairs shown to be within a margin at .05, at the margin and alike.",
        4_000,
        _each(
            {
                f"{name}, N = {n}, {'alike' if alike else 'at the margin'}": _margin(name, n, alike=alike)
                for name in MARGINS
                for n in (10, 20)
                for alike in (False, True)
            }
        ),
    ),
    "looks": Study(
        "Share of campaigns of like arms, differences of a block drawn, that any planned look stops, and that peeking "
        "would have.",
        10_000,
        _each({f"{law}, after {', '.join(map(str, a))}": _told(stopped, a, law) for a in LOOKS for law in DRAWN}),
    ),
    "looks-by-the-test": Study(
        "The same by the test of `labctl look` itself: like arms in 40 blocks, four items an episode, the report's "
        "family of four, 999 swaps.",
        10_000,
        _each({f"after {', '.join(map(str, after))}": _by_the_test(after) for after in ((20, 30, 40),)}),
    ),
    "linked": Study(
        "Share of pairs of campaigns that do not differ and are told apart.",
        2_000,
        _each(
            {
                f"{anchors} anchors of {few}, apart by {apart:g}": _told(
                    told_apart, (few, 12), anchors=anchors, apart=apart
                )
                for anchors, few, apart in (
                    *((2, few, 0.0) for few in (2, 3, 4, 12)),
                    *((4, few, 0.0) for few in (3, 12)),
                    *((anchors, few, 0.2) for few in (3, 12) for anchors in (2, 4)),
                )
            }
        ),
    ),
    "few-sessions": Study(
        "Share of campaigns of few evenings whose 95 % interval over further evenings and people holds the truth.",
        1_000,
        _each({name: _told(further, of) for name, of in EVENINGS.items()}),
    ),
    "several-cells": Study(
        "Share of joint campaigns (two objects, six blocks of each in every cell but where said) whose 95 % interval "
        "over these cells holds their truth, that the test tells apart, whose cells Welch's test calls unlike; from "
        "five cells on whose intervals of cells like these and of a further one hold what they are of.",
        1_000,
        _each({name: _told(joint, of) for name, of in CELLS.items()}),
    ),
    "assurance": Study(
        "What pilots of ten episodes promise, and what campaigns of twenty did, by how far apart pilots showed them.",
        1_200,
        lambda runs: by_row(promises(runs)),
        shares=False,
    ),
}
