"""Claims about the photos of a commit: what is asked for, what is kept, and what becomes of a commit without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.runs.scene_bench import CAMERAS, scene_benches

from labctl.bus import Message
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.runtime.scene_watch import PHOTO_NS


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    with scene_benches(tmp_path) as made:
        yield made


def ask_to_commit(bench: Bench, **args: Any) -> list[Message]:
    """A commit whose photos are still to come."""
    body = {"id": "slow", "verb": "commit", "role": "operator", "who": "ann", "args": args, "version": None}
    return bench.hear(Message("run", "command", body, sender="console"))


def test_a_commit_keeps_a_photo_of_every_camera_and_says_what_it_was_compared_with(build):
    bench = build()
    bench.begin()
    episode = bench.commit()
    (committed,) = bench.events(Kind.SCENE_COMMITTED)
    assert set(committed.body["photo"]) == set(CAMERAS)
    assert committed.body["match"]["wrist"]["reference"] is None
    scene = record_of(bench.events()).episodes[episode].scene
    assert scene.photos["wrist"]["file"] == committed.body["photo"]["wrist"]["file"]


def test_photos_are_of_light_that_falls_after_the_word(build):
    bench = build()
    bench.begin()
    bench.commit()
    asked = [m.body for m in bench.sent if m.kind == "photo"]
    assert len(asked) == 2 and all(body["after_ns"] == bench.now_ns for body in asked)
    assert len({body["file"] for body in asked}) == 2


def test_a_commit_is_answered_when_its_photos_are_there_and_not_before(build):
    bench = build()
    bench.begin()
    bench.taking.clear()
    sent = ask_to_commit(bench)
    assert not [m for m in sent if m.kind == "reply"] and not bench.events(Kind.SCENE_COMMITTED)
    assert "commit" not in bench.shown()["allowed"]
    assert [hold["code"] for hold in bench.shown()["holds"]] == ["photographing"]
    requests = [m for m in bench.sent if m.kind == "photo"]
    assert not [m for m in bench.hear(bench.photographed(requests[0].to, requests[0].body)) if m.kind == "reply"]
    answered = bench.hear(bench.photographed(requests[1].to, requests[1].body))
    assert [(m.to, m.body["id"], m.body["ok"]) for m in answered if m.kind == "reply"] == [("console", "slow", True)]
    assert len(bench.events(Kind.SCENE_COMMITTED)) == 1


def test_asked_again_for_a_commit_that_is_under_way_it_is_carried_out_once(build):
    bench = build()
    bench.begin()
    bench.taking.clear()
    ask_to_commit(bench)
    assert not [m for m in ask_to_commit(bench) if m.kind == "reply"]
    assert len([m for m in bench.sent if m.kind == "photo"]) == 2


def test_a_camera_that_gives_no_photo_refuses_the_commit_in_time(build):
    bench = build()
    bench.begin()
    bench.taking.discard("camera:wrist")
    ask_to_commit(bench)
    bench.wait(PHOTO_NS)
    reply = [m.body for m in bench.sent if m.kind == "reply"][-1]
    assert not reply["ok"] and "camera wrist gave no photo" in reply["error"]
    assert not bench.events(Kind.SCENE_COMMITTED)
    bench.taking.add("camera:wrist")
    assert bench.command("commit")["ok"]


def test_a_photo_that_could_not_be_written_refuses_the_commit(build):
    bench = build()
    bench.begin()
    bench.finds["wrist"] = {"photo": None, "problem": "no space left"}
    reply = bench.command("commit")
    assert not reply["ok"] and "camera wrist gave no photo (no space left)" in reply["error"]


def test_where_no_photo_is_required_the_commit_goes_on_without_one(build):
    bench = build("require_photo = false")
    bench.begin()
    bench.taking.discard("camera:wrist")
    ask_to_commit(bench)
    bench.wait(PHOTO_NS)
    (committed,) = bench.events(Kind.SCENE_COMMITTED)
    assert set(committed.body["photo"]) == {"over_shoulder"}


def test_a_camera_that_dies_while_its_photo_is_awaited_is_not_waited_for(build):
    bench = build()
    bench.begin()
    bench.taking.discard("camera:wrist")
    ask_to_commit(bench)
    bench.hear(Message("run", "exited", {"name": "camera:wrist", "reason": "unplugged"}))
    reply = [m.body for m in bench.sent if m.kind == "reply"][-1]
    assert not reply["ok"] and "wrist" in reply["error"]
    assert not bench.events(Kind.SCENE_COMMITTED)


def test_a_trial_given_back_while_its_photos_are_taken_is_not_committed(build):
    bench = build()
    bench.begin()
    bench.taking.clear()
    ask_to_commit(bench)
    assert bench.command("release", reason="a towel is missing")["ok"]
    answered = bench.hear(*(bench.photographed(m.to, m.body) for m in bench.sent if m.kind == "photo"))
    (reply,) = [m.body for m in answered if m.kind == "reply"]
    assert not reply["ok"] and "given back" in reply["error"]
    assert not bench.events(Kind.SCENE_COMMITTED)


def test_what_went_wrong_while_photos_were_taken_holds_the_commit(build):
    bench = build()
    bench.begin()
    bench.taking.clear()
    ask_to_commit(bench)
    bench.mode, bench.reason = "safety_stop", "someone leaned on it"
    bench.wait(SECOND // 10)
    answered = bench.hear(*(bench.photographed(m.to, m.body) for m in bench.sent if m.kind == "photo"))
    (reply,) = [m.body for m in answered if m.kind == "reply"]
    assert not reply["ok"] and "someone leaned on it" in reply["error"]


def test_a_run_that_is_asked_to_end_leaves_no_commit_behind(build):
    bench = build()
    bench.begin()
    bench.taking.clear()
    ask_to_commit(bench)
    answered = bench.hear(Message("run", "shutdown"))
    assert bench.node.finished
    assert [m.body["ok"] for m in answered if m.kind == "reply"] == [False]
    assert not bench.events(Kind.SCENE_COMMITTED)
