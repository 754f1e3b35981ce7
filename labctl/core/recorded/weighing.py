"""Steps in what a sensor measured, as a witness of items that came to a tote or went from it. Pure.

May not: decide an outcome, know an arm of the experiment, or read a trace store.

A value stands while it stays within a third of the least step for STANDS_S; two levels at which it stood that differ by
the least step or more are a step, at the time at which it was half-way. A step up that comes after the detector's own
release over that tote confirms it; one that nothing in the robot's trace shows is a candidate by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.clock import SECOND
from labctl.messages.body_parts import DOWN, UP, Detected, Judged

STANDS_S = 0.3
BAND = 3.0  # a level is this part of the step wide
BEFORE_S, AFTER_S = 0.5, 2.5  # how long before and after a release over the tote its step may come


@dataclass(frozen=True, slots=True)
class Weighed:
    """One step: when, and by how much, in the sensor's unit."""

    t_ns: int
    change: float


def steps(t_ns: np.ndarray, values: np.ndarray, least: float) -> list[Weighed]:
    """The steps of at least `least` in values (n,) at t_ns (n,) ascending, in order. What is no number is left out."""
    known = np.isfinite(values)
    t_ns, values = t_ns[known], values[known]
    found: list[Weighed] = []
    before: tuple[int, float] | None = None  # the last sample of the level before, and the level
    for first, last in _standing(t_ns, values, least / BAND):
        level = float(np.median(values[first : last + 1]))
        if before is not None and abs(level - before[1]) >= least:
            middle, way = (level + before[1]) / 2, np.sign(level - before[1])
            between = np.arange(before[0], first + 1)
            past = between[(values[between] - middle) * way >= 0]
            found.append(Weighed(int(t_ns[past[0]] if len(past) else t_ns[first]), level - before[1]))
        if before is None or abs(level - before[1]) >= least:
            before = (last, level)
        else:
            before = (last, before[1])  # it drifts: the level that counts is where it stood after the last step
    return found


def _standing(t_ns: np.ndarray, values: np.ndarray, band: float) -> list[tuple[int, int]]:
    """(first, last) sample of every stretch in which the values stay within a band around where it begins."""
    found: list[tuple[int, int]] = []
    first = 0
    for i in range(1, len(values) + 1):
        if i < len(values) and abs(values[i] - values[first]) <= band:
            continue
        if t_ns[i - 1] - t_ns[first] >= STANDS_S * SECOND:
            found.append((first, i - 1))
        first = i
    return found


def witnessed(
    detected: Sequence[Detected], seen: Sequence[Weighed], *, by: str, tote: str, target: str
) -> list[Detected]:
    """The detector's candidates, those that the sensor `by` under `tote` confirms marked with its name, and one of its
    own for each step that none of them explains: up in the target a success, in another tote neutral; down unknown,
    since it does not tell an item that was taken out from a hand that was taken off.
    """
    found = list(detected)
    own: list[Detected] = []
    for step in seen:
        at = _explains(found, step, by, tote) if step.change > 0 else None
        if at is not None:
            found[at] = {**found[at], "witnesses": [*found[at].get("witnesses", ()), by]}
            continue
        result: Judged = "unknown" if step.change < 0 else "success" if tote == target else "neutral"
        edge = UP if step.change > 0 else DOWN
        own.append(
            {
                "t_ns": step.t_ns,
                "edge": edge,
                "zone": tote,
                "result": result,
                "held_s": 0.0,
                "moved_m": 0.0,
                "witnesses": [by],
            }
        )
    return sorted([*found, *own], key=lambda one: one["t_ns"])


def _explains(found: Sequence[Detected], step: Weighed, by: str, tote: str) -> int | None:
    """The candidate over the tote nearest before a step (a little after it, where clocks differ), not taken yet."""
    near = [
        (abs(step.t_ns - one["t_ns"]), i)
        for i, one in enumerate(found)
        if one["zone"] == tote
        and by not in one.get("witnesses", ())
        and -BEFORE_S * SECOND <= step.t_ns - one["t_ns"] <= AFTER_S * SECOND
    ]
    return min(near)[1] if near else None
