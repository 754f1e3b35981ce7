"""Claims about match scores on drawn scenes: what the camera did, what in the scene changed, and that light is
neither.

Run this file to print the table that docs/scene-reset.md shows.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runs.scene_pictures import HEIGHT, WIDTH, Stage, arranged

from labctl.core.scene_words import (
    CAMERA_MOVED,
    FINE,
    NOT_RECOGNISED,
    PART,
    SCENE_DIFFERS,
    change,
    movement,
    place,
    verdict,
)
from labctl.errors import MissingExtra
from labctl.scene.matching import Match, camera_move, compare, difference

LIMIT_PX = 4.0
VIEWS = ("over_shoulder", "wrist")
SHIFTS = {3: (2.4, -1.8), 8: (6.4, -4.8), 20: (16.0, -12.0)}  # px: right and down


@cache
def stage(view: str = "over_shoulder", thing: str = "towels") -> Stage:
    return Stage(view, thing)


def moved(items: np.ndarray, *, x: float = 0.0, y: float = 0.0, yaw: float = 0.0) -> np.ndarray:
    """The first item put elsewhere: m, rad."""
    found = items.copy()
    found[0] += (x, y, 0.0, yaw)
    return found


def fine_ones(view: str, thing: str) -> dict[str, np.ndarray]:
    """Looks at a scene that is as its reference."""
    scene, items = stage(view, thing), arranged(thing)
    return {
        "the same": scene.look(items, seed=1),
        "noise of 8 grey levels": scene.look(items, seed=1, noise=8.0),
        "light 20 % weaker": scene.look(items, seed=1, light=0.8),
        "light 20 % stronger": scene.look(items, seed=1, light=1.2),
        "light from one side": scene.look(items, seed=1, slope=0.3),
    }


@cache
def table(view: str) -> dict[str, Match]:
    """A match for every way in which a scene of towels may differ from its reference."""
    scene, items = stage(view), arranged()
    reference = scene.look(items)
    extra = np.vstack([items, [0.48, 0.24, items[0, 2], 0.3]])
    looks = {
        **fine_ones(view, "towels"),
        **{f"camera moved {n} px": scene.look(items, seed=1, shift_px=shift) for n, shift in SHIFTS.items()},
        "camera turned 1°": scene.look(items, seed=1, rotation_deg=1.0),
        "camera turned 3°": scene.look(items, seed=1, rotation_deg=3.0),
        "item moved 1 cm": scene.look(moved(items, y=0.01), seed=1),
        "item moved 3 cm": scene.look(moved(items, y=0.03), seed=1),
        "item moved 10 cm": scene.look(moved(items, y=0.10), seed=1),
        "item turned 45°": scene.look(moved(items, yaw=math.radians(45)), seed=1),
        "item missing": scene.look(items[1:], seed=1),
        "item too many": scene.look(extra, seed=1),
        "other items' places": scene.look(arranged(seed=7), seed=1),
        "camera moved 8 px, item moved 3 cm": scene.look(moved(items, y=0.03), seed=1, shift_px=SHIFTS[8]),
        "light 20 % weaker, item moved 3 cm": scene.look(moved(items, y=0.03), seed=1, light=0.8),
        "light off": scene.look(items, seed=1, light=0.02),
        "something else": np.ascontiguousarray(reference[::-1]),
    }
    return {name: compare(reference, look) for name, look in looks.items()}


def lines(view: str) -> list[str]:
    """The table as Markdown rows."""
    rows = [f"| {view.replace('_', ' ')} | score | movement | changed | verdict |", "|---|---|---|---|---|"]
    for name, match in table(view).items():
        body = match.body()
        said = movement(body)
        rows.append(f"| {name} | {body['score']} | {said} | {body['changed']:.3%} | {verdict(body, LIMIT_PX)} |")
    return rows


ITEM_ONES = (
    *("item moved 1 cm", "item moved 3 cm", "item moved 10 cm", "item turned 45°", "item missing", "item too many"),
    "other items' places",
)


@pytest.mark.thorough
@pytest.mark.parametrize("view", VIEWS)
def test_the_table_of_scores_is_printed(view):
    print("\n".join(["", *lines(view)]))
    assert len(lines(view)) == len(table(view)) + 2


MORE = [pytest.param(thing, marks=pytest.mark.thorough) for thing in ("wooden spoons", "scissors")]


@pytest.mark.parametrize("thing", ["towels", "batteries", *MORE])
@pytest.mark.parametrize("view", VIEWS)
def test_noise_and_light_are_no_change(view, thing):
    reference = stage(view, thing).look(arranged(thing))
    for name, look in fine_ones(view, thing).items():
        match = compare(reference, look)
        assert verdict(match.body(), LIMIT_PX) == FINE, name
        assert match.score >= 99.0, name


@pytest.mark.parametrize("view", [VIEWS[0], pytest.param(VIEWS[1], marks=pytest.mark.thorough)])
def test_a_moved_camera_is_a_camera_and_not_a_changed_scene(view):
    found = table(view)
    for px, shift in SHIFTS.items():
        match = found[f"camera moved {px} px"]
        assert match.move.shift_px == pytest.approx(shift, abs=0.3)
        assert match.move.moved_px == pytest.approx(px, abs=0.3)
        assert match.changed < 1e-4
        assert verdict(match.body(), LIMIT_PX) == (CAMERA_MOVED if px > LIMIT_PX else FINE)
    for degrees in (1, 3):
        match = found[f"camera turned {degrees}°"]
        assert match.move.rotation_deg == pytest.approx(degrees, abs=0.1)
        assert match.move.moved_px == pytest.approx(math.radians(degrees) * math.hypot(WIDTH, HEIGHT) / 2, rel=0.05)
        assert match.changed < 1e-4
        assert verdict(match.body(), LIMIT_PX) == CAMERA_MOVED


@pytest.mark.parametrize("view", VIEWS)
def test_a_changed_scene_is_not_a_moved_camera(view):
    for name in ITEM_ONES:
        match = table(view)[name]
        assert match.move.moved_px < 0.3, name
        assert verdict(match.body(), LIMIT_PX) == SCENE_DIFFERS, name


@pytest.mark.parametrize("view", VIEWS)
def test_scores_fall_with_what_is_wrong(view):
    score = {name: match.score for name, match in table(view).items()}
    for order in (
        ("the same", "item moved 1 cm", "item moved 3 cm", "item moved 10 cm"),
        ("the same", "camera moved 3 px", "camera moved 8 px", "camera moved 20 px", "light off"),
        ("the same", "camera turned 1°", "camera turned 3°", "something else"),
        ("item moved 1 cm", "item missing", "item too many"),
        ("item moved 3 cm", "camera moved 8 px, item moved 3 cm"),
        ("camera moved 8 px", "camera moved 8 px, item moved 3 cm"),
    ):
        values = [score[name] for name in order]
        assert values == sorted(values, reverse=True) and len(set(values)) == len(values), order


@pytest.mark.parametrize("view", VIEWS)
def test_light_does_not_hide_a_moved_item(view):
    found = table(view)
    plain, dim = found["item moved 3 cm"], found["light 20 % weaker, item moved 3 cm"]
    assert dim.changed == pytest.approx(plain.changed, rel=0.15)


def test_the_changed_region_is_where_the_item_was():
    scene, items = stage(), arranged()
    reference = scene.look(items)
    for item in range(len(items)):
        without = np.delete(items, item, axis=0)
        match, differs = difference(reference, scene.look(without, seed=1))
        alone = np.abs(scene.look(items[[item]], noise=0.0).astype(int) - scene.look(items[:0], noise=0.0)).max(-1) > 20
        rows, columns = np.nonzero(alone)
        left, top, right, bottom = match.regions[0].box
        assert columns.min() - 8 <= left and right <= columns.max() + 8
        assert rows.min() - 8 <= top and bottom <= rows.max() + 8
        assert differs[top:bottom, left:right].max() == 1.0


@pytest.mark.thorough
@settings(max_examples=12, deadline=None)
@given(
    right=st.floats(-25, 25), down=st.floats(-25, 25), turn=st.floats(-3, 3), view=st.sampled_from(VIEWS),
    other=st.booleans(), light=st.floats(0.7, 1.2),
)  # fmt: skip
def test_the_camera_is_found_whatever_lies_in_the_scene(right, down, turn, view, other, light):
    scene = stage(view)
    reference = scene.look(arranged())
    items = arranged(seed=7) if other else arranged()
    move = camera_move(reference, scene.look(items, shift_px=(right, down), rotation_deg=turn, light=light, seed=1))
    assert move.shift_px == pytest.approx((right, down), abs=0.6)
    assert move.rotation_deg == pytest.approx(turn, abs=0.15)


def test_what_is_ignored_does_not_count():
    scene, items = stage(), arranged()
    reference, live = scene.look(items), scene.look(items[1:], seed=1)
    seen = compare(reference, live)
    left, top, right, bottom = seen.regions[0].box
    box = ((left - 4) / WIDTH, (top - 4) / HEIGHT, (right + 4) / WIDTH, (bottom + 4) / HEIGHT)
    assert compare(reference, live, ignore=[box]).changed == 0.0
    assert compare(reference, live, ignore=[(0.0, 0.0, 0.2, 0.2)]).changed == pytest.approx(seen.changed, rel=0.1)


def test_less_than_the_tolerance_does_not_count_but_a_missing_thing_does():
    """In the wrist camera 5 mm are some 5 px; a towel is over 100 px wide."""
    scene, items = stage("wrist"), arranged()
    reference, live = scene.look(items), scene.look(moved(items, y=0.005), seed=1)
    assert compare(reference, live).changed > 1e-3
    assert compare(reference, live, tolerance_px=8.0).changed < PART
    assert compare(reference, scene.look(items[1:], seed=1), tolerance_px=8.0).changed > 1e-2


@pytest.mark.parametrize("name", ["light off", "something else"])
def test_a_view_that_is_not_recognised_says_so_and_scores_nothing(name):
    match = table("over_shoulder")[name]
    assert match.score == 0.0 and match.move.shift_px is None
    assert match.move.note
    assert verdict(match.body(), LIMIT_PX) == NOT_RECOGNISED


@pytest.mark.parametrize("level", [0, 255])
def test_a_covered_lens_is_not_recognised(level):
    reference = stage().look(arranged())
    blank = np.full_like(reference, level)
    assert compare(reference, blank).score == 0.0
    assert camera_move(reference, blank).note


def test_a_blank_reference_cannot_tell_about_the_camera():
    blank = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    match = compare(blank, blank)
    assert match.move.moved_px is None and not match.move.note
    assert match.score == 100.0


def test_pictures_smaller_than_what_is_looked_for_are_compared_all_the_same():
    rng = np.random.default_rng(3)
    picture = rng.integers(0, 255, (6, 8, 3)).astype(np.uint8)
    assert compare(picture, picture).score == 100.0


def test_the_same_bytes_give_the_same_match():
    scene, items = stage(), arranged()
    pair = scene.look(items), scene.look(items[1:], seed=1, shift_px=(3.3, 0.0))
    assert compare(*pair) == compare(*pair)


def test_pictures_of_two_sizes_are_refused():
    with pytest.raises(ValueError, match="two sizes"):
        compare(np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5, 3), np.uint8))


def test_without_the_extra_there_is_no_score_but_the_camera_is_still_watched(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.metrics", None)
    scene, items = stage(), arranged()
    pair = scene.look(items), scene.look(items, shift_px=(8.0, 0.0))
    with pytest.raises(MissingExtra, match=r"labctl\[scene\]"):
        compare(*pair)
    assert camera_move(*pair).moved_px == pytest.approx(8.0, abs=0.3)


def test_words_say_which_way_and_where():
    body = {"shift_px": [6.5, -4.71], "rotation_deg": -0.4, "moved_px": 10.8, "note": ""}
    assert movement(body) == "6.5 px to the right and 4.7 px up, turned 0.4° clockwise"
    assert movement({**body, "shift_px": [-0.1, 0.1]}) == "turned 0.4° clockwise"
    assert movement({**body, "shift_px": [0.0, 0.0], "rotation_deg": 0.01}) == "not moved"
    assert movement({**body, "note": "3 of 40 places of the reference were found"}).startswith("its view is not")
    regions = [{"box": [10, 10, 40, 40], "share": 0.002}, {"box": [300, 200, 310, 210], "share": 0.0008}]
    assert change({**body, "changed": 0.0028, "regions": regions}, (640, 480)) == (
        "0.28 % of the picture changed, most of it at the upper left"
    )
    assert change({**body, "changed": 0.0, "regions": []}, (640, 480)) == "nothing in the scene changed"
    named = {place((x, y, x, y), (300, 300)) for x in (10, 150, 290) for y in (10, 150, 290)}
    assert len(named) == 9


if __name__ == "__main__":
    sys.stdout.write("\n\n".join("\n".join(lines(view)) for view in VIEWS) + "\n")
