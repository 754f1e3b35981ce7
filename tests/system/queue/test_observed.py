"""Observations for a dry run: what was withheld of a published folder is left out, and no policy is blamed for it."""

from __future__ import annotations

import ipaddress

import pytest
from support.policies.cards import CAMERA, card_toml
from support.policies.policy_servers import FakeServer
from support.runs.campaigns import recorded_with_cameras
from support.runs.published import published
from support.runs.recordings import Recordings

from labctl.config.policy_card import parse_card
from labctl.devices import Pace
from labctl.errors import InputError
from labctl.queue import dry_run
from labctl.queue.observed import Seen, source_of
from labctl.store.verifying.verified import in_passing

HERE = [ipaddress.ip_network("127.0.0.0/8")]


def test_an_episode_whose_pictures_were_withheld_is_left_out_for_a_card_that_reads_cameras_and_for_no_other(
    recordings: Recordings,
) -> None:
    folder = recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)), withheld=1)
    with in_passing(source_of(folder).folder) as campaign:
        for cameras, few in ((("wrist",), 1), ((), 0)):
            seen = Seen(campaign, 4)
            assert len(list(seen.read(Pace(cameras=cameras)))) == 4
            assert len(seen.episodes) == len(seen._recordings.selection.episodes) - few


def test_where_no_picture_is_left_nobody_is_asked_and_the_observations_are_refused(recordings: Recordings) -> None:
    folder = recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)), withheld=9)
    card = parse_card(card_toml(inputs=CAMERA.format(key="observation/image", camera="wrist")), "card.toml")
    with FakeServer() as server:
        with pytest.raises(InputError, match="no observation to ask about"):
            dry_run.dry_run(source_of(folder), card, server.uri, HERE, questions=5, within_s=120)
        assert server.heard == []


def test_a_policy_that_was_asked_nothing_did_not_pass(recordings: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)))
    source, card = source_of(folder), parse_card(card_toml(), "card.toml")
    monkeypatch.setattr(Seen, "read", lambda self, pace: iter(()))
    monkeypatch.setattr(dry_run.endpoints, "only_allowed", lambda *_, **__: None)
    with FakeServer() as server, in_passing(source.folder) as campaign:
        question = dry_run.Question(
            folder=str(source.folder),
            driver="policy_openpi",
            endpoint=server.uri,
            card=card.model_dump(mode="json"),
            networks=[str(one) for one in HERE],
            questions=5,
        )
        with pytest.raises(InputError, match="of 5 observations none has"):
            setup = dry_run.Setup(cell=campaign.cell, fixture=campaign.fixture)
            dry_run._asked(question, source, Seen(campaign, 5), setup)
