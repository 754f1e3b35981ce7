"""The seal host's record as it is published: its journal as lines of JSON, which parts it goes with, their one report.

May not: believe what it reads, or open a database of a stranger: what it reads is text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from labctl.core.event_bodies import body_of
from labctl.core.events import Event, canonical
from labctl.errors import BrokenRecord
from labctl.joint.state import JointKind, JointOpened
from labctl.publishing.guard import check_path, hold_to
from labctl.publishing.manifest import LARGEST, PLAIN_NAME, Common, FileListed, plain_json, read_form
from labctl.publishing.names import TIME, is_time
from labctl.publishing.tables import JOURNAL
from labctl.store.atomic_files import file_errors
from labctl.store.database_backend import PUBLISHED

SCHEMA = "labctl.published_joint/1"
ENTRIES = "joint.jsonl"
AT_THE_ROOT = ("README.md", "LICENSE.txt", ENTRIES)
Number = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True)
class PartListed:
    """A published part: its campaign, and sha256 hex of its manifest."""

    campaign: str
    cell: str
    part: int
    manifest: str


@dataclass(frozen=True, slots=True)
class JointManifest(Common):
    """What `published.json` of a seal host's record holds. parts: those that the report in it was made of."""

    schema: Literal["labctl.published_joint/1"]
    parts: list[PartListed]
    files: dict[str, FileListed]


@dataclass(frozen=True, slots=True)
class SealRecord:
    """A folder that is as its manifest says. digest: sha256 hex of the manifest; events: entries whose chain was not
    looked at yet.
    """

    folder: Path
    manifest: JointManifest
    digest: str
    events: list[Event]


@dataclass(frozen=True, slots=True)
class _Line(Event):
    """An entry as a line has it."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    seq: Number
    body: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


_FORM: TypeAdapter[JointManifest] = TypeAdapter(JointManifest)
_LINE: TypeAdapter[_Line] = TypeAdapter(_Line)


def is_seal_record(folder: Path) -> bool:
    """Whether a published folder says of itself that it is a seal host's record; False for what cannot be read."""
    path = folder / PUBLISHED
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return False
        found = plain_json(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("schema") == SCHEMA


def says_part(folder: Path) -> bool:
    """Whether a published folder says of itself that it is a part of a joint campaign; nothing of it is believed."""
    path = folder / "tables" / JOURNAL
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as lines:
            found = json.loads(lines.readline(LARGEST))
    except (OSError, ValueError, RecursionError):
        return False
    body = found.get("body") if isinstance(found, dict) else None
    return isinstance(body, dict) and "joint" in body


def lines_of(events: Sequence[Event]) -> bytes:
    """A journal as lines."""
    return b"".join(canonical(asdict(event)) + b"\n" for event in events)


def read_seal_record(folder: Path, say: Callable[[str], None] = lambda line: None) -> SealRecord:
    """A published seal host's record, held against its manifest. Raises as `guard.admit`."""
    manifest, digest = read_form(folder, _FORM)
    for name in manifest.files:
        check_path(name, "its manifest lists")
        if name not in AT_THE_ROOT and not name.startswith("report/"):
            where = f"{', '.join(AT_THE_ROOT)} and report/"
            raise BrokenRecord(f"its manifest lists {name[:100]!r}; a seal host's published record has {where}")
    hold_to(folder, manifest.files, say)
    if ENTRIES not in manifest.files:
        raise BrokenRecord(f"missing file: {ENTRIES}: without it nothing can be verified")
    path = folder / ENTRIES
    events: list[Event] = []
    with file_errors(str(path)), path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                events.append(Event(**asdict(_LINE.validate_json(line))))
            except (ValidationError, ValueError, RecursionError):
                raise BrokenRecord(f"{ENTRIES}:{number}: no entry of a journal") from None
    _refuse_names(events)
    return SealRecord(folder, manifest, digest, events)


def _refuse_names(events: Sequence[Event]) -> None:
    """Raises BrokenRecord for a journal whose names or times nothing may go by."""
    if not events or events[0].kind != JointKind.OPENED:
        raise BrokenRecord(f"{ENTRIES} does not begin with the opening of a joint campaign")
    if (other := next((event for event in events if not is_time(event.wall)), None)) is not None:
        raise BrokenRecord(f"{ENTRIES}: entry {other.seq} was written at {other.wall!r:.60}: {TIME}")
    try:
        opened = body_of(events[0], JointOpened)
        names = [opened["name"], *opened["cells"], *(one["cell"] for one in opened["parts"])]
        names += [trial for block in opened["blocks"] for trial in block["trials"]]
        bad = next((name for name in names if PLAIN_NAME.fullmatch(name) is None), None)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise BrokenRecord(f"{ENTRIES}:1: it lacks what the opening of a joint campaign says") from None
    if bad is not None:
        raise BrokenRecord(f"{ENTRIES}:1: {str(bad)[:60]!r} is no plain name: letters, digits, '.', '_', '-'")
