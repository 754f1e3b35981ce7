"""What a lab's files may say, for editors and for readers: a JSON Schema of each kind of file, and its keys as rows.

May not: state anything of a key by itself: types, defaults and what is allowed are the schemas', sentences `meanings`'.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labctl.config.cell_schema import AXIS_CODES, Cell, Fixture, Lab
from labctl.config.meanings import MEANINGS
from labctl.config.policy_card import GRIPPERS, ROTATIONS, SPACES, STATES, Card
from labctl.config.protocol_schema import Protocol
from labctl.config.toml_text import PATTERNS, Document

Schema = dict[str, Any]

FILES: Mapping[str, type[Document]] = {
    "protocol": Protocol,
    "cell": Cell,
    "fixture": Fixture,
    "lab": Lab,
    "card": Card,
}
DRAFT = "https://json-schema.org/draft/2020-12/schema"  # the name of the draft; nothing is fetched
ITEMS = "[]"  # after a key: what stands in its list
# What a file is refused for that its types do not say, where JSON Schema can say it.
_ALSO: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("protocol", "arm"): {"minItems": 2},
    ("fixture", "object.axes" + ITEMS): {"enum": list(AXIS_CODES)},
    ("fixture", "layout.axes" + ITEMS): {"enum": list(AXIS_CODES)},
    ("lab", "alerts"): {"anyOf": [{"required": [way]} for way in ("ntfy", "webhook", "email")]},
    **{
        ("lab", f"alerts.{way}"): {"oneOf": [{"required": [key]} for key in ("address", "address_env")]}
        for way in ("ntfy", "webhook")
    },
    ("lab", "alerts.email"): {"dependentRequired": {"user": ["password_env"], "password_env": ["user"]}},
    ("card", "input.state" + ITEMS): {"enum": list(STATES)},
    ("card", "gripper.state"): {"enum": list(GRIPPERS)},
    ("card", "gripper.action"): {"enum": list(GRIPPERS)},
    ("card", "action.space"): {"enum": list(SPACES)},
    ("card", "action.rotation"): {"enum": list(ROTATIONS)},
}
_UNITS: Mapping[str, str] = {
    "_rad_s2": "rad/s²",
    "_rad_s": "rad/s",
    "_m_s": "m/s",
    "_s_per_item": "s",
    "_s": "s",
    "_m": "m",
    "_rad": "rad",
    "_hz": "1/s",
    "_gb": "10⁹ bytes",
    "_px": "pixels",
}
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "table",
}


def schema_of_file(kind: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a kind of file, one of FILES: every table written out where it stands, with a
    sentence for each key.
    """
    raw = FILES[kind].model_json_schema()
    whole = _told(_written_out(raw, raw.get("$defs", {})), kind, "")
    return {"$schema": DRAFT, "title": f"labctl: a {kind} file", **whole}


def schema_text(kind: str) -> str:
    """The same as the text of a file."""
    return json.dumps(schema_of_file(kind), indent=2, ensure_ascii=False) + "\n"


def _written_out(schema: Schema, known: Mapping[str, Schema]) -> Schema:
    """Without references, titles, docstrings, and the null that TOML does not have."""
    if "$ref" in schema:
        schema = {**known[schema["$ref"].rsplit("/", 1)[-1]], **{k: v for k, v in schema.items() if k != "$ref"}}
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        schema = {**parts[0], **rest} if len(parts) == 1 else {**rest, "anyOf": parts}
        if "$ref" in schema:
            return _written_out(schema, known)
    found = {key: value for key, value in schema.items() if key not in ("$defs", "title", "description")}
    if found.get("default", 0) is None or isinstance(found.get("default"), dict):
        del found["default"]
    if "properties" in found:
        found["properties"] = {name: _written_out(part, known) for name, part in found["properties"].items()}
    for within in ("items", "additionalProperties"):
        if isinstance(found.get(within), dict):
            found[within] = _written_out(found[within], known) or True  # any value
    return found


def _told(schema: Schema, kind: str, at: str) -> Schema:
    """With the sentence of each key, and with what the types do not say."""
    found = {**schema, **_ALSO.get((kind, at), {})}
    if at in MEANINGS[kind]:
        found["description"] = MEANINGS[kind][at]
    if "properties" in found:
        below = f"{at}." if at else ""
        found["properties"] = {name: _told(part, kind, below + name) for name, part in found["properties"].items()}
    if isinstance(found.get("items"), dict):
        if _is_table(found["items"]):
            found["items"] = _told(found["items"], kind, at)
        else:
            found["items"] = {**found["items"], **_ALSO.get((kind, at + ITEMS), {})}
    return found


def _is_table(schema: Schema) -> bool:
    return "properties" in schema


@dataclass(frozen=True, slots=True)
class Key:
    """A key as a reader meets it; default: as TOML writes it, "" where it may be left out and then is nothing."""

    name: str
    kind: str
    unit: str
    default: str
    needed: bool
    allowed: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table of a file: its heading as TOML writes it, its sentence, its keys; needed: not to be left out."""

    heading: str
    meaning: str
    needed: bool
    keys: Sequence[Key]


def tables_of_file(kind: str) -> list[TableOf]:
    """Every table of a kind of file, in order, an inner one after the one that it stands in."""
    return list(_tables(schema_of_file(kind), ""))


def _tables(schema: Schema, at: str) -> Iterator[TableOf]:
    for name, part in schema["properties"].items():
        several = part.get("type") == "array" and _is_table(part.get("items", {}))
        if not (several or _is_table(part)):
            continue
        inside = part["items"] if several else part
        here = f"{at}.{name}".lstrip(".")
        own = [
            key(one, inner, one in inside.get("required", ()))
            for one, inner in inside["properties"].items()
            if not _is_table(inner)
        ]
        heading = f"[[{here}]]" if several else f"[{here}]"
        yield TableOf(heading, inside["description"], name in schema.get("required", ()), own)
        yield from _tables(inside, here)


def key(name: str, schema: Schema, needed: bool) -> Key:
    """A key by its schema."""
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
    default = _toml(schema["default"]) if schema.get("default") not in (None, "") else ""
    return Key(name, _kind(schema), unit, default, needed, _allowed(schema), schema["description"])


def _kind(schema: Schema) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if schema.get("type") == "array":
        part = schema.get("items") or schema["prefixItems"][0]
        return f"list of {_kind(part).replace('list of ', 'lists of ')}"
    if "type" not in schema:
        return _KINDS["string"] if isinstance(schema["enum"][0], str) else _KINDS["integer"]
    return _KINDS[schema["type"]]


def _allowed(schema: Schema) -> str:
    """What may stand there, in words; "" where its kind says it all."""
    if "anyOf" in schema:
        return " or ".join(filter(None, map(_allowed, schema["anyOf"])))
    found = []
    if "enum" in schema or "const" in schema:
        found.append(", ".join(f"`{_toml(one)}`" for one in schema.get("enum", [schema.get("const")])))
    if "pattern" in schema:
        found.append(PATTERNS[schema["pattern"]])
    found += _range(schema)
    if schema.get("type") == "array":
        found += _counted(schema)
        within = _allowed(schema.get("items") or schema["prefixItems"][0])
        found += [f"each {within}"] if within else []
    return "; ".join(found)


def _range(schema: Schema) -> list[str]:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {schema[name]:g}" for name, word in words.items() if name in schema]
    return [", ".join(found)] if found else []


def _counted(schema: Schema) -> list[str]:
    low, high = schema.get("minItems"), schema.get("maxItems")
    if low is None and high is None:
        return []
    if low == high:
        return [f"{low} of them"]
    return [f"{low} to {high} of them" if high is not None else f"at least {low}"]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)
