"""A campaign's samples for whoever asks for the same streams again and again, as the parts of a report do, one episode
after the other: what was read of an episode is not read again.

May not: write, or keep anything of an episode before, or more than `MOST_BYTES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from labctl.store import chunks
from labctl.streams import StreamSpec

MOST_BYTES = 256_000_000  # some minutes of two robots at 1 kHz

Read = tuple[np.ndarray, np.ndarray]


class Samples(Protocol):
    """What a report asks of `TraceStore`, in the same words."""

    def streams(self, episode: str) -> Sequence[StreamSpec]: ...

    def read(self, episode: str, stream: str) -> Read: ...


class Unpacked:
    """Samples of one episode whose chunks were unpacked already."""

    def __init__(self, specs: Sequence[StreamSpec], read: Mapping[str, Sequence[chunks.Samples]]) -> None:
        """read: those of each chunk, by stream, in order."""
        self._specs, self._read = {spec.name: spec for spec in specs}, read

    def streams(self, episode: str) -> Sequence[StreamSpec]:
        """As `TraceStore.streams`."""
        return list(self._specs.values())

    def read(self, episode: str, stream: str) -> Read:
        """As `TraceStore.read`."""
        if stream not in self._specs:
            raise ValueError(f"episode {episode} has no declared stream {stream!r}")
        return chunks.together(self._specs[stream], self._read.get(stream, ()))


class ReadOnce:
    """Samples of a store that is not written to meanwhile. The arrays it returns are read-only.

    When another episode is asked for, the one before is let go. When a stream does not fit, the one that was read
    longest ago is dropped.
    """

    def __init__(self, store: Samples, most_bytes: int = MOST_BYTES) -> None:
        self._store, self._most, self._held = store, most_bytes, 0
        self._episode: str = ""
        self._streams: Sequence[StreamSpec] | None = None
        self._read: dict[str, Read] = {}

    def streams(self, episode: str) -> Sequence[StreamSpec]:
        """As `TraceStore.streams`."""
        self._turn_to(episode)
        if self._streams is None:
            self._streams = self._store.streams(episode)
        return self._streams

    def read(self, episode: str, stream: str) -> Read:
        """As `TraceStore.read`. A stream that could not be read is read again."""
        self._turn_to(episode)
        found = self._read.pop(stream, None)
        if found is None:
            found = self._store.read(episode, stream)
            self._held += _size(found)
            for array in found:
                array.flags.writeable = False
        self._read[stream] = found
        while self._held > self._most:
            longest_ago = next(iter(self._read))
            self._held -= _size(self._read.pop(longest_ago))
        return found

    def _turn_to(self, episode: str) -> None:
        if episode != self._episode:
            self._episode = episode
            self._held = 0
            self._streams = None
            self._read.clear()


def _size(read: Read) -> int:
    return sum(array.nbytes for array in read)
