"""A campaign in which a person stops some robots, from the key to the report: whom a stop counts against, and the
verdict if all had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import events_of, make_campaign, policy, unblind

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.drivers.sim.operator import SimulatedOperator
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.operations_table import operations
from labctl.runtime.campaign_run import run_campaign

ARMS = [policy("swift", skill="swift"), policy("steady", skill="swift")]
CAUSES = ("mistaken_key", "danger", "mistaken_key", "contact")
STOPPED_S = 15  # after go or the last item


class Stopping(SimulatedOperator):
    """Stops each robot when nothing happened for STOPPED_S, and gives one cause after the other."""

    def __init__(self) -> None:
        self.causes: dict[str, str] = {}  # by episode

    def decide(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        if state["trial_state"] == "running" and state["times"]["go_ns"]:
            return self._command("stop")
        verb = super().decide(state)
        if verb is not None and verb["verb"] == "acknowledge":
            cause = self.causes.setdefault(state["episode"], CAUSES[len(self.causes) % len(CAUSES)])
            verb["args"] |= {"cause": cause, "why": "as the test has it"}
        return verb

    def delay_ns(self, verb: str) -> int:
        return STOPPED_S * SECOND if verb == "stop" else super().delay_ns(verb)


def test_stops_that_do_not_count_are_told_by_arm_and_the_verdict_is_repeated_with_them(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ARMS, blocks=2, items=3, budget=30.0).folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labctl.drivers.sim.operator.build", lambda options, **given: Stopping())
        run_campaign(folder, lambda line: None, manual=True)
    events = events_of(folder)
    assert [event.body["reason"] for event in events if event.kind == Kind.EPISODE_ENDED] == ["safety_stop"] * 4
    assert [event.body["cause"] for event in events if event.kind == Kind.HOLD_CLEARED] == list(CAUSES)
    unblind(folder)
    report_campaign(folder, tmp_path / "report", boot=20, perm=20)

    record = record_of(events_of(folder))
    told = json.loads((tmp_path / "report" / "report.json").read_text())
    stops, arms = told["lab"]["stops"], record.arms
    of_arm = {
        arm: [cause for trial, cause in zip(arms, CAUSES, strict=True) if arms[trial] == arm]
        for arm in ("swift", "steady")
    }
    assert stops["counted"] == ["danger", "contact"]
    for entry in stops["arms"]:
        causes = of_arm[entry["arm"]]
        assert entry["by_cause"] == {cause: causes.count(cause) for cause in sorted(set(causes))}
        assert sum(entry["not_counted"].values()) == causes.count("mistaken_key")

    ghosts, early = ({cell["arm"]: cell[key] for cell in told["result"]["cells"]} for key in ("ghosts", "ended_early"))
    assert sum(ghosts.values()) == 2 and sum(early.values()) == 2
    counted = [row for row in operations(record, all_stops=True) if row["kind"] == "ghost"]
    assert len(counted) == 4
    before = {arm["arm"]: arm["rmst"] for arm in told["result"]["arms"]}
    after = {arm["arm"]: arm["rmst"] for arm in stops["repeated"]["arms"]}
    assert after != before and all(after[arm] >= before[arm] for arm in before), "each stop costs time"
    for name in ("report.html", "report.md"):
        text = (tmp_path / "report" / name).read_text()
        assert "With every stop counted" in text and "Stops by hand" in text
