"""Orders that only write to the journal: sessions, notes, holds asked for, practice, and later judgement of a trial.

May not: move anything, act on the trial at hand, or journal what was refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labctl.bus import Body, Message, Step
from labctl.clock import SECOND
from labctl.core import commands
from labctl.core.campaign_state import stated
from labctl.core.commands import Command
from labctl.core.evening_bodies import SessionOpened
from labctl.core.event_bodies import OperationRecorded, OutcomeCorrected
from labctl.core.events import EndReason, Kind
from labctl.core.outcome import Outcome, judged
from labctl.core.reviewed import against, check_seen, confirmed
from labctl.core.session import People, Role, check_person, joined, missing_checks, present, session_from
from labctl.core.task import task_of
from labctl.core.trial import AFTER_BLOCK, AFTER_TRIAL, VERBS, State, Trial, Verb
from labctl.errors import InputError, StateError
from labctl.messages.body_parts import PersonEntry
from labctl.people.practised import practice_from
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.store.campaign import Campaign
from labctl.store.journal import DuplicateCommand


@dataclass(frozen=True, slots=True)
class Given:
    """A command as it came in, and the step in which it is carried out."""

    message: Message
    command: Command
    now_ns: int
    step: Step

    @property
    def by(self) -> dict[str, str | None]:
        """Who orders it, and the id by which it is carried out once, as `CampaignWriter.log` takes them."""
        return {"who": self.command.who, "command_id": self.command.id}


IN_EPISODE = (State.RUNNING, State.SCORING)  # a trial whose episode runs, or ran and is not scored yet
# Who may judge a trial afterwards, by verb.
JUDGES: Mapping[str, tuple[Role, ...]] = {
    "guess": (Role.OPERATOR, Role.SETTER, Role.ASSESSOR),
    "review": (Role.ASSESSOR,),
    "prefer": (Role.ASSESSOR,),
    "judge": (Role.ASSESSOR,),
    "correct": tuple(sorted(VERBS[State.SCORED][Verb.CORRECT])),
}


class RecordedOrders:
    """See the module."""

    def __init__(self, writer: CampaignWriter) -> None:
        self._writer = writer
        self._done: dict[str, tuple[str, str]] = {}  # command id -> its verb and who gave it, of this run

    def once(self, command: Command) -> Command:
        """The command, where none was carried out by its id, in this run or with an entry in one before; a stop by any
        id. Raises DuplicateCommand, InputError for an id that another order has.
        """
        if command.id is None or command.verb == commands.STOP:  # a stop asks nobody first, the journal least of all
            return command.model_copy(update={"id": None})
        known = self._done.get(command.id)
        if known is None and not self._writer.campaign.journal.carried_out(command.id):
            return command
        if known not in (None, (command.verb, command.who)):
            raise InputError(f"id {command.id!r} is that of another order, {known[0]}; each order has an id of its own")
        raise DuplicateCommand(f"command {command.id} was carried out already")

    def done(self, command: Command) -> bool:
        """Remember that it was carried out. False: it waits for nothing."""
        if command.id is not None:
            self._done[command.id] = (command.verb, command.who)
        return False

    @property
    def people(self) -> People:
        """Whose orders and confirmations count now."""
        return present(self._writer.state.session, self._writer.state.people)

    def check_role(self, command: Command, *roles: Role) -> None:
        """Whether who orders it is here in the role that is claimed, and this is for that role. Raises StateError."""
        check_person(self.people, command.who, command.role)
        if command.role not in roles:
            raise StateError(f"{command.verb} is for the {' or '.join(roles)}, not for the {command.role}")

    def open_session(self, args: commands.OpenSession, given: Given) -> None:
        number = f"s-{self._writer.state.last_seq + 1}"
        body = SessionOpened(session=number, **args.model_dump(exclude_unset=True))
        session = session_from(body)
        check_person(joined({}, session), given.command.who)
        missing = missing_checks(self._writer.campaign.protocol, session)
        if missing:
            raise StateError(f"the protocol asks for opening checks not yet answered: {', '.join(missing)}")
        self._writer.log(Kind.SESSION_OPENED, body, **given.by)

    def change_people(self, args: commands.People, given: Given) -> None:
        """Somebody comes, leaves or changes role while the session goes on."""
        session = self._writer.state.session
        if session is None:
            raise StateError("no session is open; who is here is said when one is opened")
        people = [PersonEntry(**person.model_dump()) for person in args.people]
        body: SessionOpened = {"session": session.id, "people": people}
        changed = session_from(body)
        if not changed.operators:
            raise StateError("nobody would be the operator; close the session if everybody leaves")
        if joined({}, changed) == joined({}, session):
            raise StateError("the same people are here in the same roles already")
        self._writer.log(Kind.SESSION_CHANGED, body, **given.by)

    def note(self, args: commands.Note, given: Given) -> None:
        self._writer.log(Kind.NOTE, {"text": words("note", args.text)}, **given.by)

    def practice(self, args: commands.Practice, given: Given) -> None:
        body = practice_from(args.model_dump(exclude_unset=True), self._writer.opened)
        self._writer.log(Kind.PRACTICE_RECORDED, body, **given.by)

    def wait(self, args: commands.Wait, given: Given) -> None:
        """Hold after this trial, or after this block: nothing is staged beyond it until somebody lets go."""
        trial = self._writer.current()
        if trial is None:
            raise StateError("no trial is left in this campaign")
        codes = {"trial": f"{AFTER_TRIAL}{trial.id}", "block": f"{AFTER_BLOCK}{trial.block}"}
        code = codes.get(args.after or "")
        if code is None:
            raise InputError(f"hold after 'trial' or 'block', not {args.after!r}")
        if code in self._writer.state.holds:
            raise StateError(f"a hold after this {args.after} is asked for already")
        why = f": {args.why}" if args.why else ""
        text = f"{given.command.who} asked to hold after this {args.after}{why}"
        self._writer.log(Kind.HOLD_RAISED, {"code": code, "text": text}, **given.by)

    def reach(self, args: commands.Reach, given: Given) -> None:
        """A person saw the next stage of the task reached, or takes the last one back."""
        trial = self._writer.current()
        if trial is None or trial.state not in IN_EPISODE or trial.go_ns is None:
            raise StateError("no episode is running; stages are reached while one is")
        stages = self._writer.tasks[trial.condition].stages
        before = len(self._writer.facts.reached.get(trial.episode or "", ()))
        names = ", ".join(f"{number} {stage['name']}" for number, stage in enumerate(stages, 1))
        if args.stage is None:
            if not before:
                raise StateError("no stage is reached that could be taken back")
        elif not 1 <= args.stage <= len(stages):
            raise StateError(f"there is no stage {args.stage}; the task has {names or 'none'}")
        elif args.stage != before + 1:
            reached = args.stage <= before
            text = f"stage {args.stage} is reached already" if reached else "a stage counts after those before"
            raise StateError(f"{text}; " + (f"the next is {before + 1} of {names}" if before < len(stages) else names))
        at_ns = self.seen_at(trial, given.now_ns)
        body = {"reached": before + (-1 if args.stage is None else 1), "t_ns": at_ns}
        self._writer.log(Kind.STAGE_REACHED, body, trial=trial.id, episode=trial.episode, **given.by)

    def seen_at(self, trial: Trial, now_ns: int) -> int:
        """When what a person saw of an episode counts as having been: not after its end, nor after its budget."""
        if trial.end_ns is not None:
            return trial.end_ns
        over_ns = round(self._writer.tasks[trial.condition].budget_s * SECOND)
        return now_ns if trial.go_ns is None else min(now_ns, trial.go_ns + over_ns)

    def scored(self, named: str, given: Given) -> tuple[Trial, dict[str, str | None]]:
        """The trial that a later judgement names, which need not be the one at hand, and whose event it becomes. Raises
        StateError for who may not judge.
        """
        self.check_role(given.command, *JUDGES[given.command.verb])
        trial = self._writer.state.trials.get(named)
        if trial is None:
            raise InputError(
                f"{given.command.verb}: there is no trial {named!r} in this campaign; labctl episodes lists them"
            )
        return trial, {"trial": trial.id, "episode": trial.episode, **given.by}

    def guess(self, args: commands.Guess, given: Given) -> None:
        _, about = self.scored(args.trial, given)
        candidates = [arm.name for arm in self._writer.campaign.protocol.arm]
        if args.guess is not None and args.guess not in candidates:
            raise InputError(f"{args.guess!r} is no candidate; they are {', '.join(sorted(candidates))}")
        self._writer.log(Kind.ARM_GUESSED, {"guess": args.guess}, **about)

    def review(self, args: commands.Review, given: Given) -> None:
        trial, about = self.scored(args.trial, given)
        check_seen(trial, self._writer.tasks[trial.condition], args.seen)
        operations = [OperationRecorded(**operation.model_dump()) for operation in args.operations]
        kind, body = confirmed(trial, operations, args.note)
        self._writer.log(kind, body, **about)

    def judge(self, args: commands.Judge, given: Given) -> None:
        """A second assessor says how an episode went, from its video alone."""
        trial, about = self.scored(args.trial, given)
        typed = args.model_dump(exclude_unset=True, exclude={"trial"})
        outcome = second_outcome(self._writer.campaign, trial, typed, given.command.who)
        self._writer.log(Kind.OUTCOME_JUDGED, {"outcome": outcome.body()}, **about)

    def prefer(self, args: commands.Prefer, given: Given) -> None:
        """An assessor says which of the two episodes that were drawn of a block was better."""
        self.check_role(given.command, *JUDGES["prefer"])
        trial, preference = stated(self._writer.state, args.first, args.second, args.preferred, args.why, args.seen)
        self._writer.log(Kind.PREFERENCE_STATED, preference, trial=trial.id, episode=trial.episode, **given.by)

    def correct(self, args: commands.Correct, given: Given) -> None:
        trial, about = self.scored(args.trial, given)
        check_seen(trial, self._writer.tasks[trial.condition], args.seen)
        new = args.model_dump(exclude_unset=True, exclude={"trial", "why", "seen"})
        self._writer.log(Kind.OUTCOME_CORRECTED, correction(self._writer.campaign, trial, new, args.why), **about)


def outcome_of_a_person(campaign: Campaign, trial: Trial, typed: Body) -> Outcome:
    """`outcome.judged` by a campaign's protocol: the one check of every door by which an outcome comes in."""
    rules = campaign.protocol.trial
    task = task_of(campaign.opened, trial.condition)
    words = {"stages": rules.stages, "failure_tags": (*rules.failure_tags, *task.failure_tags)}
    lasted_s = None if trial.go_ns is None or trial.end_ns is None else (trial.end_ns - trial.go_ns) / SECOND
    return judged(typed, ended=str(trial.ended), lasted_s=lasted_s, task=task, **words)


def second_outcome(campaign: Campaign, trial: Trial, typed: Body, who: str) -> Outcome:
    """What a second assessor typed; nobody tells them that a device ended an episode as all done. Raises StateError for
    one who cannot be it, InputError as `outcome.judged`.
    """
    why_not = against(campaign.record(), who, trial)
    if why_not:
        raise StateError(why_not)
    wrong_end = trial.ended == EndReason.ALL_DONE and bool(typed.get("remaining"))
    return outcome_of_a_person(campaign, trial, {**typed, **({"wrong_end": True} if wrong_end else {})})


def correction(campaign: Campaign, trial: Trial, typed: Body, why: str) -> OutcomeCorrected:
    """What is journalled of a correction. Raises StateError for a trial that is not scored, InputError for an empty
    reason, for an outcome that cannot be, and for one that changes nothing.
    """
    if trial.outcome is None:
        raise StateError(f"{trial.place} is {trial.state}; only a scored one is corrected")
    why, new = words("reason for the correction", why), outcome_of_a_person(campaign, trial, typed)
    if new == trial.outcome:
        raise InputError(f"nothing is corrected: the outcome of {trial.place} stands as it is given here")
    return {"old": trial.outcome.body(), "new": new.body(), "why": why}


def words(name: str, text: str) -> str:
    """A non-empty text of a command. Raises InputError."""
    if not text.strip():
        raise InputError(f"the {name} is empty; say it in a few words")
    return text.strip()
