"""The controller node: a policy or a person in the loop. The only node that is told which arm of the experiment runs.

May not: tell anyone what it was told, start its clock before a warm controller has a live observation, or send a
target outside its episode.

The clock starts at go: the first observation captured after `start` is handed to the loaded and warmed controller
(methodology §1). Loading and warming happen before, so they never enter a measured time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND
from labctl.devices import ActionChunk, Batch, Controller, Observation, StreamSpec, load
from labctl.errors import DeviceError
from labctl.nodes.tracing import TraceSender

POLICY = StreamSpec(
    "policy",
    ("capture_ns", "request_ns", "reply_ns", "actions", "executed", "dt_ns"),
    "ns, count",
    1.0,
    dtype="<i8",
    arm_dependent=True,
)


class ControllerNode:
    """See the module. `cell` and `fixture` are the plain TOML dicts that drivers are built with."""

    name = "controller"
    topics = ("@obs",)

    def __init__(self, cell: Mapping[str, Any], fixture: Mapping[str, Any], *, chunk_ns: int = SECOND) -> None:
        self._cell = cell
        self._fixture = fixture
        self._sender = TraceSender("controller", [POLICY], chunk_ns=chunk_ns)
        self._controller: Controller | None = None
        self._task: Mapping[str, Any] = {}
        self._seen: Observation | None = None
        self._phase = "idle"  # idle, loading, loaded, warming, ready, started, running, over
        self._epoch = -1
        self._started_ns = 0
        self._next_ns: int | None = None
        self._last = False
        self._asked: tuple[int, int] = (0, 0)
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail first, then whatever the phase asks for."""
        step = Step()
        for message in inbox:
            self._read(message, now_ns, step)
        if self._seen is not None:
            self._go_on(self._seen.t_ns, now_ns, step)
        step.out += self._sender.poll(now_ns)
        return step

    def _go_on(self, seen_ns: int, now_ns: int, step: Step) -> None:
        """What the phase asks for, given when the newest observation was captured."""
        if self._phase == "loaded":
            self._warm(step)
        elif self._phase == "started" and seen_ns >= self._started_ns:
            step.out.append(Message("run", "go", {"episode": self._task["episode"], "go_ns": now_ns}))
            self._phase = "running"
            self._infer(now_ns, step)
        elif self._phase == "running" and self._next_ns is not None and seen_ns >= self._next_ns:
            if self._last:  # its last targets have been followed
                self._next_ns = None
                step.out.append(Message("run", "done", {"episode": self._task["episode"]}))
                return
            self._infer(now_ns, step)  # never on a picture of a motion that was not over when it was taken

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        kind, body = message.kind, message.body
        if kind == "obs":
            self._seen = Observation(body["t_ns"], message.arrays, self._task.get("instruction", ""))
        elif kind == "prepare" and self._phase == "idle":
            self._task = body
            self._phase = "loading"
            step.work.append(Work(self._load, "loaded", lambda loaded: round(loaded.load_s * SECOND)))
        elif kind == "loaded":
            self._after(body, step, "loaded")
            self._controller = body.get("result")
        elif kind == "warmed":
            if self._after(body, step, "ready"):
                step.out.append(Message("run", "ready", {"episode": self._task["episode"]}))
        elif kind == "open":
            step.out += self._sender.open(body["episode"])
        elif kind == "start" and self._phase == "ready":
            self._epoch, self._started_ns = body["epoch"], now_ns
            self._phase = "started"
        elif kind == "answer":
            self._use(body, now_ns, step)
        elif kind == "ack":
            self._sender.ack(body)
        elif kind == "resend":
            step.out += self._sender.resend()
        elif kind in ("close", "shutdown"):
            self._close(now_ns, step)
            self.finished = self.finished or kind == "shutdown"

    def _load(self) -> Controller:
        task = self._task
        made = load(task["driver"], task["options"], cell=self._cell, fixture=self._fixture)
        made.load()
        made.reset(task["seed"])
        return made

    def _warm(self, step: Step) -> None:
        controller, seen, seed = self._controller, self._seen, self._task["seed"]
        assert controller is not None and seen is not None

        def warm() -> None:
            controller.warm(seen)
            controller.reset(seed)  # history built while warming must not reach the episode

        self._phase = "warming"
        step.work.append(Work(warm, "warmed"))

    def _infer(self, now_ns: int, step: Step) -> None:
        controller, seen = self._controller, self._seen
        assert controller is not None and seen is not None
        self._next_ns = None
        self._asked = (seen.t_ns, now_ns)
        step.work.append(Work(lambda: controller.infer(seen), "answer", lambda chunk: round(chunk.delay_s * SECOND)))

    def _use(self, body: Mapping[str, Any], now_ns: int, step: Step) -> None:
        if self._phase != "running" or not self._after(body, step, "running"):
            return
        chunk: ActionChunk = body["result"]
        assert self._seen is not None
        problem = chunk_problem(chunk, len(self._seen.arrays["q"]))
        if problem:
            self._fail(problem, step)
            return
        n = min(chunk.execute, len(chunk.values))
        dt_ns = round(chunk.dt_s * SECOND)
        times = now_ns + dt_ns * np.arange(1, n + 1, dtype=np.int64)
        target = {
            "epoch": self._epoch,
            "episode": self._task["episode"],
            "space": chunk.space,
            "dt_ns": dt_ns,
            "expires_ns": int(times[-1]),
        }
        arrays = {"t_ns": times, "values": chunk.values[:n], "gripper": chunk.gripper[:n]}
        step.out.append(Message("arm", "target", target, arrays))
        row = np.array([[*self._asked, now_ns, len(chunk.values), n, dt_ns]], np.int64)
        self._sender.add(Batch(POLICY.name, np.array([now_ns], np.int64), row))
        self._next_ns = int(times[-1])
        self._last = chunk.done

    def _after(self, body: Mapping[str, Any], step: Step, phase: str) -> bool:
        """Enter a phase after a call, or report its failure."""
        if "error" in body:
            self._fail(body["error"], step)
            return False
        self._phase = phase
        return True

    def _fail(self, reason: str, step: Step) -> None:
        self._phase = "over"
        self._next_ns = None
        step.out.append(
            Message("run", "failed", {"name": self.name, "episode": self._task.get("episode"), "private": reason})
        )

    def _close(self, now_ns: int, step: Step) -> None:
        step.out += self._sender.close(now_ns)
        if self._controller is not None and self._phase != "over":
            try:
                self._controller.close()
            except DeviceError as error:
                self._fail(str(error), step)
        self._phase = "over"
        self._next_ns = None


def chunk_problem(chunk: ActionChunk, dof: int) -> str | None:
    """Why an arm of `dof` joints cannot execute an answer, or None: wrong shapes, nothing to execute, not finite."""
    values, gripper = np.asarray(chunk.values), np.asarray(chunk.gripper)
    if values.ndim != 2 or not len(values) or gripper.shape != (len(values),):
        return f"action chunk of shape {values.shape} with {gripper.shape} gripper values"
    if chunk.execute < 1 or not 0 < chunk.dt_s < math.inf:
        return f"action chunk with execute={chunk.execute} and dt_s={chunk.dt_s}"
    widths = {"tcp_pose": 7, "joint_position": dof, "tcp_velocity": 6, "joint_velocity": dof}
    if chunk.space not in widths:
        return f"action chunk in the space {chunk.space!r}; known spaces: {', '.join(widths)}"
    if values.shape[1] != widths[chunk.space]:
        return f"{chunk.space} actions need {widths[chunk.space]} values, got {values.shape[1]}"
    if not (np.isfinite(values).all() and np.isfinite(gripper).all()):
        return "action chunk with values that are not finite"
    return None
