"""[analysis.looks]: planned in the protocol, strictly, or not at all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from labctl.config.interim_analyses import looks_after
from labctl.config.protocol_schema import parse_protocol
from labctl.core.trial_table import State
from labctl.errors import InputError
from labctl.reporting.interim_look import judged_at

DEMO = (Path(__file__).resolve().parents[3] / "protocols" / "demo.toml").read_text()


def with_looks(table: str):
    """The demo's protocol (12 blocks) with a table of looks after its analysis."""
    return parse_protocol(DEMO.replace("alpha = 0.05\n", f"alpha = 0.05\n\n[analysis.looks]\n{table}\n"), "p.toml")


def test_without_the_table_there_is_no_look_before_the_end():
    assert parse_protocol(DEMO, "p.toml").analysis.looks is None


def test_looks_fall_on_the_next_whole_block():
    looks = with_looks("fractions = [0.5, 0.7, 1]").analysis.looks
    assert looks is not None
    assert looks_after(looks, 12) == (6, 9, 12)
    assert looks_after(looks, 100) == (50, 70, 100)  # .7 x 100 is 70.0 and a rounding error


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("fractions = [0.5, 1.0]", "it must have at least 3"),
        ("fractions = [0.2, 0.3, 0.4, 0.5, 0.6, 1.0]", "it must have at most 5"),
        ("fractions = [0.5, 0.5, 1.0]", "must rise"),
        ("fractions = [0.75, 0.5, 1.0]", "must rise"),
        ("fractions = [0.5, 0.75, 0.9]", "the last look is at 1"),
        ("fractions = [0.05, 0.5, 1.0]", "greater than or equal to 0.1"),
        ("fractions = [0.5, 0.75, 1.5]", "less than or equal to 1"),
        ("fractions = [0.5, 0.51, 1.0]", "looks after 6, 7, 12 blocks"),
        ('fractions = [0.5, 0.75, 1.0]\nspending = "pocock"', "obrien_fleming"),
        ("fraction = [0.5, 0.75, 1.0]", "unknown key 'fraction'"),
    ],
)
def test_anything_else_is_refused_with_its_line(table: str, said: str):
    if "6, 7, 12" in said:  # distinct blocks are fine; the same block is not
        assert looks_after(with_looks(table).analysis.looks, 12) == (6, 7, 12)
        table, said = "fractions = [0.5, 0.51, 0.52, 1.0]", "looks after 6, 7, 7, 12 blocks, two of them the same"
    with pytest.raises(InputError, match=said) as refused:
        with_looks(table)
    assert str(refused.value).startswith("p.toml:")


def stopped_after(blocks: int, *, of: int = 12, arms: int = 4):
    """A closed campaign with so many complete blocks, the first with a trial void too often, the next begun."""

    def trial(block: int, arm: int):
        scored = block < blocks or (block, arm) == (blocks, 0)
        exhausted = (block, arm) == (0, 0)
        return SimpleNamespace(
            block=block, state=State.SCORED if scored and not exhausted else State.NOT_RUN, exhausted=exhausted
        )

    return SimpleNamespace(trials={f"t-{b}-{a}": trial(b, a) for b in range(of) for a in range(arms)})


def test_a_report_is_judged_at_the_level_of_its_look_and_says_when_none_was_planned():
    protocol = with_looks("fractions = [0.5, 0.75, 1.0]")
    levels = {n: judged_at(stopped_after(n), protocol) for n in (5, 6, 9, 12)}
    # levels: 2 (1 - Phi(z)) at z = 2.9626, 2.3590, 2.0141; see analysis/test_spending.py
    assert [levels[n][0] for n in (6, 9, 12)] == pytest.approx([0.00305, 0.01832, 0.0440], abs=5e-5)
    assert levels[9][1].startswith("look 2 of 3, after 9 of 12 blocks")
    assert levels[5][0] == levels[6][0]
    assert levels[5][1].startswith("not a planned look: 5 of 12 blocks are complete, looks were planned after 6, 9, 12")


def test_without_planned_looks_a_report_is_judged_at_alpha():
    assert judged_at(stopped_after(5), parse_protocol(DEMO, "p.toml")) == (0.05, None)
