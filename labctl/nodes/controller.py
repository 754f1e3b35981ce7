"""The controller node: a policy or a person in the loop. The only node that is told which arm of the experiment runs.

May not: tell anyone what it was told, start its clock before a warm controller has a live observation, send a target
outside its episode, go on with an answer that came too late, or ask a policy while a person's hand drives.

The clock starts at go: the first observation captured after `start` is handed to the loaded and warmed controller
(methodology §1). Loading and warming happen before, so they never enter a measured time; every answer after go does:
the arm stands until it comes.

A switch of the instruction counts from the next question on. What was asked before it is followed to its end, as a
policy's own open-loop stretch is part of how fast it adapts; only its word that the task is done no longer holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND
from labctl.devices import ActionChunk, Batch, ByHand, Controller, Observation, StreamSpec, Telling, load
from labctl.errors import DeviceError
from labctl.nodes.observation_buffer import Sight
from labctl.nodes.playing import Play, chunk_problem
from labctl.nodes.takeover import TakeOver
from labctl.nodes.tracing import TraceSender

# One row a question. capture: of the robot's state; image: of the oldest picture used; first: when the first action
# began; server: the policy's own time; call: the server's for all of the question; gpu_memory: what the server holds.
# -1: there was none. executed is 0 for an answer that was not used, late is 1 for one that was not there by the
# deadline.
POLICY = StreamSpec(
    "policy",
    (
        *("capture_ns", "request_ns", "reply_ns", "actions", "executed", "dt_ns"),
        *("image_ns", "first_ns", "server_us", "late", "call_us", "gpu_memory_mb"),
    ),
    "ns, count, us, MB",
    1.0,
    dtype="<i8",
    arm_dependent=True,
)

HAND_NS = SECOND // 5  # how often a person's screen hears of the hand


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, and when: the times of the state, of the oldest picture (-1: none), and of the asking; and with
    which instruction.
    """

    capture_ns: int
    image_ns: int
    request_ns: int
    instruction: str


class ControllerNode:
    """See the module. `cell` and `fixture` are the plain TOML dicts that drivers are built with."""

    name = "controller"
    topics = ("@obs", "@frames")

    def __init__(self, cell: Mapping[str, Any], fixture: Mapping[str, Any], *, chunk_ns: int = SECOND) -> None:
        self._cell = cell
        self._fixture = fixture
        self._sender = TraceSender("controller", [POLICY], chunk_ns=chunk_ns)
        self._controller: Controller | None = None
        self._closed = False
        self._task: Mapping[str, Any] = {}
        self._sight = Sight({camera["name"]: camera.get("latency_s", 0.0) for camera in cell.get("camera", [])})
        self._phase = "idle"  # idle, loading, loaded, warming, ready, started, running, over
        self._instruction = ""
        self._last_asked_ns = -1
        self._epoch = -1
        self._started_ns = 0
        self._asked: Question | None = None
        self._play: Play | None = None
        self._began_ns = self._loaded_ns = 0
        self._next_hand_ns = 0
        self._next_ns: int | None = None  # a question waits for an observation that is no older
        self._hand: TakeOver | None = None
        self._overtaken = False  # the answer that is awaited was asked for before a hand took over: never used
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail first, then whatever the phase asks for."""
        step = Step()
        for message in inbox:
            self._read(message, now_ns, step)
        seen_ns = self._sight.t_ns
        if seen_ns is not None:
            self._go_on(seen_ns, now_ns, step)
            self._tell_hand(now_ns, step)
        step.out += self._sender.poll(now_ns)
        step.due_ns = self._due()
        return step

    def _go_on(self, seen_ns: int, now_ns: int, step: Step) -> None:
        """What the phase asks for, given when the newest observation was captured."""
        if self._phase == "loaded" and self._sight.ready(now_ns):
            self._warm(step)
        elif self._phase == "started" and seen_ns >= self._started_ns and self._sight.ready(now_ns):
            step.out.append(Message("run", "go", {"episode": self._task["episode"], "go_ns": now_ns}))
            self._phase = "running"
            self._sight.forget()
            self._ask(seen_ns, now_ns, step)
        elif self._phase == "running":
            self._run(seen_ns, now_ns, step)

    def _tell_hand(self, now_ns: int, step: Step) -> None:
        """Tell the screens of a person's device; there is nothing to tell of a policy."""
        controller = self._controller
        if self._phase in ("idle", "over") or now_ns < self._next_hand_ns or not isinstance(controller, ByHand):
            return
        self._next_hand_ns = now_ns + HAND_NS
        hand = dict(controller.hand(np.asarray(self._sight.measured()["q"])))
        step.out.append(Message("run", "hand", {"episode": self._task["episode"], "hand": hand}))

    def _run(self, seen_ns: int, now_ns: int, step: Step) -> None:
        if self._driven(seen_ns, now_ns, step):
            if self._asked is not None:
                self._wait(self._asked, now_ns, step)
            return
        if self._play is not None:
            step.out += self._play.targets(now_ns, self._sight.measured())
        if self._asked is not None:
            self._wait(self._asked, now_ns, step)
        elif self._next_ns is not None and seen_ns >= self._next_ns:
            if self._play is not None and self._play.done:  # its last targets have been followed
                self._next_ns = None
                step.out.append(Message("run", "done", {"episode": self._task["episode"]}))
            elif self._sight.ready(now_ns):  # never on a picture that is too old: the arm stands until there is one
                self._ask(seen_ns, now_ns, step)

    def _driven(self, seen_ns: int, now_ns: int, step: Step) -> bool:
        """A hand has the arm: its targets take the place of the policy's, which is asked again once it lets go."""
        hand = self._hand
        if hand is None:
            return False
        before = hand.driving
        asked_m = None if self._play is None else self._play.opening(now_ns)
        chunk = hand.look(Observation(seen_ns, self._sight.measured()), now_ns, asked_m)
        if hand.driving != before:
            phase = "begin" if hand.driving else "end"
            step.out.append(Message("run", "touch", {"episode": self._task["episode"], "phase": phase, "t_ns": now_ns}))
            self._play, self._overtaken = None, self._asked is not None
            self._next_ns = None if hand.driving or self._overtaken else now_ns
        if chunk is not None:
            play = Play(chunk, seen_ns, now_ns, self._epoch, self._task["episode"])
            step.out += play.targets(now_ns, self._sight.measured())
        return hand.driving

    def _due(self) -> int | None:
        """When to look again without mail: at a step, and when a question has waited too long."""
        if self._phase != "running":
            return None
        due = [] if self._play is None else [self._play.due_ns]
        if self._asked is not None:
            pace = self._sight.pace
            patience = min(pace.give_up_s, pace.deadline_s if pace.late == "end" else math.inf)
            due.append(None if patience == math.inf else self._asked.request_ns + round(patience * SECOND))
        return min((at for at in due if at is not None), default=None)

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        kind, body = message.kind, message.body
        if kind in ("obs", "frame"):
            self._sight.see(message)
        elif kind == "prepare" and self._phase == "idle":
            self._task, self._began_ns = body, now_ns
            self._instruction = body.get("instruction", "")
            self._phase = "loading"
            step.work.append(Work(self._load, "loaded", lambda loaded: round(loaded.load_s * SECOND)))
        elif kind == "loaded" and self._phase == "loading":
            if self._after(body, step, "loaded"):
                self._sight.pace = body["result"].pace
                self._loaded_ns = now_ns
        elif kind == "warmed" and self._phase == "warming":
            if self._after(body, step, "ready"):
                times = (self._loaded_ns - self._began_ns, now_ns - self._loaded_ns)
                private: dict[str, Any] = {"load_s": times[0] / SECOND, "warm_s": times[1] / SECOND}
                if isinstance(self._controller, Telling) and self._controller.told:
                    private["told"] = dict(self._controller.told)
                step.out.append(Message("run", "ready", {"episode": self._task["episode"], "private": private}))
        elif kind == "open":
            step.out += self._sender.open(body["episode"])
        elif kind == "start" and self._phase == "ready":
            self._epoch, self._started_ns = body["epoch"], now_ns
            self._phase = "started"
        elif kind == "switch" and self._phase == "running" and body["episode"] == self._task["episode"]:
            self._switch(body, now_ns, step)
        elif kind == "answer" and self._phase == "running":
            self._use(body, now_ns, step)
        elif kind == "ack":
            self._sender.ack(body)
        elif kind == "resend":
            step.out += self._sender.resend()
        elif kind in ("close", "shutdown"):
            self._close(now_ns, step)
            self.finished = self.finished or kind == "shutdown"

    def _switch(self, body: Mapping[str, Any], now_ns: int, step: Step) -> None:
        """Another instruction from the next question on: of two things at one moment, the question was before."""
        self._instruction = body["instruction"]
        if self._play is not None:
            self._play.done = False
        told = {"episode": body["episode"], "number": body["number"], "t_ns": max(now_ns, self._last_asked_ns + 1)}
        step.out.append(Message("run", "switched", told))

    def _load(self) -> Controller:
        task = self._task
        made = load(task["driver"], task["options"], cell=self._cell, fixture=self._fixture)
        self._controller = made  # so that it can be closed while it loads
        made.load()
        made.reset(task["seed"])
        if task.get("hand"):
            hand = load(task["hand"]["driver"], task["hand"]["options"], cell=self._cell, fixture=self._fixture)
            self._hand = TakeOver(hand)  # so that it can be closed while it loads
            hand.load()
        return made

    def _warm(self, step: Step) -> None:
        controller, seed = self._controller, self._task["seed"]
        assert controller is not None
        seen = self._sight.observation(self._instruction)

        def warm() -> Controller:
            controller.warm(seen)
            controller.reset(seed)  # history built while warming must not reach the episode
            return controller

        self._phase = "warming"
        step.work.append(Work(warm, "warmed", lambda warmed: round(warmed.warm_s * SECOND)))

    def _ask(self, seen_ns: int, now_ns: int, step: Step) -> None:
        controller = self._controller
        assert controller is not None
        seen = self._sight.observation(self._instruction)
        self._next_ns, self._last_asked_ns = None, now_ns
        self._asked = Question(seen_ns, self._sight.image_ns(), now_ns, self._instruction)
        step.work.append(Work(lambda: controller.infer(seen), "answer", lambda chunk: round(chunk.delay_s * SECOND)))

    def _wait(self, asked: Question, now_ns: int, step: Step) -> None:
        """A question is open: give up when its time is over."""
        pace, waited_s = self._sight.pace, (now_ns - asked.request_ns) / SECOND
        if pace.late == "end" and waited_s >= pace.deadline_s:
            why = f'no answer within the deadline of {pace.deadline_s:g} s, and the card says late = "end"'
        elif waited_s >= pace.give_up_s:
            why = f"no answer within {pace.give_up_s:g} s; given up"
        else:
            return
        self._note(asked, now_ns, late=True)
        self._fail(why, step)

    def _use(self, body: Mapping[str, Any], now_ns: int, step: Step) -> None:
        asked, self._asked = self._asked, None
        assert asked is not None
        if not self._after(body, step, "running"):
            self._note(asked, now_ns)
            return
        if self._overtaken:
            self._overtaken = False
            self._note(asked, now_ns, reply_ns=now_ns)
            self._next_ns = now_ns  # asked before a hand took over: what is seen from now on is asked about
            return
        chunk: ActionChunk = body["result"]
        problem = chunk_problem(chunk, len(self._sight.measured()["q"]))
        if problem:
            self._note(asked, now_ns, reply_ns=now_ns)
            self._fail(problem, step)
            return
        play = Play(chunk, asked.capture_ns, now_ns, self._epoch, self._task["episode"])
        late = now_ns - asked.request_ns > self._sight.pace.deadline_s * SECOND
        if late or not len(play.t_ns):
            self._note(asked, now_ns, reply_ns=now_ns, chunk=chunk, late=True)
            self._next_ns = now_ns  # not used: the arm stands, and what is seen from now on is asked about
            return
        self._play = play
        play.done = play.done and asked.instruction == self._instruction
        self._note(asked, now_ns, reply_ns=now_ns, chunk=chunk, play=play)
        self._next_ns = play.ends_ns - round(self._sight.pace.ask_ahead_s * SECOND)
        step.out += play.targets(now_ns, self._sight.measured())

    def _note(
        self,
        asked: Question,
        now_ns: int,
        *,
        reply_ns: int = -1,
        chunk: ActionChunk | None = None,
        play: Play | None = None,
        late: bool = False,
    ) -> None:
        """Record a question and what became of it: one row of the policy stream."""
        actions, executed, dt_ns, server_us, call_us, gpu_mb = 0, 0, 0, -1, -1, -1
        if chunk is not None:
            actions, executed = len(chunk.values), 0 if play is None else len(play.t_ns)
            dt_ns = round(chunk.dt_s * SECOND)
            server_us, call_us = _whole(chunk.server_s, 1e6), _whole(chunk.call_s, 1e6)
            gpu_mb = _whole(chunk.gpu_memory_mb, 1.0)
        first_ns = -1 if play is None else play.first_ns
        row = (asked.capture_ns, asked.request_ns, reply_ns, actions, executed, dt_ns)
        rest = (asked.image_ns, first_ns, server_us, int(late), call_us, gpu_mb)
        self._sender.add(Batch(POLICY.name, np.array([now_ns], np.int64), np.array([[*row, *rest]], np.int64)))

    def _after(self, body: Mapping[str, Any], step: Step, phase: str) -> bool:
        """Enter a phase after a call, or report its failure."""
        if "error" in body:
            self._fail(body["error"], step)
            return False
        self._phase = phase
        return True

    def _fail(self, reason: str, step: Step) -> None:
        self._stop()
        step.out.append(
            Message("run", "failed", {"name": self.name, "episode": self._task.get("episode"), "private": reason})
        )
        self._release()

    def _stop(self) -> None:
        self._phase = "over"
        self._asked = self._play = self._next_ns = None

    def _release(self) -> str | None:
        """Close the controller, once; what it says against that."""
        if self._controller is None or self._closed:
            return None
        self._closed = True
        problem = None
        for device in (self._controller, self._hand):
            try:
                if device is not None:
                    device.close()
            except DeviceError as error:
                problem = str(error)
        return problem

    def _close(self, now_ns: int, step: Step) -> None:
        step.out += self._sender.close(now_ns)
        self._stop()
        problem = self._release()
        if problem is not None:
            self._fail(problem, step)


def _whole(told: float, scale: float) -> int:
    """A number that was told, in whole units; -1 for none."""
    return -1 if math.isnan(told) else round(told * scale)
