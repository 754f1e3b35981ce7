"""What happened around one episode, as timelines of states and lines of text: phases, operations, holds, gaps. Pure.

May not: read a store, know a viewer, or say more of a blinded episode than its journal does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from labctl.clock import MILLISECOND, SECOND, Anchor, on_boot_of
from labctl.core.event_bodies import GapBody
from labctl.core.events import Event, InterventionKind, Kind, gap_words
from labctl.core.interventions import Intervention
from labctl.core.record import Episode
from labctl.messages.body_parts import OutcomeBody
from labctl.plain import count

Tone = Literal["quiet", "ready", "go", "good", "bad", "warn"]
Line = tuple[int, str, str]

NOTE_NS = SECOND // 2  # how long a moment is drawn, so that it can be seen; its left edge is its time
LEAST_GAP_NS = 50 * MILLISECOND
GAP_PERIODS = 3  # so many periods without a sample are a gap
STEADY = ("base/odometry", "camera/", "sensor/")  # never pause while they are recorded, nor do the states of a robot

PHASES: Mapping[str, tuple[str, Tone]] = {
    Kind.TRIAL_STAGING: ("staging", "quiet"),
    Kind.EPISODE_VOIDED: ("voided", "warn"),
    Kind.SCENE_COMMITTED: ("committed", "quiet"),
    Kind.ARM_REVEALED: ("armed", "ready"),
    Kind.EPISODE_STARTED: ("started", "ready"),
    Kind.GO: ("running", "go"),
    Kind.EPISODE_ENDED: ("ended", "quiet"),
    Kind.RECORDING_SEALED: ("sealed", "quiet"),
    Kind.OUTCOME_RECORDED: ("scored", "quiet"),
}
RESULTS: Mapping[str, tuple[str, Tone]] = {
    "success": ("moved", "good"),
    "lost": ("lost", "bad"),
    "safety_stop": ("safety stop", "bad"),
}
WARNINGS = frozenset(
    {
        *(Kind.START_WITHHELD, Kind.INTERVENTION_BEGAN, Kind.GAP, Kind.HOLD_RAISED, Kind.EPISODE_VOIDED),
        *(Kind.OUTCOME_CORRECTED, Kind.DEVIATION),
    }
)
OVER = frozenset({Kind.OUTCOME_RECORDED, Kind.EPISODE_VOIDED})  # with these an attempt is over
HOLDS = frozenset({Kind.HOLD_RAISED, Kind.HOLD_CLEARED, Kind.CELL_FAULTED, Kind.FAULT_ACKNOWLEDGED, Kind.DEVIATION})


@dataclass(frozen=True, slots=True)
class Mark:
    """From t_ns on a timeline shows `label` in the colour of `tone`; an empty label leaves it blank."""

    t_ns: int
    label: str
    tone: Tone = "quiet"


def attempt(events: Sequence[Event], episode: str) -> list[Event]:
    """The events of one episode, those that staged it, and the holds and faults that came up until it was scored or
    voided, in order. What is said of it later (a correction, a review) is among its own.

    What was written on another boot than the reveal has the time of that boot's clock that its wall time names. Empty
    for an episode that the journal does not know.
    """
    own = [event for event in events if event.episode == episode]
    if not own:
        return []
    before = [event for event in events if event.trial == own[0].trial and event.seq < own[0].seq]
    staged = _last(before, (Kind.TRIAL_STAGING, Kind.EPISODE_VOIDED))
    committed = _last(before, (Kind.SCENE_COMMITTED,))
    around = [*(_restaged(event) for event in staged), *committed, *own]
    over = [event.seq for event in own if event.kind in OVER]
    first, last = min(event.seq for event in around), min(over, default=own[-1].seq)
    around += [event for event in events if event.kind in HOLDS and first < event.seq < last]
    known = _anchor(own[0])
    entries = [replace(event, at_ns=on_boot_of(known, _anchor(event))) for event in around]
    return sorted(entries, key=lambda event: event.seq)


def over_ns(entries: Sequence[Event]) -> int:
    """When an attempt was over: scored or voided, or, where that was said after a reboot or not yet, the last entry
    before. `entries` come from `attempt`.
    """
    over = next((event.seq for event in entries if event.kind in OVER), entries[-1].seq)
    revealed = next(event for event in entries if event.episode is not None)
    return max(event.at_ns for event in entries if event.seq <= over and event.boot == revealed.boot)


def _anchor(event: Event) -> Anchor:
    return Anchor(event.at_ns, event.wall, event.boot)


def _last(events: Sequence[Event], kinds: tuple[Kind, ...]) -> list[Event]:
    return [event for event in events if event.kind in kinds][-1:]


def _restaged(event: Event) -> Event:
    """In older journals the scene of a voided attempt is staged again at once, without an entry of its own."""
    return event if event.kind == Kind.TRIAL_STAGING else replace(event, kind=Kind.TRIAL_STAGING, episode=None, body={})


def moment(event: Event) -> int:
    """When it happened, ns: the device's own time where the journal has it, else when it was written."""
    for key in ("go_ns", "end_ns", "t_ns", "from_ns"):
        if event.body.get(key) is not None:
            return int(event.body[key])
    return event.at_ns


def phase_timeline(entries: Sequence[Event]) -> list[Mark]:
    """Staging, committed, armed, started, running, ended, sealed, scored or voided. `entries` come from `attempt`."""
    return _in_order([Mark(moment(event), *PHASES[event.kind]) for event in entries if event.kind in PHASES])


def operation_timeline(episode: Episode, *, in_items: bool = True) -> list[Mark]:
    """From go on, what became of each item; the interval of an item ends when it was moved or lost.

    What is left between the last of them and the end is one more interval, warning, where the task is counted in items;
    of any other nothing was to be moved.
    """
    if episode.go_ns is None:
        return []
    marks: list[Mark] = []
    since, end = episode.go_ns, episode.end_ns
    for operation in episode.operations:
        word, tone = RESULTS.get(operation["result"], (str(operation["result"]), "warn"))
        until = operation["t_ns"]
        marks.append(Mark(since, f"{operation['op_index'] + 1} {word} {(until - since) / SECOND:.1f} s", tone))
        since = until
    if in_items and (end is None or end - since > MILLISECOND):
        left = "" if end is None else f"{(end - since) / SECOND:.1f} s without a move"
        marks.append(Mark(since, left, "warn"))
    return [*marks, Mark(end, "")] if end is not None else marks


def intervention_timeline(touches: Sequence[Intervention]) -> list[Mark]:
    """What a person's hand did while the episode ran, by kind; blank where it did nothing."""
    edges = sorted({at for touch in touches for at in (touch.from_ns, touch.to_ns) if at is not None})
    marks: list[Mark] = []
    for at in edges:
        now = [t for t in touches if t.from_ns <= at and (t.to_ns is None or at < t.to_ns)]
        marks.append(Mark(at, ", ".join(t.kind.replace("_", " ") for t in now), "warn"))
    return marks


def instruction_timeline(episode: Episode) -> list[Mark]:
    """The switches of the instruction, each from when the controller took it to the next or the end."""
    taken = episode.switches
    marks = [Mark(one["t_ns"], _switch_text(one["name"], one["instruction"]), "ready") for one in taken]
    ends = [] if episode.end_ns is None else [Mark(episode.end_ns, "")]
    return [*marks, *ends] if marks else []


def hold_timeline(entries: Sequence[Event]) -> list[Mark]:
    """The holds that stood, and a faulted cell; blank where there was none."""
    standing: dict[str, str] = {}
    marks: list[Mark] = []
    for event in entries:
        if event.kind == Kind.HOLD_RAISED:
            standing[event.body["code"]] = "hold"
        elif event.kind == Kind.CELL_FAULTED:
            standing["cell faulted"] = "fault"
        elif event.kind == Kind.HOLD_CLEARED:
            standing.pop(event.body["code"], None)
        elif event.kind == Kind.FAULT_ACKNOWLEDGED:
            standing.pop("cell faulted", None)
        else:
            continue
        marks.append(Mark(event.at_ns, ", ".join(standing), "bad" if "fault" in standing.values() else "warn"))
    return marks


def note_timeline(entries: Sequence[Event]) -> list[Mark]:
    """Whatever is not as it should be, each drawn for half a second from when it happened."""
    tones: Mapping[str, Tone] = {"WARN": "warn", "ERROR": "bad"}
    noted = [(t_ns, level, text) for t_ns, level, text in event_lines(entries) if level in tones]
    marks: list[Mark] = []
    for index, (t_ns, level, text) in enumerate(noted):
        marks.append(Mark(t_ns, text, tones[level]))
        if index + 1 == len(noted) or noted[index + 1][0] > t_ns + NOTE_NS:
            marks.append(Mark(t_ns + NOTE_NS, ""))
    return _in_order(marks)


def gap_timeline(gaps: Iterable[tuple[int, int, str]]) -> list[Mark]:
    """Gaps in one stream as intervals (from_ns, to_ns, label), overlapping ones joined."""
    joined: list[tuple[int, int, str]] = []
    for start, end, label in sorted(gaps):
        if joined and start <= joined[-1][1]:
            last = joined[-1]
            joined[-1] = (last[0], max(last[1], end), last[2])
        else:
            joined.append((start, end, label))
    return [mark for start, end, label in joined for mark in (Mark(start, label, "bad"), Mark(end, ""))]


def within(marks: Sequence[Mark], first_ns: int, last_ns: int) -> list[Mark]:
    """A timeline from first_ns on, where it shows what stood then, to last_ns."""
    before = [mark for mark in marks if mark.t_ns <= first_ns][-1:]
    kept = [replace(mark, t_ns=first_ns) for mark in before if mark.label]
    return [*kept, *(mark for mark in marks if first_ns < mark.t_ns <= last_ns)]


def recorded_gaps(gaps: Iterable[GapBody], end_ns: int) -> dict[str, list[tuple[int, int, str]]]:
    """{stream: [(from_ns, to_ns, label)]} of the gaps the journal states; one without an end lasts until end_ns."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for gap in gaps:
        from_ns, number = gap.get("from_ns"), gap.get("lost")
        if from_ns is not None:
            until = max(gap["to_ns"] or end_ns, from_ns + 1)
            found.setdefault(gap["stream"], []).append((from_ns, until, gap_words(number, gap["why"])))
    return found


def measured_gaps(t_ns: np.ndarray, rate_hz: float) -> list[tuple[int, int, str]]:
    """Gaps seen in the samples' own times (n,): longer than three periods and 50 ms."""
    steps = np.diff(t_ns)
    at = np.flatnonzero(steps > max(GAP_PERIODS * SECOND / rate_hz, LEAST_GAP_NS))
    return [(int(t_ns[i]), int(t_ns[i + 1]), f"{steps[i] / MILLISECOND:.0f} ms") for i in at]


def without_gaps(entries: Iterable[Event], streams: Collection[str]) -> list[Event]:
    """The entries but for gaps in these streams."""
    return [event for event in entries if event.kind != Kind.GAP or event.body["stream"] not in streams]


def is_steady(stream: str) -> bool:
    """Whether a pause in this stream means that samples are missing."""
    return stream.startswith(STEADY) or stream.endswith("/state")


def event_lines(entries: Sequence[Event]) -> list[Line]:
    """(t_ns, level, text) of every event, in order of time; levels INFO, WARN, ERROR."""
    return sorted(((moment(event), _level(event), _words(event)) for event in entries), key=lambda line: line[0])


def _level(event: Event) -> str:
    if event.kind == Kind.CELL_FAULTED:
        return "ERROR"
    if event.kind == Kind.OPERATION_RECORDED:
        return {"success": "INFO", "safety_stop": "ERROR"}.get(event.body["result"], "WARN")
    if event.kind == Kind.EPISODE_ENDED and event.body["reason"] not in ("all_done", "budget", "controller_done"):
        return "WARN"
    return "WARN" if event.kind in WARNINGS else "INFO"


def _words(event: Event) -> str:
    """One event as a person would say it."""
    body = event.body
    match event.kind:
        case Kind.OPERATION_RECORDED:
            word = RESULTS.get(body["result"], (str(body["result"]), ""))[0]
            return f"item {body['op_index'] + 1} {word}{_because(body.get('cause'))}"
        case Kind.INTERVENTION_BEGAN | Kind.INTERVENTION_ENDED:
            kind = str(body.get("kind", InterventionKind.OTHER)).replace("_", " ")
            note = f" ({body['note']})" if body.get("note") else ""
            return f"intervention {'over' if event.kind == Kind.INTERVENTION_ENDED else 'begins'}: {kind}{note}"
        case Kind.INSTRUCTION_SWITCHED:
            return _switch_text(body["name"], body["instruction"])
        case Kind.EPISODE_ENDED:
            return f"ended: {str(body['reason']).replace('_', ' ')}" + (f", by {body['by']}" if "by" in body else "")
        case Kind.GAP:
            return f"gap in {body.get('stream')}{_because(gap_words(body.get('lost'), body.get('why') or ''))}"
        case Kind.EPISODE_VOIDED:
            return f"voided{_because(body['reason'])}"
        case Kind.START_WITHHELD:
            return f"start taken back{_because(body['reason'])}"
        case Kind.HOLD_RAISED:
            return f"hold {body['code']}: {body['text']}"
        case Kind.HOLD_CLEARED:
            return f"hold {body['code']} cleared by {body['acknowledged_by']}"
        case Kind.CELL_FAULTED:
            return f"cell faulted{_because(body['reason'])}"
        case Kind.OUTCOME_RECORDED:
            return f"scored: {_outcome(body['outcome'])}"
        case Kind.STAGE_REACHED:
            return f"{count(body['reached'], 'stage')} reached"
        case Kind.OUTCOME_CORRECTED:
            return f"outcome corrected{_because(body['why'])}"
        case Kind.DEVIATION:
            return f"deviation: {body['text']}"
        case Kind.TRIAL_STAGING:
            return f"staging by {body['setter']}" if "setter" in body else "staging again"
        case Kind.ARM_REVEALED:
            return "armed"
        case _:
            words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in str(event.kind))
            return words.strip()


def _outcome(outcome: OutcomeBody) -> str:
    """What was scored, by the measure that it was scored in."""
    reached, score, done = outcome.get("reached_s"), outcome.get("score"), bool(outcome["moved"])
    wrong = ", after a wrong end" if outcome.get("wrong_end") else ""
    if score is not None:
        return f"score {score:g}{wrong}"
    if reached is not None:
        so_far = f"{count(len(reached), 'stage')} reached" if reached else "nothing done"
        return f"{'done' if done else so_far}{wrong}"
    wrongly = f", {outcome['remaining']} remained{wrong[1:]}" if wrong else ""
    return f"{outcome['moved']} of {outcome['items_staged']} moved{wrongly}"


def _switch_text(name: str, instruction: str) -> str:
    return f"switch {name}: {instruction}"


def _because(why: object) -> str:
    return f": {str(why).replace('_', ' ')}" if why else ""


def _in_order(marks: list[Mark]) -> list[Mark]:
    """By time; of marks at the same moment the last one stands."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: mark.t_ns):
        if kept and kept[-1].t_ns == mark.t_ns:
            kept.pop()
        kept.append(mark)
    return kept
