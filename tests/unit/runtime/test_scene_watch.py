"""Claims about scenes that are watched: what holds a commit, what is journalled, and what a person may decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.runs.scene_bench import CAMERAS, scene_benches

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.messages.pictures import Compare
from labctl.messages.typed import read

FINE = {"score": 97.5, "shift_px": [0.1, 0.0], "rotation_deg": 0.0, "moved_px": 0.1, "note": "", "ssim": 0.99}
FINE |= {"changed": 0.0, "regions": []}
STILL = {key: FINE[key] for key in ("shift_px", "rotation_deg", "moved_px", "note")}
MOVED = {"shift_px": [6.5, -4.7], "rotation_deg": 0.0, "moved_px": 8.0, "note": ""}
WRONG = {**FINE, "score": 52.0, "changed": 0.0028, "regions": [{"box": [10, 10, 40, 30], "share": 0.0028}]}
AFTER = {"scene": FINE, "pose": STILL}


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    with scene_benches(tmp_path) as made:
        yield made


def second_trial(bench: Bench) -> None:
    """A scene was committed once; it is staged again in the same block, against the first photo."""
    bench.begin()
    bench.commit()
    assert bench.command("void", reason=bench.campaign.opened["void_reasons"][0])["ok"]
    bench.wait(SECOND // 10)
    bench.stage()


def both(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Both cameras find the same."""
    return {camera: found for camera in CAMERAS}


def told(bench: Bench, camera: str) -> dict[str, Any]:
    sent = [m for m in bench.sent if m.kind == "compare" and m.to == f"camera:{camera}"]
    return asdict(read(Compare, sent[-1]))


def test_the_second_arm_of_a_block_is_held_against_the_firsts_photo(build):
    bench = build()
    second_trial(bench)
    first = bench.events(Kind.SCENE_COMMITTED)[0].body["photo"]
    for camera in CAMERAS:
        assert told(bench, camera)["scene"] == first[camera]
        assert told(bench, camera)["counts"] and told(bench, camera)["compare"]
    bench.finds = both(AFTER)
    bench.commit()
    match = bench.events(Kind.SCENE_COMMITTED)[-1].body["match"]["wrist"]
    assert match["scene"] == FINE and match["reference"] == first["wrist"]["sha256"] and match["counts"]


def test_scores_are_only_recorded_where_the_protocol_asks_for_none(build):
    bench = build()
    second_trial(bench)
    bench.finds = both({"scene": WRONG, "pose": STILL})
    assert bench.command("commit")["ok"]


def test_a_scene_below_the_protocols_score_is_not_committed_and_says_what_differs(build):
    bench = build("min_score = 80")
    second_trial(bench)
    bench.finds = {"over_shoulder": AFTER, "wrist": {"scene": WRONG, "pose": STILL}}
    reply = bench.command("commit")
    assert not reply["ok"]
    assert "the scene of camera wrist scores 52, 80 are needed: 0.28 % of the picture changed" in reply["error"]
    assert "put the scene back" in reply["error"]
    held = [hold["code"] for hold in bench.shown()["holds"]]
    assert held == ["scene_differs:wrist"], "shown at once, and cleared by the next comparison"
    bench.finds["wrist"] = AFTER
    bench.compared("wrist", **AFTER)
    assert bench.command("commit")["ok"]


def test_the_first_scene_of_a_block_needs_no_score(build):
    bench = build("min_score = 80")
    bench.begin()
    assert not told(bench, "wrist")["counts"]
    assert bench.command("commit")["ok"]


def test_a_score_that_cannot_be_given_holds_where_one_is_needed(build):
    bench = build("min_score = 80")
    second_trial(bench)
    bench.finds = {"over_shoulder": AFTER, "wrist": {"problem": "photo photos/x.png was changed"}}
    reply = bench.command("commit")
    assert not reply["ok"] and "has no score: photo photos/x.png was changed" in reply["error"]


@pytest.mark.parametrize("counts", [False, True], ids=["a block's first", "a later one"])
def test_a_moved_camera_holds_while_it_is_moved(build, counts):
    bench = build()
    if counts:
        second_trial(bench)
    else:
        bench.begin()
    bench.compared("wrist", scene=FINE, pose=MOVED)
    (hold,) = bench.shown()["holds"]
    assert hold["code"] == "camera_moved:wrist"
    assert "6.5 px to the right and 4.7 px up; 8.0 px at most, 4 are allowed" in hold["text"]
    assert not bench.command("commit")["ok"]
    bench.compared("wrist", scene=FINE, pose=STILL)
    bench.wait(2 * SECOND)
    assert bench.shown()["holds"] == []


def test_a_camera_that_moved_since_the_last_look_is_seen_on_the_photo(build):
    bench = build()
    second_trial(bench)
    bench.finds = {"over_shoulder": AFTER, "wrist": {"scene": FINE, "pose": MOVED}}
    reply = bench.command("commit")
    assert not reply["ok"] and "camera wrist does not stand where it stood" in reply["error"]


def test_the_protocol_says_how_far_a_camera_may_move(build):
    bench = build("max_camera_shift_px = 10")
    second_trial(bench)
    bench.finds = both({"scene": FINE, "pose": MOVED})
    assert bench.command("commit")["ok"]


def test_a_view_that_is_not_recognised_holds(build):
    bench = build()
    second_trial(bench)
    lost = {
        "shift_px": None,
        "rotation_deg": None,
        "moved_px": None,
        "note": "2 of 40 places of the reference were found",
    }
    bench.compared("wrist", scene=None, pose=lost)
    (hold,) = bench.shown()["holds"]
    assert "not recognised (2 of 40" in hold["text"]


def test_a_person_may_override_with_a_reason_where_the_protocol_lets_them(build):
    bench = build("min_score = 80", 'override = "allowed"')
    second_trial(bench)
    bench.finds = {"over_shoulder": {"scene": FINE, "pose": MOVED}, "wrist": {"scene": WRONG, "pose": STILL}}
    for camera, found in bench.finds.items():
        bench.compared(camera, **found)
    assert all(hold["overridable"] for hold in bench.shown()["holds"])
    assert not bench.command("commit")["ok"]
    assert not bench.command("commit", override="")["ok"]
    assert bench.command("commit", override="the towel frayed; agreed with bob")["ok"]
    (said,) = [event for event in bench.events(Kind.DEVIATION) if "frayed" in event.body["text"]]
    assert said.who == "ann" and "scores 52" in said.body["text"] and "does not stand where" in said.body["text"]
    kinds = [event.kind for event in bench.events()]
    assert kinds.index(Kind.DEVIATION) < len(kinds) - 1 - kinds[::-1].index(Kind.SCENE_COMMITTED)


def test_without_the_protocols_leave_nobody_overrides(build):
    bench = build("min_score = 80")
    second_trial(bench)
    bench.finds = both({"scene": WRONG, "pose": STILL})
    assert not bench.command("commit", override="I know better")["ok"]
    bench.compared("wrist", scene=WRONG, pose=STILL)
    assert not bench.shown()["holds"][0]["overridable"]
    assert not bench.command("commit", override="I know better")["ok"]


def test_an_override_does_not_reach_other_holds(build):
    bench = build('override = "allowed"')
    second_trial(bench)
    bench.mode, bench.reason = "safety_stop", "someone leaned on it"
    bench.wait(SECOND // 10)
    assert not bench.command("commit", override="go on")["ok"]


def test_a_named_person_takes_the_view_of_a_camera_for_its_new_reference(build):
    bench = build("min_score = 80")
    second_trial(bench)
    old = told(bench, "wrist")["scene"]
    bench.compared("wrist", scene=WRONG, pose=MOVED)
    assert not bench.command("commit")["ok"]
    assert bench.command("reference", camera="wrist", reason="the mount was replaced")["ok"]
    (event,) = bench.events(Kind.REFERENCE_SET)
    assert event.who == "ann" and event.body["reason"] == "the mount was replaced"
    assert event.body["old"] == old["sha256"] and event.body["photo"]["sha256"] != old["sha256"]
    bench.wait(SECOND // 10)
    assert told(bench, "wrist")["scene"] == told(bench, "wrist")["pose"] == event.body["photo"]
    assert told(bench, "over_shoulder")["scene"] != event.body["photo"]
    assert bench.shown()["holds"] == [], "what was found of the old reference no longer counts"


def test_a_new_reference_of_every_camera_needs_a_reason_and_a_staged_scene(build):
    bench = build()
    bench.begin_session()
    assert "stage the trial first" in bench.command("reference", reason="new mounts")["error"]
    assert bench.command("stage", role="setter")["ok"]
    trial = [message.body["trial"] for message in bench.sent if message.kind == "stage"][-1]
    assert "stage the trial first" in bench.command("reference", reason="the arm is not home")["error"]
    bench.hear(Message("run", "staged", {"trial": trial}, sender="arm"))
    assert "reason is empty" in bench.command("reference")["error"]
    assert "no camera 'wirst'" in bench.command("reference", camera="wirst", reason="x")["error"]
    assert not bench.command("reference", role="assessor", reason="x")["ok"]
    assert bench.command("reference", reason="new mounts")["ok"]
    assert [event.body["camera"] for event in bench.events(Kind.REFERENCE_SET)] == list(CAMERAS)


def test_cameras_are_told_when_to_look_and_when_to_stop(build):
    bench = build()
    bench.begin_session()
    assert not [m for m in bench.sent if m.kind == "compare"]
    assert bench.command("stage", role="setter")["ok"]
    bench.wait(SECOND // 10)
    assert not told(bench, "wrist")["compare"], "the arm is on its way home: ghosts, no scores"
    trial = [m.body["trial"] for m in bench.sent if m.kind == "stage"][-1]
    bench.hear(Message("run", "staged", {"trial": trial}, sender="arm"))
    assert told(bench, "wrist")["compare"] and told(bench, "wrist")["trial"] == trial
    bench.commit()
    assert told(bench, "wrist")["trial"] is None
    assert len([m for m in bench.sent if m.kind == "compare" and m.to == "camera:wrist"]) == 3, "told once each"


def test_a_cameras_new_process_is_told_again(build):
    bench = build()
    bench.begin()
    bench.wait(SECOND)
    before = len([m for m in bench.sent if m.kind == "compare"])
    bench.hear(Message("run", "hello", sender="camera:wrist"))
    assert [m.to for m in bench.sent if m.kind == "compare"][before:] == ["camera:wrist"]


def test_a_finding_of_an_earlier_scene_does_not_count(build):
    bench = build()
    second_trial(bench)
    body = {"camera": "wrist", "trial": told(bench, "wrist")["trial"], "t_ns": bench.now_ns, "problem": None}
    bench.hear(
        Message("run", "compared", {**body, "round": told(bench, "wrist")["round"] - 2, "scene": WRONG, "pose": MOVED})
    )
    bench.wait(SECOND)
    assert bench.shown()["holds"] == []


def test_a_screen_is_shown_what_counts_and_what_was_found(build):
    bench = build("min_score = 80")
    second_trial(bench)
    bench.compared("wrist", **AFTER)
    bench.wait(2 * SECOND)
    scene = bench.shown()["scene"]
    assert scene["rules"]["min_score"] == 80 and not scene["photographing"]
    assert scene["cameras"]["wrist"]["scene"] == FINE and scene["cameras"]["wrist"]["counts"]
    assert scene["cameras"]["over_shoulder"]["scene"] is None
    bench.finds = both(AFTER)
    bench.commit()
    assert bench.shown()["scene"]["cameras"] == {}, "after the commit nothing of the scene is watched"


def test_every_attempt_of_a_block_stages_the_same_simulated_scene(build):
    bench = build()
    second_trial(bench)
    seeds = [message.body["seed"] for message in bench.sent if message.kind == "stage"]
    assert len(seeds) == 2 and seeds[0] == seeds[1]
