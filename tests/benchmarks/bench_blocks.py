"""Error rates, coverage and stopping times of the statistics of paired blocks, by simulation; prints, judges nothing.

pytest -m benchmark -s tests/benchmarks/bench_blocks.py
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from support.statistics.real_blocks import real_blocks
from support.statistics.stopping import e_values, family_monitor, swap_error

from labctl.analysis.blocks.anytime import paired_monitor
from labctl.analysis.blocks.axes import Perturbed, axis_drops
from labctl.analysis.blocks.heatmap import heatmap
from labctl.analysis.blocks.preference import FIRST, SECOND, TIE, davidson
from labctl.analysis.blocks.retention import retention
from labctl.analysis.blocks.sites import site_effects
from labctl.analysis.monte_carlo import share_error

pytestmark = pytest.mark.benchmark
Bettor = Callable[[np.ndarray], np.ndarray]
"""Differences (blocks, runs) to capital against "no difference" after each block."""


def line(name: str, count: int, of: int, more: str = "") -> None:
    print(f"  {name:58s} {count / of:.3f} ± {share_error(count / of, of):.3f} of {of}{more}")


def mixture(top: float, arcsine: bool = False) -> Bettor:
    """Shares spread over (0, top), evenly or as the arcsine law has them."""
    at = (np.arange(32) + 0.5) / 32
    shares = np.sin(np.pi / 2 * at) ** 2 if arcsine else top * at

    def capital(d: np.ndarray) -> np.ndarray:
        logs = np.cumsum(np.log1p(d[..., None] * np.r_[shares, -shares]), axis=0)
        return np.exp(logs).mean(axis=-1)

    return capital


def plug_in(most: float) -> Bettor:
    """aGRAPA of Waudby-Smith & Ramdas (2024), two-sided and hedged: a share by the mean and variance so far."""

    def capital(d: np.ndarray) -> np.ndarray:
        total, squares = np.zeros(d.shape[1]), np.zeros(d.shape[1])
        up, down, out = np.ones(d.shape[1]), np.ones(d.shape[1]), np.empty(d.shape)
        for t, x in enumerate(d):
            mean, square = total / (t + 1), (squares + 0.25) / (t + 1)
            share = np.clip(mean / np.maximum(square, 1e-6), -most, most)
            up, down = up * (1 + np.maximum(share, 0) * x), down * (1 + np.minimum(share, 0) * x)
            out[t], total, squares = (up + down) / 2, total + x, squares + x**2
        return out

    return capital


def bernstein(most: float) -> Bettor:
    """The predictable plug-in of their empirical-Bernstein bound, as a hedged bettor."""

    def capital(d: np.ndarray) -> np.ndarray:
        x, total, spread = (d + 1) / 2, np.full(d.shape[1], 0.5), np.full(d.shape[1], 0.25)
        up, down, out = np.ones(d.shape[1]), np.ones(d.shape[1]), np.empty(d.shape)
        for t, own in enumerate(x):
            wanted = np.sqrt(2 * math.log(2 / 0.05) / (spread / (t + 1) * (t + 1) * math.log(t + 2)))
            share = np.minimum(wanted, 2 * most)
            up, down = up * (1 + share * (own - 0.5)), down * (1 - share * (own - 0.5))
            out[t], total = (up + down) / 2, total + own
            spread = spread + (own - total / (t + 2)) ** 2
        return out

    return capital


BETTORS = {
    "even mixture (chosen)": e_values,
    "even mixture to 1/2": mixture(0.5),
    "arcsine mixture": mixture(1.0, arcsine=True),
    "aGRAPA, share to 1/2": plug_in(0.5),
    "aGRAPA, share to 3/4": plug_in(0.75),
    "empirical Bernstein, share to 1/2": bernstein(0.5),
}


def stops(capital: np.ndarray) -> np.ndarray:
    over = capital >= 20
    return np.where(over.any(axis=0), over.argmax(axis=0) + 1, 10**6)


def laws(rng: np.random.Generator, size: tuple[int, int]) -> dict[str, np.ndarray]:
    def ternary(first: float, second: float) -> np.ndarray:
        return rng.choice([1.0, 0.0, -1.0], p=[first, 1 - first - second, second], size=size)

    def beta(mean: float, other: float) -> np.ndarray:
        return rng.beta(3 * mean, 3 - 3 * mean, size) - rng.beta(3 * other, 3 - 3 * other, size)

    return {
        "none, success, half of blocks tied": ternary(0.25, 0.25),
        "none, success, nine in ten tied": ternary(0.05, 0.05),
        "none, success, no ties": ternary(0.5, 0.5),
        "none, beta scores": beta(0.6, 0.6),
        "+.10, success .30 against .20": ternary(0.30, 0.20),
        "+.20, success .35 against .15": ternary(0.35, 0.15),
        "+.20, success .25 against .05": ternary(0.25, 0.05),
        "+.40, success .50 against .10": ternary(0.50, 0.10),
        "+.75, success .80 against .05": ternary(0.80, 0.05),
        "+.10, beta scores": beta(0.6, 0.5),
        "+.30, beta scores": beta(0.7, 0.4),
    }


def test_bettors() -> None:
    runs, blocks = 2000, 300
    for name, d in laws(np.random.default_rng(1), (blocks, runs)).items():
        print(f"\n{name}")
        for bettor, capital in BETTORS.items():
            at = stops(capital(d))
            run = np.minimum(at, blocks)
            mean = f", blocks {run.mean():.1f} ± {run.std() / math.sqrt(runs):.1f}"
            line(bettor, int((at <= blocks).sum()), runs, mean)


def test_real_blocks() -> None:
    real, start = real_blocks(), time.process_time()
    d = np.stack([real.differences(*pair) for pair in real.pairs], axis=1)
    print()
    for name, capital in BETTORS.items():
        at = dict(zip(real.pairs, stops(capital(d)), strict=True))
        weak = sorted(int(n) for pair, n in at.items() if "paligemma_binning" in pair)
        others = sorted(int(n) for pair, n in at.items() if "paligemma_binning" not in pair and n <= 281)
        print(f"  {name:40s} weak {weak} others {others}")
    start = time.process_time()
    monitors = [paired_monitor(d[:, k]) for k in range(len(real.pairs))]
    family = family_monitor(e_values(d)).stop_blocks
    print(f"  alone  {[one.stop_block for one in monitors]}\n  family {list(family)}")
    print(f"  all pairs with sequences {time.process_time() - start:.2f} s of CPU")
    start = time.process_time()
    found = swap_error(d, relabellings=2000)
    bound = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
    print(f"  error by 2000 swaps: {found.share.min():.4f} to {found.share.max():.4f}, bound {bound:.4f}")
    print(f"  in {time.process_time() - start:.2f} s of CPU")
    start, rng, wrong = time.process_time(), np.random.default_rng(2), 0
    for _ in range(300):
        score = rng.permuted(real.score, axis=1)
        e = e_values(
            np.stack([score[:, real.arms.index(a)] - score[:, real.arms.index(b)] for a, b in real.pairs], axis=1)
        )
        wrong += any(stop is not None for stop in family_monitor(e).stop_blocks)
    line("any pair stopped, all arms relabelled, family", wrong, 300)


def test_sequences_cover() -> None:
    rng, runs = np.random.default_rng(3), 400
    print()
    for name, mean, draw in (
        ("success .35 against .15", 0.2, lambda: rng.choice([1.0, 0, -1], 200, p=[0.35, 0.5, 0.15])),
        ("beta scores +.1", 0.1, lambda: rng.beta(1.8, 1.2, 200) - rng.beta(1.5, 1.5, 200)),
    ):
        missed = 0
        for _ in range(runs):
            found = paired_monitor(draw())
            missed += not ((found.low <= mean) & (mean <= found.high)).all()
        line(f"missed somewhere in 200 blocks, {name}", missed, runs)


def test_preferences() -> None:
    rng, runs = np.random.default_rng(4), 300
    print()
    for n in (60, 280):
        worth, tie, order = np.array([0.4, 0.3, 0.2, 0.1]), 0.4, 1.2
        hit, ordered, ties, known = np.zeros(4), 0, 0, 0
        for run in range(runs):
            first = rng.integers(0, 4, n)
            second = (first + rng.integers(1, 4, n)) % 4
            w = np.stack([worth[first], order * worth[second], tie * np.sqrt(worth[first] * worth[second])], axis=1)
            said = np.array([FIRST, SECOND, TIE])[
                (rng.random(n)[:, None] * w.sum(1)[:, None] > w.cumsum(axis=1)).sum(axis=1)
            ]
            found = davidson("abcd", first, second, said, boot=499, seed=run)
            if found.order_ci is None or found.tie_ci is None:
                continue
            known += 1
            own = {one.arm: one.ci for one in found.davidson}
            hit += [bool(ci and ci[0] <= v <= ci[1]) for v, ci in zip(worth, (own[a] for a in "abcd"), strict=True)]
            ordered += found.order_ci[0] <= order <= found.order_ci[1]
            ties += found.tie_ci[0] <= tie <= found.tie_ci[1]
        for name, count in (*zip("abcd", hit, strict=True), ("order effect", ordered), ("tie parameter", ties)):
            line(f"covered, {n} blocks, {name}", int(count), known)


def test_sites() -> None:
    rng, runs = np.random.default_rng(5), 300
    print()
    for sites in (5, 7, 12):
        for tau in (0.0, 0.1):
            mean, new, rejected = 0, 0, 0
            for _ in range(runs):
                at = np.repeat(np.arange(sites), rng.integers(10, 60, sites))
                of_site = rng.normal(0.2, tau, sites + 1)
                found = site_effects(of_site[at] + rng.normal(0, 0.4, len(at)), [f"{s:02d}" for s in at])
                mean += bool(found.ci and found.ci[0] <= 0.2 <= found.ci[1])
                new += bool(found.prediction and found.prediction[0] <= of_site[-1] <= found.prediction[1])
                rejected += bool(found.q_p is not None and found.q_p <= 0.05)
            line(f"{sites} sites, tau {tau}: mean covered", mean, runs)
            line(f"{sites} sites, tau {tau}: new site covered", new, runs)
            line(f"{sites} sites, tau {tau}: heterogeneity at .05", rejected, runs)


def campaign(rng: np.random.Generator, sets: int, weak: str) -> list[Perturbed]:
    rows = []
    for s in range(sets):
        hard = rng.normal(0, 0.7)
        for axis in ("", "S-LANG", "V-SC", "VB-POSE", "VSB-NOBJ"):
            chance = 1 / (1 + math.exp(-(stats.logistic.ppf(0.35 if axis and axis == weak else 0.85) + hard)))
            rows.append(Perturbed("p", float(rng.random() < chance), axis or "b", "b" if axis else "", axis, f"{s}"))
    return rows


def test_axes() -> None:
    runs = 200
    print()
    for weak in ("S-LANG", ""):
        for sets in (12, 20, 30, 40):
            rng, hit, wrong = np.random.default_rng(6), 0, 0
            for _ in range(runs):
                drops = axis_drops(campaign(rng, sets, weak), perm=1999)
                hit += any(one.axis == weak and one.p_holm <= 0.05 and one.drop > 0 for one in drops)
                wrong += any(one.axis != weak and one.p_holm <= 0.05 for one in drops)
            line(f"{sets} sets, {'weak on S-LANG' if weak else 'no weak axis'}: another named", wrong, runs)
            if weak:
                line(f"{sets} sets: the weak axis named", hit, runs)
    print(f"  bound of the family error {0.05 + 3 * math.sqrt(0.05 * 0.95 / runs):.3f}")


def test_retention_and_tasks() -> None:
    rng, runs = np.random.default_rng(7), 1000
    print()
    for n in (15, 40):
        covered = 0
        for _ in range(runs):
            found = retention((rng.random(n) < 0.8) * 1.0, (rng.random(n) < 0.5) * 1.0)
            covered += bool(found.ci and found.ci[0] <= 0.625 <= found.ci[1])
        line(f"retention .5 / .8 covered, {n} episodes each", covered, runs)
    called, runs = 0, 200
    task = [f"t{k}" for k in range(6) for _ in range(10) for _ in "abc"]
    block, arm = [str(i) for i in range(60) for _ in "abc"], list("abc") * 60
    for _ in range(runs):
        called += len(heatmap(task, block, arm, (rng.random(180) < 0.5) * 1.0).complementary) > 0
    line("arms alike at every task called complementary", called, runs)
