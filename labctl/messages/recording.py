"""Messages by which an episode is recorded: what to record, chunks of samples, what the recorder holds.

May not: be lost: what a producer has sent is kept until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from labctl import plain
from labctl.messages import body_parts as parts
from labctl.messages.edits import EditEntry
from labctl.messages.typed import Typed


@dataclass(frozen=True, slots=True)
class Open(Typed):
    """An episode begins to exist. To the recorder with the names of its producers; to a camera with frames: whether any
    arm's policy reads this camera, and inputs: the edits of what policies see, with the seed of what is drawn for them.
    """

    KIND: ClassVar = "open"
    FROM: ClassVar = "run"
    TO: ClassVar = "arm, camera:*, controller, recorder, sensor:*"
    episode: str
    producers: Sequence[str] | None = None
    frames: bool = False
    inputs: Sequence[EditEntry] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Close(Typed):
    """Nothing more is recorded of it."""

    KIND: ClassVar = "close"
    FROM: ClassVar = "run"
    TO: ClassVar = "arm, camera:*, controller, recorder, sensor:*"
    episode: str


@dataclass(frozen=True, slots=True)
class Resend(Typed):
    """After a recorder's restart: declarations, unacknowledged chunks, ends."""

    KIND: ClassVar = "resend"
    FROM: ClassVar = "run"
    TO: ClassVar = "producers"


@dataclass(frozen=True, slots=True)
class ProducerLost(Typed):
    """This producer will end nothing any more."""

    KIND: ClassVar = "lost"
    FROM: ClassVar = "run"
    TO: ClassVar = "recorder"
    name: str


@dataclass(frozen=True, slots=True)
class Declare(Typed):
    """The streams of an episode, as `streams.StreamSpec`s."""

    KIND: ClassVar = "declare"
    FROM: ClassVar = "producers"
    TO: ClassVar = "recorder"
    episode: str
    specs: Sequence[plain.SpecEntry]


@dataclass(frozen=True, slots=True)
class Chunk(Typed):
    """About a second of a stream's samples; n: how many."""

    KIND: ClassVar = "chunk"
    FROM: ClassVar = "producers"
    TO: ClassVar = "recorder"
    ARRAYS: ClassVar = "t_ns, values"
    episode: str
    stream: str
    seq: int
    n: int = 0


@dataclass(frozen=True, slots=True)
class End(Typed):
    """Everything is sent: of each stream chunks and n, and the chunks that were given up."""

    KIND: ClassVar = "end"
    FROM: ClassVar = "producers"
    TO: ClassVar = "recorder"
    episode: str
    sent: Mapping[str, parts.SentEntry]
    gaps: Sequence[parts.GapBody] = ()


@dataclass(frozen=True, slots=True)
class Ack(Typed):
    """A chunk is committed."""

    KIND: ClassVar = "ack"
    FROM: ClassVar = "recorder"
    TO: ClassVar = "producers"
    episode: str
    stream: str
    seq: int


@dataclass(frozen=True, slots=True)
class Opened(Typed):
    """The recorder takes chunks of this episode."""

    KIND: ClassVar = "opened"
    FROM: ClassVar = "recorder"
    TO: ClassVar = "run"
    episode: str


@dataclass(frozen=True, slots=True)
class Closed(Typed):
    """What the episode's recording holds: streams as `TraceStore.seal`, the names of the private ones, gaps, and the
    producers that never ended."""

    KIND: ClassVar = "closed"
    FROM: ClassVar = "recorder"
    TO: ClassVar = "run"
    episode: str
    streams: Mapping[str, parts.StreamEntry]
    private: Sequence[str]
    gaps: Sequence[parts.GapBody]
    silent: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Late(Typed):
    """A chunk came after its recording was sealed; it is not stored."""

    KIND: ClassVar = "late"
    FROM: ClassVar = "recorder"
    TO: ClassVar = "run"
    episode: str
    stream: str
    seq: int = 0
    n: int = 0
