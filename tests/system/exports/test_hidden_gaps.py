"""What is missing of a stream that tells arms apart is sealed: before unblinding nothing that a blind role reads says
that it is, neither by name nor by a count, and afterwards it is read as if it had never been hidden.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.robots.telling_robot import STREAM
from support.runs.campaigns import events_of, make_campaign, policy, unblinded_copy
from support.runs.recordings import Recordings
from support.sealed_recordings import assert_all_sealed

from labctl.bus import Message, Node, Step
from labctl.cli import call
from labctl.core.events import Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.store.ledger import OPENINGS, Ledger
from labctl.store.verifying.verify import verify_campaign

HIDDEN = (STREAM, "policy", "arm/lease")
OPEN = "arm/state"


class Stops:
    """The robot's process, at one of whose visits the whole run is interrupted."""

    def __init__(self, inner: Node) -> None:
        self._inner, self._left = inner, 120
        self.name, self.topics = inner.name, inner.topics

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt
        return self._inner.step(now_ns, inbox)

    @property
    def finished(self) -> bool:
        return bool(getattr(self._inner, "finished", True))


def run_interrupted(lab: Path) -> Path:
    """Two policies on such a robot; the first episode is interrupted, and sealed by the next start. Its folder."""
    cell = {'driver = "sim_fr3"': 'driver = "support.robots.telling_robot:build"'}
    arms = [policy("first", skill="swift"), policy("second", skill="swift")]
    folder = make_campaign(lab, arms, cell=cell, items=1, budget=10.0, arming=1.0).folder
    with pytest.raises(KeyboardInterrupt):
        run_campaign(
            folder, lambda line: None, manual=True, wrap=lambda node: Stops(node) if node.name == "arm" else node
        )
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture(scope="module")
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_interrupted)


@pytest.fixture(scope="module")
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


def record(folder: Path) -> Record:
    with Campaign.open(folder) as campaign:
        return record_of(campaign.events(), campaign.state)


def counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[int]:
    assert call(["episodes", folder.name, "--json", "--lab", str(folder.parents[1])]) == 0
    return [row["gaps"] for row in json.loads(capsys.readouterr().out)["episodes"]]


def test_no_entry_of_the_journal_and_no_count_has_them_before_unblinding(
    blinded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the stream that only some arms have there was an entry, with its name, in the chain that everybody reads."""
    events = events_of(blinded)
    said = {str(event.body["stream"]) for event in events if event.kind == Kind.GAP}
    assert OPEN in said and not said & {*HIDDEN}, "a control: of what all arms have it is said"
    text = repr([event.body for event in events if event.kind not in (Kind.CAMPAIGN_OPENED,)])
    assert not [name for name in (f"'{STREAM}'", "'policy'", "arm/lease", "thoughts") if name in text]
    (lost, *_) = [event.episode for event in events if event.kind == Kind.EPISODE_VOIDED]
    shown = [event for event in events if event.kind == Kind.GAP and event.episode == lost]
    sealed = next(event for event in events if event.kind == Kind.RECORDING_SEALED and event.episode == lost)
    assert sealed.body["gaps"] == len(shown) == counted(blinded, capsys)[0]
    (concluded,) = [
        line
        for event in events
        if event.kind == Kind.RUN_STARTED
        for line in event.body["recovered"]
        if "sealed what was recorded" in line
    ]
    samples = sum(stream["n"] for stream in sealed.body["streams"].values())
    assert f": {samples} samples, " in concluded, "how many samples hidden streams have tells a rate"
    found = verify_campaign(blinded)
    assert found.problems == [] and f"gap in {OPEN} of episode {lost}" in " ".join(found.notes)
    assert not [note for note in found.notes if any(name in note for name in HIDDEN)]


def test_they_are_read_after_unblinding(blinded: Path, unblinded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    episode = next(iter(record(blinded).episodes.values()))
    whole = record(unblinded).episodes[episode.id]
    shown = {gap["stream"] for gap in episode.gaps}
    assert OPEN in shown and {gap["stream"] for gap in whole.gaps} == {*shown, *HIDDEN}
    before, after = counted(blinded, capsys), counted(unblinded, capsys)
    assert (before[0], after[0]) == (len(episode.gaps), len(whole.gaps)) and before[1:] == after[1:]
    found = verify_campaign(unblinded)
    assert found.problems == []
    assert all(any(f"gap in {name} of episode {episode.id}" in note for note in found.notes) for name in HIDDEN)
    assert_all_sealed(unblinded, events_of(unblinded))


def test_verify_holds_them_to_what_was_sealed_before_anybody_is_unblinded(blinded: Path, tmp_path: Path) -> None:
    """Somebody who takes one away, or writes another, is named: by the digests, or by the chain of them."""
    openings = Ledger.open(blinded).open_all()["openings"]
    (at, *_) = [number for number, one in enumerate(openings) if one["field"].startswith("gap:")]
    lines = (blinded / "seal" / OPENINGS).read_text("utf-8").splitlines(keepends=True)
    for name, changed in {
        "gone": [*lines[:at], *lines[at + 1 :]],
        "other": [*lines[:at], lines[at].replace("process lost", "never lost"), *lines[at + 1 :]],
    }.items():
        copy = tmp_path / name / "campaigns" / blinded.name
        copy.parent.mkdir(parents=True)
        shutil.copytree(blinded, copy)
        (copy / "seal" / OPENINGS).write_text("".join(changed), "utf-8")
        assert "changed seal" in {problem.what for problem in verify_campaign(copy).problems}
