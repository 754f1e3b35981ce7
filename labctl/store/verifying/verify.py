"""Verification: every hash of a campaign computed again, and each thing that does not hold named.

May not: repair or write anything, or stop at the first problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.core.event_bodies import CampaignOpened, CampaignUnblinded, body_of
from labctl.core.events import Event, Kind, digest
from labctl.core.trial import fold
from labctl.errors import BrokenRecord, InputError, in_words
from labctl.messages.body_parts import Unsealed
from labctl.plain import count
from labctl.store.atomic_files import file_errors
from labctl.store.chain_heads import (
    HEADS,
    Head,
    Noted,
    Outside,
    chain_and_head_problems,
    noted_problems,
    outside,
    read_heads,
)
from labctl.store.database_backend import uncollected
from labctl.store.footage import check_files
from labctl.store.journal import events_of, refuse_no_campaign
from labctl.store.ledger import (
    SEALING,
    Ledger,
    check_commitment,
    check_roots,
)
from labctl.store.opened_body import check_format, format_of, historical_problems, not_bound
from labctl.store.opened_list import OPENED, problems_of
from labctl.store.problem import Found, Problem
from labctl.store.verifying.opened_seal import check_compared, check_digests, check_openings
from labctl.store.verifying.recordings import DAMAGED_SEAL, Seen, check_recordings
from labctl.store.verifying.withheld import NOTHING_WITHHELD, Withheld, but_withheld

NOTHING = Noted()
LOOSE = "others than its owner may read the seal or the traces: blinding rests on trust here (chmod 700)"


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was looked at."""

    entries: int
    recordings: int
    chunks: int
    videos: int
    photos: int = 0

    def __str__(self) -> str:
        held = {"recording": self.recordings, "chunk": self.chunks, "video": self.videos, "photo": self.photos}
        parts = [count(number, what) for what, number in held.items()]
        return f"{count(self.entries, 'entry', 'entries')}, {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_campaign` found. `problems` is empty when all of it holds; `notes` are facts that break nothing.

    `events` are those that were looked at, `head` is "seq hash" of the last; `outside` is what binds the record from
    outside, None for a broken one; `not_bound` is what this campaign's format has no digest for.
    """

    problems: list[Problem]
    notes: list[str]
    head: str
    counts: Counts
    outside: Outside | None
    not_bound: list[str]
    events: list[Event]

    @property
    def state(self) -> str:
        """In a few words."""
        if self.problems:
            return count(len(self.problems), "problem")
        return "holds as far as its format binds" if self.not_bound else "holds"


def verify_campaign(
    folder: Path,
    noted: Noted = NOTHING,
    *,
    recordings: Collection[str] | None = None,
    lab: bool = False,
    withheld: Withheld = NOTHING_WITHHELD,
    say: Callable[[str], None] = lambda line: None,
    seen: Seen | None = None,
) -> Verification:
    """Check chain, heads, frozen files, commitment and openings, traces, videos, photos and read models of a campaign.

    noted: what somebody noted outside the folder; the chain must agree with it. Without, nothing binds whoever can
    write the folder. recordings: of these episodes alone; None: of all. lab: also the list of what its lab opened,
    which binds nothing of this record. withheld: what is left out of a published one. say: as `Found` has it; seen: as
    `check_recordings`. While somebody runs the campaign, what it says is of the moment.

    Raises InputError when the folder is no campaign.
    """
    refuse_no_campaign(folder)
    found, events = Found(say=say), list[Event]()
    heads: list[Head] = []
    found.guard("damaged heads.log", HEADS, lambda: heads.extend(read_heads(folder)))
    found.guard("unreadable journal", "journal.db", lambda: events.extend(events_of(folder)))
    unbound: list[str] = []
    if events:
        with uncollected():
            found.problems += chain_and_head_problems(folder, events, heads)
            found.guard("illegal history", "journal.db", lambda: _check_history(events))
    if events and events[0].kind == Kind.CAMPAIGN_OPENED:  # else the chain has been named as broken
        opened = body_of(events[0], CampaignOpened)
        check_format(opened, folder.name)
        unbound = not_bound(opened)
        found.notes += [f"not bound by format {format_of(opened)}: {text}" for text in unbound]
        found.guard("unreadable entry", "journal seq 1", lambda: _check_files(folder, opened, found))
        found.guard("unreadable entry", "journal.db", lambda: _check_seal(folder, events, found))
        found.guard("unreadable entry", "journal.db", lambda: check_recordings(folder, events, found, recordings, seen))
        if recordings is None or recordings:
            found.guard("unreadable entry", "journal.db", lambda: _check_photos(folder, events, found))
        if recordings is None:
            found.guard("unchecked timestamps", "timestamps", lambda: _check_timestamps(folder, events, found))
        if lab:
            found.guard("unreadable list", OPENED, lambda: _check_list(folder, opened, found))
    found.problems = but_withheld(folder, found.problems, withheld) + noted_problems(noted, events)
    sealed = sum(event.kind == Kind.RECORDING_SEALED for event in events)
    last = f"{events[-1].seq} {events[-1].hash}" if events else "0"
    counts = Counts(len(events), sealed, found.chunks, found.videos, found.photos)
    bound = None if found.problems else outside(noted, events)
    return Verification(found.problems, found.notes, last, counts, bound, unbound, events)


def recording_problems(folder: Path, events: Sequence[Event], episodes: Collection[str]) -> list[Problem]:
    """What is wrong with the recordings of these episodes and the photos, of a campaign that was verified without."""
    found = Found()
    found.guard("unreadable entry", "journal.db", lambda: check_recordings(folder, events, found, episodes))
    found.guard("unreadable entry", "journal.db", lambda: _check_photos(folder, events, found))
    return found.problems


def refuse_unless_as_opened(folder: Path, events: Sequence[Event]) -> None:
    """What a run goes by is what the campaign was opened with: cell, fixture, protocol, cards and the sealed schedule.

    Raises BrokenRecord naming the first that is not.
    """
    found = Found()
    _check_files(folder, body_of(events[0], CampaignOpened), found)
    _check_seal(folder, events, found)
    if found.problems:
        raise BrokenRecord(f"{found.problems[0]}; no trial is run by it; see: labctl verify {folder.name}")


def read_all_but(
    folder: Path,
    lost: Collection[str],
    noted: Noted = NOTHING,
    withheld: Withheld = NOTHING_WITHHELD,
    seen: Seen | None = None,
) -> tuple[list[Event], dict[str, str]]:
    """The events of a campaign whose record holds but for the recordings of `lost` episodes, and what is wrong with
    each of those. Whoever asks reads nothing of these recordings. noted, withheld, seen: as `verify_campaign` has them.

    Raises BrokenRecord naming the first other problem, InputError for an episode whose recording holds or that is none.
    """
    looked = verify_campaign(folder, noted, withheld=withheld, seen=seen)
    found = looked.problems
    problems = [problem for problem in found if problem.episode not in lost]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        remedy = f"see: labctl verify {folder.name}"
        if all(problem.episode for problem in problems):
            remedy += f"; a recording that is lost for good is left out, and named, by --lost {problems[0].episode}"
        raise BrokenRecord(f"{problems[0]}{more}; no report on a broken record; {remedy}")
    named: dict[str, str] = {}
    for episode in sorted(lost):
        lines = [f"{problem.what}: {problem.detail}" for problem in found if problem.episode == episode]
        if not lines:
            raise InputError(f"--lost {episode}: no sealed recording of {folder.name} that does not hold; leave it out")
        named[episode] = lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
    return looked.events, named


def _check_history(events: Sequence[Event]) -> None:
    try:
        fold(events)
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"an entry lacks what its kind must say: {in_words(error)}") from error


def _check_files(folder: Path, opened: CampaignOpened, found: Found) -> None:
    def compare(name: str, text: Callable[[], bytes]) -> None:
        with file_errors(name):
            now = hashlib.sha256(text()).hexdigest()
        if now != opened.get(name.removesuffix(".toml"), {}).get("sha256"):
            what = "it is not the one the campaign was opened with"
            found.problems.append(Problem("changed frozen file", name, what))

    found.problems += historical_problems(folder, opened)
    for name in ("cell.toml", "fixture.toml"):
        found.guard("missing frozen file", name, lambda name=name: compare(name, (folder / name).read_bytes))

    def protocol() -> None:
        ledger = Ledger.open(folder)
        if ledger.loose_permissions:
            found.notes.append(LOOSE)
        compare("protocol.toml", lambda: ledger.protocol_text().encode())
        if digest(ledger.cards()) != opened.get("protocol", {}).get("cards_sha256", digest({})):
            what = "they are not the ones the campaign was opened with"
            found.problems.append(Problem("changed frozen file", "policy cards", what))

    found.guard(DAMAGED_SEAL, "sealed protocol", protocol)


def _check_seal(folder: Path, events: Sequence[Event], found: Found) -> None:
    unblinded = next((e for e in events if e.kind == Kind.CAMPAIGN_UNBLINDED), None)
    if unblinded is None:
        found.notes.append("not unblinded: the commitment and the sealed values can be checked after that")
        found.guard(DAMAGED_SEAL, "sealed schedule", lambda: _check_closed_seal(folder, events, found))
        return
    if unblinded.body.get("early"):
        found.notes.append(f"unblinded early: {unblinded.body.get('reason')}")
    try:
        seal = body_of(unblinded, CampaignUnblinded)
        _check_commitment(events, seal, found)
        for text in (*check_openings(events, seal), *check_roots(events, seal), *check_compared(events, seal)):
            found.problems.append(Problem("unopened seal", f"journal seq {unblinded.seq}", text))
    except (KeyError, TypeError, ValueError) as error:
        where = f"journal seq {unblinded.seq} ({unblinded.kind})"
        found.problems.append(Problem("broken commitment", where, f"the opened seal cannot be read: {in_words(error)}"))


def _check_closed_seal(folder: Path, events: Sequence[Event], found: Found) -> None:
    """What can be checked of a seal before unblinding; nothing that it holds is named."""
    seal = Ledger.open(folder).open_all()
    _check_commitment(events, seal, found)
    try:
        there = {opening["sha256"] for opening in seal["openings"]}
        texts = [*check_digests(seal), *check_roots(events, seal)]
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"its sealed values cannot be read: {in_words(error)}") from error
    sealing = [event for event in events if event.kind in SEALING and "sealed" in event.body]
    missing = [event for event in sealing if event.body["sealed"] not in there]
    texts += [f"journal seq {event.seq} ({event.kind}): its sealed value is missing" for event in missing]
    found.problems += [Problem("changed seal", "sealed values", text) for text in texts]


def _check_commitment(events: Sequence[Event], seal: Unsealed, found: Found) -> None:
    opened = body_of(events[0], CampaignOpened)
    sealed_elsewhere = "joint" in opened and "nonce_hex" not in seal  # at the seal host, until it opens it
    planted = ["an arm stands in it, which only the seal host may have"] * any(slot["arm"] for slot in seal["schedule"])
    texts = planted if sealed_elsewhere else check_commitment(opened["commitment"], seal)
    public = [{key: value for key, value in slot.items() if key != "arm"} for slot in seal["schedule"]]
    if not texts and public != list(opened["schedule"]):
        texts.append("the schedule published at opening is not the one that was sealed")
    found.problems += [Problem("broken commitment", "sealed schedule", text) for text in texts]


def _check_photos(folder: Path, events: Sequence[Event], found: Found) -> None:
    from labctl.store.scene_references import journalled_photos

    for seq, photo in journalled_photos(events):
        whose = f"journal seq {seq}"
        found.photos += 1
        found.guard(
            "unreadable photo",
            f"{photo['file']} ({whose})",
            lambda p=photo, w=whose: found.problems.extend(check_files(folder, p, w, what="photo")),
        )


def _check_timestamps(folder: Path, events: Sequence[Event], found: Found) -> None:
    from labctl.store.verifying.timestamps import dated

    times = dated(folder, events)
    found.problems += times.problems
    found.notes += times.facts


def _check_list(folder: Path, opened: CampaignOpened, found: Found) -> None:
    problems, notes = problems_of(folder.resolve().parent.parent, opened["commitment"])
    found.problems += problems
    found.notes += notes
