"""What is worth an alert, from the state that a run shows its consoles. Pure.

May not: see anything but that state, which names no arm, or read a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from labctl.config.alerts import AlertKind
from labctl.core.events import STOP_BY_HAND
from labctl.core.published_state import PublishedState

LONGEST = 240  # bytes of a hold's text in UTF-8: a brief has to fit into one line of a pipe
MOST_HOLDS = 8
EVERY_TRIAL = frozenset({"photographing", "no_session", "sealing"})  # holds that are no news
FAULTS = frozenset({"cell_faulted", "arm_fault", "arm_safety_stop"})


@dataclass(frozen=True, slots=True)
class Alert:
    """One message to people elsewhere."""

    kind: AlertKind
    title: str
    text: str


class HoldSeen(TypedDict):
    """A hold that stands. personal: a named person has to clear it."""

    code: str
    text: str
    personal: bool


class Brief(TypedDict):
    """What of a published state is watched."""

    holds: list[HoldSeen]
    campaign: str
    cell: str
    session: str | None
    block: int | None
    blocks: int
    progress: list[int]


def brief_of(state: PublishedState) -> Brief:
    """Holds, and how far the campaign is."""
    holds: list[HoldSeen] = [
        {
            "code": hold["code"],
            "text": hold["text"].encode(errors="replace")[:LONGEST].decode(errors="ignore"),
            "personal": hold["needs_person"],
        }
        for hold in state["holds"][:MOST_HOLDS]
    ]
    return {
        "holds": holds,
        "campaign": state["campaign"],
        "cell": state["cell"],
        "session": state["session"],
        "block": state["block"],
        "blocks": state["blocks"],
        "progress": state["progress"],
    }


class Watch:
    """Compares each brief with the one before. hold_s: how long a hold stands before it is sent; what only a named
    person clears is sent at once. Times are seconds of one clock.
    """

    def __init__(self, hold_s: float) -> None:
        self._hold_s = hold_s
        self._last: Brief | None = None
        self._due: dict[str, tuple[float, str]] = {}  # code -> when it is sent, its text
        self._sent: set[str] = set()
        self._night_sent = False

    @property
    def next_due_s(self) -> float | None:
        """When `ripe` has something to say next; None while no hold waits."""
        return min((due for due, _ in self._due.values()), default=None)

    def hear(self, brief: Brief, now_s: float) -> list[Alert]:
        """The alerts that a new brief gives at once."""
        before, self._last = self._last, brief
        found: list[Alert] = []
        standing = {hold["code"]: hold for hold in brief["holds"] if hold["code"] not in EVERY_TRIAL}
        for code in [code for code in (*self._due, *self._sent) if code not in standing]:
            self._due.pop(code, None)
            self._sent.discard(code)
        for code, hold in standing.items():
            if code not in self._sent and code not in self._due:
                wait_s = 0.0 if hold["personal"] else self._hold_s
                self._due[code] = (now_s + wait_s, hold["text"])
        found += self.ripe(now_s)
        if before is not None:
            found += self._block(before, brief) + self._night(before, brief)
        return found

    def ripe(self, now_s: float) -> list[Alert]:
        """The holds that have stood long enough by now."""
        found = []
        for code, (due_s, text) in list(self._due.items()):
            if due_s <= now_s:
                del self._due[code]
                self._sent.add(code)
                found.append(self._alert(_kind(code), text))
        return found

    def over(self, end_seen: bool) -> list[Alert]:
        """The run has ended. end_seen: it said so itself; else its process just vanished."""
        if self._last is None:
            return []
        if not end_seen:
            return [self._alert("fault", "the run process is gone; labctl run concludes what it left")]
        return [] if self._night_sent else [self._alert("night", f"the run ended: {self._far()}")]

    def _block(self, before: Brief, brief: Brief) -> list[Alert]:
        if before["block"] is None or brief["block"] == before["block"] or before["progress"] == brief["progress"]:
            return []
        return [self._alert("block", f"block {before['block'] + 1} of {brief['blocks']} is done: {self._far()}")]

    def _night(self, before: Brief, brief: Brief) -> list[Alert]:
        if brief["session"] is not None:
            self._night_sent = False
        if before["session"] is None or brief["session"] is not None:
            return []
        self._night_sent = True
        return [self._alert("night", f"the session ended: {self._far()}")]

    def _far(self) -> str:
        assert self._last is not None
        done, of = self._last["progress"]
        return f"{done} of {of} trials finished"

    def _alert(self, kind: AlertKind, text: str) -> Alert:
        assert self._last is not None
        return Alert(kind, f"labctl {self._last['cell']}, {self._last['campaign']}: {kind}", text)


def _kind(code: str) -> AlertKind:
    cause = code.partition("unacknowledged:")[2]
    if cause == STOP_BY_HAND:
        return "stop"
    return "fault" if cause or code in FAULTS else "hold"
