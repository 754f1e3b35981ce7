"""What a lab's files may say, for editors: a JSON Schema of each kind of file; docs/configuration.md is made of it.

May not: state anything of a key by itself: types, defaults and what is allowed are the schemas', sentences `meanings`'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from labctl.config.cell_schema import AXIS_CODES, Cell, Fixture, Lab
from labctl.config.meanings import MEANINGS
from labctl.config.policy_card import GRIPPERS, ROTATIONS, SPACES, STATES, Card
from labctl.config.protocol_schema import SHORT_FORM, Protocol
from labctl.config.toml_text import Document

Schema = dict[str, Any]

FILES: Mapping[str, type[Document]] = {
    "protocol": Protocol,
    "cell": Cell,
    "fixture": Fixture,
    "lab": Lab,
    "card": Card,
}
DRAFT = "https://json-schema.org/draft/2020-12/schema"  # the name of the draft; nothing is fetched
STATE = rf"^([a-z][a-z0-9_]*\.)?({'|'.join(STATES)})$"
ITEMS = "[]"  # after a key: what stands in its list
# What a file is refused for that its types do not say, where JSON Schema can say it.
_ALSO: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("protocol", "arm"): {  # at least two that are compared, or a person alone
        "minItems": 1,
        "if": {"maxItems": 1},
        "then": {"items": {"properties": {"kind": {"const": "human"}}}},
    },
    ("protocol", ""): {  # the short form, or tables of tasks and conditions
        "if": {"required": ["task"]},
        "then": {"anyOf": [{"required": ["condition"]}, {"required": ["template"]}]},
        "else": {
            "properties": {
                table: {"required": [key for whose, key in SHORT_FORM if whose == table]}
                for table in ("trial", "design")
            }
        },
    },
    **{
        (file, f"{table}.axes{ITEMS}"): {"enum": list(AXIS_CODES)}
        for file, table in (
            ("protocol", "condition"),
            ("protocol", "template"),
            ("fixture", "object"),
            ("fixture", "layout"),
        )
    },
    ("lab", "alerts"): {"anyOf": [{"required": [way]} for way in ("ntfy", "webhook", "email")]},
    **{
        ("lab", f"alerts.{way}"): {"oneOf": [{"required": [key]} for key in ("address", "address_env")]}
        for way in ("ntfy", "webhook")
    },
    ("lab", "alerts.email"): {"dependentRequired": {"user": ["password_env"], "password_env": ["user"]}},
    ("card", "input.state" + ITEMS): {"pattern": STATE},
    ("card", "gripper.state"): {"enum": list(GRIPPERS)},
    ("card", "gripper.action"): {"enum": list(GRIPPERS)},
    ("card", "action.space"): {"enum": list(SPACES)},
    ("card", "action.rotation"): {"enum": list(ROTATIONS)},
}


def schema_of_file(kind: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a kind of file, one of FILES."""
    return schema_of(kind, FILES[kind])


def schema_of(kind: str, document: type[Document]) -> Schema:
    """The JSON Schema of a kind of file that has MEANINGS, by the type that reads it: every table written out where it
    stands, with a sentence for each key.
    """
    raw = document.model_json_schema()
    whole = _with_meanings(_written_out(raw, raw.get("$defs", {})), kind, "")
    return {"$schema": DRAFT, "title": f"labctl: a {kind} file", **whole}


def schema_text(kind: str) -> str:
    """The same as the text of a file."""
    return text_of(schema_of_file(kind))


def text_of(schema: Schema) -> str:
    """A schema as the text of a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


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


def _with_meanings(schema: Schema, kind: str, at: str) -> Schema:
    """With the sentence of each key, and with what the types do not say."""
    found = {**schema, **_ALSO.get((kind, at), {})}
    if at in MEANINGS[kind]:
        found["description"] = MEANINGS[kind][at]
    if "properties" in found:
        below = f"{at}." if at else ""
        found["properties"] = {
            name: _with_meanings(part, kind, below + name) for name, part in found["properties"].items()
        }
    if isinstance(found.get("items"), dict):
        if is_table(found["items"]):
            found["items"] = _with_meanings(found["items"], kind, at)
        else:
            found["items"] = {**found["items"], **_ALSO.get((kind, at + ITEMS), {})}
    return found


def is_table(schema: Schema) -> bool:
    """Whether what a key holds is a table of further keys."""
    return "properties" in schema
