"""Somebody comes, leaves or changes role in mid-session, by one form, without closing it."""

from __future__ import annotations

import pytest
from support.runs.run_bench import Bench
from support.screens.console_bench import Desk, at_console, both_sizes, flat

from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import fold
from labctl.errors import StateError
from labctl.ui.console.form import Line

COUNTS = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}


async def fill(desk: Desk, **lines: str) -> None:
    for name, text in lines.items():
        desk.app.screen.query_one(f"#{name.replace('_', '-')}", Line).value = text
    await desk.settle()


@both_sizes
def test_one_form_changes_who_is_here_and_who_sits_at_the_console(bench: Bench, size):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "j")
        assert "Who is here from now on? (the session goes on)" in desk.text()
        await fill(desk, role_operator="cal", role_assessor="bea, cal", role_setter="cal", who="cal")
        await desk.press("ctrl+s")
        said = flat(desk.text())
        assert desk.asked() and "new here: cal as operator, setter, assessor; bea as assessor" in said
        await fill(desk, role_assessor="bob, cal")
        await desk.press("ctrl+s")
        assert desk.asked() and "assessor; bob as assessor" in flat(desk.text()), "another id is shown too"
        await fill(desk, role_assessor="bea, cal")
        await desk.press("ctrl+s", "ctrl+s")
        assert "changed; cal sits at this console" in desk.text()
        await desk.press("s")
        text = flat(desk.text())
        assert "cal: operator, setter, assessor bea: assessor" in text and "ann" not in text
        await desk.press("escape", "enter")

    at_console(bench, play, size=size)
    assert len(bench.events(Kind.SESSION_OPENED)) == 1 and not bench.events(Kind.SESSION_CLOSED)
    changed = bench.events(Kind.SESSION_CHANGED)[0]
    assert changed.who == "ann"
    assert bench.events(Kind.TRIAL_STAGING)[-1].who == "cal"


def test_the_form_says_what_is_wrong_and_only_the_seat_may_change(bench: Bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "j")
        await fill(desk, role_operator="", who="ann")
        await desk.press("ctrl+s")
        assert "nobody is the operator" in desk.text()
        await fill(desk, role_operator="ann", who="dora")
        await desk.press("ctrl+s")
        assert "dora is in no role above; here are ann" in desk.text()
        await fill(desk, who="ann")
        await desk.press("ctrl+s")
        assert not desk.asked() and "changed; ann sits at this console" in desk.text()

    at_console(bench, play)
    assert not bench.events(Kind.SESSION_CHANGED)


def test_without_a_session_or_while_the_robot_may_move_the_form_does_not_open(bench: Bench):
    async def play(desk: Desk) -> None:
        await desk.press("j")
        assert not desk.asked() and "no session is open; ENTER on the first screen opens one" in flat(desk.text())
        await desk.armed()
        await desk.press("j")
        assert not desk.asked() and "the robot may move now" in flat(desk.text())

    at_console(bench, play)


@both_sizes
def test_whoever_is_not_in_a_session_that_was_left_open_reads_the_way_out_before_a_form(bench: Bench, size):
    """The next day, under another id: J took the whole form and then refused it."""
    bench.begin_session()
    assert everybody(bench, bea=["operator", "setter", "assessor"])["ok"]

    async def play(desk: Desk) -> None:
        await desk.wait(1)
        assert "X closes it" in flat(desk.text()) and "you are watching" not in flat(desk.text())
        await desk.press("j")
        assert not desk.asked() and "ann is not in this session" in flat(desk.text())
        await desk.press("x")
        assert desk.asked()
        await desk.press("ctrl+s")

    at_console(bench, play, size=size)
    assert bench.events(Kind.SESSION_CLOSED)[-1].who == "ann"


def everybody(bench: Bench, who: str = "ann", **roles: list[str]) -> dict:
    return bench.command("people", who=who, people=[{"id": name, "roles": taken} for name, taken in roles.items()])


def test_who_came_may_score_from_then_on_and_who_left_may_not(bench: Bench):
    bench.begin()
    bench.start()
    trial = next(iter(fold(bench.events()).trials))
    refused = bench.command("score", who="bea", role="assessor", **COUNTS)
    assert not refused["ok"] and "'bea' is in no session here" in refused["error"]
    assert everybody(bench, ann=["operator", "setter"], bea=["assessor"])["ok"]
    for who, why in (("bea", "not allowed for the assessor now"), ("ann", "ann is operator and setter here")):
        told = bench.command("score", who=who, role="assessor", **COUNTS)  # the episode still runs
        assert not told["ok"] and why in told["error"], trial
    assert everybody(bench, who="bea", ann=["operator"])["ok"], "whoever is here may say who is here"
    assert "'bea' is in no session here" in bench.command("note", who="bea", text="bye")["error"]


@pytest.mark.parametrize(
    ("roles", "why"),
    [
        ({"bea": ["assessor"]}, "nobody would be the operator"),
        ({}, "at least one person"),
        ({"ann": ["operator", "setter", "assessor"]}, "the same people are here"),
        ({"ann": ["pilot"]}, "roles are operator"),
        ({"ann": []}, "no role or no id"),
    ],
)
def test_what_cannot_be_a_session_is_refused_and_nothing_is_journalled(bench: Bench, roles, why):
    bench.begin_session()
    told = everybody(bench, **roles)
    assert not told["ok"] and why in told["error"]
    assert not bench.events(Kind.SESSION_CHANGED)


def test_a_stranger_changes_nobody_and_without_a_session_there_is_nobody_to_change(bench: Bench):
    bench.begin_session()
    assert "'eve' is in no session here" in everybody(bench, who="eve", eve=["operator"])["error"]
    assert bench.command("session_close", handover="")["ok"]
    assert "no session is open" in everybody(bench, ann=["operator"])["error"]


def test_the_record_has_all_who_were_there_and_the_operators_of_each_moment(bench: Bench):
    bench.begin_session()
    assert everybody(bench, cal=["operator"], ann=["analyst"])["ok"]
    record = record_of(bench.events())
    (session,) = record.sessions.values()
    assert {person.id: [str(role) for role in person.roles] for person in session.people} == {
        "ann": ["operator", "setter", "assessor", "analyst"],
        "cal": ["operator"],
    }
    assert record.spent[-1].operators == ("ann",), "what is spent until the entry was ann's"
    bench.wait(2 * 10**9)
    assert bench.command("note", who="cal", text="later")["ok"]
    assert record_of(bench.events()).spent[-1].operators == ("cal",)


def test_a_change_of_a_session_that_is_not_open_does_not_fold(bench: Bench):
    bench.begin_session()
    assert everybody(bench, cal=["operator"])["ok"]
    events = bench.events()
    other = [event for event in events if event.kind != Kind.SESSION_OPENED]
    with pytest.raises(StateError, match="the session cannot be changed: the open session is None"):
        fold(other)
