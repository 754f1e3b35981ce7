"""A campaign's samples for whoever asks for the same streams again and again, as the parts of a report do: what was
read a moment ago is not read again.

May not: write, or keep more than `MOST_BYTES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from labctl.streams import StreamSpec

MOST_BYTES = 256_000_000  # some hours of a robot

Read = tuple[np.ndarray, np.ndarray]


class Samples(Protocol):
    """What a report asks of `TraceStore`, in the same words."""

    def streams(self, episode: str) -> Sequence[StreamSpec]: ...

    def read(self, episode: str, stream: str) -> Read: ...


class ReadOnce:
    """Samples of a store that is not written to meanwhile. The arrays it returns are read-only.

    When a stream does not fit, the one that was read longest ago is dropped: reports read in the order of episodes.
    """

    def __init__(self, store: Samples, most_bytes: int = MOST_BYTES) -> None:
        self._store, self._most, self._held = store, most_bytes, 0
        self._streams: dict[str, Sequence[StreamSpec]] = {}
        self._read: dict[tuple[str, str], Read] = {}

    def streams(self, episode: str) -> Sequence[StreamSpec]:
        """As `TraceStore.streams`."""
        if episode not in self._streams:
            self._streams[episode] = self._store.streams(episode)
        return self._streams[episode]

    def read(self, episode: str, stream: str) -> Read:
        """As `TraceStore.read`. A stream that could not be read is read again."""
        key = (episode, stream)
        found = self._read.pop(key, None)
        if found is None:
            found = self._store.read(episode, stream)
            self._held += _size(found)
            for array in found:
                array.flags.writeable = False
        self._read[key] = found
        while self._held > self._most:
            longest_ago = next(iter(self._read))
            self._held -= _size(self._read.pop(longest_ago))
        return found


def _size(read: Read) -> int:
    return sum(array.nbytes for array in read)
