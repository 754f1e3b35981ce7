"""Claims about a form or an order that something came before: another console, a stop, a run process that says nothing.
It is not taken for one about what stands now, and what was written in it is not lost.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.screens.console_bench import WIDE, Desk, at_console, evening, flat
from textual.events import Key

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.people.personal_codes import set_code
from labctl.ui.console.form import Line

COUNTS = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
GUESS: dict[str, Any] = {"protocol": {"arming_s": "ask_guess = true\narming_s"}}
BEHIND: dict[str, str] = {"cause": "danger", "why": "it went for the lamp"}


async def ended(desk: Desk) -> str:
    """An episode waits for its score."""
    episode = await desk.running()
    await desk.press("e", "e")
    await desk.sealed(episode)
    return episode


async def put(desk: Desk, **lines: str) -> None:
    for name, text in lines.items():
        desk.app.screen.query_one(f"#{name}", Line).value = text
    await desk.settle()


# -- forms


@pytest.mark.parametrize("looks", [True, False], ids=["drawn between", "not drawn between"])
def test_the_form_of_one_stop_does_not_acknowledge_the_next(bench: Bench, looks: bool) -> None:
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "space", "a", "3", "tab")
        await desk.type("wrong key")
        assert bench.command("acknowledge", console="of-bob", code="operator_stop", **BEHIND)["ok"]
        if looks:
            await desk.draw()
            assert not desk.asked() and "that was acknowledged or let go meanwhile" in flat(desk.text())
        assert bench.command("stop", console="of-bob")["ok"]
        if not looks:
            await desk.draw()
            assert not desk.asked() and "this stands now: ann stopped the robot" in flat(desk.text()), "the same words"
        await desk.press("ctrl+s")
        assert len(bench.events(Kind.HOLD_CLEARED)) == 1 and len(bench.events(Kind.HOLD_RAISED)) == 2
        await desk.press("a")
        assert desk.asked() and desk.app.screen.query_one("#why", Line).value == ""

    at_console(bench, play)


def test_an_acknowledgement_that_names_an_earlier_stop_is_refused(bench: Bench) -> None:
    bench.begin_session()
    assert bench.command("stop")["ok"]
    (stop,) = [hold for hold in bench.shown()["holds"] if hold["needs_person"]]
    first = bench.events(Kind.HOLD_RAISED)[-1].seq
    assert stop["raised"] == first
    assert bench.command("acknowledge", code="operator_stop", raised=first, **BEHIND)["ok"]
    assert "raised" not in bench.events(Kind.HOLD_CLEARED)[-1].body
    assert bench.command("stop")["ok"]
    refused = bench.command("acknowledge", code="operator_stop", raised=first, **BEHIND)
    assert not refused["ok"] and "another hold stands by now: ann stopped the robot" in refused["error"]
    assert bench.command("acknowledge", code="operator_stop", **BEHIND)["ok"], "whoever names none means what stands"


def test_who_came_meanwhile_is_not_sent_away_by_a_form_that_does_not_know_them(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "j")
        people = [{"id": "ann", "roles": ["operator", "setter"]}, {"id": "cal", "roles": ["assessor"]}]
        assert bench.command("people", console="of-bob", people=people)["ok"]
        await desk.draw()
        assert not desk.asked() and "who is here has changed meanwhile; J shows who" in flat(desk.text())
        await desk.press("ctrl+s")
        assert len(bench.events(Kind.SESSION_CHANGED)) == 1
        await desk.press("j")
        assert desk.app.screen.query_one("#role-assessor", Line).value == "cal"

    at_console(bench, play)


def test_a_form_of_one_session_does_not_close_the_next(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "x")
        assert bench.command("session_close", console="of-bob", handover="")["ok"]
        bench.begin_session()
        await desk.draw()
        assert not desk.asked() and "another session is open meanwhile" in flat(desk.text())
        await desk.press("ctrl+s")
        assert len(bench.events(Kind.SESSION_CLOSED)) == 1
        await desk.press("x", "ctrl+s")
        assert len(bench.events(Kind.SESSION_CLOSED)) == 2

    at_console(bench, play)


def test_an_order_to_close_one_session_is_refused_in_the_next(bench: Bench) -> None:
    bench.begin_session()
    first = bench.shown()["session"]
    assert bench.command("session_close", handover="")["ok"]
    bench.begin_session()
    refused = bench.command("session_close", handover="all well", session=first)
    assert not refused["ok"] and f"not {first}, which this was to close" in refused["error"]
    assert bench.command("session_close", handover="all well", session=bench.shown()["session"])["ok"]


def test_a_reason_to_hold_after_one_trial_holds_no_other(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("h")
        assert desk.asked()
        assert bench.command("score", console="of-bob", role="assessor", **COUNTS)["ok"]
        await desk.draw()
        assert not desk.asked() and "another one has its turn" in flat(desk.text())
        await desk.press("ctrl+s")
        assert not bench.shown()["waiting"]

    at_console(bench, play)


def test_a_guess_that_nobody_gave_leaves_the_keys_to_the_next_episode(tmp_path) -> None:
    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter", "ctrl+s")
        assert desk.asked() and "Trial 1 of 2: which of the candidates was this" in flat(desk.text())
        assert desk.bench.command("stage", console="of-bob", role="setter")["ok"]
        await desk.draw()
        assert not desk.asked() and "the next trial is under way; no guess is recorded" in flat(desk.text())
        assert not desk.app.may_act("undo")
        await desk.press("ctrl+s")
        assert not desk.bench.events(Kind.ARM_GUESSED)

    with evening(tmp_path, **GUESS) as bench:
        at_console(bench, play)


def test_a_hold_that_was_asked_for_is_named_and_in_a_running_episode_let_go_without_a_form(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("h", "H")
        assert len(bench.shown()["waiting"]) == 2
        await desk.press("a")
        assert not desk.asked() and "press a again within 2 s to go on without it: a hold after this block" in flat(
            desk.text()
        )
        await desk.press("a")
        assert "let go of" in desk.text() and len(bench.shown()["waiting"]) == 1
        await desk.press("plus", "e", "e")
        assert bench.shown()["counted"] == 1
        await desk.sealed(episode)
        await desk.press("a")
        assert "a hold after this trial was asked for" in flat(desk.text())
        await desk.press("ctrl+s")
        assert not bench.shown()["waiting"]

    at_console(bench, play, size=WIDE)


def test_who_confirmed_while_the_form_of_a_void_is_open_is_heard_in_it(bench: Bench) -> None:
    bench.begin_session(bob=["setter"])
    lab = bench.campaign.folder.parent
    (lab / "lab.toml").write_text("")
    set_code(lab, "bob", "blue-9513", bench.clock)
    reason = bench.campaign.opened["void_reasons"][1]

    async def play(desk: Desk) -> None:
        episode = await ended(desk)
        await desk.press("v", "2", "tab")
        await desk.type("bob")
        await desk.press("ctrl+s")
        assert "confirms at another console (y)" in flat(desk.text())
        given = {"episode": episode, "reason": reason}
        assert bench.command("confirm", who="bob", role="setter", console="of-bob", **given)["ok"]
        await desk.draw()
        await desk.press("ctrl+s")
        assert bench.events(Kind.EPISODE_VOIDED)[-1].body["confirmed_at"] == "another console"

    at_console(bench, play)


# -- an undo


def test_a_second_undo_begins_with_what_the_first_one_said(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter")
        await put(desk, moved="2")
        await desk.press("ctrl+s", "u")
        await put(desk, moved="1")
        await desk.press("ctrl+s")
        assert "corrected" in desk.text()
        await desk.press("u")
        assert desk.app.screen.query_one("#moved", Line).value == "1"

    at_console(bench, play)


def test_an_undo_that_was_put_aside_can_be_opened_again(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter", "ctrl+s", "u")
        await put(desk, notes="the gripper slipped")
        assert bench.command("stage", console="of-bob", role="setter")["ok"]
        await desk.draw()
        assert not desk.asked() and "what you wrote is kept for later" in flat(desk.text())
        await desk.wait(11)
        await desk.home()
        await desk.press("u")
        assert desk.app.screen.query_one("#notes", Line).value == "the gripper slipped"
        await desk.press("ctrl+s")
        assert bench.events(Kind.OUTCOME_CORRECTED)[-1].body["new"]["notes"] == "the gripper slipped"
        assert not desk.app.may_act("undo")

    at_console(bench, play)


# -- orders


def test_what_was_written_in_a_form_outlives_a_refusal_of_its_order(bench: Bench) -> None:
    bench.begin_session(bob=["setter"])

    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter")
        await put(desk, moved="1", notes="a long sentence")
        given = [{"id": "ann", "roles": ["setter"]}, {"id": "bob", "roles": ["operator", "assessor"]}]
        assert bench.command("people", console="of-bob", people=given)["ok"]
        await desk.press("ctrl+s")
        assert not desk.asked() and "what you wrote is kept for later" in flat(desk.text())
        back = [{"id": "ann", "roles": ["operator", "setter", "assessor"]}]
        assert bench.command("people", console="of-bob", who="bob", people=back)["ok"]
        await desk.draw()
        await desk.press("enter")
        found = {name: desk.app.screen.query_one(f"#{name}", Line).value for name in ("moved", "notes")}
        assert found == {"moved": "1", "notes": "a long sentence"}
        await desk.press("ctrl+s")
        assert bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]["notes"] == "a long sentence"

    at_console(bench, play)


def test_of_a_wrong_code_only_the_code_is_asked_anew(bench: Bench) -> None:
    bench.begin_session(bob=["setter"])
    lab = bench.campaign.folder.parent
    (lab / "lab.toml").write_text("")
    set_code(lab, "bob", "blue-9513", bench.clock)

    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("v", "2", "tab")
        await desk.type("bob")
        await desk.press("tab")
        await desk.type("blue-9514")
        await desk.press("ctrl+s")
        assert "that is not the personal code of bob; what you wrote is kept for later" in flat(desk.text())
        await desk.press("v", "tab", "tab")
        await desk.type("blue-9513")
        await desk.press("ctrl+s")
        voided = bench.events(Kind.EPISODE_VOIDED)[-1].body
        assert voided["reason"] == bench.campaign.opened["void_reasons"][1] and voided["confirmed_by"] == "bob"

    at_console(bench, play)


def test_an_order_that_is_not_answered_is_said_and_its_words_are_kept(bench: Bench) -> None:
    async def play(desk: Desk) -> None:
        await ended(desk)
        await desk.press("enter")
        await put(desk, notes="a long sentence")
        desk.link.delivers = False
        await desk.press("ctrl+s")
        await desk.wait(2)
        assert "no answer yet" not in desk.text()
        await desk.wait(2)
        assert "no answer yet to score: look whether it was done before you repeat it" in flat(desk.text())
        desk.link.delivers = True
        await desk.press("enter")
        assert desk.app.screen.query_one("#notes", Line).value == "a long sentence"
        await desk.press("ctrl+s")
        assert bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]["notes"] == "a long sentence"
        assert not desk.app._drafts

    at_console(bench, play)


@pytest.mark.parametrize("after", ["stage", "commit", "start"])
def test_a_stop_takes_back_what_enter_ordered_just_before(bench: Bench, after: str) -> None:
    async def play(desk: Desk) -> None:
        if after == "start":
            await desk.armed()
        else:
            await desk.press("enter", "enter")
        if after == "commit":
            await desk.press("enter")
            await desk.home()
        before = [sent["verb"] for sent in desk.link.commands]
        desk.let(SECOND)
        desk.app.post_message(Key("enter", None))
        await desk.settle()
        desk.let(5 * MILLISECOND)
        assert desk.app.is_stop("space")
        desk.app.stop_now()  # as the driver does, in the thread that reads keys
        desk.let(50 * MILLISECOND)
        await desk.draw()
        assert [sent["verb"] for sent in desk.link.commands] == [*before, "stop"]
        said = "the robot was told to stop; what ENTER ordered just before is taken back"
        assert said in flat(desk.text())

    at_console(bench, play)
