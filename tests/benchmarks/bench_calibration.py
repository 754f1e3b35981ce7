"""Calibration in full: type I of every test and coverage of every interval, for docs/statistics-calibration.md.

    python -m pytest -q -s -m benchmark tests/benchmarks/bench_calibration.py

`LABCTL_CALIBRATION_RUNS` sets the outer runs (10,000 by default, about an hour of one core); claims, evenings and
assurance have 2,000 at most, margins 4,000.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import pytest
from labctl.analysis.planning.distributions import Distribution
from support.statistics.assurance import by_row, promises
from support.statistics.calibration import coverage, rejections
from support.statistics.claims import EVEN, WIDE, positions, unequal_spreads, verdicts
from support.statistics.cohorts import DISTRIBUTIONS
from support.statistics.evenings import Evenings
from support.statistics.evenings import coverage as further
from support.statistics.interim_looks import DRAWN, stopped, stopped_by_the_test
from support.statistics.linked_campaigns import told_apart
from support.statistics.marginals import Paced, biases
from support.statistics.marginals import coverage as held
from support.statistics.margins import at_margin, within

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(86_400)]
RUNS = int(os.environ.get("LABCTL_CALIBRATION_RUNS", "10000"))
CLAIMS = min(RUNS, 2000)
NULLS = {
    "5 v 5": (5, 5, "m1", False),
    "10 v 10": (10, 10, "m1", False),
    "20 v 20": (20, 20, "m1", False),
    "35 v 35": (35, 35, "m1", False),
    "10 v 30": (10, 30, "m1", False),
    "20 v 20, slow arm": (20, 20, "m4", False),
    "20 blocks": (20, 20, "m1", True),
}


def table(columns: dict[str, dict[str, float]], runs: int = RUNS) -> None:
    names = list(dict.fromkeys(name for found in columns.values() for name in found))
    print(f"\n\n{runs} runs\n\n| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name in names:
        cells = [f"{found[name]:.4f}".lstrip("0") if name in found else "" for found in columns.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


@pytest.mark.parametrize("name", NULLS)
def test_type_one(name: str) -> None:
    a, b, law, blocks = NULLS[name]
    table({name: rejections(a, b, DISTRIBUTIONS[law], range(RUNS), blocks=blocks)})


@pytest.mark.parametrize("episodes", [10, 20, 35])
def test_coverage(episodes: int) -> None:
    table({f"N = {episodes}": coverage(("m1", "m3", "m4"), episodes, range(RUNS))})


@pytest.mark.parametrize(
    ("sizes", "anchors", "apart"),
    [
        *(((few, 12), 2, 0.0) for few in (2, 3, 4, 12)),
        *(((few, 12), 4, 0.0) for few in (3, 12)),
        *(((few, 12), anchors, 0.2) for few in (3, 12) for anchors in (2, 4)),
    ],
)
def test_linked_campaigns(sizes: tuple[int, int], anchors: int, apart: float) -> None:
    name = f"{anchors} anchors of {sizes[0]}, each apart by {apart:g}"
    runs = max(RUNS // 5, 1)
    table({name: told_apart(sizes, range(runs), anchors=anchors, apart=apart)}, runs)


LAWS = {
    "equal means, other shape": ({"wide": WIDE, "even": EVEN}, 120.0, 1, (5, 10, 20)),
    "77 s against 99 s": ({"m1": DISTRIBUTIONS["m1"], "m3": DISTRIBUTIONS["m3"]}, 240.0, 4, (10, 20)),
}


@pytest.mark.parametrize("name", LAWS)
def test_directions(name: str) -> None:
    laws, tau_s, objects, sizes = LAWS[name]
    found = {f"{name}, N = {n}": verdicts(laws, n, range(CLAIMS), tau_s=tau_s, objects=objects) for n in sizes}
    table(found, CLAIMS)


def test_unequal_spreads() -> None:
    table({f"{a} v {b}": unequal_spreads(a, b, range(CLAIMS)) for a, b in ((30, 10), (10, 30), (20, 20))}, CLAIMS)


@pytest.mark.parametrize("slower", [1.0, 1.35])
def test_positions(slower: float) -> None:
    columns = {
        f"{arms} arms, {by}, × {slower:g}, place × {math.exp(effect):.2g}": positions(
            arms, blocks, range(CLAIMS), effect=effect, slower=slower, design=by == "schedule"
        )
        for arms, blocks in ((2, 20), (3, 24))
        for effect in (0.0, 0.5)
        for by in ("schedule", "free")
    }
    table(columns, CLAIMS)


M1, M4 = DISTRIBUTIONS["m1"], DISTRIBUTIONS["m4"]
SCENE, HEAVY, EASY = replace(M1, scene=0.8), replace(M1, frailty=0.9), replace(M1, frailty=0.0, shape=3.0)
SHOWN = min(RUNS, 4000)
# of each: the law of the first arm, that of the second up to its speed, and what is asked
MARGINS: dict[str, tuple[Distribution, Distribution, dict[str, float]]] = {
    "m1, one object, 1.5": (M1, M1, {"ratio": 1.5}),
    "m1, one object, 2": (M1, M1, {"ratio": 2.0}),
    "m1, four objects, 1.25": (M1, M1, {"ratio": 1.25, "objects": 4}),
    "m1, four objects, 1.5": (M1, M1, {"ratio": 1.5, "objects": 4}),
    "m1, shared scenes, 1.5": (SCENE, SCENE, {"ratio": 1.5, "blocks": True}),
    "frailty .9, 1.5": (HEAVY, HEAVY, {"ratio": 1.5}),
    "even against frailty .9, 1.5": (EASY, HEAVY, {"ratio": 1.5}),
    "frailty .9 against even, 1.5": (HEAVY, EASY, {"ratio": 1.5}),
    "m4, one object, 1.25": (M4, M4, {"ratio": 1.25}),
    "m4, four objects, 1.25": (M4, M4, {"ratio": 1.25, "objects": 4}),
}


@pytest.mark.parametrize("episodes", [10, 20])
@pytest.mark.parametrize("name", MARGINS)
def test_margins(name: str, episodes: int) -> None:
    first, second, asked = MARGINS[name]
    for ratio, where in ((asked["ratio"], "at the margin"), (1.0, "alike")):
        laws = first, at_margin(first, second, ratio)
        table({f"{name}, N = {episodes}, {where}": within(laws, episodes, range(SHOWN), **asked)}, SHOWN)


@pytest.mark.parametrize("sd", [None, 0.3])
def test_assurance(sd: float | None) -> None:
    table(by_row(promises(range(CLAIMS), sd=sd)), CLAIMS)


EVENINGS = {
    "4 evenings": Evenings(4),
    "5": Evenings(5),
    "6": Evenings(6),
    "8": Evenings(8),
    "4, alike": Evenings(4, apart=0.0),
    "8, apart by .6": Evenings(8, apart=0.6),
    "4, of 5 blocks at 4 objects": Evenings(4, each=5, objects=4),
    "6, 4 people": Evenings(6, people=4, persons=0.3),
    "6, one of 6 people each": Evenings(6, people=6, persons=0.3, turns=1),
    "8 of 4 blocks, 5 people": Evenings(8, each=4, people=5, persons=0.3),
}


@pytest.mark.parametrize("name", EVENINGS)
def test_further_evenings(name: str) -> None:
    table({name: further(EVENINGS[name], range(CLAIMS))}, CLAIMS)


@pytest.mark.parametrize("mean_s", [10.0, 40.0, 90.0, 200.0])
def test_marginal_estimator(mean_s: float) -> None:
    arm = Paced(mean_s)
    print(f"\n\nRMST {arm.rmst_s:.1f} s, bias in %, ± its Monte-Carlo error")
    for episodes in (10, 20):
        for name, (bias, error) in biases(arm, episodes, CLAIMS).items():
            print(f"| N = {episodes}, {name} | {100 * bias:.2f} ± {100 * error:.2f} |", flush=True)
    runs = range(10_000, 10_000 + CLAIMS)  # the rule of its intervals was chosen by runs below
    columns = {f"N = {n}": held((arm, Paced(1.3 * mean_s)), n, runs) for n in (10, 20)}
    table(columns, CLAIMS)


@pytest.mark.parametrize("after", [(12, 24, 40), (20, 30, 40), (8, 16, 24, 32, 40)])
def test_looks(after: tuple[int, ...]) -> None:
    table({law: stopped(after, law, range(RUNS)) for law in DRAWN})
    print(f"by the test of labctl look: {stopped_by_the_test(after, range(RUNS)):.4f} of {RUNS}", flush=True)
