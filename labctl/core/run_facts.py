"""What the journal says of a campaign's run beside the states of its trials, and what its time was spent on, folded
event by event.

May not: hold the journal, the campaign or its ledger: screens are drawn from it, and in a journal every arm is sealed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from labctl.clock import SECOND, Anchor
from labctl.core.event_bodies import OperationRecorded, RecordingSealed, StageReached, body_of
from labctl.core.events import LOOK_SAID_STOP, EndReason, Event, Kind
from labctl.core.published_state import Handover
from labctl.core.record import Spent
from labctl.core.task import reached_after
from labctl.messages.body_parts import Detected

VAIN = 2  # acknowledgements of one hold
# A name, as of a camera, its file or its process, or an address; or a number by itself, as of a measurement.
NAMED = r"[^\W\d][\w.:-]*|\d+(?:\.\d+){3}"
NAME_OR_NUMBER = re.compile(rf"(?P<name>{NAMED})|\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?")


class RunFacts:
    """operations, counted (the operator's own tally), reached (when each stage of the task was, ns), detected (by the
    detector): by episode. recording: of the last RecordingSealed. scored_ns: when trials were scored on this boot.
    recovered: what the last run concluded at its start. handover: of the last session that was closed. again: what a
    hold or fault says that was acknowledged `VAIN` times and stands once more with no episode in between, "" without.
    """

    def __init__(self) -> None:
        self.operations: dict[str, list[OperationRecorded]] = {}
        self.counted: dict[str, int] = {}
        self.reached: dict[str, tuple[int, ...]] = {}
        self.detected: dict[str, Sequence[Detected]] = {}
        self.recording: RecordingSealed | None = None
        self.scored_ns: list[int] = []
        self.recovered: list[str] = []
        self.handover: Handover | None = None
        self.again = ""
        self._acknowledged: dict[str, int] = {}
        self._boot = ""

    def note(self, event: Event) -> None:
        """One more entry of the journal, in order."""
        if event.kind == Kind.OPERATION_RECORDED and event.episode:
            self.operations.setdefault(event.episode, []).append(body_of(event, OperationRecorded))
        elif event.kind == Kind.ITEM_COUNTED and event.episode:
            self.counted[event.episode] = event.body["moved"]
        elif event.kind == Kind.STAGE_REACHED and event.episode:
            before = self.reached.get(event.episode, ())
            self.reached[event.episode] = reached_after(before, body_of(event, StageReached))
        elif event.kind == Kind.RECORDING_SEALED and event.episode:
            self.recording = body_of(event, RecordingSealed)
            if event.body.get("detected") is not None:
                self.detected[event.episode] = event.body["detected"]
        elif event.kind == Kind.RUN_STARTED:
            self.recovered = list(event.body.get("recovered", ()))
        elif event.kind == Kind.SESSION_CLOSED:
            self.handover = {"text": event.body.get("handover", ""), "who": event.who, "wall": event.wall}
        elif event.kind == Kind.OUTCOME_RECORDED:
            if event.boot != self._boot:
                self._boot, self.scored_ns = event.boot, []
            self.scored_ns.append(event.at_ns)
        self._note_again(event)

    def _note_again(self, event: Event) -> None:
        match event.kind:
            case Kind.RUN_STARTED | Kind.EPISODE_ENDED | Kind.EPISODE_VOIDED | Kind.TRIAL_SKIPPED:
                self.again, self._acknowledged = "", {}
            case Kind.HOLD_CLEARED | Kind.FAULT_ACKNOWLEDGED:
                of = _stands(event)
                self._acknowledged[of] = self._acknowledged.get(of, 0) + 1
            case Kind.HOLD_RAISED | Kind.CELL_FAULTED:
                if self._acknowledged.get(_stands(event), 0) >= VAIN:
                    self.again = str(event.body.get("text") or event.body.get("reason"))
            case _:
                pass


def _stands(event: Event) -> str:
    """What tells one hold or fault from another: its code; a fault, which has none, says whose it is and why, each time
    with other numbers. Those in a name are no measurements: camera-1 is not camera-2.
    """
    reason = str(event.body.get("reason"))
    return str(event.body.get("code") or NAME_OR_NUMBER.sub(lambda found: found["name"] or "#", reason))


class Hours:
    """What a run's time was spent on, as of the last event noted. While no run goes nothing is counted, nor is the time
    from a killed run's last entry to what the next start, closing, or another command wrote after it.
    """

    def __init__(self) -> None:
        self.spent: list[Spent] = []
        self._goes = False  # a run has started and did not stop, though it may have been killed
        self._doing = "reset"  # stays what it is over a stop: an episode that was ended by it still waits for its score
        self._trial: str | None = None
        self._held: dict[str, None] = {}
        self._last: Anchor | None = None
        self._tail: list[tuple[Event, int | None]] = []  # last entries, each with the stretch that it ended, if they
        # may be of a later process than the run that was killed
        self._gone = False  # another command wrote: the run had been killed, and no other has started yet
        self._reset = 0  # from which stretch on nobody had ordered a next trial

    def note(self, event: Event, operators: tuple[str, ...]) -> None:
        """operators: of the session that was open until this event."""
        kind = event.kind
        stretch = self._count(Anchor(event.at_ns, event.wall, event.boot), operators)
        alone = (
            kind in _NO_RUN
            or (kind == Kind.HOLD_RAISED and event.body["code"] == LOOK_SAID_STOP)
            or (kind == Kind.SESSION_CLOSED and self._entered(event))
        )
        concluded = kind in (Kind.RUN_STARTED, Kind.CAMPAIGN_CLOSED)
        if kind in _CONCLUDES or kind in _EITHER or kind in _SESSION or alone:
            self._tail.append((event, stretch))
        else:
            self._tail.clear()
        if self._goes and (alone or concluded):
            if not self._gone:
                self._forget(dead_stretches(self._tail))
            self._gone = alone
        if alone or concluded:
            self._tail.clear()
        match kind:
            case Kind.RUN_STARTED:
                self._goes = True
                if self._doing != "scoring":
                    self._turn("reset", None)
            case Kind.RUN_STOPPED | Kind.CAMPAIGN_CLOSED:
                self._goes = False
            case Kind.HOLD_RAISED:
                self._held[str(event.body["code"])] = None
            case Kind.CELL_FAULTED:
                self._held["faulted"] = None
            case Kind.HOLD_CLEARED:
                self._held.pop(str(event.body["code"]), None)
            case Kind.FAULT_ACKNOWLEDGED:
                self._held.pop("faulted", None)
            case _:
                pass
        if kind in _DOING:
            self._turn(_DOING[kind], event.trial)

    def _entered(self, closed: Event) -> bool:
        """Whether an assessor was entered while no run went: a session that ends at the instant at which it began."""
        last = self._tail[-1][0] if self._tail else None
        return last is not None and last.kind == Kind.SESSION_OPENED and last.at_ns == closed.at_ns

    def _count(self, now: Anchor, operators: tuple[str, ...]) -> int | None:
        """The time since the last entry, where a run went: the number of its stretch."""
        last, self._last = self._last, now
        if not self._goes or self._gone or last is None or last.boot != now.boot:
            return None
        seconds = (now.mono_ns - last.mono_ns) / SECOND
        if not 0 <= seconds <= _SILENT_S:
            return None
        self.spent.append(Spent(self._doing, tuple(self._held), self._trial, operators, seconds, last))
        return len(self.spent) - 1

    def _turn(self, doing: str, trial: str | None) -> None:
        if self._doing == "reset" != doing:
            self.spent[self._reset :] = [replace(one, trial=trial) for one in self.spent[self._reset :]]
        if doing == "reset" != self._doing:
            self._reset = len(self.spent)
        self._doing, self._trial = doing, None if doing == "reset" else trial

    def _forget(self, times: Sequence[Dead]) -> None:
        """Of each time the longest stretch, and all behind it but what a start took to conclude; one that was not
        counted is as long as can be.
        """
        for dead in times:
            longest = max(dead.until, key=self._seconds, default=None)
            choice = [*dead.before, longest]
            began = max(range(len(choice)), key=lambda i: (self._seconds(choice[i]), i))
            for index in sorted((i for i in choice[began:] if i is not None), reverse=True):
                del self.spent[index]
                self._reset -= index < self._reset

    def _seconds(self, stretch: int | None) -> float:
        return inf if stretch is None else self.spent[stretch].seconds


@dataclass(frozen=True, slots=True)
class Dead:
    """A time in which no process ran. It ends with one of the stretches `until`, the longest. It began with that one or
    with one of those `before`, in order, which lie before entries that the run or, after it was killed, another command
    wrote: with the longest of all.
    """

    before: Sequence[int | None]
    until: Sequence[int | None]


def dead_stretches(tail: Sequence[tuple[Event, int | None]]) -> list[Dead]:
    """The times in which no process ran, before what was written after a kill, the latest first. tail: the last entries
    of kinds that a start, a closing or another command writes, each with the stretch before it; the last is theirs.

    What a start wrote is known by its count (`RunStarted.recovered`), what a closing or the entering of an assessor did
    by its one time; a start that was killed in its turn by what only a start concludes.
    """
    own = _first_of_last(tail)
    from_ = _back(tail, own, (Kind.GAP,) if tail[own][0].kind == Kind.RECORDING_SEALED else ())
    if tail[-1][0].kind == Kind.CAMPAIGN_CLOSED:  # which had a recording sealed before, that a run had left
        from_ = _back(tail, own, (Kind.GAP, Kind.RECORDING_SEALED))
    found = [_dead(tail, from_, own)]
    earlier = next((i for i in range(from_) if _only_a_start(tail[i][0])), None)
    if earlier is not None:
        first = _back(tail, earlier, (Kind.GAP, Kind.RECORDING_SEALED))
        found.append(_dead(tail, first, earlier))
    return found


def _dead(tail: Sequence[tuple[Event, int | None]], first: int, last: int) -> Dead:
    before = _back(tail, first, tuple(_EITHER))
    return Dead([stretch for _, stretch in tail[before:first]], [stretch for _, stretch in tail[first : last + 1]])


def _first_of_last(tail: Sequence[tuple[Event, int | None]]) -> int:
    """The place of the first entry that is certainly of the process that wrote the last one."""
    last, at = tail[-1][0], len(tail) - 1
    if last.kind in (Kind.CAMPAIGN_CLOSED, Kind.SESSION_CLOSED):
        while at and tail[at - 1][0].at_ns == last.at_ns:
            at -= 1
    elif last.kind == Kind.RUN_STARTED:
        left = len(last.body.get("recovered") or ())  # a line each, but for the gaps of a recording that was sealed
        while at and left:
            at -= 1
            left -= tail[at][0].kind != Kind.GAP
    return at


def _back(tail: Sequence[tuple[Event, int | None]], at: int, kinds: Sequence[str]) -> int:
    """The first of the entries of these kinds that lead to the one at a place without another between."""
    while at and tail[at - 1][0].kind in kinds:
        at -= 1
    return at


def _only_a_start(event: Event) -> bool:
    """Whether only a start that concludes what a kill left writes such an entry."""
    lost = event.kind in (Kind.EPISODE_ENDED, Kind.TRIAL_RELEASED) and event.body["reason"] == EndReason.PROCESS_LOST
    return lost or (event.kind == Kind.EPISODE_VOIDED and bool(event.body.get("by_recovery")))


_SILENT_S = 12 * 3600.0  # a run that wrote nothing for as long was not there
_DOING: Mapping[str, str] = {
    Kind.TRIAL_STAGING: "staging",
    Kind.SCENE_COMMITTED: "arming",
    Kind.GO: "running",
    Kind.EPISODE_ENDED: "scoring",
    **dict.fromkeys((Kind.OUTCOME_RECORDED, Kind.EPISODE_VOIDED, Kind.TRIAL_RELEASED, Kind.TRIAL_SKIPPED), "reset"),
}
_CONCLUDES: frozenset[str] = frozenset(
    {
        *(Kind.TRIAL_RELEASED, Kind.TRIAL_SKIPPED, Kind.EPISODE_VOIDED, Kind.EPISODE_ENDED),
        *(Kind.GAP, Kind.RECORDING_SEALED, Kind.RUN_STARTED, Kind.CAMPAIGN_CLOSED),
    }
)
_NO_RUN: frozenset[str] = frozenset(  # commands write them that hold the campaign's lock: no run goes then
    {Kind.LOOK_TAKEN, Kind.MEDIA_STORED, Kind.MEDIA_TRIMMED, Kind.CAMPAIGN_UNBLINDED, Kind.WITNESS_STATED}
)
_EITHER: frozenset[str] = frozenset(  # the run writes them, or where none goes the command itself
    {
        *(Kind.PRACTICE_RECORDED, Kind.OPERATIONS_REVIEWED, Kind.OUTCOME_CONFIRMED, Kind.OUTCOME_JUDGED),
        *(Kind.OUTCOME_CORRECTED, Kind.PREFERENCE_STATED),
    }
)
_SESSION: frozenset[str] = frozenset({Kind.SESSION_OPENED, Kind.SESSION_CLOSED})
