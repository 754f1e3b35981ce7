"""What a person may order at a console, and the run process doing it: sessions, acknowledgements, the verbs of a trial.

May not: act on a stale command or against a hold, journal what was refused, or learn an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from labctl.bus import Message, Step
from labctl.core.events import EndReason, Kind, Touch
from labctl.core.interlock import Hold, overridable
from labctl.core.liveness import Presence
from labctl.core.outcome import Outcome, outcome_from
from labctl.core.practised import practice_from
from labctl.core.reviewed import checked
from labctl.core.rollout import typed
from labctl.core.session import Role, missing_checks, session_from
from labctl.core.trial import AFTER_BLOCK, AFTER_TRIAL, State, Trial, Verb, allowed
from labctl.errors import InputError, StaleCommand, StateError
from labctl.runtime.campaign_writer import Desk
from labctl.runtime.episode_sequencer import Conductor
from labctl.runtime.operator_state import finished
from labctl.runtime.robot_watch import BAD_MODES, STOPPED, ArmWatch
from labctl.runtime.scene_watch import Request, SceneWatch
from labctl.runtime.staging import Staging

LATER_VERBS = ("correct", "guess", "review")  # of any trial that is scored
OWN_VERBS = (
    *(
        "session",
        "session_close",
        "acknowledge",
        "look",
        "stop",
        "note",
        "wait",
        "count",
        "touch",
        "practice",
        "reference",
    ),
    *LATER_VERBS,
)
STOP_CODE = "operator_stop"


class Orders:
    """Carries out one command at a time. `holds(now_ns, act)` are the live reasons against an act; `touches` counts
    what changed a screen without an event.
    """

    def __init__(
        self,
        desk: Desk,
        conductor: Conductor,
        presence: Presence,
        staging: Staging,
        watch: ArmWatch,
        scene: SceneWatch,
        holds: Callable[[int, Verb], Sequence[Hold]],
    ) -> None:
        self._desk = desk
        self._conductor = conductor
        self._presence = presence
        self._staging = staging
        self._watch = watch
        self._scene = scene
        self._holds = holds
        self.touches = 0
        self.over = False  # the last session was closed with no trial left

    def version(self, trial: Trial | None) -> int:
        """What a command must have seen: the trial's version, or the journal's last entry when none is left."""
        return self._desk.state.last_seq if trial is None else trial.version

    def obey(self, message: Message, now_ns: int, step: Step) -> bool:
        """Do what a command asks: verb, who, role, id, version, args. True when it waits for photos (`settle`).

        Raises StateError when it is not allowed now, StaleCommand when its screen was old, InputError for what makes no
        sense, DuplicateCommand when it was carried out before.
        """
        body = message.body
        verb, who, args = str(body["verb"]), str(body["who"]), dict(body.get("args", {}))
        given: dict[str, Any] = {"who": who, "command_id": body.get("id")}
        if self._scene.request is not None and self._scene.request.command.body.get("id") == body.get("id"):
            return True  # asked again for what is under way
        if verb == "session":
            session = f"s-{self._desk.state.last_seq + 1}"
            missing = missing_checks(self._desk.campaign.protocol, session_from({"session": session, **args}))
            if missing:
                raise StateError(f"the protocol asks for opening checks not yet answered: {', '.join(missing)}")
            self._desk.log(Kind.SESSION_OPENED, {"session": session, **args}, **given)
        elif verb == "session_close":
            self._close_session(args, given)
        elif verb == "acknowledge":
            self._acknowledge(args, given, now_ns, step)
        elif verb == "look":
            self.touches += 1
        elif verb == "stop":
            self._stop(args, given, now_ns, step)
        elif verb == "note":
            self._desk.log(Kind.NOTE, {"text": _text(args, "text")}, **given)
        elif verb == "wait":
            self._wait(args, given)
        elif verb in LATER_VERBS:
            self._judge_later(verb, body, args, given)
        elif verb == "count":
            self._count(args, given, now_ns)
        elif verb == "touch":
            self._touch(args, given, now_ns)
        elif verb == "practice":
            self._desk.log(Kind.PRACTICE_RECORDED, practice_from(args, self._desk.opened), **given)
        elif verb == "reference":
            return self._reference(message, args, now_ns, step)
        elif verb not in list(Verb):
            raise InputError(f"no verb {verb!r}; there are {', '.join([*OWN_VERBS, *Verb])}")
        else:
            trial = self._desk.current()
            if trial is None:
                raise StateError("no trial is left in this campaign")
            return self._trial_command(Verb(verb), trial, message, given, now_ns, step)
        return False

    def settle(self, request: Request, now_ns: int, step: Step) -> bool:
        """Do what waited for photos, now that they are there or will not come. Raises StateError, and writes nothing
        then, when the scene may not be committed after all.
        """
        body, trial = request.command.body, self._desk.current()
        args, given = body.get("args", {}), {"who": str(body["who"]), "command_id": body.get("id")}
        if trial is None or trial.id != request.trial or trial.state != State.STAGING:
            raise StateError(f"trial {request.trial} was given back while its photos were taken")
        if request.verb == "reference":
            self._scene.set_reference(request, str(args["reason"]), given)
        else:
            self._commit(trial, request, args, given, now_ns, step)
        return False

    def _reference(self, message: Message, args: Mapping[str, Any], now_ns: int, step: Step) -> bool:
        """A person takes the view of a camera, as it is now, for the reference from here on."""
        trial = self._desk.current()
        _text(args, "reason")
        if trial is None or self._staging.done != trial.id:
            raise StateError("a reference is taken of a staged scene; stage the trial first, the arm must be home")
        if message.body["role"] not in (Role.OPERATOR, Role.SETTER):
            raise StateError("a reference is taken by operator or setter")
        there = [name for name in self._scene.chosen(args.get("camera")) if self._presence.alive(f"camera:{name}")]
        if not there:
            raise StateError("no camera is there to take a reference with")
        self._scene.ask("reference", message, trial, there, now_ns, step)
        return True

    def _close_session(self, args: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        session = self._desk.state.session
        if session is None:
            raise StateError("no session is open")
        self._desk.log(Kind.SESSION_CLOSED, {"session": session.id, "handover": args.get("handover", "")}, **given)
        self.over = self._desk.current() is None

    def _stop(self, args: Mapping[str, Any], given: dict[str, Any], now_ns: int, step: Step) -> None:
        """A person stopped the robot: it was the running operation's safety stop, and someone says why before it moves
        again. The console has told the arm itself already.
        """
        who = given["who"]
        step.out.append(Message("arm", "stop", {}))
        rollout = self._conductor.rollout
        if rollout is not None and rollout.moving:
            self._conductor.stopped_by_hand(now_ns, step)
        elif not self._staging.under_way:
            self.touches += 1
            return
        self._staging.forget()
        if STOP_CODE not in self._desk.state.holds:
            text = f"{who} stopped the robot; look at the cell, say why, then acknowledge"
            self._desk.log(Kind.HOLD_RAISED, {"code": STOP_CODE, "text": text}, **given)

    def _wait(self, args: Mapping[str, Any], given: dict[str, Any]) -> None:
        """Hold after this trial, or after this block: nothing is staged beyond it until somebody lets go."""
        trial = self._desk.current()
        if trial is None:
            raise StateError("no trial is left in this campaign")
        after = {"trial": f"{AFTER_TRIAL}{trial.id}", "block": f"{AFTER_BLOCK}{trial.block}"}.get(
            str(args.get("after"))
        )
        if after is None:
            raise InputError(f"hold after 'trial' or 'block', not {args.get('after')!r}")
        if after in self._desk.state.holds:
            raise StateError(f"a hold after this {args['after']} is asked for already")
        why = f": {args['why']}" if args.get("why") else ""
        text = f"{given['who']} asked to hold after this {args['after']}{why}"
        self._desk.log(Kind.HOLD_RAISED, {"code": after, "text": text}, **given)

    def _count(self, args: Mapping[str, Any], given: dict[str, Any], now_ns: int) -> None:
        """The operator saw an item arrive (by: 1), or takes one back (by: -1)."""
        trial, rollout = self._desk.current(), self._conductor.rollout
        if trial is None or trial.state not in (State.RUNNING, State.SCORING) or trial.episode is None:
            raise StateError("no episode is running; items are counted while one is")
        at_ns = now_ns if rollout is None or rollout.end_ns is None else rollout.end_ns
        moved = self._desk.counted.get(trial.episode, 0) + int(args.get("by", 1))
        if not 0 <= moved <= self._desk.opened["items_staged"]:
            raise StateError(f"{moved} items cannot be: {self._desk.opened['items_staged']} were staged")
        body = {"moved": moved, "t_ns": at_ns}
        self._desk.log(Kind.ITEM_COUNTED, body, trial=trial.id, episode=trial.episode, **given)

    def _touch(self, args: Mapping[str, Any], given: dict[str, Any], now_ns: int) -> None:
        """A person begins to touch the scene or the arm, or says that it is over and what it was."""
        trial, phase, kind = self._desk.current(), args.get("phase"), str(args.get("kind", Touch.OTHER))
        if phase not in ("begin", "end") or kind not in list(Touch):
            found = f"phase {phase!r}, kind {kind!r}"
            raise InputError(f"{found}: an intervention has phase begin or end, and kind {', '.join(Touch)}")
        if trial is None or trial.state not in (State.RUNNING, State.SCORING) or trial.episode is None:
            raise StateError("no episode is running; an intervention is a touch while one is")
        about = {"trial": trial.id, "episode": trial.episode, **given}
        if phase == "begin":
            body = {"number": trial.touches, "kind": kind, "by": "console", "t_ns": now_ns}
            self._desk.log(Kind.INTERVENTION_BEGAN, body, **about)
            return
        open_here = typed(trial, self._conductor.rollout)
        if not open_here:
            raise StateError("no intervention goes on that was begun at a console")
        at_ns = now_ns if trial.end_ns is None else trial.end_ns
        body = {"number": open_here[-1], "kind": kind, "t_ns": at_ns, "note": str(args.get("note", ""))}
        self._desk.log(Kind.INTERVENTION_ENDED, body, **about)

    def _judge_later(self, verb: str, body: Mapping[str, Any], args: dict[str, Any], given: dict[str, Any]) -> None:
        """Correct a scored trial, or guess which arm it was: of any trial, not only of the one at hand."""
        trial = self._desk.state.trials.get(str(args.pop("trial", "")))
        if trial is None:
            raise InputError(f"{verb} names no trial of this campaign")
        about = {"trial": trial.id, "episode": trial.episode, **given}
        if verb == "guess":
            guess, candidates = args.get("guess"), [arm.name for arm in self._desk.campaign.protocol.arm]
            if guess is not None and guess not in candidates:
                raise InputError(f"{guess!r} is no candidate; they are {', '.join(sorted(candidates))}")
            self._desk.log(Kind.ARM_GUESSED, {"guess": guess}, **about)
            return
        if verb == "review":
            found = checked(trial, args.get("operations", ()))
            self._desk.log(Kind.OPERATIONS_REVIEWED, {"operations": found, "note": str(args.get("note", ""))}, **about)
            return
        if Verb.CORRECT not in allowed(self._desk.state, trial, (), Role(body["role"])) or trial.outcome is None:
            raise StateError(
                f"trial {trial.id} is {trial.state}; only a scored one is corrected, by operator or assessor"
            )
        why = _text(args, "why")
        new = outcome_from({**{k: v for k, v in args.items() if k != "why"}, "end_reason": str(trial.ended)})
        change = {"old": trial.outcome.body(), "new": self._checked(new).body(), "why": why}
        self._desk.log(Kind.OUTCOME_CORRECTED, change, **about)

    def _acknowledge(self, args: Mapping[str, Any], given: Mapping[str, Any], now_ns: int, step: Step) -> None:
        code = str(args["code"]).removeprefix("unacknowledged:")
        if code == "cell_faulted" and self._desk.state.faulted is not None:
            self._desk.log(Kind.FAULT_ACKNOWLEDGED, {"reason": self._desk.state.faulted}, **given)
            self._presence.deaths.clear()
            self._staging.forget()
            if self._presence.mode in BAD_MODES:
                self._watch.acknowledged(now_ns, step)
            return
        if code not in self._desk.state.holds:
            raise StateError(f"no hold {code!r} stands; standing: {', '.join(self._desk.state.holds) or 'none'}")
        said = {name: args[name] for name in ("why", "contact") if name in args}
        if code == STOP_CODE and set(said) != {"why", "contact"}:
            raise InputError("a stop is acknowledged with why it was made and whether there was contact")
        self._desk.log(Kind.HOLD_CLEARED, {"code": code, "acknowledged_by": given["who"], **said}, **given)
        if code == STOPPED:
            self._staging.forget()
            self._watch.acknowledged(now_ns, step)

    def _trial_command(
        self, verb: Verb, trial: Trial, message: Message, given: dict[str, Any], now_ns: int, step: Step
    ) -> bool:
        body = message.body
        args = body.get("args", {})
        shown = body.get("version")
        if shown is not None and int(shown) < self.version(trial):
            raise StaleCommand(
                f"{verb} refused: the screen showed version {shown}, the trial is at {self.version(trial)}; look again"
            )
        live = self._scene.not_overridden(self._holds(now_ns, verb), args.get("override"))
        if verb not in allowed(self._desk.state, trial, live, Role(body["role"])):
            why = "; ".join(hold.text for hold in live) or f"the trial is {trial.state}"
            raise StateError(f"{verb} is not allowed for the {body['role']} now: {why}")
        match verb:
            case Verb.STAGE:
                self._desk.log(Kind.TRIAL_STAGING, {"setter": given["who"]}, trial=trial.id, **given)
                self._staging.ask(self._trial(trial), now_ns, step)
            case Verb.COMMIT:
                return self._photograph(trial, message, now_ns, step)
            case Verb.RELEASE:
                self._desk.log(Kind.TRIAL_RELEASED, {"reason": args.get("reason", "")}, trial=trial.id, **given)
            case Verb.SKIP:
                self._desk.log(Kind.TRIAL_SKIPPED, {"reason": args.get("reason", "")}, trial=trial.id, **given)
                self._desk.say(f"{trial.id}: not run ({args.get('reason', '')})")
            case Verb.START:
                assert self._conductor.rollout is not None
                self._conductor.rollout.operator_starts(now_ns)
                self.touches += 1
            case Verb.END:
                self._end(args, now_ns, step)
            case Verb.VOID:
                self._void(trial, args, given, step)
            case Verb.SCORE:
                self._score(trial, args, given, step)
            case _:
                raise StateError(f"{verb} is done by the run process itself")
        return False

    def _photograph(self, trial: Trial, message: Message, now_ns: int, step: Step) -> bool:
        """A commit begins with a photo of every camera; it is carried out when they are there."""
        self._check_home(trial)
        there = [name for name in self._scene.chosen(None) if self._presence.alive(f"camera:{name}")]
        self._scene.ask("commit", message, trial, there, now_ns, step)
        return True

    def _check_home(self, trial: Trial) -> None:
        if self._staging.done != trial.id:
            raise StateError("the arm is still on its way to where episodes begin; try again in a moment")

    def _commit(
        self, trial: Trial, request: Request, args: Mapping[str, Any], given: dict[str, Any], now_ns: int, step: Step
    ) -> None:
        self._check_home(trial)
        live = [hold for hold in self._holds(now_ns, Verb.COMMIT) if not overridable(hold)]
        if live:  # the scene's own are judged by its photo
            raise StateError(f"not committed: {'; '.join(hold.text for hold in live)}")
        scene = self._scene.commit_body(request, given["who"], args.get("override"))
        snapshot = {"arm_mode": self._presence.mode, "holds": []}
        self._staging.forget()  # what happens from here on changes the scene
        self._desk.log(Kind.SCENE_COMMITTED, {**scene, "snapshot": snapshot}, trial=trial.id, **given)
        there = [f"camera:{name}" for name in request.cameras if self._presence.alive(f"camera:{name}")]
        self._conductor.reveal(self._trial(trial), now_ns, there, step)

    def _end(self, args: Mapping[str, Any], now_ns: int, step: Step) -> None:
        rollout = self._conductor.rollout
        reason = EndReason(args.get("reason", "operator"))
        if reason not in (EndReason.OPERATOR, EndReason.FUTILITY):
            raise InputError(f"an operator ends an episode as 'operator' or 'futility', not {reason!r}")
        if reason == EndReason.FUTILITY and self._desk.opened["early_end"] == "forbidden":
            raise StateError("the protocol forbids ending an episode for lack of progress")
        if rollout is None or not rollout.moving:
            raise StateError("no episode is running")
        self._conductor.end(reason, now_ns, now_ns, step)

    def _void(self, trial: Trial, args: Mapping[str, Any], given: dict[str, Any], step: Step) -> None:
        reason, allowed_reasons = str(args.get("reason", "")), self._desk.opened["void_reasons"]
        if reason not in allowed_reasons:
            raise InputError(f"void reason {reason!r} is not in the protocol; allowed: {', '.join(allowed_reasons)}")
        if trial.state == State.ARMED:
            self._conductor.void_unstarted(reason, step, who=given["who"])
            return
        body = {"reason": reason, "evidence": args.get("evidence"), "confirmed_by": args.get("confirmed_by")}
        self._desk.log(
            Kind.EPISODE_VOIDED,
            {**body, "after_go": trial.go_ns is not None},
            trial=trial.id,
            episode=trial.episode,
            **given,
        )
        self._conductor.rollout = None

    def _score(self, trial: Trial, args: Mapping[str, Any], given: dict[str, Any], step: Step) -> None:
        outcome = self._checked(outcome_from({**args, "end_reason": str(trial.ended)}))
        self._desk.log(
            Kind.OUTCOME_RECORDED, {"outcome": outcome.body()}, trial=trial.id, episode=trial.episode, **given
        )
        self._conductor.rollout = None
        done, total = finished(self._desk.state)
        where = f"{trial.id}  {trial.condition}  {trial.episode}"
        self._desk.say(f"{done:>3}/{total}  {where}  sealed and scored  {self._desk.print_head()}")

    def _checked(self, outcome: Outcome) -> Outcome:
        """The outcome, if its stage and tags are the protocol's."""
        rules = self._desk.campaign.protocol.trial
        given = [("stage", stage, rules.stages) for stage in [outcome.stage_reached] if stage is not None]
        for what, name, known in [*given, *(("tag", tag, rules.failure_tags) for tag in outcome.tags)]:
            if name not in known:
                raise InputError(f"{what} {name!r} is not in the protocol; there: {', '.join(known) or 'none'}")
        return outcome

    def _trial(self, trial: Trial) -> Trial:
        return self._desk.state.trials[trial.id]


def _text(args: Mapping[str, Any], name: str) -> str:
    """A non-empty text of a command. Raises InputError."""
    text = str(args.get(name, "")).strip()
    if not text:
        raise InputError(f"{name} is empty; write a few words")
    return text
