"""What a person may order at a console, and the run process doing it: sessions, acknowledgements, the verbs of a trial.

May not: act on a stale command or against a hold, journal what was refused, or learn an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from labctl.bus import Message, Step
from labctl.core import commands
from labctl.core.commands import command_from
from labctl.core.events import ARMS_UNREADY, STOP_BY_HAND, EndReason, InterventionKind, Kind
from labctl.core.interlock import Hold, overridable
from labctl.core.liveness import Liveness
from labctl.core.rollout import typed
from labctl.core.session import Role, check_person, check_watched
from labctl.core.trial import State, Trial, Verb, allowed
from labctl.errors import InputError, StaleCommand, StateError
from labctl.people.personal_codes import codes_of
from labctl.people.second_person import SecondPerson, WrongCode
from labctl.plain import count
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.operator_state import finished
from labctl.runtime.readiness import Readiness
from labctl.runtime.recorded_orders import IN_EPISODE, Given, RecordedOrders, outcome_of_a_person, words
from labctl.runtime.robot_watch import BAD_MODES, STOPPED, RobotWatch
from labctl.runtime.scene_watch import Request, SceneWatch
from labctl.runtime.seal import OwnSeal
from labctl.runtime.staging import Staging
from labctl.store.lab_folder import lab_with


class Orders(RecordedOrders):
    """Carries out one command at a time. `holds(now_ns, act)` are the live reasons against an act; `touches` counts
    what changed a screen without an event.
    """

    def __init__(
        self,
        writer: CampaignWriter,
        sequencer: EpisodeSequencer,
        liveness: Liveness,
        staging: Staging,
        watch: RobotWatch,
        scene: SceneWatch,
        readiness: Readiness,
        holds: Callable[[int, Verb], Sequence[Hold]],
        seal: OwnSeal,
    ) -> None:
        super().__init__(writer)
        self._seal = seal
        self._sequencer = sequencer
        self._liveness = liveness
        self._staging = staging
        self._watch = watch
        self._scene = scene
        self._readiness = readiness
        self._holds = holds
        self.second = SecondPerson(lambda: codes_of(lab_with(writer.campaign.folder)))
        self.touches = 0
        self.over = False  # the last session was closed with no trial left

    def version(self, trial: Trial | None) -> int:
        """What a command must have seen: the trial's version, or the journal's last entry when none is left."""
        return self._writer.state.last_seq if trial is None else trial.version

    def obey(self, message: Message, now_ns: int, step: Step) -> bool:
        """Do what a command asks, once: verb, who, role, id, version, args. True when it waits for photos (`settle`).

        Raises StateError when it is not allowed now, StaleCommand when its screen was old, InputError for what makes no
        sense, DuplicateCommand when it was carried out before.
        """
        command, request = self.once(command_from(message.body)), self._scene.request
        if request is not None and command.id is not None and request.command.body.get("id") == command.id:
            return True  # asked again for what is under way
        self._writer.hands.pressed(command.keys)
        order = ORDERS.get(command.verb)
        if order is None:
            raise InputError(f"no verb {command.verb!r}; there are {', '.join(ORDERS)}")
        if command.verb not in OF_ANYBODY:
            check_person(self.people, command.who)
            self.second.heard(message.sender, command.who)
        waits = order.carry_out(self, Given(message, command, now_ns, step))
        return waits or self.done(command)

    def settle(self, request: Request, now_ns: int, step: Step) -> bool:
        """Do what waited for photos, now that they are there or will not come. Raises StateError, and writes nothing
        then, when the scene may not be committed after all.
        """
        trial, command = self._writer.current(), command_from(request.command.body)
        if trial is None or trial.id != request.trial or trial.state != State.STAGING:
            standing = "".join(f"; {text}" for text in self._writer.state.holds.values())
            name = self._writer.state.trials[request.trial].place
            raise StateError(f"{name} was given back while its photos were taken{standing}")
        if request.verb == "reference":
            reason = command.arguments(commands.Reference).reason
            self._scene.set_reference(request, reason, command.who)
        else:
            self._commit(trial, request, Given(request.command, command, now_ns, step))
        return self.done(command)

    def _reference(self, args: commands.Reference, given: Given) -> bool:
        """A person takes the view of a camera, as it is now, for the reference from here on."""
        trial = self._writer.current()
        self.check_role(given.command, Role.OPERATOR, Role.SETTER)
        words("reason", args.reason)
        if trial is None or self._staging.done != trial.id:
            raise StateError("a reference is taken of a staged scene; stage the trial first, the robot must be home")
        there = [name for name in self._scene.chosen(args.camera) if self._liveness.alive(f"camera:{name}")]
        if not there:
            raise StateError("no camera is there to take a reference with")
        self._scene.ask("reference", given.message, trial, there, given.now_ns, given.step)
        return True

    def _look(self, args: commands.Nothing, given: Given) -> None:
        self.touches += 1

    def _close_session(self, args: commands.CloseSession, given: Given) -> None:
        session = self._writer.state.session
        if session is None:
            raise StateError("no session is open")
        if args.session not in (None, session.id):
            raise StaleCommand(f"session {session.id} is open, not {args.session}, which this was to close; look again")
        self._writer.log(Kind.SESSION_CLOSED, {"session": session.id, "handover": args.handover}, **given.by)
        self.over = self._writer.current() is None

    def _stop(self, args: commands.Nothing, given: Given) -> None:
        """A person stopped the robot, in whatever state: somebody says why before it moves again."""
        self._watch.by_hand(given)
        self.touches += 1

    def _in_episode(self, why: str) -> Trial:
        trial = self._writer.current()
        if trial is None or trial.state not in IN_EPISODE:
            raise StateError(f"no episode is running; {why}")
        return trial

    def _count(self, args: commands.Count, given: Given) -> None:
        """The operator saw an item arrive (by: 1), or takes one back (by: -1)."""
        trial = self._in_episode("items are counted while one is")
        if trial.go_ns is None:
            raise StateError("no item can be counted before go: nothing of this episode has begun")
        at_ns = self.seen_at(trial, given.now_ns)
        moved = self._writer.facts.counted.get(trial.episode or "", 0) + args.by
        items = self._writer.tasks[trial.condition].items
        if not 0 <= moved <= items:
            raise StateError(f"moved cannot be {moved} of {count(items, 'item')} staged")
        body = {"moved": moved, "t_ns": at_ns}
        self._writer.log(Kind.ITEM_COUNTED, body, trial=trial.id, episode=trial.episode, **given.by)

    def _touch(self, args: commands.TouchScene, given: Given) -> None:
        """A person begins to touch the scene or the robot, or says that it is over and what it was."""
        phase, kind = args.phase, args.kind
        if phase not in ("begin", "end") or kind not in list(InterventionKind):
            found = f"phase {phase!r}, kind {kind!r}"
            raise InputError(f"{found}: an intervention has phase begin or end, and kind {', '.join(InterventionKind)}")
        trial = self._in_episode("an intervention is a touch while one is")
        about = {"trial": trial.id, "episode": trial.episode, **given.by}
        if phase == "begin":
            body = {"number": trial.touches, "kind": kind, "by": "console", "t_ns": self.seen_at(trial, given.now_ns)}
            self._writer.log(Kind.INTERVENTION_BEGAN, body, **about)
            return
        open_here = typed(trial)
        if args.number is None and not open_here:
            raise StateError("no intervention goes on that was begun at a console")
        number = open_here[-1] if args.number is None else args.number
        if number not in (*open_here, *trial.unsaid):
            raise StateError(f"of intervention {number} it was said what it was, it did not happen, or is a device's")
        body = {"number": number, "kind": kind, "t_ns": self.seen_at(trial, given.now_ns)}
        note = {"note": args.note} if "kind" in args.model_fields_set else {}
        self._writer.log(Kind.INTERVENTION_ENDED, {**body, **note}, **about)

    def _acknowledge(self, args: commands.Acknowledge, given: Given) -> None:
        code = args.code.removeprefix("unacknowledged:")
        if code == "cell_faulted" and self._writer.state.faulted is not None:
            self._writer.log(Kind.FAULT_ACKNOWLEDGED, {"reason": self._writer.state.faulted}, **given.by)
            self._liveness.deaths.clear()
            if self._liveness.mode in BAD_MODES:
                self._watch.acknowledged(given.now_ns, given.step)
            return
        if code not in self._writer.state.holds:
            raise StateError(f"no hold {code!r} stands; standing: {', '.join(self._writer.state.holds) or 'none'}")
        if args.raised not in (None, self._writer.state.raised.get(code)):
            raise StaleCommand(f"not acknowledged: another hold stands by now: {self._writer.state.holds[code]}")
        cause = args.cause_fields(by_hand=code == STOP_BY_HAND)
        body = {"code": code, "acknowledged_by": given.command.who, **cause}
        self._writer.log(Kind.HOLD_CLEARED, body, **given.by)
        if code == ARMS_UNREADY:
            self._readiness.again()
        if code == STOPPED:
            self._watch.acknowledged(given.now_ns, given.step)

    # -- the verbs of the trial at hand

    def permitted(self, args: commands.Arguments, given: Given) -> Trial:
        """The trial at hand, if its verb is allowed to this role now. Raises StateError, StaleCommand."""
        trial, command, verb = self._writer.current(), given.command, Verb(given.command.verb)
        check_person(self.people, command.who, command.role)
        if trial is None:
            raise StateError("no trial is left in this campaign")
        if command.version is not None and command.version < self.version(trial):
            shown, now = command.version, self.version(trial)
            raise StaleCommand(
                f"{verb} was not done: the trial has changed since this screen was drawn (step {shown}, now {now}); "
                "look again, then repeat it"
            )
        why = args.override if isinstance(args, commands.Commit) else None
        live = self._scene.not_overridden(self._holds(given.now_ns, verb), why)
        if verb not in allowed(self._writer.state, trial, live, command.role):
            why_not = "; ".join(hold.text for hold in live) or f"the trial is {trial.state}"
            raise StateError(f"{verb} is not allowed for the {command.role} now: {why_not}")
        return trial

    def _stage(self, trial: Trial, args: commands.Nothing, given: Given) -> None:
        self._writer.log(Kind.TRIAL_STAGING, {"setter": given.command.who}, trial=trial.id, **given.by)
        self._staging.ask(self._trial(trial), given.now_ns, given.step)

    def _release(self, trial: Trial, args: commands.Give, given: Given) -> None:
        self._writer.log(Kind.TRIAL_RELEASED, {"reason": args.reason}, trial=trial.id, **given.by)

    def _skip(self, trial: Trial, args: commands.Give, given: Given) -> None:
        self._writer.log(Kind.TRIAL_SKIPPED, {"reason": args.reason}, trial=trial.id, **given.by)
        self._writer.say(f"{trial.place}: not run ({args.reason})")

    def _start(self, trial: Trial, args: commands.Nothing, given: Given) -> None:
        assert self._sequencer.rollout is not None
        self._sequencer.rollout.operator_starts(given.now_ns)
        self.touches += 1

    def _by_itself(self, trial: Trial, args: commands.Nothing, given: Given) -> None:
        raise StateError(f"{given.command.verb} is done by the run process itself")

    def _photograph(self, trial: Trial, args: commands.Commit, given: Given) -> bool:
        """A commit begins with a photo of every camera; it is carried out when they are there."""
        self._check_home(trial)
        there = [name for name in self._scene.chosen(None) if self._liveness.alive(f"camera:{name}")]
        self._scene.ask("commit", given.message, trial, there, given.now_ns, given.step)
        return True

    def _check_home(self, trial: Trial) -> None:
        if self._staging.done != trial.id:
            raise StateError("the robot is still on its way to where episodes begin; try again in a moment")

    def _commit(self, trial: Trial, request: Request, given: Given) -> None:
        self._check_home(trial)
        live = [hold for hold in self._holds(given.now_ns, Verb.COMMIT) if not overridable(hold)]
        if live:  # the scene's own are judged by its photo
            raise StateError(f"not committed: {'; '.join(hold.text for hold in live)}")
        why = given.command.arguments(commands.Commit).override
        scene = self._scene.commit_body(request, given.command.who, why)
        snapshot = {"arm_mode": self._liveness.mode, "holds": []}
        self._staging.forget()  # what happens from here on changes the scene
        self._writer.log(Kind.SCENE_COMMITTED, {**scene, "snapshot": snapshot}, trial=trial.id, **given.by)
        there = [f"camera:{name}" for name in request.cameras if self._liveness.alive(f"camera:{name}")]
        self._seal.ask(self._trial(trial), given.now_ns, there, given.step)

    def _end(self, trial: Trial, args: commands.End, given: Given) -> None:
        rollout, reason = self._sequencer.rollout, args.reason
        if reason not in (EndReason.OPERATOR, EndReason.FUTILITY):
            raise InputError(f"an operator ends an episode as 'operator' or 'futility', not '{reason}'")
        stages = self._writer.tasks[trial.condition].stages
        done = bool(stages) and len(self._writer.facts.reached.get(trial.episode or "", ())) == len(stages)
        if self._writer.opened.get("early_end") == "forbidden" and not done:
            raise StateError(
                "the protocol forbids ending an episode early: it goes on to its budget; stop the robot (SPACE) where "
                "something is in danger, or void the episode afterwards for a reason of the protocol"
            )
        if rollout is None or not rollout.moving:
            raise StateError("no episode is running")
        self._sequencer.end(reason, given.now_ns, given.now_ns, given.step, by=given.command.who)

    def _void(self, trial: Trial, args: commands.Void, given: Given) -> None:
        reason, allowed_reasons = args.reason, self._writer.opened["void_reasons"]
        if reason not in allowed_reasons:
            raise InputError(f"void reason {reason!r} is not in the protocol; allowed: {', '.join(allowed_reasons)}")
        if trial.state == State.ARMED:
            self._sequencer.void_unstarted(reason, given.step, who=given.command.who)
            return
        confirmed_at = self._backing(trial, args, given)
        body = {"reason": reason, **args.model_dump(include={"evidence", "confirmed_by"})}
        if confirmed_at:
            body["confirmed_at"] = confirmed_at
        body["after_go"] = trial.go_ns is not None
        self._writer.log(Kind.EPISODE_VOIDED, body, trial=trial.id, episode=trial.episode, **given.by)
        self._sequencer.let_go(given.step)

    def _confirm(self, args: commands.Confirm, given: Given) -> None:
        """A second person says, at a console of their own, that the episode at hand is to be void."""
        trial, reasons = self._writer.current(), self._writer.opened["void_reasons"]
        check_person(self.people, given.command.who, given.command.role)
        if trial is None or not trial.needs_second:
            raise StateError("nothing to confirm: no episode waits for its score that a second person may void")
        if args.episode != trial.episode:
            raise StaleCommand(f"the episode at hand is {trial.episode}, not {args.episode!r}; look again")
        if args.reason not in reasons:
            raise InputError(f"void reason {args.reason!r} is not in the protocol; allowed: {', '.join(reasons)}")
        check_watched(self._writer.state.session, trial.watched, given.command.who)
        self.second.confirm(trial.episode or "", args.reason, given.command.who, given.message.sender)
        self.touches += 1

    def _backing(self, trial: Trial, args: commands.Void, given: Given) -> str:
        """How a second person confirmed a void, "" where nobody is named. What stands behind a void is a machine's
        entry of this episode, or a person who is here: raises InputError, StateError.
        """
        if args.evidence is not None and args.evidence not in trial.backing:
            there = ", ".join(map(str, trial.backing)) or "none"
            raise InputError(f"entry {args.evidence} is no machine's report that ended this episode; there: {there}")
        if args.confirmed_by is None:
            return ""
        check_watched(self._writer.state.session, trial.watched, args.confirmed_by)
        if args.confirmed_by == given.command.who:
            raise StateError("the second person must be another one")
        code = args.personal_code.get_secret_value() if args.personal_code else None
        at = {"episode": trial.episode or "", "reason": args.reason, "console": given.message.sender}
        try:
            return self.second.how(args.confirmed_by, code, now_ns=given.now_ns, **at)
        except WrongCode as wrong:
            if wrong.wait_s:
                text = f"{wrong.in_a_row} wrong personal codes of {args.confirmed_by} in a row, at a void"
                about = {"trial": trial.id, "episode": trial.episode, "who": given.command.who}
                self._writer.log(Kind.DEVIATION, {"text": f"{text} that {given.command.who} ordered"}, **about)
            raise

    def _score(self, trial: Trial, args: commands.Score, given: Given) -> None:
        counted = args.model_dump(exclude_unset=True)
        outcome = outcome_of_a_person(self._writer.campaign, trial, counted)
        body = {"outcome": outcome.body(), **self._writer.hands.body(given.now_ns)}
        self._writer.log(Kind.OUTCOME_RECORDED, body, trial=trial.id, episode=trial.episode, **given.by)
        self._sequencer.rollout = None
        done, total = finished(self._writer.state)
        where = f"{trial.place}  {trial.condition}  {trial.episode}"
        self._writer.say(f"{done:>3}/{total}  {where}  sealed and scored  {self._writer.print_head()}")

    def _trial(self, trial: Trial) -> Trial:
        return self._writer.state.trials[trial.id]


OF_ANYBODY = (commands.STOP, "look", "session", "session_close")  # those of a session that was left open are gone
A = TypeVar("A", bound=commands.Arguments)


@dataclass(frozen=True, slots=True)
class Order(Generic[A]):
    """A verb of its own: the arguments that it needs, and what is done. True from `does`: it waits for photos."""

    arguments: type[A]
    does: Callable[[Orders, A, Given], bool | None]

    def carry_out(self, orders: Orders, given: Given) -> bool:
        return bool(self.does(orders, given.command.arguments(self.arguments), given))


@dataclass(frozen=True, slots=True)
class TrialOrder(Generic[A]):
    """A verb of the trial at hand, which its state has to allow."""

    arguments: type[A]
    does: Callable[[Orders, Trial, A, Given], bool | None]

    def carry_out(self, orders: Orders, given: Given) -> bool:
        args = given.command.arguments(self.arguments)
        return bool(self.does(orders, orders.permitted(args, given), args, given))


ORDERS: Mapping[str, Order[Any] | TrialOrder[Any]] = {
    "session": Order(commands.OpenSession, Orders.open_session),
    "people": Order(commands.People, Orders.change_people),
    "session_close": Order(commands.CloseSession, Orders._close_session),
    "acknowledge": Order(commands.Acknowledge, Orders._acknowledge),
    "look": Order(commands.Nothing, Orders._look),
    commands.STOP: Order(commands.Nothing, Orders._stop),
    "note": Order(commands.Note, Orders.note),
    "wait": Order(commands.Wait, Orders.wait),
    "confirm": Order(commands.Confirm, Orders._confirm),
    "count": Order(commands.Count, Orders._count),
    "reach": Order(commands.Reach, Orders.reach),
    "touch": Order(commands.TouchScene, Orders._touch),
    "practice": Order(commands.Practice, Orders.practice),
    "reference": Order(commands.Reference, Orders._reference),
    "guess": Order(commands.Guess, Orders.guess),
    "review": Order(commands.Review, Orders.review),
    "prefer": Order(commands.Prefer, Orders.prefer),
    "judge": Order(commands.Judge, Orders.judge),
    Verb.CORRECT: Order(commands.Correct, Orders.correct),
    Verb.STAGE: TrialOrder(commands.Nothing, Orders._stage),
    Verb.SKIP: TrialOrder(commands.Give, Orders._skip),
    Verb.COMMIT: TrialOrder(commands.Commit, Orders._photograph),
    Verb.RELEASE: TrialOrder(commands.Give, Orders._release),
    Verb.REVEAL: TrialOrder(commands.Nothing, Orders._by_itself),
    Verb.START: TrialOrder(commands.Nothing, Orders._start),
    Verb.VOID: TrialOrder(commands.Void, Orders._void),
    Verb.END: TrialOrder(commands.End, Orders._end),
    Verb.SCORE: TrialOrder(commands.Score, Orders._score),
}
