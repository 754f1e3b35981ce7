"""docs/configuration.md lists every key of a lab's files, and `labctl schema` prints them for editors: run this file to
write the page, run the tests to hold it current and the schemas true.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from labctl.cli.contract.files import FILES, schema_of_file
from labctl.cli.contract.schema import schema as schema_verb
from labctl.config.cell_schema import parse_cell, parse_fixture, parse_lab
from labctl.config.meanings import MEANINGS
from labctl.config.policy_card import STATES, parse_card
from labctl.config.protocol_schema import parse_protocol
from labctl.config.reference import STATE, Schema, is_table
from labctl.config.toml_text import PATTERNS
from labctl.errors import InputError
from labctl.store.lab_folder import new_lab

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "configuration.md"
HEAD = (
    "# What the files of a lab may say\n\n"
    "Every key of a protocol, a cell, a fixture, `lab.toml`, a policy card and the two files of a "
    "[queue](queue.md). An unknown key is refused with the "
    "file, the line and the known ones. A unit is the end of a name. A key without a default that is not *must be "
    "there* is nothing when it is left out. What `options` tables hold is each driver's own: [drivers](drivers.md).\n\n"
    "`labctl schema protocol` (or `cell`, `fixture`, `lab`, `card`, `queue-keys`, `shifts`) prints the same as a JSON "
    "Schema, by which an "
    "editor completes keys, explains them and marks what is wrong. `labctl new` writes the schemas into the lab's "
    "folder `schemas/` and a first line `#:schema ...` into its files; taplo and VS Code's Even Better TOML read that "
    "line. Rules across keys (tau beyond the budget, an unknown object) are for `labctl plan` and `labctl doctor`.\n\n"
    "Written by `make docs` from the schemas that read the files.\n"
)
TITLES = {
    "protocol": "A protocol",
    "cell": "A cell",
    "fixture": "A fixture",
    "lab": "lab.toml",
    "card": "A policy card",
    "queue-keys": "queue-keys.toml",
    "shifts": "shifts.toml",
}
PARSERS = {
    "protocol": parse_protocol,
    "cell": parse_cell,
    "fixture": parse_fixture,
    "lab": parse_lab,
    "card": parse_card,
}
SHIPPED: list[tuple[str, Path]] = [
    *(("cell", path) for path in sorted((ROOT / "hw_configs").glob("*.toml"))),
    ("cell", ROOT / "labctl/templates/demo_cell.toml"),
    *(("protocol", path) for path in sorted((ROOT / "protocols").glob("*.toml"))),
    ("protocol", ROOT / "labctl/templates/first.toml"),
    *(("fixture", path) for path in sorted((ROOT / "fixtures").glob("*.toml"))),
    ("lab", ROOT / "labctl/templates/lab.toml"),
    *(("card", path) for path in sorted((ROOT / "protocols/cards").glob("*.toml"))),
]
# What a pattern of a file's keys allows, in words.
IN_WORDS: Mapping[str, str] = {
    **PATTERNS,
    STATE: f"{', '.join(f'`{one}`' for one in STATES)}; in a cell of two robots with a name before it: `left.gripper`",
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
# A broken line instead of a good one: of which file, what stood there, what stands there now.
BROKEN = [
    ("cell", "hw_configs/sim_fr3.toml", "state_hz =", "state_rate ="),
    ("cell", "hw_configs/sim_fr3.toml", 'kind = "sim"', 'kind = "toy"'),
    ("cell", "hw_configs/sim_fr3.toml", "rate_hz = 10.0", "rate_hz = 0.0"),
    ("cell", "hw_configs/sim_fr3.toml", "box_min_m = [0.15, -0.60, 0.00]", "box_min_m = [0.15, -0.60]"),
    ("protocol", "protocols/demo.toml", "items_staged = 4", 'items_staged = "4"'),
    ("protocol", "protocols/demo.toml", "items_staged = 4", ""),
    ("protocol", "protocols/demo.toml", "alpha = 0.05", "alpha = 1.0"),
    ("fixture", "fixtures/two_totes.toml", 'camera_side = "', 'camera_side = "up'),
    ("card", "protocols/cards/pi05_droid.toml", 'space = "', 'space = "un'),
    ("card", "protocols/cards/pi05_droid.toml", "deadline_s =", "deadline ="),
]


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


def keys_above(kind: str) -> list[Key]:
    """The keys of a kind of file that stand in no table."""
    schema = schema_of_file(kind)
    return [
        key(name, part, name in schema.get("required", ()))
        for name, part in schema["properties"].items()
        if not (is_table(part) or (part.get("type") == "array" and is_table(part.get("items", {}))))
    ]


def _tables(schema: Schema, at: str) -> Iterator[TableOf]:
    for name, part in schema["properties"].items():
        several = part.get("type") == "array" and is_table(part.get("items", {}))
        if not (several or is_table(part)):
            continue
        inside = part["items"] if several else part
        here = f"{at}.{name}".lstrip(".")
        own = [
            key(one, inner, one in inside.get("required", ()))
            for one, inner in inside["properties"].items()
            if not is_table(inner)
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
    if schema.get("format") == "date-time":
        return "time"
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
        found.append(IN_WORDS[schema["pattern"]])
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
    if low is None:
        return [f"at most {high}"]
    return [f"{low} to {high} of them" if high is not None else f"at least {low}"]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value)


def page() -> str:
    """The page as the schemas have it now."""
    return HEAD + "".join(f"\n## {TITLES[kind]}\n" + above(kind) + tables(kind) for kind in FILES)


def tables(kind: str) -> str:
    return "".join(map(section, tables_of_file(kind)))


def above(kind: str) -> str:
    """The keys that stand in no table, "" where there are none."""
    own = keys_above(kind)
    return f"\n{rows_of(own)}" if own else ""


def section(table: TableOf) -> str:
    needed = " Must be there." if table.needed else ""
    return f"\n### `{table.heading}`\n{table.meaning}{needed}\n\n{rows_of(table.keys)}"


def rows_of(keys: Sequence[Key]) -> str:
    rows = [
        f"| `{one.name}` | {one.kind} | {one.unit} | {_default(one)} | {_cell(one.allowed)} | {_cell(one.meaning)} |"
        for one in keys
    ]
    head = "| key | is | unit | default | allowed | means |\n|---|---|---|---|---|---|\n" if rows else ""
    return head + "".join(f"{row}\n" for row in rows)


def _default(one: Key) -> str:
    return "must be there" if one.needed else f"`{one.default}`" if one.default else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def keys_of(schema: Any, at: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        yield at + name
        yield from keys_of(part.get("items", part), f"{at}{name}.")


def problems(kind: str, text: str) -> list[str]:
    """What a validator that nobody here wrote has against a file's text."""
    validator = jsonschema.Draft202012Validator(schema_of_file(kind))
    return [error.message for error in validator.iter_errors(tomllib.loads(text))]


def test_the_page_lists_every_key_as_the_schemas_have_it():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


@pytest.mark.parametrize("kind", FILES)
def test_every_key_has_one_sentence_and_no_sentence_is_of_another_key(kind: str):
    assert sorted(keys_of(schema_of_file(kind))) == sorted(MEANINGS[kind])
    assert [text for text in MEANINGS[kind].values() if not text.endswith(".") or "\n" in text] == []


@pytest.mark.parametrize("kind", FILES)
def test_a_schema_is_one_of_its_draft(kind: str):
    jsonschema.Draft202012Validator.check_schema(schema_of_file(kind))


@pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=[path.stem for _, path in SHIPPED])
def test_what_is_shipped_keeps_to_its_schema(kind: str, path: Path):
    assert problems(kind, path.read_text("utf-8")) == []


@pytest.mark.parametrize(("kind", "name", "good", "bad"), BROKEN, ids=[f"{one[0]}: {one[3]}" for one in BROKEN])
def test_what_labctl_refuses_an_editor_marks(kind: str, name: str, good: str, bad: str):
    text = (ROOT / name).read_text("utf-8")
    assert good in text
    broken = text.replace(good, bad, 1)
    with pytest.raises(InputError):
        PARSERS[kind](broken, name)
    assert problems(kind, broken)


@pytest.mark.parametrize(
    "alerts",
    ["[alerts]\n", "[alerts.ntfy]\n", '[alerts.email]\nserver = "m"\nsender = "a@m"\nto = ["b@m"]\nuser = "u"\n'],
    ids=["no way", "no address", "half a login"],
)
def test_a_rule_of_several_keys_that_a_schema_can_say_is_in_it(alerts: str):
    with pytest.raises(InputError):
        parse_lab(alerts, "lab.toml")
    assert problems("lab", alerts)


def test_a_key_that_stands_in_no_table_is_on_the_page_too():
    assert [one.name for one in keys_above("lab")] == ["people", "timezone"]
    assert [one.name for one in keys_above("queue-keys")] == ["lab", "networks"]


ARM = '[[arm]]\nname = "Ana"\nkind = "human"\ncontroller = "sim_human"\n'
TEMPLATE = '[[template]]\nname = "{object}"\ntask = "put it over"\n'


def test_a_person_alone_is_a_protocol_to_the_schema_too_and_a_policy_alone_is_none():
    text = re.sub(r"(?ms)^\[\[arm\]\]\n.*?(?=^\[(?!arm\.)|\Z)", "", (ROOT / "protocols/demo.toml").read_text("utf-8"))
    text = text.replace("ask_guess = true", "").replace('reference = "human"', "") + ARM
    parse_protocol(text, "demo.toml")
    assert problems("protocol", text) == []
    policy = text.replace('kind = "human"', 'kind = "policy"')
    with pytest.raises(InputError):
        parse_protocol(policy, "demo.toml")
    assert problems("protocol", policy)


def test_conditions_may_all_be_of_templates_to_the_schema_too():
    whole = (ROOT / "protocols/demo_tasks.toml").read_text("utf-8")
    text = re.sub(r"(?ms)^\[\[condition\]\]\n.*?(?=^\[|\Z)", "", whole)
    parse_protocol(text + TEMPLATE, "demo_tasks.toml")
    assert problems("protocol", text + TEMPLATE) == []
    assert problems("protocol", text), "without either nothing is tried"
    axis = TEMPLATE + 'axes = ["V-NONE"]\n'
    with pytest.raises(InputError):
        parse_protocol(text + axis, "demo_tasks.toml")
    assert problems("protocol", text + axis)


def test_a_new_lab_has_the_schemas_that_its_files_name(tmp_path: Path):
    written = [path.relative_to(tmp_path) for path in new_lab(tmp_path)]
    named = set()
    for path in written:
        if path.suffix == ".toml":
            first = (tmp_path / path).read_text("utf-8").splitlines()[0]
            assert first.startswith("#:schema "), path
            schema = (tmp_path / path.parent / first.removeprefix("#:schema ")).resolve()
            validator = jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8")))
            assert not list(validator.iter_errors(tomllib.loads((tmp_path / path).read_text("utf-8"))))
            named.add(schema.name)
    assert named == {"lab.json", "cell.json", "fixture.json", "protocol.json"}
    assert (tmp_path / "schemas/card.json").is_file(), "a card names it when somebody writes one"


def test_labctl_schema_prints_one_or_writes_it(tmp_path: Path):
    printed = CliRunner().invoke(schema_verb, ["cell"])
    assert json.loads(printed.output) == schema_of_file("cell")
    said = CliRunner().invoke(schema_verb, ["card", "--out", str(tmp_path / "card.json")])
    assert "#:schema card.json" in said.output
    assert json.loads((tmp_path / "card.json").read_text("utf-8")) == schema_of_file("card")
    refused = CliRunner().invoke(schema_verb, ["robot"]).exception
    assert "no schema 'robot'; of files: protocol, cell" in str(refused)


if __name__ == "__main__":
    sys.stdout.write(page())
