"""[analysis.margin]: registered in the protocol, strictly, or nothing is asked."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

from labctl.config.protocol_schema import Protocol, parse_protocol
from labctl.config.reference import schema_of_file
from labctl.errors import InputError

DEMO = (Path(__file__).resolve().parents[3] / "protocols" / "demo.toml").read_text()


def text_with(table: str) -> str:
    """The demo's protocol with a margin after its analysis."""
    return DEMO.replace("alpha = 0.05\n", f"alpha = 0.05\n\n[analysis.margin]\n{table}\n")


def with_margin(table: str) -> Protocol:
    return parse_protocol(text_with(table), "p.toml")


def test_without_the_table_no_margin_is_registered() -> None:
    assert parse_protocol(DEMO, "p.toml").analysis.margin is None


def test_a_margin_is_of_time_per_item_of_every_pair_or_against_one_arm() -> None:
    margin = with_margin('rmst_ratio = 1.25\nnon_inferior_to = "policy-a"').analysis.margin
    assert margin is not None and (margin.rmst_ratio, margin.non_inferior_to) == (1.25, "policy-a")
    every = with_margin("rmst_ratio = 2").analysis.margin
    assert every is not None and (every.rmst_ratio, every.non_inferior_to) == (2.0, None)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "needs the key 'rmst_ratio'; add it"),
        ('non_inferior_to = "policy-a"', "needs the key 'rmst_ratio'; add it"),
        ("rmst_ratio = 1.0", "analysis.margin.rmst_ratio is 1.0; it must be greater than 1"),
        ("rmst_ratio = 0.8", "greater than 1"),
        ("rmst_ratio = inf", "finite number"),
        ('rmst_ratio = "1.25"', "it must be a number"),
        ('rmst_ratio = 1.25\nnon_inferior_to = "policy-z"', "unknown arm 'policy-z'"),
        ("ratio = 1.25", "unknown key 'ratio'"),
    ],
)
def test_anything_else_is_refused_in_one_line_with_its_place(table: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        with_margin(table)
    assert str(refused.value).startswith("p.toml:") and "\n" not in str(refused.value)


@pytest.mark.parametrize("table", ["", 'non_inferior_to = "policy-a"'])
def test_an_editor_marks_a_table_without_a_margin(table: str) -> None:
    found = jsonschema.Draft202012Validator(schema_of_file("protocol"))
    assert list(found.iter_errors(tomllib.loads(text_with(table))))
