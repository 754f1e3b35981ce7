"""The pictures of the console in the documentation come from the console: each is one of the six that are drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.screens.console_pictures import PICTURES, shots

SAYS = {
    "run": "you counted 1 of 2 items moved",
    "score": "so 1 remains in the source tote",
    "staging": "match 78 of 100, scene differs",
    "review": "the detector saw 1 moved, the assessor 2",
    "hold": "Acknowledge: ann stopped the robot",
    "hand": "bring the leader to the robot",
}


@pytest.mark.thorough
def test_every_picture_of_the_guide_is_drawn_from_a_simulated_trial_and_fetches_nothing(tmp_path: Path):
    found = {}
    for name, svg in shots(tmp_path):
        words = re.sub(r"<[^>]+>", " ", svg).replace("&#160;", " ")
        assert SAYS[name] in " ".join(words.split()), name
        assert "url(" not in re.sub(r"url\(#[^)]*\)", "", svg) and "@font-face" not in svg
        found[name] = svg
    assert set(found) == set(SAYS) == {path.stem.removeprefix("console_") for path in PICTURES.glob("console_*.png")}
