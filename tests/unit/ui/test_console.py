"""Whole trials by key presses: what a person sees, what is sent, and what a wrong key cannot do."""

from __future__ import annotations

import asyncio

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, WIDE, Desk, at_console, both_sizes, flat

from labctl.bus import Message
from labctl.core.events import Kind
from labctl.store.campaign import Campaign
from labctl.ui.console import acts, refusals
from labctl.ui.console.campaigns import Campaigns, Entry

SECRETS = ("zebra", "sim://", "swift")


@both_sizes
def test_a_clean_trial_from_the_first_screen_to_the_score(bench, size):
    async def play(desk: Desk) -> None:
        seen = [desk.text()]
        assert "no session is open" in seen[-1] and "Open the session" in seen[-1]
        episode = await desk.running()
        seen.append(desk.text())
        assert "RUNNING" in seen[-1] and "0:40" in seen[-1] and "STOP" in seen[-1]
        await desk.press("m", "m", "minus", "plus")
        assert "you counted 2 of 2" in desk.text()
        await desk.press("e")
        assert "press e again within 2 s" in desk.text() and not bench.events(Kind.EPISODE_ENDED)
        await desk.press("e")
        assert "sealing" in desk.text()
        await desk.sealed(episode)
        seen.append(desk.text())
        assert "Score this episode" in seen[-1] and "the two differ" in seen[-1]
        await desk.press("enter")
        seen.append(desk.text())
        assert "the detector proposes: moved 0" in seen[-1] and "so 0 remain" in seen[-1]
        await desk.press("ctrl+s")
        assert bench.events(Kind.OUTCOME_RECORDED)[-1].body["outcome"]["moved"] == 2
        assert "u undoes it" in desk.text() and "1/2 trials" in desk.text()
        for secret in SECRETS:
            assert not any(secret in text for text in seen)

    at_console(bench, play, size=size)


def test_a_score_is_undone_within_ten_seconds_and_not_later(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s")
        await desk.press("u")
        await desk.press("backspace", "1", "ctrl+s")
        change = bench.events(Kind.OUTCOME_CORRECTED)[-1].body
        assert (change["old"]["moved"], change["new"]["moved"], change["why"]) == (0, 1, "undo")
        await desk.wait(11.0)
        await desk.press("u")
        assert len(bench.events(Kind.OUTCOME_CORRECTED)) == 1

    at_console(bench, play)


def test_a_space_typed_into_a_note_stops_nothing(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await desk.press("n")
        await desk.draw()
        assert "SPACE types a blank here, F12 stops" in desk.text()
        await desk.type("lamp flickers")
        await desk.press("ctrl+s")
        assert bench.events(Kind.NOTE)[-1].body["text"] == "lamp flickers"

    assert at_console(bench, play).stops == 0


def test_a_trial_times_out_by_itself(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.wait(41.0)
        assert bench.events(Kind.EPISODE_ENDED)[-1].body["reason"] == "budget"

    at_console(bench, play)


def test_a_robot_that_stopped_itself_is_said_and_acknowledged_with_a_why(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        event = {"kind": "safety_stop", "t_ns": bench.now_ns, "body": {"reason": "protective stop"}, "episode": episode}
        desk.hear(Message("run", "event", event, sender="arm"))
        await desk.wait(0.2)
        assert "protective stop" in desk.text()
        await desk.sealed(episode)
        await desk.press("a")
        await desk.type("the box edge")
        await desk.press("ctrl+s")
        assert bench.events(Kind.HOLD_CLEARED)[-1].body["why"] == "the box edge"

    at_console(bench, play)


def test_what_is_held_is_said_with_what_clears_it_and_the_button_does_nothing(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await desk.wait(3.0, beating=("recorder",))
        assert "the robot is not there: no heartbeat" in desk.text()
        assert "the robot's process answers again" in desk.text()
        await desk.press("enter")
        assert not bench.events(Kind.TRIAL_STAGING)

    at_console(bench, play)


def test_a_hold_after_this_trial_shows_and_can_be_let_go(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        await desk.press("h", "ctrl+s")
        assert "holds after this trial" in desk.text()
        await desk.press("a", "a")  # the robot is on its way: no form
        assert "holds after this trial" not in desk.text()

    at_console(bench, play)


def test_two_consoles_and_the_slower_one_is_told_to_look_again(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        stale = desk.app._state["version"]
        assert bench.command("stage", role="setter", version=stale)["ok"]  # the other console was quicker
        desk.app.send("stage", "setter")
        await desk.draw()
        assert "look again" in desk.text()

    at_console(bench, play)


def test_a_read_only_console_offers_nothing_and_sends_nothing(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "space", "n", "m", "h")
        assert "Open the session" not in desk.text()

    link = at_console(bench, play, read_only=True)
    assert not link.commands and not link.stops


def test_a_read_only_console_offers_no_acknowledgement_of_a_stop(bench):
    """It opened the form, and refused only what was typed into it."""

    async def play(desk: Desk) -> None:
        assert bench.command("stop")["ok"]
        await desk.wait(0.2)
        await desk.press("a")
        assert not desk.asked() and flat(refusals.READ_ONLY) in flat(desk.text())

    at_console(bench, play, read_only=True)


def test_when_the_run_process_is_silent_the_screen_says_so_and_offers_nothing(bench):
    async def play(desk: Desk) -> None:
        bench.clock.sleep_until(bench.now_ns + 5_000_000_000)
        await desk.draw()
        assert "NO WORD FROM THE RUN PROCESS" in desk.text()
        await desk.press("enter")
        assert "Open the session: who" not in desk.text()

    at_console(bench, play, size=WIDE)


def test_a_person_without_the_role_sees_whose_turn_it_is(bench):
    async def play(desk: Desk) -> None:
        people = [{"id": "ann", "roles": ["assessor"]}, {"id": "bob", "roles": ["operator", "setter"]}]
        assert bench.command("session", people=people, checks={})["ok"]
        await desk.wait(0.2)
        assert "not yet; this is for the operator or setter; you are assessor" in " ".join(desk.text().split())

    at_console(bench, play, size=WIDE)


def test_keys_can_be_rebound(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press("g")
        assert "you counted 1 of 2" in desk.text()

    at_console(bench, play, keys={"moved": "g"})


def test_the_history_has_no_outcomes(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("m", "e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s", "t")
        assert "scored" in desk.text() and "no outcomes" in desk.text()
        await desk.press("escape", "c")
        assert "recorder" in desk.text() and "answers" in desk.text()
        await desk.press("escape", "question_mark")
        assert "STOP" in desk.text()

    at_console(bench, play)


def test_the_campaigns_of_a_lab_say_what_comes_next(tmp_path):
    entries = [
        Entry("first", "open", 3, 48, False, "OutcomeRecorded 2026-01-01 23:10"),
        Entry("second", "closed", 48, 48, False, "CampaignClosed 2026-01-02 01:00"),
        Entry("third", "open", 1, 48, True, "Go 2026-01-02 22:00"),
    ]

    async def session() -> tuple[str, str] | None:
        app = Campaigns(entries, lambda name, say: tmp_path)
        async with app.run_test(size=NARROW) as pilot:
            await pilot.press("down", "enter")
            await pilot.pause()
            assert "review and freeze" in str(app.query_one("#said").render())
            await pilot.press("down", "enter")
        return app.return_value

    assert asyncio.run(session()) == ("third", "attach")
    assert [entry.next for entry in entries] == ["resume", "", "attach"]


def test_the_guess_is_asked_when_the_protocol_asks(tmp_path):
    folder = make_campaign(
        tmp_path,
        [HUMAN, policy("zebra", endpoint="sim://zebra")],
        items=2,
        budget=20.0,
        protocol={"arming_s": "ask_guess = true\narming_s"},
    ).folder

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter", "ctrl+s")
        assert "which of the candidates" in desk.text() and "cannot tell" in desk.text()
        await desk.press("ctrl+s")

    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        at_console(bench, play)
        assert bench.events(Kind.ARM_GUESSED)[-1].body == {"guess": None}


def test_while_a_text_is_typed_only_a_key_that_types_nothing_stops(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "n")
        await desk.draw()
        assert not desk.app.is_stop("space") and desk.app.is_stop("f12")
        desk.app.stop_now()  # as the terminal driver does
        await desk.draw()
        assert bench.events(Kind.HOLD_RAISED)[-1].body["code"] == "operator_stop"
        await desk.press("escape")
        await desk.draw()
        assert desk.app.is_stop("space")

    assert at_console(bench, play).stops == 1


def test_the_staged_scene_is_compared_in_words_and_a_difference_may_be_overridden():
    seen = {"reference": "r.png", "counts": True, "pose": None, "problem": None, "needed": None}
    body = {"score": 61.4, "shift_px": [0.0, 0.0], "rotation_deg": 0.0, "moved_px": 0.1, "note": "", "changed": 0.02}
    scene = {
        "rules": {"max_camera_shift_px": 4.0},
        "photographing": False,
        "cameras": {"wrist": {**seen, "scene": body}},
    }
    hold = {"code": "scene_differs:wrist", "text": "x", "clears": "y", "needs_person": False, "overridable": True}
    people = [{"id": "ann", "roles": ["setter"]}]
    state = {"trial_state": "staging", "scene": scene, "holds": [hold], "people": people}
    assert acts._matches(state) == ["wrist: match 61 of 100, scene differs"]
    assert acts.may_override(state, "ann") == "setter" and acts.may_override(state, "bob") is None
    other = {**hold, "code": "arm_stale", "overridable": False}
    assert acts.may_override({**state, "holds": [hold, other]}, "ann") is None


def test_a_hand_in_the_scene_is_begun_and_ended_by_one_key_and_said_with_the_score(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("i")
        assert "a hand is in it" in desk.text()
        await desk.press("i")
        assert "a hand is in it:" not in desk.text() and not desk.asked(), "there is no time for words"
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter")
        assert "a hand was in it (touch 1): what did it do?" in desk.text()
        await desk.press("tab", "tab", "2", "tab")
        await desk.type("the towel fell")
        await desk.press("ctrl+s")
        (touch,) = bench.campaign.record().episodes[episode].interventions
        assert (touch.kind, touch.note) == ("reset", "the towel fell")
        assert "1/2 trials" in desk.text()

    at_console(bench, play)


@pytest.mark.parametrize(("rule", "offered"), [("allowed", True), ("forbidden", False)])
def test_the_end_keys_are_there_only_where_the_protocol_lets_an_episode_end_early(rule, offered):
    people = [{"id": "ann", "roles": ["operator"]}]
    rules = {"early_end": rule, "steps": []}
    state = {"trial_state": "running", "rules": rules, "people": people, "by_role": {"operator": ["end"]}}
    for key in ("end", "futility"):
        assert refusals.offers(key, state, "ann", read_only=False, may_undo=False) is offered


def test_before_the_first_word_is_due_the_console_says_calmly_what_is_awaited(tmp_path):
    """Ten red seconds of "the robot was never heard" at every start taught people to look past red."""
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], cameras=True).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)

        async def play(desk: Desk) -> None:
            await desk.wait(5.0, beating=("nobody",))
            text = " ".join(desk.text().split())
            assert "getting ready: the robot is being started; the recorder is being started; camera" in text
            assert "✖" not in text and "never heard" not in text
            await desk.press("c")
            assert "is being started" in desk.text() and "never heard" not in desk.text()
            await desk.press("escape")
            await desk.wait(16.0, beating=("nobody",))
            assert "✖ the robot was never heard" in desk.text(), "by now its word is overdue"

        at_console(bench, play, size=WIDE, everyone=False)


@both_sizes
def test_a_console_whose_run_was_killed_says_so_at_once_and_its_clock_stands(bench, size):
    async def play(desk: Desk) -> None:
        await desk.running()
        assert "RUNNING" in desk.text()
        desk.link.there = False
        bench.clock.sleep_until(bench.now_ns + 300_000_000)
        await desk.draw()
        text = desk.text()
        assert (
            "RUN GONE" in text and "it last said: running" in text and "labctl run trial-run" in " ".join(text.split())
        )
        assert "RUNNING" not in text and "left of 0:40" not in text
        bench.clock.sleep_until(bench.now_ns + 7_000_000_000)
        await desk.draw()
        assert desk.text() == text, "nothing goes on"

    at_console(bench, play, size=size)
