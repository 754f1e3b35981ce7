"""What the options of a driver may be: the strict base of every driver's own table, and its errors in one line.

May not: open files, or know a driver. A driver derives its table from `Options`, once: names, types, units (in the
names), defaults, ranges, and a line of help for each; it is read where a campaign is opened and where the device is
built, and printed in docs/drivers.md. A module with such a table imports no vendor's library.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError

from labctl.axes import Axis
from labctl.config.cell_schema import Cell
from labctl.config.toml_text import Location, Table, suggestion
from labctl.config.values import Positive
from labctl.errors import OptionError
from labctl.plain import Json
from labctl.streams import StreamSpec

Schema = Mapping[str, Any]  # JSON schema, as pydantic writes it


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Another driver that these options name: the key of its options in the table, its name, its own options."""

    key: str
    driver: str
    options: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two keys that do not go together. about: what they are of; text: both, with their numbers; remedy: what to do."""

    about: str
    text: str
    remedy: str


class Options(Table):
    """Base of a driver's options. A field's description is its line of help."""

    @classmethod
    def read(cls, given: Mapping[str, Json], driver: str) -> Self:
        """The options of a TOML table. Raises OptionError: what was found, what is allowed, and at which key."""
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            # a misspelt key also shows up as a missing one, and the misspelling is what to correct
            found = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")[0]
            at = tuple(found["loc"])[:1]
            raise OptionError(_complaint(cls, driver, given, found["type"], at, found["msg"]), at) from None

    def controller_host(self) -> str | None:
        """The address of a robot's controller, for a driver that connects to one."""
        return None

    def device(self) -> str | None:
        """What nobody else can have open, such as a port or a camera's serial number, as its key and value, "port =
        /dev/ttyUSB0"; None where it is shared, or not said."""
        return None

    def wrapped(self) -> Sequence[Wrapped]:
        """The drivers that are named inside, whose options are checked as well."""
        return ()

    def axes(self) -> Sequence[Axis] | None:
        """A robot's axes, the arm's first; None where it has joints in rad and one opening in m."""
        return None

    def contradictions(self, cell: Cell) -> Sequence[Contradiction]:
        """Where these options do not go together, or with the rest of their cell, though each may be so alone."""
        return ()


class NoOptions(Options):
    """Of a driver that has none."""


class CameraOptions(Options):
    """Base of a camera's options: with what its [[camera]] table has besides."""

    OF_TABLE: ClassVar[tuple[str, ...]] = ("width", "height", "rate_hz")

    width: int = Field(gt=0, le=8192, description="pixels; of the [[camera]] table")
    height: int = Field(gt=0, le=8192, description="pixels; of the [[camera]] table")
    rate_hz: Positive = Field(description="pictures per second; of the [[camera]] table")


class SensorOptions(Options):
    """Base of a sensor's options: with the rate of its [[sensor]] table."""

    OF_TABLE: ClassVar[tuple[str, ...]] = ("rate_hz",)

    rate_hz: Positive = Field(description="samples per second; of the [[sensor]] table")

    def stream(self) -> StreamSpec:
        """What it records, known before anything is connected: columns, a unit for each (or one for all), and which of
        them a blind role may see. Whoever records it names it sensor/NAME, as the cell does.
        """
        raise NotImplementedError(f"{type(self).__name__} has to say what its sensor records: stream()")


OWN = "is an address of this very computer: no robot is there, an emulator may be"


def is_own(host: str) -> bool:
    """Whether an address, as it is written, is of this computer's loopback. Looks nothing up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") in ("localhost", "localhost.localdomain", "ip6-localhost")


def wrapped_driver(key: str, table: Mapping[str, Json], default: str) -> Wrapped:
    """The driver that a table names by its key `driver`, with the rest of the table as its options."""
    name = table.get("driver", default)
    if not isinstance(name, str):
        raise OptionError(f"{key}.driver must be a driver's name, found {name!r}", (key,))
    return Wrapped(key, name, {other: value for other, value in table.items() if other != "driver"})


LISTED = {"number": "finite numbers", "integer": "whole numbers", "string": "texts"}


def schema_of(table: type[Options]) -> dict[str, Schema]:
    """Of each option its JSON schema: type, range, default, description."""
    whole = table.model_json_schema()
    return {name: _written_out(one, whole.get("$defs", {})) for name, one in whole["properties"].items()}


def _written_out(schema: Schema, known: Mapping[str, Schema]) -> Schema:
    """With what it refers to: a type that has a name stands elsewhere."""
    if "$ref" in schema:
        schema = {**known[schema["$ref"].rpartition("/")[2]], **schema}
    return {**schema, "anyOf": [_written_out(one, known) for one in schema["anyOf"]]} if "anyOf" in schema else schema


def allowed(schema: Schema) -> str:
    """What an option may be, in words, from its JSON schema."""
    if "allowed" in schema:
        return str(schema["allowed"])
    if "anyOf" in schema:
        return " or ".join(allowed(part) for part in schema["anyOf"] if part.get("type") != "null")
    if "const" in schema:
        return _toml(schema["const"])
    if "enum" in schema:
        return f"one of {', '.join(map(_toml, schema['enum']))}"
    kind = schema.get("type")
    if kind == "array":
        count, part = schema.get("minItems"), schema.get("prefixItems", [schema.get("items", {})])[0]
        many = f"a list of {count}" if count is not None and count == schema.get("maxItems") else "a list of"
        return f"{many} {LISTED.get(str(part.get('type')), 'values')}"
    if kind in ("number", "integer"):
        return ("a number" if kind == "number" else "a whole number") + _range(schema)
    return {"boolean": "true or false", "string": "a text", "object": "a table"}[str(kind)]


def _range(schema: Schema) -> str:
    low, high, above = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    words = [f"{low:g} or more"] if low is not None else [f"above {above:g}"] if above is not None else []
    words += [f"at most {high:g}"] if high is not None else []
    return "".join(f", {word}" for word in words)


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _complaint(
    table: type[Options], driver: str, given: Mapping[str, Json], sort: str, at: Location, problem: str
) -> str:
    known = list(table.model_fields)
    name = str(at[0]) if at else ""
    if sort == "extra_forbidden":
        if not known:
            return f"{driver} has no options, found {name!r}; leave it out"
        return f"{driver} has no option {name!r}{suggestion(name, known)}; known options: {', '.join(known)}"
    if not at:
        return f"{driver}: {problem.removeprefix('Value error, ')}"
    schema = schema_of(table)[name]
    if sort == "missing":
        return f"{driver} needs the option {name!r}: {allowed(schema)}"
    if sort == "value_error":
        return f"{driver}: {name} {problem.removeprefix('Value error, ')}"
    return f"{driver}: {name} must be {allowed(schema)}, found {given[name]!r}"
