"""Claims about a seal's permissions: whoever else may read any part of it, the group or everyone, blinding is trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy

from labctl.clock import ManualClock
from labctl.core.design import draw
from labctl.core.events import Kind
from labctl.store.campaign import Campaign
from labctl.store.ledger import FOLDER, OPENINGS, PROTOCOL, SCHEDULE, Ledger

SECRET = bytes(range(32))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    Ledger.create(tmp_path, draw(["spoons/layout-1"], ["human", "policy-a"], 2, SECRET), SECRET, "")
    return Ledger.open(tmp_path)


@pytest.mark.parametrize("part", [".", SCHEDULE, PROTOCOL, OPENINGS])
@pytest.mark.parametrize("others", [0o040, 0o004], ids=["the group", "everyone else"])
def test_a_part_that_others_may_read_is_no_private_seal(tmp_path: Path, ledger: Ledger, part: str, others: int) -> None:
    path = tmp_path / FOLDER / part
    path.chmod(path.stat().st_mode | others)
    assert ledger.loose_permissions


@pytest.mark.parametrize(
    ("folder", "file", "loose"), [(0o755, 0o644, True), (0o700, 0o644, False), (0o755, 0o600, False)]
)
def test_traces_that_others_may_read_tell_arms_apart(
    tmp_path: Path, ledger: Ledger, folder: int, file: int, loose: bool
) -> None:
    """Issue 17.15: answer times in them separated a person and each policy perfectly before unblinding."""
    traces = tmp_path / "traces.db"
    traces.touch()
    traces.chmod(file)
    tmp_path.chmod(folder)
    assert ledger.loose_permissions is loose


@pytest.mark.parametrize(("mode", "loose"), [(0o640, True), (0o600, False)])
def test_traces_without_what_tells_arms_apart_may_be_anybodys(
    tmp_path: Path, ledger: Ledger, mode: int, loose: bool
) -> None:
    for path in (tmp_path / "traces.db", tmp_path / FOLDER / "traces.db"):
        path.touch()
    (tmp_path / "traces.db").chmod(0o644)
    (tmp_path / FOLDER / "traces.db").chmod(mode)
    tmp_path.chmod(0o755)
    assert ledger.loose_permissions is loose


def test_a_campaign_and_its_databases_are_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = make_campaign(tmp_path, [HUMAN, policy("a")]).folder
        with Campaign.open(folder, writer=True) as campaign:
            campaign.log(Kind.NOTE, {"text": "x"}, anchor=ManualClock(10**9).anchor(), who="ann")
            made = {path.name: path.stat().st_mode & 0o777 for path in folder.glob("*.db*")}
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {"journal.db", "traces.db", "journal.db-wal"} <= set(made) and set(made.values()) == {0o600}


def test_a_seal_is_private_as_it_is_made(ledger: Ledger) -> None:
    assert not ledger.loose_permissions
