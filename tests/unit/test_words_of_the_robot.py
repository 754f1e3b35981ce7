"""In drivers, nodes, messages and the conformance suite the machine is the robot; an arm is a treatment."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ZONES = ("drivers", "labctl/nodes", "labctl/messages", "labctl/testing")
PART = re.compile(r"(?:^|_)arms?(?:_|$)|Arms?(?![a-z])|^ARMS?(?:_|$)|_ARMS?(?:_|$)")
# Names that stay, each with its reason: of one file, or ("") of all.
STAY: dict[tuple[str, str], str] = {
    ("", "arm_dependent"): "of a stream: it depends on the arm of the experiment",
    ("labctl/messages/body_parts.py", "arm"): "the experiment's, by its name in journals",
    ("labctl/messages/body_parts.py", "SlotWithArm"): "a slot of the schedule with the experiment's arm",
    ("labctl/nodes/asking.py", "ArmQuestion"): "what an arm of the experiment is asked before a run",
    ("labctl/nodes/asking.py", "ArmAnswer"): "and what it answers",
    ("drivers/common/robot_tables.py", "_UPPER_ARM"): "a link of a UR by its maker's name",
    ("drivers/sim/options.py", "arm"): "the key of a cell's file: which robot was recorded",
    ("drivers/sim/replay.py", "arm"): "the same key, read",
}


def names(source: str) -> Iterator[str]:
    """Names in a module that call something an arm."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and PART.search(token.string):
            yield token.string


def modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for zone in ZONES for path in (ROOT / zone).rglob("*.py"))


def test_no_machine_is_called_an_arm() -> None:
    found = {(path, name) for path in modules() for name in names((ROOT / path).read_text("utf-8"))}
    assert sorted((path, name) for path, name in found if not {("", name), (path, name)} & {*STAY}) == []


def test_every_name_that_stays_is_there() -> None:
    there = {(path, name) for path in modules() for name in names((ROOT / path).read_text("utf-8"))}
    assert [key for key in STAY if key[0] and key not in there] == []


@pytest.mark.parametrize("name", ["arm", "arms", "arm_mode", "stop_arm", "the_arm_node", "SimArm", "ArmNode", "ARMS"])
def test_a_planted_name_is_found(name: str) -> None:
    assert list(names(f"{name} = 1\n")) == [name]


@pytest.mark.parametrize("name", ["alarm", "armed", "arming_s", "farm", "warm", "harm", "Alarm", "Armed", "robot"])
def test_other_words_are_none(name: str) -> None:
    assert list(names(f"{name} = 1\n")) == []
