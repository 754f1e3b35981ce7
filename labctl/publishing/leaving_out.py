"""What of a campaign's record is not published: decided by episode, each thing listed under a salted digest.

May not: change or rewrite anything recorded. What is in the journal cannot be left out: each entry's hash covers it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.core.events import Event, Kind, canonical
from labctl.core.record import Record
from labctl.errors import BrokenRecord, InputError
from labctl.publishing.manifest import LeftOut, What
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.media.held import held
from labctl.store.media.reading import local_file
from labctl.store.scene_references import journalled_photos

SALTS = "withheld.json"  # in the lab's campaign folder, its owner's alone: path, or samples:EPISODE -> salt, hex
_PRIVATE = 0o600
PEOPLE, NOT_CHOSEN = "people may be seen in it", "not among the episodes that are published"
NO_PICTURES = "this publication has no pictures"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for. episodes: those whose recordings go, None for all; withhold: episode -> why its pictures do
    not; pictures: whether any go.
    """

    episodes: frozenset[str] | None = None
    withhold: Mapping[str, str] = field(default_factory=dict[str, str])
    pictures: bool = True


@dataclass(frozen=True, slots=True)
class _Thing:
    what: What
    episode: str
    file: str
    content: bytes = b""  # of what is no file


def files_of(events: Sequence[Event]) -> Iterator[tuple[What, str, str]]:
    """Kind, episode ("" of a picture that was given at opening) and path of every file the journal has a digest of."""
    later: dict[str | None, str | None] = {}
    at: dict[int, str] = {}
    for event in reversed(events):  # a commit belongs to the episode that was revealed next for its trial
        if event.kind == Kind.ARM_REVEALED:
            later[event.trial] = event.episode
        at[event.seq] = later.get(event.trial) or ""
    for event in events:
        if event.kind != Kind.RECORDING_SEALED:
            continue
        for video in event.body["videos"].values():
            yield "video", event.episode or "", video["file"]
            if "depth" in video:
                yield "depth", event.episode or "", video["depth"]["file"]
            if "about" in video:
                yield "side file", event.episode or "", video["about"]["file"]
    first = {photo["file"]: seq for seq, photo in reversed(journalled_photos(events))}
    for name, seq in sorted(first.items()):
        yield "photo", at.get(seq, ""), name


def left_out(folder: Path, events: Sequence[Event], record: Record, choice: Choice) -> list[LeftOut]:
    """Every thing that is not published of this campaign, each once. Raises InputError for an episode that it does not
    have, StorageError.
    """
    for name in (*(choice.episodes or ()), *choice.withhold):
        if name not in record.episodes:
            raise InputError(
                f"episode {name!r} is none of {folder.name}; list them with: labctl episodes {folder.name}"
            )
    things = [(thing, why) for thing in _things(events) if (why := _why(thing, choice))]
    salts, where = _salts(folder, [_key(thing) for thing, _ in things]), where_read(folder, events)
    return [
        LeftOut(thing.what, thing.episode, thing.file, why, _salted(salts[_key(thing)], thing, where))
        for thing, why in things
    ]


def where_read(folder: Path, events: Sequence[Event]) -> Callable[[str], Path]:
    """Of a file that the journal names, where its bytes are read: in the campaign's folder, or, where they are in the
    media store alone, a fetched copy. Raises BrokenRecord, Unreachable.
    """
    away = {file.file: file.sha256 for file in held(events).files if not (folder / file.file).is_file()}

    def where(name: str) -> Path:
        return local_file(folder, {"file": name, "sha256": away[name]}) if name in away else folder / name

    return where


def _things(events: Sequence[Event]) -> Iterator[_Thing]:
    for what, episode, name in files_of(events):
        yield _Thing(what, episode, name)
    for event in events:
        if event.kind == Kind.RECORDING_SEALED:
            roots = {name: stream["root"] for name, stream in event.body["streams"].items()}
            yield _Thing("samples", event.episode or "", "", canonical(roots))


def _why(thing: _Thing, choice: Choice) -> str:
    """Why a thing is withheld; "" for one that goes."""
    if thing.what != "samples":
        if thing.episode in choice.withhold:
            return choice.withhold[thing.episode]
        if not choice.pictures:
            return NO_PICTURES
    chosen = choice.episodes
    return NOT_CHOSEN if chosen is not None and thing.episode and thing.episode not in chosen else ""


def _key(thing: _Thing) -> str:
    return thing.file or f"samples:{thing.episode}"


def _salted(salt: str, thing: _Thing, where: Callable[[str], Path]) -> str:
    begun = hashlib.sha256(bytes.fromhex(salt) + thing.content)
    if not thing.file:
        return begun.hexdigest()
    path = where(thing.file)
    with file_errors(str(path)), path.open("rb") as file:
        return hashlib.file_digest(file, lambda: begun).hexdigest()


def _salts(folder: Path, keys: Sequence[str]) -> dict[str, str]:
    """A salt of 32 bytes for each, kept in the campaign's folder so that two publications say the same of one thing."""
    path, found = folder / SALTS, dict[str, str]()
    if not keys:
        return found
    with file_errors(str(path)):
        text = path.read_text("utf-8", errors="replace") if path.is_file() else "{}"
    try:
        found = {str(key): bytes.fromhex(salt).hex() for key, salt in json.loads(text).items()}
        canonical(found)  # half a character in a key, which JSON can write and UTF-8 cannot
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BrokenRecord(
            f"{path} cannot be read; what was withheld before cannot be told by it: restore it"
        ) from error
    missing = [key for key in keys if key not in found]
    if missing:
        found |= {key: secrets.token_hex(32) for key in missing}
        replace_file(path, canonical(found), mode=_PRIVATE)
    return found


def sealed_episodes(events: Sequence[Event]) -> list[str]:
    """Episodes whose recordings were sealed, in that order. What was never sealed binds nothing."""
    return [event.episode for event in events if event.kind == Kind.RECORDING_SEALED and event.episode]
