"""The run node: hears everyone, has commands carried out, publishes what a console may show, keeps processes alive
between episodes.

May not: move anything without a person's commit and start, act on a stale command, or publish an arm, a latency or a
score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import EndReason, Kind
from labctl.core.interlock import Hold, Limits, Snapshot, holds
from labctl.core.liveness import BEAT_LIMIT_NS, Liveness
from labctl.core.published_state import PublishedState
from labctl.core.rollout import CLOSE_PATIENCE_NS, LEASE_AT_RISK_NS, Phase
from labctl.core.session import Role
from labctl.core.trial import RUN_LEFT, State, Trial, Verb, allowed, standing, tally
from labctl.errors import Held, LabctlError, StateError
from labctl.messages.motion import DeviceReport, Staged, Unstaged
from labctl.messages.processes import EndRun, Exited, Failing, Hello, Kill, Spawn, Suspended
from labctl.messages.recording import Late
from labctl.messages.typed import Misfit, read
from labctl.plain import Json
from labctl.runtime.blind_view import blind_view
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.command_handler import Orders
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.operator_state import camera_states, campaign_part, devices
from labctl.runtime.readiness import ASKED, Readiness
from labctl.runtime.robot_watch import ArmWatch
from labctl.runtime.scene_watch import SceneWatch
from labctl.runtime.staging import Staging
from labctl.store.journal import DuplicateCommand

PUBLISH_NS = SECOND
SEALING_NS = 2 * CLOSE_PATIENCE_NS  # how long an episode that was ended with its run may take to be sealed
_ROUTINE = frozenset({"obs", "beats"})
MOST_DEATHS = 3  # in a row, of one process between episodes: then the cell is faulted


class RunNode:
    """See the module. `free_gb` reads the free disk space; `until_done` ends the run when no trial is left and the
    session is closed; without a person (not `attended`) a hold that only somebody who looks can clear ends it. `watch`
    is told every state that is published, and may not wait.
    """

    name = "run"
    topics = ("@obs",)

    def __init__(
        self,
        writer: CampaignWriter,
        sequencer: EpisodeSequencer,
        liveness: Liveness,
        *,
        run_id: int,
        free_gb: Callable[[], float],
        until_done: bool,
        readiness: Readiness,
        attended: bool = True,
        watch: Callable[[PublishedState], None] = lambda state: None,
    ) -> None:
        self._writer = writer
        self._sequencer = sequencer
        self._liveness = liveness
        self._run_id = run_id
        self._free_gb = free_gb
        self._free_now = free_gb()
        self._until_done, self._attended = until_done, attended
        self._readiness = readiness
        self._tell = watch
        cell = writer.campaign.cell
        self._cameras = [f"camera:{camera.name}" for camera in cell.camera]
        self._limits = Limits(BEAT_LIMIT_NS, BEAT_LIMIT_NS, BEAT_LIMIT_NS, cell.storage.min_free_gb)
        self._staging = Staging(writer, sequencer)
        self._watch = ArmWatch(writer, liveness, sequencer, self._staging)
        self._scene = SceneWatch(writer)
        self._limits = replace(self._limits, **self._scene.limits())
        self._orders = Orders(
            writer, sequencer, liveness, self._staging, self._watch, self._scene, readiness, self._holds
        )
        self._failing: dict[str, str] = {}
        self._moment = 0
        self._published: tuple[object, ...] = ()
        self._next_publish_ns = 0
        self._next_disk_ns = 0
        self._ended_by = ""  # who asked from outside that this run ends
        self._shutting_down = False
        self._leave_by_ns = 0
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Mail, then what the clock makes due, then the state for whoever looks."""
        step = Step()
        rollout = self._sequencer.rollout
        if self._liveness.turned(now_ns) > LEASE_AT_RISK_NS and rollout is not None:
            rollout.resumed(now_ns)
        for message in inbox:
            try:
                self._read(message, now_ns, step)
            except Misfit as error:
                step.refused.append(f"{error}; refused, from {message.sender or 'nobody'}")
        self._check_presence(now_ns, step)
        self._watch.look(now_ns, step)
        request = self._scene.taken(now_ns, self._liveness.alive)
        if request is not None:
            self._answer(request.command, lambda: self._orders.settle(request, now_ns, step), step)
        rollout = self._sequencer.rollout
        if rollout is not None:
            against = partial(self._holds, now_ns, Verb.START)
            self._sequencer.advance(now_ns, step, against_start=against, attended=self._attended)
            if rollout.phase == Phase.SEALED:
                self._respawn(now_ns, step, [name for name in self._cameras if name in rollout.lost])
        else:
            self._respawn(now_ns, step, self._liveness.required)
            if self._liveness.alive("arm") and not self._shutting_down:
                self._staging.advance(self._writer.current(), now_ns, step)
        self._scene.advance(self._writer.current(), self._staging.done, self._liveness.alive, step)
        self._readiness.advance(step)
        self._readiness.look()
        if not self._attended:
            self._leave_unattended(now_ns, step)
        if self._ended_by and not self._shutting_down and not self._awaited():
            self._shut_down(now_ns, step)
        rollout = self._sequencer.rollout  # it may be voided by now
        if self._shutting_down:
            at_rest = rollout is None or rollout.phase == Phase.SEALED
            self.finished = self.finished or at_rest or now_ns >= self._leave_by_ns
        if now_ns >= self._next_publish_ns or any(message.kind not in _ROUTINE for message in inbox):
            self._publish(now_ns, step)
        step.due_ns = self._due(now_ns)
        return step

    def _due(self, now_ns: int) -> int:
        due = self._next_publish_ns
        if self._scene.request is not None:
            due = min(due, self._scene.request.until_ns)
        rollout = self._sequencer.rollout
        if rollout is not None:
            soon = rollout.next_due(now_ns)
            due = min(due, soon) if soon is not None else due
            if rollout.moving:
                due = min(due, self._sequencer.next_lease_ns)
        elif self._staging.under_way:
            due = min(due, self._staging.next_lease_ns)
        return max(due, now_ns + MILLISECOND)

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        kind = message.kind
        if kind in ("obs", "beats", "hello"):
            self._liveness.hear(message, now_ns)
            if kind == "hello":
                self._greet(message.sender, now_ns, step)
        elif kind == "camera":
            self._liveness.hear(message, now_ns)
            self._sequencer.hear(message, now_ns, step)
        elif kind == "staged":
            self._staging.hear(read(Staged, message).trial, now_ns, step)
        elif kind == "unstaged":
            self._watch.way_home_lapsed(read(Unstaged, message).trial, now_ns, step)
        elif kind in ("compared", "photographed"):
            self._scene.hear(message)
        elif kind == "failing":
            failing = read(Failing, message)
            self._failing[failing.name] = failing.reason
        elif kind == "event":
            self._watch.hear(read(DeviceReport, message), now_ns, step)
        elif kind == "suspended":
            self._watch.suspended(read(Suspended, message).for_ns, now_ns, now_ns, step)
        elif kind == ASKED:
            self._readiness.hear(message)
        elif kind == "exited":
            self._exited(read(Exited, message), now_ns, step)
        elif kind == "late":
            self._note_late(read(Late, message))
        elif kind == "command":
            self._answer(message, lambda: self._orders.obey(message, now_ns, step), step)
        elif kind == "end_run":
            self._end_run(read(EndRun, message), message.sender, now_ns, step)
        elif kind == "shutdown":
            self._shut_down(now_ns, step)
        else:
            self._sequencer.hear(message, now_ns, step)

    def _note_late(self, sent: Late) -> None:
        """A chunk that came after its recording was sealed is not stored; it is a gap, and said."""
        trial = next(t.id for t in self._writer.state.trials.values() if sent.episode in t.episodes)
        gap = {
            "stream": sent.stream,
            "from_ns": None,
            "to_ns": None,
            "lost": sent.n,
            "why": "came after the seal",
        }
        self._writer.log(Kind.GAP, gap, trial=trial, episode=sent.episode)

    def _greet(self, name: str, now_ns: int, step: Step) -> None:
        self._liveness.asked.pop(name, None)
        self._sequencer.hear(Hello().to("run", sender=name), now_ns, step)
        self._scene.forget(name)
        if name == "arm":
            self._staging.give_up("arm_lost", step)

    # -- processes

    def _check_presence(self, now_ns: int, step: Step) -> None:
        for name in self._liveness.silent(now_ns):
            step.out.append(Kill(name).to("@host"))
            self._lost(name, "no heartbeat", now_ns, step, dying=True)
        if now_ns >= self._next_disk_ns:
            self._next_disk_ns = now_ns + 5 * SECOND
            self._free_now = self._free_gb()

    def _exited(self, sent: Exited, now_ns: int, step: Step) -> None:
        self._sequencer.ended(sent.name)
        if not sent.asked:
            self._lost(sent.name, sent.reason, now_ns, step)

    def _lost(self, name: str, why: str, now_ns: int, step: Step, *, dying: bool = False) -> None:
        """A process is gone: say so, end what depended on it, and ask for a person where a robot was involved."""
        why = self._failing.pop(name, why)
        was_there = self._liveness.alive(name) or name in self._liveness.asked
        self._liveness.gone(name)
        rollout = self._sequencer.rollout
        in_use = rollout is not None and (name in rollout.producers or name == "recorder")
        if not was_there and not in_use:
            return
        private = why if name == "controller" else None  # its last words may name the arm
        when = "in an episode" if in_use else "between episodes"
        self._writer.say(f"{name} process lost ({when}): {'why is kept with the seal' if private else why}")
        self._liveness.deaths[name] = 0 if in_use else self._liveness.deaths.get(name, 0) + 1
        if name == "arm" and "arm_lost" not in self._writer.state.holds:
            text = f"the arm's process ended ({why}); look at the robot, then acknowledge"
            self._writer.log(Kind.HOLD_RAISED, {"code": "arm_lost", "text": text})
        if name == "arm":
            self._staging.give_up("arm_lost", step)
        self._sequencer.lose(name, now_ns, step, why=why, private=private, dying=dying)
        if name == "recorder" and rollout is not None:
            self._ask_for(name, now_ns, step)
        if self._liveness.deaths[name] >= MOST_DEATHS and self._writer.state.faulted is None:
            where = "logs/processes.log of the campaign says why"
            self._writer.log(Kind.CELL_FAULTED, {"reason": f"{name} ended {MOST_DEATHS} times in a row; {where}"})

    def _respawn(self, now_ns: int, step: Step, names: Sequence[str]) -> None:
        if self._writer.state.faulted is None and not self._shutting_down:
            for name in self._liveness.missing():
                if name in names:
                    self._ask_for(name, now_ns, step)

    def _ask_for(self, name: str, now_ns: int, step: Step) -> None:
        self._liveness.ask(name, now_ns)
        step.out.append(Spawn(name).to("@host"))

    # -- holds

    def _holds(self, now_ns: int, act: Verb) -> list[Hold]:
        found = holds(self._snapshot(now_ns), self._limits, act)
        if (asked := self._readiness.hold) is not None:
            found.append(asked)
        if self._ended_by:
            again = f"it goes on with: labctl run {self._writer.campaign.folder.name}"
            found.append(Hold("run_ends", f"{self._ended_by} ends this run after this trial", again))
        return found

    def _snapshot(self, now_ns: int) -> Snapshot:
        state, liveness = self._writer.state, self._liveness
        return Snapshot(
            arm_age_ns=liveness.obs_age(now_ns),
            arm_mode=liveness.mode,
            arm_reason=liveness.mode_reason,
            recorder_age_ns=liveness.age("recorder", now_ns),
            camera_age_ns={name.removeprefix("camera:"): liveness.age(name, now_ns) for name in self._cameras},
            camera_lost={name.removeprefix("camera:"): liveness.unseeing(name) for name in self._cameras},
            faulted=state.faulted,
            unacknowledged=standing(state, self._writer.current()),
            free_gb=self._free_now,
            session_open=state.session is not None,
            looks=self._scene.looks(self._writer.current()),
            photographing=self._scene.request is not None,
            starting=liveness.starting(now_ns),
        )

    # -- commands

    def _answer(self, message: Message, act: Callable[[], bool], step: Step) -> None:
        """Carry out one command and say so, or in one line why not; nothing yet when it waits for photos."""
        reply: dict[str, Json] = {"id": message.body.get("id"), "ok": True}
        try:
            if act():
                return
        except DuplicateCommand:
            reply["note"] = "already carried out"
        except LabctlError as error:
            reply |= {"ok": False, "error": str(error), "kind": type(error).__name__}
            self._orders.touches += 1
        self.finished = self.finished or (self._orders.over and self._until_done)
        reply["version"] = self._orders.version(self._writer.current())
        step.out.append(Message(message.sender, "reply", reply))

    def _refuse_to_begin(self) -> bool:
        raise StateError("not carried out: this run is being ended")

    # -- publication

    def _publish(self, now_ns: int, step: Step) -> None:
        """The state for whoever looks: when it changed, and twice a second besides."""
        writer, rollout, trial = self._writer, self._sequencer.rollout, self._writer.current()
        live = self._holds(now_ns, Verb.COMMIT)
        verbs = tuple(str(verb) for verb in allowed(writer.state, trial, live, Role.OPERATOR)) if trial else ()
        cameras = camera_states(self._cameras, self._liveness, rollout)
        codes = tuple(hold.code for hold in live)
        seen = tuple((camera["lost"], camera["missing"]) for camera in cameras)
        hand = str(rollout.hand) if rollout is not None else ""
        waits = rollout.withheld if rollout is not None else ""
        key = (writer.state.last_seq, self._orders.touches, codes, self._staging.done, verbs, seen, hand, waits)
        if key == self._published and now_ns < self._next_publish_ns:
            return
        self._moment += key != self._published
        self._published, self._next_publish_ns = key, now_ns + PUBLISH_NS
        view = blind_view(writer, rollout, live, self._scene.shown(trial), self._orders.second)
        shown: PublishedState = {
            "run": self._run_id,
            "version": self._orders.version(trial),
            "moment": self._moment,
            "allowed": list(verbs),
            "staged": bool(trial and self._staging.done == trial.id),
            "arm": {"mode": self._liveness.mode, "reason": self._liveness.mode_reason},
            "clipped": self._liveness.clip(now_ns),
            "devices": devices(self._snapshot(now_ns), self._limits, cameras, writer.recording),
            "cameras": cameras,
            **campaign_part(view),
        }
        step.out.append(Message("@state", "state", shown))
        self._tell(shown)

    # -- end

    def leave(self) -> bool:
        """Journal that this run ended in order, and say how to go on. A killed run leaves no such entry. False when it
        was asked to end. Raises Held for one without a person that ends at a hold.
        """
        held = "" if self._attended else self._readiness.unattended()
        reason = "held" if held else "asked" if self._shutting_down else "no trial is left"
        self._writer.log(Kind.RUN_STOPPED, {"reason": reason}, who=self._ended_by or None)
        name = self._writer.campaign.folder.name
        if held:
            raise Held(f"held: {held}; then go on with: labctl run {name}")
        if self._shutting_down:
            self._writer.say(f"stopped: {tally(self._writer.state)}; go on with: labctl run {name}")
        return not self._shutting_down

    def _leave_unattended(self, now_ns: int, step: Step) -> None:
        why = self._readiness.unattended()
        if why and not self._shutting_down and not self._awaited():
            self._shut_down(now_ns, step)

    def _awaited(self) -> Trial | None:
        """The trial that a run which is to end finishes first: one that moves, or has moved and is not scored yet."""
        trial = self._writer.current()
        return trial if trial is not None and trial.state in (State.RUNNING, State.SCORING) else None

    def _end_run(self, sent: EndRun, sender: str, now_ns: int, step: Step) -> None:
        self._ended_by = sent.who or "somebody"
        awaited = None if sent.now else self._awaited()
        note = "it ends at once" if awaited is None else f"{awaited.id} is {awaited.state}; it ends after its score"
        self._writer.say(f"{self._ended_by} ends this run: {note}")
        if sent.now:
            self._shut_down(now_ns, step)
        self._orders.touches += 1
        about = {"id": sent.id, "ok": True, "note": note, "version": self._orders.version(self._writer.current())}
        step.out.append(Message(sender, "reply", about))

    def _shut_down(self, now_ns: int, step: Step) -> None:
        """Asked to stop: whatever moves stops, what was recorded is sealed, the next run continues."""
        self._shutting_down, self._leave_by_ns = True, now_ns + SEALING_NS
        request = self._scene.drop()
        if request is not None:
            self._answer(request.command, self._refuse_to_begin, step)
        self._staging.give_up("shutdown", step)
        rollout = self._sequencer.rollout
        if rollout is not None and rollout.moving:
            self._sequencer.end(EndReason.SHUTDOWN, now_ns, now_ns, step)
        elif rollout is not None and rollout.phase == Phase.ARMING:
            self._sequencer.void_unstarted(RUN_LEFT, step, who=self._ended_by or None)
