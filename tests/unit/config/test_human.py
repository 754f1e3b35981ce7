"""[human] and a protocol whose only arm is a person: what is accepted, and what each mistake is told at its line."""

from __future__ import annotations

import re

import pytest
from support.runs.campaigns import HUMAN, PROTOCOL, arms_toml, policy

from labctl.config.protocol_schema import parse_protocol
from labctl.errors import InputError

BLANKS = {"name": "p", "items": 1, "budget": 4.0, "arming": 1.0, "max_voids": 3, "blocks": 2}
TEXT = PROTOCOL.format(**BLANKS, process_lost="void", camera_lost="mark", crash="void")
BOTH = (HUMAN, policy("zebra"))
TABLE = '[human.reference]\ntable = "t.csv"\narm = "human"\nrig = "FR3"\ndates = "May 2026"\n'


def text_of(arms=BOTH, more: str = "", **changes: str) -> str:
    text = TEXT
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text + more + arms_toml(arms)


WRONG = {
    "a policy alone": (text_of([policy("zebra")]), "[[arm]]", "1 .*needs at least 2.*may be of kind \"human\""),
    "looks of one arm": (
        text_of([HUMAN], "[analysis.looks]\nfractions = [0.2, 0.5, 1.0]\n"), "[analysis.looks]", "nothing to compare",
    ),
    "a margin of one arm": (
        text_of([HUMAN], "[analysis.margin]\nrmst_ratio = 1.2\n"), "[analysis.margin]", "nothing to compare",
    ),
    "a reference of one arm": (
        text_of([HUMAN], **{"tau_s = 4.0": 'tau_s = 4.0\nreference = "human"'}), "reference =", "nothing to compare",
    ),
    "a preference of one arm": (text_of([HUMAN], "[preference]\n"), "[preference]", "nothing to compare"),
    "a guess of one arm": (
        text_of([HUMAN], **{"arming_s = 1.0": "arming_s = 1.0\nask_guess = true"}), "ask_guess =", "nothing to compare",
    ),
    "extra blocks of nobody": (
        text_of([policy("a"), policy("b")], "[human]\nextra_blocks = 1\n"), "extra_blocks =", "no arm is a person",
    ),
    "extra blocks of one arm": (
        text_of([HUMAN], "[human]\nextra_blocks = 1\n"), "extra_blocks =", "raise blocks_per_condition",
    ),
    "fewer than none": (text_of(more="[human]\nextra_blocks = -1\n"), "extra_blocks =", "-1"),
    "extra blocks beside looks": (
        text_of(more="[human]\nextra_blocks = 1\n[analysis.looks]\nfractions = [0.5, 0.75, 1.0]\n").replace(
            "blocks_per_condition = 2", "blocks_per_condition = 8"
        ),
        "extra_blocks =",
        "not there yet beside planned looks",
    ),
    "a reference of nothing": (
        text_of(more="[human.reference]\nhrt = true\n"), "[human.reference]", "neither is named",
    ),
    "a reference of both": (
        text_of(more=TABLE + 'campaign = "first"\n'), "[human.reference]", "both is named",
    ),
    "a table without its rig": (
        text_of(more=TABLE.replace('rig = "FR3"\n', "")), "[human.reference]", "does not say its rig; add rig",
    ),
    "a rig of a campaign": (
        text_of(more='[human.reference]\ncampaign = "first"\nrig = "FR3"\n'), "rig =", "says it itself, take it out",
    ),
    "no digest": (text_of(more=TABLE + 'sha256 = "abc"\n'), "sha256 =", "sha256"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "at", "says"), WRONG.values(), ids=WRONG)
def test_each_mistake_is_told_in_one_line_with_the_line_where_it_stands(text: str, at: str, says: str) -> None:
    with pytest.raises(InputError) as told:
        parse_protocol(text, "p.toml")
    message = str(told.value)
    assert re.search(says, message) and "\n" not in message, message
    assert text.splitlines()[int(message.split(":")[1]) - 1].startswith(at), message


def test_a_person_may_be_the_only_arm_or_have_blocks_alone_or_be_of_another_time() -> None:
    assert parse_protocol(text_of([HUMAN]), "p.toml").alone is None
    assert parse_protocol(text_of(more="[human]\nextra_blocks = 3\n"), "p.toml").alone == ("human", 3)
    found = parse_protocol(text_of([policy("a"), policy("b")], TABLE), "p.toml")
    assert found.human and found.human.reference and found.human.reference.arm == "human"
