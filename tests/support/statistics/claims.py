"""How often a report would claim what is not so: orders of arms whose mean times are equal, tests of equal means with
unequal spreads, tests where a trial's place in its block matters. Every run is a pure function of its number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.planning.distributions import Distribution, simulate
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.curves import rmst_with_error
from labctl.analysis.survival.items_moved import moved_difference
from labctl.analysis.survival.ks import Pair, pair_of
from labctl.analysis.survival.permutation import permutation_p
from labctl.analysis.table import CENSORED, GHOST, NS, Table, table_from_rows
from labctl.core.design import draw
from labctl.reporting.relabellings import relabellings
from support.statistics.calibration import Counts, _shares
from support.statistics.cohorts import DISTRIBUTIONS, OBJECTS

ALPHA, PERM, BOOT = 0.05, 299, 799
EVEN = Distribution(15.0, shape=25.0, frailty=0.0)
WIDE = replace(EVEN, shape=1.0)
"""Mean item times of 15 s, gamma with a coefficient of variation of .2 and of 1; six items within 360 s."""
CALM = Distribution(15.0, shape=60.0, frailty=0.0, items=4, budget_s=2000.0)
WILD = replace(CALM, shape=1.0)
"""Equal RMST and items per hour, variances as 1 to 60."""


def table_of(cells: list[Cell]) -> Table:
    """The operations table of simulated cells."""
    kinds = {CENSORED: "censored", GHOST: "ghost"}
    rows = [
        {
            "episode": f"{c.arm}/{c.object}/{e}",
            "arm": c.arm,
            "object": c.object,
            "block": c.blocks[e],
            "kind": kinds.get(int(c.kind[i]), "success"),
            "cause": c.cause[i],
            "items_staged": int(c.staged[e]),
            "time_s": (int(c.ghost_ns[i]) if c.kind[i] == GHOST else int(c.durations.time_ns[i])) / NS,
            "end_s": int(c.charged_ns[e]) / NS,
            "budget_s": int(c.budget_ns[e]) / NS,
        }
        for c in cells
        for i, e in enumerate(c.durations.episode.tolist())
    ]
    return table_from_rows(rows)


def verdicts(
    laws: Mapping[str, Distribution], episodes: int, runs: range, *, tau_s: float = 240.0, objects: int = 1
) -> dict[str, float]:
    """Share of campaigns of two arms in which the report orders them, by who leads, or says only that they differ; and
    in which each interval of the pair holds the truth.
    """
    truth = _truth(laws, tau_s)
    names = list(laws)

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, episodes])
        cells = [simulate(laws[a], episodes, rng, arm=a, obj=o) for o in OBJECTS[:objects] for a in names]
        (pair,) = analyze(table_of(cells), tau=tau_s, boot=BOOT, perm=PERM, seed=run)["pairs"]
        held = {"ratio of RMST": pair["log_rmst_ratio_ci"], "items per hour": pair["uph_difference_ci"]}
        if truth["items moved"]:  # where everything is always moved there is no interval to hold it
            held |= {"items moved": pair["moved_difference_ci"]}
        found = {f"{name}: holds": int(ci is not None and ci[0] <= truth[name] <= ci[1]) for name, ci in held.items()}
        found |= {f"{name} leads": int(pair["leads"] == name) for name in names}
        return found | {"differs": int(pair["p_holm"] is not None and pair["p_holm"] <= ALPHA + 1e-12)}

    return _shares(one, runs)


def _truth(laws: Mapping[str, Distribution], tau_s: float) -> dict[str, float]:
    """Log RMST ratio and differences of the first law less the second, from 30,000 episodes of each."""
    a, b = (simulate(law, 30_000, np.random.default_rng(2**31)) for law in laws.values())
    rmst = [rmst_with_error(c.durations, round(tau_s * NS))[0] for c in (a, b)]
    hourly = [3600e9 * c.moved.sum() / c.charged_ns.sum() for c in (a, b)]
    moved = [c.moved.sum() / c.staged.sum() for c in (a, b)]
    return {
        "ratio of RMST": math.log(rmst[0] / rmst[1]),
        "items per hour": float(hourly[0] - hourly[1]),
        "items moved": float(moved[0] - moved[1]),
    }


def unequal_spreads(n_calm: int, n_wild: int, runs: range) -> dict[str, float]:
    """Share of pairs of equal RMST and items per hour, and of equal shares moved, that each signed test tells apart."""

    def one(run: int) -> Counts:
        rng = np.random.default_rng([run, n_calm])
        sides = simulate(CALM, n_calm, rng, arm="a"), simulate(WILD, n_wild, rng, arm="b")
        found = permutation_p(pair_of(*([s] for s in sides), 200 * NS), run, PERM)
        p = {"log RMST ratio": found["log_rmst_ratio"], "items per hour": found["uph"]}
        # five to seven of twelve items, or any number of them, at random
        calm = _moved("a", rng.integers(5, 8, n_calm), 12)
        wild = _moved("b", rng.integers(0, 13, n_wild), 12)
        moved = moved_difference([calm], [wild], pair_of([calm], [wild], 60 * NS), run, PERM)
        p["items moved"] = moved and moved.p
        return {name: int(v is not None and v <= ALPHA + 1e-12) for name, v in p.items()}

    return _shares(one, runs)


def _moved(arm: str, counts: np.ndarray, staged: int) -> Cell:
    """Episodes of 60 s that moved so many of the items staged."""
    cell = simulate(
        Distribution(1e-3, frailty=0.0, items=1, budget_s=60.0), len(counts), np.random.default_rng(0), arm=arm
    )
    return replace(cell, moved=counts, staged=np.full(len(counts), staged))


def positions(
    arms: int, blocks: int, runs: range, *, effect: float, slower: float = 1.0, design: bool = True
) -> dict[str, float]:
    """Share of pairs that each test tells apart where every place in a block takes exp(`effect`) times as long as the
    one before; the second arm takes `slower` times as long. design: labels as the schedule could have drawn them.
    """
    law = replace(DISTRIBUTIONS["m1"], scene=1.0)
    names = [chr(ord("a") + i) for i in range(arms)]

    def one(run: int) -> Counts:
        slots = draw(["o"], names, blocks, run.to_bytes(32, "big")).slots
        rng = np.random.default_rng([run, arms, blocks])
        scenes = 0.5 * rng.standard_normal(blocks)
        cells = []
        for arm, factor in (("a", 1.0), ("b", slower)):
            own = [slot for slot in slots if slot.arm == arm]
            places = np.array([effect * slot.position + scenes[slot.block] for slot in own])
            named = [str(slot.block) for slot in own]
            cells.append(simulate(law.slower(factor), blocks, rng, arm=arm, blocks=named, scenes=places))
        listed = relabellings([{"block": s.block, "position": s.position, "arm": s.arm} for s in slots])
        pair: Pair = pair_of(cells[:1], cells[1:], 240 * NS, exchanges=listed["a", "b"] if design else ())
        found = permutation_p(pair, run, PERM)
        return {name: int(p is not None and p <= ALPHA + 1e-12) for name, p in found.items()}

    return _shares(one, runs)
