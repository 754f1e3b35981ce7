"""A vision-language model as a witness, behind an emulated endpoint that is no model: what it is sent, what is
recorded, how far it agrees, and that nothing waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.policies.planner_stand_in import MODEL, Rule, StandIn, stand_in
from support.runs.recordings import Recordings, copied
from support.runs.task_campaign import run_filmed_tasks

from labctl.cli import call
from labctl.core.events import Kind
from labctl.core.record import Record
from labctl.core.reviewed import queue, unsettled
from labctl.exports.recordings import Recordings as Exported
from labctl.exports.selection import select
from labctl.reporting.judgements import models
from labctl.store.campaign import Campaign, freeze_campaign, unblind_campaign

KEY = "sk-not-a-secret-of-anybody"


@pytest.fixture
def folder(recordings: Recordings, tmp_path: Path) -> Path:
    made = recordings.of(run_filmed_tasks)
    return copied(made.parents[1], tmp_path / "lab") / "campaigns" / made.name


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """An emulator that answers A, and a letter that is none to the third question; the protocol's port leads to it."""
    with stand_in(nth(lambda n: "I cannot say" if n == 2 else "A"), key=KEY) as found:
        lead(monkeypatch, found.url)
        yield found


def nth(answer: Callable[[int], str | None]) -> Rule:
    """Answers by how many were asked before."""
    numbers = count()
    return lambda words, image: answer(next(numbers))


def lead(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Have the address of the protocol lead to another port: the sealed one cannot know the emulator's."""
    from labctl.checks import witness

    real = witness._model
    monkeypatch.setattr(witness, "_model", lambda entry: real({**entry, "url": url}))


def record_of(folder: Path) -> Record:
    with Campaign.open(folder) as campaign:
        return campaign.record()


def stated(folder: Path) -> list[Any]:
    with Campaign.open(folder) as campaign:
        return [event for event in campaign.events() if event.kind == Kind.WITNESS_STATED]


def test_a_model_is_sent_pictures_and_the_measures_words_and_no_arm(folder: Path, served: StandIn) -> None:
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 0
    pictures = [len(body["messages"][0]["content"]) - 1 for _, body in served.requests]
    assert pictures == [6] * 6, "three of each of two cameras"
    words = sorted({text for text, _ in served.asked})
    assert len(words) == 3
    assert "one towel lies in the target tote, out of the fingers" in "".join(words)
    assert "The cloth belongs into the other tote." in "".join(words)
    assert all("it cannot be told from these pictures\nAnswer with one letter." in text for text in words)
    sent = json.dumps([body for _, body in served.requests])
    assert "zebra" not in sent and "human" not in sent and "e-" not in "".join(words)
    assert all(headers["Authorization"] == f"Bearer {KEY}" for headers, _ in served.requests)
    events = stated(folder)
    assert [event.body["value"] for event in events].count(None) == 1, "the one of whom no letter came"
    assert all(event.body["model"] == MODEL and event.who == "tim" for event in events) and len(events) == 6
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert KEY.encode() not in path.read_bytes(), f"its key stands in {path.name}"
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 0
    assert len(served.asked) == 6, "who has said something is not asked again"


def test_the_journal_has_when_each_picture_was_taken(folder: Path, served: StandIn) -> None:
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 0
    episodes = record_of(folder).episodes
    with Campaign.open(folder) as campaign:
        selection = select(campaign)
        with Exported(campaign, selection) as recordings:
            for one in selection.episodes:
                ((said, _),) = episodes[one.episode].witnessed
                for view, filmed in recordings.of(one).pictures.items():
                    assert set(said["pictures"][view]) <= set(filmed.taken_ns.tolist())


def test_what_a_model_says_is_shown_and_settles_and_disputes_nothing(folder: Path, served: StandIn) -> None:
    with Campaign.open(folder) as campaign:
        before = [item.differences for item in queue(campaign.record())]
    outcomes = {trial.id: trial.outcome for trial, _ in record_of(folder).scored}
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 0
    items = queue(record_of(folder))
    assert [item.differences for item in items] == before and unsettled(items) == []
    assert sorted(text for item in items for text in item.models)[0].startswith(f"{MODEL} ")
    assert sum("cannot tell" in text for item in items for text in item.models) == 1
    assert outcomes == {trial.id: trial.outcome for trial, _ in record_of(folder).scored}


@pytest.mark.thorough
def test_the_report_says_how_far_a_model_agrees_with_the_assessor(folder: Path, served: StandIn) -> None:
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 0
    found = {one["task"]: one for one in models([record_of(folder)])}
    assert set(found) == {"in order", "over"}
    assert sum(one["unknown"] for one in found.values()) == 1 and {one["n"] for one in found.values()} == {2, 4}
    assert {one["statistic"] for one in found.values()} == {"weighted_kappa"}
    assert call(["close", str(folder), "--who", "tim"]) == 0
    freeze_campaign(folder, who="tim", unreviewed=True)
    unblind_campaign(folder, who="tim")
    assert call(["report", str(folder), "--out", str(folder.parent / "report")]) == 0
    page = next((folder.parent / "report").rglob("report.html")).read_text("utf-8")
    assert "Does the model agree?" in page and MODEL in page and KEY not in page


@pytest.mark.parametrize("dies", [0, 2])
def test_a_dead_endpoint_keeps_no_review_waiting_and_what_it_said_before_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], dies: int
) -> None:
    with stand_in(nth(lambda n: "A" if n < dies else None), key=KEY) as found:
        lead(monkeypatch, found.url)
        assert call(["review", str(folder), "--who", "tim", "--witness"]) == 69
    said = capsys.readouterr().err
    assert f"model {MODEL} at http://127.0.0.1:" in said and "does not answer" in said and KEY not in said
    assert len(stated(folder)) == dies
    assert call(["close", str(folder), "--who", "tim"]) == 0
    assert call(["review", str(folder), "--who", "tim", "--finish"]) == 0, "nothing is in dispute"
    assert call(["freeze", str(folder), "--who", "tim"]) == 0


def test_a_key_that_is_not_set_and_a_wrong_one_are_said_in_a_line(
    folder: Path, served: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A_KEY", "another-one")
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 69
    said = capsys.readouterr().err
    assert "answered 401" in said and "another-one" not in said
    monkeypatch.delenv("A_KEY")
    assert call(["review", str(folder), "--who", "tim", "--witness"]) == 2
    assert f"A_KEY is not set; it holds the key of {MODEL}" in capsys.readouterr().err
    assert stated(folder) == []
