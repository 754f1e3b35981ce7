"""A dry run speaks every dialect by the clients that campaigns use, with recorded states and pictures."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import numpy as np
import pytest
from support.policies.cards import CAMERA, card_toml
from support.policies.gr00t_servers import FakeGr00t
from support.policies.policy_servers import JOINTS, FakeServer
from support.runs.campaigns import ROOT, recorded_with_cameras, unblinded_copy
from support.runs.recordings import Recordings

from labctl.config.policy_card import parse_card
from labctl.errors import StateError
from labctl.queue.dry_run import dry_run
from labctl.queue.observed import source_of

PUBLISHED = ROOT / "docs/published/simulated-cell"
HERE = [ipaddress.ip_network("127.0.0.0/8")]
PROMPT = '[[input]]\nkey = "language.annotation.human.task_description"\nprompt = true\n'


@pytest.mark.thorough
def test_a_dry_run_asks_roboarenas_and_gr00ts_servers_too() -> None:
    source = source_of(PUBLISHED)
    with FakeServer(dialect="roboarena") as server:
        card = parse_card(card_toml("roboarena"), "card.toml")
        found = dry_run(source, card, server.uri, HERE, questions=5, within_s=120)
        assert found["problems"] == [] and found["asked"] == 5 and len(server.resets) == 2
    with FakeGr00t() as server:
        card = parse_card(card_toml("gr00t", inputs=PROMPT), "card.toml")
        found = dry_run(source, card, server.uri, HERE, questions=5, within_s=120)
        assert found["problems"] == [] and found["asked"] == 5


@pytest.mark.thorough
def test_a_policy_sees_recorded_pictures_beside_the_states_of_their_time(
    tmp_path: Path, recordings: Recordings
) -> None:
    blinded = recordings.of(recorded_with_cameras)
    with pytest.raises(StateError, match="shown to nobody outside"):
        source_of(blinded)
    folder = unblinded_copy(tmp_path / "lab", str(blinded))
    card = parse_card(card_toml(inputs=CAMERA.format(key="observation/image", camera="wrist")), "card.toml")
    with FakeServer() as server:
        found = dry_run(source_of(folder), card, server.uri, HERE, questions=6, within_s=120)
    assert found["problems"] == [] and found["asked"] == 6 and len(found["episodes"]) == 2
    asked = server.heard[card.timing.warm_calls :]
    pictures = np.array([one["observation/image"] for one in asked])
    assert pictures.shape == (6, 48, 64, 3) and pictures.dtype == np.uint8
    assert len({one[JOINTS].tobytes() for one in asked}) > 1 and pictures.std() > 1, "they are no grey walls"


@pytest.mark.thorough
def test_a_card_that_reads_a_camera_which_was_not_recorded_is_told_so() -> None:
    card = parse_card(card_toml(inputs=CAMERA.format(key="observation/image", camera="wrist")), "card.toml")
    with FakeServer() as server:
        found = dry_run(source_of(PUBLISHED), card, server.uri, HERE, questions=2, within_s=120)
    assert not found["passed"] and found["asked"] == 0 and server.heard == []
    assert found["problems"][0]
