"""Whose word counts: people of the open session in the roles they took there, and a void after go by what stands behind
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import correct, review
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import Verb, fold
from labctl.errors import StateError
from labctl.runtime.command_handler import OF_ANYBODY, ORDERS
from labctl.runtime.review_writer import finish, register
from labctl.store.campaign import Campaign

BEA, CAL = {"bea": ["assessor"]}, {"cal": ["setter"]}
COUNTS = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Of a protocol that leaves it to a person what becomes of an episode that a machine ended."""
    rules = {'process_lost = "void"': 'process_lost = "score"'}
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    folder = make_campaign(tmp_path, arms, items=2, protocol=rules).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def sealed(bench: Bench, episode: str) -> None:
    bench.seal(episode)
    assert bench.state() == "scoring"


def by_a_person(bench: Bench) -> None:
    assert bench.command("end")["ok"]


def by_a_stop(bench: Bench) -> None:
    assert bench.command("stop")["ok"]


def by_the_robots_process(bench: Bench) -> None:
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended by signal 9"}))


def by_the_robot(bench: Bench) -> None:
    body = {"kind": "safety_stop", "t_ns": bench.now_ns, "body": {"reason": "protective stop"}, "episode": None}
    bench.hear(Message("run", "event", body, sender="arm"))


def scoring(bench: Bench, end: Callable[[Bench], None]) -> int:
    """An episode that ended so, ready for its score; the seq of its end."""
    episode = bench.running(**BEA, **CAL)
    end(bench)
    sealed(bench, episode)
    return bench.events(Kind.EPISODE_ENDED)[-1].seq


def void(bench: Bench, **behind: Any) -> str:
    """What is said against it; nothing when the episode is void."""
    reason = bench.campaign.opened["void_reasons"][0]
    return str(bench.command("void", reason=reason, **behind).get("error", ""))


@pytest.mark.parametrize("end", [by_the_robots_process, by_the_robot])
def test_the_end_that_a_machine_made_stands_behind_a_void(bench: Bench, end: Callable[[Bench], None]) -> None:
    seq = scoring(bench, end)
    assert bench.shown()["evidence"] == seq and not void(bench, evidence=seq)


@pytest.mark.parametrize("end", [by_a_person, by_a_stop])
def test_the_end_that_a_person_made_does_not(bench: Bench, end: Callable[[Bench], None]) -> None:
    seq = scoring(bench, end)
    assert bench.shown()["evidence"] is None
    assert f"entry {seq} is no machine's report that ended this episode; there: none" in void(bench, evidence=seq)


def test_nothing_else_in_the_journal_stands_behind_a_void(bench: Bench) -> None:
    """Issue 17.11: `evidence: 1`, the campaign's opening, passed."""
    right = scoring(bench, by_the_robots_process)
    wrong = [event.seq for event in bench.events() if event.seq != right]
    assert all(f"there: {right}" in void(bench, evidence=seq) for seq in (*wrong, 0, -1, 10**6)) and len(wrong) > 8
    assert not bench.events(Kind.EPISODE_VOIDED)


def test_the_end_of_an_earlier_episode_of_the_trial_does_not(bench: Bench) -> None:
    first = scoring(bench, by_the_robots_process)
    assert not void(bench, evidence=first)
    bench.hear(Message("run", "hello", sender="arm"))
    bench.wait(SECOND // 10)
    assert bench.command("acknowledge", code="arm_lost")["ok"]
    bench.stage()
    episode = bench.start()
    bench.go(episode)
    by_a_person(bench)
    sealed(bench, episode)
    assert f"entry {first} is no machine's" in void(bench, evidence=first)


def test_who_confirms_a_void_is_of_the_session_and_another_person(bench: Bench) -> None:
    """Issue 17.11: `confirmed_by: nobody-at-all` passed."""
    scoring(bench, by_a_person)
    assert "'nobody-at-all' is in no session here; there: ann" in void(bench, confirmed_by="nobody-at-all")
    assert "another one" in void(bench, confirmed_by="ann")
    assert not void(bench, confirmed_by="bea")


def test_who_came_after_the_episode_was_over_confirms_no_void_of_it(bench: Bench) -> None:
    scoring(bench, by_a_person)
    people = [
        {"id": "ann", "roles": ["operator", "assessor"]},
        *({"id": p, "roles": ["setter"]} for p in ("bea", "eve")),
    ]
    assert bench.command("people", people=people)["ok"]
    assert "eve came after this episode was over" in void(bench, confirmed_by="eve")
    assert not void(bench, confirmed_by="bea"), "a change of role is no coming"


def reopened(bench: Bench, *ids: str) -> None:
    """The session is closed, and another one opened by ann with these people."""
    assert bench.command("session_close")["ok"]
    people = [
        {"id": "ann", "roles": ["operator", "setter", "assessor"]},
        *({"id": i, "roles": ["setter"]} for i in ids),
    ]
    assert bench.command("session", people=people)["ok"]


def test_closing_the_session_makes_nobody_a_second_person(bench: Bench) -> None:
    """A lone operator closed the session and named whom they liked; bea had been there some other evening."""
    bench.begin_session(**BEA)
    reopened(bench)
    bench.stage()
    episode = bench.start()
    bench.go(episode)
    by_a_person(bench)
    sealed(bench, episode)
    assert "'bea' is in no session here" in void(bench, confirmed_by="bea")
    assert bench.command("session_close")["ok"]
    assert "no session is open, and a second person is one of a session" in void(bench, confirmed_by="bea")


def test_another_session_takes_nobody_to_an_episode_that_was_over(bench: Bench) -> None:
    scoring(bench, by_a_person)
    reopened(bench, "eve", "bea")
    assert "eve came after this episode was over" in void(bench, confirmed_by="eve")
    assert not void(bench, confirmed_by="bea"), "she was there when it ended, and is again"


def test_who_was_there_when_the_session_was_closed_in_mid_episode_saw_it(bench: Bench) -> None:
    episode = bench.running(**BEA)
    assert bench.command("session_close")["ok"]
    by_a_person(bench)
    sealed(bench, episode)
    people = [{"id": i, "roles": ["operator", "assessor"]} for i in ("ann", "bea", "eve")]
    assert bench.command("session", people=people)["ok"]
    assert "eve came after this episode was over" in void(bench, confirmed_by="eve")
    assert not void(bench, confirmed_by="bea")


def test_a_void_that_was_confirmed_at_the_same_keyboard_says_so_in_journal_and_report(bench: Bench) -> None:
    scoring(bench, by_a_person)
    assert not void(bench, confirmed_by="bea")
    assert bench.events(Kind.EPISODE_VOIDED)[-1].body["confirmed_at"] == "the same keyboard"
    said = [line for line in record_of(bench.events()).deviations if "voided" in line]
    assert len(said) == 1 and said[0].endswith("by ann, confirmed by bea at the same keyboard")


@pytest.mark.parametrize("verb", [verb for verb in ORDERS if verb not in OF_ANYBODY])
def test_a_stranger_orders_nothing(bench: Bench, verb: str) -> None:
    scoring(bench, by_a_person)
    before = bench.events()[-1].seq
    reply = bench.command(verb, who="mallory")
    assert "'mallory' is in no session here; there: ann" in reply["error"] and bench.events()[-1].seq == before


def test_anybody_stops_and_looks(bench: Bench) -> None:
    bench.running(**BEA, **CAL)
    assert bench.command("look", who="mallory")["ok"] and bench.command("stop", who="mallory")["ok"]
    assert bench.events(Kind.HOLD_RAISED)[-1].who == "mallory"


@pytest.mark.parametrize("verb", [*Verb, "guess", "review", "reference"])
def test_nobody_claims_a_role_that_they_did_not_take(bench: Bench, verb: str) -> None:
    """Issue 17.11: `role` was whatever the client said; `review` and `guess` asked for none."""
    scoring(bench, by_a_person)
    trial = fold(bench.events()).order[0]
    about = {"trial": trial} if verb in ("guess", "review", Verb.CORRECT) else {}
    about |= {"reason": "x"} if verb == "reference" else {}
    before = bench.events()[-1].seq
    for who, role in (("bea", "operator"), ("cal", "assessor")):
        reply = bench.command(verb, who=who, role=role, **about)
        assert not reply["ok"] and bench.events()[-1].seq == before
        assert f"not {role}" in reply["error"], reply


@pytest.mark.parametrize(("who", "role", "may"), [("bea", "assessor", True), ("cal", "setter", False)])
def test_an_assessor_reviews(bench: Bench, who: str, role: str, may: bool) -> None:
    scoring(bench, by_a_person)
    trial = fold(bench.events()).order[0]
    assert bench.command("score", who="bea", role="assessor", **{**COUNTS, "moved": 0, "remaining": 2})["ok"]
    reply = bench.command("review", who=who, role=role, trial=trial, operations=[])
    assert reply["ok"] is may and (may or "review is for the assessor, not for the setter" in reply["error"])


def test_who_opens_a_session_is_of_it(bench: Bench) -> None:
    bench.begin_session()
    assert bench.command("session_close")["ok"]
    people = [{"id": "ann", "roles": ["operator"]}]
    assert "'mallory' is in no session" in bench.command("session", who="mallory", people=people)["error"]
    assert bench.command("session", people=people)["ok"]


def test_a_session_that_was_left_open_is_ended_by_whoever_comes_next(bench: Bench) -> None:
    bench.begin_session()
    people = [{"id": "dora", "roles": ["operator", "setter"]}]
    assert "still open" in bench.command("session", who="dora", people=people)["error"]
    assert bench.command("session_close", who="dora", handover="ann has gone")["ok"]
    assert bench.events(Kind.SESSION_CLOSED)[-1].who == "dora"
    assert bench.command("session", who="dora", people=people)["ok"]


def test_outside_of_a_session_those_judge_who_were_in_one(bench: Bench) -> None:
    scoring(bench, by_a_person)
    assert bench.command("session_close")["ok"]
    assert "'mallory' is in no session" in bench.command("score", who="mallory", role="assessor", **COUNTS)["error"]
    assert "cal is setter here, not assessor" in bench.command("score", who="cal", role="assessor", **COUNTS)["error"]
    assert bench.command("score", who="bea", role="assessor", **COUNTS)["ok"]


@pytest.mark.parametrize("who", ["cal", "mallory"])
def test_without_a_run_only_an_assessor_of_the_campaign_judges(bench: Bench, who: str) -> None:
    scoring(bench, by_a_person)
    assert bench.command("score", role="assessor", **COUNTS)["ok"]
    assert bench.command("session_close")["ok"]
    trial, folder, before = fold(bench.events()).order[0], bench.campaign.folder, bench.events()[-1].seq
    bench.campaign.close()
    for act in (
        lambda: review(folder, trial, [], who=who),
        lambda: correct(folder, trial, COUNTS, who=who, why="x"),
        lambda: finish(folder, who=who),
    ):
        with pytest.raises(StateError, match=f"labctl review trial-run --who {who} --register"):
            act()
    with Campaign.open(folder) as campaign:
        assert campaign.state.last_seq == before


def test_who_enters_as_assessor_judges_and_the_journal_has_it(bench: Bench) -> None:
    scoring(bench, by_a_person)
    assert bench.command("score", role="assessor", **COUNTS)["ok"]
    trial, folder = fold(bench.events()).order[0], bench.campaign.folder
    bench.campaign.close()
    register(folder, "dora")
    register(folder, "dora")  # once is enough
    correct(folder, trial, {**COUNTS, "moved": 2, "remaining": 0}, who="dora", why="x")
    with Campaign.open(folder) as campaign:
        opened = [event for event in campaign.events() if event.kind == Kind.SESSION_OPENED]
        assert [person["id"] for person in opened[-1].body["people"]] == ["dora"] and len(opened) == 2
        closed = [event.body["session"] for event in campaign.events() if event.kind == Kind.SESSION_CLOSED]
        assert closed == [event.body["session"] for event in opened], "the one that was left open first"
        assert campaign.state.session is None
