"""The page of a review of tasks that are not counted in items, of pairs, and a second assessor's page: what they are
told, what they post, and the refusals of the terminal's review.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import ask
from support.runs.recordings import copied
from support.runs.run_bench import Bench
from support.runs.task_campaign import PICTURED, open_tasks, striped

from labctl.clock import SECOND
from labctl.core.campaign_state import pairs
from labctl.core.events import Kind
from labctl.core.reviewed import queue, unseen
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.pages.judging import SecondPage
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.reviewing import ReviewPage, template
from labctl.pages.server import PageRequest, Routes
from labctl.runtime import review_writer
from labctl.store.campaign import Campaign, close_campaign

CONDITIONS = ("over-base", "stages", "score")
SAID = {"over-base": {"reached_s": [4.0]}, "stages": {"reached_s": [2.5]}, "score": {"score": 0.5}}
COMPARED = {"[analysis]\n": "[preference]\n[analysis]\n"}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A block of two episodes of each of three measures, scored by ann; tim reviews, eva is a second assessor."""
    lab = tmp_path_factory.mktemp("lab")
    opened = open_tasks(lab, conditions=CONDITIONS, protocol={**COMPARED, **PICTURED}, files={"half.png": striped()})
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.begin_session()
        while bench.shown()["trial"]:
            bench.stage()
            episode = bench.start()
            bench.go(episode)
            bench.wait(31 * SECOND)
            bench.seal(episode)
            assert bench.command("score", role="assessor", **SAID[bench.shown()["condition"]])["ok"]
        assert bench.command("session_close", handover="")["ok"]
    for person in ("tim", "eva"):
        review_writer.register(opened.folder, person)
    return opened.folder


@pytest.fixture
def folder(scored: Path, tmp_path: Path) -> Path:
    return copied(scored.parents[1], tmp_path / "lab") / "campaigns" / scored.name


def reading(folder: Path, read: Callable[[Campaign], Any]) -> Any:
    with Campaign.open(folder) as campaign:
        return read(campaign)


def review_page(folder: Path, who: str = "tim") -> Routes:
    """As `labctl review --page` wires it."""
    return ReviewPage(
        folder.name,
        RecordedVideos(folder),
        lambda: reading(folder, lambda one: queue(one.record())),
        lambda trial, operations, seen: review_writer.review(folder, trial, operations, who=who, seen=seen),
        lambda trial, outcome, why, seen: review_writer.correct(folder, trial, outcome, who=who, why=why, seen=seen),
        lambda: review_writer.finish(folder, who=who),
        lambda: reading(folder, lambda one: pairs(one.state)),
        lambda said, seen: review_writer.prefer(folder, **said, who=who, seen=seen),
    ).routes()


def second_page(folder: Path, who: str = "eva") -> Routes:
    """As `labctl review --second --page` wires it."""
    return SecondPage(
        folder.name,
        RecordedVideos(folder),
        lambda: reading(folder, lambda one: unseen(one.record(), who)),
        lambda trial, outcome: review_writer.judge(folder, trial, outcome, who=who),
    ).routes()


def of(folder: Path, condition: str) -> str:
    trials = reading(folder, lambda one: [trial for trial, _ in one.record().scored])
    return next(trial.id for trial in trials if trial.condition == condition)


def last(folder: Path) -> Any:
    return reading(folder, lambda one: one.events()[-1])


def test_a_page_is_told_stages_with_their_times_and_a_rubric_with_its_anchors(folder: Path) -> None:
    page = review_page(folder)
    stages = ask(page, "GET /episode/{trial}", trial=of(folder, "stages"))
    assert stages["outcome"] == "1 of 2 stages" and stages["task"]["reached_s"] == [2.5]
    assert [(one["name"], one["points"]) for one in stages["task"]["stages"]] == [
        ("first over", 1.0),
        ("second over", 3.0),
    ]
    score = ask(page, "GET /episode/{trial}", trial=of(folder, "score"))["task"]
    assert (score["score"], [one["score"] for one in score["rubric"]]) == (0.5, [0.0, 0.5, 1.0])
    assert [one["pictured"] for one in score["rubric"]] == [False, True, False]
    assert ask(page, "GET /episode/{trial}", trial=of(folder, "over-base"))["task"]["measure"] == "success"


def test_both_pages_show_the_picture_of_an_anchor_and_none_that_was_changed(folder: Path) -> None:
    for page in (review_page(folder), second_page(folder)):
        asked = {"trial": of(folder, "score"), "place": "1"}
        assert page["GET /anchor/{trial}/{place}"](PageRequest(asked)).data == striped()
        for place in ("0", "7", "x"):
            with pytest.raises(InputError, match=r"no anchor .* of the rubric has a picture"):
                page["GET /anchor/{trial}/{place}"](PageRequest({**asked, "place": place}))
        with pytest.raises(InputError, match="no anchor '0'"):
            page["GET /anchor/{trial}/{place}"](PageRequest({"trial": of(folder, "stages"), "place": "0"}))
    (folder / "photos/rubric/03-02.png").write_bytes(striped(8, 6))
    with pytest.raises(BrokenRecord, match="was changed"):
        review_page(folder)["GET /anchor/{trial}/{place}"](PageRequest(asked))


@pytest.mark.parametrize(
    ("condition", "posted", "stands"),
    [
        ("stages", {"reached_s": [2.5, 7.25]}, {"reached_s": [2.5, 7.25], "moved": 1}),
        ("stages", {"reached_s": []}, {"reached_s": [], "moved": 0}),
        ("over-base", {"reached_s": []}, {"reached_s": [], "moved": 0}),
        ("score", {"score": 1}, {"score": 1, "moved": 1}),
    ],
)
def test_what_a_page_corrects_is_journalled_by_its_measure_with_a_why_and_confirmed_after(
    folder: Path, condition: str, posted: dict[str, Any], stands: dict[str, Any]
) -> None:
    page, trial = review_page(folder), of(folder, condition)
    ask(page, "POST /correct", {"trial": trial, **posted, "why": "by the video"})
    event = last(folder)
    assert (event.kind, event.who, event.body["why"]) == (Kind.OUTCOME_CORRECTED, "tim", "by the video")
    assert {key: event.body["new"][key] for key in stands} == stands
    ask(page, "POST /review", {"trial": trial, "operations": []})
    assert (last(folder).kind, last(folder).trial) == (Kind.OUTCOME_CONFIRMED, trial)


@pytest.mark.parametrize(
    ("condition", "posted", "wrong"),
    [
        ("score", {"score": 1.5}, "score is 1.5; it must be a number from 0 to 1"),
        ("score", {"score": "high"}, "score is 'high'; it must be a number from 0 to 1"),
        ("score", {"reached_s": [1.0]}, "judged by score and what was posted has no score"),
        ("stages", {"moved": 1, "lost": 0}, "judged by stages and what was posted has no reached_s"),
        ("stages", {"reached_s": [1.0] * 3}, "at most 2: first over, second over"),
        ("stages", {"reached_s": [5.0, 2.0]}, "not before the stage before it"),
        ("stages", {"reached_s": [900.0]}, "the episode was over"),
        ("stages", {"reached_s": "all"}, "reached_s is 'all'"),
        ("stages", {"reached_s": [2.0], "why": " "}, "reason for the correction is empty"),
    ],
)
def test_what_is_outside_its_measure_is_refused_of_a_page_in_the_words_of_the_console(
    folder: Path, condition: str, posted: dict[str, Any], wrong: str
) -> None:
    before = last(folder).seq
    with pytest.raises(InputError, match=wrong):
        ask(review_page(folder), "POST /correct", {"trial": of(folder, condition), "why": "so", **posted})
    assert last(folder).seq == before


def test_a_pair_is_asked_about_and_the_review_is_finished_once_each_has_its_word(folder: Path) -> None:
    page = review_page(folder)
    open_pairs = ask(page, "GET /queue")["pairs"]
    assert len(open_pairs) == 3 and not any(one["preferred"] for one in open_pairs)
    close_campaign(folder, who="tim")
    with pytest.raises(StateError, match="of 3 pairs of episodes nobody has said which was better"):
        ask(page, "POST /finish")
    one = {key: open_pairs[0][key] for key in ("first", "second")}
    for wrong, why in (
        ({**one, "preferred": "both", "why": "x"}, "preferred is 'both'; it is one of"),
        ({**one, "preferred": "first", "why": ""}, "why is empty"),
        ({**one, "preferred": 1, "why": "x"}, "preferred is 1; first, second, preferred and why are texts"),
        ({"first": one["second"], "second": one["first"], "preferred": "first", "why": "x"}, "are not compared"),
    ):
        with pytest.raises(InputError, match=why):
            ask(page, "POST /prefer", wrong)
    for waits in open_pairs:
        words = {"first": waits["first"], "second": waits["second"], "preferred": "second", "why": "flatter"}
        ask(page, "POST /prefer", words)
    assert (last(folder).kind, last(folder).who) == (Kind.PREFERENCE_STATED, "tim")
    assert [one["preferred"] for one in ask(page, "GET /queue")["pairs"]] == ["second"] * 3
    assert "next: labctl freeze" in ask(page, "POST /finish")["said"]


def test_a_second_assessor_judges_by_each_measure_and_is_told_nothing_that_was_said(folder: Path) -> None:
    page = second_page(folder)
    assert len(ask(page, "GET /queue")["episodes"]) == 6
    trials = {name: of(folder, name) for name in CONDITIONS}
    told = {name: ask(page, "GET /episode/{trial}", trial=trial) for name, trial in trials.items()}
    assert told["stages"]["task"]["reached_s"] == [] and told["score"]["task"]["score"] is None
    secret = ("outcome", "ended", "counted", "reviewed", "differences", "notes", "moved", "lost", "witnesses")
    assert not any(word in one for one in told.values() for word in secret)
    assert "zebra" not in json.dumps(told) and "otter" not in json.dumps(told)
    said = {"over-base": {"reached_s": [3.5]}, "stages": {"reached_s": [1.0, None]}, "score": {"score": 0.8}}
    for name, trial in trials.items():
        ask(page, "POST /judge", {"trial": trial, **said[name]})
        assert (last(folder).kind, last(folder).who) == (Kind.OUTCOME_JUDGED, "eva")
    left = ask(page, "GET /queue")["episodes"]
    assert len(left) == 3 and not {one["trial"] for one in left} & set(trials.values())
    differences = [one["differences"] for one in ask(review_page(folder), "GET /queue")["episodes"]]
    assert sorted(text for texts in differences for text in texts) == [
        "a second assessor says 2 of 2 stages, the first 1 of 2 stages",
        "a second assessor says score 0.8, the first score 0.5",
    ]


def test_who_cannot_be_a_second_assessor_is_refused_by_the_page_as_by_the_terminal(folder: Path) -> None:
    trial = of(folder, "score")
    assert ask(second_page(folder, "ann"), "GET /queue")["episodes"] == [], "ann was there"
    with pytest.raises(InputError, match=r"no episode of a trial .* waits for you; load the page again"):
        ask(second_page(folder, "ann"), "POST /judge", {"trial": trial, "score": 0.5})
    with pytest.raises(StateError, match=r"labctl review .* --who zoe --register"):
        ask(second_page(folder, "zoe"), "POST /judge", {"trial": trial, "score": 0.5})
    ask(second_page(folder), "POST /judge", {"trial": trial, "score": 0.5})
    with pytest.raises(InputError, match="waits for you"):
        ask(second_page(folder), "POST /judge", {"trial": trial, "score": 0.6})


@pytest.mark.parametrize(
    ("name", "script"),
    [("review.html", "review.js"), ("second.html", "second.js")]
    + [(page, script) for page in ("review.html", "second.html") for script in ("common.js", "measured.js")],
)
def test_each_element_that_a_script_asks_for_stands_in_its_page(name: str, script: str) -> None:
    page = template(name).decode()
    assert f'src="{script}"' in page
    asked = set(re.findall(r'\$\("([^"]+)"\)', template(script).decode())) - {"score"}  # which a script makes
    assert asked and not {one for one in asked if f'id="{one}"' not in page}


def test_a_page_confirms_what_it_had_shown_and_nothing_that_was_said_since(folder: Path) -> None:
    """ENTER on a page that was left open settled a dispute that nobody had seen, and confirmed a corrected outcome."""
    page, bob, eva = review_page(folder), review_page(folder, "bob"), second_page(folder)
    review_writer.register(folder, "bob")
    score, stages = of(folder, "score"), of(folder, "stages")
    old = {trial: ask(page, "GET /episode/{trial}", trial=trial) for trial in (score, stages)}
    ask(eva, "POST /judge", {"trial": score, "score": 0.1})
    ask(bob, "POST /correct", {"trial": stages, "reached_s": [], "why": "never left the tote"})
    before = last(folder).seq
    for trial, since in (
        (score, r"since e-.* was shown, a second assessor judged it; its outcome is now score 0.5: look again"),
        (stages, r"since e-.* was shown, its outcome was corrected; its outcome is now 0 of 2 stages: look again"),
    ):
        posted = {"trial": trial, "seen": old[trial]["seen"]}
        with pytest.raises(StateError, match=since):
            ask(page, "POST /review", {**posted, "operations": []})
        corrected = {"score": 0.9} if trial == score else {"reached_s": [1.0]}
        with pytest.raises(StateError, match=since):
            ask(page, "POST /correct", {**posted, **corrected, "why": "by the video"})
    for wrong in (None, "1", True):
        with pytest.raises(InputError, match=r"seen is .*, not what the page had shown of the episode; load the page"):
            ask(page, "POST /review", {"trial": score, "operations": [], "seen": wrong})
    assert last(folder).seq == before and ask(page, "GET /queue")["left"] == 1
    again = ask(page, "GET /episode/{trial}", trial=score)
    assert again["differences"] == ["a second assessor says score 0.1, the first score 0.5"]
    ask(page, "POST /review", {"trial": score, "operations": [], "seen": again["seen"]})
    assert (last(folder).kind, last(folder).trial) == (Kind.OUTCOME_CONFIRMED, score)
    assert ask(page, "GET /queue")["left"] == 0


def test_a_word_on_a_pair_replaces_what_the_page_had_shown_of_it_and_no_other(folder: Path) -> None:
    page, bob = review_page(folder), review_page(folder, "bob")
    review_writer.register(folder, "bob")
    one = ask(page, "GET /queue")["pairs"][0]
    words = {"first": one["first"], "second": one["second"], "why": "flatter"}
    ask(bob, "POST /prefer", {**words, "preferred": "first"})
    for late in ({"seen": one["seen"]}, {"seen": "second: flatter"}):
        with pytest.raises(StateError, match=r"were shown, it was said: first: flatter: look again"):
            ask(page, "POST /prefer", {**words, **late, "preferred": "second"})
    with pytest.raises(InputError, match="seen is None, not what the page had shown of the pair"):
        ask(page, "POST /prefer", {**words, "preferred": "second", "seen": None})
    assert last(folder).who == "bob"
    ask(page, "POST /prefer", {**words, "preferred": "second", "seen": "first: flatter"})
    assert (last(folder).who, last(folder).body["preferred"]) == ("tim", "second")


def test_a_second_assessor_who_comes_after_the_review_opens_it_again(folder: Path) -> None:
    """Which of two evenings came first decided whether anybody looked at the disagreement."""
    page, eva, trial = review_page(folder), second_page(folder), of(folder, "score")
    ask(page, "POST /review", {"trial": trial, "operations": []})
    ask(eva, "POST /judge", {"trial": trial, "score": 0.1})
    queue = ask(page, "GET /queue")
    assert (queue["left"], queue["episodes"][0]["trial"]) == (1, trial), "the review comes to it first"
    shown = ask(page, "GET /episode/{trial}", trial=trial)
    assert shown["differences"] == ["a second assessor says score 0.1, the first score 0.5"]
    assert shown["progress"] == "before what is in dispute was said: to be looked at again"
    close_campaign(folder, who="tim")
    with pytest.raises(StateError, match="in dispute and not reviewed yet: 1 episode"):
        ask(page, "POST /finish")
    ask(page, "POST /review", {"trial": trial, "operations": []})
    assert ask(page, "GET /queue")["left"] == 0
    assert ask(page, "GET /episode/{trial}", trial=trial)["progress"] == "already"


def test_a_second_assessor_who_agrees_after_the_review_opens_nothing(folder: Path) -> None:
    page, trial = review_page(folder), of(folder, "score")
    ask(page, "POST /review", {"trial": trial, "operations": []})
    ask(second_page(folder), "POST /judge", {"trial": trial, "score": 0.55})
    assert ask(page, "GET /queue")["left"] == 0
    assert ask(page, "GET /episode/{trial}", trial=trial)["differences"] == []
