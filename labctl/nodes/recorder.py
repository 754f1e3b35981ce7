"""The recorder node: writes trace chunks, acknowledges them once committed, and says what an episode's recording holds.

May not: interpret samples, drop a chunk silently, or acknowledge one that is not committed.
"""

from __future__ import annotations

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.messages import recording as messages
from labctl.messages.body_parts import GapBody
from labctl.messages.processes import Shutdown
from labctl.messages.typed import read
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.store.traces import Chunk, TraceStore
from labctl.streams import spec_of

PATIENCE_NS = 10 * SECOND  # so long after a close a producer may still deliver: twice what an encoder may stand still
Arrived = tuple[messages.Chunk, Message]
QUIET_NS = 600 * MILLISECOND  # after a shutdown, how long without mail before the recorder ends


class RecorderNode:
    """See the module."""

    name = "recorder"
    topics = ()

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._episode: str | None = None
        self._waiting: set[str] = set()
        self._arrived: list[Arrived] = []  # chunks of this step
        self._gaps: list[GapBody] = []
        self._sent: dict[str, int] = {}  # chunks of each stream that its producer says it sent
        self._concluded: set[str] = set()
        self._close_by_ns: int | None = None
        self._quiet_since_ns: int | None = None
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Commit what arrived in one transaction, then acknowledge it."""
        step = Step()
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        arrived, self._arrived = self._arrived, []
        self._take(arrived, step)
        if self._episode and self._close_by_ns is not None and (now_ns >= self._close_by_ns or self._complete()):
            self._conclude(step)
        step.due_ns = self._close_by_ns
        self._wind_down(now_ns, bool(inbox), step)
        return step

    def _take(self, chunks: list[Arrived], step: Step) -> None:
        """Store the open episode's chunks. A late one, of a sealed episode, is reported to run; any other its producer
        keeps and sends again once its episode is opened here (a recorder may be new in mid-episode).
        """
        stored = [(chunk, message) for chunk, message in chunks if chunk.episode == self._episode]
        if stored and self._episode:
            self._store.write(self._episode, [_chunk(chunk, message) for chunk, message in stored])
        late = [(chunk, message) for chunk, message in chunks if chunk.episode in self._concluded]
        for chunk, message in (*stored, *late):
            step.out.append(messages.Ack(chunk.episode, chunk.stream, chunk.seq).to(message.sender))
        step.out += [self._late(chunk) for chunk, _ in late]

    def _late(self, chunk: messages.Chunk) -> Message:
        specs = {spec.name: spec for spec in self._store.streams(chunk.episode)}
        private = chunk.stream not in specs or specs[chunk.stream].arm_dependent
        return messages.Late(chunk.episode, chunk.stream, chunk.seq, chunk.n, private).to("run")

    def _complete(self) -> bool:
        """Every producer has ended, and every chunk it sent is here."""
        if self._waiting or self._episode is None:
            return False
        here = self._store.seal(self._episode)
        return all(here.get(stream, {"chunks": 0})["chunks"] >= sent for stream, sent in self._sent.items())

    def _chunk(self, message: Message, now_ns: int, step: Step) -> None:
        self._arrived.append((read(messages.Chunk, message), message))

    def _open(self, sent: messages.Open, now_ns: int, step: Step) -> None:
        self._episode = sent.episode
        self._waiting = set(sent.producers or ())
        self._concluded.discard(sent.episode)
        self._gaps, self._sent = [], {}
        self._close_by_ns = None
        step.out.append(messages.Opened(self._episode).to("run"))

    def _declare(self, sent: messages.Declare, now_ns: int, step: Step) -> None:
        self._store.declare(sent.episode, [spec_of(spec) for spec in sent.specs])

    def _end(self, message: Message, now_ns: int, step: Step) -> None:
        """A producer, the sender, has sent all of it."""
        end = read(messages.End, message)
        if end.episode != self._episode:
            return
        self._waiting.discard(message.sender)
        self._gaps += end.gaps
        for stream, counts in end.sent.items():
            self._sent[stream] = counts["chunks"] - sum(gap.get("stream") == stream for gap in end.gaps)

    def _lost(self, sent: messages.ProducerLost, now_ns: int, step: Step) -> None:
        self._waiting.discard(sent.name)

    def _close(self, sent: messages.Close, now_ns: int, step: Step) -> None:
        if sent.episode == self._episode:
            self._close_by_ns = now_ns + PATIENCE_NS

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._quiet_since_ns = now_ns

    def _conclude(self, step: Step) -> None:
        assert self._episode is not None
        self._store.sync()  # what is journalled of a recording survives a loss of power: so must the recording
        gaps = [*self._gaps, *self._store.gaps(self._episode)]
        private = [spec.name for spec in self._store.streams(self._episode) if spec.arm_dependent]
        streams, silent = self._store.seal(self._episode), sorted(self._waiting)
        step.out.append(messages.Closed(self._episode, streams, private, gaps, silent).to("run"))
        self._concluded.add(self._episode)
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


MESSAGES = by_kind(
    (
        on_raw("chunk", RecorderNode._chunk),
        on(messages.Open, RecorderNode._open),
        on(messages.Declare, RecorderNode._declare),
        on_raw("end", RecorderNode._end),
        on(messages.ProducerLost, RecorderNode._lost),
        on(messages.Close, RecorderNode._close),
        on(Shutdown, RecorderNode._shut_down),
    )
)


def _chunk(chunk: messages.Chunk, message: Message) -> Chunk:
    arrays = message.arrays
    return Chunk(chunk.stream, chunk.seq, np.asarray(arrays["t_ns"]), np.asarray(arrays["values"]))
