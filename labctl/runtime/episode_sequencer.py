"""Conducts one episode: reveal, arming, start, go, end, sealing. Journals each step before acting on it.

May not: start anything without a committed scene, renew a lease after the end, or let an arm-dependent delay show:
start opens exactly `arming_s` after commit for every arm, and a controller that is not ready by then voids the episode.
What every arm needs alike (robot, recorder, cameras, disk) is waited for instead, where a person can start it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labctl.bus import Body, Message, Step, Work
from labctl.config.protocol_schema import Arm
from labctl.core.events import EndReason, InterventionKind, Kind
from labctl.core.interlock import Hold
from labctl.core.liveness import Liveness
from labctl.core.rollout import MOVING, Phase, Rollout, lost_reason, stream_of, void_reason, voided_by_rule
from labctl.core.trial import Trial
from labctl.messages import driving
from labctl.messages.joint import SealAnswer
from labctl.messages.motion import LEASE_RENEWALS, DeviceReport, Lease, Stop
from labctl.messages.pictures import CameraState, FrameGap, Video
from labctl.messages.processes import Kill, Spawn
from labctl.messages.recording import Close, Closed, Open, Opened, ProducerLost, Resend
from labctl.nodes.phase_table import On, OnRaw, by_kind, hear
from labctl.plain import RobotAbout
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.lab_modules import PinsNow
from labctl.runtime.recording_seal import gap_of, looking_at, note_gap, say_missing, sealed_body
from labctl.runtime.revealing import revealed, started_body
from labctl.store.frozen_cards import cameras_wanted
from labctl.store.sealing import Findings


class EpisodeSequencer:
    """Owns the current rollout. `arms` are the protocol's arms by name; nothing of them leaves but to the controller
    and the seal.
    """

    def __init__(
        self, writer: CampaignWriter, liveness: Liveness, arms: Mapping[str, Arm], pins: PinsNow, lease_ns: int
    ) -> None:
        self.rollout: Rollout | None = None
        self._writer = writer
        self._liveness = liveness
        self._arms = arms
        self._pins_now, self._pins = pins, pins()
        self.robot_about: RobotAbout | None = None  # once its node is connected
        self.lease_ns = lease_ns
        self._seen = {f"camera:{name}" for name in cameras_wanted(arms.values())}
        self.epoch = 0  # of the newest motion lease
        self.next_lease_ns = 0

    def reveal(
        self, trial: Trial, committed_ns: int, cameras: Sequence[str], step: Step, beside: SealAnswer | None = None
    ) -> None:
        """The committed scene's arm, to the controller alone; the episode begins to exist. beside: from a seal host."""
        self.rollout = rollout = revealed(
            self._writer, self._arms, trial, committed_ns, cameras, self.new_epoch(), self._liveness.alive, beside
        )
        self._pins, episode = self._pins_now(), rollout.episode
        step.out.append(Open(episode, rollout.producers).to("recorder"))
        step.out.append(Open(episode).to("arm"))
        inputs, seed = rollout.inputs
        for name in cameras:
            step.out.append(Open(episode, frames=name in self._seen, inputs=inputs, seed=seed).to(name))
        step.out += [Open(episode).to(name) for name in rollout.sensors]
        step.out.append(Spawn("controller").to("@host"))

    def new_epoch(self) -> int:
        """A motion lease nobody has held before: whatever an older one allowed is over."""
        self.epoch += 1
        return self.epoch

    def hear(self, message: Message, now_ns: int, step: Step) -> None:
        """A message about the current episode; others are ignored."""
        rollout = self.rollout
        if rollout is None:
            return
        if message.kind == "hello":
            self._welcome(message.sender, rollout, step)
            return
        about = message.body.get("episode", message.body.get("tag", rollout.episode))  # `tag`: of a call made for it
        if about == rollout.episode:
            hear(MESSAGES, rollout.phase, self, message, now_ns, step)

    def _opened(self, sent: Opened, now_ns: int, step: Step) -> None:
        rollout = self._current
        rollout.opened = True
        if rollout.opens_again:  # producers still hold what the one before had not acknowledged
            rollout.opened_again(now_ns)
            step.out += [Resend().to(producer) for producer in rollout.producers]
            if rollout.reason is not None:
                step.out.append(Close(rollout.episode).to("recorder"))

    def _ready(self, sent: driving.Ready, now_ns: int, step: Step) -> None:
        rollout, private = self._current, sent.private
        if private and not rollout.ready:
            self._writer.ledger.seal_value(rollout.episode, "start_up", private)
        rollout.ready = True
        self._liveness.readied()

    def _go(self, sent: driving.Go, now_ns: int, step: Step) -> None:
        go_ns = int(sent.go_ns)
        self._current.go(go_ns)
        self._log(Kind.GO, {"go_ns": go_ns})

    def _hand(self, sent: driving.HandState, now_ns: int, step: Step) -> None:
        self._current.hand = sent.hand

    def _done(self, sent: driving.Done, now_ns: int, step: Step) -> None:
        self.end(EndReason.CONTROLLER_DONE, now_ns, now_ns, step)

    def _switched(self, sent: driving.Switched, now_ns: int, step: Step) -> None:
        taken = self._current.take_switch(sent.number, int(sent.t_ns))
        if taken is not None:
            self._log(Kind.INSTRUCTION_SWITCHED, taken)

    def _gap(self, sent: FrameGap, now_ns: int, step: Step) -> None:
        note_gap(self._writer, self._current, gap_of(sent), private=sent.private)

    def _failed(self, sent: driving.Failed, now_ns: int, step: Step) -> None:
        self.lose(sent.name, now_ns, step, private=sent.private)

    def _closed(self, sent: Closed, now_ns: int, step: Step) -> None:
        self._current.closed = sent

    def _video(self, sent: Video, now_ns: int, step: Step) -> None:
        self._current.videos[f"camera:{sent.camera}"] = sent

    @property
    def _current(self) -> Rollout:
        assert self.rollout is not None
        return self.rollout

    @property
    def _named(self) -> str:
        return self._writer.state.trials[self._current.trial].place

    def _welcome(self, name: str, rollout: Rollout, step: Step) -> None:
        if name == "controller" and rollout.phase == Phase.ARMING:
            step.out.append(Open(rollout.episode).to("controller"))
            step.out.append(rollout.task.to("controller"))
        elif name == "recorder":  # restarted in mid-episode: what comes before it has opened that is lost
            rollout.opens_again = True
            step.out.append(Open(rollout.episode, rollout.producers).to("recorder"))

    def report(self, sent: DeviceReport, now_ns: int, step: Step) -> None:
        """An item arrived or was lost (`RobotWatch` hears the robot's node first)."""
        rollout = self.rollout
        if rollout is None or sent.kind not in ("success", "lost"):
            return
        t_ns, detail = int(sent.t_ns), sent.body or {}
        why, robot = detail.get("cause") or detail.get("reason"), detail.get("robot", "")
        operation = rollout.take_operation(sent.kind, t_ns, why, robot)
        if operation is not None:
            self._log(Kind.OPERATION_RECORDED, operation)
        if rollout.moving and rollout.done_at is not None and rollout.items_done >= rollout.done_at:
            self.end(EndReason.ALL_DONE, t_ns, now_ns, step)

    def stopped(self, reason: EndReason, t_ns: int, now_ns: int, step: Step, *, cause: str | None) -> None:
        """The robot was stopped at t_ns: what has not started is void, what moves has ended. cause: of the operation at
        hand, which counts as a safety stop where the episode does.
        """
        rollout = self.rollout
        if rollout is None:
            return
        if rollout.phase == Phase.ARMING:
            self.void_unstarted(str(reason), step)
        elif rollout.moving:
            stopped = rollout.take_operation("safety_stop", t_ns, cause) if reason == EndReason.SAFETY_STOP else None
            if stopped is not None:
                self._log(Kind.OPERATION_RECORDED, stopped)
            self.end(reason, max(t_ns, rollout.go_ns or t_ns), now_ns, step)

    def _take_over(self, sent: driving.TouchByDevice, now_ns: int, step: Step) -> None:
        """A hand device has the robot, or gave it back."""
        rollout = self._current
        common = {"kind": InterventionKind.TAKE_OVER, "t_ns": int(sent.t_ns)}
        if sent.phase == "begin":
            rollout.driven = self._writer.state.trials[rollout.trial].touches
            self._log(Kind.INTERVENTION_BEGAN, {"number": rollout.driven, "by": "device", **common})
        elif rollout.driven is not None:
            self._log(Kind.INTERVENTION_ENDED, {"number": rollout.driven, "note": "", **common})
            rollout.driven = None

    def _hand_lost(self, sent: driving.HandLost, now_ns: int, step: Step) -> None:
        """The policy goes on; whoever stands by with the device must know that it takes nothing over any more."""
        text = f"the take-over device is gone ({sent.reason}): nobody can take this episode over"
        self._log(Kind.NOTE, {"text": text})
        self._writer.say(f"{self._named}: {text}; the stop key stops it")

    def _camera(self, sent: CameraState, now_ns: int, step: Step) -> None:
        """A camera has stopped giving pictures, or gives them again. Before start the interlocks decide about that."""
        rollout, name, lost = self._current, sent.name, sent.lost
        if name in rollout.cameras and rollout.newly_unseen(stream_of(name), lost) and rollout.moving:
            self._camera_gone(name, lost, now_ns, step)

    def _camera_gone(self, name: str, why: str, now_ns: int, step: Step) -> None:
        """In a running episode: the protocol says whether that ends it, or is a gap in its recording."""
        if self._writer.opened.get("camera_lost") == "end":
            self.end(EndReason.CAMERA_LOST, now_ns, now_ns, step)
        else:
            self._writer.say(f"{name} gives no pictures ({why}); the episode goes on, the gap is marked")

    def sensor_gone(self, name: str, why: str, now_ns: int, step: Step) -> None:
        """In a running episode: the loss of one that is required ends it, any other is a gap in its recording."""
        self._current.unseen[stream_of(name)] = why
        rollout, text = self._current, f"{name.replace(':', ' ')} gives no values: {why}"
        if rollout.moving and rollout.sensors[name]:
            self.end(EndReason.SENSOR_LOST, now_ns, now_ns, step, cause=text)
        elif rollout.moving:
            self._writer.say(f"{text}; the episode goes on, the gap is marked")

    def lose(
        self, name: str, now_ns: int, step: Step, *, why: str = "", private: str | None = None, dying: bool = False
    ) -> None:
        """A process of this episode is gone or has failed: void it if it had not started, else end it. A camera's end
        it only if the protocol says so. dying: it hung and was killed, and is not yet seen to have ended.
        """
        rollout = self.rollout
        if rollout is None or name in rollout.lost or (name not in rollout.producers and name != "recorder"):
            return
        rollout.lost.add(name)
        if dying and name in rollout.cameras:  # its video is looked at once nobody can write it any more
            rollout.dying.add(name)
        if private and not rollout.void and rollout.phase != Phase.SEALED:  # else no entry would bind it
            self._writer.ledger.seal_value(rollout.episode, f"failure:{len(rollout.lost)}", private)
        if name == "recorder":
            rollout.lost.discard(name)  # it is restarted and asked again; only the end reason remembers
        else:
            step.out.append(ProducerLost(name).to("recorder"))
        if rollout.phase == Phase.ARMING and rollout.sensors.get(name, True):
            self.void_unstarted(str(lost_reason(name)), step)
        elif name in rollout.sensors:
            self.sensor_gone(name, f"its process was lost: {why}", now_ns, step)
        elif rollout.moving and name in rollout.cameras:
            rollout.unseen[stream_of(name)] = f"its process was lost: {why}"
            self._camera_gone(name, why, now_ns, step)
        elif rollout.moving:
            self.end(lost_reason(name), now_ns, now_ns, step)

    def ended(self, name: str) -> None:
        """A process that was killed is seen to have ended."""
        if self.rollout is not None:
            self.rollout.dying.discard(name)

    def advance(self, now_ns: int, step: Step, *, against_start: Callable[[], Sequence[Hold]], attended: bool) -> None:
        """What the clock makes due: start, budget, sealing, the lease. against_start: the holds against it now."""
        rollout = self.rollout
        if rollout is None:
            return
        if rollout.due_to_start(now_ns):
            lacking = rollout.lacking(holds := against_start())
            if lacking and attended:
                rollout.withhold(lacking)
                self._log(Kind.START_WITHHELD, {"reason": rollout.withheld})
                self._writer.say(f"{self._named}: not started: {rollout.withheld}; it waits for another start")
            elif rollout.ready and not lacking:
                self._start(now_ns, step)
            else:
                self.void_unstarted(rollout.unready_reason(holds), step)
                return
        overdue = rollout.overdue(now_ns)
        if overdue is not None:
            end_ns = rollout.deadline_ns if overdue == EndReason.BUDGET else now_ns
            assert end_ns is not None
            self.end(overdue, end_ns, now_ns, step)
        step.out += [switch.to("controller") for switch in rollout.due_switches(now_ns)]
        if rollout.delivered(now_ns):
            self._digest(rollout, step)
        self._renew(now_ns, step)

    def _digest(self, rollout: Rollout, step: Step) -> None:
        """Everything is there: look at the videos. Without the recorder's report nothing is sealed by guessing."""
        rollout.digest()
        self.end_controller(step)
        if rollout.closed is None:
            self._give_up("the recorder did not deliver")
        else:
            step.work.append(Work(looking_at(self._writer, rollout), "digested", tag=rollout.episode))

    def _start(self, now_ns: int, step: Step) -> None:
        rollout = self._current
        self._log(Kind.EPISODE_STARTED, started_body(self._writer, rollout, self._pins, self.robot_about))
        rollout.start(now_ns)
        self.next_lease_ns = now_ns
        self._renew(now_ns, step)
        step.out.append(driving.Start(rollout.episode, rollout.epoch).to("controller"))

    def _renew(self, now_ns: int, step: Step) -> None:
        rollout = self.rollout
        if rollout is None or not rollout.moving or now_ns < self.next_lease_ns:
            return
        until = rollout.lease_until(now_ns, self.lease_ns)
        self.next_lease_ns = now_ns + self.lease_ns // LEASE_RENEWALS
        step.out.append(Lease(rollout.epoch, rollout.episode, until, rollout.deadline_ns).to("@lease"))

    def end(self, reason: EndReason, end_ns: int, now_ns: int, step: Step, **about: str) -> None:
        """End the motion: journal it, let the lease go, close; with the budget at the latest, whatever is heard after
        it. about: the cause that a sensor gave; by which person.
        """
        rollout = self._current
        deadline_ns = rollout.deadline_ns
        if deadline_ns is not None and end_ns >= deadline_ns and reason != EndReason.ALL_DONE:
            reason, end_ns, about = EndReason.BUDGET, deadline_ns, {}
        rollout.end(reason, int(end_ns), now_ns)
        said = {name: text for name, text in about.items() if text}
        self._log(Kind.EPISODE_ENDED, {"reason": str(reason), "end_ns": int(end_ns), **said})
        step.out.append(Lease(rollout.epoch, rollout.episode, 0).to("@lease"))
        step.out.append(Stop(rollout.epoch).to("arm"))
        self._close(step)

    def _close(self, step: Step) -> None:
        rollout = self._current
        nodes = ("controller", "arm", *rollout.cameras, *rollout.sensors, "recorder")
        step.out += [Close(rollout.episode).to(name) for name in nodes]

    def end_controller(self, step: Step) -> None:
        """Each episode has a controller's process of its own."""
        step.out.append(Kill("controller").to("@host"))
        self._liveness.gone("controller")

    def void_unstarted(self, reason: str, step: Step, *, who: str | None = None) -> None:
        """Void an armed episode: no motion has happened; the trial keeps its arm and is planned again."""
        rollout = self._current
        assert rollout.phase == Phase.ARMING
        body = {"reason": reason, "evidence": self._writer.state.last_seq, "confirmed_by": None, "after_go": False}
        self._writer.log(Kind.EPISODE_VOIDED, body, trial=rollout.trial, episode=rollout.episode, who=who)
        self._close(step)
        self.end_controller(step)
        self.rollout, trial = None, self._writer.state.trials[rollout.trial]
        self._writer.say(f"{trial.place}: voided before go ({reason}); {trial.after_void}")

    def _digested(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        if "error" in body:
            self._give_up(f"the videos cannot be read: {body['error']}")
        else:
            self._seal(body["result"])

    def _give_up(self, why: str) -> None:
        """This run cannot seal it; a trial that was voided goes on once a person acknowledged that."""
        again = "end this run and start it again: it seals what is on disk"
        self._current.given_up = f"{why}; {again}"
        self._writer.log(Kind.CELL_FAULTED, {"reason": self._current.given_up})
        if self._current.void:
            self.rollout = None

    def let_go(self, step: Step) -> None:
        """A person voided the episode that ended; its recording is sealed before the next trial begins."""
        rollout = self.rollout
        if rollout is None or rollout.given_up or rollout.phase == Phase.SEALED:
            self.end_controller(step)
            self.rollout = None
        else:
            rollout.void = True

    def _seal(self, found: Findings) -> None:
        rollout, writer = self._current, self._writer
        self._log(Kind.RECORDING_SEALED, sealed_body(writer, rollout, found))
        rollout.seal()
        say_missing(writer, rollout)
        if rollout.void:
            self.rollout = None
            return
        ended, went = rollout.reason, rollout.go_ns is not None
        if ended is not None and voided_by_rule(ended, writer.opened, went=went):
            evidence = {"reason": void_reason(ended), "evidence": writer.state.last_seq, "confirmed_by": None}
            self._log(Kind.EPISODE_VOIDED, {**evidence, "after_go": went})
            why = "by the protocol's rule" if went else "since it had not begun"
            writer.say(f"{self._named}: {rollout.reason}, voided {why}; its recording is kept")
            self.rollout = None

    def _log(self, kind: Kind, body: Body) -> None:
        rollout = self._current
        self._writer.log(kind, body, trial=rollout.trial, episode=rollout.episode)


_ALL = frozenset(Phase)

# What arrives about the episode in flight: the phases of the rollout in which it counts, and what is done.
MESSAGES = by_kind(
    (
        On(Opened, _ALL, EpisodeSequencer._opened),
        On(driving.Ready, _ALL, EpisodeSequencer._ready),
        On(driving.Go, frozenset({Phase.STARTED}), EpisodeSequencer._go),
        On(driving.HandState, _ALL, EpisodeSequencer._hand),
        On(driving.Done, MOVING, EpisodeSequencer._done),
        On(driving.TouchByDevice, frozenset({Phase.RUNNING}), EpisodeSequencer._take_over),
        On(driving.HandLost, frozenset({Phase.RUNNING}), EpisodeSequencer._hand_lost),
        On(driving.Switched, frozenset({Phase.RUNNING}), EpisodeSequencer._switched),
        On(FrameGap, _ALL, EpisodeSequencer._gap),
        On(CameraState, _ALL, EpisodeSequencer._camera),
        On(driving.Failed, _ALL, EpisodeSequencer._failed),
        On(Closed, _ALL, EpisodeSequencer._closed),
        On(Video, _ALL, EpisodeSequencer._video),
        OnRaw("digested", frozenset({Phase.DIGESTING}), EpisodeSequencer._digested),
    )
)
