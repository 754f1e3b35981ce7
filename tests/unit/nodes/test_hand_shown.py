"""What a person's device says is on the board while their episode is there, and in no event."""

from __future__ import annotations

from pathlib import Path

from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.store.campaign import Campaign
from labctl.ui.console.words import hand_line

HAND = {"device": "gello", "waits": "hold the clutch", "engaged": False}


def test_a_hand_is_shown_from_commit_to_the_end_and_is_not_journalled(tmp_path: Path):
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")]).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.begin()
        assert bench.shown()["hand"] is None
        episode = bench.commit()
        before = len(bench.events())
        bench.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
        bench.hear(Message("run", "hand", {"episode": episode, "hand": HAND}, sender="controller"))
        bench.wait(SECOND)
        assert bench.shown()["hand"] == HAND, "before the start"
        assert len(bench.events()) == before
        ready = {"episode": episode, "hand": {**HAND, "waits": ""}}
        bench.hear(Message("run", "hand", ready, sender="controller"))
        bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
        assert bench.command("start")["ok"]
        bench.wait(4 * SECOND)
        bench.go(episode)
        bench.hear(Message("run", "hand", {"episode": episode, "hand": HAND}, sender="controller"))
        bench.wait(SECOND)
        assert bench.shown()["hand"] == HAND
        assert bench.command("end")["ok"]
        bench.wait(SECOND)
        assert bench.shown()["hand"] is None
        assert "gello" not in str([event.body for event in bench.events()])


def test_a_hand_that_has_taken_over_is_shown_until_it_gives_the_robot_back(tmp_path: Path):
    folder = make_campaign(tmp_path, [policy("zebra"), policy("yak")]).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        driving = {"episode": episode, "hand": {**HAND, "waits": ""}}
        bench.hear(Message("run", "hand", driving, sender="controller"))
        bench.wait(SECOND)
        assert (hand_line(bench.shown()) or "").endswith("the hand has the robot")
        bench.hear(Message("run", "hand", {"episode": episode}, sender="controller"))
        bench.wait(SECOND)
        assert bench.shown()["hand"] is None and hand_line(bench.shown()) is None
