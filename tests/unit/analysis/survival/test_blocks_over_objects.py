"""P(T_a < T_b) where blocks go over several objects: each is drawn with all that it has, whole or not."""

from __future__ import annotations

import numpy as np
import pytest
from support.statistics.cohorts import NS

from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.order_probability import auc
from labctl.analysis.table import table_from_rows


def sides(objects: dict[str, list[str]]) -> tuple[list[Cell], list[Cell]]:
    """Two arms, each with a time of its own in every block, much the same at all the objects that the block has."""
    rng, rows = np.random.default_rng(4), []
    for name in sorted(set().union(*objects.values())):
        speed = {arm: np.exp(0.8 * rng.standard_normal()) for arm in "ab"}
        for obj in ("cup", "bowl"):
            for arm in "ab":
                t = min(100.0, round(float(20 * speed[arm] * np.exp(0.05 * rng.standard_normal())), 6))
                said = {"arm": arm, "object": obj, "block": name, "episode": f"{arm}{obj}{name}", "budget_s": 100.0}
                if name in objects[obj]:
                    rows.append({**said, "kind": "success" if t < 100 else "censored", "time_s": t})
    cells = cells_of(table_from_rows(rows))
    return [cells["a", o] for o in sorted(objects)], [cells["b", o] for o in sorted(objects)]


def width(**objects: list[str]) -> float:
    low, high = auc(*sides(objects), 100 * NS, 0, 999).interval or (0.0, 0.0)
    return high - low


NAMES = [f"b{i:02}" for i in range(12)]


def test_a_block_that_lacks_an_object_does_not_part_the_others() -> None:
    whole = width(cup=NAMES, bowl=NAMES)
    assert width(cup=NAMES, bowl=NAMES[:-1]) == pytest.approx(whole, rel=0.1)  # it was .71 of it


def test_objects_that_share_no_block_are_drawn_by_themselves() -> None:
    apart = width(cup=NAMES, bowl=[f"c{i:02}" for i in range(12)])
    assert apart < 0.85 * width(cup=NAMES, bowl=NAMES)


def test_draws_that_leave_no_width_are_no_interval() -> None:
    """Two blocks, an object in one of them: of what is drawn without the other nothing is left to spread."""
    times = {("x", "p", "1"): 12, ("x", "q", "1"): 15, ("x", "q", "2"): 22}
    times |= {("y", "p", "1"): 18, ("y", "q", "1"): 21, ("y", "q", "2"): 14}
    rows = [
        {"arm": arm, "object": obj, "block": block, "episode": f"{arm}{obj}{block}", "budget_s": 60.0}
        | {"kind": "success", "time_s": float(t + 3 * i), "op_index": i}
        for (arm, obj, block), t in times.items()
        for i in range(2)
    ]
    cells = cells_of(table_from_rows(rows))
    found = auc([cells["x", o] for o in "pq"], [cells["y", o] for o in "pq"], 60 * NS, 0, 999)
    assert found.interval is None or found.interval[1] - found.interval[0] > 0.5  # it was [.6875, .6875]
