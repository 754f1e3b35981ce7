"""A controller node on a bench: a policy that answers as told, and calls that are made when a test says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import ActionChunk, Observation, Pace
from labctl.errors import DeviceError
from labctl.nodes.controller import ControllerNode
from labctl.nodes.policy_stream import POLICY
from labctl.testing.given import SIMULATED

DOF = 7
POSE = np.array([0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])


def good(n: int = 4, **changes) -> ActionChunk:
    values = {"space": "tcp_pose", "values": np.tile(POSE, (n, 1)), "gripper": np.zeros(n), "dt_s": 0.1, "execute": 2}
    return ActionChunk(**{**values, **changes})


class Policy:
    """Answers with what it is told to, and notes what was asked of it."""

    kind, load_s, warm_s = "sim", 1.0, 0.5
    pace = Pace()

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.saw: list[Observation] = []
        self.answer: Callable[[], ActionChunk] = good

    def load(self) -> None:
        self.asked.append("load")

    def warm(self, observation: Observation) -> None:
        self.asked.append("warm")

    def reset(self, seed: int) -> None:
        self.asked.append(f"reset {seed}")

    def infer(self, observation: Observation) -> ActionChunk:
        self.saw.append(observation)
        return self.answer()

    def close(self) -> None:
        self.asked.append("close")


class Bench:
    """A controller node whose calls are made when `finish` says so."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.node = policy, ControllerNode(**SIMULATED)
        self.now_ns = SECOND
        self.said: list[Message] = []
        self.work: list[Work] = []
        self.due_ns: int | None = None

    def send(self, *messages: Message) -> list[Message]:
        step = self.node.step(self.now_ns, list(messages))
        assert not step.refused, step.refused
        self.said += step.out
        self.work += step.work
        self.due_ns = step.due_ns
        return step.out

    def finish(self) -> list[Message]:
        """Make the oldest call and hand in what came of it."""
        work = self.work.pop(0)
        try:
            body = {"result": work.call(), "tag": ""}
        except DeviceError as error:
            body = {"error": str(error), "tag": ""}
        return self.send(Message("controller", work.kind, body))

    def obs(self, t_ns: int | None = None) -> Message:
        arrays = {"q": np.zeros(DOF), "tcp": POSE}
        return Message("@obs", "obs", {"t_ns": self.now_ns if t_ns is None else t_ns}, arrays)

    def prepare(self) -> None:
        task = {
            "driver": "p",
            "options": {"endpoint": "x"},
            "kind": "policy",
            "seed": 5,
            "episode": "e",
            "instruction": "Move.",
        }
        self.send(Message("controller", "open", {"episode": "e"}), Message("controller", "prepare", task))

    def warm_up(self) -> None:
        self.prepare()
        self.send(self.obs())
        self.finish()
        self.finish()

    def start(self) -> None:
        self.send(Message("controller", "start", {"episode": "e", "epoch": 3}))

    def go(self) -> None:
        """Start with the first observation after it: go is now, and the first question is open."""
        self.warm_up()
        self.now_ns += MILLISECOND
        self.start()
        self.now_ns += MILLISECOND
        self.send(self.obs())

    def rows(self) -> list[dict[str, int]]:
        """The recorded questions."""
        self.send(Message("controller", "close", {"episode": "e"}))
        chunks = [message for message in self.said if message.kind == "chunk"]
        return [dict(zip(POLICY.columns, row, strict=True)) for c in chunks for row in c.arrays["values"].tolist()]

    def frame(self, camera: str = "wrist", t_ns: int | None = None) -> Message:
        body = {"camera": camera, "t_ns": self.now_ns if t_ns is None else t_ns}
        return Message("@frames", "frame", body, {"image": np.zeros((4, 4, 3), np.uint8)})

    def kinds(self) -> list[str]:
        return [message.kind for message in self.said if message.to in ("run", "arm")]

    def failure(self) -> dict:
        (failed,) = [dict(message.body) for message in self.said if message.kind == "failed"]
        return failed
