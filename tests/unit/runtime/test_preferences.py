"""[preference]: which of two episodes was better is asked once both that were drawn are scored, of whoever may judge;
what cannot be meant is refused in one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.errors import InputError, StateError
from labctl.runtime import campaign_run, review_writer
from labctl.store.campaign import Campaign
from labctl.store.verifying.opened_seal import check_compared

ASKED = {"[analysis]": '[preference]\nquestion = "Which did it more neatly?"\n[analysis]'}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A campaign of one block of two episodes, both of which are compared."""
    opened = open_tasks(tmp_path, conditions=["score"], protocol=ASKED)
    with Campaign.open(opened.folder, writer=True) as campaign:
        yield Bench(campaign)


def episode(bench: Bench, score: float | None = 0.5) -> str:
    """The next episode, staged, run to its budget and scored, or voided as the recorder failed."""
    bench.stage()
    found = bench.start()
    bench.go(found)
    bench.wait(31 * SECOND)
    bench.seal(found)
    if score is not None:
        assert bench.command("score", role="assessor", score=score)["ok"]
    return found


def both(bench: Bench) -> dict[str, str]:
    bench.begin_session(bob=["assessor"], sam=["setter"])
    first, second = episode(bench), episode(bench, 0.75)
    return {"first": first, "second": second}


def test_it_is_asked_once_both_are_scored_and_what_is_said_is_journalled(bench: Bench) -> None:
    bench.begin_session(bob=["assessor"])
    first = episode(bench)
    assert bench.shown()["compare"] is None, "nobody knows which two are compared before both are over"
    second = episode(bench)
    shown = bench.shown()["compare"]
    assert (shown["first"], shown["second"], shown["places"]) == (first, second, [1, 2])
    assert shown["question"] == "Which did it more neatly?"
    said = {"first": first, "second": second, "preferred": "first", "why": "no corner hung out"}
    assert bench.command("prefer", role="assessor", who="bob", **said)["ok"]
    (event,) = bench.events(Kind.PREFERENCE_STATED)
    assert event.body == said and event.who == "bob" and event.episode == second
    late = bench.command("prefer", role="assessor", **{**said, "preferred": "second"}, seen="")["error"]
    assert "it was said: first: no corner hung out: look again" in late
    assert len(bench.events(Kind.PREFERENCE_STATED)) == 1
    assert bench.shown()["compare"] is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"first": "e-none"}, "there is no episode 'e-none' in this campaign"),
        ({"preferred": "both"}, "preferred is 'both'; it is one of first, second, neither"),
        ({"why": "  "}, "why is empty; say in a sentence"),
        ({"who": "sam", "role": "setter"}, "prefer is for the assessor, not for the setter"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(bench: Bench, changed: dict[str, Any], why: str) -> None:
    said = {**both(bench), "preferred": "neither", "why": "alike", "role": "assessor", "who": "bob", **changed}
    refused = bench.command("prefer", **said)["error"]
    assert why in refused and "\n" not in refused and not bench.events(Kind.PREFERENCE_STATED)


def test_a_preference_about_a_void_episode_is_refused_in_one_line_at_both_doors(bench: Bench) -> None:
    bench.begin_session(bob=["assessor"])
    void = episode(bench, None)
    assert bench.command("void", reason="controller_lost", confirmed_by="bob")["ok"] is False
    assert bench.command("void", reason="recorder_lost", confirmed_by="bob")["ok"]
    first, second = episode(bench), episode(bench)
    assert bench.shown()["compare"]["first"] == first, "the episode that counts is compared, not the void one"
    said = {"first": void, "second": second, "preferred": "second", "why": "better"}
    refused = bench.command("prefer", role="assessor", **said)["error"]
    assert f"episode {void} of trial" in refused and "is void; a preference is about two that count" in refused
    bench.campaign.close()
    with pytest.raises(InputError, match="is void; a preference is about two that count"):
        review_writer.prefer(bench.campaign.folder, void, second, "second", who="bob", why="better", seen="")


def test_a_pair_that_a_crash_left_unasked_is_asked_for_when_the_run_is_started_again(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr("labctl.runtime.campaign_writer.CampaignWriter.ask_preferences", lambda self: None)
    pair = both(bench)
    assert not bench.events(Kind.PREFERENCE_ASKED)
    monkeypatch.undo()
    bench.campaign.close()
    with Campaign.open(bench.campaign.folder, writer=True) as campaign:
        again = Bench(campaign, clock=bench.clock)
        assert [event.body for event in again.events(Kind.PREFERENCE_ASKED)] == [pair]


def test_a_pair_that_a_crash_left_unasked_is_asked_for_when_the_campaign_is_closed(bench: Bench, monkeypatch) -> None:
    """No trial was left, so no run asked either, and the review was finished without it."""
    monkeypatch.setattr("labctl.runtime.campaign_writer.CampaignWriter.ask_preferences", lambda self: None)
    pair = both(bench)
    monkeypatch.undo()
    bench.campaign.close()
    for _ in range(2):
        assert campaign_run.seal_what_runs_left(bench.campaign.folder, "close") == []
    with Campaign.open(bench.campaign.folder) as campaign:
        asked = [event.body for event in campaign.events() if event.kind == Kind.PREFERENCE_ASKED]
    assert asked == [pair], "once"


def test_the_review_says_what_was_left_unsaid_and_is_not_finished_before(bench: Bench) -> None:
    pair = both(bench)
    for event in bench.events(Kind.OUTCOME_RECORDED):
        assert bench.command("review", role="assessor", trial=event.trial, operations=[])["ok"]
    bench.campaign.close()
    with pytest.raises(StateError, match="nobody has said which was better"):
        review_writer.finish(bench.campaign.folder, who="ann")
    review_writer.prefer(bench.campaign.folder, **pair, preferred="second", who="ann", why="folded", seen="")
    with Campaign.open(bench.campaign.folder) as campaign:
        assert [event.who for event in campaign.events() if event.kind == Kind.PREFERENCE_STATED] == ["ann"]


def test_a_protocol_without_preference_asks_for_none(tmp_path: Path) -> None:
    with Campaign.open(open_tasks(tmp_path, conditions=["score"]).folder, writer=True) as campaign:
        bench = Bench(campaign)
        both(bench)
        assert not bench.events(Kind.PREFERENCE_ASKED) and bench.shown()["compare"] is None


def test_verify_finds_a_pair_that_is_not_the_one_that_was_drawn(bench: Bench) -> None:
    both(bench)
    opened, events = bench.campaign.ledger.open_all(), bench.events()
    assert check_compared(events, opened) == []
    asked = next(event for event in events if event.kind == Kind.PREFERENCE_ASKED)
    forged = replace(asked, body={**asked.body, "first": asked.body["second"]})
    (problem,) = check_compared([forged if event is asked else event for event in events], opened)
    assert "not the pair that was drawn for their block" in problem
