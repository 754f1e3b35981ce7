"""`labctl verify DIR` of a published folder, on a machine that never saw the lab: what holds, what is withheld, what
nobody can tell from the folder alone.

May not: write, or open a folder that `guard` has not let pass.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labctl.core.events import Event, Kind, canonical
from labctl.errors import BrokenRecord, LabctlError, in_words, one_line
from labctl.plain import count
from labctl.publishing.beside import is_beside
from labctl.publishing.drawing import RECORDINGS
from labctl.publishing.guard import Admitted, admit
from labctl.publishing.leaving_out import files_of, sealed_episodes
from labctl.publishing.manifest import LeftOut, plain_json, withheld_of
from labctl.publishing.names import name_problems
from labctl.publishing.tables import JOURNAL
from labctl.store.chain_heads import NOT_CHECKED, Noted, Outside, head_text
from labctl.store.database_backend import Reader, sqlite_url
from labctl.store.journal import events_of
from labctl.store.ledger import SEALED_TRACES, TRACES
from labctl.store.problem import Problem
from labctl.store.verifying.timestamps import Authority, Dated, dated, kept
from labctl.store.verifying.verify import LOOSE, NOTHING, Counts, verify_campaign


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. withheld: a line each; unchecked: what the folder alone cannot show; outside: as `Verification`
    has it, None for a record that does not hold.
    """

    admitted: Admitted
    problems: Sequence[Problem]
    notes: Sequence[str]
    withheld: Sequence[str]
    unchecked: Sequence[str]
    counts: Counts
    head: str
    outside: Outside | None


def check_published(
    folder: Path,
    noted: Noted = NOTHING,
    say: Callable[[str], None] = lambda line: None,
    certificates: bytes | None = None,
) -> Checked:
    """Verify a published folder: files, databases, chain, heads, opened seal, recordings, and that what is missing is
    what the manifest says was withheld. noted: as `verify_campaign` has it; certificates: PEM, of a
    time-stamping authority that whoever asks trusts.

    Raises what `guard.admit` raises for a folder that is not to be opened at all.
    """
    admitted = admit(folder, say)
    manifest = admitted.manifest
    withheld = withheld_of(manifest.withheld)
    _refuse_names(admitted)
    looked = verify_campaign(admitted.record, noted, withheld=withheld, say=say)
    problems = list(looked.problems)
    stamps, unstamped = Dated(), list[str]()
    if looked.events:
        unstamped = dated(admitted.record, looked.events).facts
        if certificates is not None:
            stamps = dated(admitted.record, looked.events, Authority("", certificates, 0.0))
        problems += stamps.problems
        problems += _against_manifest(admitted, looked.events)
        problems += _journal_lines(admitted, looked.events)
        problems += _needless(admitted, looked.events)
    return Checked(
        admitted,
        problems,
        [one_line(note) for note in (*looked.notes, *stamps.facts) if note not in (LOOSE, *unstamped)],
        [one_line(_line(entry)) for entry in manifest.withheld],
        [*map(one_line, _unchecked(admitted, looked.outside)), *(_stamps(admitted) if certificates is None else ())],
        _there(looked.counts, admitted),
        head_text(int(looked.head.split()[0]), looked.head.split()[-1]),
        None if problems else looked.outside,
    )


def refuse_unless_it_holds(folder: Path, say: Callable[[str], None] = lambda line: None) -> Checked:
    """A published folder that holds. Raises BrokenRecord naming the first problem, and as `check_published`."""
    checked = check_published(folder, say=say)
    if checked.problems:
        raise BrokenRecord(
            f"{checked.problems[0]}; nothing is shown of it; see: labctl verify {shlex.quote(str(folder))}"
        )
    return checked


@contextmanager
def reading_a_strangers(folder: Path) -> Generator[None, None, None]:
    """While what a published record says is worked on: its chain may hold, whatever stands in it. What only an entry
    that labctl never wrote can lead to is BrokenRecord; labctl's own errors pass through.
    """
    try:
        yield
    except LabctlError:
        raise
    except _NEVER_WRITTEN as error:
        why = f"{type(error).__name__}: {in_words(error)[:200]}"
        what = f"an entry says what no labctl writes, or what this one cannot read ({why})"
        text = f"{folder}: no report can be made of its record: {what}"
        raise BrokenRecord(text) from error


_NEVER_WRITTEN = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
    *(TypeError, ValueError),
)


def _refuse_names(admitted: Admitted) -> None:
    """Raises BrokenRecord for a journal whose names nothing may go by."""
    events = events_of(admitted.record)
    if not events or events[0].kind != Kind.CAMPAIGN_OPENED:
        raise BrokenRecord("its journal does not begin with the opening of a campaign")
    try:
        problems = name_problems(events)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BrokenRecord(f"an entry of its journal cannot be read: {in_words(error)}") from None
    if problems:
        raise BrokenRecord(str(problems[0]))


def _there(counts: Counts, admitted: Admitted) -> Counts:
    """How much was looked at, without what is withheld."""
    withheld = Counter(entry.what for entry in admitted.manifest.withheld)
    chunks = 0
    for name in (TRACES, SEALED_TRACES):
        if (admitted.record / name).is_file():
            chunks += sum(Reader(sqlite_url(admitted.record / name)).rows("SELECT count(*) FROM chunk", int))
    return Counts(
        counts.entries,
        counts.recordings - withheld["samples"],
        chunks,
        counts.videos - withheld["video"],
        counts.photos - withheld["photo"],
    )


def _stamps(admitted: Admitted) -> list[str]:
    """What is to be said of timestamps where nobody said whom to trust."""
    number = len(kept(admitted.record))
    if not number:
        return []
    return [f"{count(number, 'timestamp')} of an authority: give its certificates, if you trust it, by --certificates"]


def _against_manifest(admitted: Admitted, events: Sequence[Event]) -> list[Problem]:
    """What the manifest says of the campaign and its journal does not."""
    manifest, opened = admitted.manifest, events[0].body
    last = events[-1]
    said = {
        "campaign": (manifest.campaign, opened.get("campaign")),
        "commitment": (manifest.commitment, opened.get("commitment")),
        "kind": (manifest.kind, opened.get("kind")),
        "head": (manifest.head, head_text(last.seq, last.hash)),
        "time of freezing": (manifest.frozen, _frozen(events)),
    }
    found = [
        Problem("another campaign", "published.json", f"its {name} is {str(one)[:40]}…, the journal's {str(two)[:40]}…")
        for name, (one, two) in said.items()
        if one != two
    ]
    if not any(event.kind == Kind.CAMPAIGN_UNBLINDED for event in events):
        found.append(Problem("not unblinded", "journal.db", "a campaign is published after it was unblinded"))
    return found


def _frozen(events: Sequence[Event]) -> str:
    """When a campaign was frozen, or else closed, or opened, as `labctl publish` says it: wall time of that entry."""
    walls = {event.kind: event.wall for event in events}
    kinds = (Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_CLOSED, Kind.CAMPAIGN_OPENED)
    return next((walls[kind] for kind in kinds if kind in walls), "")


def _journal_lines(admitted: Admitted, events: Sequence[Event]) -> list[Problem]:
    """The lines of tables/journal.jsonl are the journal's entries."""
    name = f"tables/{JOURNAL}"
    if name not in admitted.manifest.files:
        return [Problem("missing table", name, "the journal as lines of JSON is not there")]
    with (admitted.folder / name).open("rb") as lines:
        for event, line in zip((*events, None), (*lines, None), strict=False):
            if not _is_line_of(event, line):
                where = f"line {event.seq}" if event else "its end"
                return [Problem("changed table", name, f"{where} is not the journal's entry")]
    return []


def _is_line_of(event: Event | None, line: bytes | None) -> bool:
    """Whether a line is an entry's; None: there is none."""
    if event is None or line is None:
        return event is None and line is None
    try:
        entry = {name: getattr(event, name) for name in Event.__dataclass_fields__}
        return canonical(plain_json(line)) == canonical(entry)  # where true is no 1; and no key stands twice
    except (ValueError, RecursionError):
        return False


def _needless(admitted: Admitted, events: Sequence[Event]) -> list[Problem]:
    """Things listed as withheld that no entry of the journal speaks of."""
    files = {name for _, _, name in files_of(events)}
    sealed = set(sealed_episodes(events))
    return [
        Problem(
            "withheld, nowhere recorded",
            entry.file or f"samples of {entry.episode}",
            "the journal has no such thing",
        )
        for entry in admitted.manifest.withheld
        if (entry.file not in files if entry.file else entry.episode not in sealed)
    ]


def _line(entry: LeftOut) -> str:
    what = f"{entry.what} {entry.file}" if entry.file else f"samples of {entry.episode}"
    return f"{what}: {entry.why} (salted digest {entry.salted[:16]}…)"


def _unchecked(admitted: Admitted, outside: Outside | None) -> list[str]:
    """What stays open when all of it holds."""
    found: list[str] = []
    if outside is None or outside.head is None:
        found.append(
            f"{NOT_CHECKED}; give a head that was noted elsewhere with --head, the commitment with --commitment"
        )
    found.append(f"whether it is the folder that was published: compare its manifest's sha256, {admitted.digest}")
    if admitted.manifest.withheld:
        things = count(len(admitted.manifest.withheld), "thing")
        found.append(f"what is in the {things} withheld; the lab can show later that a thing is the one, by its salt")
    if admitted.manifest.stated:
        found.append(f"what stands there on the lab's word alone: {', '.join(admitted.manifest.stated)}")
    if any(name.startswith(f"{RECORDINGS}/") for name in admitted.manifest.files):
        found.append(f"whether {RECORDINGS}/ shows what the record has: labctl site draws them anew from it")
    beside = sorted(filter(is_beside, admitted.manifest.files))
    places = dict.fromkeys(f"{name.partition('/')[0]}/" if "/" in name else name for name in beside)
    places = ", ".join(["report/", *places])
    text = f"whether {places} say what the record gives: labctl report of this folder makes them anew and compares"
    return [*found, text]
