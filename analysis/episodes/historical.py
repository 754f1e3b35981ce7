"""A person of another time beside a campaign: its own numbers, and where it was declared HRT against it, marked.

May not: test, pair or rank: what was measured at another time differs by more than the arm.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.episode_facts import HistoricalCell, HistoricalNumbers, HistoricalRatio
from labctl.analysis.results import bounds
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.clusters import clusters, episode_replicates, rmst_replicates
from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.survival.hrt import hrt, hrt_floor, not_below, rmst
from labctl.analysis.table import NS, UNKNOWN, Row, Table, table_from_rows

NAME = "historical person"


def historical(
    rows: Sequence[Row],
    ours: Table,
    tau_s: float,
    *,
    ratios: bool,
    boot: int = 9999,
    seed: int = 0,
    estimator: str = KAPLAN_MEIER,
) -> HistoricalNumbers:
    """Of the person's rows of then; ours: this campaign's table. Raises TableError for rows that are none."""
    then = table_from_rows([{**row, **_apart(row)} for row in rows], source="historical reference")
    tau_ns = round(tau_s * NS)
    cells = cells_of(then, estimator) | (cells_of(ours, estimator) if ratios else {})
    found = rmst_replicates(clusters(cells, tau_ns, seed), boot)
    paper = {key: episode_replicates(cell, tau_ns, seed, boot, found) for key, cell in cells.items()}
    own: list[HistoricalCell] = []
    for key, cell in cells.items():
        if key[0] == NAME:
            value = rmst(found, [key], paper, tau_s)
            interval, moved = bounds(value.interval), int(cell.moved.sum())
            counts = {"object": key[1], "episodes": cell.episodes, "moved": moved}
            own.append(HistoricalCell(**counts, rmst=value.value, rmst_ci=interval))
    against: list[HistoricalRatio] = []
    for arm in ours.arms() if ratios else ():
        shared = [one["object"] for one in own if (arm, one["object"]) in cells]
        if shared:
            person = [(NAME, o) for o in shared]
            ratio = hrt(found, person, [(arm, o) for o in shared], paper)
            ends = not_below(ratio.interval, hrt_floor(found, person, tau_s))
            against.append(HistoricalRatio(arm=arm, objects=shared, hrt=ratio.value, hrt_ci=ends))
    budgets = [episode.budget_ns for episode in then.episodes if episode.budget_ns != UNKNOWN]
    least = min(budgets, default=tau_ns)
    return {
        "tau": tau_s,
        "shorter": least / NS if least < tau_ns else None,
        "cells": own,
        "arms": against if ratios else None,
    }


def _apart(row: Row) -> dict[str, str]:
    """Its names, so that nothing of then is taken for an arm, an episode or a block of now."""
    block = row.get("block")
    named = {"arm": NAME, "episode": f"historical {row['episode']}"}
    return named if block in (None, "") else {**named, "block": f"historical {block}"}
