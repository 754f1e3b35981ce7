"""Which key presses a person meant: not the second of a bounce, not a repeat, not one for a screen that was not seen
yet, not pasted text. Pure.

May not: read a clock, or know what a key does.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from labctl.clock import MILLISECOND

SEEN_NS = 300 * MILLISECOND  # nobody reads a screen or presses a key again on purpose within less
PASTED_NS = 20 * MILLISECOND  # nor two keys: a terminal that does not mark pasted text sends it so
PASTED = "keys that come all at once do nothing: pasted text never acts"


@dataclass(frozen=True, slots=True)
class Press:
    """A press of a key. again: the same key came just before; unseen: what the screen offers has just changed;
    pasted: another key came with it.
    """

    key: str = ""
    again: bool = False
    unseen: bool = False
    pasted: bool = False

    def refusal(self, *, order: bool = False) -> str:
        """Why it does nothing, "" when a person meant it. order: of motion or a reveal."""
        if self.pasted:
            return PASTED
        if self.again:
            return f"{self.key} came twice within {SEEN_NS // MILLISECOND} ms: the second did nothing; press it again"
        if self.unseen and order:
            return f"the screen has just changed: {self.key} did nothing; read it and press again"
        return ""


class Presses:
    """When each key came last, and since when the screen offers what it offers. Times are monotonic ns."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._any_ns = self._shown_ns = -SEEN_NS
        self._shown: Hashable = None

    def shown(self, offer: Hashable, now_ns: int) -> None:
        """The screen shows this offer now."""
        if offer != self._shown:
            self._shown, self._shown_ns = offer, now_ns

    def take(self, key: str, at_ns: int) -> Press:
        """A key came."""
        press = Press(
            key.upper(),
            again=at_ns - self._last.get(key, at_ns - SEEN_NS) < SEEN_NS,
            unseen=at_ns - self._shown_ns < SEEN_NS,
            pasted=at_ns - self._any_ns < PASTED_NS,
        )
        self._last[key] = self._any_ns = at_ns
        return press
