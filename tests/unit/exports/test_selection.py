"""Names of masked arms are replaced wherever they stand as words."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from labctl.devices import StreamSpec, spec_of
from labctl.exports.selection import Selection

NAMES = {"pi0-fast": "pi0-fast", "pi0": "other-1", "human": "other-2"}


def selection(*, masked: bool = False, names: dict[str, str] = NAMES) -> Selection:
    return Selection([], [], masked, {}, names)


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


def test_before_unblinding_actions_and_private_streams_are_hidden() -> None:
    private = StreamSpec("policy", ("x",), "ns", 1.0, arm_dependent=True)
    action, state = StreamSpec("arm/action", ("x",), "rad", 1.0), StreamSpec("arm/state", ("x",), "rad", 1.0)
    assert [selection(masked=True).shows(spec) for spec in (private, action, state)] == [False, False, True]
    assert all(selection().shows(spec) for spec in (private, action, state))


def test_before_unblinding_columns_that_show_the_rate_of_answers_are_hidden() -> None:
    """Of streams that say nothing of it, as those recorded before one could."""
    state = StreamSpec("arm/state", ("q.j1", "dq.j1", "tau.j1", "tcp.x", "gripper", "device_s"), "", 1.0)
    assert selection(masked=True).columns(state) == [0, 3, 4]
    assert selection().columns(state) == list(range(6))


def test_before_unblinding_a_stream_has_the_columns_that_its_declaration_leaves_open() -> None:
    given = StreamSpec("gripper", ("force", "dq.finger", "width"), "", 1.0, private_columns=("force",))
    assert selection(masked=True).columns(given) == [1, 2]
    nothing = replace(given, private_columns=given.columns)
    assert not selection(masked=True).shows(nothing) and selection().shows(nothing)
    assert spec_of(json.loads(json.dumps(asdict(given)))) == given
