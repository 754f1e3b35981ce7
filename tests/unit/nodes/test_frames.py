"""Full pictures are published only while an episode is open that wants them, and hold the times of the frame. Edits do
what their names say, by a seed alone, and leave the picture they are given alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.cameras.camera_bench import Bench, close, open_

from labctl.bus import Message
from labctl.messages.edits import EditEntry, delay_s
from labctl.nodes.edited_pictures import EditedPictures, edits_of

RNG = np.random.default_rng(0)
SCENE = RNG.integers(0, 256, (48, 64, 3), dtype=np.uint8)


def test_nothing_is_published_until_it_is_wanted(tmp_path):
    bench = Bench(tmp_path)
    bench.send(open_("e1"))
    bench.run(1.0)
    assert not bench.of("frame")
    bench.send(Message("camera:wrist", "open", {"episode": "e2", "frames": True}))
    bench.run(0.2)
    message = bench.of("frame")[-1]
    assert (message.to, message.body["camera"]) == ("@frames", "wrist")
    assert message.arrays["image"].shape == (48, 64, 3)
    bench.send(close("e2"))
    assert message.body["t_ns"] in bench.rows()[:, 2]
    said = len(bench.of("frame"))
    bench.run(0.5)
    assert len(bench.of("frame")) == said


def edit(name: str, amount: float, *cameras: str) -> EditEntry:
    return {"edit": name, "cameras": list(cameras), "amount": amount}


def edited(*edits: EditEntry, image: np.ndarray = SCENE, seed: int = 1) -> np.ndarray | None:
    return EditedPictures("wrist", edits, seed).of(image)


def test_a_blur_takes_the_fine_detail_and_keeps_the_mean() -> None:
    made = edited(edit("blur", 4.0))
    assert made.std() < 0.2 * SCENE.std()
    assert made.mean() == pytest.approx(SCENE.mean(), abs=3)


def test_a_hue_turned_by_a_third_makes_red_green_and_all_round_nothing_but_rounding() -> None:
    red = np.full((4, 4, 3), (200, 0, 0), np.uint8)
    assert edited(edit("recolour", 120.0), image=red)[0, 0] == pytest.approx((0, 200, 0), abs=4)
    assert edited(edit("recolour", 359.9), image=red)[0, 0] == pytest.approx((200, 0, 0), abs=4)


@pytest.mark.parametrize(
    ("one", "level", "becomes"),
    [
        (edit("brightness", 0.2), 100, 151),
        (edit("brightness", -0.5), 100, 0),
        (edit("contrast", 2.0), 100, 72),
        (edit("contrast", 0.5), 228, 178),
        (edit("contrast", 9.0), 200, 255),
    ],
)
def test_brightness_adds_and_contrast_multiplies_from_middle_grey_within_the_range(one, level, becomes) -> None:
    assert edited(one, image=np.full((2, 2, 3), level, np.uint8)).tolist() == np.full((2, 2, 3), becomes).tolist()


@pytest.mark.parametrize("share", [0.01, 0.25, 0.9])
def test_a_patch_covers_its_share_at_one_place_all_episode_long_and_elsewhere_by_another_seed(share: float) -> None:
    made = EditedPictures("wrist", [edit("occlude", share)], 1)
    masks = [(made.of(image) == 128).all(axis=2) for image in (SCENE, 255 - SCENE)]
    assert (masks[0] == masks[1]).mean() > 0.999
    assert masks[0].mean() == pytest.approx(share, abs=0.02)
    others = [(edited(edit("occlude", share), seed=seed) == 128).all(axis=2) for seed in range(2, 8)]
    assert any((other != masks[0]).any() for other in others)


def test_frames_are_dropped_by_the_seed_and_the_how_manieth_it_is() -> None:
    def kept(seed: int, camera: str = "wrist") -> list[bool]:
        made = EditedPictures(camera, [edit("drop", 0.3)], seed)
        return [made.of(SCENE) is not None for _ in range(400)]

    assert kept(1) == kept(1)
    assert kept(1) != kept(2) and kept(1) != kept(1, "front")
    assert np.mean(kept(1)) == pytest.approx(0.7, abs=0.1)


def test_edits_are_made_in_their_order_and_the_picture_handed_in_stays() -> None:
    before = SCENE.copy()
    patch_last = edited(edit("blur", 3.0), edit("occlude", 0.2))
    patch_first = edited(edit("occlude", 0.2), edit("blur", 3.0))
    assert ((patch_last == 128).all(axis=2)).mean() > 1.2 * ((patch_first == 128).all(axis=2)).mean()
    assert (before == SCENE).all()


def test_an_edit_is_of_the_cameras_it_names_or_of_all_and_a_latency_of_none() -> None:
    edits = [edit("blur", 1.0, "front"), edit("drop", 0.1), edit("latency", 0.2)]
    assert edits_of("wrist", edits) == [edits[1]]
    assert edits_of("front", edits) == edits[:2]
    assert delay_s(edits) == 0.2 and delay_s(edits[:2]) == 0.0
