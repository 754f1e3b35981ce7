"""Names of masked arms are replaced wherever they stand as words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labctl.errors import InputError
from labctl.exports.selection import Selection
from labctl.exports.writing import Request, _write_folder
from labctl.streams import StreamSpec

NAMES = {"pi0-fast": "pi0-fast", "pi0": "other-1", "human": "other-2"}


def selection(*, masked: bool = False, names: dict[str, str] = NAMES) -> Selection:
    return Selection([], [], masked, {}, {}, names)


def test_names_are_replaced_as_words_in_any_depth() -> None:
    said = {"why": "the Human helped pi0", "campaign": "pi0-vs-pi0-fast", "n": 3, "list": ["human_2", "inhuman", None]}
    assert selection().hide(said) == {
        "why": "the other-2 helped other-1",
        "campaign": "other-1-vs-pi0-fast",
        "n": 3,
        "list": ["other-2_2", "inhuman", None],
    }


def test_a_longer_name_is_not_taken_for_one_it_contains() -> None:
    assert selection().hide("pi0-fast") == "pi0-fast"
    assert selection(names={"pi0": "pi0", "pi0-fast": "other-1"}).hide("pi0 pi0-fast") == "pi0 other-1"


def test_nothing_is_replaced_when_no_arm_is_masked() -> None:
    assert selection(names={}).hide({"human": "pi0"}) == {"human": "pi0"}


def test_before_unblinding_a_stream_shows_what_its_declaration_leaves_open_and_after_it_everything() -> None:
    given = StreamSpec("gripper", ("force", "width"), "", 1.0, private_columns=("force",), public_columns=("width",))
    assert selection(masked=True).columns(given) == [1] and selection().columns(given) == [0, 1]
    for closed in (replace(given, arm_dependent=True), replace(given, public_columns=())):
        assert not selection(masked=True).shows(closed) and selection().shows(closed)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request("mcap", Path("o"), ("episode=e-void",)), "no scored episode has episode=e-void; recordings of voided"),
        (Request("mcap", Path("o")), "there is no scored episode; recordings of voided ones are not exported"),
        (Request("mcap", Path("o"), for_arm="pi0"), "there is no scored episode of arm pi0; recordings"),
    ],
)
def test_where_only_voided_episodes_are_chosen_no_recording_is_written_and_it_says_why(
    request_: Request, says: str
) -> None:
    """They are chosen where the protocol counts them; a name that is not masked was never that of an arm None."""
    campaign: Any = None
    with pytest.raises(InputError, match=f"^{says}"):
        _write_folder(campaign, request_, selection(), {}, lambda line: None)
