"""The sealed ledger: which arm each trial has, the frozen protocol, and every value the journal holds only as a digest.

May not: be imported by anything a blind role can see, print what it holds, or read entropy or a clock.
It is the only module that touches a campaign's `seal/` folder.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from labctl.bus import Body
from labctl.core.design import Schedule, compared_positions, drbg
from labctl.core.event_bodies import Form
from labctl.core.events import SEALED_GAP, Event, Kind, canonical, sealed_gaps
from labctl.errors import BrokenRecord, StateError
from labctl.messages.body_parts import GapBody, Opening, SlotWithArm, StreamEntry, Unsealed
from labctl.plain import Json
from labctl.store.atomic_files import append_line, file_errors, replace_file, whole_lines

FOLDER = "seal"
SCHEDULE, PROTOCOL, OPENINGS = "schedule.json", "protocol.toml", "openings.jsonl"
TRACES = "traces.db"  # of the campaign, beside the seal; of streams that tell arms apart, in it
CARDS = "cards.json"  # there only when the protocol names policy cards
REVEALS = "reveals.jsonl"  # of a cell of a joint campaign: the arms that its seal host gave it, one trial at a time
SEALED_TRACES = f"{FOLDER}/{TRACES}"  # its path in a campaign's folder
OPENED = tuple(f"{FOLDER}/{name}" for name in (SCHEDULE, PROTOCOL, OPENINGS, CARDS))  # what may leave once unblinded
_PRIVATE = 0o600
# Entries that bind every value sealed until then.
BINDING = frozenset(
    {
        Kind.ARM_REVEALED,
        Kind.EPISODE_STARTED,
        Kind.EPISODE_VOIDED,
        Kind.RECORDING_SEALED,
        Kind.CAMPAIGN_CLOSED,
        Kind.CAMPAIGN_FROZEN,
    }
)
SEALING = frozenset({Kind.ARM_REVEALED, Kind.EPISODE_STARTED, Kind.RECORDING_SEALED})


class Ledger:
    """The opened seal of one campaign. Files are readable by their owner only."""

    def __init__(self, folder: Path, slots: Sequence[SlotWithArm], secret: bytes, *, durable: bool) -> None:
        self._seal = folder / FOLDER
        self._slots = slots
        self._arms = {slot["trial"]: slot["arm"] for slot in slots}
        self.joint = bool(slots) and not any(self._arms.values())  # the arms are at the seal host
        self._secret = secret
        self._durable = durable
        self._root: bytes | None = None  # of the openings so far, once it was asked for

    @classmethod
    def create(
        cls,
        folder: Path,
        schedule: Schedule,
        secret: bytes,
        protocol_text: str,
        cards: Mapping[str, str] | None = None,
    ) -> str:
        """Seal a schedule, the 32 secret bytes it was drawn from, the protocol and its cards; return the commitment to
        publish. A schedule whose arms are all empty is a cell's part of a joint campaign: the secret is the cell's own,
        and what binds the arms is at the seal host.

        Raises StateError when the campaign is sealed already, StorageError.
        """
        seal = folder / FOLDER
        with file_errors(str(seal)):
            try:
                seal.mkdir(mode=0o700)
            except FileExistsError:
                raise StateError(f"{seal} is there already: a schedule is drawn and sealed once") from None
        slots = [SlotWithArm(**asdict(slot)) for slot in schedule.slots]
        sealed = canonical({"schema": "labctl.seal/1", "slots": slots, "secret_hex": secret.hex()})
        replace_file(seal / PROTOCOL, protocol_text.encode(), mode=_PRIVATE)
        if cards:
            replace_file(seal / CARDS, canonical(dict(cards)), mode=_PRIVATE)
        replace_file(seal / OPENINGS, b"", mode=_PRIVATE)
        replace_file(seal / SCHEDULE, sealed, mode=_PRIVATE)
        return commitment_of(slots, secret)

    @classmethod
    def open(cls, folder: Path, *, durable: bool = True) -> Ledger:
        """The ledger of a campaign folder. Raises BrokenRecord when a file of the seal is missing or damaged."""
        seal = folder / FOLDER
        for name in (SCHEDULE, PROTOCOL, OPENINGS):
            with file_errors(str(seal)):
                there = (seal / name).is_file()
            if not there:
                raise BrokenRecord(f"broken seal: {seal / name} is missing; restore it from a copy of the campaign")
        with file_errors(str(seal)):
            text = (seal / SCHEDULE).read_bytes()
        try:
            sealed = json.loads(text)
            return cls(folder, sealed["slots"], bytes.fromhex(sealed["secret_hex"]), durable=durable)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BrokenRecord(f"broken seal: {seal / SCHEDULE} cannot be read; restore it from a copy") from error

    @property
    def loose_permissions(self) -> bool:
        """Whether others than the owner may read the seal, or recorded times that tell arms apart: a reason to warn, as
        blinding then rests on trust. Campaigns of before 2026-11-23 keep those times beside the seal, in their traces.
        """
        paths = [self._seal, *(self._seal / name for name in (SCHEDULE, PROTOCOL, OPENINGS))]
        with file_errors(str(self._seal)):
            apart, recorded = self._seal / TRACES, self._seal.with_name(TRACES)
            if apart.is_file():
                paths.append(apart)
            elif recorded.is_file() and _others_may(recorded) and _others_may(self._seal.parent):
                return True
            return any(_others_may(path) for path in paths)

    def protocol_text(self) -> str:
        """The protocol as it was frozen; it names arms and endpoints, so it stays in the seal."""
        path = self._seal / PROTOCOL
        try:
            with file_errors(str(self._seal)):
                return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise BrokenRecord(f"broken seal: {path} cannot be read; restore it from a copy of the campaign") from None

    def cards(self) -> dict[str, str]:
        """The policy cards as they were frozen: name in the protocol -> text. {} when it names none.

        Raises BrokenRecord when they are damaged.
        """
        path = self._seal / CARDS
        with file_errors(str(path)):
            text = path.read_bytes() if path.is_file() else b"{}"
        try:
            return {str(name): str(card) for name, card in json.loads(text).items()}
        except (ValueError, AttributeError, RecursionError) as error:
            raise BrokenRecord(f"broken seal: {path} cannot be read; restore it from a copy of the campaign") from error

    def private_file(self, name: str) -> Path:
        """A file beside the seal that only the owner may read, for what would tell arms apart (a controller's log)."""
        path = self._seal / name
        with file_errors(str(path)):
            path.touch(mode=_PRIVATE)
        return path

    def reveal(self, trial: str) -> str:
        """The arm of one trial. Raises StateError for a trial that is not in the schedule, or that the seal host has
        not revealed yet.
        """
        if trial not in self._arms:
            raise StateError(f"trial {trial} is not in the sealed schedule")
        arm = self.revealed().get(trial) if self.joint else self._arms[trial]
        if arm is None:
            raise StateError(f"trial {trial}: the seal host has not revealed its arm")
        return arm

    def learn(self, trial: str, arm: str) -> None:
        """Keep what the seal host revealed of one trial; on the disk when this returns. The same again changes nothing.

        Raises BrokenRecord for another arm than before, StateError as `reveal`, StorageError.
        """
        if trial not in self._arms:
            raise StateError(f"trial {trial} is not in the sealed schedule")
        before = self.revealed().get(trial)
        if before is not None and before != arm:
            raise BrokenRecord(f"trial {trial}: the seal host revealed another arm than before; nothing is run by it")
        if before is None:
            line = canonical({"trial": trial, "arm": arm}).decode()
            append_line(self._seal / REVEALS, line, mode=_PRIVATE, durable=self._durable)

    def revealed(self) -> dict[str, str]:
        """Of a part of a joint campaign the arms that were revealed, by trial. Raises BrokenRecord."""
        found: dict[str, str] = {}
        for number, line in enumerate(whole_lines(self._seal / REVEALS), 1):
            try:
                one = json.loads(line)
                found[str(one["trial"])] = str(one["arm"])
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise BrokenRecord(f"broken seal: {self._seal / REVEALS}:{number} cannot be read") from error
        return found

    def compared(self) -> dict[int, tuple[str, str]]:
        """Of each block with several arms the two trials that are compared by preference, in the order they run."""
        return compared_trials(self._slots, self._secret)

    def seal_value(self, episode: str, field: str, value: Json | Mapping[str, StreamEntry] | GapBody) -> str:
        """sha256 hex of a value and its episode's nonce, for the journal; the value itself is kept with the seal.

        On the disk when this returns. Raises StorageError, ValueError for a value with NaN.
        """
        sha256 = sealed_digest(self._secret, episode, field, value)
        opening = {"episode": episode, "field": field, "sha256": sha256, "value": value}
        root = self._openings_root()
        append_line(self._seal / OPENINGS, canonical(opening).decode(), mode=_PRIVATE, durable=self._durable)
        self._root = _next_root(root, sha256)
        return sha256

    def seal_gap(self, episode: str, gap: GapBody) -> None:
        """Keep what is missing of a stream that tells arms apart: in the journal that there is a gap would tell which
        arm ran. Bound like every sealed value, what came after its recording was sealed by the next entry that binds.
        On the disk when this returns. Raises StorageError.
        """
        known = self.gaps(episode)
        self.seal_value(episode, f"{SEALED_GAP}{len(known)}", gap)
        self._gaps[episode] = [*known, gap]

    def gaps(self, episode: str) -> list[GapBody]:
        """The gaps of an episode that are sealed. Raises BrokenRecord when the openings are damaged."""
        return self._gaps.get(episode, [])

    @cached_property
    def _gaps(self) -> dict[str, list[GapBody]]:
        return sealed_gaps(self.open_all()["openings"])

    def binding(self, kind: str, body: Body) -> Body:
        """An entry's body with what binds the values sealed so far, and nothing besides: how many there are, or whether
        an arm has any, cannot be told from it. Some kinds of entries have it (`BINDING`).
        """
        return {**body, "openings_root": self._openings_root().hex()} if kind in BINDING else body

    def _openings_root(self) -> bytes:
        if self._root is None:
            self._root = roots_of(self._secret, [opening["sha256"] for opening in self.open_all()["openings"]])[-1]
        return self._root

    def seed(self, label: str) -> int:
        """A reproducible seed in [0, 2^63) for a label: simulation and ids."""
        return int.from_bytes(drbg(self._secret, "seed:" + label, 8), "big") >> 1

    def open_all(self) -> Unsealed:
        """Everything, for unblinding: {schedule, secret_hex, openings}.

        schedule: all slots with their arms; openings: [{episode, field, value, sha256}].
        Raises BrokenRecord when the openings are damaged.
        """
        openings: list[Opening] = []
        for number, line in enumerate(whole_lines(self._seal / OPENINGS), 1):
            try:
                openings.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise BrokenRecord(f"broken seal: {self._seal / OPENINGS}:{number} is not JSON") from error
        return {
            "schedule": list(self._slots),
            "secret_hex": self._secret.hex(),
            "openings": openings,
        }


def commitment_of(slots: Sequence[SlotWithArm], secret: bytes) -> str:
    """sha256 hex over the canonical schedule followed by a 32-byte nonce made from the secret."""
    return hashlib.sha256(canonical(list(slots)) + drbg(secret, "commitment")).hexdigest()


def part_commitment(slots: Sequence[SlotWithArm], nonce: bytes) -> str:
    """sha256 hex over a cell's canonical part of a joint schedule followed by the 32 bytes that the seal host keeps."""
    return hashlib.sha256(canonical(list(slots)) + nonce).hexdigest()


def compared_trials(slots: Sequence[SlotWithArm], secret: bytes) -> dict[int, tuple[str, str]]:
    """Of each block with several arms the two trials that are compared by preference, in the order they run."""
    at = {(slot.get("block", 0), slot.get("position", 0)): slot["trial"] for slot in slots}
    blocks, arms = sorted({block for block, place in at if place}), len({place for _, place in at})
    drawn = compared_positions(arms, len(blocks), secret)
    return {block: (at[block, one], at[block, two]) for block, (one, two) in zip(blocks, drawn, strict=True)}


def roots_of(secret: bytes, sha256s: Sequence[str]) -> list[bytes]:
    """What binds the first 0, 1, 2, … of the sealed values in this order. Only who has the secret can compute it."""
    roots = [drbg(secret, "openings")]
    for sha256 in sha256s:
        roots.append(_next_root(roots[-1], sha256))
    return roots


_OF_STREAMS = ("streams", SEALED_GAP)  # sealed after a void too: whoever did that may have been killed at it


def _next_root(root: bytes, sha256: str) -> bytes:
    return hashlib.sha256(root + bytes.fromhex(sha256)).digest()


def check_roots(events: Sequence[Event], opened: Unsealed) -> list[str]:
    """What is wrong between the sealed values and what the journal's entries say of all of them (`Ledger.binding`).

    A value beyond the last entry that binds is one of an episode that goes on, or that has begun since these events
    were read. Before there were such entries nothing is bound.
    """
    roots = roots_of(bytes.fromhex(opened["secret_hex"]), [opening["sha256"] for opening in opened["openings"]])
    at = {root.hex(): number for number, root in enumerate(roots)}
    bound, last = None, ""
    for event in events:
        root = event.body.get("openings_root") if event.kind in BINDING else None
        if root is None:
            continue
        number = at.get(root, -1)
        if number < (bound or 0):
            text = "the values sealed until then are not those that are there now: changed, added, removed or moved"
            return [f"journal seq {event.seq} ({event.kind}): {text}"]
        bound, last = number, event.kind
    if bound is None:
        return []
    final, goes_on = last == Kind.CAMPAIGN_FROZEN, last not in (Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_CLOSED)
    after = "the campaign was frozen" if final else "it was over"
    sealed = {event.episode for event in events if event.kind == Kind.RECORDING_SEALED}
    void = {event.episode for event in events if event.kind == Kind.EPISODE_VOIDED}
    return [
        f"episode {one['episode']}: a sealed value was added after {after}"
        for one in opened["openings"][bound:]
        if not (goes_on and one["field"].startswith(SEALED_GAP))  # of a chunk that came after the seal
        if final or one["episode"] in sealed or (one["episode"] in void and not one["field"].startswith(_OF_STREAMS))
    ]


def sealed_digest(secret: bytes, episode: str, field: str, value: Json | Mapping[str, StreamEntry] | GapBody) -> str:
    """sha256 hex over a canonical value followed by the episode's nonce for that field: equal values look unrelated."""
    return hashlib.sha256(canonical(value) + drbg(secret, f"nonce:{episode}:{field}")).hexdigest()


def sealed_values(opened: Unsealed, field: str, form: type[Form]) -> dict[str, Form]:
    """The opened values of a field by their digest, in the form that this field has, unchecked; one that does not
    give its own digest is left out.
    """
    secret = bytes.fromhex(opened["secret_hex"])
    entries = [entry for entry in opened["openings"] if entry["field"] == field]
    return {
        entry["sha256"]: entry["value"]
        for entry in entries
        if sealed_digest(secret, entry["episode"], field, entry["value"]) == entry["sha256"]
    }


def check_commitment(commitment: str, opened: Unsealed) -> list[str]:
    """What is wrong between the commitment published at opening and what unblinding opened (`Ledger.open_all`)."""
    found = commitment_of(opened["schedule"], bytes.fromhex(opened["secret_hex"]))
    if "nonce_hex" in opened:
        found = part_commitment(opened["schedule"], bytes.fromhex(opened["nonce_hex"]))
    if found == commitment:
        return []
    return [
        f"the opened schedule gives {found[:16]}…, published was {commitment[:16]}…: it is not the one that was drawn"
    ]


def _others_may(path: Path) -> bool:
    """Whether anybody but the owner has any permission there."""
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
