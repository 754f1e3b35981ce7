"""A JSON Schema of a type: of what a typed dictionary, a dataclass or a plain type of values looks like as JSON.

May not: know any type of labctl's. A key's type is all that is said of it; what it means is the docstring's.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, NotRequired, Required, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict

from labctl.config.reference import Schema

Shape: TypeAlias = "type | types.UnionType | types.GenericAlias"


class Anything:
    """Whatever JSON has."""


DRAFT = "https://json-schema.org/draft/2020-12/schema"  # the name of the draft; nothing is fetched
_PLAIN: Mapping[Shape, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
}


def schema_of(shape: Shape, *, closed: bool = False) -> Schema:
    """The schema of a type. closed: no key that the type does not name, for tests; a reader takes it that later
    versions may add some. Raises TypeError for a type that JSON does not have.
    """
    made = _Maker(closed)
    whole = made.of(shape)
    return {"$schema": DRAFT, **whole, **({"$defs": made.known} if made.known else {})}


class _Maker:
    """Typed dictionaries and dataclasses stand under $defs, by their names, since they may hold themselves."""

    def __init__(self, closed: bool) -> None:
        self.known: dict[str, Schema] = {}
        self._names: dict[Shape, str] = {}
        self._closed = closed

    def of(self, shape: Shape) -> Schema:
        """The schema of a type, for a place."""
        if shape in _PLAIN:
            return dict(_PLAIN[shape])
        if shape is Anything:
            return {}
        if isinstance(shape, type) and (is_typeddict(shape) or dataclasses.is_dataclass(shape)):
            return {"$ref": f"#/$defs/{self._named(shape)}"}
        origin, inside = get_origin(shape), get_args(shape)
        if origin is Literal:
            return {"enum": list(inside)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(one) for one in inside]}
        if origin in (NotRequired, Required):
            return self.of(inside[0])
        if inspect.isclass(origin) and issubclass(origin, tuple) and inside[-1:] != (...,):
            parts = [self.of(one) for one in inside]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(inside[1])}
        if inspect.isclass(origin) and issubclass(origin, Sequence):
            return {"type": "array", "items": self.of(inside[0])}
        if inspect.isclass(shape) and issubclass(shape, str):
            return {"type": "string"}
        raise TypeError(f"{shape!r} has no form in JSON")

    def _named(self, shape: type) -> str:
        if shape not in self._names:
            same = sum(name.split("-")[0] == shape.__name__ for name in self._names.values())
            name = self._names[shape] = shape.__name__ if not same else f"{shape.__name__}-{same + 1}"
            self.known[name] = {}  # found again from within itself
            self.known[name] = self._table(shape)
        return self._names[shape]

    def _table(self, shape: type) -> Schema:
        hints = get_type_hints(shape, localns=_for_the_checker(shape.__module__), include_extras=True)
        needed = [key for key in hints if not _may_lack(shape, key, hints[key])]
        described = inspect.cleandoc(shape.__doc__ or "")
        whole: Schema = {"type": "object", "properties": {key: self.of(kind) for key, kind in hints.items()}}
        if described and not described.startswith(f"{shape.__name__}("):  # what dataclasses say by themselves
            whole = {"description": " ".join(described.split()), **whole}
        closed = {"additionalProperties": False} if self._closed else {}
        return {**whole, "required": needed, **closed}


def _may_lack(shape: type, key: str, hint: Shape) -> bool:
    if not is_typeddict(shape):
        return False
    if get_origin(hint) in (NotRequired, Required):
        return get_origin(hint) is NotRequired
    return key in getattr(shape, "__optional_keys__", ())


@cache
def _for_the_checker(module: str) -> dict[str, Shape]:
    """What a module imports under `if TYPE_CHECKING:` alone, and so lacks while it runs."""
    found: dict[str, Shape] = {"Json": Anything}  # `labctl.plain.Json` names itself
    for block in ast.parse(inspect.getsource(importlib.import_module(module))).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    there = importlib.import_module(line.module)
                    found |= {one.asname or one.name: getattr(there, one.name) for one in line.names}
    return found
