"""An episode in which a person took the arm stays in every number, and out of those that say how a policy moves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import events_of, make_campaign, policy, unblind

from labctl.core.events import Kind
from labctl.drivers.sim.operator import SimulatedOperator
from labctl.reporting.campaign_report import report_campaign
from labctl.runtime.campaign_run import run_campaign

ARMS = [policy("one", skill="swift"), policy("other", skill="swift")]


class TakesOver(SimulatedOperator):
    """Takes over in the first episode that runs."""

    def __init__(self) -> None:
        self._first: str | None = None

    def decide(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        if state.get("trial_state") == "running" and state["times"]["go_ns"]:
            if state["touching"]:
                return self._command("touch", phase="end", kind="take_over")
            if self._first is None:
                self._first = state["episode"]
                return self._command("touch", phase="begin")
        return super().decide(state)


def test_an_episode_that_was_taken_over_counts_as_scored_and_in_no_stress_measure(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ARMS, budget=4.0, arming=1.0).folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labctl.drivers.sim.operator.SimulatedOperator", TakesOver)
        run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    report_campaign(folder, tmp_path / "report", boot=9, perm=9)
    told = json.loads((tmp_path / "report/report.json").read_text())
    (begun,) = [event for event in events_of(folder) if event.kind == Kind.INTERVENTION_BEGAN]
    arm = next(entry["arm"] for entry in told["lab"]["episodes"] if entry["episode"] == begun.episode)
    assert [cell["episodes"] for cell in told["result"]["cells"]] == [1, 1], "scored as any other"
    stress = told["lab"]["stress"]
    assert stress["taken_over"] == [begun.episode]
    assert begun.episode not in {episode["episode"] for episode in stress["episodes"]}
    (left,) = stress["arms"]
    assert left["arm"] != arm and left["episodes"] == 1
