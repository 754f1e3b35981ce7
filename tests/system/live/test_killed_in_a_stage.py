"""kill -9 of a run in the middle of a task in stages: each stage whose key was acknowledged is there afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.runs.campaigns import events_of
from support.runs.live_campaign import running, wait_for
from support.runs.task_campaign import open_tasks
from support.screens.live_screen import PEOPLE, Screen

from labctl.core.events import Event, Kind
from labctl.errors import StateError
from labctl.store.verifying.verify import verify_campaign

pytestmark = pytest.mark.real_time

# Three stages, so that one is left when it is killed; an episode that a dead run leaves is scored as it is.
PROTOCOL = {
    "[trial]\n": '[trial]\nprocess_lost = "score"\n',
    'name = "second over"': 'name = "first again"\npoints = 2.0\ndefinition = "as the first"\n'
    '[[task.stages]]\nname = "second over"',
    'measure = "stages"\nitems_staged = 2\nbudget_s = 30.0': 'measure = "stages"\nitems_staged = 2\nbudget_s = 600.0',
}


def reached(folder: Path) -> list[Event]:
    return [event for event in events_of(folder) if event.kind == Kind.STAGE_REACHED]


def attached(folder: Path) -> Screen:
    def link() -> Screen | None:
        try:
            return Screen(folder)
        except StateError:  # not yet, or what a killed run left
            return None

    screen = wait_for("the run", link)
    assert isinstance(screen, Screen)
    wait_for("its word", screen.look)
    return screen


def test_no_acknowledged_stage_is_lost_and_the_form_proposes_those_that_were_seen(tmp_path: Path) -> None:
    cell = {'operator = "sim_operator"': 'operator = "console"'}
    opened = open_tasks(tmp_path, conditions=["stages"], protocol=PROTOCOL, cell=cell, durable=True, live=True)
    folder = opened.folder
    with running(folder, tmp_path / "run.log") as run:
        first = attached(folder)
        assert first.order("session", people=PEOPLE, checks={})["ok"]
        first.until("a cell that is ready", trial_state="planned", holds=[])
        assert first.order("stage", role="setter")["ok"]
        first.until("the arm at home", staged=True)
        assert first.order("commit")["ok"]
        first.until("an armed trial", trial_state="armed")
        assert first.start()["ok"]
        wait_for("go", lambda: first.look()["times"]["go_ns"])
        for stage in (1, 2):
            assert first.order("reach", stage=stage)["ok"]
        os.killpg(run.pid, signal.SIGKILL)  # not a step of the run's loop after the reply
        run.wait()
        first.link.close()
    seen = reached(folder)
    assert [event.body["reached"] for event in seen] == [1, 2]

    with running(folder, tmp_path / "again.log"):
        again = attached(folder)
        again.until("the episode that it left", trial_state="scoring", ended="process_lost")
        wait_for("its recording", lambda: "score" in again.look()["by_role"]["assessor"])
        assert again.state["reached"] == 2
        go_ns = next(event for event in events_of(folder) if event.kind == Kind.GO).body["go_ns"]
        times = again.state["measured"]["reached_s"]
        assert times == [round((event.body["t_ns"] - go_ns) / 1e9, 6) for event in seen]
        assert again.order("score", role="assessor", reached_s=times)["ok"]
        again.link.close()
    outcome = next(event for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED).body["outcome"]
    assert outcome["reached_s"] == times and outcome["moved"] == 0
    assert not verify_campaign(folder).problems
