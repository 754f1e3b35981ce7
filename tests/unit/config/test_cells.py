"""[cells]: cells share a campaign with equally many blocks of every condition each, or the protocol is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.config.protocol_schema import Protocol, parse_protocol
from labctl.errors import InputError

DEMO = (Path(__file__).resolve().parents[3] / "protocols" / "demo.toml").read_text()


def with_cells(table: str, blocks: int = 4) -> Protocol:
    text = "\n".join(
        f"blocks_per_condition = {blocks}" if line.startswith("blocks_per_condition") else line
        for line in DEMO.splitlines()
    )
    return parse_protocol(f"{text}\n[cells]\n{table}\n", "p.toml")


def test_cells_are_named_and_their_clocks_held_to_a_second() -> None:
    cells = with_cells('names = ["a", "b"]').cells
    assert cells is not None
    assert (cells.names, cells.blocks_per_day, cells.clock_limit_s) == (("a", "b"), None, 1.0)


@pytest.mark.parametrize(
    ("table", "blocks", "said"),
    [
        ('names = ["a"]', 4, "cells.names"),
        ('names = ["a", "a"]', 4, "'a' appears twice"),
        ('names = ["a", "b/c"]', 4, "cells.names"),
        ('names = ["a", "b", "c"]', 4, "blocks_per_condition is 4; 3 cells share them equally: take a multiple of 3"),
        ('names = ["a", "b"]\nclock_limit_s = 0.0', 4, "clock_limit_s"),
        ('names = ["a", "b"]\ndays = 2', 4, "unknown key 'days'"),
    ],
)
def test_what_cells_cannot_share_is_refused_in_one_line_with_its_place(table: str, blocks: int, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        with_cells(table, blocks)
    assert str(refused.value).startswith("p.toml:") and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("[analysis.looks]\nfractions = [0.5, 0.75, 1.0]\n", "interim look"),
        (f'[[link]]\ncampaign = "x"\nhead = "{"0" * 64}"\nanchors = ["human"]\n', "anchors in one seal"),
        ("[human]\nextra_blocks = 1\n", "not shared among cells yet"),
    ],
)
def test_what_needs_one_seal_is_refused_beside_cells(other: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        with_cells('names = ["a", "b"]\n' + other, 8)
