"""Claims about answers: what a person said stays on the screen, and a key that does nothing says why."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from support.runs.campaigns import make_campaign
from support.screens.console_bench import NARROW, WIDE, Desk, at_console, both_sizes, evening, flat
from textual.widgets import Static

from labctl.bus import Message
from labctl.cli.review import review as command
from labctl.clock import SECOND
from labctl.core.events import EndReason, Kind
from labctl.errors import StateError
from labctl.ui.console import refusals, words
from labctl.ui.console.words import words_of
from labctl.ui.review import review

ASKS = {"arming_s": "ask_guess = true\narming_s"}


@both_sizes
def test_the_reason_of_a_void_before_go_stays_on_the_screen_until_the_trial_is_armed_again(bench, size):
    async def play(desk: Desk) -> None:
        await desk.armed()
        await desk.press("v")
        reasons = bench.shown()["rules"]["void_reasons"]
        await desk.press("2", "ctrl+s")
        said = f"voided before go: {words_of(reasons[1])}; run again with the same arm"
        assert "NEXT" in desk.text() and said in flat(desk.text())
        await desk.wait(20.0)
        assert said in flat(desk.text()), "it is not a passing line"
        await desk.press("enter")
        assert "STAGING" in desk.text() and said in flat(desk.text())
        await desk.home()
        await desk.press("enter")
        await desk.ready()
        assert "ARMED" in desk.text() and said not in flat(desk.text())

    at_console(bench, play, size=size)


def test_a_lost_robot_is_called_a_robot_where_a_form_is_closed_for_it():
    """The journal's word for it is that of a treatment."""
    state = {"trial": "t1", "trial_state": "planned", "voided": {"reason": "arm_lost", "after_go": False}}
    assert refusals.gone_on(state, ("t1", "e1", "armed")) == "the episode was voided meanwhile (robot lost)"


@both_sizes
def test_the_reason_of_a_machines_void_is_on_the_screen_and_closes_the_form_of_a_void_by_hand(bench, size):
    async def play(desk: Desk) -> None:
        episode = await desk.armed()
        await desk.press("v")
        assert desk.asked()
        failed = {"name": "controller", "episode": episode, "private": "no answer"}
        desk.hear(Message("run", "failed", failed, sender="controller"))
        await desk.wait(1.0)
        reason = bench.events(Kind.EPISODE_VOIDED)[-1].body["reason"]
        assert not desk.asked(), "there is nothing left to void"
        assert f"the form was closed: the episode was voided meanwhile ({words_of(reason)})" in flat(desk.text())
        await desk.press("question_mark", "escape", "n", "escape")
        assert f"voided before go: {words_of(reason)}; run again with the same arm" in flat(desk.text())

    at_console(bench, play, size=size)


def test_a_setter_reads_where_the_items_come_from_and_where_they_go(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        target = bench.shown()["card"]["tote_side"]
        (source,) = {"left", "right"} - {target}
        assert f"2 items of towels, from the {source} tote to the {target} one; camera" in flat(desk.text())

    at_console(bench, play)


def test_when_the_wait_is_over_the_screen_says_that_it_waits_for_enter_and_what_may_come_of_it(bench):
    async def play(desk: Desk) -> None:
        await desk.armed()
        text = flat(desk.text())
        assert "starts in" in text and "a policy that is not ready by then makes the episode void" in text
        await desk.wait(30.0)
        text = flat(desk.text())
        assert "starts in" not in text and "it starts with your ENTER" in text

    at_console(bench, play)


@both_sizes
def test_enter_before_all_is_ready_is_taken_back_with_what_is_missing_and_given_again(bench, size):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        await desk.home()
        await desk.press("enter")
        episode = bench.shown()["episode"]
        desk.hear(Message("run", "hello", sender="controller"))
        desk.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
        await desk.press("enter")
        assert "you are ready" in flat(desk.text())
        await desk.wait(6.0)
        text = flat(desk.text())
        assert "ARMED" in text and "not started, and nothing is lost" in text
        assert "not ready: the recorder has not opened this episode yet" in text
        assert "Start again" in text and "start when the time comes" not in text
        desk.hear(Message("run", "opened", {"episode": episode}, sender="recorder"))
        await desk.wait(1.0)
        assert "ARMED" in desk.text() and not bench.events(Kind.EPISODE_STARTED)
        await desk.press("enter")
        await desk.go(episode)
        assert "RUNNING" in desk.text() and not bench.events(Kind.EPISODE_VOIDED)

    at_console(bench, play, size=size)


def test_why_a_key_did_nothing_in_one_trial_is_not_said_in_the_next(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        first = bench.shown()["trial"]
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("r")
        why = str(desk.app.now.query_one("#said", Static).content)
        assert why and why in flat(desk.text())
        scored = bench.command("score", role="assessor", items_staged=2, moved=0, lost=0, remaining=2)
        assert scored["ok"], scored
        await desk.draw()
        assert bench.shown()["trial"] != first and why not in flat(desk.text())

    at_console(bench, play)


def test_the_form_of_a_void_is_closed_when_its_episode_begins(bench):
    async def play(desk: Desk) -> None:
        await desk.armed()
        await desk.press("enter", "v")
        assert desk.asked()
        await desk.wait(4.0)
        assert "RUNNING" in desk.text() and not desk.asked()
        assert "the form was closed: the episode has begun; a void comes after the motion" in flat(desk.text())

    at_console(bench, play)


def test_the_answer_to_an_earlier_order_does_not_wipe_what_a_later_key_was_told(bench):
    async def play(desk: Desk) -> None:
        await desk.armed()
        desk.app.send("note", args={"text": "seen"}, any_state=True)  # its answer comes with the next drawing
        desk.app.tell("void it once it is armed", wrong=True)
        await desk.draw()
        assert "void it once it is armed" in desk.text()

    at_console(bench, play)


def test_a_commit_speaks_of_a_picture_only_where_there_is_one(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter")
        await desk.press("enter")
        await desk.press("enter")
        await desk.home()
        pictured = [one["reference"] for one in bench.shown()["scene"]["cameras"].values()]
        assert not any(pictured), "the first trial of a block has nothing to be held against"
        assert "Commit: the scene is as the card says" in desk.text()
        assert "as in the picture  (enter)" not in desk.text()

    at_console(bench, play)


@pytest.mark.parametrize("answer", ["ctrl+s", "escape"])
def test_the_ten_seconds_of_an_undo_begin_once_the_guess_is_answered_or_left(tmp_path, answer):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s")
        assert "once this form is closed, u undoes it for ten seconds" in desk.text()
        await desk.wait(30.0)
        await desk.press("u")
        assert "u does nothing in a form; ESC leaves it" in desk.text()
        await desk.press(answer)
        await desk.wait(9.0)
        assert "u undo" in desk.text()
        await desk.press("u")
        await desk.press("1", "ctrl+s")
        assert desk.bench.events(Kind.OUTCOME_CORRECTED)[-1].body["new"]["moved"] == 1
        assert len(desk.bench.events(Kind.ARM_GUESSED)) == (answer == "ctrl+s")

    with evening(tmp_path, protocol=ASKS) as bench:
        at_console(bench, play, size=WIDE)


def test_a_void_of_a_running_episode_is_answered_with_what_comes_first(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press("v")
        assert "a void comes after the motion: press E twice to end it" in flat(desk.text())
        assert not desk.asked()

    at_console(bench, play, size=NARROW)


def test_opening_an_episode_where_there_is_no_display_is_answered_with_what_to_do(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path).folder
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.headless_driver:HeadlessDriver")  # draws without one
    made: list[str] = []

    class Opening:
        def __init__(self, load, save, correct, watch, *more) -> None:
            self.watch = watch

        def run(self) -> None:
            with pytest.raises(StateError, match="there is no display here; look at it in a browser with --web"):
                self.watch("e-1")
            made.append("asked")

    monkeypatch.setattr(review, "Review", Opening)
    asked = [str(folder), "--who", "ann"]
    assert CliRunner().invoke(command, [*asked, "--register"], catch_exceptions=False).exit_code == 0
    assert CliRunner().invoke(command, asked, catch_exceptions=False).exit_code == 0
    assert made


@pytest.mark.parametrize("keys", [("e", "e"), ()], ids=["ended", "timed out"])
def test_whoever_scores_reads_why_the_episode_ended(bench, keys):
    """A policy server died in mid-episode, and the screen asked for a score without a word of it."""

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press(*keys)
        await desk.wait(50.0)
        await desk.sealed(episode)
        said = "it ended: the operator ended it" if keys else "it ended: its time was over"
        assert "SCORING" in desk.text() and said in flat(desk.text())

    at_console(bench, play)


def test_every_way_in_which_an_episode_may_end_has_words():
    assert set(words.ENDED) == set(EndReason) and all(words.ENDED.values())


def test_a_session_closed_before_the_score_says_that_an_episode_waits_for_it(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("x", "ctrl+s")
        text = desk.text()
        assert "CLOSED" in text and "an episode waits for its score" in flat(text)
        assert "item moved" not in text, "nobody of a session is there to count"

    at_console(bench, play)


def test_the_form_of_a_session_asks_for_checks_only_where_there_are_some(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter")
        assert "Open the session: who is here?" in desk.text() and "as it should be" not in desk.text()

    at_console(bench, play)


def test_while_the_run_says_nothing_only_what_needs_no_word_of_it_is_offered_and_the_rest_says_why(bench):
    """Keys were offered on a screen that was said to be old; M did something seconds later."""

    async def play(desk: Desk) -> None:
        await desk.running()
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        row = desk.text().splitlines()[-1]
        assert "STOP" in row and "cell" in row and not {"item moved", "end", "a hand"} & set(row.split("  ")), row
        sent = len(desk.link.commands)
        for key in ("m", "i", "e", "h", "n"):
            await desk.press(key)
            assert "no word from the run process" in flat(desk.text().splitlines()[-2]), key
        assert len(desk.link.commands) == sent
        await desk.press("space")
        assert desk.link.stops == 1

    at_console(bench, play)


def test_a_run_that_ended_after_its_last_trial_is_not_called_gone(bench):
    async def play(desk: Desk) -> None:
        for _ in range(2):
            episode = await desk.running()
            await desk.press("e", "e")
            await desk.sealed(episode)
            await desk.press("enter", "ctrl+s")
        await desk.press("enter", "ctrl+s")
        desk.link.there = False
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        text = flat(desk.text())
        assert "ALL DONE" in text and "GONE" not in text and "start it again" not in text
        name = desk.bench.campaign.folder.name
        assert f"labctl close {name}, then labctl review {name}" in text

    at_console(bench, play)


def test_the_button_of_an_acknowledgement_says_what_happened_in_whole_words(bench):
    async def play(desk: Desk) -> None:
        await desk.armed()
        await desk.press("space")
        await desk.wait(0.5)
        assert "Acknowledge: ann stopped the robot  (enter)" in desk.text()

    at_console(bench, play)


def test_a_run_that_somebody_ended_in_order_is_not_called_gone_and_says_how_to_go_on(bench):
    async def play(desk: Desk) -> None:
        desk.link.there, desk.link.in_order = False, True
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        text = flat(desk.text())
        assert "RUN HAS ENDED" in text and "RUN ENDED" in text and "GONE" not in text
        assert "ended in order" in text and f"labctl run {desk.bench.campaign.folder.name}" in text

    at_console(bench, play)


def test_once_every_trial_is_finished_enter_does_not_speak_of_a_run_that_is_missed(bench):
    async def play(desk: Desk) -> None:
        for _ in range(2):
            episode = await desk.running()
            await desk.press("e", "e")
            await desk.sealed(episode)
            await desk.press("enter", "ctrl+s")
        await desk.press("enter", "ctrl+s")
        desk.link.there, desk.link.in_order = False, True
        await desk.draw()
        await desk.press("enter")
        text = flat(desk.text())
        assert "ALL DONE" in text and "no word" not in text
        assert flat(refusals.OVER) in text

    at_console(bench, play)


def test_a_screen_of_a_frozen_run_says_how_it_is_ended(bench):
    """It said "end it", and only `ps` knew what to end."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
        await desk.draw()
        name = desk.bench.campaign.folder.name
        assert f"labctl stop {name} says how to end it, then labctl run {name}" in flat(desk.text())

    at_console(bench, play)


def test_what_enter_waits_for_is_said_whole_on_80_columns_and_no_longer_than_it_is_so(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        assert "Commit: not yet; the robot is on its way to where episodes begin" in desk.text()
        await desk.press("enter")
        assert "not yet: the robot is on its way to where episodes begin" in desk.text()
        await desk.home()
        assert "not yet" not in desk.text(), "the button offers it by now"

    at_console(bench, play, size=NARROW)


def test_the_form_of_an_undo_says_that_it_is_of_the_episode_before(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s", "u")
        assert "Undo: score the episode before this trial anew" in desk.text()
        assert "Score this episode" not in desk.text()

    at_console(bench, play)
