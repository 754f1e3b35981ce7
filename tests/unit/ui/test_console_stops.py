"""Claims about what the console asks once somebody stopped the robot, and of whom it takes a void."""

from __future__ import annotations

from support.screens.console_bench import Desk, at_console, both_sizes, flat

from labctl.core.events import LOOK_SAID_STOP, Kind
from labctl.people.personal_codes import set_code


def test_the_stop_key_reaches_the_arm_directly_and_the_journal_says_who(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("space")
        assert bench.events(Kind.EPISODE_ENDED)[-1].body["reason"] == "safety_stop"
        await desk.sealed(episode)
        assert "ann stopped the robot" in desk.text()
        await desk.press("enter")
        await desk.press("ctrl+s")
        assert "choose" in desk.text()
        await desk.press("1", "ctrl+s")
        assert "why is empty" in desk.text()
        await desk.type("it went for the lamp")
        await desk.press("ctrl+s")
        cleared = bench.events(Kind.HOLD_CLEARED)[-1]
        assert (cleared.body["cause"], cleared.body["why"]) == ("danger", "it went for the lamp")

    assert at_console(bench, play).stops >= 1


def test_a_look_that_says_stop_is_acknowledged_as_what_it_is_and_no_robot_is_said_to_have_stopped(bench):
    """Its code has "stop" in it: people were asked whether the robot had touched anybody."""

    async def play(desk: Desk) -> None:
        body = {"code": LOOK_SAID_STOP, "text": "look 1 of 2, by the first 4 blocks, says stop"}
        bench.node._writer.log(Kind.HOLD_RAISED, body, who="eve")
        await desk.press("enter", "enter")
        await desk.wait(0.2)
        await desk.press("a")
        assert "look 1 of 2" in desk.text() and "is the cause gone?" in flat(desk.text())
        assert "The robot was stopped" not in desk.text() and "contact" not in desk.text()
        await desk.press("enter")
        assert bench.events(Kind.HOLD_CLEARED)[-1].body == {"code": LOOK_SAID_STOP, "acknowledged_by": "ann"}

    at_console(bench, play)


@both_sizes
def test_all_that_a_stop_by_hand_is_asked_stands_on_one_screen_and_no_answer_is_given_beforehand(bench, size):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("space")
        await desk.sealed(episode)
        await desk.press("enter")
        for words in ("ann stopped the robot", "what was the cause?", "why was it stopped?", "Acknowledge  (ctrl+s)"):
            assert words in desk.text()
        for words in ("danger", "contact", "mistaken key"):
            assert any("( )" in line and words in line for line in desk.text().splitlines()), "not chosen"

    at_console(bench, play, size=size)


def test_a_void_after_go_needs_a_second_person_when_no_machine_stands_behind_it(bench):
    bench.begin_session(bob=["setter"])

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("v")
        assert "a second person confirms" in desk.text()
        await desk.press("2", "ctrl+s")
        assert "the second person's id is empty" in desk.text()
        await desk.type("bob")
        await desk.press("ctrl+s")
        voided = bench.events(Kind.EPISODE_VOIDED)[-1].body
        assert voided["confirmed_by"] == "bob" and voided["after_go"]
        assert "NEXT" in desk.text()

    at_console(bench, play)


def test_a_second_person_with_a_code_types_it_unseen_or_confirms_at_another_console(bench):
    bench.begin_session(bob=["setter"])
    lab = bench.campaign.folder.parent
    (lab / "lab.toml").write_text("")
    set_code(lab, "bob", "blue-9513", bench.clock)

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("v", "2")
        assert "personal code, typed by that person (bob)" in desk.text()
        await desk.press("tab")
        await desk.type("bob")
        await desk.press("ctrl+s")
        assert "bob types the personal code here, or confirms at another console (y)" in desk.text()
        await desk.type("blue-9513")
        assert "blue-9513" not in desk.text() and "•" in desk.text()
        await desk.press("ctrl+s")
        assert bench.events(Kind.EPISODE_VOIDED)[-1].body["confirmed_at"].startswith("personal code")

    at_console(bench, play)


def test_y_confirms_a_void_for_another_console_and_says_when_there_is_nothing_to_confirm(bench):
    bench.begin_session(bob=["operator"])

    async def play(desk: Desk) -> None:
        await desk.press("y")
        assert "nothing to confirm" in desk.text()
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("y", "1", "ctrl+s")
        assert "confirmed; now the other console voids it and names you" in desk.text()
        reason = bench.campaign.opened["void_reasons"][0]
        assert bench.command("void", who="bob", reason=reason, confirmed_by="ann", console="of-bob")["ok"]
        assert bench.events(Kind.EPISODE_VOIDED)[-1].body["confirmed_at"] == "another console"

    at_console(bench, play)


def test_a_stop_after_the_last_trial_is_acknowledged_before_the_session_is_closed(bench):
    """ENTER closed the session over it: nobody said why, and the campaign kept that hold for ever."""

    async def play(desk: Desk) -> None:
        for _ in range(2):
            episode = await desk.running()
            await desk.press("e", "e")
            await desk.sealed(episode)
            await desk.press("enter", "ctrl+s")
        assert "ALL DONE" in desk.text() and "Close the session  (enter)" in desk.text()
        await desk.press("space")
        assert "Acknowledge: ann stopped the robot  (enter)" in desk.text()
        await desk.press("enter", "3", "tab")
        await desk.type("tried")
        await desk.press("ctrl+s")
        assert bench.events(Kind.HOLD_CLEARED)[-1].body["cause"] == "mistaken_key"
        assert "acknowledged" in desk.text() and "Close the session  (enter)" in desk.text()

    at_console(bench, play)


def test_what_is_wrong_stands_above_what_is_merely_so(bench):
    """After a killed run twelve lines of what was found stood above it on 24 rows, and the hold below the fold."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "space")
        lines = desk.text().splitlines()
        wrong = next(n for n, line in enumerate(lines) if "ann stopped the robot; look at the cell" in line)
        told = next(n for n, line in enumerate(lines) if "block 1 of" in line and "left in it" in line)
        assert wrong < told

    at_console(bench, play)
