"""What is missing of a camera's frames, as gaps of its stream: dropped by the device, lost, given up here, or not come
when they were due.

May not: see a picture, or hide a frame that is missing; gaps close together are reported as one with their count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from labctl.clock import MILLISECOND, SECOND
from labctl.messages.body_parts import GapBody

FINEST_NS = 1000  # a video's times are whole microseconds
JOIN_NS = SECOND  # missing frames of one cause, closer together than this, are one gap …
LONGEST_NS = 10 * SECOND  # … unless it is this long: what goes on for ever is reported now and then
DROPPED = "dropped by the device"
BEHIND = "the encoder was behind"
AGAIN = "the device delivered a frame again"
BACK = "the device's count of frames went back"
STILL = "the device's frames did not advance in time"
NOT_COME = "no frame came when one was due by the camera's rate"
FOLLOWS = 0.25  # by so much of what a frame is off the times when frames are due follow it: a tenth of a rate is none
CLOCKS_NS = SECOND  # a device's clock that went on by so much more or less than the host's was set anew


@dataclass(slots=True)
class _Open:
    """A gap that may still grow. `awaiting` its end: the next frame that is kept closes the gap."""

    from_ns: int
    to_ns: int
    lost: int | None = 0
    holes: int = 0
    awaiting: bool = False


class Due:
    """When frames of a camera that does not count its own are due, one period of its rate after another."""

    def __init__(self, rate_hz: float) -> None:
        self._period_ns = SECOND / rate_hz
        self._off_ns = 0.0  # the last frame, from when it was due
        self._last: tuple[int, float, str] | None = None

    def missing(self, host_ns: int, device_ms: float, domain: str) -> int:
        """How many were due between the last frame and this one; -1 for one that comes in the place of another: one of
        those that seemed to be missing was late. By the device's clock, `domain`, where it has one (ms, else NaN).
        """
        last, self._last = self._last, (host_ns, device_ms, domain)
        if last is None:
            return 0
        went_ns = host_ns - last[0]
        by_device_ns = (device_ms - last[1]) * MILLISECOND if domain == last[2] else math.nan
        if abs(by_device_ns - went_ns) < CLOCKS_NS:
            went_ns = by_device_ns
        off_ns = self._off_ns + went_ns
        places = max(0, round(off_ns / self._period_ns))
        self._off_ns = (off_ns - places * self._period_ns) * (1 - FOLLOWS)
        return places - 1


class FrameGaps:
    """Looks at every frame of an episode in order. `due` gives the gaps that are complete, as bodies of Gap events."""

    def __init__(self, stream: str, from_ns: int) -> None:
        self._stream = stream
        self._number: int | None = None
        self._kept_ns = from_ns  # the last frame kept, or the episode's opening
        self._first = True
        self._open: dict[str, _Open] = {}
        self._reported_ns: dict[str, int] = {}  # up to when a cause was reported

    def keeps(self, number: int, host_ns: int, missing: int = 0) -> bool:
        """Is a frame to be recorded? Not when it was before, or its time does not advance. A gap before it is noted.

        number: the device's count; host_ns: its time on receipt; missing: before it, by the times of frames (`Due`).
        """
        before, self._number = self._number, number
        self._by_time(host_ns, missing, counted=0 if before is None else max(0, number - before - 1))
        if not self._first and host_ns < self._kept_ns + FINEST_NS:
            self._hole(STILL, self._kept_ns, 1)
            return False
        if before is not None and number == before:
            self._hole(AGAIN, host_ns, 0)
            return False
        if before is not None and number < before:
            self._hole(BACK, host_ns, None)
        elif before is not None and number > before + 1:
            self._hole(DROPPED, host_ns, number - before - 1)
        return True

    def _by_time(self, host_ns: int, missing: int, counted: int) -> None:
        """What did not come in time, but for what the count says of it; one that came late is not missing."""
        if missing > counted:
            self._hole(NOT_COME, host_ns, missing - counted)
        elif missing < 0 and (gap := self._open.get(NOT_COME)) is not None and gap.lost:
            gap.lost -= 1
            gap.holes = min(gap.holes, gap.lost)
            if not gap.lost:
                del self._open[NOT_COME]

    def kept(self, host_ns: int) -> None:
        """A frame was handed to the encoder."""
        for gap in self._open.values():
            if gap.awaiting:
                gap.to_ns, gap.awaiting = host_ns, False
        self._kept_ns, self._first = host_ns, False

    def given_up(self, host_ns: int, why: str = BEHIND) -> None:
        """A frame was not encoded: the encoder had no room for it, or there is no encoder any more (why)."""
        gap = self._hole(why, host_ns, 1)
        gap.awaiting = True

    def never_encoded(self, from_ns: int, to_ns: int, frames: int, why: str) -> None:
        """Frames that the encoder took after the one at from_ns are in no file, and none will be."""
        gap = self._hole(why, to_ns, frames)
        gap.from_ns = min(gap.from_ns, from_ns)
        gap.awaiting = True

    def lost(self, to_ns: int, rate_hz: float, why: str) -> None:
        """The camera was lost after the last frame and is back at to_ns: what it would have sent is missing.

        Its count may begin anew.
        """
        missing = max(0, round((to_ns - self._kept_ns) / SECOND * rate_hz) - 1)
        self._hole(why, to_ns, missing)
        self._number = None

    def due(self, now_ns: int, *, force: bool = False) -> list[GapBody]:
        """The gaps that are over, once each; with `force` all of them. [{stream, from_ns, to_ns, lost, why, holes}]"""
        found: list[GapBody] = []
        for why, gap in list(self._open.items()):
            if force or now_ns - gap.to_ns > JOIN_NS or now_ns - gap.from_ns > LONGEST_NS:
                del self._open[why]
                self._reported_ns[why] = gap.to_ns
                body = GapBody(stream=self._stream, from_ns=gap.from_ns, to_ns=gap.to_ns, lost=gap.lost, why=why)
                found.append({**body, "holes": gap.holes})
        return found

    def _hole(self, why: str, to_ns: int, lost: int | None) -> _Open:
        gap = self._open.setdefault(why, _Open(max(self._kept_ns, self._reported_ns.get(why, 0)), to_ns))
        gap.to_ns = max(gap.to_ns, to_ns)
        gap.holes += not gap.awaiting
        gap.lost = None if gap.lost is None or lost is None else gap.lost + lost
        return gap
