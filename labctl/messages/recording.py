"""Messages by which an episode is recorded: what to record, chunks of samples, what the recorder holds.

May not: be lost: what a producer has sent is kept until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl import plain
from labctl.messages import body_parts as parts
from labctl.messages.edits import EditEntry
from labctl.messages.typed import Typed


@dataclass(frozen=True, slots=True)
class Open(Typed, kind="open", sender="run", to="arm, camera:*, controller, recorder, sensor:*"):
    """An episode begins to exist. To the recorder with the names of its producers; to a camera with frames: whether any
    arm's policy reads this camera, and inputs: the edits of what policies see, with the seed of what is drawn for them.
    """

    episode: str
    producers: Sequence[str] | None = None
    frames: bool = False
    inputs: Sequence[EditEntry] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Close(Typed, kind="close", sender="run", to="arm, camera:*, controller, recorder, sensor:*"):
    """Nothing more is recorded of it."""

    episode: str


@dataclass(frozen=True, slots=True)
class Resend(Typed, kind="resend", sender="run", to="producers"):
    """After a recorder's restart: declarations, unacknowledged chunks, ends."""


@dataclass(frozen=True, slots=True)
class ProducerLost(Typed, kind="lost", sender="run", to="recorder"):
    """This producer will end nothing any more."""

    name: str


@dataclass(frozen=True, slots=True)
class Declare(Typed, kind="declare", sender="producers", to="recorder"):
    """The streams of an episode, as `streams.StreamSpec`s."""

    episode: str
    specs: Sequence[plain.SpecEntry]


@dataclass(frozen=True, slots=True)
class Chunk(Typed, kind="chunk", sender="producers", to="recorder", arrays="t_ns, values"):
    """About a second of a stream's samples; n: how many."""

    episode: str
    stream: str
    seq: int
    n: int = 0


@dataclass(frozen=True, slots=True)
class End(Typed, kind="end", sender="producers", to="recorder"):
    """Everything is sent: of each stream chunks and n, and the chunks that were given up."""

    episode: str
    sent: Mapping[str, parts.SentEntry]
    gaps: Sequence[parts.GapBody] = ()


@dataclass(frozen=True, slots=True)
class Ack(Typed, kind="ack", sender="recorder", to="producers"):
    """A chunk is committed."""

    episode: str
    stream: str
    seq: int


@dataclass(frozen=True, slots=True)
class Opened(Typed, kind="opened", sender="recorder", to="run"):
    """The recorder takes chunks of this episode."""

    episode: str


@dataclass(frozen=True, slots=True)
class Closed(Typed, kind="closed", sender="recorder", to="run"):
    """What the episode's recording holds: streams as `TraceStore.seal`, the names of the private ones, gaps, and the
    producers that never ended."""

    episode: str
    streams: Mapping[str, parts.StreamEntry]
    private: Sequence[str]
    gaps: Sequence[parts.GapBody]
    silent: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Late(Typed, kind="late", sender="recorder", to="run"):
    """A chunk came after its recording was sealed; it is not stored. private: of a stream that tells arms apart."""

    episode: str
    stream: str
    seq: int = 0
    n: int = 0
    private: bool = False
