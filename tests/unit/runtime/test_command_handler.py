"""What a person may order at a console beside the verbs of a trial: stop, count, hold, note, guess, correct."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.messages.driving import HandLost, TouchByDevice
from labctl.messages.processes import EndRun
from labctl.store.campaign import Campaign


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def ended(bench: Bench, episode: str) -> None:
    """The recording is delivered and sealed."""
    bench.seal(episode)
    assert bench.state() == "scoring"


def ended_as_void(bench: Bench, episode: str) -> None:
    """The recording is sealed, and the protocol voids what a lost process ended."""
    bench.seal(episode)
    assert bench.state() == "planned"


def scored(bench: Bench) -> str:
    episode = bench.running()
    assert bench.command("end")["ok"]
    ended(bench, episode)
    reply = bench.command("score", items_staged=2, moved=1, lost=0, remaining=1)
    assert reply["ok"], reply
    return bench.events(Kind.OUTCOME_RECORDED)[-1].trial


def shown(bench: Bench) -> dict:
    bench.wait(2 * SECOND)
    return next(m.body for m in bench.sent[::-1] if m.kind == "state")


def stopped_by_hand(bench: Bench) -> None:
    """An episode that a person stopped, not acknowledged yet."""
    episode = bench.running()
    assert bench.command("stop")["ok"]
    ended(bench, episode)


def test_a_stop_by_hand_ends_the_episode_as_a_safety_stop_and_asks_why(bench):
    episode = bench.running()
    assert bench.command("stop")["ok"]
    assert any(m.to == "arm" and m.kind == "stop" for m in bench.sent)
    assert bench.events(Kind.OPERATION_RECORDED)[-1].body["result"] == "safety_stop"
    assert bench.events(Kind.EPISODE_ENDED)[-1].body["reason"] == "safety_stop"
    ended(bench, episode)
    assert bench.command("acknowledge", code="operator_stop", cause="danger", why="it went for the camera")["ok"]
    cleared = bench.events(Kind.HOLD_CLEARED)[-1].body
    assert (cleared["cause"], cleared["why"], cleared["acknowledged_by"]) == ("danger", "it went for the camera", "ann")


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({}, "cause is missing"),
        ({"why": "it went for the camera", "contact": False}, "cause is missing"),
        ({"cause": "boredom", "why": "it stood still"}, "'danger', 'contact' or 'mistaken_key'"),
        ({"cause": None, "why": "it stood still"}, "cause is missing"),
        ({"cause": "mistaken_key"}, "why"),
        ({"cause": "mistaken_key", "why": " "}, "why"),
        ({"cause": "mistaken_key", "why": "a sleeve", "contact": True}, "where there was contact"),
        ({"cause": "contact", "why": "it leaned on the tote", "contact": False}, "where there was contact"),
    ],
)
def test_a_stop_by_hand_is_acknowledged_with_one_of_three_causes_and_a_why_and_by_nothing_else(bench, said, error):
    stopped_by_hand(bench)
    refused = bench.command("acknowledge", code="operator_stop", **said)
    assert not refused["ok"] and error in refused["error"]
    assert not bench.events(Kind.HOLD_CLEARED)
    assert not bench.command("stage", role="setter")["ok"]


@pytest.mark.parametrize(("cause", "contact"), [("danger", False), ("contact", True), ("mistaken_key", False)])
def test_the_journal_has_the_cause_of_a_stop_by_hand_and_whether_there_was_contact(bench, cause, contact):
    stopped_by_hand(bench)
    assert bench.command("acknowledge", code="unacknowledged:operator_stop", cause=cause, why="a sleeve")["ok"]
    assert bench.events(Kind.HOLD_CLEARED)[-1].body == {
        "code": "operator_stop",
        "acknowledged_by": "ann",
        "why": "a sleeve",
        "cause": cause,
        "contact": contact,
    }


def test_a_cause_is_of_a_stop_by_hand_and_of_no_other_hold(bench):
    bench.begin()
    assert bench.command("wait", after="block")["ok"]
    (code,) = bench.events(Kind.HOLD_RAISED)[-1].body["code"].split()
    refused = bench.command("acknowledge", code=code, cause="mistaken_key")
    assert not refused["ok"] and "a stop by hand" in refused["error"]
    assert bench.command("acknowledge", code=code)["ok"]


def test_items_are_counted_up_and_down_but_not_beyond_what_was_staged(bench):
    bench.running()
    assert bench.command("count")["ok"] and bench.command("count", by=1)["ok"] and bench.command("count", by=-1)["ok"]
    assert [event.body["moved"] for event in bench.events(Kind.ITEM_COUNTED)] == [1, 2, 1]
    assert shown(bench)["counted"] == 1
    assert bench.command("count", by=2)["error"] == "moved cannot be 3 of 2 items staged"


def test_what_a_run_that_was_started_again_counts_is_of_the_end_of_the_episode(bench):
    bench.running()
    assert bench.command("end")["ok"]
    (end,) = bench.events(Kind.EPISODE_ENDED)
    bench.campaign.close()
    with Campaign.open(bench.campaign.folder, writer=True) as campaign:
        again = Bench(campaign, clock=bench.clock)
        again.wait(SECOND)
        assert again.command("count", id_="again")["ok"]
        assert again.events(Kind.ITEM_COUNTED)[-1].body["t_ns"] == end.body["end_ns"]


def test_a_void_before_the_recording_is_sealed_ends_the_controller_before_the_next_trial(bench):
    """The next episode asked for one of its own, found the old one there, and was void as not ready."""
    episode = bench.running()
    bench.hear(Message("run", "exited", {"name": "recorder", "reason": "ended with exit code 1"}))
    (end,) = bench.events(Kind.EPISODE_ENDED)
    assert bench.command("void", reason="recorder_lost", evidence=end.seq)["ok"]
    assert not [m for m in bench.sent if m.kind == "kill"], "it still delivers what it recorded"
    bench.seal(episode)
    assert [m.body for m in bench.sent if m.kind == "kill"] == [{"name": "controller"}]
    assert not bench.liveness.alive("controller")


def test_counting_outside_an_episode_is_refused(bench):
    bench.begin_session()
    assert "no episode is running" in bench.command("count")["error"]


def test_a_hold_after_this_trial_lets_the_trial_finish_and_the_next_one_wait(bench):
    bench.begin()
    assert bench.command("wait", after="trial", why="batteries are low")["ok"]
    assert len(shown(bench)["waiting"]) == 1
    episode = bench.start()
    bench.go(episode)
    assert bench.command("end")["ok"]
    ended(bench, episode)
    assert bench.command("score", items_staged=2, moved=1, lost=0, remaining=1)["ok"]
    refused = bench.command("stage", role="setter")
    assert not refused["ok"] and "ann asked to hold after this trial: batteries are low" in refused["error"]
    code = next(hold["code"] for hold in shown(bench)["holds"])
    assert bench.command("acknowledge", code=code)["ok"]
    assert bench.command("stage", role="setter")["ok"]


def test_a_hold_after_this_block_does_not_hold_the_rest_of_the_block(bench):
    bench.begin()
    assert bench.command("wait", after="block")["ok"]
    assert "already" in bench.command("wait", after="block")["error"]
    assert bench.command("commit")["ok"]


def test_a_scored_trial_is_corrected_with_a_why(bench):
    trial = scored(bench)
    outcome = {"items_staged": 2, "moved": 2, "lost": 0, "remaining": 0}
    assert (
        "the reason for the correction is empty"
        in bench.command("correct", trial=trial, role="assessor", **outcome)["error"]
    )
    assert bench.command("correct", trial=trial, role="assessor", why="undo", **outcome)["ok"]
    change = bench.events(Kind.OUTCOME_CORRECTED)[-1].body
    assert (change["old"]["moved"], change["new"]["moved"], change["why"]) == (1, 2, "undo")
    assert not bench.command("correct", trial=trial, role="setter", why="x", **outcome)["ok"]
    again = bench.command("correct", trial=trial, role="assessor", why="again", **outcome)
    assert "nothing is corrected" in again["error"] and len(bench.events(Kind.OUTCOME_CORRECTED)) == 1


def test_a_guess_names_a_candidate_or_nobody(bench):
    trial = scored(bench)
    assert "no candidate" in bench.command("guess", trial=trial, guess="horse")["error"]
    assert bench.command("guess", trial=trial, guess="zebra")["ok"] and bench.command("guess", trial=trial)["ok"]
    assert [event.body["guess"] for event in bench.events(Kind.ARM_GUESSED)] == ["zebra", None]


def test_tags_and_stages_are_the_protocols(bench):
    episode = bench.running()
    assert bench.command("end")["ok"]
    ended(bench, episode)
    counts = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
    assert (
        "tag 'fumbled' is not in the protocol; there: none"
        in bench.command("score", tags=["fumbled"], **counts)["error"]
    )
    assert bench.command("score", **counts)["ok"]


def test_notes_are_kept_and_empty_ones_refused(bench):
    bench.begin_session()
    assert bench.command("note", text="lamp replaced")["ok"]
    assert bench.events(Kind.NOTE)[-1].body == {"text": "lamp replaced"}
    assert "the note is empty" in bench.command("note", text=" ")["error"]


def test_an_unknown_verb_is_one_line_with_the_known_ones(bench):
    reply = bench.command("dance")
    assert not reply["ok"] and "no verb 'dance'; there are session" in reply["error"]


def test_the_board_shows_a_console_what_it_draws_and_no_outcome(bench):
    scored(bench)
    state = shown(bench)
    assert re.fullmatch(r"trial 1 of \d+", state["earlier"][-1]["trial"])
    assert state["earlier"][-1] == {
        "trial": state["earlier"][-1]["trial"],
        "block": 0,
        "condition": state["earlier"][-1]["condition"],
        "state": "scored",
        "voids": 0,
    }
    assert state["by_role"]["setter"] == ["stage"] and state["rules"]["items"] == 2
    assert "moved" not in str(state["earlier"])


def test_a_hand_in_a_running_episode_is_an_interval_with_a_kind(bench):
    episode = bench.running()
    version = shown(bench)["version"]
    assert bench.command("touch", phase="begin")["ok"]
    assert shown(bench)["touching"] and shown(bench)["version"] == version, "an end from before the touch is not stale"
    assert "phase" in bench.command("touch", phase="maybe")["error"]
    assert "hand_in_scene" in bench.command("touch", phase="end", kind="magic")["error"]
    assert bench.command("touch", phase="end", kind="reset", note="a towel fell off")["ok"]
    assert not shown(bench)["touching"]
    assert "no intervention goes on" in bench.command("touch", phase="end", kind="reset")["error"]
    (begun,), (over,) = bench.events(Kind.INTERVENTION_BEGAN), bench.events(Kind.INTERVENTION_ENDED)
    assert (begun.episode, begun.body["number"], begun.body["by"], begun.who) == (episode, 0, "console", "ann")
    assert (over.body["kind"], over.body["note"]) == ("reset", "a towel fell off")
    assert over.body["t_ns"] > begun.body["t_ns"]


def test_what_a_hand_did_may_be_said_until_the_score(bench):
    episode = bench.running()
    assert bench.command("touch", phase="begin")["ok"]
    assert bench.command("end")["ok"]
    ended(bench, episode)
    assert bench.command("touch", phase="end", kind="hand_in_scene")["ok"]
    over, end = bench.events(Kind.INTERVENTION_ENDED)[-1], bench.events(Kind.EPISODE_ENDED)[-1]
    assert over.body["t_ns"] == end.body["end_ns"]
    assert "while the episode runs" in bench.command("touch", phase="begin")["error"]


def test_a_hand_that_is_out_is_an_end_at_once_and_what_it_did_is_said_until_the_score(bench):
    """In a running episode a person has time for a key and not for words."""
    episode = bench.running()
    for _ in range(2):
        assert bench.command("touch", phase="begin")["ok"]
        bench.wait(SECOND)
        assert bench.command("touch", phase="end")["ok"]
    out = [event.body["t_ns"] for event in bench.events(Kind.INTERVENTION_ENDED)]
    assert not shown(bench)["touching"] and shown(bench)["unsaid"] == [], "while it runs nobody is asked"
    assert "no intervention 0 goes on" in bench.command("touch", phase="end", number=0, kind="reset")["error"]
    assert bench.command("end")["ok"]
    ended(bench, episode)
    assert shown(bench)["unsaid"] == [0, 1]
    assert bench.command("touch", phase="end", number=1, kind="reset", note="a towel fell off")["ok"]
    assert shown(bench)["unsaid"] == [0]
    assert "it was said what it was" in bench.command("touch", phase="end", number=1, kind="other")["error"]
    assert "it did not happen" in bench.command("touch", phase="end", number=7, kind="other")["error"]
    touches = bench.campaign.record().episodes[episode].interventions
    assert [(touch.kind, touch.note, touch.to_ns) for touch in touches] == [
        ("other", "", out[0]),
        ("reset", "a towel fell off", out[1]),
    ]
    assert bench.command("score", items_staged=2, moved=2, lost=0, remaining=0)["ok"]
    assert shown(bench)["unsaid"] == []


@pytest.fixture
def left_driven(tmp_path: Path) -> Iterator[tuple[Bench, str]]:
    """The next run after one that was ended while a hand device drove: the episode waits for its score."""
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        bench.hear(TouchByDevice(phase="begin", t_ns=bench.now_ns, episode=episode).to("run", sender="controller"))
        assert not shown(bench)["touching"], "the device ends it, no key does"
        bench.wait(SECOND)
        bench.hear(EndRun("ann", now=True).to("run", sender="cli"))
        ended(bench, episode)
    with Campaign.open(folder, writer=True) as campaign:
        again = Bench(campaign, clock=bench.clock)
        again.ids = 1000
        again.wait(SECOND)
        yield again, episode


def test_a_take_over_by_a_device_is_asked_of_nobody_in_the_next_run_and_stays_one(left_driven):
    """It was asked as "a hand was in it", and the answer made the person's driving the policy's."""
    bench, episode = left_driven
    assert bench.shown()["trial_state"] == "scoring" and not shown(bench)["touching"] and shown(bench)["unsaid"] == []
    assert "was begun at a console" in bench.command("touch", phase="end", kind="hand_in_scene")["error"]
    assert "is a device's" in bench.command("touch", phase="end", number=0, kind="hand_in_scene")["error"]
    assert bench.command("score", items_staged=2, moved=2, lost=0, remaining=0)["ok"]
    (touch,) = bench.campaign.record().episodes[episode].interventions
    assert (touch.kind, touch.by, touch.to_ns) == (
        "take_over",
        "device",
        bench.events(Kind.EPISODE_ENDED)[0].body["end_ns"],
    )


def test_a_take_over_that_was_called_a_hand_before_is_counted_as_one_and_asked_no_more(left_driven):
    """In a journal of an earlier labctl, whose screen asked for it."""
    bench, episode = left_driven
    (begun,) = bench.events(Kind.INTERVENTION_BEGAN)
    said = {"number": 0, "kind": "hand_in_scene", "t_ns": begun.body["t_ns"] + SECOND}
    bench.node._writer.log(Kind.INTERVENTION_ENDED, said, trial=begun.trial, episode=episode, who="ann")
    bench.wait(SECOND)
    assert shown(bench)["unsaid"] == [] and bench.campaign.record().episodes[episode].taken_over


def test_a_take_over_device_that_is_gone_is_said_and_kept_and_the_episode_goes_on(bench):
    episode = bench.running()
    bench.hear(HandLost(episode, "gamepad 0 is gone").to("run"))
    (note,) = bench.events(Kind.NOTE)
    assert note.episode == episode and "gamepad 0 is gone" in note.body["text"]
    assert "nobody can take this episode over" in bench.lines[-1] and not bench.events(Kind.EPISODE_ENDED)
    assert bench.command("touch", phase="begin")["ok"], "a hand in the scene is still a touch"


def test_there_is_no_touch_outside_of_an_episode(bench):
    bench.begin_session()
    assert "no episode is running" in bench.command("touch", phase="begin")["error"]


def test_practice_is_written_down_beside_the_trials(bench):
    bench.begin_session()
    told = {"person": "p07", "object": "towels", "moved": 2, "staged": 2, "duration_s": 30.0}
    assert bench.command("practice", **told)["ok"]
    assert bench.events(Kind.PRACTICE_RECORDED)[-1].body == told
    assert "nobody" in bench.command("practice", **(told | {"person": ""}))["error"]


def test_a_touch_that_goes_on_is_over_with_a_void(bench):
    episode = bench.running()
    assert bench.command("touch", phase="begin")["ok"]
    bench.hear(
        Message("run", "failed", {"name": "controller", "episode": episode, "private": "x"}, sender="controller")
    )
    ended_as_void(bench, episode)
    assert bench.events(Kind.EPISODE_VOIDED) and not shown(bench)["touching"]
