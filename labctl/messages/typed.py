"""What all messages have in common: from a dataclass to a body on the wire and back, each field looked at once.

May not: convert a value, or let a message through that lacks a field or has one of another type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from labctl.bus import Message
from labctl.errors import InputError


class Misfit(InputError):
    """A message lacks a field, or has one of another type; the text names kind and field."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Base of all messages: `class Ack(Typed, kind="ack", sender="recorder", to="producers")`. A field that has its
    default is left out on the wire. kind: how it is called there; sender, to: the nodes it goes between; arrays: what
    travels beside the body.
    """

    KIND: ClassVar[str]
    FROM: ClassVar[str]
    TO: ClassVar[str]
    ARRAYS: ClassVar[str]

    def __init_subclass__(cls, *, kind: str = "", sender: str = "", to: str = "", arrays: str = "") -> None:
        if kind:  # not where dataclass makes the class once more, with slots
            cls.KIND, cls.FROM, cls.TO, cls.ARRAYS = kind, sender, to, arrays

    def wire(self) -> dict[str, Any]:
        """The body of the message on the wire."""
        body: dict[str, Any] = {}
        for name, _, _, default in _fields(type(self)):
            value = getattr(self, name)
            if value is not default and value != default:
                body[name] = value
        return body

    def to(self, name: str, arrays: Mapping[str, np.ndarray] | None = None, *, sender: str = "") -> Message:
        """The message to a node or topic."""
        return Message(name, self.KIND, self.wire(), arrays or {}, sender)


T = TypeVar("T", bound=Typed)


def read(schema: type[T], message: Message) -> T:
    """The typed message in a message of that kind; keys that it does not have are let pass.

    Raises Misfit for a field that is missing or of another type.
    """
    body, found = message.body, {}
    for name, annotation, types, default in _fields(schema):
        if name in body:
            value = body[name]
            if types is not None and not isinstance(value, types):
                raise Misfit(f"message {schema.KIND}: {name} is {ascii(value)[:80]}, not {annotation}")
            found[name] = value
        elif default is MISSING:
            raise Misfit(f"message {schema.KIND}: {name} is missing")
    return schema(**found)


_TYPES: dict[str, tuple[type, ...]] = {
    "None": (type(None),),
    "str": (str,),
    "bool": (bool,),
    "int": (int, np.integer),
    "float": (int, float, np.integer, np.floating),
    "Mapping": (Mapping,),
    "Body": (Mapping,),
    "Sequence": (list, tuple),
    "Literal": (str,),
}


@cache
def _fields(schema: type[Typed]) -> tuple[tuple[str, str, tuple[type, ...] | None, object], ...]:
    """Each field's name and annotation, the types that it may have (None: any), and its default, or MISSING."""
    return tuple((field.name, str(field.type), _types(str(field.type)), field.default) for field in fields(schema))


def _types(annotation: str) -> tuple[type, ...] | None:
    names = re.sub(r"\[.*\]", "", annotation).split(" | ")
    known = {
        name: (Mapping,) if name.startswith(("parts.", "plain.")) else _TYPES[name] for name in names if name != "Json"
    }
    return None if "Json" in names else tuple(one for types in known.values() for one in types)
