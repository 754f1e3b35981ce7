"""What the page of a review asks and is told: queue, refusals and journal are those of the console's review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import reviewed_now as now
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.recordings import copied

from labctl.core.events import Kind
from labctl.core.reviewed import Item, queue
from labctl.errors import InputError, StateError
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.reviewing import ReviewPage
from labctl.runtime import review_writer
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scored trials of two items each, without a camera."""
    lab = tmp_path_factory.mktemp("lab")
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=2, budget=40.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    review_writer.register(folder, "bea")
    return folder


@pytest.fixture
def folder(scored: Path, tmp_path: Path) -> Path:
    return copied(scored.parents[1], tmp_path / "lab") / "campaigns" / scored.name


def items(folder: Path) -> list[Item]:
    with Campaign.open(folder) as campaign:
        return queue(campaign.record())


def page_of(folder: Path, who: str = "bea") -> ReviewPage:
    """As `labctl review --page` wires it."""
    return ReviewPage(
        folder.name,
        RecordedVideos(folder),
        lambda: items(folder),
        lambda trial, operations, seen: review_writer.review(folder, trial, operations, who=who, seen=seen),
        lambda trial, outcome, why, seen: review_writer.correct(folder, trial, outcome, who=who, why=why, seen=seen),
        lambda: review_writer.finish(folder, who=who),
    )


def ask(page: ReviewPage, route: str, body: dict[str, Any] | None = None, **parts: str) -> dict[str, Any]:
    return now.ask(page.routes(), route, body, **parts)


def stands(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"at_ns": op["at_ns"], "result": op["result"]} for op in told["operations"]]


def test_what_is_confirmed_is_journalled_as_the_console_does_it_and_survives_a_reload(folder: Path) -> None:
    page = page_of(folder)
    first = ask(page, "GET /queue")["episodes"][0]
    told = ask(page, "GET /episode/{trial}", trial=first["trial"])
    before = items(folder)[0]
    assert ask(page, "POST /review", {"trial": first["trial"], "operations": stands(told)})["said"].endswith("reviewed")
    event = events_of(folder)[-1]
    assert (event.kind, event.who, event.trial) == (Kind.OPERATIONS_REVIEWED, "bea", first["trial"])
    assert event.body["operations"] == [dict(op) for op in before.operations], "to the last field"
    again = ask(page_of(folder), "GET /queue")
    assert again["left"] == 0 and again["episodes"][-1]["trial"] == first["trial"]
    assert [one["reviewed"] for one in again["episodes"]] == [False, True]
    assert ask(page_of(folder), "GET /episode/{trial}", trial=first["trial"])["reviewed"] is True


def test_what_contradicts_the_outcome_is_refused_in_the_words_of_the_console(folder: Path) -> None:
    page, before = page_of(folder), len(events_of(folder))
    trial = ask(page, "GET /queue")["episodes"][0]["trial"]
    told = ask(page, "GET /episode/{trial}", trial=trial)
    fewer = {"trial": trial, "operations": stands(told)[1:]}
    assert ask(page, "POST /differences", fewer)["differences"] == ["these events saw 1 moved, the assessor 2"]
    with pytest.raises(InputError, match="the outcome says moved 2, lost 0; these events moved 1"):
        ask(page, "POST /review", fewer)
    late = [{**op, "at_ns": op["at_ns"] + 900 * 10**9} for op in stands(told)]
    with pytest.raises(InputError, match="lies outside the episode"):
        ask(page, "POST /review", {"trial": trial, "operations": late})
    assert len(events_of(folder)) == before


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, "no scored episode of a trial None"),
        ({"trial": "t-none"}, "no scored episode of a trial 't-none'"),
        ({"trial": ""}, "operations is missing"),
        ({"trial": "", "operations": ["x"]}, "has no at_ns"),
        ({"trial": "", "operations": [{"at_ns": 1.5, "result": "success"}]}, "has no at_ns"),
        ({"trial": "", "operations": [{"at_ns": True, "result": "success"}]}, "has no at_ns"),
        ({"trial": "", "operations": [{"at_ns": 1, "result": "fell"}]}, "unknown result 'fell'"),
    ],
)
def test_a_body_of_another_form_is_refused_in_a_line(folder: Path, body: dict[str, Any], wrong: str) -> None:
    known = items(folder)[0].trial.id
    with pytest.raises(InputError, match=wrong):
        ask(page_of(folder), "POST /review", {**body, **({"trial": known} if body.get("trial") == "" else {})})


def test_an_outcome_is_corrected_with_a_why_and_the_rest_of_it_stays(folder: Path) -> None:
    page = page_of(folder)
    trial = ask(page, "GET /queue")["episodes"][0]["trial"]
    with pytest.raises(InputError, match="reason for the correction is empty"):
        ask(page, "POST /correct", {"trial": trial, "moved": 1, "lost": 1, "why": " "})
    with pytest.raises(InputError, match="whole numbers"):
        ask(page, "POST /correct", {"trial": trial, "moved": "1", "lost": 1, "why": "fell"})
    with pytest.raises(InputError, match="remaining is -1"):
        ask(page, "POST /correct", {"trial": trial, "moved": 2, "lost": 1, "why": "fell"})
    ask(page, "POST /correct", {"trial": trial, "moved": 1, "lost": 0, "why": "it rolled back"})
    body = events_of(folder)[-1].body
    assert body["why"] == "it rolled back" and (body["new"]["moved"], body["new"]["remaining"]) == (1, 1)
    assert body["new"]["wrong_end"] is True, "a device had ended it as all done"
    assert body["new"]["notes"] == body["old"]["notes"]


def test_who_is_no_assessor_and_a_frozen_campaign_are_refused(folder: Path) -> None:
    trial = items(folder)[0].trial.id
    told = ask(page_of(folder), "GET /episode/{trial}", trial=trial)
    body = {"trial": trial, "operations": stands(told)}
    with pytest.raises(StateError, match="labctl review trial-run --who eve --register"):
        ask(page_of(folder, "eve"), "POST /review", body)
    close_campaign(folder, who="bea")
    freeze_campaign(folder, who="bea", unreviewed=True)
    with pytest.raises(StateError):
        ask(page_of(folder), "POST /review", body)


def test_a_candidate_that_is_turned_says_reviewed_and_one_that_is_left_keeps_its_cause(folder: Path) -> None:
    page = page_of(folder)
    trial = ask(page, "GET /queue")["episodes"][0]["trial"]
    ask(page, "POST /correct", {"trial": trial, "moved": 1, "lost": 1, "why": "one fell"})
    told = ask(page, "GET /episode/{trial}", trial=trial)
    turned = [stands(told)[0], {**stands(told)[1], "result": "lost"}]
    ask(page, "POST /review", {"trial": trial, "operations": turned})
    assert [op["cause"] for op in events_of(folder)[-1].body["operations"]] == [None, "reviewed"]


def test_nothing_that_a_page_is_told_names_an_arm(folder: Path) -> None:
    page = page_of(folder)
    told = [ask(page, "GET /queue"), *(ask(page, "GET /episode/{trial}", trial=one.trial.id) for one in items(folder))]
    assert "zebra" not in json.dumps(told) and "human" not in json.dumps(told) and "swift" not in json.dumps(told)
    assert all(one["missing"] == "no camera filmed this episode" for one in told[1:])


def test_the_review_is_finished_from_the_page_once_all_is_reviewed_and_the_campaign_closed(folder: Path) -> None:
    page = page_of(folder)
    trial = ask(page, "GET /queue")["episodes"][0]["trial"]
    ask(page, "POST /correct", {"trial": trial, "moved": 1, "lost": 1, "why": "one fell"})
    with pytest.raises(StateError, match="in dispute and not reviewed yet: 1 episode"):
        ask(page, "POST /finish")
    ask(page, "POST /correct", {"trial": trial, "moved": 2, "lost": 0, "why": "it had not"})
    for entry in ask(page, "GET /queue")["episodes"]:
        told = ask(page, "GET /episode/{trial}", trial=entry["trial"])
        ask(page, "POST /review", {"trial": entry["trial"], "operations": stands(told)})
    with pytest.raises(StateError, match="is open; its review is finished once it is closed: labctl close"):
        ask(page, "POST /finish")
    close_campaign(folder, who="bea")
    assert ask(page, "POST /finish")["said"] == (
        f"review finished: 2 of 2 episodes looked at; next: labctl freeze {folder.name}"
    )
    event = events_of(folder)[-1]
    assert (event.kind, event.who) == (Kind.CAMPAIGN_REVIEWED, "bea")


def test_what_another_reviewer_moved_is_not_replaced_by_who_did_not_see_it(folder: Path) -> None:
    page, bob = page_of(folder), page_of(folder, "bob")
    review_writer.register(folder, "bob")
    trial = ask(page, "GET /queue")["episodes"][0]["trial"]
    old = ask(page, "GET /episode/{trial}", trial=trial)
    moved = [{**op, "at_ns": op["at_ns"] - 10**9} for op in stands(old)]
    ask(bob, "POST /review", {"trial": trial, "operations": moved})
    with pytest.raises(StateError, match=r"its operations were reviewed; its outcome is now 2 of 2 moved: look again"):
        ask(page, "POST /review", {"trial": trial, "operations": stands(old), "seen": old["seen"]})
    assert stands(ask(page, "GET /episode/{trial}", trial=trial)) == moved and events_of(folder)[-1].who == "bob"


def test_an_outcome_that_is_corrected_after_the_review_is_reviewed_again(folder: Path) -> None:
    """Events that contradicted the corrected outcome stood, and the review was finished over them."""
    page = page_of(folder)
    for entry in ask(page, "GET /queue")["episodes"]:
        told = ask(page, "GET /episode/{trial}", trial=entry["trial"])
        ask(page, "POST /review", {"trial": entry["trial"], "operations": stands(told)})
    trial = entry["trial"]
    ask(page, "POST /correct", {"trial": trial, "moved": 1, "lost": 1, "why": "one fell off the rim"})
    close_campaign(folder, who="bea")
    queue = ask(page, "GET /queue")
    assert (queue["left"], queue["episodes"][0]["trial"]) == (1, trial)
    assert queue["episodes"][0]["differences"] == ["the review saw 2 moved, the assessor 1"]
    with pytest.raises(StateError, match="in dispute and not reviewed yet: 1 episode"):
        ask(page, "POST /finish")
    turned = [stands(told)[0], {**stands(told)[1], "result": "lost"}]
    ask(page, "POST /review", {"trial": trial, "operations": turned})
    assert ask(page, "GET /queue")["left"] == 0 and "review finished" in ask(page, "POST /finish")["said"]
