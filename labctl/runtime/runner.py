"""The run node: takes all messages, has commands carried out, publishes what a console may show, keeps processes alive
between episodes.

May not: move anything without a person's commit and start, act on a stale command, or publish an arm, a latency or a
score.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.core.campaign_state import CampaignState
from labctl.core.events import EndReason, Kind
from labctl.core.interlock import Hold, Limits, Snapshot, holds
from labctl.core.liveness import BEAT_LIMIT_NS, Liveness
from labctl.core.published_state import PublishedState
from labctl.core.rollout import CLOSE_PATIENCE_NS, LEASE_AT_RISK_NS, Phase
from labctl.core.session import Role
from labctl.core.trial import RUN_LEFT, State, Trial, Verb, allowed, standing, tally
from labctl.errors import Held, LabctlError, StateError
from labctl.messages.motion import DeviceReport, Obs, Staged, Unstaged
from labctl.messages.pictures import CameraState, Compared, Photographed
from labctl.messages.processes import Beats, EndRun, Exited, Failing, Hello, Shutdown, Suspended
from labctl.messages.recording import Late
from labctl.messages.sensing import SensorState
from labctl.messages.typed import read
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.plain import Json
from labctl.runtime.blind_view import blind_view, setting_of
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.command_handler import Orders
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.hosting.cell_nodes import goes_on_with
from labctl.runtime.operator_state import CellReport, Publication, camera_states
from labctl.runtime.process_watch import ProcessWatch
from labctl.runtime.readiness import ASKED, Readiness
from labctl.runtime.recording_seal import being_sealed, note_late
from labctl.runtime.robot_watch import RobotWatch
from labctl.runtime.scene_watch import SceneWatch
from labctl.runtime.seal import ANSWERED, OwnSeal
from labctl.runtime.sensor_watch import SensorWatch
from labctl.runtime.staging import Staging
from labctl.store.journal import DuplicateCommand

SEALING_NS = 2 * CLOSE_PATIENCE_NS  # how long an episode that was ended with its run may take to be sealed
LATE_NS = 50 * MILLISECOND  # after it was due, a turn of the run's loop came late: it had stood still
_ROUTINE = frozenset({"obs", "beats"})


class RunNode:
    """See the module. `free_gb` reads the free disk space, None where it cannot. The run ends when no trial is left and
    the session is closed; without a person (not `attended`) a hold that only somebody who looks can clear ends it.
    `watch` gets every state that is published, and may not wait.
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
        free_gb: Callable[[], float | None],
        readiness: Readiness,
        seal: OwnSeal | None = None,
        attended: bool = True,
        watch: Callable[[PublishedState], None] = lambda state: None,
    ) -> None:
        self._writer = writer
        self._sequencer = sequencer
        self._liveness = liveness
        self._publication = Publication(run_id)
        self._free_gb = free_gb
        self._free_now = free_gb()
        self._attended = attended
        self._readiness, self._seal = readiness, seal or OwnSeal(writer, sequencer)
        self._tell = watch
        cell = writer.campaign.cell
        self._setting = setting_of(cell, writer.campaign.fixture, writer.campaign.protocol)
        self._cameras = [f"camera:{camera.name}" for camera in cell.camera]
        self._staging = Staging(writer, sequencer)
        self._watch = RobotWatch(writer, liveness, sequencer, self._staging)
        self._processes = ProcessWatch(writer, liveness, sequencer, self._staging)
        self._scene, self._sensors = SceneWatch(writer), SensorWatch(writer, liveness, sequencer)
        self._limits = Limits(BEAT_LIMIT_NS, cell.storage.min_free_gb, self._scene.most_px)
        self._orders = Orders(
            writer, sequencer, liveness, self._staging, self._watch, self._scene, readiness, self._holds, self._seal
        )
        self._next_disk_ns = 0
        self._due_ns = 0  # when this node is to turn next, if no mail comes before
        self._ended_by = ""  # who asked from outside that this run ends
        self._shutting_down = False
        self._leave_by_ns = 0
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Mail, then what the clock makes due, then the state for whoever looks."""
        step = Step()
        rollout = self._sequencer.rollout
        stood = self._liveness.turned(now_ns) > LEASE_AT_RISK_NS and now_ns > self._due_ns + LATE_NS
        if stood and rollout is not None:
            rollout.resumed(now_ns)
        for message in inbox:
            if not carry_out(MESSAGES, self, message, now_ns, step):
                self._sequencer.hear(message, now_ns, step)  # of the episode
        self._processes.look(now_ns, step)
        if now_ns >= self._next_disk_ns:
            self._next_disk_ns = now_ns + 5 * SECOND
            self._free_now = self._free_gb()
        self._watch.look(now_ns, step)
        request = self._scene.taken(now_ns, self._liveness.alive)
        if request is not None:
            self._answer(request.command, lambda: self._orders.settle(request, now_ns, step), step)
        rollout = self._sequencer.rollout
        if rollout is not None:
            against = partial(self._holds, now_ns, Verb.START)
            self._sequencer.advance(now_ns, step, against_start=against, attended=self._attended)
            if rollout.phase == Phase.SEALED:
                self._processes.start(
                    now_ns, step, [name for name in (*self._cameras, *rollout.sensors) if name in rollout.lost]
                )
        else:
            self._processes.start(now_ns, step, self._liveness.required)
            if self._liveness.alive("arm") and not self._shutting_down:
                self._staging.advance(self._writer.current(), now_ns, step)
        self._scene.advance(self._writer.current(), self._staging.done, self._liveness.alive, step)
        self._readiness.advance(now_ns, step)
        self._seal.advance(self._writer.current(), now_ns, step)
        self._readiness.look()
        if not self._attended:
            self._leave_unattended(now_ns, step)
        if self._ended_by and not self._shutting_down and not self._awaited():
            self._shut_down(now_ns, step)
        rollout = self._sequencer.rollout  # it may be voided by now
        at_rest = rollout is None or rollout.phase == Phase.SEALED
        if self._shutting_down:
            self.finished = self.finished or at_rest or now_ns >= self._leave_by_ns
        self.finished = self.finished or (self._orders.over and self._writer.state.session is None and at_rest)
        if now_ns >= self._publication.next_ns or any(message.kind not in _ROUTINE for message in inbox):
            self._publish(now_ns, step)
        step.due_ns = self._due_ns = self._due(now_ns)
        return step

    def _due(self, now_ns: int) -> int:
        due = self._publication.next_ns
        if self._scene.request is not None:
            due = min(due, self._scene.request.until_ns)
        rollout = self._sequencer.rollout
        if rollout is not None:
            soon = rollout.next_due(now_ns)
            due = min(due, soon) if soon is not None else due
            if rollout.moving:
                due = min(due, self._sequencer.next_lease_ns)
        elif self._staging.asked is not None:
            due = min(due, self._staging.next_lease_ns)
        return max(due, now_ns + MILLISECOND)

    def _beaten(self, sent: Beats, now_ns: int, step: Step) -> None:
        self._liveness.beaten(sent, now_ns)

    def _observed(self, sent: Obs, now_ns: int, step: Step) -> None:
        self._liveness.observed(sent, now_ns)

    def _camera_says(self, message: Message, now_ns: int, step: Step) -> None:
        self._liveness.sees(read(CameraState, message))
        self._sequencer.hear(message, now_ns, step)

    def _sensor_says(self, sent: SensorState, now_ns: int, step: Step) -> None:
        self._sensors.hear(sent, now_ns, step)

    def _staged(self, sent: Staged, now_ns: int, step: Step) -> None:
        self._staging.hear(sent.trial, now_ns, step)

    def _unstaged(self, sent: Unstaged, now_ns: int, step: Step) -> None:
        self._watch.way_home_lapsed(sent.trial, now_ns, step)

    def _compared(self, sent: Compared, now_ns: int, step: Step) -> None:
        self._scene.compared(sent)

    def _photographed(self, sent: Photographed, now_ns: int, step: Step) -> None:
        self._scene.photographed(sent)

    def _note_failing(self, sent: Failing, now_ns: int, step: Step) -> None:
        self._processes.failing[sent.name] = sent.reason

    def _reported(self, sent: DeviceReport, now_ns: int, step: Step) -> None:
        self._watch.hear(sent, now_ns, step)

    def _suspended(self, sent: Suspended, now_ns: int, step: Step) -> None:
        self._watch.suspended(sent.for_ns, now_ns, now_ns, step)

    def _asked(self, message: Message, now_ns: int, step: Step) -> None:
        self._readiness.hear(message)

    def _seal_answered(self, message: Message, now_ns: int, step: Step) -> None:
        self._seal.hear(message, now_ns, step, partial(self._holds, now_ns, Verb.REVEAL))

    def _command(self, message: Message, now_ns: int, step: Step) -> None:
        self._answer(message, lambda: self._orders.obey(message, now_ns, step), step)

    def _asked_to_leave(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._shut_down(now_ns, step)

    def _came_late(self, sent: Late, now_ns: int, step: Step) -> None:
        note_late(self._writer, sent)

    def _greet(self, message: Message, now_ns: int, step: Step) -> None:
        """A process has begun."""
        name = message.sender
        self._liveness.greeted(name, now_ns)
        self._liveness.asked.pop(name, None)
        self._sequencer.hear(Hello().to("run", sender=name), now_ns, step)
        self._scene.forget(name)
        if name == "arm":
            self._staging.give_up("arm_lost", step)

    def _exited(self, sent: Exited, now_ns: int, step: Step) -> None:
        self._processes.exited(sent, now_ns, step)

    # -- holds

    def _holds(self, now_ns: int, act: Verb) -> list[Hold]:
        found = holds(self._snapshot(now_ns), self._limits, act)
        sealing = being_sealed(self._sequencer.rollout)
        found += [hold for hold in (sealing, self._readiness.hold(now_ns), self._seal.hold) if hold is not None]
        if self._ended_by:
            again = f"it goes on with: {goes_on_with(self._writer.campaign)}"
            found.append(Hold("run_ends", f"{self._ended_by} ends this run after this trial", again))
        return found

    def _snapshot(self, now_ns: int) -> Snapshot:
        state, liveness = self._writer.state, self._liveness
        return Snapshot(
            robot_age_ns=liveness.obs_age(now_ns),
            robot_mode=liveness.mode,
            robot_reason=liveness.mode_reason,
            recorder_age_ns=liveness.age("recorder", now_ns),
            camera_age_ns={name.removeprefix("camera:"): liveness.age(name, now_ns) for name in self._cameras},
            camera_lost={name.removeprefix("camera:"): liveness.unseeing(name) for name in self._cameras},
            sensors=self._sensors.seen(now_ns),
            faulted=state.faulted,
            unacknowledged=standing(state, self._writer.current()),
            free_gb=self._free_now,
            session_open=state.session is not None,
            looks=self._scene.looks(self._writer.current()),
            photographing=self._scene.request is not None,
            starting=liveness.starting(now_ns),
            ended=liveness.ended,
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
        reply["version"] = self._orders.version(self._writer.current())
        step.out.append(Message(message.sender, "reply", reply))

    def _refuse_to_begin(self) -> bool:
        raise StateError("not carried out: this run is being ended")

    # -- publication

    def _publish(self, now_ns: int, step: Step) -> None:
        """The state for whoever looks: when it changed, and once a second besides."""
        writer, orders, rollout, trial = self._writer, self._orders, self._sequencer.rollout, self._writer.current()
        live = self._holds(now_ns, Verb.COMMIT)
        verbs = tuple(allowed(writer.state, trial, live, Role.OPERATOR)) if trial else ()
        cameras = camera_states(self._cameras, self._liveness, rollout)
        codes = tuple(hold.code for hold in live)
        pictures: tuple[tuple[str, int | str], ...] = tuple((camera["lost"], camera["missing"]) for camera in cameras)
        episode = (str(rollout.hand), rollout.withheld) if rollout is not None else ()
        snapshot = self._snapshot(now_ns)
        pictures += tuple((one.lost, str(one.beyond)) for one in snapshot.sensors.values())
        seen = (writer.state.last_seq, orders.touches, codes, self._staging.done, verbs, pictures, episode)
        if not self._publication.due(seen, now_ns):
            return
        scene, clip = self._scene.shown(trial), self._liveness.clip(now_ns)
        view = blind_view(self._setting, writer.state, writer.facts, rollout, live, scene, orders.second)
        cell = CellReport(snapshot, self._limits, cameras, self._staging.done, clip, writer.facts.recording)
        shown = self._publication.state(view, cell, orders.version(trial))
        step.out.append(Message("@state", "state", shown))
        self._tell(shown)

    # -- end

    def leave(self) -> bool:
        """Journal that this run ended in order, and say how to go on. A killed run leaves no such entry. False when it
        was asked to end. Raises Held for one without a person that ends at a hold.
        """
        held = "" if self._attended else self._unattended()
        reason = "held" if held else "asked" if self._shutting_down else "no trial is left"
        self._writer.log(Kind.RUN_STOPPED, {"reason": reason}, who=self._ended_by or None)
        campaign = self._writer.campaign
        if held:
            raise Held(f"held: {held}; then go on with: {goes_on_with(campaign)}")
        if self._shutting_down:
            self._writer.say(f"stopped: {tally(self._writer.state)}; go on with: {goes_on_with(campaign)}")
        else:
            self._writer.say(none_left(campaign.folder.name, self._writer.state))
        return not self._shutting_down

    def _leave_unattended(self, now_ns: int, step: Step) -> None:
        if self._unattended() and not self._shutting_down and not self._awaited():
            self._shut_down(now_ns, step)

    def _unattended(self) -> str:
        """Why a run that no person attends cannot go on, in words; "" while it can."""
        rollout = self._sequencer.rollout
        left = rollout.given_up if rollout is not None else ""
        return self._readiness.unattended() or self._seal.unattended() or left

    def _awaited(self) -> Trial | None:
        """The trial that a run which is to end finishes first: one that moves, or has moved and is not scored yet. None
        where the recording can only be sealed, and so scored, by the next run.
        """
        trial, rollout = self._writer.current(), self._sequencer.rollout
        if rollout is not None and rollout.given_up:
            return None
        return trial if trial is not None and trial.state in (State.RUNNING, State.SCORING) else None

    def _end_run(self, message: Message, now_ns: int, step: Step) -> None:
        sent = read(EndRun, message)
        self._ended_by = sent.who or "somebody"
        awaited = None if sent.now else self._awaited()
        note = "it ends at once" if awaited is None else f"{awaited.place} is {awaited.state}; it ends after its score"
        self._writer.say(f"{self._ended_by} ends this run: {note}")
        if sent.now:
            self._shut_down(now_ns, step, by=sent.who)
        self._orders.touches += 1
        about = {"id": sent.id, "ok": True, "note": note, "version": self._orders.version(self._writer.current())}
        step.out.append(Message(message.sender, "reply", about))

    def _shut_down(self, now_ns: int, step: Step, *, by: str = "") -> None:
        """Asked to stop: whatever moves stops, what was recorded is sealed, the next run continues. by: the person who
        ends at once what moves.
        """
        self._shutting_down, self._leave_by_ns = True, now_ns + SEALING_NS
        self._processes.over = True
        request = self._scene.drop()
        if request is not None:
            self._answer(request.command, self._refuse_to_begin, step)
        self._staging.give_up("shutdown", step)
        rollout = self._sequencer.rollout
        if rollout is not None and rollout.moving:
            self._sequencer.end(EndReason.SHUTDOWN, now_ns, now_ns, step, by=by)
        elif rollout is not None and rollout.phase == Phase.ARMING:
            self._sequencer.void_unstarted(RUN_LEFT, step, who=self._ended_by or None)


# What arrives; what has no row here is the episode's, which has a table of its own.
MESSAGES = by_kind(
    (
        on_raw("hello", RunNode._greet),
        on(Beats, RunNode._beaten),
        on(Obs, RunNode._observed),
        on_raw("camera", RunNode._camera_says),
        on(SensorState, RunNode._sensor_says),
        on(Staged, RunNode._staged),
        on(Unstaged, RunNode._unstaged),
        on(Compared, RunNode._compared),
        on(Photographed, RunNode._photographed),
        on(Failing, RunNode._note_failing),
        on(DeviceReport, RunNode._reported),
        on(Suspended, RunNode._suspended),
        on_raw(ASKED, RunNode._asked),
        on_raw(ANSWERED, RunNode._seal_answered),
        on(Exited, RunNode._exited),
        on(Late, RunNode._came_late),
        on_raw("command", RunNode._command),
        on_raw("end_run", RunNode._end_run),
        on(Shutdown, RunNode._asked_to_leave),
    )
)


def none_left(name: str, state: CampaignState) -> str:
    """What to say of a campaign without a trial to run."""
    return f"no trial of {name} is left to run: {tally(state)}; next: labctl close {name}"
