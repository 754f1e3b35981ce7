"""Blinding: who may still stage, operate or score sees the same bytes whichever arm runs, and no arm by any name."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.blind_surfaces import ENTROPY, see_all
from support.runs.campaigns import HUMAN, NEVER_HELD, events_of, make_campaign, policy
from support.runs.task_campaign import open_tasks

import labctl.cli.lifecycle
import labctl.core.design
import labctl.runtime.campaign_run
import labctl.store.campaign
from labctl.cli import call
from labctl.clock import SECOND, ManualClock, MonotonicClock
from labctl.core.design import Schedule, draw
from labctl.core.events import Event, Kind
from labctl.core.trial import State, fold
from labctl.runtime.campaign_run import run_campaign
from labctl.store.opened_list import OPENED

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
CLOCK = MonotonicClock()

# The only fields that may differ between two runs whose arms are exchanged, each a sha256 that says nothing of the arms
# to whoever lacks the campaign's secret: the first cover a nonce or a key made from it (ledger.py); a link of the
# chain covers an entry that holds them.
MASKED = {
    (Kind.CAMPAIGN_OPENED, "commitment"): "sha256(schedule, nonce)",
    (Kind.ARM_REVEALED, "sealed"): "sha256(arm, nonce of the episode)",
    (Kind.EPISODE_STARTED, "sealed"): "sha256(controller, its options and seed, nonce of the episode)",
    (Kind.ARM_REVEALED, "openings_root"): "chain of sha256 of all sealed values so far, begun with a key of the secret",
    (Kind.EPISODE_STARTED, "openings_root"): "the same",
    (Kind.RECORDING_SEALED, "openings_root"): "the same",
}
CHAIN = ("prev", "hash")  # of every entry; printed as the head by run, status, verify and in heads.log


@pytest.fixture(autouse=True)
def steady_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit journals the free disk space, which other programs change."""
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)


def exchanged(first: str, second: str) -> Any:
    """`draw` with two arms in each other's place, and nothing else changed."""
    other = {first: second, second: first}

    def drawn(*given: Any) -> Schedule:
        slots = draw(*given).slots
        return Schedule(tuple(replace(slot, arm=other.get(slot.arm, slot.arm)) for slot in slots))

    return drawn


def mask(seen: dict[str, str], events: list[Event]) -> dict[str, str]:
    """The values of the MASKED fields and of the chain, wherever they stand, replaced by the place they come from."""
    names: dict[str, str] = {}
    for event in events:
        for key in CHAIN:
            names.setdefault(getattr(event, key), f"<{key} of {event.seq}>")
        for (kind, key), what in MASKED.items():
            if event.kind == kind:
                names[event.body[key]] = f"<{what} of {event.seq}>"
    digest = re.compile("[0-9a-f]{64}")
    return {surface: digest.sub(lambda found: names.get(found[0], found[0]), text) for surface, text in seen.items()}


def run_and_look(
    lab: Path, arms: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], made: Any = make_campaign, **given: Any
) -> tuple[dict[str, str], list[Event]]:
    """Open with ENTROPY, run in simulated time, look at everything."""
    lab.mkdir()
    opened = made(lab, arms, entropy=ENTROPY, **given)
    said: list[str] = [opened.commitment]
    run_campaign(opened.folder, said.append, manual=True)
    events = events_of(opened.folder)
    return mask(see_all(lab, opened.folder, said, capsys), events), events


def run_twice(
    tmp_path: Path, arms: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], **given: Any
) -> tuple[tuple[dict[str, str], list[Event]], tuple[dict[str, str], list[Event]]]:
    """The same campaign in the same place, the second time with its first two arms exchanged in the drawn schedule."""
    lab = tmp_path / "lab"
    first = run_and_look(lab, arms, capsys, **given)
    lab.rename(tmp_path / "before")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(labctl.core.design, "draw", exchanged(arms[0]["name"], arms[1]["name"]))
        second = run_and_look(lab, arms, capsys, **given)
    assert (tmp_path / "before/campaigns/trial-run/seal/schedule.json").read_bytes() != (
        lab / "campaigns/trial-run/seal/schedule.json"
    ).read_bytes(), "the arms were exchanged"
    return first, second


def assert_same(first: dict[str, str], second: dict[str, str]) -> None:
    assert list(first) == list(second), "different things to look at"
    differing = [surface for surface in first if first[surface] != second[surface]]
    assert differing == [], "a blind role could tell two arms that behave alike apart"


def test_exchanging_two_arms_that_behave_alike_changes_no_byte_a_blind_role_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alike but for name and endpoint, with a person, both cameras and a switch of the instruction; only digests of
    MASKED and CHAIN may differ.
    """
    switch = '[[switch]]\nname = "small"\nat_s = 5.0\ninstruction = "Move the small items."\n'
    arms = [
        policy("first", endpoint="sim://first", skill="swift"),
        policy("second", endpoint="sim://second", skill="swift"),
        HUMAN,
    ]
    (first, events), (second, _) = run_twice(tmp_path, arms, capsys, cameras=True, budget=12.0, cell=SMALL, link=switch)
    assert_same(first, second)
    kinds = Counter(event.kind for event in events)
    assert kinds[Kind.OUTCOME_RECORDED] == 3 and kinds[Kind.OPERATION_RECORDED] >= 1
    assert kinds[Kind.INSTRUCTION_SWITCHED] == 3
    assert sum(surface.endswith(".mp4") for surface in first) == 6
    assert "arm/state" in first["traces.db"] and '"arm_dependent": true' not in first["traces.db"]
    assert first["table.csv"].count("\n") >= 4


def test_nor_does_it_in_a_campaign_of_tasks_whose_blocks_belong_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A success, the same with other words beside it, stages and a score, and which of two was better: the bytes are
    the same, outcomes and all.
    """
    arms = [policy(name, endpoint=f"sim://{name}", skill="swift") for name in ("first", "second")]
    kept = ["over-base", "over-lang", "stages", "score"]
    asked = {"[analysis]": "[preference]\n[analysis]"}
    (first, events), (second, _) = run_twice(
        tmp_path, arms, capsys, made=open_tasks, name="trial-run", conditions=kept, protocol=asked
    )
    assert_same(first, second)
    kinds = Counter(event.kind for event in events)
    assert kinds[Kind.PREFERENCE_ASKED] == kinds[Kind.PREFERENCE_STATED] == 4, "each block's pair had its word"
    told = [event.body["outcome"] for event in events if event.kind == Kind.OUTCOME_RECORDED]
    assert sum("reached_s" in one for one in told) == 6 and sum("score" in one for one in told) == 2
    assert any(one.get("reached_s") for one in told), "somebody got somewhere"


def test_the_comparison_sees_arms_that_do_not_behave_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A control: one arm answers 0.3 s later, and the comparison above would say so."""
    arms = [policy("first", skill="swift"), policy("second", skill="swift", latency_s=0.4)]
    (first, _), (second, _) = run_twice(tmp_path, arms, capsys)
    with pytest.raises(AssertionError, match="could tell"):
        assert_same(first, second)


def test_only_the_listed_digests_differ_unmasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mask hides nothing it need not: field by field, exactly the listed ones differ, and each of them does."""
    arms = [
        policy("first", endpoint="sim://first", skill="swift"),
        policy("second", endpoint="sim://second", skill="swift"),
    ]
    (_, before), (_, after) = run_twice(tmp_path, arms, capsys)
    differ = set()
    for one, other in zip(before, after, strict=True):
        assert replace(one, body={}, prev="", hash="") == replace(other, body={}, prev="", hash="")
        differ |= {(one.kind, key) for key in one.body if one.body[key] != other.body[key]}
    assert differ == set(MASKED)


def test_what_open_prints_does_not_depend_on_the_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`labctl open`, text and JSON, with the entropy and the clock held; only the commitment differs, and the head that
    covers it.
    """
    lab, printed = tmp_path / "lab", []
    lab.mkdir()
    make_campaign(lab, [policy("first", skill="swift"), policy("second", skill="swift")])
    opened = (lab / OPENED).read_text()
    monkeypatch.setattr(labctl.cli.lifecycle, "MonotonicClock", lambda: ManualClock(0))
    monkeypatch.setattr(os, "urandom", lambda n: ENTROPY[:n])
    for drawn in (draw, exchanged("first", "second")):
        monkeypatch.setattr(labctl.core.design, "draw", drawn)
        out = []
        for words in ([], ["--json"]):
            assert (
                call(
                    [
                        "open",
                        str(lab / "protocols/p.toml"),
                        "--cell",
                        str(lab / "cells/c.toml"),
                        "--lab",
                        str(lab),
                        *words,
                    ]
                )
                == 0
            )
            folder = max((lab / "campaigns").iterdir())
            first = events_of(folder)[0]
            said = capsys.readouterr().out.replace(first.body["commitment"], "<commitment>")
            out.append(said.replace(first.hash, "<head>"))
            folder.rename(tmp_path / f"{drawn.__name__}{len(words)}")
            (lab / OPENED).write_text(opened)  # as it was before: the next one is the second again
        printed.append(out)
    assert printed[0] == printed[1]
    assert "<commitment>" in printed[0][0] and "<head>" in printed[0][0] and "first" not in printed[0][0]


def test_a_policy_slow_to_load_starts_when_a_quick_one_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Boot time, first call and endpoint exchanged: every start is arming_s after commit, go and operations come at the
    same moments. The report, which is only there after unblinding, tells them apart.
    """
    arms = [
        policy("first", skill="swift", load_s=4, warm_s=1.5, endpoint="sim://far"),
        policy("second", skill="swift", endpoint="sim://near"),
    ]
    (first, events), (second, others) = run_twice(tmp_path, arms, capsys, arming=6.0, budget=60.0)
    assert_same(first, second)
    for told in (events, others):
        committed = [event.at_ns for event in told if event.kind == Kind.SCENE_COMMITTED]
        started = [event.at_ns for event in told if event.kind == Kind.EPISODE_STARTED]
        assert [b - a for a, b in zip(committed, started, strict=True)] == [6 * SECOND] * 2
    moments = [
        [since_go(event, told) for event in told if event.kind == Kind.OPERATION_RECORDED] for told in (events, others)
    ]
    assert moments[0] == moments[1] and moments[0]
    folder = tmp_path / "lab/campaigns/trial-run"
    assert (
        call(["close", str(folder)])
        == call(["freeze", str(folder), "--unreviewed"])
        == call(["unblind", str(folder)])
        == 0
    )
    assert call(["report", str(folder), "--out", str(tmp_path / "report")]) == 0
    told = json.loads((tmp_path / "report/report.json").read_text())["lab"]["answer_times"]
    started = {entry["arm"]: (entry["load_s"]["p50"], entry["warm_s"]["p50"]) for entry in told}
    assert started == {"first": (4.0, 1.5), "second": (0.0, 0.0)}
    assert all(entry["questions"] > 3 and 0.05 < entry["answer_s"]["p50"] < 0.2 for entry in told), "0.1 s is modelled"


def since_go(event: Event, told: list[Event]) -> int:
    """When an operation happened, in ns since its episode's go."""
    go = next(other for other in told if other.kind == Kind.GO and other.episode == event.episode)
    return event.body["t_ns"] - go.body["go_ns"]


def test_a_policy_that_always_dies_is_not_run_and_the_campaign_goes_on(tmp_path: Path) -> None:
    """Dying while loading is void before go, dying on the clock after it; after max_voids the trial is skipped. A cell
    has to ask for that: by default nothing moves before every arm answers, and like voids are a hold.
    """
    arms = [policy("well", skill="swift"), policy("loader", crash_at="load"), policy("thinker", crash_at="infer")]
    folder = make_campaign(tmp_path, arms, max_voids=2, cell=NEVER_HELD).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    events = events_of(folder)
    with labctl.store.campaign.Campaign.open(folder, writer=True) as campaign:
        trial_of = {campaign.ledger.reveal(trial): trial for trial in campaign.state.trials}
    trials = fold(events).trials
    assert {arm: str(trials[trial].state) for arm, trial in trial_of.items()} == {
        "well": State.SCORED,
        "loader": State.NOT_RUN,
        "thinker": State.NOT_RUN,
    }
    voids = {
        arm: [
            (e.body["reason"], e.body["after_go"]) for e in events if e.kind == Kind.EPISODE_VOIDED and e.trial == trial
        ]
        for arm, trial in trial_of.items()
    }
    assert voids == {"well": [], "loader": [("controller_lost", False)] * 2, "thinker": [("controller_lost", True)] * 2}
    skipped = {(e.trial, e.body["reason"]) for e in events if e.kind == Kind.TRIAL_SKIPPED}
    assert skipped == {(trial_of["loader"], "max_voids"), (trial_of["thinker"], "max_voids")}
