"""A campaign without a trial left: `run` says so and is done, whatever way it is asked."""

from __future__ import annotations

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy

from labctl.cli import call
from labctl.clock import SECOND, ManualClock
from labctl.core.events import Kind
from labctl.runtime.campaign_run import nothing_left, run_campaign
from labctl.runtime.hosting.simulated_host import LoopHost
from labctl.store.campaign import Campaign

ARMS = [HUMAN, policy("policy-a", skill="swift")]


@pytest.fixture
def finished(tmp_path):
    """A campaign in simulated time, every trial of which is scored, its session closed."""
    folder = make_campaign(tmp_path, ARMS, items=1, budget=2.0, arming=1.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def test_the_run_that_ends_the_last_trial_says_what_comes_next(tmp_path):
    folder, said = make_campaign(tmp_path, ARMS, items=1, budget=2.0, arming=1.0).folder, []
    assert run_campaign(folder, said.append, manual=True)
    assert said[-1] == "no trial of trial-run is left to run: 2 scored, 0 not run; next: labctl close trial-run"


@pytest.fixture
def no_turn(monkeypatch):
    """Nothing turns and nobody is started: it would go on for ever."""

    def refuse(*_, **__):
        raise AssertionError("a run was started")

    monkeypatch.setattr(LoopHost, "run", refuse)
    monkeypatch.setattr("subprocess.Popen", refuse)


@pytest.mark.parametrize(
    "asked",
    [["--headless", "--simulated-time"], ["--headless", "--real-time"], ["--headless", "--attended"], []],
    ids=["simulated", "headless", "attended", "on a terminal"],
)
def test_it_is_said_at_once_nothing_is_written_and_that_is_no_failure(finished, no_turn, capsys, asked):
    before = events_of(finished)
    assert call(["run", str(finished), *asked]) == 0
    told = capsys.readouterr().out
    assert "no trial of trial-run is left to run: 2 scored, 0 not run" in told and "labctl close trial-run" in told
    assert events_of(finished) == before


def test_a_trial_that_was_given_up_counts_as_not_run(tmp_path, no_turn, capsys):
    folder = make_campaign(tmp_path, ARMS).folder
    with Campaign.open(folder, writer=True) as campaign:
        for trial in campaign.state.order:
            anchor = ManualClock(SECOND).anchor()
            campaign.log(Kind.TRIAL_SKIPPED, {"reason": "max_voids"}, anchor=anchor, who="ann", trial=trial)
    assert call(["run", str(folder), "--headless"]) == 0
    assert "0 scored, 2 not run" in capsys.readouterr().out


def test_a_session_that_was_left_open_keeps_no_run_without_people(finished, no_turn, capsys):
    """Its people are not here to close it, and nobody else may."""
    with Campaign.open(finished, writer=True) as campaign:
        people = [{"id": "ann", "roles": ["operator"]}]
        anchor = ManualClock(events_of(finished)[-1].at_ns + SECOND).anchor()
        campaign.log(Kind.SESSION_OPENED, {"session": "s-x", "people": people}, anchor=anchor, who="ann")
        assert not nothing_left(campaign, attended=True), "at a console they close it"
    assert call(["run", str(finished), "--headless", "--simulated-time"]) == 0
    assert "2 scored, 0 not run" in capsys.readouterr().out


def test_simulated_time_in_a_cell_of_a_person_says_what_to_change(tmp_path, capsys):
    """It was asked without a console: to say so again would help nobody."""
    cell = {'operator = "sim_operator"': 'operator = "console"'}
    folder = make_campaign(tmp_path, ARMS, cell=cell).folder
    assert call(["run", str(folder), "--headless", "--simulated-time"]) == 1
    said = capsys.readouterr().err
    assert 'operator = "sim_operator"' in said and "--headless" not in said
