"""A scene that nobody touches has one score, however noisy and flickering its camera: frames are averaged, a fit is
lost later than it is gained, and what is asked of it may come from the noise of the reference itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.runs.scene_pictures import Stage, arranged

from labctl.bus import Message, Step
from labctl.clock import SECOND
from labctl.core.interlock import Look, scene_holds
from labctl.devices import Frame
from labctl.nodes.photos import AVERAGED, ScenePhotos
from labctl.runtime import scene_watch
from labctl.runtime.hosting.simulated_host import finish_work
from labctl.runtime.scene_watch import MARGIN, SLACK
from labctl.scene.matching import compare
from labctl.store.campaign import Campaign
from labctl.store.scene_references import rules

STILL = Stage().look(arranged(), noise=0.0)
ASKED = 80.0  # the score that issue 18 calls a lottery


def frame(number: int, seed: int = 7) -> np.ndarray:
    """A picture of a scene in which nothing moves: lamps beat against the exposure, and every third frame the camera
    raises its gain, and with it the noise.
    """
    rng = np.random.default_rng([seed, number])
    light = 1.0 + 0.15 * np.sin(2 * np.pi * number / 4.3)
    noise = 18.0 if number % 3 == 0 else 3.0
    return np.clip(np.round(STILL * light + rng.normal(0.0, noise, STILL.shape)), 0, 255).astype(np.uint8)


class Camera:
    """A camera's photos at ten frames a second, its work done at once."""

    def __init__(self, folder: Path) -> None:
        self.photos = ScenePhotos("shoulder", folder, durable=False)
        self.number, self.now_ns = 0, 10 * SECOND
        self.sent: list[Message] = []

    def read(self, kind: str, **body: Any) -> None:
        self.photos.hear(Message("camera:shoulder", kind, body), 0, Step())

    def see(self, frames: int) -> None:
        for _ in range(frames):
            self.number, self.now_ns = self.number + 1, self.now_ns + SECOND // 10
            step = Step()
            self.photos.see(Frame(frame(self.number), self.now_ns, 0.0, self.number), step)
            for work in step.work:
                message, _ = finish_work(work)
                self.photos.hear(message, 0, step)
            self.sent += step.out

    def photo(self) -> dict[str, Any]:
        self.read("photo", request=1, file="photos/t-1/one.png", after_ns=0, scene=None, pose=None, counts=True)
        self.see(AVERAGED)
        return [message.body["photo"] for message in self.sent if message.kind == "photographed"][-1]

    def scores(self, reference: dict[str, Any], seconds: int) -> list[float]:
        self.read("compare", trial="t-1", round=1, compare=True, scene=reference, pose=None, counts=True)
        self.see(10 * seconds)
        return [message.body["scene"]["score"] for message in self.sent if message.kind == "compared"]


def test_by_single_frames_the_score_of_an_untouched_scene_flaps_across_what_is_asked():
    """What issue 18 saw: 68 to 97 with nothing touched."""
    scores = [compare(frame(100), frame(number)).score for number in range(6)]
    assert min(scores) < ASKED - 2 and max(scores) > 97


def test_averaged_it_stands(tmp_path):
    camera = Camera(tmp_path)
    scores = camera.scores(camera.photo(), 6)
    assert len(scores) >= 5 and max(scores) - min(scores) < 2.0
    assert min(scores) > 95.0


def test_a_reference_says_how_well_it_matches_itself(tmp_path):
    camera = Camera(tmp_path)
    photo = camera.photo()
    assert photo["frames"] == AVERAGED
    assert photo["self_score"] == pytest.approx(min(camera.scores(photo, 3)), abs=3.0)


def test_what_was_moved_is_seen_all_the_same(tmp_path):
    camera = Camera(tmp_path)
    photo = camera.photo()
    gone = Stage().look(arranged()[1:], noise=0.0)
    mean = np.mean([frame(n) - STILL.astype(float) + gone for n in range(AVERAGED)], axis=0)
    one = np.mean([frame(n).astype(float) for n in range(20, 20 + AVERAGED)], axis=0)
    found = compare(np.round(one).astype(np.uint8), np.clip(np.round(mean), 0, 255).astype(np.uint8))
    assert found.score < photo["self_score"] - MARGIN - SLACK


def test_frames_from_before_a_task_are_not_averaged_in(tmp_path):
    """A comparison waits for as many frames of its own task, however many were seen before."""
    camera = Camera(tmp_path)
    camera.see(AVERAGED)
    for number in (1, 2):
        camera.sent.clear()
        camera.read("compare", trial=f"t-{number}", round=number, compare=True, scene=None, pose=None, counts=True)
        camera.see(AVERAGED - 1)
        assert not camera.sent
        camera.see(AVERAGED)
        assert [message.kind for message in camera.sent] == ["compared"]


def scored(score: float, needed: float | None, slack: float = 0.0) -> list[str]:
    body = {"score": score, "note": "", "moved_px": 0.0, "changed": 0.01, "regions": [], "shift_px": (0.0, 0.0)}
    look = Look(body, None, True, None, (640, 480), needed=needed, slack=slack)
    return [hold.text for hold in scene_holds({"wrist": look}, 4.0)]


def test_a_fit_is_lost_later_than_it_is_gained():
    assert scored(79.9, 80.0) and not scored(80.0, 80.0)
    assert not scored(77.1, 80.0, SLACK) and scored(76.9, 80.0, SLACK)
    assert not scored(10.0, None), "without a rule a score holds nothing"


def looked(tmp_path: Path, rule: str) -> Bench:
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    rules = {"[analysis]": f"[scene]\n{rule}\n[analysis]"}
    folder = make_campaign(tmp_path, arms, items=2, cameras=True, protocol=rules)
    return Bench(Campaign.open(folder.folder, writer=True).__enter__())


def compared(bench: Bench, score: float) -> bool:
    """Does the scene fit, by the wrist camera's word?"""
    body = {"score": score, "shift_px": [0.0, 0.0], "rotation_deg": 0.0, "moved_px": 0.0, "note": "", "ssim": 1.0}
    bench.compared("wrist", scene={**body, "changed": 0.01, "regions": []})
    bench.wait(SECOND)
    return not [hold for hold in bench.shown()["holds"] if hold["code"].startswith("scene_differs")]


def test_measured_asks_what_the_reference_gives_less_a_margin_and_nothing_flips_within_the_slack(tmp_path):
    bench = looked(tmp_path, 'min_score = "measured"')
    assert bench.node._scene.needed({"self_score": 90.0}) == 90.0 - MARGIN
    assert bench.node._scene.needed({}) == 100.0 - MARGIN, "a picture that was given has no noise of its own"


def test_a_protocol_without_a_number_asks_the_same_of_a_reference_that_was_measured_and_nothing_of_another(tmp_path):
    watch = looked(tmp_path, 'restore = "condition"').node._scene
    assert watch.needed({"self_score": 90.0}) == 90.0 - MARGIN
    assert watch.needed({}) is None, "a picture that was given: nobody knows what an untouched scene scores against it"
    assert watch.needed(None) is None


def test_where_nothing_can_score_a_protocol_without_a_number_asks_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(scene_watch, "scores_available", lambda: False)
    assert looked(tmp_path, 'restore = "condition"').node._scene.needed({"self_score": 90.0}) is None


def test_a_protocol_may_ask_for_nothing_and_one_from_before_asks_for_what_it_asked(tmp_path):
    assert looked(tmp_path, 'min_score = "none"').node._scene.needed({"self_score": 90.0}) is None
    assert rules({"scene": {"min_score": None}})["min_score"] is None and rules({})["min_score"] is None


def test_a_score_that_wanders_about_the_threshold_is_one_hold_and_not_many(tmp_path):
    bench = looked(tmp_path, 'min_score = 80\nrestore = "condition"')
    bench.begin()
    bench.commit()
    bench.command("void", reason=bench.campaign.opened["void_reasons"][0])
    bench.stage()
    fits = [compared(bench, score) for score in (79.0, 80.5, 78.5, 79.5, 77.5, 76.0, 78.0, 79.9, 80.0)]
    assert fits == [False, True, True, True, True, False, False, False, True]
