"""What a hand asks of the gripper, and when it may: nothing is let go because somebody let go of the device. Pure.

May not: read a device or a clock, or ask for anything that the hand has not taken over from what the gripper was asked
for before.
"""

from __future__ import annotations

from collections import deque

from labctl.clock import SECOND

LET_GO_NS = SECOND // 5  # a trigger that is let go passes through "open" on its way: longer than its spring takes
NEAR_M = 0.006  # a trigger that stands so near to what the gripper was asked for has it


class Grip:
    """The opening that one hand asks for, m, or whatever unit all of it is in. closed_m, open_m: at a grip of 0 and of
    1. near: a trigger that stands so near to what was asked for has it.

    trigger: clutch and gripper are one trigger (a leader's), so that letting go of it looks like opening: an opening
    counts once the clutch has outlasted it by `LET_GO_NS`; closing counts at once.

    While the clutch is not held the opening stays as it was asked for last. When it takes hold again it stays until the
    hand's own comes to it or passes it; a button that is pressed for the first time counts at once.
    """

    def __init__(self, closed_m: float, open_m: float, *, trigger: bool, near: float = NEAR_M) -> None:
        self._closed_m, self._open_m, self._trigger, self._near = closed_m, open_m, trigger, near
        self._held_m: float | None = None
        self._before: float | None = None  # the hand's own, None before there was one since the clutch took hold
        self._has = False  # the hand's own is what is asked for
        self._silent = False  # the hand has a button for the gripper, and has not pressed it yet
        self._recent: deque[tuple[int, float]] = deque()

    def hear(self, grip: float | None) -> None:
        """What a reading said before the hand drives: a button that is pressed from then on counts."""
        self._silent = self._silent or grip is None

    @property
    def silent(self) -> bool:
        """The hand has a button for the gripper, and none of its presses has counted yet."""
        return self._silent

    def opposite(self, measured_m: float) -> float:
        """What a button asks for that opens and closes by turns: 0 where the gripper is rather open as it was asked for
        last, else 1.
        """
        held = measured_m if self._held_m is None else self._held_m
        return 0.0 if abs(held - self._open_m) < abs(held - self._closed_m) else 1.0

    def hold(self, opening_m: float) -> None:
        """Somebody else has asked for this opening; the hand may take over from there."""
        self._held_m, self._has = opening_m, False
        self._release()

    def asks(self, grip: float | None, measured_m: float, now_ns: int, *, engaged: bool) -> float:
        """The opening to ask for, m. grip: of the hand's reading, None when it has said nothing; measured_m counts
        before anybody has asked for anything.
        """
        if self._held_m is None:
            self._held_m = measured_m
        if grip is None:
            self._silent = True
        if not engaged:
            self._release()
        elif grip is not None:
            own = self._closed_m + grip * (self._open_m - self._closed_m)
            self._has = self._has or self._takes(own)
            self._before, self._silent = own, False
            if self._has:
                self._held_m = self._most_closed(own, now_ns) if self._trigger else own
        return self._held_m

    def _takes(self, own: float) -> bool:
        before, held = self._before, self._held_m
        assert held is not None
        passed = before is not None and before != own and min(before, own) <= held <= max(before, own)
        return self._silent or passed or abs(own - held) <= self._near

    def _most_closed(self, own: float, now_ns: int) -> float:
        self._recent.append((now_ns, own))
        while self._recent and now_ns - self._recent[0][0] > LET_GO_NS:
            self._recent.popleft()
        return min(opening for _, opening in self._recent)

    def _release(self) -> None:
        self._has, self._before = False, None
        self._recent.clear()
