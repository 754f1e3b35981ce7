"""What the run process does about cameras: a lost one is a hold before an episode and a marked gap in one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.liveness import BEAT_LIMIT_NS
from labctl.core.rollout import CLOSE_PATIENCE_NS
from labctl.core.trial import fold
from labctl.runtime.operator_state import recording_lines
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

WRIST, SHOULDER = "camera:wrist", "camera:over_shoulder"


def with_cameras(tmp_path: Path, **rules: Any) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")], cameras=True, **rules).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


@pytest.fixture
def seeing(tmp_path: Path) -> Iterator[Bench]:
    """A cell with two cameras; their loss is marked."""
    yield from with_cameras(tmp_path)


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Bench]:
    """The same, where the protocol lets the loss of a camera end an episode."""
    yield from with_cameras(tmp_path, camera_lost="end")


def go(bench: Bench) -> str:
    episode = bench.running()
    return episode


def finish(bench: Bench, episode: str, *cameras: str, last_ns: int | None = None) -> dict:
    """End the episode unless it has, and deliver: the recorder's word, some cameras' videos. RecordingSealed's body."""
    if not bench.events(Kind.EPISODE_ENDED):
        assert bench.command("end", reason="operator")["ok"]
    last = {"n": 5, "chunks": 1, "root": "0" * 64, "t0_ns": 0, "t1_ns": last_ns or bench.now_ns}
    streams = {f"camera/{name}": last for name in ("wrist", "over_shoulder")}
    streams["arm/state"] = {**last, "t1_ns": bench.now_ns}
    body = {"episode": episode, "streams": streams, "private": [], "gaps": [], "silent": []}
    bench.hear(Message("run", "closed", body, sender="recorder"))
    for name in cameras:
        short = name.removeprefix("camera:")
        video = {"episode": episode, "camera": short, "file": f"video/{episode}/{short}.mp4", "frames": 0}
        bench.hear(Message("run", "video", video, sender=name))
    assert [work.kind for work in bench.work] == ["digested"]
    bench.hear(Message("run", "digested", {"result": Findings(), "tag": episode}))
    return dict(bench.events(Kind.RECORDING_SEALED)[-1].body)


def told(bench) -> tuple[str, str]:
    """What the board says of the wrist camera."""
    entry = bench.shown()["devices"]["camera wrist"]
    return entry["state"], entry["text"]


def test_a_camera_that_gives_no_pictures_holds_what_comes_before_an_episode(seeing):
    seeing.begin()
    seeing.camera(WRIST, "the cable is out")
    reply = seeing.command("commit")
    assert not reply["ok"] and "camera wrist gives no pictures: the cable is out" in reply["error"]
    assert [hold["code"] for hold in seeing.shown()["holds"]] == ["camera_lost:wrist"]
    assert not seeing.shown()["holds"][0]["needs_person"], "it clears by itself: labctl goes on trying"
    seeing.camera(WRIST, "")
    assert seeing.command("commit")["ok"]


def test_a_camera_that_has_not_given_a_picture_yet_holds(seeing):
    seeing.begin()
    seeing.hear(Message("run", "exited", {"name": WRIST, "reason": "ended by signal 9"}))
    assert "camera wrist is not there: ended by signal 9" in seeing.command("commit")["error"]
    seeing.hear(Message("run", "hello", sender=WRIST))
    assert "it has not given a picture yet" in seeing.command("commit")["error"]


def test_a_camera_lost_between_commit_and_start_is_waited_for_and_costs_nothing(seeing):
    seeing.begin()
    episode = seeing.commit()
    seeing.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    seeing.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    assert seeing.command("start")["ok"]
    seeing.camera(WRIST, "the cable is out")
    seeing.wait(4 * SECOND)
    shown = seeing.shown()
    assert (shown["trial_state"], shown["operator_ready"]) == ("armed", False)
    assert shown["withheld"] == "camera wrist gives no pictures: the cable is out"
    seeing.camera(WRIST, "")
    seeing.wait(SECOND)
    assert not seeing.events(Kind.EPISODE_STARTED), "not by itself: a hand may be in the cell by now"
    assert seeing.command("start")["ok"]
    assert seeing.events(Kind.EPISODE_STARTED) and not seeing.events(Kind.EPISODE_VOIDED)
    assert not seeing.shown()["withheld"]


def test_without_a_person_a_camera_lost_between_commit_and_start_voids_before_go_and_says_why(seeing):
    seeing.node._attended = False
    seeing.begin()
    episode = seeing.commit()
    seeing.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    seeing.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    assert seeing.command("start")["ok"]
    seeing.camera(WRIST, "the cable is out")
    seeing.wait(4 * SECOND)
    (void,) = seeing.events(Kind.EPISODE_VOIDED)
    assert (void.body["reason"], void.body["after_go"]) == ("camera_lost", False)


def test_a_camera_lost_in_an_episode_is_shown_and_its_gaps_are_journalled_at_once(seeing):
    episode = go(seeing)
    seeing.camera(WRIST, "the cable is out")
    assert seeing.events(Kind.EPISODE_ENDED) == []
    assert seeing.shown()["cameras"][1] == {"name": "wrist", "lost": "the cable is out", "missing": 0}
    assert told(seeing) == ("wrong", "no pictures: the cable is out")
    seeing.camera(WRIST, "")
    gap = {"stream": "camera/wrist", "from_ns": 1, "to_ns": 2, "lost": 20, "why": "the cable is out", "holes": 1}
    seeing.hear(Message("run", "gap", {"episode": episode, **gap}, sender=WRIST))
    assert [event.body for event in seeing.events(Kind.GAP)] == [gap]
    assert seeing.shown()["cameras"][1] == {"name": "wrist", "lost": "", "missing": 20}
    assert told(seeing) == ("ok", "answers; 20 frames missing")
    sealed = finish(seeing, episode, WRIST, SHOULDER)
    assert sealed["gaps"] == 1
    assert any("20 frames of camera:wrist missing" in line for line in seeing.lines)
    assert seeing.shown()["devices"]["recorder"]["recorded"] == "1 gap"


def test_what_the_last_recording_tells_of_each_part():
    fit = {"n": 901, "span_s": 30.0, "offset_s": 0.0, "drift_ppm": 12.4, "drift_se_ppm": 1.0, "jitter_ms": 0.1}
    body = {"gaps": 0, "clocks": {"arm/state": {**fit, "n": 30_001, "drift_ppm": -3.0}, "camera/wrist": fit}}
    wanted = {"recorder": "no gaps", "arm": "1000.0 Hz, clock -3 ppm", "camera wrist": "30.0 Hz, clock +12 ppm"}
    assert recording_lines(body) == wanted
    body["clocks"]["arm/state"]["received"] = 0.9963
    assert recording_lines(body)["arm"] == "1000.0 Hz, clock -3 ppm, 99.6 % of commands received"
    assert recording_lines(None) == {}
    assert recording_lines({"gaps": 2, "clocks": None}) == {"recorder": "2 gaps"}


def test_a_camera_lost_to_the_end_is_one_gap_with_its_cause_and_is_not_counted_twice(seeing):
    episode = go(seeing)
    last_ns = seeing.now_ns
    seeing.camera(WRIST, "the cable is out")
    seeing.wait(2 * SECOND)
    sealed = finish(seeing, episode, WRIST, SHOULDER, last_ns=last_ns)
    bodies = {event.body["stream"]: event.body for event in seeing.events(Kind.GAP)}
    assert bodies["camera/wrist"]["why"] == "the cable is out" and bodies["camera/wrist"]["lost"] == 20
    assert bodies["camera/over_shoulder"]["why"] == "the open second was lost"
    assert sealed["gaps"] == 2


def test_a_camera_whose_process_is_lost_is_not_waited_for_and_is_started_again_once_all_is_sealed(seeing):
    episode = go(seeing)
    seeing.hear(Message("run", "exited", {"name": WRIST, "reason": "ended by signal 9"}))
    assert seeing.events(Kind.EPISODE_ENDED) == []
    assert [m.body for m in seeing.sent if m.kind == "lost" and m.to == "recorder"] == [{"name": WRIST}]
    assert not [m for m in seeing.sent if m.kind == "spawn" and m.body["name"] == WRIST], "not in mid-episode"
    finish(seeing, episode, SHOULDER)
    assert [m.body["name"] for m in seeing.sent if m.kind == "spawn"].count(WRIST) == 1


def test_the_video_of_a_hung_camera_is_looked_at_only_once_its_process_has_ended(seeing):
    episode = go(seeing)
    others = ("arm", "recorder", "controller", SHOULDER)
    seeing.wait(BEAT_LIMIT_NS + SECOND // 10, beating=others)
    assert ("kill", WRIST) in [(m.kind, m.body.get("name")) for m in seeing.sent]
    assert seeing.command("end", reason="operator")["ok"]
    body = {"episode": episode, "streams": {}, "private": [], "gaps": [], "silent": []}
    video = {"episode": episode, "camera": "over_shoulder", "file": "v", "frames": 0}
    seeing.hear(Message("run", "closed", body), Message("run", "video", video, sender=SHOULDER))
    assert seeing.work == []
    seeing.hear(Message("run", "exited", {"name": WRIST, "reason": "ended by signal 9", "asked": True}))
    assert [work.kind for work in seeing.work] == ["digested"]


def test_where_the_protocol_says_so_the_loss_of_a_camera_ends_the_episode(strict):
    episode = go(strict)
    strict.camera(WRIST, "the cable is out")
    (ended,) = strict.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "camera_lost"
    finish(strict, episode, WRIST, SHOULDER)
    assert [event.body["reason"] for event in strict.events(Kind.EPISODE_VOIDED)] == ["camera_lost"]


def test_a_camera_that_is_lost_after_the_budget_ends_nothing_and_voids_nothing(strict):
    episode = go(strict)
    deadline_ns = strict.now_ns + strict.node._sequencer.rollout.budget_ns
    strict.wait(deadline_ns + SECOND // 10 - strict.now_ns)
    strict.camera(WRIST, "the cable is out")
    (ended,) = strict.events(Kind.EPISODE_ENDED)
    assert ended.body == {"reason": "budget", "end_ns": deadline_ns}
    finish(strict, episode, WRIST, SHOULDER)
    assert strict.events(Kind.EPISODE_VOIDED) == [] and strict.state() == "scoring"


def test_where_the_protocol_says_so_the_loss_of_a_cameras_process_ends_the_episode(strict):
    go(strict)
    strict.hear(Message("run", "exited", {"name": WRIST, "reason": "ended by signal 9"}))
    assert [event.body["reason"] for event in strict.events(Kind.EPISODE_ENDED)] == ["camera_lost"]


def test_videos_that_cannot_be_read_fault_the_cell_and_seal_nothing(seeing):
    episode = go(seeing)
    seeing.command("end")
    seeing.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
    seeing.wait(CLOSE_PATIENCE_NS)
    seeing.hear(Message("run", "digested", {"error": "the disk is gone", "tag": episode}))
    assert "the disk is gone" in fold(seeing.events()).faulted
    assert seeing.events(Kind.RECORDING_SEALED) == []
