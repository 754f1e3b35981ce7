"""Stress measures of an arm from its recorded traces: how often it was asked, how late it acted, how smoothly.

May not: read a trace store or a campaign, or be shown before unblinding: timing tells arms apart.

After NEBULA: inference frequency (questions a second; its own is 1 / latency), latency from observation to command,
stability exp(-mean |a_t - a_(t-1)|). An episode is one value; an arm's is the mean of its episodes, with a t interval
over episodes, since questions and samples of one episode depend on each other. Adaptability, the fourth, is in
`adaptability`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from labctl.analysis.episode_facts import ArmStress, EpisodeStress, Measure
from labctl.analysis.results import bounds
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.intervals import IDENTITY, LOG, Scale, t_interval
from labctl.analysis.table import NS

RATE_HZ = 10.0
"""The common rate at which sent targets are compared: below every arm's control rate, and the same for all."""
MEASURES = ("inference_hz", "latency_s", "roughness_rad")


@dataclass(frozen=True)
class Traces:
    """One episode. Questions (n,): when the state was captured, the question asked, and the first action of its answer
    began, ns; -1 for an answer that was not used. Targets: sent_ns (m,), sent (m, dof) rad. From go to end, ns.
    """

    episode: str
    arm: str
    object: str
    go_ns: int
    end_ns: int
    capture_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    request_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    first_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    sent_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    sent: Floats = field(default_factory=lambda: np.zeros((0, 0)))


def inference_hz(request_ns: Ints) -> float | None:
    """Questions per second while it was asked: intervals between questions over the time they took. None below two
    questions. request_ns (n,) ascending.
    """
    if len(request_ns) < 2 or request_ns[-1] == request_ns[0]:
        return None
    return (len(request_ns) - 1) / (int(request_ns[-1] - request_ns[0]) / NS)


def latencies_s(capture_ns: Ints, first_ns: Ints) -> Floats:
    """Seconds from the capture of the state to the first action, of every answer that was used (first_ns not -1)."""
    used = first_ns >= 0
    return (first_ns[used] - capture_ns[used]) / NS


def roughness_rad(sent_ns: Ints, sent: Floats, go_ns: int, end_ns: int) -> float | None:
    """Mean over time of |a_t - a_(t-1)|, the Euclidean norm over joints in rad, of the target that stood at each tick
    of a grid of RATE_HZ from go to end. None where fewer than two ticks have a target.

    sent_ns (m,) ascending, sent (m, dof) rad.
    """
    ticks = go_ns + np.arange(int((end_ns - go_ns) / NS * RATE_HZ) + 1) * round(NS / RATE_HZ)
    standing = np.searchsorted(sent_ns, ticks, side="right") - 1
    standing = standing[standing >= 0]
    if len(standing) < 2:
        return None
    return float(np.linalg.norm(np.diff(sent[standing], axis=0), axis=1).mean())


def stability(roughness: float) -> float:
    """exp(-roughness): 1 for an arm that stands still, less the more its targets jump from tick to tick."""
    return math.exp(-roughness)


def episode_stress(traces: Traces) -> EpisodeStress:
    """The measures of one episode; None where its traces hold too little. latency_s is the mean over used answers."""
    waited = latencies_s(traces.capture_ns, traces.first_ns)
    rough = roughness_rad(traces.sent_ns, traces.sent, traces.go_ns, traces.end_ns)
    return {
        "episode": traces.episode,
        "arm": traces.arm,
        "object": traces.object,
        "questions": len(traces.request_ns),
        "inference_hz": inference_hz(traces.request_ns),
        "latency_s": float(waited.mean()) if len(waited) else None,
        "latency_p95_s": float(np.percentile(waited, 95)) if len(waited) else None,
        "roughness_rad": rough,
        "stability": None if rough is None else stability(rough),
    }


def arm_stress(episodes: Sequence[EpisodeStress], arms: Sequence[str]) -> list[ArmStress]:
    """One entry per arm with an episode. Each measure is {value, ci, episodes}: the mean of the episodes that have it
    and its 95 % t interval, on the log scale for frequency and latency; stability is exp of the negative mean
    roughness, and its interval that of the roughness turned round. `value` is None where no episode has one, `ci`
    below two episodes.
    """
    found: list[ArmStress] = []
    for arm in arms:
        own = [one for one in episodes if one["arm"] == arm]
        if not own:
            continue
        rough = mean((one["roughness_rad"] for one in own), IDENTITY)
        smooth: Measure = {"value": None, "ci": None, "episodes": rough["episodes"]}
        if rough["value"] is not None:
            smooth["value"] = stability(rough["value"])
        if rough["ci"] is not None:
            smooth["ci"] = [stability(rough["ci"][1]), min(1.0, stability(rough["ci"][0]))]
        late = [one["latency_p95_s"] for one in own if one["latency_p95_s"] is not None]
        found.append(
            {
                "arm": arm,
                "episodes": len(own),
                "inference_hz": mean((one["inference_hz"] for one in own), LOG),
                "latency_s": mean((one["latency_s"] for one in own), LOG),
                "latency_worst_p95_s": max(late, default=None),
                "roughness_rad": rough,
                "stability": smooth,
            }
        )
    return found


def mean(found: Iterable[float | None], scale: Scale) -> Measure:
    """One measure over the episodes that have it, as `arm_stress` has it. found: by episode, None where it has none."""
    values = np.array([value for value in found if value is not None], dtype=float)
    if not len(values):
        return {"value": None, "ci": None, "episodes": 0}
    centre, n = float(values.mean()), len(values)
    if n < 2 or centre <= 0:
        return {"value": centre, "ci": None, "episodes": n}
    span = t_interval(centre, float(values.std(ddof=1)) / math.sqrt(n), n - 1, scale)
    return {"value": centre, "ci": bounds(span), "episodes": n}
