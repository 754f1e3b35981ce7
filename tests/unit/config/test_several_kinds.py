"""A value that may be of several kinds is refused with all of them; and a key by the name that the file has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labctl.config.policy_card import parse_card
from labctl.config.protocol_schema import parse_protocol
from labctl.config.toml_text import parse
from labctl.errors import InputError
from labctl.queue.lab_files import Shifts

ROOT = Path(__file__).resolve().parents[3]
CARD = (ROOT / "protocols/cards/pi05_droid.toml").read_text("utf-8")
PROTOCOL = (ROOT / "protocols/demo.toml").read_text("utf-8")
WORDS = "'measured', 'where_measured' or 'none'"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"mesured"', f"is 'mesured'; it must be a number, or {WORDS}"),
        ("150", f"is 150; it must be less than or equal to 100, or {WORDS}"),
    ],
)
def test_a_number_or_a_word_is_refused_with_both(value: str, says: str) -> None:
    text = re.sub(r"(?m)^min_score = .*\n", "", PROTOCOL).replace("[scene]\n", f"[scene]\nmin_score = {value}\n")
    with pytest.raises(InputError, match=re.escape(f"scene.min_score {says}")):
        parse_protocol(text, "p.toml")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("[1.0, inf]", "constant[2] is inf; it must be a finite number"),
        ("[[1.0]]", "constant[1] is [1.0]; it must be a number"),
        ("nan", "it must be true or false, or a whole number, or a finite number, or a text, in quotes, or a list, in"),
    ],
)
def test_of_several_kinds_the_one_that_was_meant_is_named_and_else_all(value: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        parse_card(f'{CARD}\n[[input]]\nkey = "z"\nconstant = {value}\n', "c.toml")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("from_ = 2026-01-01T08:00:00", "unknown key 'from_' in [shift[1]]; did you mean 'from'?; known keys: from, "),
        ("from = 2026-01-01", "shift[1].from is 2026-01-01; it must be a date with a time, as in 2026-01-31T08:00:00"),
    ],
)
def test_a_shift_is_refused_in_the_words_of_its_file(given: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        parse(Shifts, f'[[shift]]\n{given}\nto = 2026-01-01T12:00:00\nwho = ["p1"]\n', "shifts.toml")
