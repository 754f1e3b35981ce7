"""Conducts one episode: reveal, arming, start, go, end, sealing. Journals each step before acting on it.

May not: start anything without a committed scene, renew a lease after the end, or let an arm-dependent delay show:
start opens exactly `arming_s` after commit for every arm, and a controller that is not ready by then voids the episode.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND
from labctl.desk import Desk
from labctl.events import EndReason, Kind
from labctl.presence import Presence
from labctl.rollout import VOIDABLE, Rollout, lost_reason, recording_body, recording_gaps, steady_rates
from labctl.trial import Trial

LEASE_RENEWALS = 3  # the lease is renewed this many times per duration


class Conductor:
    """Owns the current rollout. `arms` are the protocol's arms by name; nothing of them leaves but to the controller
    and the seal.
    """

    def __init__(
        self, desk: Desk, presence: Presence, arms: Mapping[str, Any], pins: Mapping[str, Any], lease_ns: int
    ) -> None:
        self.rollout: Rollout | None = None
        self._desk = desk
        self._presence = presence
        self._arms = arms
        self._pins = pins
        self.lease_ns = lease_ns
        self._epoch = 0
        self.next_lease_ns = 0

    def reveal(self, trial: Trial, committed_ns: int, cameras: Sequence[str], step: Step) -> None:
        """The committed scene's arm, to the controller alone; the episode begins to exist."""
        desk, opened = self._desk, self._desk.opened
        arm = self._arms[desk.ledger.reveal(trial.id)]
        attempt = len(trial.episodes)
        episode = "e-" + format(desk.ledger.seed(f"episode:{trial.id}:{attempt}") % 32**8, "x").zfill(10)
        sealed = desk.ledger.seal_value(episode, "arm", arm.name)
        desk.log(Kind.ARM_REVEALED, {"sealed": sealed}, trial=trial.id, episode=episode)
        task = {
            "driver": arm.controller,
            "options": arm.options,
            "kind": arm.kind,
            "seed": desk.ledger.seed(f"controller:{trial.id}:{attempt}"),
            "instruction": self._instruction(),
            "episode": episode,
        }
        self.rollout = Rollout(
            trial=trial.id,
            episode=episode,
            epoch=self.new_epoch(),
            task=task,
            start_due_ns=committed_ns + round(opened["arming_s"] * SECOND),
            budget_ns=round(opened["budget_s"] * SECOND),
            items=opened["items_staged"],
            producers=["arm", "controller", *cameras],
            cameras=list(cameras),
        )
        step.out.append(Message("recorder", "open", {"episode": episode, "producers": self.rollout.producers}))
        step.out += [Message(name, "open", {"episode": episode}) for name in ("arm", *cameras)]
        step.out.append(Message("@host", "spawn", {"name": "controller"}))

    def new_epoch(self) -> int:
        """A motion lease nobody has held before: whatever an older one allowed is over."""
        self._epoch += 1
        return self._epoch

    def _instruction(self) -> str:
        return self._desk.campaign.protocol.trial.instruction

    def hear(self, message: Message, now_ns: int, step: Step) -> None:
        """A message about the current episode; others are ignored."""
        rollout, body = self.rollout, message.body
        if rollout is None:
            return
        if message.kind == "hello":
            self._welcome(message.sender, rollout, step)
            return
        if body.get("episode", rollout.episode) != rollout.episode:
            return
        if message.kind == "opened":
            rollout.opened = True
        elif message.kind == "ready":
            rollout.ready = True
        elif message.kind == "go" and rollout.moving and rollout.go_ns is None:
            rollout.go_ns = int(body["go_ns"])
            self._log(Kind.GO, {"go_ns": rollout.go_ns})
        elif message.kind == "event":
            self._operation(body, step)
        elif message.kind == "done" and rollout.moving:
            self.end(EndReason.CONTROLLER_DONE, now_ns, now_ns, step)
        elif message.kind == "failed":
            self.lose(body.get("name", message.sender), now_ns, step, private=body.get("private"))
        elif message.kind == "closed":
            rollout.closed = body
        elif message.kind == "video":
            rollout.videos[message.sender] = body
        elif message.kind == "digested":
            self._seal(body["result"])

    def _welcome(self, name: str, rollout: Rollout, step: Step) -> None:
        if name == "controller" and rollout.started_ns is None:
            step.out.append(Message("controller", "open", {"episode": rollout.episode}))
            step.out.append(Message("controller", "prepare", rollout.task))
        elif name == "recorder":  # restarted in mid-episode: producers still hold what it had not acknowledged
            step.out.append(Message("recorder", "open", {"episode": rollout.episode, "producers": rollout.producers}))
            step.out += [Message(producer, "resend") for producer in rollout.producers]
            if rollout.closing_since_ns is not None:
                step.out.append(Message("recorder", "close", {"episode": rollout.episode}))

    def _operation(self, body: Mapping[str, Any], step: Step) -> None:
        rollout = self.rollout
        assert rollout is not None
        kind, t_ns, detail = body["kind"], int(body["t_ns"]), body.get("body", {})
        if kind == "fault" and self._desk.state.faulted is None:
            self._desk.log(Kind.CELL_FAULTED, {"reason": detail.get("reason", "no reason given")})
        if kind not in ("success", "lost", "safety_stop"):
            return
        operation = rollout.take_operation(kind, t_ns, detail.get("cause") or detail.get("reason"))
        if operation is not None:
            self._log(Kind.OPERATION_RECORDED, operation)
        if kind == "safety_stop":
            self._desk.log(
                Kind.HOLD_RAISED,
                {"code": "safety_stop", "text": f"the robot stopped itself: {detail.get('reason', 'no reason given')}"},
            )
            if rollout.moving:
                self.end(EndReason.SAFETY_STOP, t_ns, t_ns, step)
        elif rollout.moving and rollout.items_done >= rollout.items:
            self.end(EndReason.ALL_DONE, t_ns, t_ns, step)

    def lose(self, name: str, now_ns: int, step: Step, *, private: str | None = None) -> None:
        """A process of this episode is gone or has failed: end it, or void it if it had not started."""
        rollout = self.rollout
        if rollout is None or name in rollout.lost or (name not in rollout.producers and name != "recorder"):
            return
        rollout.lost.add(name)
        if private:
            self._desk.ledger.seal_value(rollout.episode, f"failure:{len(rollout.lost)}", private)
        if name == "recorder":
            rollout.lost.discard(name)  # it is restarted and asked again; only the end reason remembers
        else:
            step.out.append(Message("recorder", "lost", {"name": name}))
        if rollout.started_ns is None:
            self.void_unstarted(str(lost_reason(name)), step)
        elif rollout.moving:
            self.end(lost_reason(name), now_ns, now_ns, step)

    def advance(self, now_ns: int, step: Step, *, clear_to_start: Callable[[], bool]) -> None:
        """What the clock makes due: start, budget, sealing, the lease."""
        rollout = self.rollout
        if rollout is None:
            return
        if rollout.started_ns is None and rollout.operator_ready and now_ns >= rollout.start_due_ns:
            if rollout.opened and rollout.ready and clear_to_start():
                self._start(now_ns, step)
            else:
                self.void_unstarted("not_ready", step)
                return
        overdue = rollout.overdue(now_ns)
        if overdue is not None:
            end_ns = rollout.deadline_ns if overdue == EndReason.BUDGET else now_ns
            assert end_ns is not None
            self.end(overdue, end_ns, now_ns, step)
        if rollout.reason is not None and not rollout.digesting and rollout.delivered(now_ns):
            self._digest(rollout, step)
        self._renew(now_ns, step)

    def _digest(self, rollout: Rollout, step: Step) -> None:
        """Everything is there: digest the videos. Without the recorder's word nothing is sealed by guessing."""
        rollout.digesting = True
        step.out.append(Message("@host", "kill", {"name": "controller"}))
        self._presence.gone("controller")
        if rollout.closed is None:
            why = "the recorder did not deliver; end this run and start it again: it seals what is on disk"
            self._desk.log(Kind.CELL_FAULTED, {"reason": why})
            return
        files = {name: self._desk.campaign.folder / body["file"] for name, body in rollout.videos.items()}
        step.work.append(Work(lambda: {name: file_digest(path) for name, path in files.items()}, "digested"))

    def _start(self, now_ns: int, step: Step) -> None:
        rollout, desk = self.rollout, self._desk
        assert rollout is not None
        private = {**rollout.task, "pins": self._pins}
        body = {
            "pins": self._pins,
            "kind": desk.opened["kind"],
            "durable": desk.opened["durable"],
            "budget_s": desk.opened["budget_s"],
            "items_staged": rollout.items,
            "sealed": desk.ledger.seal_value(rollout.episode, "controller", private),
        }
        self._log(Kind.EPISODE_STARTED, body)
        rollout.started_ns = now_ns
        self.next_lease_ns = now_ns
        self._renew(now_ns, step)
        step.out.append(Message("controller", "start", {"episode": rollout.episode, "epoch": rollout.epoch}))

    def _renew(self, now_ns: int, step: Step) -> None:
        rollout = self.rollout
        if rollout is None or not rollout.moving or now_ns < self.next_lease_ns:
            return
        until = rollout.lease_until(now_ns, self.lease_ns)
        self.next_lease_ns = now_ns + self.lease_ns // LEASE_RENEWALS
        step.out.append(
            Message("@lease", "lease", {"epoch": rollout.epoch, "episode": rollout.episode, "until_ns": until})
        )

    def end(self, reason: EndReason, end_ns: int, now_ns: int, step: Step) -> None:
        """End the motion: journal it, let the lease go, close the recording."""
        rollout = self.rollout
        assert rollout is not None and rollout.moving
        rollout.reason, rollout.end_ns, rollout.closing_since_ns = reason, int(end_ns), now_ns
        self._log(Kind.EPISODE_ENDED, {"reason": str(reason), "end_ns": rollout.end_ns})
        step.out.append(Message("@lease", "lease", {"epoch": rollout.epoch, "episode": rollout.episode, "until_ns": 0}))
        step.out.append(Message("arm", "stop", {"epoch": rollout.epoch}))
        self._close(step)

    def _close(self, step: Step) -> None:
        rollout = self.rollout
        assert rollout is not None
        close = {"episode": rollout.episode}
        step.out += [Message(name, "close", close) for name in ("controller", "arm", *rollout.cameras, "recorder")]

    def void_unstarted(self, reason: str, step: Step, *, who: str | None = None) -> None:
        """Void an armed episode: no motion has happened; the trial keeps its arm and is staged again."""
        rollout = self.rollout
        assert rollout is not None and rollout.started_ns is None
        body = {"reason": reason, "evidence": self._desk.state.last_seq, "confirmed_by": None, "after_go": False}
        self._desk.log(Kind.EPISODE_VOIDED, body, trial=rollout.trial, episode=rollout.episode, who=who)
        self._close(step)
        step.out.append(Message("@host", "kill", {"name": "controller"}))
        self._presence.gone("controller")
        self._desk.say(f"{rollout.trial}: voided before go ({reason}); the scene is staged again")
        self.rollout = None

    def _seal(self, videos: Mapping[str, str]) -> None:
        rollout, desk = self.rollout, self._desk
        assert rollout is not None and rollout.end_ns is not None and rollout.reason is not None
        assert rollout.closed is not None
        streams: Mapping[str, Any] = rollout.closed["streams"]
        gaps = [*rollout.closed["gaps"], *recording_gaps(streams, steady_rates(desk.campaign.cell), rollout.end_ns)]
        for gap in gaps:
            self._log(Kind.GAP, gap)
        found = {
            name.removeprefix("camera:"): {
                "file": rollout.videos[name]["file"],
                "sha256": sha,
                "frames": rollout.videos[name]["frames"],
            }
            for name, sha in videos.items()
        }
        seal = partial(desk.ledger.seal_value, rollout.episode, "streams")
        body = recording_body(streams, rollout.closed["private"], found, len(gaps), seal)
        self._log(Kind.RECORDING_SEALED, body)
        rollout.sealed = True
        if rollout.reason in VOIDABLE and desk.opened["process_lost"] == "void":
            evidence = {"reason": str(rollout.reason), "evidence": desk.state.last_seq, "confirmed_by": None}
            self._log(Kind.EPISODE_VOIDED, {**evidence, "after_go": rollout.go_ns is not None})
            desk.say(f"{rollout.trial}: {rollout.reason}, voided by the protocol's rule; its recording is kept")
            self.rollout = None

    def _log(self, kind: Kind, body: Mapping[str, Any]) -> None:
        rollout = self.rollout
        assert rollout is not None
        self._desk.log(kind, body, trial=rollout.trial, episode=rollout.episode)


def file_digest(path: Path) -> str:
    """sha256 hex of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
