"""Folds a campaign's events into its record (`labctl.core.record`): the one place where what they recorded is derived.

May not: check an event (`trial` does), or keep what nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from labctl.clock import Anchor
from labctl.core import evening_bodies
from labctl.core import event_bodies as bodies
from labctl.core.event_bodies import body_of
from labctl.core.events import LOOK_SAID_STOP, STOP_BY_HAND, EndReason, Event, Kind, sealed_gaps
from labctl.core.interventions import Intervention
from labctl.core.outcome import outcome_from
from labctl.core.record import Episode, HandStop, Practice, Record, Scene, Void
from labctl.core.recorded.skew import clock_warnings
from labctl.core.run_facts import Hours
from labctl.core.session import Session, everyone, session_from
from labctl.core.task import reached_after
from labctl.core.trial import CampaignState, fold
from labctl.messages.body_parts import LookTaken
from labctl.messages.judgements import WitnessStated


def record_of(events: Iterable[Event], state: CampaignState | None = None) -> Record:
    """The record of a journal's events, all of them, in order. state: their fold, where the caller has it.

    Raises as `trial.fold` does, KeyError for a body without what its kind must have.
    """
    events = list(events)
    found = _Fold()
    for event in events:
        found.note(event)
    return found.record(fold(events) if state is None else state)


@dataclass(slots=True)
class _Growing:
    """What of an episode has an entry for each item, or more: put together once, at the end."""

    events: list[Event] = field(default_factory=list[Event])
    operations: list[bodies.OperationRecorded] = field(default_factory=list[bodies.OperationRecorded])
    counts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


class _Fold:
    """The record as of the last event noted."""

    def __init__(self) -> None:
        self._whole = Record()  # but for what is collected below
        self._episodes: dict[str, Episode] = {}  # but for what is growing
        self._growing: dict[str, _Growing] = {}
        self._scenes: list[Scene] = []
        self._sessions: dict[str, Session] = {}
        self._practice: list[Practice] = []
        self._deviations: list[str] = []
        self._looks: list[LookTaken] = []
        self._open: Session | None = None
        self._present: tuple[str, ...] = ()  # operators of the last session
        self._staged: dict[str, Anchor] = {}  # by trial
        self._committed: dict[str, Scene] = {}  # by trial
        self._drove: dict[str, set[str]] = {}  # person -> trials
        self._hours = Hours()
        self._stopped: list[str] | None = None  # episodes that the standing stop by hand ended; None: none stands

    def record(self, state: CampaignState) -> Record:
        return replace(
            self._whole,
            state=state,
            episodes={name: self._grown(episode) for name, episode in self._episodes.items()},
            scenes=tuple(self._scenes),
            sessions=self._sessions,
            practice=tuple(self._practice),
            deviations=tuple(self._deviations),
            looks=tuple(self._looks),
            spent=tuple(self._hours.spent),
        )

    def _grown(self, episode: Episode) -> Episode:
        own = self._growing[episode.id]
        events, operations, counts = tuple(own.events), tuple(own.operations), tuple(own.counts)
        return replace(episode, events=events, operations=operations, counts=counts)

    def _note_of(self, episode: str, event: Event) -> None:
        if episode not in self._episodes:
            trial = event.trial or ""
            staged, scene = self._staged.get(trial), self._committed.get(trial)
            self._episodes[episode] = Episode(episode, trial, _at(event), staged, scene)
            self._growing[episode] = _Growing()
        growing = self._growing[episode]
        growing.events.append(event)
        match event.kind:
            case Kind.OPERATION_RECORDED:
                growing.operations.append(body_of(event, bodies.OperationRecorded))
            case Kind.ITEM_COUNTED:
                count = body_of(event, bodies.ItemCounted)
                growing.counts.append((count["moved"], count["t_ns"]))
            case _:
                self._episodes[episode] = _episode(self._episodes[episode], event, self._open)

    def note(self, event: Event) -> None:
        trial = event.trial or ""
        self._hours.note(event, self._open.operators if self._open else ())
        if event.episode:
            self._note_of(event.episode, event)
        match event.kind:
            case Kind.CAMPAIGN_OPENED:
                self._whole = replace(self._whole, opened_wall=event.wall)
            case Kind.CAMPAIGN_CLOSED:
                closing = body_of(event, bodies.CampaignClosed)
                self._whole = replace(self._whole, closed_wall=event.wall, closed_by=event.who, closing=closing)
            case Kind.CAMPAIGN_REVIEWED:
                self._whole = replace(self._whole, reviewed=True)
            case Kind.CAMPAIGN_FROZEN:
                self._whole = replace(self._whole, frozen=True, frozen_wall=event.wall, frozen_by=event.who)
            case Kind.CAMPAIGN_UNBLINDED:
                self._unblind(body_of(event, bodies.CampaignUnblinded))
            case Kind.RUN_STARTED:
                self._whole = replace(self._whole, pins=event.body.get("pins") or self._whole.pins)
            case Kind.SESSION_OPENED:
                self._open = session_from(body_of(event, evening_bodies.SessionOpened))
                self._sessions[self._open.id] = self._open
                self._present = self._open.operators
            case Kind.SESSION_CHANGED if self._open is not None:
                self._open = replace(
                    self._open, people=session_from(body_of(event, evening_bodies.SessionOpened)).people
                )
                before = self._sessions[self._open.id]
                self._sessions[self._open.id] = replace(before, people=everyone(before.people, self._open.people))
                self._present = self._open.operators
            case Kind.SESSION_CLOSED:
                closed = body_of(event, evening_bodies.SessionClosed)
                own = self._sessions[closed["session"]]
                self._sessions[own.id] = replace(own, handover=closed.get("handover"))
                self._open = None
            case Kind.TRIAL_STAGING | Kind.EPISODE_VOIDED:
                self._staged[trial] = _at(event)
            case Kind.SCENE_COMMITTED:
                self._commit(event, trial)
            case Kind.GO:
                for person in self._present:
                    self._drove.setdefault(person, set()).add(trial)
            case Kind.HOLD_RAISED if event.body["code"] == STOP_BY_HAND:
                self._stopped = self._stopped or []
            case Kind.EPISODE_ENDED if event.body["reason"] == EndReason.SAFETY_STOP and self._stopped is not None:
                self._stopped.append(str(event.episode))
                self._say_of_stop(HandStop())
            case Kind.HOLD_CLEARED if event.body["code"] == STOP_BY_HAND:
                self._acknowledge(body_of(event, evening_bodies.HoldCleared))
            case Kind.LOOK_TAKEN:
                self._looks.append(body_of(event, LookTaken))
            case Kind.PRACTICE_RECORDED:
                body = body_of(event, evening_bodies.PracticeRecorded)
                self._practice.append(Practice(body, frozenset(self._drove.get(body["person"], ()))))
            case _:
                pass
        self._deviations += _deviations(event)

    def _acknowledge(self, cleared: evening_bodies.HoldCleared) -> None:
        """A cause is of the blind part of a campaign: once it is frozen or unblinded nobody spares an arm any more."""
        late = self._whole.frozen or self._whole.unblinding is not None
        cause = None if late else cleared.get("cause")
        self._say_of_stop(HandStop(cause, cleared.get("why") or "", cleared["acknowledged_by"]))
        self._stopped = None

    def _say_of_stop(self, stop: HandStop) -> None:
        for name in self._stopped or ():
            self._episodes[name] = replace(self._episodes[name], stop=stop)

    def _unblind(self, opened: bodies.CampaignUnblinded) -> None:
        self._whole = replace(self._whole, unblinding=opened)
        for name, gaps in sealed_gaps(opened.get("openings") or ()).items():
            if (before := self._episodes.get(name)) is not None:
                self._episodes[name] = replace(before, gaps=(*before.gaps, *gaps))

    def _commit(self, event: Event, trial: str) -> None:
        body = body_of(event, bodies.SceneCommitted)
        scene = Scene(event.seq, trial, _at(event), body.get("photo") or {}, body.get("match") or {})
        self._scenes.append(scene)
        self._committed[trial] = scene


def _at(event: Event) -> Anchor:
    return Anchor(event.at_ns, event.wall, event.boot)


def _episode(before: Episode, event: Event, session: Session | None) -> Episode:
    """An episode after an event about it, but for what `_Growing` has."""
    match event.kind:
        case Kind.EPISODE_STARTED:
            start = body_of(event, bodies.EpisodeStarted)
            who, where = (session.operators, session.id) if session else ((), None)
            return replace(before, session=where, operators=who, started=_at(event), start=start)
        case Kind.GO:
            return replace(before, go_ns=body_of(event, bodies.Go)["go_ns"])
        case Kind.STAGE_REACHED:
            return replace(before, reached_ns=reached_after(before.reached_ns, body_of(event, bodies.StageReached)))
        case Kind.INTERVENTION_BEGAN:
            begun = body_of(event, bodies.InterventionBegan)
            touch = Intervention(begun["number"], begun["kind"], begun["by"], int(begun["t_ns"]))
            return replace(before, interventions=(*before.interventions, touch))
        case Kind.INTERVENTION_ENDED:
            over = body_of(event, bodies.InterventionEnded)
            return replace(before, interventions=tuple(touch.ended(over) for touch in before.interventions))
        case Kind.INSTRUCTION_SWITCHED:
            return replace(before, switches=(*before.switches, body_of(event, bodies.InstructionSwitched)))
        case Kind.EPISODE_ENDED:
            end = body_of(event, bodies.EpisodeEnded)
            cut = tuple(touch.cut(int(end["end_ns"])) for touch in before.interventions)
            known = replace(before, end_reason=end["reason"], ended_by=end.get("by"))
            return replace(known, ended=_at(event), end_ns=end["end_ns"], interventions=cut)
        case Kind.GAP:
            return replace(before, gaps=(*before.gaps, body_of(event, bodies.GapBody)))
        case Kind.RECORDING_SEALED:
            return replace(before, sealed=body_of(event, bodies.RecordingSealed))
        case Kind.OUTCOME_RECORDED:
            scored = body_of(event, bodies.OutcomeRecorded)
            known = replace(_known_to(before, event), stands=scored["outcome"])
            return replace(known, scored=_at(event), scored_by=event.who, hands=scored.get("hands"))
        case Kind.OUTCOME_CORRECTED:
            stands = body_of(event, bodies.OutcomeCorrected)["new"]
            return replace(_known_to(before, event), scored_by=event.who, confirmed_by=None, stands=stands)
        case Kind.OUTCOME_CONFIRMED:
            return replace(_known_to(before, event), confirmed_by=event.who)
        case Kind.OUTCOME_JUDGED:
            second = outcome_from(body_of(event, bodies.OutcomeJudged)["outcome"])
            against = before.judged_against or before.stands
            return replace(before, judged=(*before.judged, (event.who, second)), judged_against=against)
        case Kind.WITNESS_STATED:
            return replace(before, witnessed=(*before.witnessed, (body_of(event, WitnessStated), before.stands)))
        case Kind.OPERATIONS_REVIEWED:
            operations = tuple(body_of(event, bodies.OperationsReviewed)["operations"])
            return replace(_known_to(before, event), reviewed=operations)
        case Kind.ARM_GUESSED:
            return replace(before, guesses=(*before.guesses, (event.who, body_of(event, bodies.ArmGuessed)["guess"])))
        case Kind.EPISODE_VOIDED:
            void = body_of(event, bodies.EpisodeVoided)
            return replace(before, void=Void(str(void["reason"]), bool(void.get("after_go"))))
        case _:
            return before


def _known_to(episode: Episode, event: Event) -> Episode:
    """The episode, with whoever wrote this entry among those who know what was said of it."""
    return replace(episode, knows=episode.knows | {event.who})


def _deviations(event: Event) -> list[str]:
    """What an entry reports as not according to plan, a line each."""
    body = event.body
    match event.kind:
        case Kind.CAMPAIGN_UNBLINDED:
            openings = body_of(event, bodies.CampaignUnblinded).get("openings") or []
            failed = [one for one in openings if str(one["field"]).startswith("failure:")]
            return [f"episode {one['episode']}: its controller failed: {one['value']}" for one in failed]
        case Kind.RUN_STARTED:
            recovered = body_of(event, evening_bodies.RunStarted).get("recovered") or []
            return [f"{event.wall}: after an interruption: {line}" for line in recovered]
        case Kind.RECORDING_SEALED:
            clocks = (body_of(event, bodies.RecordingSealed).get("clocks") or {}).items()
            return [f"episode {event.episode}: {text}" for name, fit in clocks for text in clock_warnings(name, fit)]
        case Kind.OUTCOME_CORRECTED:
            return [f"{event.wall}: outcome of {event.episode} corrected by {event.who}: {body['why']}"]
        case Kind.EPISODE_VOIDED if body.get("confirmed_by"):
            how = body.get("confirmed_at") or ""
            where = f" {'by' if how.startswith('personal code') else 'at'} {how}" if how else ""
            confirmed = f"confirmed by {body['confirmed_by']}{where}"
            return [f"{event.wall}: episode {event.episode} voided ({body['reason']}) by {event.who}, {confirmed}"]
        case Kind.HOLD_CLEARED if body["code"] == LOOK_SAID_STOP:
            return [f"{event.wall}: {body['acknowledged_by']} went on with trials after a look had said stop"]
        case Kind.DEVIATION:
            return [f"{event.wall}: {body['text']}"]
        case Kind.REFERENCE_SET:
            return [f"{event.wall}: new reference of camera {body['camera']}, by {event.who}: {body['reason']}"]
        case Kind.CELL_FAULTED:
            return [f"{event.wall}: cell faulted: {body['reason']}"]
        case _:
            return []
