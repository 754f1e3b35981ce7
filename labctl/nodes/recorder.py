"""The recorder node: writes trace chunks, acknowledges them once committed, and says what an episode's recording holds.

May not: interpret samples, drop a chunk silently, or acknowledge one that is not committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import StreamSpec
from labctl.traces import Chunk, TraceStore

PATIENCE_NS = 2 * SECOND  # how long after a close a producer may still deliver
QUIET_NS = 600 * MILLISECOND  # after a shutdown, how long without mail before the recorder ends


class RecorderNode:
    """See the module."""

    name = "recorder"
    topics = ()

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._episode: str | None = None
        self._waiting: set[str] = set()
        self._gaps: list[Mapping[str, Any]] = []
        self._close_by_ns: int | None = None
        self._quiet_since_ns: int | None = None
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Commit what arrived in one transaction, then acknowledge it."""
        step = Step()
        chunks: dict[str, list[Chunk]] = {}
        acks: list[Message] = []
        for message in inbox:
            if message.kind == "chunk":
                body = message.body
                chunk = Chunk(
                    body["stream"],
                    body["seq"],
                    np.asarray(message.arrays["t_ns"]),
                    np.asarray(message.arrays["values"]),
                )
                chunks.setdefault(body["episode"], []).append(chunk)
                acks.append(Message(message.sender, "ack", {key: body[key] for key in ("episode", "stream", "seq")}))
            else:
                self._read(message, now_ns, step)
        for episode, found in chunks.items():
            self._store.write(episode, found)
        step.out += acks
        if self._episode and self._close_by_ns is not None and (not self._waiting or now_ns >= self._close_by_ns):
            self._conclude(step)
        step.due_ns = self._close_by_ns
        self._wind_down(now_ns, bool(inbox), step)
        return step

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        if message.kind == "open":
            self._episode = body["episode"]
            self._waiting = set(body["producers"])
            self._gaps = []
            self._close_by_ns = None
            step.out.append(Message("run", "opened", {"episode": self._episode}))
        elif message.kind == "declare":
            specs = [StreamSpec(**{**spec, "columns": tuple(spec["columns"])}) for spec in body["specs"]]
            self._store.declare(body["episode"], specs)
        elif message.kind == "end":
            self._waiting.discard(message.sender)
            self._gaps += body.get("gaps", [])
        elif message.kind == "lost":
            self._waiting.discard(body["name"])
        elif message.kind == "close" and body["episode"] == self._episode:
            self._close_by_ns = now_ns + PATIENCE_NS
        elif message.kind == "shutdown":
            self._quiet_since_ns = now_ns

    def _conclude(self, step: Step) -> None:
        assert self._episode is not None
        gaps = [*self._gaps, *self._store.gaps(self._episode)]
        body = {
            "episode": self._episode,
            "streams": self._store.seal(self._episode),
            "gaps": gaps,
            "silent": sorted(self._waiting),
        }
        step.out.append(Message("run", "closed", body))
        self._episode = None
        self._close_by_ns = None

    def _wind_down(self, now_ns: int, mail: bool, step: Step) -> None:
        if self._quiet_since_ns is None:
            return
        if mail:
            self._quiet_since_ns = now_ns
        if now_ns - self._quiet_since_ns >= QUIET_NS and not self.finished:
            self.finished = True
            self._store.close()
        step.due_ns = None if self.finished else self._quiet_since_ns + QUIET_NS
