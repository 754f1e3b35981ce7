"""A device ends an episode as all done while an item remains: the operator says so, and nothing has to be void."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import events_of, make_campaign, policy, unblind

from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.reviewed import queue
from labctl.core.trial import State, fold
from labctl.drivers.sim.operator import SimulatedOperator
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.operations_table import operations
from labctl.runtime.campaign_run import run_campaign

ARMS = [policy("swift", skill="swift"), policy("steady", skill="swift")]


class Counting(SimulatedOperator):
    """Finds one item fewer in the target tote than devices counted in the first episode they ended as all done; says at
    first only that, and when that is refused, that the end was wrong.
    """

    def __init__(self) -> None:
        self.disputed: str | None = None
        self.tries = 0

    def decide(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        verb = super().decide(state)
        if verb is None or verb["verb"] != "score" or state["ended"] != "all_done":
            return verb
        self.disputed = self.disputed or state["episode"]
        if self.disputed == state["episode"]:
            counts = verb["args"]
            verb["args"] = {**counts, "moved": counts["moved"] - 1, "remaining": counts["remaining"] + 1}
            self.tries += 1
            if self.tries > 1:
                verb["args"]["wrong_end"] = True
        return verb


def test_a_wrong_end_is_scored_flagged_and_censored_where_it_was(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ARMS, blocks=1, items=2, budget=60.0).folder
    people: list[Counting] = []

    def made(options: Mapping[str, Any], **given: Any) -> Counting:
        people.append(Counting())
        return people[-1]

    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labctl.drivers.sim.operator.build", made)
        run_campaign(folder, said.append, manual=True)
    ((disputed, tries),) = {(person.disputed, person.tries) for person in people}
    assert tries == 2, "counts alone, which a slip of the finger could be, were refused"
    events = events_of(folder)
    state = fold(events)
    assert [trial.state for trial in state.trials.values()] == [State.SCORED] * 2
    assert not [event for event in events if event.kind == Kind.EPISODE_VOIDED]
    trial = next(trial for trial in state.trials.values() if trial.episode == disputed)
    ended = next(e for e in events if e.kind == Kind.EPISODE_ENDED and e.episode == disputed)
    assert ended.body["reason"] == "all_done", "what the device said stays in the journal"
    assert trial.outcome is not None and trial.outcome.wrong_end
    assert (trial.outcome.moved, trial.outcome.lost, trial.outcome.remaining) == (1, 0, 1)
    first = queue(record_of(events))[0]
    assert first.trial.episode == disputed, "it is the first to be reviewed"
    assert "a device ended this episode as all done, the assessor counted 1 of 2 remaining" in first.differences
    for labels in ("best", "device"):
        rows = [row for row in operations(record_of(events), labels=labels) if row["episode"] == disputed]
        assert [(row["kind"], row["cause"]) for row in rows] == [("success", None), ("censored", "wrong_end")]
        assert sum(row["time_s"] for row in rows) == pytest.approx(rows[0]["end_s"], abs=1e-5)
    the_report_counts_it_as_neither_failure_nor_success(folder, tmp_path / "report", str(disputed))


def the_report_counts_it_as_neither_failure_nor_success(folder: Path, out: Path, disputed: str) -> None:
    unblind(folder)
    report_campaign(folder, out, boot=20, perm=20)
    told = json.loads((out / "report.json").read_text())
    episode = next(e for e in told["lab"]["episodes"] if e["episode"] == disputed)
    assert (episode["outcome"], episode["end_reason"]) == ("partial", "wrong_end")
    line = "a device ended it as all done; sim-operator counted 1 of 2 items remaining, censored there, not reviewed"
    assert [text for text in told["lab"]["deviations"] if disputed in text] == [f"episode {disputed}: {line}"]
    cell = next(cell for cell in told["result"]["cells"] if cell["arm"] == episode["arm"])
    assert (cell["successes"], cell["censored"], cell["ghosts"]) == (1, 1, 0)
    assert any("ended by a device while items remained" in text for text in told["result"]["warnings"])
    modes = next(arm for arm in told["supplement"]["arms"] if arm["arm"] == episode["arm"])["failures"]
    assert (modes["successes"], modes["operations"], modes["counts"]) == (1, 2, {})
