"""Every message has a type: what it carries comes back as it was, what does not fit is refused by kind and field, and
the table in docs/seams.md lists them all.

`python -P tests/unit/messages/test_messages.py` writes that table anew (`make docs`).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labctl.messages
from labctl.bus import decode, encode
from labctl.messages.listing import all_messages, table
from labctl.messages.motion import Lease, Obs, Stop
from labctl.messages.recording import Close, Open
from labctl.messages.typed import Misfit, Typed, read

PAGE = Path(__file__).resolve().parents[3] / "docs" / "seams.md"
PLACE = re.compile(r"(?<=## Nodes \(labctl/nodes\) and messages\n).*?\n(?=\n)", re.S)
VALUES: dict[str, Any] = {
    "str": "x",
    "bool": True,
    "int": 7,
    "float": 0.5,
    "parts": {"a": 1},
    "plain": {"a": 1},
    "Body": {"a": 1},
    "Mapping": {"a": {"n": 1}},
    "Sequence": ["x"],
    "Json": "x",
}


def example(message: type[Typed], *, whole: bool) -> Typed:
    """A message with a value of the right type in each field, or in those that it needs."""
    needed = [field for field in fields(message) if whole or (field.default is MISSING)]
    return message(**{field.name: VALUES[re.split(r"[\[ .]", str(field.type))[0]] for field in needed})


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("message", all_messages(), ids=lambda message: message.__name__)
def test_a_message_comes_off_the_wire_as_it_went_on(message, whole):
    sent = example(message, whole=whole)
    there = decode(encode(sent.to("somebody", sender="me")))
    assert (there.kind, there.to, there.sender) == (message.KIND, "somebody", "me")
    assert read(message, there) == sent


def wrong() -> Iterator[tuple[type[Typed], str]]:
    yield from (
        (message, field.name) for message in all_messages() for field in fields(message) if field.type != "Json"
    )


@pytest.mark.parametrize(("message", "name"), list(wrong()), ids=str)
def test_a_field_of_another_type_is_refused_by_kind_and_name(message, name):
    sent = example(message, whole=True).to("somebody")
    sent.body = {**sent.body, name: {1, 2}}
    with pytest.raises(Misfit, match=f"message {message.KIND}: {name} is "):
        read(message, sent)


def test_a_field_that_is_missing_is_refused_by_kind_and_name():
    sent = Lease(1, "e", 5).to("@lease")
    sent.body = {"epoch": 1, "episode": None}
    with pytest.raises(Misfit, match="message lease: until_ns is missing"):
        read(Lease, sent)


def test_what_has_its_default_is_left_out_and_null_is_not_nothing():
    assert Stop().wire() == {} and Stop(3).wire() == {"epoch": 3}
    assert Lease(1, None, 5).wire() == {"epoch": 1, "episode": None, "until_ns": 5}
    assert Open("e").wire() == {"episode": "e"}


def test_what_a_message_does_not_have_is_let_pass():
    sent = Close("e").to("arm")
    sent.body = {**sent.body, "from a later version": 1}
    assert read(Close, sent) == Close("e")


def test_numbers_of_numpy_are_numbers():
    seen = Obs(int(np.int64(5)), "idle", "", "").to("@obs")
    seen.body = {**seen.body, "t_ns": np.int64(5)}
    assert read(Obs, seen).t_ns == 5


def test_every_module_of_messages_is_listed():
    for module in pkgutil.iter_modules(labctl.messages.__path__, "labctl.messages."):
        importlib.import_module(module.name)
    own = [message for message in Typed.__subclasses__() if message.__module__.startswith("labctl.messages.")]
    assert {message.KIND for message in own} == {message.KIND for message in all_messages()}


def test_each_kind_stands_once():
    kinds = [message.KIND for message in all_messages()]
    assert len(set(kinds)) == len(kinds)


def test_the_page_lists_the_messages_as_they_are():
    found = PLACE.search(PAGE.read_text("utf-8"))
    assert found is not None and found[0] == table(), "run: make docs"


if __name__ == "__main__":
    PAGE.write_text(PLACE.sub(lambda found: table(), PAGE.read_text("utf-8"), count=1), encoding="utf-8")
