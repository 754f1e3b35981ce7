"""What is read from outside is taken or refused in one line, however it was spoilt; `make fuzz` tries for longer."""

from __future__ import annotations

import re
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest
from support.fuzzing.holding import finds, held, inputs, shortened
from support.fuzzing.target import Target
from support.fuzzing.targets import TARGETS

pytestmark = pytest.mark.usefixtures("no_collector")

FEW = 60
PAGE = Path(__file__).parents[3] / "docs" / "fuzzing.md"


@pytest.mark.parametrize("name", TARGETS)
def test_good_input_is_taken_and_spoilt_input_is_taken_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for number, data in enumerate(target.samples()):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(target.raises) if target.refused else nullcontext():
            target.parse(data, tmp_path / str(number))
    for data in (*(path.read_bytes() for path in finds(name)), *islice(inputs(name, 1), FEW)):
        held(target, data)


def test_each_parser_has_its_row_on_the_page_of_what_was_tried_and_found() -> None:
    rows = re.findall(r"^\| (.+?) \| [\d,]+ \| [\d,]+ \|$", PAGE.read_text("utf-8"), re.M)
    assert rows == [*TARGETS], "python -P tests/fuzz.py --page"


def test_an_input_that_fails_is_made_shorter_and_fails_as_it_did() -> None:
    def parse(data: bytes, folder: Path) -> object:
        return {}[data] if b"needle" in data else None

    target = Target(lambda: [b""], parse, ())
    assert shortened(target, b"hay " * 50 + b"a needle" + b" hay" * 50) == b"needle"
    assert shortened(target, b"hay") == b"hay", "what does not fail stays as it is"


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
