"""Two files of a lab beside lab.toml: whose requests it takes (queue-keys.toml), and when who operates (shifts.toml).

May not: take a line away or change one; a key is revoked by a line more, and people edit both files by hand.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field

from labctl import times
from labctl.clock import MonotonicClock, wall_of
from labctl.config.policy_card import Name
from labctl.config.toml_text import Document, Table, parse
from labctl.config.values import Lax, Text, Texts
from labctl.errors import InputError, StateError
from labctl.queue.endpoints import Network
from labctl.queue.request import OWNER_ONLY, Public, Words
from labctl.store.atomic_files import replace_file
from labctl.store.lab_folder import read_text
from labctl.store.locks import Lock, lab_lock

KEYS, SHIFTS = "queue-keys.toml", "shifts.toml"


class KnownKey(Table):
    """[[key]]: whose it is, and how they are reached."""

    public: Public
    who: Words
    contact: Words


class RevokedKey(Table):
    """[[revoked]]: from when (ISO 8601), and why."""

    public: Public
    since: Text
    why: Text


class Keys(Document):
    """queue-keys.toml. lab: what requests call this lab; networks: addresses in the lab's own network at which a policy
    may answer, such as "10.20.0.0/24"; outside of them an endpoint is wss:// and in the open internet.
    """

    lab: Name
    networks: Annotated[tuple[Text, ...], Lax] = ()
    key: Annotated[tuple[KnownKey, ...], Lax] = ()
    revoked: Annotated[tuple[RevokedKey, ...], Lax] = ()

    def known(self, public: str, where: str) -> KnownKey:
        """Whose key it is. Raises StateError for one that the lab does not know, or that was revoked."""
        found = next((one for one in self.key if one.public == public), None)
        if found is None:
            raise StateError(
                f"{where}: key {public[:16]}… is not known here; labctl queue trust KEY.toml adds one to {KEYS}"
            )
        ended = next((one for one in self.revoked if one.public == public), None)
        if ended is not None:
            was = f"key {public[:16]}… was revoked at {ended.since} ({ended.why})"
            raise StateError(f"{where}: {was}; its owner signs with another key")
        return found

    def nets(self) -> tuple[Network, ...]:
        """The lab's own networks. Raises InputError at the line of one that is none."""
        found: list[Network] = []
        for index, named in enumerate(self.networks):
            try:
                found.append(ipaddress.ip_network(named))
            except ValueError:
                raise self.refusal(
                    ("networks", index), f"{named!r} is no network; write it like 10.20.0.0/24 or 10.20.0.7/32"
                ) from None
        return tuple(found)


class OneKey(Document):
    """What `labctl submit key` writes, for `trust`."""

    key: Annotated[tuple[KnownKey, ...], Lax] = ()


class ShiftTable(Table):
    """[[shift]]: from and to, in the lab's own time or with an offset; who operates, by opaque ids."""

    from_: Annotated[times.Written, Field(alias="from")]
    to: times.Written
    who: Texts


class Shifts(Document):
    """shifts.toml: in any order, none beside another."""

    shift: Annotated[tuple[ShiftTable, ...], Lax] = ()


@dataclass(frozen=True, slots=True)
class Shift:
    """When who operates; ns since 1970-01-01 UTC."""

    begins_ns: int
    ends_ns: int
    who: tuple[str, ...]


def read_keys(lab: Path) -> Keys:
    """Raises InputError; StateError for a lab that takes no request yet."""
    if not (lab / KEYS).is_file():
        raise StateError(
            f"{lab / KEYS} is not there: this lab takes no requests; labctl queue trust KEY.toml adds the first key"
        )
    found = parse(Keys, read_text(lab / KEYS), str(lab / KEYS))
    found.nets()
    return found


def trust(lab: Path, table: Path) -> KnownKey:
    """Add the [[key]] table that `labctl submit key` printed to a lab's keys, as text behind what is there.

    Raises InputError for what is no such table, and for a key that is there already; StateError while another command
    writes to the queue.
    """
    wanted = parse(OneKey, read_text(table), str(table))
    if len(wanted.key) != 1:
        raise InputError("give the one [[key]] table that labctl submit key wrote, and nothing else", where=str(table))
    added = wanted.key[0]
    path = lab / KEYS
    with _alone(lab, "trust"):
        text = read_text(path) if path.is_file() else _beginning(lab)
        before = parse(Keys, text, str(path))
        if any(one.public == added.public for one in before.key):
            revoked = any(one.public == added.public for one in before.revoked)
            more = ", and revoked: have its owner make another" if revoked else ""
            raise InputError(f"key {added.public[:16]}… is in {KEYS} already{more}")
        _replace(path, text, "\n" + key_table(added.public, added.who, added.contact))
    return added


def key_table(public: str, who: str, contact: str) -> str:
    """The text of a [[key]] table. Raises InputError for what cannot be one."""
    text = f'[[key]]\npublic = "{public}"\nwho = {_quoted(who)}\ncontact = {_quoted(contact)}\n'
    parse(OneKey, text, "the key")
    return text


def revoke(lab: Path, begins: str, why: str, wall: str) -> KnownKey:
    """Add a [[revoked]] table for the key that begins so. Raises InputError, StateError."""
    with _alone(lab, "revoke"):
        keys = read_keys(lab)
        fits = [one for one in keys.key if len(begins) >= 8 and one.public.startswith(begins.lower())]
        if len(fits) != 1:
            known = ", ".join(one.public[:16] for one in keys.key) or "none"
            raise InputError(f"{begins!r} begins {len(fits)} keys here; give 8 digits or more of one of: {known}")
        found = keys.known(fits[0].public, KEYS)
        lines = [f'public = "{found.public}"', f'since = "{wall}"', f"why = {_quoted(why)}"]
        _replace(lab / KEYS, read_text(lab / KEYS), "\n".join(["", "[[revoked]]", *lines, ""]))
    return found


def read_shifts(lab: Path) -> list[Shift]:
    """In the order of time; none for a lab without the file. Raises InputError at the line of one that cannot be."""
    path = lab / SHIFTS
    if not path.is_file():
        return []
    found = parse(Shifts, read_text(path), str(path))
    shifts: list[tuple[Shift, int]] = []
    for index, one in enumerate(found.shift):
        try:
            begins, ends = times.written_ns(one.from_), times.written_ns(one.to)
        except ValueError as error:
            raise found.refusal(("shift", index), str(error)) from None
        if begins >= ends:
            raise found.refusal(("shift", index, "to"), f"a shift ends at {one.to}, not after it begins, {one.from_}")
        if not one.who:
            raise found.refusal(("shift", index, "who"), "who is empty; name who operates, by opaque ids")
        shifts.append((Shift(begins, ends, one.who), index))
    shifts.sort(key=lambda pair: (pair[0].begins_ns, pair[0].ends_ns))
    for (before, _), (after, index) in pairwise(shifts):
        if after.begins_ns < before.ends_ns:
            at = wall_of(before.ends_ns)
            text = f"it begins before another one ends ({at}); one rig has one shift at a time: name both people in it"
            raise found.refusal(("shift", index, "from"), text)
    return [shift for shift, _ in shifts]


def _alone(lab: Path, verb: str) -> Lock:
    """Between reading the keys and writing them nobody else does: a line that a person was told of stays."""
    return lab_lock(lab, "queue", f"queue {verb}", what="the queue", clock=MonotonicClock())


def _beginning(lab: Path) -> str:
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in lab.resolve().name).strip("-")
    return (
        "# Whose requests this lab takes: labctl queue trust, labctl queue revoke; docs/queue.md.\n"
        f'lab = "{name or "lab"}" # what requests call this lab\n'
        'networks = [] # where a policy of the lab\'s own network may answer, such as "10.20.0.7/32"\n'
    )


def _replace(path: Path, before: str, more: str) -> None:
    text = before if before.endswith("\n") else f"{before}\n"
    parse(Keys, text + more, str(path))
    replace_file(path, (text + more).encode(), mode=None if path.is_file() else OWNER_ONLY)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, of what is printable."""
    return json.dumps(text, ensure_ascii=False)
