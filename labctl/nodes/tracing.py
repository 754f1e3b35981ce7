"""The producer's side of trace recording: chunks of about a second, each kept until it is acknowledged.

May not: store anything, read a clock, or wait for the recorder; a producer never blocks on recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np

from labctl.axes import axes_of
from labctl.bus import Message, Step
from labctl.clock import SECOND
from labctl.core.rollout import ACTION, LEASES
from labctl.devices import Batch, Robot
from labctl.messages.body_parts import ChunkGap, SentEntry
from labctl.messages.recording import Ack, Chunk, Declare, End, Resend
from labctl.nodes.phase_table import on
from labctl.plain import SpecEntry
from labctl.streams import StreamSpec

RECORDER = "recorder"  # the node that gets all this
Key = tuple[str, str, int]  # episode, stream, seq


@dataclass(slots=True)
class _Stream:
    """One stream of the open episode: samples not yet cut, and how much was cut so far."""

    spec: StreamSpec
    t_ns: list[np.ndarray] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    chunks: int = 0
    samples: int = 0


class TraceSender:
    """Makes a producer's messages to the recorder: "declare", "chunk", "end".

    Chunks are numbered from 0 per episode and stream. Delivery is at least once: the recorder drops what
    it already has, by (episode, stream, seq). Samples added while no episode is open are dropped: they
    belong to no trace.
    """

    def __init__(
        self,
        sender: str,
        specs: Sequence[StreamSpec],
        *,
        chunk_ns: int = SECOND,
        limit_chunks: int = 600,
    ) -> None:
        self.sender = sender
        self.specs = tuple(specs)
        self.episode: str | None = None
        self._chunk_ns = chunk_ns
        self._limit = limit_chunks
        self._streams: dict[str, _Stream] = {}
        self._declared: dict[str, Message] = {}
        self._ended: dict[str, Message] = {}
        self._kept: dict[Key, Message] = {}
        self._gaps: list[ChunkGap] = []

    def open(self, episode: str, further: Sequence[StreamSpec] = ()) -> list[Message]:
        """Start an episode: the declaration of its streams. Opening it twice repeats that and resets nothing. further:
        streams that this episode has beside the others.

        An episode still open is ended first: whoever opens the next one has given it up.
        """
        if self.episode == episode:
            return [self._declared[episode]]
        out = self.close()
        self._forget_settled()
        self.episode = episode
        specs = (*self.specs, *further)
        self._streams = {spec.name: _Stream(spec) for spec in specs}
        declared = Declare(episode, [SpecEntry(**asdict(spec)) for spec in specs])
        self._declared[episode] = declared.to(RECORDER, sender=self.sender)
        return [*out, self._declared[episode]]

    def add(self, batch: Batch) -> None:
        """Take samples: t_ns (n,), values (n, columns) or (n,) for a single column; both are copied. Sends nothing.

        Raises KeyError for an undeclared stream and ValueError when the shape does not fit its columns.
        """
        if self.episode is None or not len(batch.t_ns):
            return
        stream = self._streams[batch.stream]
        t_ns = np.array(batch.t_ns, dtype="<i8")
        values = np.array(batch.values, dtype=stream.spec.dtype)
        if values.ndim == 1 and len(stream.spec.columns) == 1:
            values = values[:, None]
        if t_ns.ndim != 1 or values.shape != (len(t_ns), len(stream.spec.columns)):
            found = f"times {t_ns.shape} and values {values.shape}"
            raise ValueError(f"stream {batch.stream!r}: {found} for {len(stream.spec.columns)} columns")
        stream.t_ns.append(t_ns)
        stream.values.append(values)

    def poll(self, now_ns: int, force: bool = False) -> list[Message]:
        """The chunks now due: when one stream's oldest waiting sample is a chunk's length old, or on force, of all.

        Streams are cut together, so that one commit takes them all.
        """
        waiting = [stream for stream in self._streams.values() if stream.t_ns]
        if force or any(now_ns - int(stream.t_ns[0][0]) >= self._chunk_ns for stream in waiting):
            return [self._cut(stream) for stream in waiting]
        return []

    def ack(self, sent: Ack) -> None:
        """The recorder has committed a chunk; no longer kept. A repeated ack is harmless."""
        self._kept.pop((sent.episode, sent.stream, sent.seq), None)

    def resend(self) -> list[Message]:
        """Everything a restarted recorder may have missed: declarations, unacknowledged chunks in order, and ends."""
        self._forget_settled()
        return [*self._declared.values(), *self._kept.values(), *self._ended.values()]

    def close(self, now_ns: int = 0) -> list[Message]:
        """End the episode: the last chunks, then "end" with what was sent and given up. Nothing when none is open."""
        if self.episode is None:
            return []
        out = self.poll(now_ns, force=True)
        sent: dict[str, SentEntry] = {
            name: {"chunks": stream.chunks, "n": stream.samples} for name, stream in self._streams.items()
        }
        self._ended[self.episode] = End(self.episode, sent, self.gaps()).to(RECORDER, sender=self.sender)
        out.append(self._ended[self.episode])
        self.episode = None
        self._streams = {}
        return out

    def gaps(self) -> list[ChunkGap]:
        """Chunks given up since the last call: episode, stream, seq, lost (samples), from_ns, to_ns, why."""
        found, self._gaps = self._gaps, []
        return found

    def _cut(self, stream: _Stream) -> Message:
        assert self.episode is not None, "chunks are cut only inside an episode"
        t_ns, values = np.concatenate(stream.t_ns), np.concatenate(stream.values)
        chunk = Chunk(self.episode, stream.spec.name, stream.chunks, len(t_ns))
        message = chunk.to(RECORDER, {"t_ns": t_ns, "values": values}, sender=self.sender)
        stream.chunks += 1
        stream.samples += len(t_ns)
        stream.t_ns, stream.values = [], []
        self._keep((chunk.episode, chunk.stream, chunk.seq), message)
        return message

    def _keep(self, key: Key, message: Message) -> None:
        self._kept[key] = message
        if len(self._kept) > self._limit:
            oldest = next(iter(self._kept))
            t_ns = self._kept.pop(oldest).arrays["t_ns"]
            episode, stream, seq = oldest
            first, last = int(t_ns[0]), int(t_ns[-1])
            why = "never acknowledged by the recorder; given up to bound memory"
            lost = ChunkGap(stream=stream, from_ns=first, to_ns=last, lost=len(t_ns), why=why, seq=seq, episode=episode)
            self._gaps.append(lost)

    def _forget_settled(self) -> None:
        """Forget past episodes without unacknowledged chunks, but not the latest: its end may not have arrived."""
        waiting = {key[0] for key in self._kept}
        for episode in list(self._declared)[:-1]:
            if episode not in waiting:
                del self._declared[episode]
                self._ended.pop(episode, None)


class Producer(Protocol):
    """A node whose streams are recorded."""

    @property
    def sender(self) -> TraceSender: ...


def acknowledged(node: Producer, sent: Ack, now_ns: int, step: Step) -> None:
    """The recorder has committed a chunk."""
    node.sender.ack(sent)


def resend(node: Producer, sent: Resend, now_ns: int, step: Step) -> None:
    """The recorder was started again."""
    step.out += node.sender.resend()


# What the recorder sends to a producer without phases.
FROM_RECORDER = (on(Ack, acknowledged), on(Resend, resend))


# -- what the robot's node records beside what the robot measures: its leases, and its setpoints

# Each renewal: how long after the one before, and what was left of the lease. A policy that loads the machine shows.
LEASE_SPEC = StreamSpec(LEASES, ("since_last_s", "left_s"), "s", 10.0, arm_dependent=True)


def action_spec(robot: Robot) -> StreamSpec:
    """The stream of setpoints: each joint and the gripper as requested, limited and sent, and how late it was sent."""
    axes = axes_of(robot)
    parts = [axis.name for axis in axes]
    columns = tuple(f"{stage}.{part}" for stage in ("requested", "limited", "sent") for part in parts)
    columns = (*columns, "delay_s")
    # Not measured at the robot but asked of it: all of its shape is the policy's.
    plain = getattr(robot, "axes", None) is None
    unit = "rad, m, s" if plain else " ".join([*3 * [axis.unit for axis in axes], "s"])
    return StreamSpec(ACTION, columns, unit, robot.control_hz, private_columns=columns)
