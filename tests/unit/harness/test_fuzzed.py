"""What is read from outside is taken or refused in one line, however it was spoilt; `make fuzz` tries for longer."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest
from support.fuzzing.holding import finds, held, inputs
from support.fuzzing.target import Target
from support.fuzzing.targets import TARGETS

FEW = 60


@pytest.mark.parametrize("name", TARGETS)
def test_good_input_is_taken_and_spoilt_input_is_taken_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for number, data in enumerate(target.samples()):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(target.raises) if target.refused else nullcontext():
            target.parse(data, tmp_path / str(number))
    for data in (*(path.read_bytes() for path in finds(name)), *islice(inputs(name, 1), FEW)):
        held(target, data)


@pytest.mark.parametrize(
    ("parse", "says"),
    [
        (lambda data, folder: [][0], "IndexError"),
        (lambda data, folder: (_ for _ in ()).throw(ValueError("a\nb")), "not one line"),
    ],
)
def test_a_parser_that_fails_is_found(parse, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        held(Target(lambda: [b""], parse, (ValueError,)), b"")
