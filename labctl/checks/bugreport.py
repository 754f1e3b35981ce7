"""What a report of a bug needs of a campaign, as one archive: versions, checks, files and logs without arms and people.

May not: open a recording, hold anything that lies in the seal, or tell arms apart, before unblinding or after: arms,
people, addresses and this computer are replaced by what they are, each alike.
"""

from __future__ import annotations

import getpass
import io
import ipaddress
import json
import os
import re
import socket
import tomllib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from labctl.checks.computer import software
from labctl.checks.telling_words import telling_words
from labctl.clock import Clock
from labctl.core.events import Event, Kind
from labctl.errors import InputError, LabctlError
from labctl.messages.body_parts import Pins
from labctl.people.personal_codes import codes_of
from labctl.plain import Json, count
from labctl.software import collect_pins
from labctl.store.atomic_files import replace_file
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import lab_with, settings_of

VERSIONS = "versions.json"  # a version of four numbers looks like an address, and there is no address in it
LOG_BYTES = 500_000  # the end of each log
ROLES = frozenset({"operator", "labctl-run", "run", "demo", "labctl stop"})  # who acts and is no person
_PERSON = re.compile(r"(?:who|person|by|operator|assessor|[a-z_]+_by)")
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+|[\w.+-]+@[\w-]+\.[\w.-]+|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])", re.I
)
_COLONS = re.compile(r"(?<![\w.:])[0-9a-f]{0,4}:[0-9a-f.:]*:[0-9a-f.]*(?![\w:])", re.I)  # an IPv6 address, or a time
_BETWEEN = re.compile(r"[-_. ]+")  # one name is written in several ways: pi0-fast, pi0_fast.py, Pi0 Fast
_SECRET_KEYS = re.compile(r"host|address|url|serial|password|token|secret|user|server|port|path|device$", re.I)
LEFT_OUT = (
    "the seal: the schedule, the controllers' logs, which arm did not answer",
    "[[arm]] and [[link]] of the protocol, policy cards",
    "what the entries of the journal say, and who wrote them; their times are to the minute",
    "traces, videos and photos",
    "values of the cell that are addresses, serial numbers or names of devices",
)


@dataclass(frozen=True, slots=True)
class Written:
    """An archive: where it is, the names in it, and what is not in it."""

    path: Path
    held: list[str]
    left_out: list[str]


def write_bugreport(folder: Path, out: Path, clock: Clock) -> Written:
    """Write it. Raises InputError for a place that is taken, StorageError, BrokenRecord for a journal that cannot be
    read.
    """
    if out.exists():
        raise InputError(f"--out {out} is there already; give another name")
    if out.suffix != ".zip":
        raise InputError(f"--out {out}: the archive is a zip; give a name that ends in .zip")
    with Campaign.open(folder) as campaign:
        events = campaign.events()
    telling = telling_words(folder)
    hide = _Hide(_named(folder, events, telling.words))
    parts = {
        VERSIONS: _json({"now": collect_pins(), "runs": _pins(events)}),
        "doctor.json": _json([asdict(check) for check in software(folder, clock)]),
        "protocol.json": _json(_toml(lambda: telling.protocol, drop=("arm", "link"))),
        "cell.json": _json(_toml(lambda: (folder / "cell.toml").read_text("utf-8"))),
        "journal.json": _json([[event.seq, event.kind, event.wall[:16]] for event in events]),
    }
    for path in sorted((folder / "logs").glob("*.log*")):
        parts[f"logs/{path.name}"] = path.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
    shown = {name: hide(text, addresses=name != VERSIONS) for name, text in parts.items()}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in shown.items():
            archive.writestr(name, text)
    replace_file(out, made.getvalue(), mode=0o600)
    return Written(out, list(shown), [*LEFT_OUT, *hide.counted()])


class _Hide:
    """Replaces what tells arms, people and places by what it is; counts how often."""

    def __init__(self, named: Mapping[str, Collection[str]]) -> None:
        kinds = {_as_said(word): kind for kind, words in named.items() for word in words if _as_said(word)}
        longest = sorted(kinds, key=len, reverse=True)
        inside = "|".join(_BETWEEN.pattern.join(map(re.escape, word.split("-"))) for word in longest)
        self._words = re.compile(rf"(?<![A-Za-z0-9])(?:{inside})(?![A-Za-z0-9])", re.I) if inside else None
        self._kinds = kinds
        self._done: dict[str, int] = {}

    def __call__(self, text: str, *, addresses: bool = True) -> str:
        if addresses:
            text = _ADDRESS.sub(lambda found: self._as("address"), text)
            text = _COLONS.sub(self._colons, text)
        if self._words is not None:
            text = self._words.sub(lambda found: self._as(self._kinds[_as_said(found[0])]), text)
        return text

    def _colons(self, found: re.Match[str]) -> str:
        """An address may be the end of a sentence, or have its reason behind a colon."""
        for end in (len(found[0]), len(found[0]) - 1):
            if _is_address(found[0][:end]):
                return self._as("address") + found[0][end:]
        return found[0]

    def _as(self, kind: str) -> str:
        self._done[kind] = self._done.get(kind, 0) + 1
        return f"<{kind}>"

    def counted(self) -> list[str]:
        """What was replaced, in words."""
        return [f"replaced by <{kind}>: {count(times, 'place')}" for kind, times in sorted(self._done.items())]


def _as_said(word: str) -> str:
    """A name in the one way in which it is known."""
    return _BETWEEN.sub("-", word.lower()).strip("-")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _named(folder: Path, events: Iterable[Event], arms: Collection[str]) -> dict[str, Collection[str]]:
    """What is to be replaced, by what it is. arms: words that tell one."""
    lab = lab_with(folder)
    people: set[str] = set()
    with suppress(LabctlError):  # a lab.toml that does not hold may be what is reported; the journal names people too
        people |= {*codes_of(lab), *(settings_of(lab).people if lab is not None else ())}
    for event in events:
        people |= {event.who, *_people_of(event.body)} if event.who else {*_people_of(event.body)}
    machine = {socket.gethostname(), getpass.getuser() if "USER" in os.environ else "", str(Path.home())}
    machine = {word for word in machine if len(word) > 2 and word not in ("root", "/root", "localhost")}
    return {"arm": arms, "person": people - ROLES, "machine": machine}


def _people_of(value: Json, key: str = "") -> set[str]:
    if isinstance(value, Mapping):
        named = {str(value["id"])} if key == "people" and "id" in value else set[str]()
        return named | {one for name, inside in value.items() for one in _people_of(inside, str(name))}
    if isinstance(value, (list, tuple)):
        return {one for inside in value for one in _people_of(inside, key)}
    return {value} if isinstance(value, str) and _PERSON.fullmatch(key) and len(value) < 40 else set()


def _pins(events: Iterable[Event]) -> list[Json]:
    """The software of each run, where it changed."""
    found: list[Json] = []
    for event in events:
        if event.kind == Kind.RUN_STARTED and event.body.get("pins") not in found[-1:]:
            found.append(event.body.get("pins"))
    return found


def _toml(read: Callable[[], str], drop: Collection[str] = ()) -> Json:
    """A file's tables, without some and without what says where a device is."""
    try:
        tables = tomllib.loads(read())
    except (OSError, ValueError, RecursionError) as error:
        return {"cannot be read": type(error).__name__}
    return _bare({key: value for key, value in tables.items() if key not in drop})


def _bare(value: Json, key: str = "") -> Json:
    if isinstance(value, Mapping):
        return {name: _bare(inside, name) for name, inside in value.items()}
    if isinstance(value, list):
        return [_bare(inside, key) for inside in value]
    if isinstance(value, str) and key == "authors":
        return "<person>"
    return "<address>" if isinstance(value, str) and _SECRET_KEYS.search(key) else value


def _json(value: Json | Mapping[str, Pins | list[Json]]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)
