"""TOML text checked against a pydantic schema; every complaint says where, what was found and what to do.

May not: open files, know what a protocol, cell or fixture means, or let a pydantic or tomllib error
escape.
"""

from __future__ import annotations

import difflib
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails

from labctl.errors import InputError
from labctl.plain import Json

Location = tuple[str | int, ...]
_UNIT = re.compile(r"_(ns|us|ms|s|sec|seconds|min|mm|cm|m|hz|khz|rad|deg|n|gb|mb)(?=_|$)")
_ENDLESS = re.compile(r"\d(_?\d){4000}")
_SYNTAX_LINE = re.compile(r"^(?P<what>.*?) \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
# What a pattern of a schema allows, in words.
PATTERNS: Mapping[str, str] = {
    "^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, `.`, `_` and `-`, first a letter or digit",
    r"^[^/\s]([^/]*[^/\s])?$": "no slash, no blank at either end",
    "^[0-9a-f]{64}$": "64 digits of a SHA-256",
    "^[a-f0-9]{64}$": "64 digits of a key, as `labctl submit key` writes them",
    r"^https?://[^\s/]+\S*$": "an address that begins with http:// or https://",
    "^[A-Za-z_][A-Za-z0-9_]*$": "the name of an environment variable",
    "^[a-z][a-z0-9_]*$": "small letters, digits and `_`",
    r"^[^\x00-\x1f\x7f]+$": "one line",
}
_BE = "it must be "
# What pydantic finds wrong, in words of TOML; what is not here it says well enough itself.
_MUST: Mapping[str, str] = {
    "string_type": "it must be a text, in quotes",
    "string_too_short": "it is empty; write something",
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "tuple_type": "it must be a list, in brackets",
    "list_type": "it must be a list, in brackets",
    "datetime_type": "it must be a date with a time, as in 2026-01-31T08:00:00",
    "dict_type": "it must be a table",
    "model_type": "it must be a table, with one pair of brackets",
    "invalid-json-value": "it must be a text, a number, true or false, a list or a table",
}


class Table(BaseModel):
    """Base of every TOML table: unknown keys, wrong types, infinities and NaN are refused; values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Document(Table):
    """A whole TOML file. It remembers its text, so that a later check can still name the line."""

    _where: str = PrivateAttr("")
    _text: str = PrivateAttr("")

    def refusal(self, at: Location, message: str, where: str | None = None) -> InputError:
        """The InputError for what stands at `at`, e.g. ("arm", 1, "name")."""
        return InputError(message, where=place(where or self._where, self._text, at))


LARGEST = 2**53
HEADS = {"protocol": "a protocol", "cell": "a cell", "fixture": "a fixture", "policy": "a policy card"}
"""The table by which a kind of file is known, and what such a file is called."""
D = TypeVar("D", bound=Document)


def parse(schema: type[D], text: str, where: str) -> D:
    """The document in `text`. `where` is the file's name for messages.

    Raises InputError with `file:line` of the first thing that is wrong.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, where) from None
    except ValueError:  # a whole number of more digits than Python reads
        line = next((at for at, one in enumerate(text.split("\n"), 1) if _ENDLESS.search(one)), 1)
        raise InputError("a number is too long; none means so much here", where=f"{where}:{line}") from None
    except RecursionError:
        text = "tables or lists stand in each other too deeply; no key needs more than three"
        raise InputError(text, where=where) from None
    if (at := _too_large(raw)) is not None:
        raise InputError(f"{_dotted(at)} is larger than any number means here", where=place(where, text, at))
    if other := _another_kind(schema, raw):
        raise InputError(other[1], where=place(where, text, (other[0],)))
    try:
        document = schema.model_validate(raw)
    except ValidationError as error:
        # Unknown keys first: a misspelt key also shows up as a missing one, and the misspelling is what to fix.
        errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
        for one in errors:
            one["loc"] = _location(raw, one["loc"], whole=one["type"] == "missing")
        found, others = _most_telling(errors)
        where = place(where, text, found["loc"])
        raise InputError(_complaint(schema, found, others), where=where) from None
    document._where, document._text = where, text
    return document


def _most_telling(errors: Sequence[ErrorDetails]) -> tuple[ErrorDetails, Sequence[ErrorDetails]]:
    """The first error, and what else the value at its place may be: of a value of several kinds each kind has an error
    of its own. Where one of them is of a part of that value, as a number of a list, its kind was meant.
    """
    first = errors[0]
    if first["type"] in ("extra_forbidden", "missing"):
        return first, ()
    size = len(first["loc"])
    alike = [one for one in errors if one["loc"][:size] == first["loc"] and one["type"] != "missing"]
    found = max(alike, key=lambda one: len(one["loc"]))
    return found, [one for one in alike if one["loc"] == found["loc"] and one is not found]


def _another_kind(schema: type[Document], raw: Mapping[str, JsonValue]) -> tuple[str, str] | None:
    """The table that makes a file one of another kind than is read, and that in words."""
    wanted = next((head for head in HEADS if head in schema.model_fields), None)
    found = next((head for head in HEADS if head in raw and head not in schema.model_fields), None)
    if wanted is None or found is None or wanted in raw:
        return None
    return found, f"this file is {HEADS[found]}; give {HEADS[wanted]}, which has a table [{wanted}]"


def _too_large(value: Json, at: Location = ()) -> Location | None:
    """Where a whole number stands that no float holds; None where there is none."""
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        return next((found for step, one in steps if (found := _too_large(one, (*at, step))) is not None), None)
    return at if isinstance(value, int) and abs(value) > LARGEST else None


def _location(raw: dict[str, JsonValue], steps: Location, *, whole: bool) -> Location:
    """Where an error is, without the kinds of value that pydantic puts between the keys. whole: its last step is a key
    that is not there.
    """
    at: list[str | int] = []
    value: JsonValue = raw
    for index, step in enumerate(steps):
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _ if not (whole and index == len(steps) - 1):
                continue
        at.append(step)
    return tuple(at)


def suggestion(word: str, known: Sequence[str]) -> str:
    """A "did you mean" for the nearest known word, also when only its unit differs; empty when nothing is near."""
    stem = _UNIT.sub("", word)
    same_stem = [name for name in known if _UNIT.sub("", name) == stem]
    near = same_stem or difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if not near:
        return ""
    unit = " (the unit is part of the name: _s, _m, _rad, _hz)" if _UNIT.findall(word) != _UNIT.findall(near[0]) else ""
    return f"; did you mean {near[0]!r}{unit}?"


def _must(found: ErrorDetails) -> str:
    """What a value must be, by an error of pydantic."""
    if found["type"] == "string_pattern_mismatch":
        pattern = found.get("ctx", {}).get("pattern", "")
        return f"allowed: {PATTERNS.get(pattern, pattern)}"
    return _MUST.get(found["type"]) or (
        found["msg"]
        .removeprefix("Value error, ")
        .replace("Input should be", "it must be")
        .replace("Input should", "it should")
    )


def _complaint(schema: type[BaseModel], found: ErrorDetails, others: Sequence[ErrorDetails] = ()) -> str:
    at = tuple(found["loc"])
    name, table = str(at[-1]) if at else "", _table_name(at[:-1])
    if found["type"] == "extra_forbidden":
        known = _known_keys(schema, at[:-1])
        return f"unknown key {name!r} in {table}{suggestion(name, known)}; known keys: {', '.join(known)}"
    if found["type"] == "missing" and isinstance(at[-1], int):
        return f"{_dotted(at[:-1])} has {at[-1]} values; it needs more"
    if found["type"] == "missing":
        return f"{table} needs the key {name!r}; add it"
    if found["type"] in ("too_short", "too_long"):
        limits = found.get("ctx", {})
        least, most, has = limits.get("min_length"), limits.get("max_length"), limits.get("actual_length")
        allowed = f"at least {least}" if least is not None else f"at most {most}"
        return f"{_dotted(at)} has {has} values; it must have {allowed}"
    text = _must(found)
    if found["type"] == "value_error":
        return f"{_dotted(at)}: {text}"
    said = dict.fromkeys((text, *map(_must, others)))
    if all(one.startswith(_BE) for one in said):
        text = _BE + ", or ".join(one.removeprefix(_BE) for one in said)
    value = found["input"]
    shown = repr(value) if isinstance(value, str | int | float | list) else str(value)  # a date: as TOML writes it
    if isinstance(value, bool):
        shown = shown.lower()
    elif isinstance(value, dict):
        shown = "a table"
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        shown = "a list of tables"
    return f"{_dotted(at)} is {shown}; {text}"


def _known_keys(schema: type[BaseModel], at: Location) -> list[str]:
    model = schema
    for step in at:
        if isinstance(step, str):
            model = next(_models(model.model_fields[step].annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The tables inside an annotation such as `Arm`, `tuple[Arm, ...]` or `Robot | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models(part)


def _dotted(at: Location) -> str:
    return "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")


def _table_name(at: Location) -> str:
    return f"[{_dotted(at)}]" if at else "the file"


def _syntax_error(problem: str, text: str, where: str) -> InputError:
    if text.startswith("\ufeff"):
        return InputError("it begins with a byte order mark; save it as UTF-8 without BOM", where=f"{where}:1")
    match = _SYNTAX_LINE.match(problem)
    if match is None:
        return InputError(f"not valid TOML: {problem}", where=where)
    line = match["line"] or str(max(1, len(text.split("\n"))))
    return InputError(f"not valid TOML: {match['what']}; correct this line", where=f"{where}:{line}")


def place(where: str, text: str, at: Location) -> str:
    """`file:line` of the longest known prefix of a location, or just the file."""
    lines = key_lines(text)
    for length in range(len(at), 0, -1):
        for known in (at[:length], (*at[:length], 0)):  # the second: written as [[several]]
            if known in lines:
                return f"{where}:{lines[known]}"
    return where


def key_lines(text: str) -> dict[Location, int]:
    """The line, counted from 1, of every table header and key of a valid TOML text.

    Each statement is parsed by tomllib itself, growing line by line until it is whole, so that multi-line strings and
    arrays cannot be mistaken for keys. What stands inside an inline table or array is found at the statement that
    holds it.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    found: dict[Location, int] = {}
    counts: dict[Location, int] = {}
    table: Location = ()
    start = 0
    while start < len(lines):
        end, statement = _statement(lines, start)
        if lines[start].lstrip().startswith("["):
            table = _open_table(statement, lines[start].lstrip().startswith("[["), counts)
            found.setdefault(table, start + 1)
        else:
            for path in _paths(statement):
                found.setdefault(table + path, start + 1)
        start = end
    return found


def _statement(lines: Sequence[str], start: int) -> tuple[int, dict[str, JsonValue]]:
    for end in range(start + 1, len(lines) + 1):
        try:
            return end, tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
    raise AssertionError("key_lines needs a text that tomllib has accepted")


def _open_table(statement: dict[str, JsonValue], is_array: bool, counts: dict[Location, int]) -> Location:
    names = list(_paths(statement))[-1]
    at: Location = ()
    for depth, name in enumerate(names):
        at = (*at, name)
        if is_array and depth == len(names) - 1:
            counts[at] = counts.get(at, -1) + 1
        if at in counts:
            at = (*at, counts[at])
    return at


def _paths(value: JsonValue) -> Iterator[Location]:
    """Every key path in a parsed statement, outermost first. An array of tables counts as its name only."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (key,)
            for path in _paths(inner):
                yield (key, *path)
