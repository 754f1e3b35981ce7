"""What is large, burnt out or everywhere is told from light: none of it passes for a scene that is as it was."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from labctl.core.scene_words import FINE, NOT_RECOGNISED, SCENE_DIFFERS, UNLIKE, change, verdict
from labctl.scene.matching import Match, compare

HEIGHT, WIDTH = 480, 640
LIMIT_PX = 4.0
LIGHT, DARK, RED = (205, 205, 200), (60, 60, 65), (190, 50, 45)
SIDE = 1.0 + 0.15 * np.linspace(-1, 1, WIDTH)[None, :, None]


def wood() -> np.ndarray:
    """A table with a low grain."""
    grain = ndimage.gaussian_filter(np.random.default_rng(3).normal(0, 1, (HEIGHT, WIDTH)), (1, 25))
    return np.stack([level + 2.0 * grain / grain.std() for level in (150, 120, 90)], -1)


def clutter() -> np.ndarray:
    rng, found = np.random.default_rng(5), np.full((HEIGHT, WIDTH, 3), 110.0)
    for _ in range(150):
        y, x, (h, w) = rng.integers(0, HEIGHT - 40), rng.integers(0, WIDTH - 40), rng.integers(6, 40, 2)
        found[y : y + h, x : x + w] = rng.integers(40, 190, 3)
    return found


def put(table: np.ndarray, share: float, colour: tuple[int, int, int], at: tuple[float, float] = (0.5, 0.5)):
    """The table with a thing on it that covers this share of the picture."""
    h, w = round(HEIGHT * share**0.5), round(WIDTH * share**0.5)
    y, x = round((HEIGHT - h) * at[0]), round((WIDTH - w) * at[1])
    found = table.copy()
    found[y : y + h, x : x + w] = colour
    return found


def seen(scene: np.ndarray, light: float | np.ndarray = 1.0, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 1, scene.shape)
    return np.clip(np.round(scene * light + noise), 0, 255).astype(np.uint8)


def said(match: Match) -> str:
    return verdict(match.body(), LIMIT_PX)


@pytest.mark.parametrize("share", [0.05, pytest.param(0.2, marks=pytest.mark.thorough), 0.3])
@pytest.mark.parametrize("colour", [LIGHT, DARK, pytest.param(RED, marks=pytest.mark.thorough)])
def test_a_thing_however_large_is_a_change_and_no_light(colour, share):
    """From a fifth of the picture on it was fitted away as light, and the scene had 100."""
    bare, laid = wood(), put(wood(), share, colour)
    for reference, live in ((bare, laid), (laid, bare)):
        for light in (1.0, SIDE):
            match = compare(seen(reference), seen(live, light, 1))
            assert said(match) in (SCENE_DIFFERS, NOT_RECOGNISED) and match.score < 20.0
            assert said(match) == NOT_RECOGNISED or match.changed == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("light", [0.7, 1.3, SIDE])
def test_light_on_a_table_with_something_large_is_no_change(light):
    scene = put(wood(), 0.3, LIGHT)
    match = compare(seen(scene), seen(scene, light, 1))
    assert said(match) == FINE and match.score > 95.0


def test_a_soft_pool_of_light_is_no_thing():
    """It has no edge, so the fit is one of all points."""
    v, u = np.mgrid[-1 : 1 : HEIGHT * 1j, -1 : 1 : WIDTH * 1j]
    pool = 1.0 + 0.2 * np.exp(-((u - 0.4) ** 2 + (v + 0.2) ** 2) / (2 * 0.4**2))[..., None]
    match = compare(seen(wood()), seen(wood(), pool, 1))
    assert said(match) == FINE and match.score > 95.0


BURNT = {"white": (255, 255, 255), "yellow": (255, 200, 40)}


@pytest.mark.parametrize("colour", BURNT.values(), ids=BURNT)
def test_a_burnt_out_thing_that_is_gone_or_elsewhere_is_a_change(colour):
    """Neither its old place nor its new one was compared."""
    there, bare, elsewhere = put(clutter(), 0.03, colour), clutter(), put(clutter(), 0.03, colour, (0.8, 0.8))
    for reference, live in ((there, bare), (bare, there), (there, elsewhere)):
        for light in (1.0, 0.8, 1.2):
            match = compare(seen(reference), seen(live, light, 1))
            assert said(match) == SCENE_DIFFERS and match.score < 60.0


@pytest.mark.parametrize("colour", BURNT.values(), ids=BURNT)
def test_a_burnt_out_thing_that_stays_is_no_change_in_any_light(colour):
    scene = put(clutter(), 0.03, colour)
    for light in (0.7, 0.8, 1.2, 1.5, SIDE):
        for reference, live in ((1.0, light), (light, 1.0)):
            match = compare(seen(scene, reference), seen(scene, live, 1))
            assert said(match) == FINE and match.score > 95.0


def test_a_picture_that_is_unlike_everywhere_is_not_said_to_be_as_its_reference():
    """A plain table against a checkerboard scored 68, and nothing in the scene had changed."""
    plain, tiles = np.full((HEIGHT, WIDTH, 3), 120.0), np.full((HEIGHT, WIDTH, 3), 120.0)
    rows, columns = np.mgrid[:HEIGHT, : WIDTH * 3 // 5] // 24
    tiles[:, : WIDTH * 3 // 5][(rows + columns) % 2 == 1] = 200
    match = compare(seen(plain), seen(tiles, 1.0, 1))
    assert match.score < 90.0 and said(match) in (UNLIKE, SCENE_DIFFERS)
    assert "nothing in the scene" not in change(match.body(), (WIDTH, HEIGHT))
    body = {**match.body(), "changed": 0.0, "regions": [], "ssim": 0.58}
    assert verdict(body, LIMIT_PX) == UNLIKE and "similarity 0.58" in change(body, (WIDTH, HEIGHT))
    assert verdict({**body, "ssim": 0.97}, LIMIT_PX) == FINE
