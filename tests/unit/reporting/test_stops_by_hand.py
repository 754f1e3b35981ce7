"""A stop by hand counts against its arm as the protocol lists its cause, from the key to the table; the record keeps
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.exports.selection import select
from labctl.reporting.facts import facts
from labctl.reporting.hand_stops import stop_facts
from labctl.reporting.measured_report import episode_rows
from labctl.reporting.operations_table import filter_rows, operations, outcomes_of
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

ARMS = [HUMAN, policy("zebra", endpoint="sim://zebra")]
MOVED_S, STOPPED_S = 3, 8  # since go
AS_A_STOP = ("ghost", 5.0, "safety_stop")
AS_AN_END = ("censored", 5.0, "operator")
ENDS: Sequence[tuple[Kind, dict]] = (
    (Kind.CAMPAIGN_CLOSED, {"reason": "done"}),
    (Kind.CAMPAIGN_FROZEN, {"reviewed": False, "head": ""}),
    (Kind.CAMPAIGN_UNBLINDED, {"early": False, "reason": None, "schedule": [], "secret_hex": "", "openings": []}),
)


class Evening(Bench):
    """A campaign in which people stop robots."""

    def running(self) -> str:
        """An episode that has gone, with an item moved at MOVED_S; now it is STOPPED_S."""
        self.stage()
        episode = self.start()
        go_ns = self.now_ns
        self.hear(Message("run", "go", {"episode": episode, "go_ns": go_ns}, sender="controller"))
        self.report("success", go_ns + MOVED_S * SECOND)
        self.wait(STOPPED_S * SECOND)
        return episode

    def report(self, kind: str, t_ns: int, **body: object) -> None:
        self.hear(Message("run", "event", {"kind": kind, "t_ns": t_ns, "body": body}, sender="arm"))

    def acknowledge(self, cause: str, why: str = "a sleeve on the keys") -> None:
        reply = self.command("acknowledge", code="operator_stop", cause=cause, why=why)
        assert reply["ok"], reply

    def score(self, episode: str) -> None:
        self.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        self.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
        reply = self.command("score", items_staged=2, moved=1, lost=0, remaining=1)
        assert reply["ok"], reply

    def stopped(self, cause: str | None) -> str:
        """A scored episode that a person stopped; None: nobody has said why."""
        episode = self.running()
        assert self.command("stop")["ok"]
        if cause is not None:
            self.acknowledge(cause)
        self.score(episode)
        return episode

    def ended(self) -> str:
        """A scored episode that the operator ended."""
        episode = self.running()
        assert self.command("end")["ok"]
        self.score(episode)
        return episode

    @property
    def record(self) -> Record:
        return record_of(self.events())


@pytest.fixture
def evening(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Evening]:
    """By default the protocol says nothing of stops; its parameter is what it lists."""
    listed: str | None = getattr(request, "param", None)
    said = {} if listed is None else {"[design]": f"stops_count = {listed}\n[design]"}
    folder = make_campaign(tmp_path, ARMS, items=2, budget=20.0, blocks=2, protocol=said).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Evening(campaign)
        bench.begin_session()
        yield bench


def last(events: Sequence[Event], **how: object) -> tuple:
    """What the table has of the last row."""
    row = operations(record_of(events), **how)[-1]  # type: ignore[arg-type]
    return row["kind"], row["time_s"], row["cause"]


def told_last(events: Sequence[Event], kind: Kind) -> list[Event]:
    """The same journal with its first entry of this kind written last."""
    (moved, *_) = (event for event in events if event.kind == kind)
    reordered = [*(event for event in events if event is not moved), moved]
    return [replace(event, seq=number) for number, event in enumerate(reordered, 1)]


def changed(events: Sequence[Event], kind: Kind, change: Callable[[dict], object]) -> list[Event]:
    """The same journal with the bodies of this kind changed."""
    found = []
    for event in events:
        body = dict(event.body)
        if event.kind == kind:
            change(body)
        found.append(replace(event, body=body))
    return found


@pytest.mark.parametrize(
    ("evening", "cause", "row"),
    [
        (None, "danger", AS_A_STOP),
        (None, "contact", AS_A_STOP),
        (None, "mistaken_key", AS_AN_END),
        ('["danger", "contact", "mistaken_key"]', "mistaken_key", AS_A_STOP),
        ('["mistaken_key"]', "contact", AS_AN_END),
        ("[]", "danger", AS_AN_END),
    ],
    indirect=["evening"],
)
def test_only_a_cause_that_the_protocol_lists_counts_and_another_stop_is_an_end_by_the_operator(evening, cause, row):
    episode = evening.stopped(cause)
    assert last(evening.events()) == row
    assert last(evening.events(), all_stops=True) == AS_A_STOP, "the record keeps what it was"
    assert evening.record.episodes[episode].end_reason == "safety_stop"


def test_a_stop_that_does_not_count_reads_as_an_episode_that_the_operator_ended(evening):
    evening.ended()
    evening.stopped("mistaken_key")
    rows = operations(evening.record)
    ended, stopped = (
        [row for row in rows if row["trial"] == trial] for trial in dict.fromkeys(r["trial"] for r in rows)
    )
    own = ("episode", "trial")
    assert [{k: v for k, v in row.items() if k not in own} for row in stopped] == [
        {k: v for k, v in row.items() if k not in own} for row in ended
    ]


def test_a_stop_before_go_has_its_cause_too(evening, monkeypatch):
    """In a journal from before such an episode was void."""
    monkeypatch.setattr("labctl.runtime.episode_sequencer.voided_by_rule", lambda ended, opened, *, went: False)
    evening.stage()
    episode = evening.start()
    assert evening.command("stop")["ok"]
    evening.acknowledge("mistaken_key")
    evening.seal(episode)
    assert evening.command("score", items_staged=2, moved=0, lost=0, remaining=2)["ok"]
    assert last(evening.events()) == ("censored", 0.0, "operator")
    assert last(evening.events(), all_stops=True) == ("ghost", 0.0, "safety_stop")


def test_a_stop_of_which_nobody_has_said_why_counts(evening):
    evening.stopped(None)
    assert last(evening.events()) == AS_A_STOP
    evening.acknowledge("mistaken_key")
    assert last(evening.events()) == AS_AN_END, "the cause may be said after the score"


@pytest.mark.parametrize("end", [Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_UNBLINDED])
def test_a_cause_said_after_the_end_of_all_judging_spares_no_arm(evening, end):
    evening.stopped("mistaken_key")
    events = evening.events()
    for kind, body in ENDS[: 2 if end == Kind.CAMPAIGN_FROZEN else 3]:
        events.append(replace(events[-1], seq=len(events) + 1, kind=kind, trial=None, episode=None, body=body))
    assert last(events) == AS_AN_END
    assert last(told_last(events, Kind.HOLD_CLEARED)) == AS_A_STOP


def test_the_robots_own_stop_counts_whatever_is_said_of_a_key_that_was_pressed_after_it(evening):
    episode = evening.running()
    evening.mode, evening.reason = "safety_stop", "joint reflex"
    evening.report("safety_stop", evening.now_ns, reason="joint reflex")
    assert evening.command("stop")["ok"]
    evening.mode, evening.reason = "idle", ""
    assert evening.command("acknowledge", code="safety_stop")["ok"]
    evening.acknowledge("mistaken_key")
    evening.score(episode)
    assert last(evening.events()) == AS_A_STOP
    assert evening.record.episodes[episode].stop is None


def test_a_stop_that_ended_nothing_says_nothing_of_the_next_episode(evening):
    assert evening.command("stop")["ok"]
    evening.acknowledge("mistaken_key")
    episode = evening.running()
    evening.report("safety_stop", evening.now_ns, reason="joint reflex")
    evening.score(episode)
    assert last(evening.events()) == AS_A_STOP
    assert evening.record.episodes[episode].stop is None


@pytest.mark.parametrize(
    ("kind", "key"), [(Kind.CAMPAIGN_OPENED, "stops_count"), (Kind.HOLD_CLEARED, "cause")], ids=["list", "cause"]
)
def test_in_a_journal_of_before_there_was_such_a_list_or_cause_each_stop_counts(evening, kind, key):
    evening.stopped("mistaken_key")
    assert last(changed(evening.events(), kind, lambda body: body.pop(key))) == AS_A_STOP


@pytest.mark.parametrize("labels", ["best", "operator", "device", "reviewed"])
def test_the_list_holds_for_every_stream_of_labels(evening, labels):
    episode = evening.running()
    evening.command("count")
    assert evening.command("stop")["ok"]
    evening.acknowledge("mistaken_key")
    evening.score(episode)
    kind, _, cause = last(evening.events(), labels=labels)
    assert (kind, cause) == ("censored", "operator")


def test_a_safety_stop_that_an_assessor_saw_in_the_recording_counts(evening):
    episode = evening.stopped("mistaken_key")
    trial, go_ns = evening.events(Kind.OUTCOME_RECORDED)[-1].trial, evening.events(Kind.GO)[-1].body["go_ns"]
    device = [dict(op) for op in evening.record.episodes[episode].operations]
    assert evening.command("review", role="assessor", trial=trial, operations=_plain(device))["ok"]
    assert last(evening.events()) == AS_AN_END
    seen = {"result": "safety_stop", "t_ns": go_ns + 7 * SECOND, "cause": "reviewed"}
    assert evening.command("review", role="assessor", trial=trial, operations=[*_plain(device), seen])["ok"]
    assert last(evening.events()) == ("ghost", 4.0, "safety_stop")


def _plain(operations: Sequence[dict]) -> list[dict]:
    return [{key: op[key] for key in ("result", "t_ns", "cause")} for op in operations]


def test_a_stop_that_does_not_count_leaves_every_table_and_export_as_the_end_that_it_counts_as(evening):
    """The operations table and the report said operator, tables of episodes and recordings safety_stop."""
    counts, spared = evening.stopped("danger"), evening.stopped("mistaken_key")
    record, rows = evening.record, operations(evening.record)
    assert {row["episode"]: row["end_reason"] for row in episode_rows(record, rows)} == {
        counts: "safety_stop",
        spared: "operator",
    }
    told = outcomes_of(record)
    asked = {reason: filter_rows(rows, f"end_reason={reason}", told) for reason in ("safety_stop", "operator")}
    assert {reason: {row["episode"] for row in kept} for reason, kept in asked.items()} == {
        "safety_stop": {counts},
        "operator": {spared},
    }
    with Campaign.open(evening.campaign.folder) as campaign:
        chosen = {one.episode: one.ended for one in select(campaign).episodes}
    assert chosen == {counts: "safety_stop", spared: "operator"}


# -- what a report is told


@pytest.fixture
def told(evening: Evening) -> Record:
    """Two episodes of each arm: danger and a mistaken key, a mistaken key and none; unblinded."""
    for cause in ("danger", "mistaken_key", "mistaken_key"):
        evening.stopped(cause)
    evening.ended()
    evening.command("session_close", handover="")
    slots = evening.campaign.opened["schedule"]
    schedule = [{**slot, "arm": arm} for slot, arm in zip(slots, ("zebra", "human", "zebra", "human"), strict=True)]
    events = evening.events()
    body = {"early": True, "reason": "a test", "schedule": schedule, "secret_hex": "", "openings": []}
    done = replace(events[-1], seq=len(events) + 1, kind=Kind.CAMPAIGN_UNBLINDED, trial=None, episode=None, body=body)
    return record_of([*events, done])


def test_a_report_is_told_how_many_stops_of_which_cause_each_arm_had_and_how_many_did_not_count(told):
    assert stop_facts(told, ["human", "zebra"]) == {
        "counted": ["danger", "contact"],
        "arms": [
            {"arm": "human", "by_cause": {"mistaken_key": 1}, "not_counted": {"mistaken_key": 1}, "void": 0},
            {
                "arm": "zebra",
                "by_cause": {"danger": 1, "mistaken_key": 1},
                "not_counted": {"mistaken_key": 1},
                "void": 0,
            },
        ],
    }


def test_a_campaign_without_a_stop_by_hand_has_nothing_to_tell_of_them(evening):
    evening.ended()
    assert stop_facts(evening.record, ["human", "zebra"]) is None


def test_each_stop_that_does_not_count_is_a_deviation_with_who_why_and_cause_and_an_early_end(told):
    lab = facts(told, ["human", "zebra"], alpha=0.05, robot="sim_fr3", rows=operations(told))
    lines = [line for line in lab["deviations"] if "stopped by hand" in line]
    assert len(lines) == 2
    assert all("mistaken key" in line and "ann" in line and "a sleeve on the keys" in line for line in lines)
    assert lab["flow"]["ended_early"] == 3 and lab["flow"]["by_arm"]["zebra"]["ended_early"] == 1
    assert [(one["end_reason"], one["stopped_by_hand"]) for one in lab["episodes"]] == [
        ("safety_stop", "danger"),
        ("operator", "mistaken_key"),
        ("operator", "mistaken_key"),
        ("operator", None),
    ]
