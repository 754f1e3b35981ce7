"""The run node: takes commands, applies the trial table, publishes what a console may show, keeps processes alive
between episodes.

May not: move anything without a person's commit and start, act on a stale command, or publish an arm, a latency or a
score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from labctl.arm_watch import BAD_MODES, STOPPED, ArmWatch
from labctl.board import board, finished
from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.conductor import Conductor
from labctl.desk import Desk
from labctl.errors import InputError, LabctlError, StaleCommand, StateError
from labctl.events import EndReason, Kind
from labctl.interlock import Hold, Limits, Snapshot, holds
from labctl.journal import DuplicateCommand
from labctl.model import Role, missing_checks, outcome_from, session_from
from labctl.presence import BEAT_LIMIT_NS, Presence
from labctl.staging import Staging
from labctl.trial import State, Trial, Verb, allowed

PUBLISH_NS = SECOND
_ROUTINE = frozenset({"obs", "beats"})
MOST_DEATHS = 3  # in a row, of one process between episodes: then the cell is faulted


class RunNode:
    """See the module. `free_gb` reads the free disk space; `until_done` ends the run when no trial is left and the
    session is closed.
    """

    name = "run"
    topics = ("@obs",)

    def __init__(
        self,
        desk: Desk,
        conductor: Conductor,
        presence: Presence,
        *,
        run_id: int,
        free_gb: Callable[[], float],
        until_done: bool,
    ) -> None:
        self._desk = desk
        self._conductor = conductor
        self._presence = presence
        self._run_id = run_id
        self._free_gb = free_gb
        self._free_now = free_gb()
        self._until_done = until_done
        cell = desk.campaign.cell
        self._cameras = [f"camera:{camera.name}" for camera in cell.camera]
        self._limits = Limits(BEAT_LIMIT_NS, BEAT_LIMIT_NS, BEAT_LIMIT_NS, cell.storage.min_free_gb)
        self._staging = Staging(desk, conductor)
        self._watch = ArmWatch(desk, presence)
        self._failing: dict[str, str] = {}
        self._moment = 0
        self._touches = 0
        self._published: tuple[object, ...] = ()
        self._next_publish_ns = 0
        self._next_disk_ns = 0
        self._shutting_down = False
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Mail, then what the clock makes due, then the state for whoever looks."""
        step = Step()
        for message in inbox:
            self._read(message, now_ns, step)
        self._check_presence(now_ns, step)
        rollout = self._conductor.rollout
        if rollout is not None:
            self._conductor.advance(now_ns, step, clear_to_start=lambda: not self._holds(now_ns, Verb.START))
        else:
            self._respawn(now_ns, step)
            self._watch.look(now_ns)
            if self._presence.alive("arm") and not self._shutting_down:
                self._staging.advance(self._desk.current(), now_ns, step)
        if self._shutting_down and (self._conductor.rollout is None or self._conductor.rollout.sealed):
            self.finished = True
        if now_ns >= self._next_publish_ns or any(message.kind not in _ROUTINE for message in inbox):
            self._publish(now_ns, step)
        step.due_ns = self._due(now_ns)
        return step

    def _due(self, now_ns: int) -> int:
        due = self._next_publish_ns
        rollout = self._conductor.rollout
        if rollout is not None:
            soon = rollout.next_due(now_ns)
            due = min(due, soon) if soon is not None else due
            if rollout.moving:
                due = min(due, self._conductor.next_lease_ns)
        elif self._staging.under_way:
            due = min(due, self._staging.next_lease_ns)
        return max(due, now_ns + MILLISECOND)

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        kind = message.kind
        if kind in ("obs", "beats", "hello"):
            self._presence.hear(message, now_ns)
            if kind == "hello":
                self._greet(message.sender, now_ns, step)
        elif kind == "staged":
            self._staging.hear(message.body["trial"])
        elif kind == "failing":
            self._failing[message.body["name"]] = message.body["reason"]
        elif kind == "event" and self._conductor.rollout is None:
            self._watch.hear(message.body)
        elif kind == "exited":
            self._exited(message.body, now_ns, step)
        elif kind == "late":
            self._note_late(message.body)
        elif kind == "command":
            step.out.append(self._command(message, now_ns, step))
        elif kind == "shutdown":
            self._shut_down(now_ns, step)
        else:
            self._conductor.hear(message, now_ns, step)

    def _note_late(self, body: Mapping[str, Any]) -> None:
        """A chunk that came after its recording was sealed is not stored; it is a gap, and said."""
        trial = next(t.id for t in self._desk.state.trials.values() if body["episode"] in t.episodes)
        gap = {
            "stream": body["stream"],
            "from_ns": None,
            "to_ns": None,
            "lost": body["n"],
            "why": "came after the seal",
        }
        self._desk.log(Kind.GAP, gap, trial=trial, episode=body["episode"])

    def _greet(self, name: str, now_ns: int, step: Step) -> None:
        self._presence.asked.pop(name, None)
        self._conductor.hear(Message("run", "hello", sender=name), now_ns, step)
        if name == "arm":
            self._staging.forget()

    # -- processes

    def _check_presence(self, now_ns: int, step: Step) -> None:
        for name in self._presence.silent(now_ns):
            step.out.append(Message("@host", "kill", {"name": name}))
            self._lost(name, "no heartbeat", now_ns, step)
        if now_ns >= self._next_disk_ns:
            self._next_disk_ns = now_ns + 5 * SECOND
            self._free_now = self._free_gb()

    def _exited(self, body: Mapping[str, Any], now_ns: int, step: Step) -> None:
        if not body.get("asked"):
            self._lost(body["name"], body["reason"], now_ns, step)

    def _lost(self, name: str, why: str, now_ns: int, step: Step) -> None:
        """A process is gone: say so, end what depended on it, and ask for a person where a robot was involved."""
        why = self._failing.pop(name, why)
        was_there = self._presence.alive(name) or name in self._presence.asked
        self._presence.gone(name)
        rollout = self._conductor.rollout
        in_use = rollout is not None and (name in rollout.producers or name == "recorder")
        if not was_there and not in_use:
            return
        private = why if name == "controller" else None  # its last words may name the arm
        when = "in an episode" if in_use else "between episodes"
        self._desk.say(f"{name} process lost ({when}): {'why is kept with the seal' if private else why}")
        self._presence.deaths[name] = 0 if in_use else self._presence.deaths.get(name, 0) + 1
        if name == "arm" and "arm_lost" not in self._desk.state.holds:
            text = f"the arm's process ended ({why}); look at the robot, then acknowledge"
            self._desk.log(Kind.HOLD_RAISED, {"code": "arm_lost", "text": text})
        self._conductor.lose(name, now_ns, step, private=private)
        if name == "recorder" and rollout is not None:
            self._ask_for(name, now_ns, step)
        if self._presence.deaths[name] >= MOST_DEATHS and self._desk.state.faulted is None:
            self._desk.log(Kind.CELL_FAULTED, {"reason": f"{name} ended {MOST_DEATHS} times in a row; see its log"})

    def _respawn(self, now_ns: int, step: Step) -> None:
        if self._desk.state.faulted is None and not self._shutting_down:
            for name in self._presence.missing():
                self._ask_for(name, now_ns, step)

    def _ask_for(self, name: str, now_ns: int, step: Step) -> None:
        self._presence.asked[name] = now_ns
        step.out.append(Message("@host", "spawn", {"name": name}))

    # -- holds

    def _holds(self, now_ns: int, act: Verb) -> list[Hold]:
        state, presence = self._desk.state, self._presence
        snapshot = Snapshot(
            arm_age_ns=presence.obs_age(now_ns),
            arm_mode=presence.mode,
            arm_reason=presence.mode_reason,
            recorder_age_ns=presence.age("recorder", now_ns),
            camera_age_ns={name.removeprefix("camera:"): presence.age(name, now_ns) for name in self._cameras},
            faulted=state.faulted,
            unacknowledged=dict(state.holds),
            free_gb=self._free_now,
            session_open=state.session is not None,
        )
        return holds(snapshot, self._limits, act)

    # -- commands

    def _command(self, message: Message, now_ns: int, step: Step) -> Message:
        """Carry out one command, or say in one line why not."""
        body = message.body
        reply: dict[str, Any] = {"id": body.get("id"), "ok": True}
        try:
            self._obey(body, now_ns, step)
        except DuplicateCommand:
            reply["note"] = "already carried out"
        except LabctlError as error:
            reply |= {"ok": False, "error": str(error), "kind": type(error).__name__}
            self._touches += 1
        reply["version"] = self._version(self._desk.current())
        return Message(message.sender, "reply", reply)

    def _obey(self, body: Mapping[str, Any], now_ns: int, step: Step) -> None:
        verb, who, args = str(body["verb"]), str(body["who"]), dict(body.get("args", {}))
        given: dict[str, Any] = {"who": who, "command_id": body.get("id")}
        if verb == "session":
            session = f"s-{self._desk.state.last_seq + 1}"
            missing = missing_checks(self._desk.campaign.protocol, session_from({"session": session, **args}))
            if missing:
                raise StateError(f"the protocol asks for opening checks not yet answered: {', '.join(missing)}")
            self._desk.log(Kind.SESSION_OPENED, {"session": session, **args}, **given)
        elif verb == "session_close":
            self._close_session(args, given)
        elif verb == "acknowledge":
            self._acknowledge(str(args["code"]), given, now_ns, step)
        else:
            trial = self._desk.current()
            if trial is None:
                raise StateError("no trial is left in this campaign")
            self._trial_command(Verb(verb), trial, body, given, now_ns, step)

    def _close_session(self, args: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        session = self._desk.state.session
        if session is None:
            raise StateError("no session is open")
        self._desk.log(Kind.SESSION_CLOSED, {"session": session.id, "handover": args.get("handover", "")}, **given)
        self.finished = self._until_done and self._desk.current() is None

    def _acknowledge(self, code: str, given: Mapping[str, Any], now_ns: int, step: Step) -> None:
        code = code.removeprefix("unacknowledged:")
        if code == "cell_faulted" and self._desk.state.faulted is not None:
            self._desk.log(Kind.FAULT_ACKNOWLEDGED, {"reason": self._desk.state.faulted}, **given)
            self._presence.deaths.clear()
            self._staging.forget()
            if self._presence.mode in BAD_MODES:
                self._watch.acknowledged(now_ns, step)
            return
        if code not in self._desk.state.holds:
            raise StateError(f"no hold {code!r} stands; standing: {', '.join(self._desk.state.holds) or 'none'}")
        self._desk.log(Kind.HOLD_CLEARED, {"code": code, "acknowledged_by": given["who"]}, **given)
        if code == STOPPED:
            self._staging.forget()
            self._watch.acknowledged(now_ns, step)

    def _trial_command(
        self, verb: Verb, trial: Trial, body: Mapping[str, Any], given: dict[str, Any], now_ns: int, step: Step
    ) -> None:
        shown = body.get("version")
        if shown is not None and int(shown) < self._version(trial):
            raise StaleCommand(
                f"{verb} refused: the screen showed version {shown}, the trial is at {self._version(trial)}; look again"
            )
        live = self._holds(now_ns, verb)
        if verb not in allowed(self._desk.state, trial, live, Role(body["role"])):
            why = "; ".join(hold.text for hold in live) or f"the trial is {trial.state}"
            raise StateError(f"{verb} is not allowed for the {body['role']} now: {why}")
        args = body.get("args", {})
        match verb:
            case Verb.STAGE:
                self._desk.log(Kind.TRIAL_STAGING, {"setter": given["who"]}, trial=trial.id, **given)
                self._staging.ask(self._trial(trial), now_ns, step)
            case Verb.COMMIT:
                self._commit(trial, args, given, now_ns, step)
            case Verb.RELEASE:
                self._desk.log(Kind.TRIAL_RELEASED, {"reason": args.get("reason", "")}, trial=trial.id, **given)
            case Verb.SKIP:
                self._desk.log(Kind.TRIAL_SKIPPED, {"reason": args.get("reason", "")}, trial=trial.id, **given)
                self._desk.say(f"{trial.id}: not run ({args.get('reason', '')})")
            case Verb.START:
                assert self._conductor.rollout is not None
                self._conductor.rollout.operator_ready = True
                self._conductor.rollout.start_due_ns = max(self._conductor.rollout.start_due_ns, now_ns)
                self._touches += 1
            case Verb.END:
                self._end(args, now_ns, step)
            case Verb.VOID:
                self._void(trial, args, given, step)
            case Verb.SCORE:
                self._score(trial, args, given, step)
            case _:
                raise StateError(f"{verb} is done by the run process itself")

    def _commit(self, trial: Trial, args: Mapping[str, Any], given: dict[str, Any], now_ns: int, step: Step) -> None:
        if self._staging.done != trial.id:
            raise StateError("the arm is still on its way to where episodes begin; try again in a moment")
        snapshot = {"arm_mode": self._presence.mode, "holds": []}
        self._staging.forget()  # what happens from here on changes the scene
        photo = args.get("photo")
        self._desk.log(Kind.SCENE_COMMITTED, {"photo": photo, "snapshot": snapshot}, trial=trial.id, **given)
        self._conductor.reveal(
            self._trial(trial), now_ns, [name for name in self._cameras if self._presence.alive(name)], step
        )

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
        outcome = outcome_from({**args, "end_reason": str(trial.ended)})
        self._desk.log(
            Kind.OUTCOME_RECORDED, {"outcome": outcome.body()}, trial=trial.id, episode=trial.episode, **given
        )
        self._conductor.rollout = None
        done, total = finished(self._desk)
        where = f"{trial.id}  {trial.condition}  {trial.episode}"
        self._desk.say(f"{done:>3}/{total}  {where}  sealed and scored  {self._desk.print_head()}")

    def _trial(self, trial: Trial) -> Trial:
        return self._desk.state.trials[trial.id]

    # -- publication

    def _version(self, trial: Trial | None) -> int:
        return self._desk.state.last_seq if trial is None else trial.version

    def _publish(self, now_ns: int, step: Step) -> None:
        """The state for whoever looks: when it changed, and twice a second besides."""
        desk, rollout, trial = self._desk, self._conductor.rollout, self._desk.current()
        live = self._holds(now_ns, Verb.COMMIT)
        verbs = tuple(str(verb) for verb in allowed(desk.state, trial, live, Role.OPERATOR)) if trial else ()
        key = (desk.state.last_seq, self._touches, tuple(hold.code for hold in live), self._staging.done, verbs)
        if key == self._published and now_ns < self._next_publish_ns:
            return
        self._moment += key != self._published
        self._published, self._next_publish_ns = key, now_ns + PUBLISH_NS
        shown = {"run": self._run_id, "version": self._version(trial), "moment": self._moment, "allowed": list(verbs)}
        ready = bool(rollout and rollout.operator_ready)
        shown["clipped"] = self._presence.clip(now_ns)
        step.out.append(Message("@state", "state", {**shown, **board(desk, trial, live, operator_ready=ready)}))

    # -- end

    def leave(self) -> None:
        """Journal that this run ended in order, and say how to go on. A killed run leaves no such entry."""
        done, total = finished(self._desk)
        self._desk.log(Kind.RUN_STOPPED, {"reason": "asked" if self._shutting_down else "no trial is left"})
        if self._shutting_down:
            name = self._desk.campaign.folder.name
            self._desk.say(f"stopped with {done} of {total} trials finished; go on with: labctl run {name} --headless")

    def _shut_down(self, now_ns: int, step: Step) -> None:
        """Asked to stop: whatever moves stops, what was recorded is sealed, the next run continues."""
        self._shutting_down = True
        rollout = self._conductor.rollout
        if rollout is not None and rollout.moving:
            self._conductor.end(EndReason.SHUTDOWN, now_ns, now_ns, step)
        elif rollout is not None and rollout.started_ns is None:
            self._conductor.void_unstarted("process_lost", step)
