"""A policy card is tried against the cell before a campaign is opened: what could never run is not frozen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.policies.cards import CAMERA, card_toml
from support.runs.campaigns import HUMAN, make_campaign

from labctl.errors import InputError

SEEING = {"name": "mine", "kind": "policy", "controller": "policy_callable"}


def opened(lab: Path, latency_s: float) -> Path:
    (lab / "protocols/cards").mkdir(parents=True)
    eyes = CAMERA.format(key="observation/wrist", camera="wrist")
    (lab / "protocols/cards/mine.toml").write_text(card_toml("callable", inputs=eyes), "utf-8")
    arm = {**SEEING, "options": {"card": "cards/mine.toml", "function": "math:sqrt"}}
    slow = {'driver = "sim_camera"': f'driver = "sim_camera"\nlatency_s = {latency_s}'}
    return make_campaign(lab, [HUMAN, arm], cameras=True, cell=slow).folder


@pytest.mark.parametrize("latency_s", [0.3, 0.35])
def test_a_camera_whose_pictures_are_always_too_old_for_a_card_is_refused(tmp_path: Path, latency_s: float) -> None:
    """It was sealed, and every trial of its arm was void as not_ready: the campaign was lost."""
    said = (
        f"camera wrist: latency_s = {latency_s} and the card's image.max_age_s = 0.3: no picture is ever fresh enough"
    )
    with pytest.raises(InputError, match=re.escape(said)):
        opened(tmp_path, latency_s)
    assert not list((tmp_path / "campaigns").iterdir())


def test_one_whose_pictures_come_in_time_is_taken(tmp_path: Path) -> None:
    assert opened(tmp_path, 0.29).is_dir()
