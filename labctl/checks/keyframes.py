"""Keyframes that an episode's own traces mark: where something was grasped and let go, where stages were reached, and
where the tool's motion changed most.

May not: look at a picture, ask anybody, or know what an arm is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from labctl.clock import SECOND
from labctl.messages.body_parts import Detected

Mark = Literal["go", "grasp", "release", "stage", "change", "even", "end"]
BESIDE_S = 0.5  # a keyframe stands so long beside its mark: before a hand closes or opens, after a stage is reached
APART_S = 0.4  # of two keyframes nearer than this the second is left out
CHANGE_S = 0.5  # the tool's velocity before and after a moment is taken over so long


@dataclass(frozen=True, slots=True)
class Hold:
    """Something was between the fingers, from and to (ns). clear: it was an item that came from elsewhere than the
    target tote.
    """

    from_ns: int
    to_ns: int
    clear: bool = True


@dataclass(frozen=True, slots=True)
class Keyframe:
    """A moment (ns) at which something is asked, and what marks it."""

    t_ns: int
    mark: Mark


def holds_of(detected: Sequence[Detected], target: str) -> list[Hold]:
    """The holds that the detector found; of recordings that do not say when one began, by how long it was. target: the
    tote that items go to.
    """
    return [
        Hold(
            one.get("grasped_ns") or one["t_ns"] - round(one["held_s"] * SECOND),
            one["t_ns"],
            one["result"] in ("success", "lost") or (one["result"] == "neutral" and one["zone"] != target),
        )
        for one in detected
        if one["held_s"] > 0  # an order that is in no hold is none
    ]


def keyframes(
    go_ns: int,
    end_ns: int,
    holds: Sequence[Hold],
    reached_ns: Sequence[int],
    t_ns: np.ndarray,
    tool: np.ndarray,
) -> list[Keyframe]:
    """In order, within the episode: go, before every grasp and release, after every stage, and the largest change of
    the tool's velocity among all that is left. t_ns (n,), tool (n, 3) m: where the tool was.
    """
    beside = round(BESIDE_S * SECOND)
    wanted = [Keyframe(go_ns + beside, "go")]
    wanted += [Keyframe(at, "stage") for one in reached_ns if (at := one + beside) <= end_ns]
    for hold in holds:
        wanted += [Keyframe(hold.from_ns - beside, "grasp"), Keyframe(hold.to_ns - beside, "release")]
    kept: list[Keyframe] = []
    for one in wanted:
        if go_ns < one.t_ns < end_ns and _apart(one.t_ns, kept):
            kept.append(one)
    at_ns = _change(t_ns, tool, go_ns, end_ns, kept)
    if at_ns is not None:
        kept.append(Keyframe(at_ns, "change"))
    return sorted(kept, key=lambda one: one.t_ns)


def _apart(t_ns: int, kept: Sequence[Keyframe]) -> bool:
    return all(abs(t_ns - other.t_ns) >= APART_S * SECOND for other in kept)


def _change(t_ns: np.ndarray, tool: np.ndarray, go_ns: int, end_ns: int, kept: Sequence[Keyframe]) -> int | None:
    """Where the tool's velocity changes most, away from the keyframes there are; None where it does not."""
    step = round(CHANGE_S * SECOND)
    grid = np.arange(go_ns + step, end_ns - step + 1, step // 5, dtype=np.int64)
    if not len(grid) or not len(t_ns):
        return None
    before, now, after = (
        np.column_stack([np.interp(grid + shift, t_ns, tool[:, axis]) for axis in range(3)])
        for shift in (-step, 0, step)
    )
    change = np.linalg.norm(after - 2 * now + before, axis=1) / CHANGE_S
    free = np.array([_apart(int(at), kept) for at in grid])
    change[~free] = 0.0
    best = int(np.argmax(change))
    return int(grid[best]) if change[best] > 1e-6 else None
