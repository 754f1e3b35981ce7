"""The shipped table of tasks and its conditions, as a simulated robot is staged with and a policy is told them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.config.conditions import protocol_conditions
from labctl.store.lab_folder import read_fixture, read_plan
from support.robots.cells import ROOT, cell_named

TABLE = read_fixture(ROOT / "fixtures/task_table.toml")
GIVEN: Mapping[str, Any] = {"cell": cell_named("sim_fr3"), "fixture": TABLE}
TRAINED = ("towels", "wooden spoons", "scissors", "batteries")
_PLAN = read_plan(ROOT / "protocols/demo_tasks.toml")
CONDITIONS = {condition.id: condition for condition in protocol_conditions(_PLAN.protocol, _PLAN.fixture)}
BY_AXIS = {condition.axes[0]: name for name, condition in CONDITIONS.items() if condition.axes}
BASE = "as trained"


def staged(name: str) -> dict[str, Any]:
    """What a robot is told to stage of a condition of `labctl demo --tasks`."""
    condition = CONDITIONS[name]
    return {"object": condition.object, "layout": condition.layout, "items": 1, "task": condition.task}


def told(name: str) -> str:
    """What a policy is told in it."""
    return CONDITIONS[name].instruction or ""
