"""How a device's own clock runs beside the host's: offset, drift, the jitter that is left, and where it was reset.

May not: correct anything. Both times are kept as they were measured; this only says how they agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labctl.clock import SECOND
from labctl.messages.body_parts import Clock
from labctl.plain import count

if TYPE_CHECKING:  # whoever says how a sealed fit is does not wait for numpy
    import numpy as np

DRIFT_LIMIT_PPM = 200.0  # quartz is good for some 100; twice that is 12 ms in a minute
JITTER_FLOOR_S = 0.005
FEWEST = 20  # samples of one stretch of a clock
SHORTEST_S = 1.0
JUMP_S = 0.05  # a step of the difference between both clocks that lasts is a reset, one that does not is a late sample
AROUND_S = 2.0  # so long before and after a step, and 15 samples, decide whether it lasts
AROUND = 15
UNEVEN = 0.05  # of a step between samples: a device whose steps lie further from whole ones does not count evenly
AHEAD_S = 0.5  # more than drift and a first sample that was heard late can make of an episode
ODD = 0.01  # of the steps: no more of them may be of another length
LOST = 0.01  # of a stream: more that never came is said
BLOCKS = 40
TRIM = 3.5  # standard deviations, by the median absolute deviation; in 4 rounds


@dataclass(frozen=True, slots=True)
class ClockFit:
    """The longest stretch without a reset, as device time = host time + offset + drift * (host time - middle).

    n: samples of all stretches; drift_ppm: positive when the device's clock is fast; drift_se_ppm: its standard error,
    of the fit alone; offset_s: at the middle of the stretch; jitter_ms: 95 % of the samples lie this close to the line;
    resets: how often the clock jumped or another one took over.
    """

    n: int
    span_s: float
    offset_s: float
    drift_ppm: float
    drift_se_ppm: float
    jitter_ms: float
    resets: int

    def body(self, rate_hz: float) -> Clock:
        """As plain values, rounded to what they are worth, so that they are the same on every machine. rate_hz: samples
        a second that were meant.
        """
        return {
            "n": self.n,
            "span_s": round(self.span_s, 1),
            "offset_s": round(self.offset_s, 4),
            "drift_ppm": round(self.drift_ppm, 1),
            "drift_se_ppm": round(self.drift_se_ppm, 1),
            "jitter_ms": round(self.jitter_ms, 2),
            "resets": self.resets,
            "rate_hz": rate_hz,
        }


def fit_clock(device_ns: np.ndarray, host_ns: np.ndarray, clock: np.ndarray | None = None) -> ClockFit | None:
    """The fit of device times (n,) against host times (n,), both int64 ns in the order of the samples.

    clock (n,) tells which clock stamped a sample, where there are several. None for too few samples, too short a time,
    or a device that gives no times of its own (they are constant).
    """
    import numpy as np

    device_ns, host_ns = np.asarray(device_ns, dtype=np.int64), np.asarray(host_ns, dtype=np.int64)
    if len(device_ns) < FEWEST or device_ns.min() == device_ns.max():
        return None
    # small numbers, so that nanoseconds survive floating point
    apart = ((device_ns - device_ns[0]) - (host_ns - host_ns[0])).astype(float) / SECOND
    since = (host_ns - host_ns[0]).astype(float) / SECOND
    cuts = _resets(apart, since, clock)
    first, last = max(zip([0, *cuts], [*cuts, len(apart)], strict=True), key=lambda stretch: stretch[1] - stretch[0])
    x, y = since[first:last], apart[first:last]
    if len(x) < FEWEST or x[-1] - x[0] < SHORTEST_S:
        return None
    middle = (x[0] + x[-1]) / 2
    slope, level, error = _line(x - middle, y)
    left = np.abs(y - level - slope * (x - middle))
    zero = float(device_ns[0] - host_ns[0]) / SECOND
    jitter_ms = 1e3 * float(np.percentile(left, 95))
    return ClockFit(len(apart), float(x[-1] - x[0]), zero + level, 1e6 * slope, 1e6 * error, jitter_ms, len(cuts))


def missing_samples(device_ns: np.ndarray, host_ns: np.ndarray, count: int) -> int | None:
    """How many samples of an episode never came, by the clock of a device that samples evenly, such as a robot.

    device_ns, host_ns (n,) int64: its times and the host's in order, of the first and the last sample too; count: how
    many samples there are in all. None where the clock was set or its steps are no multiples of one length, as a
    camera's.
    """
    import numpy as np

    steps = np.diff(np.asarray(device_ns, dtype=np.int64)).astype(float)
    if len(steps) < FEWEST or steps.min() <= 0:
        return None
    ahead_s = float((device_ns[-1] - device_ns[0]) - (host_ns[-1] - host_ns[0])) / SECOND
    if ahead_s > AHEAD_S:
        return None  # set forward; one that falls behind was waited for, as an emulated controller's is
    few = max(1, math.ceil(ODD * len(steps)))  # a stamp that came early makes a short step and a long one
    least = np.sort(steps)[few]
    near = steps[(steps > least / 1.5) & (steps < 1.5 * least)]
    step = float(near.mean())  # single ones may be rounded, as seconds in floating point are
    odd = np.abs(steps / step - np.rint(steps / step)) > UNEVEN
    if int((np.abs(near / step - 1) > UNEVEN).sum()) > few or int(odd.sum()) > 2 * few:
        return None
    return max(0, round(float(device_ns[-1] - device_ns[0]) / step) + 1 - count)


def clock_warnings(stream: str, fit: Clock) -> list[str]:
    """What is unusual about a sealed fit (`sealing.Findings`); [] for a good clock of a device that lost little."""
    found: list[str] = []
    if abs(fit["drift_ppm"]) - 3 * fit["drift_se_ppm"] > DRIFT_LIMIT_PPM:
        found.append(f"the clock of {stream} drifts by {fit['drift_ppm']:+.0f} ppm against the host's")
    limit_ms = 1e3 * max(JITTER_FLOOR_S, 1.0 / fit["rate_hz"])
    if fit["jitter_ms"] > limit_ms:
        found.append(f"samples of {stream} reach the host with {fit['jitter_ms']:.1f} ms of jitter (p95)")
    if fit["resets"]:
        found.append(f"the clock of {stream} was reset {count(fit['resets'], 'time')}")
    lost = fit.get("missing") or 0
    if lost > LOST * (fit["n"] + lost):
        found.append(f"{lost:,} of {fit['n'] + lost:,} samples of {stream} never came, by its own clock")
    return found


def clock_line(stream: str, fit: Clock) -> str:
    """A fit in one line for people."""
    drift = f"drift {fit['drift_ppm']:+.1f} ± {fit['drift_se_ppm']:.1f} ppm"
    resets = f", {count(fit['resets'], 'reset')}" if fit["resets"] else ""
    missing = fit.get("missing")
    lost = f", {missing:,} of {fit['n'] + missing:,} samples missing" if missing else ""
    return f"{stream}: {drift}, jitter {fit['jitter_ms']:.2f} ms (p95) over {fit['span_s']:.0f} s{resets}{lost}"


def campaign_clock(fits: Sequence[Clock]) -> str:
    """The clock of one stream over all episodes, in one line; fits as they were sealed, one at least."""
    drifts = sorted(fit["drift_ppm"] for fit in fits)
    resets = sum(fit["resets"] for fit in fits)
    worst = max(fit["jitter_ms"] for fit in fits)
    span = f"{drifts[0]:+.1f} to {drifts[-1]:+.1f}" if len(drifts) > 1 else f"{drifts[0]:+.1f}"
    lost = sum(fit.get("missing") or 0 for fit in fits)
    of = f", {lost:,} of {lost + sum(fit['n'] for fit in fits):,} samples missing" if lost else ""
    return f"drift {span} ppm, jitter up to {worst:.2f} ms, {count(resets, 'reset')}{of}"


def _resets(apart: np.ndarray, since: np.ndarray, clock: np.ndarray | None) -> list[int]:
    """Where a new stretch begins: indexes of its first sample."""
    import numpy as np

    cuts: set[int] = set() if clock is None else set((np.flatnonzero(np.diff(clock)) + 1).tolist())
    for at in (np.flatnonzero(np.abs(np.diff(apart)) > JUMP_S) + 1).tolist():
        start = max((cut for cut in cuts if cut <= at), default=0)
        early = min(at - AROUND, int(np.searchsorted(since, float(since[at]) - AROUND_S)))
        late = max(at + AROUND, int(np.searchsorted(since, float(since[at]) + AROUND_S)))
        before, after = apart[max(start, early) : at], apart[at:late]
        if len(before) and abs(float(np.median(after)) - float(np.median(before))) > JUMP_S:
            cuts.add(at)
    return sorted(cuts)


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Slope, level at x = 0 and the slope's standard error of a line through most of the points.

    It starts at the median slope between medians of blocks, which no tenth of late samples moves, and is then fitted
    by least squares to the points near it.
    """
    import numpy as np

    blocks = np.array_split(np.arange(len(x)), min(BLOCKS, len(x) // 4))
    bx = np.array([np.median(x[block]) for block in blocks])
    by = np.array([np.median(y[block]) for block in blocks])
    i, j = np.triu_indices(len(bx), 1)
    slope = float(np.median((by[j] - by[i]) / (bx[j] - bx[i])))
    level = float(np.median(y - slope * x))
    error = 0.0
    for _ in range(4):
        left = y - level - slope * x
        spread = 1.4826 * float(np.median(np.abs(left - np.median(left))))
        near = np.abs(left - np.median(left)) <= max(TRIM * spread, 1e-9)
        mx, my = float(x[near].mean()), float(y[near].mean())
        square = float(((x[near] - mx) ** 2).sum())
        if near.sum() < FEWEST // 2 or square == 0.0:
            break
        slope = float(((x[near] - mx) * (y[near] - my)).sum()) / square
        level = my - slope * mx
        error = float((y[near] - level - slope * x[near]).std()) / square**0.5
    return slope, level, error
