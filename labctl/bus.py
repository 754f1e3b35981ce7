"""Messages between nodes, and their bytes on a wire. May not: know sockets, processes or what a message means.

A message is addressed to one node ("run", "recorder", "arm", "controller", "camera:NAME") or published on a topic
("@obs", "@lease", "@state", "@preview", "@frames"). Small facts travel in `body` (JSON), samples in `arrays` (numpy,
little-endian).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # whoever reads a journal sends no arrays, and does not wait for numpy
    import numpy as np

Body = Mapping[str, Any]


@dataclass(slots=True)
class Message:
    """One message. `to` is a node name or a "@topic"; `sender` the node that made it; `kind` says what it is."""

    to: str
    kind: str
    body: Body = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    sender: str = ""


@dataclass(slots=True)
class Work:
    """A blocking call to run off the node's loop. Its result comes back as a message of kind `kind` with `result` or
    `error` in the body.

    modelled_ns: how long it takes under a manual clock, given the result (a real host measures instead).
    alone: it may never return, so it has a thread to itself.
    """

    call: Callable[[], Any]
    kind: str
    modelled_ns: Callable[[Any], int] = lambda result: 0
    tag: str = ""
    alone: bool = False


@dataclass(slots=True)
class Step:
    """What a node wants after a step: messages to send, calls to run beside it, when to be woken (None: by mail only),
    and why mail was refused, a line each.
    """

    out: list[Message] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    due_ns: int | None = None
    refused: list[str] = field(default_factory=list)


class Node(Protocol):
    """A plain object with a mailbox. It knows nothing of sockets, processes or real time.

    `topics` are the topics it subscribes to. `step` gets the time and the mail since the last step, in order of
    arrival.
    """

    name: str

    @property
    def topics(self) -> tuple[str, ...]: ...

    def step(self, now_ns: int, inbox: list[Message]) -> Step: ...


def encode(message: Message) -> list[bytes]:
    """Frames of a message: a JSON header, then each array's raw little-endian bytes."""
    import numpy as np

    arrays = {name: np.ascontiguousarray(value) for name, value in message.arrays.items()}
    header = {
        "to": message.to,
        "kind": message.kind,
        "from": message.sender,
        "body": message.body,
        "arrays": [[name, value.dtype.newbyteorder("<").str, list(value.shape)] for name, value in arrays.items()],
    }
    frames = [json.dumps(header, separators=(",", ":"), allow_nan=True).encode()]
    frames += [value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes() for value in arrays.values()]
    return frames


def joined(frames: list[bytes]) -> bytes:
    """The frames of a message as one block of bytes, for a socket that keeps only its newest block; see `parted`."""
    sizes = json.dumps([len(frame) for frame in frames]).encode()
    return b"".join([len(sizes).to_bytes(4, "little"), sizes, *frames])


def parted(block: bytes | memoryview) -> list[bytes]:
    """The frames that `joined` made one block of. Raises ValueError when they are not all there."""
    view = memoryview(block)
    begin = 4 + int.from_bytes(view[:4], "little")
    frames = []
    try:
        for size in json.loads(bytes(view[4:begin])):
            frames.append(view[begin : begin + size])
            begin += size
    except (TypeError, RecursionError) as error:
        raise ValueError(f"a block without the sizes of its frames: {error}") from None
    if begin != len(view) or not frames:
        raise ValueError(f"a block of {len(view)} bytes announced {begin}")
    return [bytes(frames[0]), *frames[1:]]  # pyright: ignore[reportReturnType]


def decode(frames: list[bytes]) -> Message:
    """The message of some frames. Raises ValueError when they are not a message."""
    import numpy as np

    try:
        header = json.loads(frames[0])
        to, kind, body, sender, specs = (header[name] for name in ("to", "kind", "body", "from", "arrays"))
        if len(specs) != len(frames) - 1:
            raise ValueError(f"a message announced {len(specs)} arrays and carried {len(frames) - 1}")
        arrays = {
            name: np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape)
            for (name, dtype, shape), raw in zip(specs, frames[1:], strict=True)
        }
        for text in (to, kind, sender):
            text.encode()  # an address that UTF-8 cannot write could not be answered
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, SyntaxError) as error:
        raise ValueError(f"no message: {type(error).__name__}: {error}") from None
    if not isinstance(body, dict):
        raise ValueError(f"no message: its body is {ascii(body)[:80]}")
    return Message(to, kind, body, arrays, sender)
