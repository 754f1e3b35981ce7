"""What a journal that stopped in the middle means: the events that bring it to rest, and how to say so to a person.

May not: append events, read traces, move anything, or arm a trial again; that is a person's act.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from labctl.clock import SECOND
from labctl.core.event_bodies import CampaignOpened
from labctl.core.events import EndReason, Event, Kind
from labctl.core.rollout import void_reason, voided_by_rule
from labctl.core.trial import State, Trial, fold

if TYPE_CHECKING:  # whoever reads a journal does not wait for numpy
    from labctl.bus import Body


Rule = Literal["void", "score"]


@dataclass(frozen=True, slots=True)
class Pending:
    """An event to append, and in plain words what was concluded. The text never names an arm."""

    kind: Kind
    trial: str
    episode: str | None
    body: Body
    text: str


def reconcile(events: Sequence[Event], *, rule: Rule, last_sample_ns: Mapping[str, int]) -> list[Pending]:
    """The events to append now. Append them and ask again, until there are none; then nothing is armed or running.

    rule: the protocol's `process_lost`. last_sample_ns: per episode, the host time of its last recorded sample, on
    the clock of the boot that recorded it. An episode that ended so waits in scoring until its recording is sealed,
    by the caller; only then is it voided or left to be scored. An episode that ended before go, for whatever reason,
    has nothing to score and is voided under either rule.

    Raises StateError and BrokenRecord as `trial.fold` does.
    """
    state = fold(events)
    rules: CampaignOpened = {**state.opened, "process_lost": rule}
    found = [_conclude(trial, events, rules, last_sample_ns) for trial in state.trials.values()]
    return [pending for pending in found if pending is not None]


def _conclude(
    trial: Trial, events: Sequence[Event], rules: CampaignOpened, last_sample_ns: Mapping[str, int]
) -> Pending | None:
    name = f"{trial.place} (block {trial.block + 1}, {trial.condition})"
    match trial.state:
        case State.STAGING | State.COMMITTED:
            text = f"{name} was {trial.state} when the run stopped; it is planned again, stage its scene anew"
            return Pending(Kind.TRIAL_RELEASED, trial.id, None, {"reason": EndReason.PROCESS_LOST.value}, text)
        case State.ARMED:
            what = f"was armed, not started, when the run stopped; episode {trial.episode} is void"
            return _void(trial, None, f"{name} {what}; {_then(trial)}")
        case State.RUNNING:
            return _end(trial, events, last_sample_ns, name)
        case State.SCORING if trial.sealed_recording:
            if not voided_by_rule(trial.ended, rules, went=trial.go_ns is not None):
                return None
            why = "the protocol voids a lost episode" if trial.go_ns is not None else "it had not begun"
            text = f"{name}: episode {trial.episode} ended by {trial.ended} and is void, since {why}; {_then(trial)}"
            return _void(trial, _seq_of_end(trial, events), text)
        case _:
            return None


def _void(trial: Trial, evidence: int | None, text: str) -> Pending:
    body = {
        "reason": void_reason(trial.ended or EndReason.PROCESS_LOST),
        "evidence": evidence,
        "confirmed_by": None,
        "after_go": trial.go_ns is not None,
        "by_recovery": True,
    }
    return Pending(Kind.EPISODE_VOIDED, trial.id, trial.episode, body, text)


def _then(trial: Trial) -> str:
    if trial.next_void_is_last:
        return f"its {trial.voids + 1}. void and the last one the protocol allows: skip it"
    return "stage its scene anew for another attempt with the same assignment"


def _end(trial: Trial, events: Sequence[Event], last_sample_ns: Mapping[str, int], name: str) -> Pending:
    """A lost episode ended with the last thing known to have happened in it, so that downtime is never trial time."""
    own = [event for event in events if event.episode == trial.episode]
    signs = [*map(_happened_ns, own), last_sample_ns.get(trial.episode or "")]
    known = [sign for sign in signs if sign is not None]
    end_ns = max(known)
    if trial.go_ns is None:
        lived = "before its clock started"
    else:
        started = next(event.body for event in own if event.kind == Kind.EPISODE_STARTED)
        end_ns = min(end_ns, trial.go_ns + round(started["budget_s"] * SECOND))  # a lease ends there at the latest
        lived = f"{(end_ns - trial.go_ns) / SECOND:.1f} s after go"
    text = f"{name} was running when the run stopped; episode {trial.episode} ended {lived}; what was recorded is kept"
    body = {"reason": EndReason.PROCESS_LOST.value, "end_ns": end_ns}
    return Pending(Kind.EPISODE_ENDED, trial.id, trial.episode, body, text)


# What devices and people saw of an episode while it ran, when they saw it.
_TIMED = frozenset(
    {Kind.OPERATION_RECORDED, Kind.ITEM_COUNTED, Kind.STAGE_REACHED, Kind.INSTRUCTION_SWITCHED}
    | {Kind.INTERVENTION_BEGAN, Kind.INTERVENTION_ENDED}
)


def _happened_ns(event: Event) -> int | None:
    """When something happened in an episode; None for what may be written long afterwards."""
    match event.kind:
        case Kind.EPISODE_STARTED:
            return event.at_ns
        case Kind.GO:
            return event.body["go_ns"]
        case kind if kind in _TIMED:
            return event.body["t_ns"]
        case _:
            return None


def _seq_of_end(trial: Trial, events: Sequence[Event]) -> int:
    return next(e.seq for e in events if e.kind == Kind.EPISODE_ENDED and e.episode == trial.episode)
