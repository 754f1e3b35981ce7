"""An arm's own crash counts as its protocol says, from the episode to the table; witnesses in dispute are counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.analysis.report import wording
from labctl.bus import Message
from labctl.clock import SECOND
from labctl.config.protocol_schema import parse_protocol
from labctl.core.events import EndReason, Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.rollout import voided_by_rule
from labctl.errors import InputError
from labctl.reporting.cells.counts import disputed_of
from labctl.reporting.facts import facts
from labctl.reporting.operations_table import operations, recorded
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

ROOT = Path(__file__).resolve().parents[3]
DEMO = (ROOT / "protocols" / "demo.toml").read_text(encoding="utf-8")


def crashed(folder: Path, crash: str, *, go: bool = True) -> tuple[Bench, str, Campaign]:
    """An episode whose controller died 5 s after an item was moved, or before go, recorded and sealed."""
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    made = make_campaign(folder, arms, items=2, budget=20.0, blocks=2, crash=crash).folder
    campaign = Campaign.open(made, writer=True)
    bench = Bench(campaign)
    bench.begin_session()
    bench.stage()
    episode = bench.start()
    go_ns = bench.now_ns
    if go:
        bench.hear(Message("run", "go", {"episode": episode, "go_ns": go_ns}, sender="controller"))
        body = {"kind": "success", "t_ns": go_ns + 3 * SECOND, "body": {}}
        bench.hear(Message("run", "event", body, sender="arm"))
        bench.wait(8 * SECOND)
    bench.hear(Message("run", "exited", {"name": "controller", "reason": "ended with exit code 1"}))
    bench.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
    bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
    return bench, episode, campaign


@pytest.mark.parametrize(
    ("crash", "row"),
    [("failure", ("ghost", 5.0, "controller_lost")), ("ended", ("censored", 5.0, "controller_lost"))],
)
def test_an_arms_own_crash_after_go_is_scored_and_counts_as_the_protocol_says(tmp_path, crash, row):
    bench, _, campaign = crashed(tmp_path, crash)
    with campaign:
        assert not bench.events(Kind.EPISODE_VOIDED), "it is not run again in silence"
        refused = bench.command("void", reason="controller_lost", evidence=bench.events(Kind.EPISODE_ENDED)[0].seq)
        assert not refused["ok"] and "no machine's report" in refused["error"]
        refused = bench.command("void", reason="controller_lost", confirmed_by="p-1")
        assert not refused["ok"]
        assert bench.command("score", items_staged=2, moved=1, lost=0, remaining=1)["ok"]
        last = operations(record_of(bench.events()))[-1]
        assert (last["kind"], last["time_s"], last["cause"]) == row


@pytest.mark.parametrize(("crash", "go"), [("void", True), ("failure", False)])
def test_where_it_is_void_or_had_not_begun_it_is_run_again(tmp_path, crash, go):
    bench, episode, campaign = crashed(tmp_path, crash, go=go)
    with campaign:
        (void,) = bench.events(Kind.EPISODE_VOIDED)
        assert void.body["after_go"] == go
        record = record_of(bench.events())
        assert operations(record) == []
        assert [(row["episode"], row["void"]) for row in recorded(record)] == ([(episode, 1)] if go else [])


OPENED = {"process_lost": "void"}


@pytest.mark.parametrize(
    ("ended", "opened", "went", "void"),
    [
        (EndReason.CONTROLLER_LOST, OPENED, True, True),  # a campaign from before it could be declared
        (EndReason.CONTROLLER_LOST, {"process_lost": "score"}, True, False),
        (EndReason.CONTROLLER_LOST, {**OPENED, "estimand": {"crash": "failure"}}, True, False),
        (EndReason.CONTROLLER_LOST, {**OPENED, "estimand": {"crash": "failure"}}, False, True),
        (EndReason.CONTROLLER_LOST, {"process_lost": "score", "estimand": {"crash": "void"}}, True, True),
        (EndReason.ARM_LOST, {**OPENED, "estimand": {"crash": "failure"}}, True, True),
        (EndReason.ARM_LOST, {"process_lost": "score"}, False, True),
        (EndReason.SAFETY_STOP, OPENED, False, True),  # a person's, or the robot's own
        (EndReason.SAFETY_STOP, OPENED, True, False),
        (EndReason.OPERATOR, {"process_lost": "score"}, False, True),
        (EndReason.FUTILITY, OPENED, False, True),
        (EndReason.SHUTDOWN, OPENED, False, True),
        (EndReason.SHUTDOWN, OPENED, True, False),
        (None, OPENED, False, False),
        (EndReason.BUDGET, OPENED, True, False),
    ],
)
def test_what_a_protocol_voids(ended, opened, went, void):
    assert voided_by_rule(ended, opened, went=went) == void


def test_a_campaign_from_before_it_could_be_declared_counts_what_it_did():
    def estimand(**opened: object) -> dict[str, str]:
        found = {"schedule": [], "conditions": [], "max_voids": 3, "void_reasons": [], **opened}
        return record_of([Event(1, Kind.CAMPAIGN_OPENED, 1, "b", "w", "run", body=found)]).estimand

    before = {"help": "as_it_went", "voids": "left_out", "early_ends": "by_reason"}
    assert estimand(process_lost="void") == {**before, "crash": "void"}
    assert estimand(process_lost="score") == {**before, "crash": "ended"}
    assert estimand(process_lost="void", estimand={"crash": "failure"})["crash"] == "failure"


def test_a_protocol_says_it_in_known_words_and_by_default_counts_a_crash():
    assert parse_protocol(DEMO, "p").estimand.crash == "failure"
    start, end = DEMO.index("[estimand]"), DEMO.index("[analysis]")
    assert parse_protocol(DEMO[:start] + DEMO[end:], "p").estimand == parse_protocol(DEMO, "p").estimand
    with pytest.raises(InputError, match="crash is 'retry'; it must be 'failure', 'ended' or 'void'"):
        parse_protocol(DEMO.replace('crash = "failure"', 'crash = "retry"'), "p")


def test_only_a_protocol_that_voids_crashes_has_to_list_them():
    without = DEMO.replace('"controller_lost", ', "")
    assert "controller_lost" not in parse_protocol(without, "p").trial.void_reasons
    with pytest.raises(InputError, match="void_reasons lacks controller_lost"):
        parse_protocol(without.replace('crash = "failure"', 'crash = "void"'), "p")


@pytest.mark.parametrize(("moved", "disagree"), [(1, 0), (0, 1)])
def test_what_a_detector_could_not_tell_is_no_disagreement_with_the_assessor(tmp_path, moved, disagree):
    bench, _, campaign = crashed(tmp_path, "failure")
    with campaign:
        assert bench.command("score", items_staged=2, moved=moved, lost=0, remaining=2 - moved)["ok"]
        events = bench.events()
    go_ns = next(event.body["go_ns"] for event in events if event.kind == Kind.GO)
    doubt = {"t_ns": go_ns + SECOND, "edge": "ordered grasp", "zone": "left", "result": "unknown", "held_s": 0.0}
    sealed = next(event for event in events if event.kind == Kind.RECORDING_SEALED)
    events[events.index(sealed)] = replace(sealed, body={**sealed.body, "detected": [{**doubt, "moved_m": 0.0}]})
    schedule = [{**slot, "arm": "zebra"} for slot in campaign.opened["schedule"]]
    how = {"early": True, "reason": "a test", "schedule": schedule, "secret_hex": "", "openings": []}
    told = record_of([*events, Event(len(events) + 1, Kind.CAMPAIGN_UNBLINDED, 1, "b", "w", "run", body=how)])
    found = facts(told, ["human", "zebra"], alpha=0.05, robot="sim_fr3", rows=operations(told))["disputed"]
    assert (found["episodes"], found["scored"], found["untold"]) == (disagree, 1, {"human": 0, "zebra": 1})
    said = wording.disputed(found)
    assert said is not None and "In 1 of 1 episodes (zebra 1) the detector could not tell what came of" in said
    assert ("disagree" in said) == bool(disagree)
    both = disputed_of([found, found])
    assert (both["episodes"], both["scored"], both["untold"]) == (2 * disagree, 2, {"human": 0, "zebra": 2})
