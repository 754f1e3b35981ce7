"""Claims about a camera's part in putting scenes back: ghosts, comparisons beside the loop, photos after the word."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runs.scene_pictures import HEIGHT, WIDTH, Stage, arranged

from labctl.bus import Message, Step, decode, encode
from labctl.clock import SECOND
from labctl.devices import Frame
from labctl.nodes.photos import COMPARE_NS, GHOST_NS, GHOST_WIDTH, UNSEEN_NS, ScenePhotos
from labctl.runtime.hosting.simulated_host import finish_work
from labctl.store.pictures import decode_png, encode_png

STAGE = Stage()
ITEMS = arranged()
REFERENCE = STAGE.look(ITEMS)
SAME = STAGE.look(ITEMS, seed=1)
OTHER = STAGE.look(ITEMS[1:], seed=2)


class Camera:
    """One camera's photos, its folder, and what came of its work."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.folder = folder
        self.photos = ScenePhotos("shoulder", folder, durable=False, **{"frames": 1, **given})
        self.now_ns = 10 * SECOND
        self.sent: list[Message] = []

    def keep(self, picture: np.ndarray, name: str = "reference") -> dict[str, Any]:
        content = encode_png(picture)
        (self.folder / "photos").mkdir(exist_ok=True)
        (self.folder / f"photos/{name}.png").write_bytes(content)
        return {"file": f"photos/{name}.png", "sha256": hashlib.sha256(content).hexdigest()}

    def read(self, kind: str, **body: Any) -> None:
        self.photos.hear(Message("camera:shoulder", kind, body), 0, Step())

    def watch(self, scene: Any, pose: Any = None, *, compare: bool = True, round_: int = 1) -> None:
        self.read("compare", trial="t-1", round=round_, compare=compare, scene=scene, pose=pose or scene, counts=True)

    def see(self, picture: np.ndarray, *, after_ns: int = 0, work: bool = True) -> Step:
        """A frame comes; its work is done at once, as on a simulated clock."""
        self.now_ns += after_ns
        step = Step()
        self.photos.see(Frame(picture, self.now_ns, 0.0, 0), step)
        for done in step.work if work else ():
            message, _ = finish_work(done)
            self.photos.hear(message, 0, step)
        self.sent += step.out
        return step

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.sent if message.kind == kind]


@pytest.fixture
def camera(tmp_path: Path) -> Camera:
    return Camera(tmp_path)


def test_outside_a_staging_nothing_is_done_with_frames(camera):
    step = camera.see(SAME)
    assert not step.out and not step.work
    camera.watch(camera.keep(REFERENCE))
    camera.read("compare", trial=None, round=2)
    assert not camera.see(SAME, after_ns=SECOND).work


def test_while_a_scene_is_staged_it_is_compared_about_once_a_second_and_shown_twice(camera):
    camera.watch(camera.keep(REFERENCE))
    for _ in range(40):
        camera.see(SAME, after_ns=SECOND // 10)
    assert len(camera.of("compared")) == 4 * SECOND // COMPARE_NS
    assert len(camera.of("ghost")) == 4 * SECOND // GHOST_NS
    assert all(message.to == "run" for message in camera.of("compared"))
    assert all(message.to == "@preview" for message in camera.of("ghost"))
    body = camera.of("compared")[0].body
    assert body["scene"]["score"] > 99 and body["pose"]["moved_px"] < 0.2 and "problem" not in body
    assert (body["camera"], body["trial"], body["round"]) == ("shoulder", "t-1", 1)


def test_a_ghost_is_small_over_its_reference_and_carries_the_match(camera):
    camera.watch(camera.keep(REFERENCE))
    camera.see(OTHER)
    ghost = decode(encode(camera.of("ghost")[0]))
    height = HEIGHT * GHOST_WIDTH // WIDTH
    assert ghost.arrays["image"].shape == ghost.arrays["reference"].shape == (height, GHOST_WIDTH, 3)
    assert np.array_equal(ghost.arrays["reference"], REFERENCE[::2, ::2])
    assert ghost.body["scene"]["score"] < 70 and ghost.body["counts"]


def test_before_the_arm_is_home_there_are_ghosts_and_no_scores(camera):
    camera.watch(camera.keep(REFERENCE), compare=False)
    for _ in range(20):
        camera.see(SAME, after_ns=SECOND // 10)
    assert camera.of("ghost") and not camera.of("compared")
    assert "scene" not in camera.of("ghost")[0].body


def test_a_slow_comparison_delays_nothing_and_the_next_waits_for_it(camera):
    camera.watch(camera.keep(REFERENCE))
    first = camera.see(SAME, work=False)
    assert len(first.work) == 1 and not first.out
    for _ in range(5):
        assert not camera.see(SAME, after_ns=SECOND, work=False).work


def test_what_was_found_of_an_earlier_reference_is_not_told(camera):
    camera.watch(camera.keep(REFERENCE))
    late = camera.see(OTHER, work=False).work[0]
    camera.watch(camera.keep(OTHER, "new"), round_=2)
    step = Step()
    camera.photos.hear(finish_work(late)[0], 0, step)
    assert not step.out
    camera.see(OTHER, after_ns=SECOND)
    assert camera.of("compared")[0].body["round"] == 2
    assert camera.of("compared")[0].body["scene"]["score"] > 99


def test_scene_and_place_may_be_held_against_two_photos(camera):
    """A block's own scene, and the first photo from this mount: the items differ there, the camera does not."""
    first = camera.keep(STAGE.look(arranged(seed=7)), "first")
    camera.watch(camera.keep(REFERENCE), first)
    camera.see(SAME)
    body = camera.of("compared")[0].body
    assert body["scene"]["score"] > 99 and body["pose"]["moved_px"] < 0.2
    camera.watch(None, first, round_=2)
    camera.see(STAGE.look(ITEMS, shift_px=(8.0, 0.0)), after_ns=SECOND)
    body = camera.of("compared")[1].body
    assert "scene" not in body and body["pose"]["shift_px"][0] == pytest.approx(8.0, abs=0.3)


def test_without_any_reference_there_is_nothing_to_show(camera):
    camera.watch(None)
    camera.see(SAME)
    assert not camera.of("ghost")
    assert not {"scene", "pose"} & {*camera.of("compared")[0].body}


def test_a_photo_is_the_first_frame_after_the_word_kept_without_loss(camera):
    file = "photos/t-1/5-1-shoulder.png"
    camera.read("photo", request=7, file=file, after_ns=camera.now_ns + SECOND, scene=None, pose=None)
    assert camera.photos.waiting
    assert not camera.see(OTHER, after_ns=SECOND - 1).work, "its light fell before"
    camera.see(SAME, after_ns=1)
    assert not camera.photos.waiting
    (told,) = camera.of("photographed")
    content = (camera.folder / file).read_bytes()
    assert np.array_equal(decode_png(content), SAME)
    sha256 = hashlib.sha256(content).hexdigest()
    assert told.body["photo"] == {"file": file, "sha256": sha256, "t_ns": camera.now_ns}
    assert (told.to, told.body["request"], told.body["camera"]) == ("run", 7, "shoulder")


def test_the_photo_itself_is_compared(camera):
    reference = camera.keep(REFERENCE)
    camera.watch(reference)
    camera.see(SAME)
    camera.read("photo", request=1, file="photos/p.png", after_ns=camera.now_ns, scene=reference, pose=reference)
    camera.see(OTHER)
    assert camera.of("compared")[-1].body["scene"]["score"] > 99
    assert camera.of("photographed")[0].body["scene"]["score"] < 70


def test_a_photo_that_cannot_be_written_is_told_with_the_reason(camera):
    (camera.folder / "photos").write_text("a file where a folder should be")
    camera.read("photo", request=1, file="photos/p.png", after_ns=0, scene=None, pose=None)
    camera.see(SAME)
    (told,) = camera.of("photographed")
    assert told.body["photo"] is None and "photos" in told.body["problem"]


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_reference_that_is_gone_or_was_changed_gives_a_problem_and_still_a_photo(camera, damage):
    reference = camera.keep(REFERENCE)
    path = camera.folder / reference["file"]
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(encode_png(OTHER))
    camera.watch(reference)
    camera.see(SAME)
    assert damage in camera.of("compared")[0].body["problem"] and not camera.of("ghost")
    camera.read("photo", request=1, file="photos/p.png", after_ns=0, scene=reference, pose=reference)
    camera.see(SAME, after_ns=SECOND)
    told = camera.of("photographed")[0].body
    assert told["photo"] is not None and damage in told["problem"] and "scene" not in told


def test_a_reference_of_another_size_is_a_problem_not_a_crash(camera):
    camera.watch(camera.keep(REFERENCE[::2, ::2]))
    camera.see(SAME)
    assert "two sizes" in camera.of("compared")[0].body["problem"]


def test_what_no_comparison_foresees_is_a_problem_and_the_next_look_goes_on(camera):
    camera.watch(camera.keep(REFERENCE))
    camera.see(SAME, work=False)
    step = Step()
    camera.photos.hear(Message("camera:shoulder", "looked", {"error": "TypeError: x", "tag": "1"}), 7, step)
    (told,) = step.out
    assert (told.kind, told.body["round"], told.body["problem"]) == ("compared", 1, "TypeError: x")
    camera.see(SAME, after_ns=2 * SECOND)
    assert "problem" not in camera.of("compared")[0].body


def test_what_went_wrong_at_a_look_at_one_scene_is_not_said_of_the_next(camera):
    """A look that began before the next trial was staged, and failed after."""
    camera.watch(camera.keep(REFERENCE))
    (late,) = [work.tag for work in camera.see(SAME, work=False).work]
    camera.watch(camera.keep(REFERENCE), round_=2)
    step = Step()
    camera.photos.hear(Message("camera:shoulder", "looked", {"error": "TypeError: x", "tag": late}), 7, step)
    assert not step.out
    camera.see(SAME)
    (told,) = camera.of("compared")
    assert told.body["round"] == 2 and "problem" not in told.body, "and the next look goes on"


def test_without_scikit_image_there_is_a_photo_a_ghost_the_cameras_place_and_the_pip_line(camera, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.metrics", None)
    camera.watch(camera.keep(REFERENCE))
    camera.see(SAME)
    body = camera.of("compared")[0].body
    assert "scene" not in body and "pip install 'labctl[scene]'" in body["problem"]
    assert body["pose"]["moved_px"] < 0.2 and camera.of("ghost")


def test_what_the_cell_says_to_ignore_is_ignored(tmp_path):
    plain, blind = Camera(tmp_path), Camera(tmp_path, ignore=((0.5, 0.3, 0.7, 0.6),))
    for camera in (plain, blind):
        camera.watch(camera.keep(REFERENCE))
        camera.see(OTHER)
    assert plain.of("compared")[0].body["scene"]["changed"] > 0
    assert blind.of("compared")[0].body["scene"]["changed"] == 0


def test_in_simulated_time_nobody_looks_so_it_is_compared_less_often(tmp_path):
    camera = Camera(tmp_path, real_time=False)
    camera.watch(camera.keep(REFERENCE))
    for _ in range(100):
        camera.see(SAME, after_ns=SECOND // 10)
    assert len(camera.of("compared")) == len(camera.of("ghost")) == 10 * SECOND // UNSEEN_NS
