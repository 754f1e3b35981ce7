"""Finds placements and drops in the traces of gripper and tool: what a person would have to watch for otherwise. Pure.

May not: decide an outcome (a person's count is the truth), know an arm of the experiment, or read a trace store.

After the paper's release detector (PhAIL, appendix; methodology.md section 2): an item is held while the gripper stands
still between closed and open; a hold ends in a release when the fingers open from it, or in a slump when they fall
shut, all the way. Fingers that stand again before that, on an item that they came to half open, let nothing fall. Where
the tool was then says what became of the item: target tote, source tote, or neither. Times are the edge's.
A hold that begins where an item lay already is that item again: taken out of the target it is no success any more, put
back into it no second one, and picked up after a drop it was not lost.
A grasp or release that was ordered and that the measured opening does not show is a candidate too: of nothing where
fingers were seen shut, else unknown, since an opening that tells nothing is no proof that nothing was moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from labctl.clock import SECOND
from labctl.messages.body_parts import OUTSIDE, Detected, Judged

STILL_M = 0.0015  # fingers that stay within this band are holding still
HOLD_S = 0.25  # for at least so long
CLOSED_M = 0.004  # a gripper narrower than this holds nothing but a sheet, unless half an item is thinner
RELEASE_M = 0.004  # how far fingers open before it is a release
SLUMP_M = 0.003  # how far they close before it may be a slump
EDGE_S = 0.6  # within which either must show after the hold's last still moment
MOVED_M = 0.10  # a release nearer than this to its grasp put the item back where it was
FREE_M = 0.92  # share of the widest opening seen that counts as open
LIFTED_M = 0.05  # so far above its grasp an item is lifted
OVER_M = 0.30  # above a tote's floor, a tool still counts as over it
ANSWER_S = 1.5  # within which fingers show what they were ordered
GRASP, RELEASE = "ordered grasp", "ordered release"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things go: totes as {name: (centre of the floor (3,), size (3,))} in the base frame, m; the target's name;
    grasp_m: how wide an item is between the fingers, None when nobody said.
    """

    totes: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    target: str
    grasp_m: float | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One end of a hold. edge: "release" or "slump"; zone: a tote's name or "outside"; result: "success", "lost",
    "neutral" (put back, or handled again later) or "unknown" (a hold that began over the target, where no item is known
    to have come); held_s; moved_m: from grasp to edge, in the plane. Or what was ordered and is in no hold: edge GRASP
    or RELEASE, "neutral" where fingers shut on nothing, else "unknown", held_s and moved_m 0. grasped_ns: when the hold
    began; lifted_ns: when the tool had first risen by LIFTED_M since, None where it never had.
    """

    t_ns: int
    edge: str
    zone: str
    result: Judged
    held_s: float
    moved_m: float
    grasped_ns: int | None = None
    lifted_ns: int | None = None

    def body(self) -> Detected:
        """Plain JSON values."""
        return {
            "t_ns": self.t_ns,
            "edge": self.edge,
            "zone": self.zone,
            "result": self.result,
            "held_s": round(self.held_s, 3),
            "moved_m": round(self.moved_m, 4),
            "grasped_ns": self.grasped_ns,
            "lifted_ns": self.lifted_ns,
        }


def detect(
    t_ns: np.ndarray, opening: np.ndarray, tcp: np.ndarray, layout: Layout, ordered: np.ndarray | None = None
) -> list[Candidate]:
    """Candidates in order. t_ns (n,) ascending; opening (n,) m; tcp (n, 3) m, base frame; ordered (n,): the opening
    that stood as ordered at each, m, NaN before the first order. Samples that are not finite are left out; fewer than
    two seconds give none.
    """
    known = np.isfinite(opening) & np.isfinite(tcp).all(axis=1)
    t_ns, opening, tcp = t_ns[known], opening[known], tcp[known]
    if len(t_ns) < 2 or (t_ns[-1] - t_ns[0]) < 2 * SECOND:
        return []
    seconds = (t_ns - t_ns[0]) / SECOND
    found: list[Candidate] = []
    lying: dict[str, list[int]] = {}  # by zone, which candidates left an item there that stands
    holds = _holds(seconds, opening, layout.grasp_m)
    for start, end in holds:
        edge = _edge(seconds, opening, end, _shut(layout.grasp_m))
        if edge is None:
            continue
        kind, at = edge
        moved = float(np.hypot(*(tcp[at, :2] - tcp[start, :2])))
        zone = zone_of(tcp[at], layout)
        result = "success" if zone == layout.target else "lost" if zone == OUTSIDE else "neutral"
        grasped = zone_of(tcp[start], layout)
        again = lying.get(grasped, [])
        if grasped == layout.target == zone:
            result = "neutral" if again else "unknown"
        elif result == "success" and kind == "release" and moved < MOVED_M:
            result = "neutral"
        elif again and grasped in (layout.target, OUTSIDE):
            before = again.pop()
            found[before] = replace(found[before], result="neutral")
        if result in ("success", "lost"):
            lying.setdefault(zone, []).append(len(found))
        held_s = float(seconds[end] - seconds[start])
        risen = np.flatnonzero(tcp[start : at + 1, 2] - tcp[start, 2] >= LIFTED_M)
        lifted = int(t_ns[start + risen[0]]) if len(risen) else None
        found.append(Candidate(int(t_ns[at]), kind, zone, result, held_s, moved, int(t_ns[start]), lifted))
    if ordered is None:
        return found
    shown = [(float(seconds[start]), float(seconds[end])) for start, end in holds]
    more = [
        Candidate(int(t_ns[at]), edge, zone_of(tcp[at], layout), result, 0.0, 0.0)
        for edge, at, result in _ordered(seconds, opening, ordered[known], shown, layout.grasp_m)
    ]
    return sorted([*found, *more], key=lambda one: one.t_ns)


def _ordered(
    seconds: np.ndarray,
    opening: np.ndarray,
    ordered: np.ndarray,
    holds: Sequence[tuple[float, float]],
    grasp_m: float | None,
) -> list[tuple[str, int, Judged]]:
    """Orders to grasp and to release, (edge, sample, result), that no hold shows: a grasp begins one within ANSWER_S, a
    release comes in one or within ANSWER_S of its end. holds: first and last second of each.
    """
    heard = np.flatnonzero(np.isfinite(ordered))
    if not len(heard):
        return []
    shut = _shut(grasp_m)
    limit = 0.5 * float(opening.max()) if grasp_m is None else _widest(grasp_m)
    limit = min(limit, FREE_M * float(ordered[heard].max()))
    closing = ordered[heard] < limit
    found: list[tuple[str, int, Judged]] = []
    grasped = 0.0
    for i in np.flatnonzero(closing[1:] != closing[:-1]) + 1:
        at, grasp = int(heard[i]), bool(closing[i])
        now = float(seconds[at])
        span = (now, now + ANSWER_S) if grasp else (grasped, now)
        grasped = now if grasp else grasped
        if any(
            (now - HOLD_S <= first <= now + ANSWER_S) if grasp else (first <= now <= last + ANSWER_S)
            for first, last in holds
        ):
            continue
        near = opening[(seconds >= span[0]) & (seconds <= span[1])]
        found.append((GRASP if grasp else RELEASE, at, "neutral" if (near <= shut).any() else "unknown"))
    return found


def _shut(grasp_m: float | None) -> float:
    """Fingers this narrow hold nothing, m."""
    return CLOSED_M if grasp_m is None else min(CLOSED_M, 0.5 * grasp_m)


def _widest(grasp_m: float) -> float:
    """Fingers wider than this hold no item of this width, m."""
    return max(2.0 * grasp_m, grasp_m + 0.015)


def _holds(seconds: np.ndarray, opening: np.ndarray, grasp_m: float | None) -> list[tuple[int, int]]:
    """(first, last) samples of every stretch in which the fingers stand still around something, the last perhaps to the
    end of the recording.
    """
    widest = float(opening.max())
    closed = _shut(grasp_m)
    between = (opening > closed) & (opening < FREE_M * widest)
    if grasp_m is not None:
        between &= opening < _widest(grasp_m)
    holds: list[tuple[int, int]] = []
    start: int | None = None
    for i in range(len(opening)):
        still = bool(between[i]) and (start is None or abs(opening[i] - opening[start]) <= STILL_M)
        if still and start is None:
            start = i
        elif not still and start is not None:
            if seconds[i - 1] - seconds[start] >= HOLD_S:
                holds.append((start, i - 1))
            start = i if between[i] else None
    if start is not None and seconds[-1] - seconds[start] >= HOLD_S:
        holds.append((start, len(opening) - 1))
    return holds


def _edge(seconds: np.ndarray, opening: np.ndarray, end: int, shut: float) -> tuple[str, int] | None:
    """How a hold ended, and at which sample: None when the recording or the grip went on otherwise."""
    held = float(opening[end])
    last = int(np.searchsorted(seconds, float(seconds[end]) + EDGE_S, side="right"))
    for i in range(end + 1, last):
        if opening[i] - held >= RELEASE_M:
            return "release", i
        if held - opening[i] >= min(SLUMP_M, 0.5 * held):
            return ("slump", i) if _falls_shut(seconds, opening, i, shut) else None
    return None


def _falls_shut(seconds: np.ndarray, opening: np.ndarray, start: int, shut: float) -> bool:
    """Do fingers that close from sample `start` on come all the way to `shut`, m, before they stand?"""
    lowest, since = float(opening[start]), float(seconds[start])
    for i in range(start, len(opening)):
        if opening[i] <= shut:
            return True
        if opening[i] < lowest - STILL_M:
            lowest, since = float(opening[i]), float(seconds[i])
        elif seconds[i] - since >= HOLD_S:
            return False
    return False


def zone_of(point: np.ndarray, layout: Layout) -> str:
    """The tote that a point is over, or "outside"."""
    for name, (centre, size) in layout.totes.items():
        inside = np.abs(point[:2] - np.asarray(centre)[:2]) <= np.asarray(size)[:2] / 2
        if inside.all() and point[2] <= centre[2] + OVER_M:
            return name
    return OUTSIDE
