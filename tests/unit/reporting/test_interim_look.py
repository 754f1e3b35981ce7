"""A planned look at an open campaign: one word is all that anybody learns, keeps or reads of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.runs.campaigns import events_of, make_campaign, policy
from support.runs.scored_blocks import Times, score_blocks

import labctl.core.design
from labctl.analysis.numerals import confidence
from labctl.analysis.planning.spending import looks, standing
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.core.design import Schedule, draw
from labctl.core.events import LOOK_SAID_STOP, Kind
from labctl.core.record_fold import record_of
from labctl.errors import InputError
from labctl.reporting.interim_look import look_notes
from labctl.store.campaign import Campaign

LOOKS = "[analysis.looks]\nfractions = [0.3, 0.5, 1.0]\n"
DIGESTS = ("sealed", "openings_root", "commitment")  # of the seal; they tell nothing without its secret
ARMS = [policy(name, skill="swift") for name in ("heron", "ibis", "stork")]


def slow_and_quick(arm: str, block: int) -> Sequence[float]:
    """The first arm takes a third of the time of the others, which are alike."""
    slower = 1.0 if arm == "heron" else 3.0
    return [slower * (4 + block % 5), slower * (8 + block % 7)]


def alike(arm: str, block: int) -> Sequence[float]:
    del arm
    return [4.0 + block % 5, 9.0 + block % 7]


def campaign(
    lab: Path, *, looks: str = LOOKS, pairs: str = '[["heron", "ibis"], ["stork", "heron"]]', blocks: int = 40
) -> Path:
    named = f"{looks}pairs = {pairs}\n" if pairs and looks else looks
    given = {"items": 2, "budget": 30.0, "protocol": {"[estimand]\n": f"{named}[estimand]\n"}}
    return make_campaign(lab, ARMS, blocks=blocks, **given).folder


def looked(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = call(["look", str(folder), *words])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.parametrize(("times", "says"), [(slow_and_quick, "stop"), (alike, "go on")])
def test_a_look_says_stop_or_go_on_and_the_journal_keeps_that_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], times: Times, says: str
) -> None:
    folder = campaign(tmp_path)
    score_blocks(folder, range(20), times)
    code, said = looked(folder, capsys)
    assert (code, said.splitlines()[0]) == (0, f"look 2 of 3, by the first 20 blocks, says {says}")
    events = events_of(folder)
    body = {"number": 2, "looks": 3, "blocks": 20, "labels": "best", "says": says}
    assert events[-1].kind == Kind.LOOK_TAKEN and events[-1].body == body
    record = record_of(events)
    assert record.looks == (body,)
    assert (LOOK_SAID_STOP in record.state.holds) == (says == "stop")
    assert not any(arm["name"] in json.dumps([e.body for e in events[-2:]]) for arm in ARMS)


def test_it_goes_by_every_pair_that_the_protocol_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (pairs, says) in enumerate(
        [('[["heron", "ibis"]]', "stop"), ('[["ibis", "stork"]]', "go on"), ("", "go on")]
    ):
        folder = campaign(tmp_path / str(number), pairs=pairs)
        score_blocks(folder, range(20), slow_and_quick)
        assert looked(folder, capsys)[1].splitlines()[0].endswith(f"says {says}"), pairs


def test_it_goes_by_the_first_blocks_alone_though_more_were_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path)
    score_blocks(folder, range(27), lambda arm, block: (alike if block < 20 else slow_and_quick)(arm, block))
    assert looked(folder, capsys)[1].startswith("look 2 of 3, by the first 20 blocks, says go on")


@pytest.mark.parametrize("times", [slow_and_quick, alike])
def test_nothing_that_is_shown_or_kept_changes_when_two_arms_change_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, times: Times
) -> None:
    """The same trials go the same way, with two arms in each other's place in the sealed schedule."""
    other = {"heron": "ibis", "ibis": "heron", "stork": "stork"}

    def exchanged(*given: Any) -> Schedule:
        return Schedule(tuple(replace(slot, arm=other[slot.arm]) for slot in draw(*given).slots))

    seen, arms = [], []
    for number, drawn in enumerate((draw, exchanged)):
        monkeypatch.setattr(labctl.core.design, "draw", drawn)
        lab = tmp_path / str(number)
        folder = campaign(lab, pairs='[["heron", "ibis"]]')
        score_blocks(folder, range(20), (lambda arm, block: times(other[arm], block)) if number else times)
        arms.append((folder / "seal" / "schedule.json").read_bytes())
        printed = [looked(folder, capsys, "--json"), looked(folder, capsys)]
        judged(printed[0][1])
        for words in (["status", "--json"], ["status"], ["episodes", "--json"]):
            call([words[0], str(folder), *words[1:]])
            shown = capsys.readouterr()
            printed.append((0, shown.out + shown.err))
        kept = [
            (e.kind, e.who, e.trial, e.episode, {k: v for k, v in e.body.items() if k not in DIGESTS})
            for e in events_of(folder)
        ]
        digests = re.compile("[0-9a-f]{64}")  # commitment and head, which cover the seal's digests
        seen.append(digests.sub("<digest>", json.dumps([printed, kept])).replace(str(lab), "LAB"))
    assert arms[0] != arms[1] and seen[0] == seen[1]
    assert "says" in seen[0] and not any(arm in seen[0] for arm in other)


def test_a_look_is_refused_where_none_is_planned_due_or_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(folder: Path, *words: str) -> None:
        count = len(events_of(folder))
        code, said = looked(folder, capsys)
        assert code != 0 and said.startswith("error: ") and said.count("\n") == 1, said
        assert all(word in said for word in words), said
        assert len(events_of(folder)) == count

    folder = campaign(tmp_path / "no", looks="", pairs="", blocks=8)
    refused(folder, "plans no looks")
    folder = campaign(tmp_path / "yes", blocks=20)
    refused(folder, "not a planned look", "0 of 20 blocks", "after 6, 10, 20")
    score_blocks(folder, range(5), alike)
    refused(folder, "5 of 20 blocks", "labctl run")
    score_blocks(folder, range(5, 6), alike)
    assert looked(folder, capsys)[1].startswith("look 1 of 3")
    refused(folder, "look 1 was taken already")
    score_blocks(folder, range(6, 20), alike)
    refused(folder, "the last look is the report's", "labctl close")
    assert call(["close", str(folder)]) == 0
    refused(folder, "is closed")


def test_a_seal_that_is_not_as_it_was_opened_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign(tmp_path, blocks=20)
    score_blocks(folder, range(6), slow_and_quick)
    path = folder / "seal" / "schedule.json"
    sealed = json.loads(path.read_text())
    slots = sealed["slots"]
    slots[0]["arm"], slots[1]["arm"] = slots[1]["arm"], slots[0]["arm"]
    path.write_text(json.dumps(sealed))
    count = len(events_of(folder))
    code, said = looked(folder, capsys)
    assert code == 65 and "sealed schedule" in said and "labctl verify" in said and len(events_of(folder)) == count


def test_after_a_stop_no_trial_begins_and_the_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign(tmp_path)
    score_blocks(folder, range(20), slow_and_quick)
    assert looked(folder, capsys)[0] == 0
    trials = len(record_of(events_of(folder)).scored)
    code = call(["run", str(folder), "--headless", "--simulated-time"])
    printed = capsys.readouterr()
    assert code == 75 and "look 2 of 3, by the first 20 blocks, says stop" in printed.err
    assert len(record_of(events_of(folder)).scored) == trials


def test_who_goes_on_after_a_stop_is_a_deviation_and_trials_may_begin_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path)
    score_blocks(folder, range(20), slow_and_quick)
    assert looked(folder, capsys)[0] == 0
    with Campaign.open(folder, writer=True) as open_one:
        said = {"code": LOOK_SAID_STOP, "acknowledged_by": "p-7"}
        open_one.log(Kind.HOLD_CLEARED, said, anchor=ManualClock(0).anchor(), who="p-7")
    record = record_of(events_of(folder))
    assert not record.state.holds
    assert [line.partition(": ")[2] for line in record.deviations] == [
        "p-7 went on with trials after a look had said stop"
    ]


def test_the_report_says_which_looks_were_taken_and_claims_by_intervals_of_their_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path)
    score_blocks(folder, range(20), slow_and_quick)
    assert looked(folder, capsys)[0] == 0
    assert call(["close", str(folder), "--reason", "the look said stop"]) == 0
    assert call(["freeze", str(folder), "--unreviewed"]) == call(["unblind", str(folder)]) == 0
    assert call(["report", str(folder), "--out", str(tmp_path / "report"), "--boot", "999", "--perm", "999"]) == 0
    told = json.loads((tmp_path / "report/report.json").read_text())
    assert told["lab"]["alpha"] == pytest.approx(
        0.00305, abs=5e-5
    )  # the level at half the blocks: planning/test_spending.py
    page = (tmp_path / "report/report.html").read_text("utf-8")
    assert "Look 2 of 3, after 20 of 40 blocks" in page
    assert f"at the level of this look, {confidence(told['lab']['alpha'])} %: repeated confidence" in page
    assert "Taken blind before the end: look 2 of 3, by the first 20 blocks, says stop." in page


def test_off_the_plan_it_says_so_and_no_level_is_100(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    with Campaign.open(folder) as opened:
        record = opened.record()
    planned = looks([10, 20, 30, 40], 0.05)
    level, words = standing(planned, 25)
    said, held, *_ = look_notes(record, words, level)
    assert said.startswith("Not a planned look: 25 of 40") and "this look" not in held
    assert "at the strictest planned level, 99.99" in held and "and this is none" in held
    level, words = standing(planned, 10)
    assert "at the level of this look, 99.99" in look_notes(record, words, level)[1]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [('[["heron", "nobody"]]', "unknown arm 'nobody'"), ('[["heron", "heron"]]', "of two arms"),
     ('[["heron", "ibis"], ["ibis", "heron"]]', "named once"), ('[["heron"]]', "at least 2")],
)  # fmt: skip
def test_pairs_that_cannot_be_are_refused_with_their_line(tmp_path: Path, pairs: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        campaign(tmp_path, pairs=pairs)
    assert "p.toml:" in str(refused.value)
