"""Claims about a seal's permissions: whoever else may read any part of it, the group or everyone, blinding is trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.core.design import draw
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


def test_a_seal_is_private_as_it_is_made(ledger: Ledger) -> None:
    assert not ledger.loose_permissions
