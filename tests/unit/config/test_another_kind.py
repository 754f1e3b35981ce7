"""A file of another kind is called what it is: its keys are not misspelt, it is the wrong file."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.config.cell_schema import Cell, Fixture
from labctl.config.policy_card import Card
from labctl.config.protocol_schema import Protocol
from labctl.config.toml_text import HEADS, Document, parse
from labctl.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
OF_KIND: dict[str, tuple[type[Document], Path]] = {
    "protocol": (Protocol, ROOT / "protocols/demo.toml"),
    "cell": (Cell, ROOT / "hw_configs/sim_fr3.toml"),
    "fixture": (Fixture, ROOT / "fixtures/two_totes.toml"),
    "policy": (Card, min((ROOT / "protocols/cards").glob("*.toml"))),
}


def test_every_kind_that_is_told_apart_is_here() -> None:
    assert OF_KIND.keys() == HEADS.keys()


@pytest.mark.parametrize("wanted", OF_KIND)
@pytest.mark.parametrize("given", OF_KIND)
def test_a_file_is_called_what_it_is(wanted: str, given: str) -> None:
    (schema, _), (_, path) = OF_KIND[wanted], OF_KIND[given]
    text = path.read_text("utf-8")
    if wanted == given:
        parse(schema, text, "f.toml")
        return
    line = text.split("\n").index(f"[{given}]") + 1
    with pytest.raises(InputError) as found:
        parse(schema, text, "f.toml")
    wants = f"give {HEADS[wanted]}, which has a table [{wanted}]"
    assert str(found.value) == f"f.toml:{line}: this file is {HEADS[given]}; {wants}"


def test_a_table_of_another_kind_in_a_file_of_the_right_one_is_an_unknown_key() -> None:
    text = OF_KIND["cell"][1].read_text("utf-8") + "\n[fixture]\n"
    with pytest.raises(InputError, match="unknown key 'fixture' in the file"):
        parse(Cell, text, "f.toml")
