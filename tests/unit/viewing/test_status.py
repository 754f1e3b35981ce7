"""What a journal says to a blind role (status, episodes), and what it says to a report after unblinding."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.table import table_from_rows
from labctl.core.events import EndReason, Event, Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState, fold
from labctl.errors import StateError
from labctl.reporting.facts import facts, kinds, refuse_mixed
from labctl.reporting.operations_table import operations
from labctl.viewing.status import recorded, standing

ARMS = {"t-0": "human", "t-1": "policy-a", "t-2": "policy-a", "t-3": "human"}
SCHEDULE = [{"trial": f"t-{n}", "block": n // 2, "position": n % 2, "condition": "towels/layout-1"} for n in range(4)]
OPENED = {
    "campaign": "first",
    "kind": "sim",
    "commitment": "c" * 64,
    "schedule": SCHEDULE,
    "conditions": [
        {"id": "towels/layout-1", "object": "towels", "tote_side": "left", "camera_side": "left", "axes": []}
    ],
    "max_voids": 2,
    "void_reasons": ["arm_lost"],
    "items_staged": 4,
    "deducible_share": 1.0,
    "shared_uid": True,
    "protocol": {"name": "first", "sha256": "1" * 64, "question": "Which is faster?"},
    "cell": {"name": "sim-fr3", "sha256": "2" * 64},
    "fixture": {"name": "two-totes", "sha256": "3" * 64},
}
SECOND = 1_000_000_000


class Story:
    """A journal told event by event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.tell(Kind.CAMPAIGN_OPENED, **OPENED)

    def tell(self, event: Kind, /, *, trial: str | None = None, episode: str | None = None, **body: Any) -> None:
        seq = len(self.events) + 1
        wall = f"2026-01-01T00:00:{seq:02d}+00:00"
        self.events.append(Event(seq, event, seq * SECOND, "boot", wall, "p-1", trial, episode, body))

    @property
    def state(self) -> CampaignState:
        return fold(self.events)

    @property
    def record(self) -> Record:
        return record_of(self.events)

    def armed(self, trial: str, episode: str) -> None:
        self.tell(Kind.TRIAL_STAGING, trial=trial, setter="p-1")
        self.tell(Kind.SCENE_COMMITTED, trial=trial, photo=None, snapshot={})
        self.tell(Kind.ARM_REVEALED, trial=trial, episode=episode, sealed="0" * 64)

    def ended(self, trial: str, episode: str, reason: str, *, kind: str = "sim") -> None:
        self.armed(trial, episode)
        self.tell(Kind.EPISODE_STARTED, trial=trial, episode=episode, kind=kind, durable=True, sealed="0" * 64)
        go = len(self.events) * SECOND
        self.tell(Kind.GO, trial=trial, episode=episode, go_ns=go)
        self.tell(Kind.EPISODE_ENDED, trial=trial, episode=episode, reason=reason, end_ns=go + 30 * SECOND)
        videos = {"wrist": {"file": f"video/{episode}/wrist.mp4", "sha256": "0" * 64, "frames": 1}}
        self.tell(Kind.RECORDING_SEALED, trial=trial, episode=episode, streams={}, root="0" * 64, videos=videos, gaps=0)

    def scored(self, trial: str, episode: str, *, moved: int, reason: str = "budget", kind: str = "sim") -> None:
        self.ended(trial, episode, reason, kind=kind)
        counts = {"items_staged": 4, "moved": moved, "lost": 0, "remaining": 4 - moved, "end_reason": reason}
        self.tell(Kind.OUTCOME_RECORDED, trial=trial, episode=episode, outcome=counts)

    def finished(self) -> None:
        """The running episode of the fixture ends and is scored."""
        self.tell(Kind.EPISODE_ENDED, trial="t-2", episode="e-3", reason="budget", end_ns=100 * SECOND)
        self.tell(Kind.RECORDING_SEALED, trial="t-2", episode="e-3", streams={}, root="0" * 64, videos={}, gaps=0)
        counts = {"items_staged": 4, "moved": 0, "lost": 1, "remaining": 3, "end_reason": "budget"}
        self.tell(Kind.OUTCOME_RECORDED, trial="t-2", episode="e-3", outcome=counts)

    def unblinded(self, *, reason: str | None = None) -> None:
        schedule = [{**slot, "arm": ARMS[slot["trial"]]} for slot in SCHEDULE]
        body = {"early": reason is not None, "reason": reason, "schedule": schedule, "secret_hex": "", "openings": []}
        self.tell(Kind.CAMPAIGN_UNBLINDED, **body)

    def lab(self) -> dict[str, Any]:
        rows = operations(self.record)
        return facts(self.record, ["human", "policy-a"], alpha=0.05, robot="sim_fr3", rows=rows)


@pytest.fixture
def story() -> Story:
    """Two scored trials, one voided after go and then scored, one never run; not unblinded."""
    story = Story()
    story.scored("t-0", "e-0", moved=4, reason="all_done")
    story.scored("t-1", "e-1", moved=1, reason="operator")
    story.ended("t-2", "e-2", "arm_lost")
    story.tell(Kind.EPISODE_VOIDED, trial="t-2", episode="e-2", reason="arm_lost", evidence=3, after_go=True)
    story.tell(Kind.SCENE_COMMITTED, trial="t-2", photo=None, snapshot={})
    story.tell(Kind.ARM_REVEALED, trial="t-2", episode="e-3", sealed="0" * 64)
    story.tell(Kind.EPISODE_STARTED, trial="t-2", episode="e-3", kind="sim", durable=False, sealed="0" * 64)
    return story


@pytest.fixture
def closed(story: Story) -> Story:
    """The same campaign, closed, frozen and unblinded."""
    story.finished()
    story.tell(Kind.TRIAL_SKIPPED, trial="t-3", reason="campaign_closed")
    story.tell(Kind.CAMPAIGN_CLOSED, reason="time")
    story.tell(Kind.CAMPAIGN_FROZEN, reviewed=False, head="0" * 64)
    story.unblinded()
    return story


def test_status_tells_progress_and_whose_turn_it_is(story: Story):
    found = standing(story.state)
    assert (found["phase"], found["finished"], found["trials"], found["voids"]) == ("open", 2, 4, 1)
    assert found["current"]["trial"] == "t-2" and found["current"]["state"] == "running"
    assert found["by_state"] == {"planned": 1, "running": 1, "scored": 2}


def test_a_blind_role_reads_no_arm_no_outcome_and_no_digest_of_either(story: Story):
    text = json.dumps([standing(story.state), recorded(story.record)])
    for word in ("human", "policy", "moved", "remaining", 'arm"', "0" * 64):
        assert word not in text


def test_status_names_no_arm_even_after_unblinding(closed: Story):
    assert "policy" not in json.dumps(standing(closed.state))


def test_every_attempt_is_listed_with_how_it_ended(story: Story):
    found = {entry["episode"]: entry for entry in recorded(story.record)}
    assert list(found) == ["e-0", "e-1", "e-2", "e-3"]
    assert (found["e-2"]["state"], found["e-2"]["void"], found["e-2"]["ended"]) == ("voided", "arm_lost", "arm_lost")
    assert (found["e-1"]["state"], found["e-1"]["ended"], found["e-1"]["sealed"]) == ("scored", "operator", True)
    assert (found["e-3"]["state"], found["e-3"]["ended"], found["e-3"]["sealed"]) == ("running", None, False)


def test_episodes_name_their_arm_after_unblinding(closed: Story):
    assert [entry["arm"] for entry in recorded(closed.record)] == [
        "human",
        "policy-a",
        "policy-a",
        "policy-a",
    ]


def test_nothing_is_told_by_arm_before_unblinding(story: Story):
    with pytest.raises(StateError, match="not unblinded"):
        story.lab()


def test_the_flow_accounts_for_every_slot_and_every_attempt(closed: Story):
    flow = closed.lab()["flow"]
    assert (flow["planned"], flow["scored"], flow["not_run"], flow["run"]) == (4, 3, 1, 4)
    assert flow["run"] == flow["scored"] + sum(flow["voids"].values())
    assert (flow["voids"], flow["voids_before_go"], flow["voids_after_go"]) == ({"arm_lost": 1}, 0, 1)
    assert flow["ended_early"] == 1
    for key in ("planned", "scored", "not_run", "run", "ended_early"):
        assert sum(arm[key] for arm in flow["by_arm"].values()) == flow[key]


OF_ITS_END = (Kind.EPISODE_ENDED, Kind.OUTCOME_RECORDED)


@pytest.mark.parametrize(("episode", "remaining"), [("e-1", 3), ("e-0", 0)])
def test_flow_and_cells_call_the_same_ends_early(closed: Story, episode: str, remaining: int):
    """One report had two counts of one heading: an episode that ended with its run, or that a person ended when nothing
    remained, was in one of them alone.
    """
    ended, scored = (e for e in closed.events if e.episode == episode and e.kind in OF_ITS_END)
    assert scored.body["outcome"]["remaining"] == remaining
    for reason in (EndReason.SHUTDOWN, EndReason.OPERATOR, EndReason.FUTILITY, EndReason.BUDGET):
        closed.events[ended.seq - 1] = replace(ended, body={**ended.body, "reason": str(reason)})
        outcome = {**scored.body["outcome"], "end_reason": str(reason)}
        closed.events[scored.seq - 1] = replace(scored, body={**scored.body, "outcome": outcome})
        cells = analyze(table_from_rows(operations(closed.record)), tau=30.0, boot=9, perm=9)["cells"]
        assert closed.lab()["flow"]["ended_early"] == sum(cell["ended_early"] for cell in cells), reason


def test_a_void_after_go_counts_as_an_episode_in_which_nothing_moved(closed: Story):
    assert closed.lab()["void_as_failure"] == [
        {"arm": "human", "moved": 4, "staged": 4},
        {"arm": "policy-a", "moved": 1, "staged": 12},
    ]


def test_one_task_in_items_has_the_same_check_of_its_voids(closed: Story):
    before, opened = closed.lab()["void_as_failure"], dict(closed.events[0].body)
    opened["conditions"] = [{**entry, "task": "towels"} for entry in OPENED["conditions"]]
    task = {"name": "towels", "measure": "items", "stages": [], "rubric": [], "failure_tags": []}
    opened["tasks"] = [{**task, "items_staged": 4, "budget_s": 30.0}]
    closed.events[0] = replace(closed.events[0], body=opened)
    assert closed.lab()["void_as_failure"] == before != []
    opened["tasks"] = [{**opened["tasks"][0], "measure": "success"}]
    assert closed.lab()["void_as_failure"] == [], "its report is by episodes, and has a table of its own"


def test_voids_that_the_protocol_counts_are_not_counted_twice(closed: Story):
    closed.events[0] = replace(closed.events[0], body={**closed.events[0].body, "estimand": {"voids": "no_success"}})
    lab = closed.lab()
    assert lab["void_as_failure"] == [] and lab["flow"]["voids_after_go"] == 1


def test_a_report_is_provisional_until_reviewed_and_frozen(story: Story):
    story.finished()
    story.tell(Kind.TRIAL_SKIPPED, trial="t-3", reason="campaign_closed")
    story.tell(Kind.CAMPAIGN_CLOSED, reason="time")
    story.unblinded(reason="to see")
    assert story.lab()["provisional_why"] == [
        "operation events were not reviewed by an assessor",
        "the campaign is not frozen",
    ]


def test_a_campaign_that_was_frozen_without_a_review_waits_for_none(closed: Story):
    lab = closed.lab()
    assert lab["provisional"] and lab["provisional_why"] == []
    (line,) = lab["unreviewed"]
    assert "without a review: an assessor went through 0 of " in line and line in lab["deviations"]
    assert "did not finish" not in line, "it was never begun"
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC: ", line), "a time as people read it"


def test_a_review_of_every_episode_that_nobody_finished_says_both(story: Story):
    """Frozen without a review, and every number of its report is the review's."""
    story.finished()
    story.tell(Kind.CAMPAIGN_CLOSED, reason="time")
    for trial, episode in (("t-0", "e-0"), ("t-1", "e-1")):
        story.tell(Kind.OPERATIONS_REVIEWED, trial=trial, episode=episode, operations=[])
    story.tell(Kind.CAMPAIGN_FROZEN, reviewed=False, head="0" * 64)
    story.unblinded()
    (line,) = story.lab()["unreviewed"]
    assert line.endswith("without a review: an assessor went through 2 of 2 episodes, and did not finish the review")


def test_a_review_that_was_finished_without_looking_at_every_episode_says_how_many_it_looked_at(story: Story):
    """A review may be finished once nothing is in dispute: what was in none, nobody looked at."""
    story.finished()
    story.tell(Kind.CAMPAIGN_CLOSED, reason="time")
    story.tell(Kind.CAMPAIGN_REVIEWED)
    story.tell(Kind.CAMPAIGN_FROZEN, reviewed=True, head="0" * 64)
    story.unblinded()
    lab = story.lab()
    assert lab["unreviewed"] == []
    assert (
        "the review was finished after 0 of 2 episodes: the others were in no dispute, and stand as reported"
        in (lab["deviations"])
    )


def test_early_unblinding_stands_in_the_report_with_its_reason(story: Story):
    story.finished()
    story.unblinded(reason="smoke from policy-a's server")
    lab = story.lab()
    assert lab["blinding"]["early_unblinding"] == "smoke from policy-a's server"
    assert "the campaign is not frozen" in lab["provisional_why"]


def test_what_departs_from_the_plan_is_listed(story: Story):
    old = {"items_staged": 4, "moved": 1, "lost": 0, "remaining": 3, "end_reason": "operator", "notes": ""}
    new = {**old, "moved": 2, "remaining": 2}
    before = {**old, "stage_reached": None}
    story.tell(Kind.OUTCOME_CORRECTED, trial="t-1", episode="e-1", old=before, new=new, why="one lay underneath")
    story.tell(Kind.GAP, trial="t-1", episode="e-1", stream="arm/state", from_ns=1, to_ns=2, lost=3, why="overrun")
    story.tell(Kind.DEVIATION, text="lamp replaced")
    story.finished()
    story.unblinded(reason="test")
    said = "\n".join(story.lab()["deviations"])
    for part in (
        "journalled without waiting for the disk (simulation only): 1 episode",
        "one lay underneath",
        "1 gap in the recording; 3 lost of arm/state",
        "lamp replaced",
    ):
        assert part in said


def test_an_episode_is_told_with_its_measured_duration_and_its_videos(closed: Story):
    first = closed.lab()["episodes"][0]
    assert (first["episode"], first["arm"], first["duration_s"], first["moved"]) == ("e-0", "human", 30.0, 4)
    assert first["video"] == ["video/e-0/wrist.mp4"]


def test_episodes_of_different_kinds_are_never_mixed(story: Story):
    story.finished()
    alike = Story()
    alike.events = list(story.events)
    alike.unblinded(reason="test")
    refuse_mixed(alike.record, "first")
    story.scored("t-3", "e-4", moved=2, kind="real")
    story.unblinded(reason="test")
    record = story.record
    assert kinds(record) == ["real", "sim"]
    with pytest.raises(StateError, match="real, sim"):
        refuse_mixed(record, "first")
