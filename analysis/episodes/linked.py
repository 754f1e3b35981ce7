"""Arms of two campaigns, compared through the anchors fixed when the later was opened; never directly.

May not: pool episodes of different campaigns, mix kinds of robot (real, simulated, replayed), or compare without an
anchor: two evenings differ by more than their arms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from labctl.analysis.results import Result
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import Replicates, clusters, rmst_replicates
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import IDENTITY, LEVEL, Interval, bootstrap_t, t_interval
from labctl.analysis.survival.resample import stream_key
from labctl.analysis.survival.verdicts import holm
from labctl.analysis.table import NS, table_from_rows
from scipy import stats

from labctl.errors import LinkError

Key = tuple[str, str]


@dataclass(frozen=True)
class Campaign:
    """One campaign's cells; `fake` is the kind of its episodes: "real", "sim", "replay", "emulated"."""

    name: str
    cells: Mapping[Key, Cell]
    fake: str = "real"

    def arms(self) -> set[str]:
        """Arms with an episode."""
        return {a for a, _ in self.cells}


@dataclass(frozen=True)
class Drift(Result):
    """How an anchor's RMST changed: the ratio of the second campaign's to the first's, with interval and p (t)."""

    anchor: str
    ratio: float
    interval: Interval | None
    p: float | None


@dataclass(frozen=True)
class Linked(Result):
    """RMST of `a` (in the first campaign) over RMST of `b` (in the second), each relative to the anchors it met.

    `ratio` below 1: `a` took less time. `naive` is the ratio without anchors, for comparison only. p is by t on the
    log ratio with clustered jackknife errors; labels cannot be swapped between campaigns.
    """

    a: str
    b: str
    campaigns: tuple[str, str]
    anchors: tuple[str, ...]
    objects: tuple[str, ...]
    ratio: float
    interval: Interval | None
    p: float | None
    naive: float
    drift: tuple[Drift, ...]
    warnings: tuple[str, ...]


def compare_linked(
    first: Campaign, a: str, second: Campaign, b: str, *, tau_ns: int, seed: int = 0, boot: int = 9999
) -> Linked:
    """Compare arm `a` of one campaign with arm `b` of another through every arm that both ran (methodology §4).

    log ratio = mean over objects of [log RMST_a - mean over anchors of log RMST] in the first campaign, less the same
    of b in the second. Raises `LinkError` without an anchor, without a common object, for mixed kinds of episodes or
    for unequal time budgets.
    """
    anchors, objects = _shared(first, a, second, b)
    sides = []
    apart = int(stream_key(seed, "second campaign"))  # the same draws for both would tie an anchor to itself
    for campaign, arm, draws in ((first, a, seed), (second, b, apart)):
        wanted = {k: c for k, c in campaign.cells.items() if k[0] in {arm, *anchors} and k[1] in objects}
        found = rmst_replicates(clusters(wanted, tau_ns, draws), boot)
        if any(found.value[k] <= 0 for k in wanted):
            raise LinkError(f"an RMST of campaign {campaign.name} is 0 s; a ratio cannot be taken")
        sides.append(found)
    n = len(objects)
    own = [{(arm, o): 1 / n for o in objects} for arm in (a, b)]
    met = {(k, o): -1 / (n * len(anchors)) for k in anchors for o in objects}
    value, se, values, ses, df = _difference(sides, [{**w, **met} for w in own])
    interval = bootstrap_t(value, se, values, ses, IDENTITY) or t_interval(value, se, df, IDENTITY)
    naive = _difference(sides, own)[0]
    drift = tuple(_drift(sides, anchor, objects) for anchor in anchors)
    return Linked(
        a, b, (first.name, second.name), tuple(anchors), tuple(objects), math.exp(value), _exp(interval),
        _p(value, se, df), math.exp(naive), drift, tuple(_warnings(anchors, drift)),
    )  # fmt: skip


def _shared(first: Campaign, a: str, second: Campaign, b: str) -> tuple[list[str], list[str]]:
    """Anchors and objects that the comparison can rest on."""
    for campaign, arm in ((first, a), (second, b)):
        if arm not in campaign.arms():
            known = ", ".join(sorted(campaign.arms()))
            raise LinkError(f"campaign {campaign.name} has no arm {arm!r}; its arms are {known}")
    if first.fake != second.fake:
        found = f"{first.name} is {first.fake} and {second.name} is {second.fake}"
        raise LinkError(f"{found}; episodes of different kinds are never compared")
    anchors = sorted((first.arms() & second.arms()) - {a, b})
    if not anchors:
        found = f"campaigns {first.name} and {second.name} share no anchor arm beside {a} and {b}"
        raise LinkError(f"{found}; run an arm of the first again in the second (labctl extend), or do not compare")
    first_of, second_of = (
        [o for o in {o for _, o in c.cells} if all((k, o) in c.cells for k in (arm, *anchors))]
        for c, arm in ((first, a), (second, b))
    )
    objects = sorted(set(first_of) & set(second_of))
    if not objects:
        raise LinkError(f"no object was met by {a}, {b} and the anchors {', '.join(anchors)} in both campaigns")
    for o in objects:
        budgets = {
            int(v) for c, arm in ((first, a), (second, b)) for k in (arm, *anchors) for v in c.cells[k, o].budget_ns
        }
        if len(budgets) > 1:
            raise LinkError(f"time budgets at {o} are unequal; cut both campaigns to the common budget first")
    return anchors, objects


def _difference(
    sides: Sequence[Replicates], weights: Sequence[Mapping[Key, float]]
) -> tuple[float, float, Floats, Floats, float]:
    """Weighted sum of log RMST in the first campaign less that in the second: value, se, replicates, their se, df."""
    one, two = (_sum_of_logs(found, w) for found, w in zip(sides, weights, strict=True))
    df = min(sum(found.held[k] - 1 for k in w if w[k] > 0) for found, w in zip(sides, weights, strict=True))
    with np.errstate(invalid="ignore"):
        return (
            one[0] - two[0], math.sqrt(max(one[1] + two[1], 0.0)), one[2] - two[2],
            np.sqrt(np.maximum(one[3] + two[3], 0.0)), df,
        )  # fmt: skip


def _sum_of_logs(found: Replicates, weights: Mapping[Key, float]) -> tuple[float, float, Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        value = math.fsum(w * math.log(found.value[k]) for k, w in weights.items())
        values = np.sum([w * np.log(found.values[k]) for k, w in weights.items()], axis=0)
        variance, variances = 0.0, np.zeros_like(values)
        for k, w in weights.items():
            for m, v in weights.items():
                if (k, m) in found.covariance:
                    variance += w * v * found.covariance[k, m] / (found.value[k] * found.value[m])
                    variances += w * v * found.covariances[k, m] / (found.values[k] * found.values[m])
    return value, variance, values, variances


def _drift(sides: Sequence[Replicates], anchor: str, objects: Sequence[str]) -> Drift:
    weights = {(anchor, o): 1 / len(objects) for o in objects}
    value, se, values, ses, df = _difference(sides[::-1], [weights, weights])
    interval = bootstrap_t(value, se, values, ses, IDENTITY) or t_interval(value, se, df, IDENTITY)
    return Drift(anchor, math.exp(value), _exp(interval), _p(value, se, df))


def _exp(interval: Interval | None) -> Interval | None:
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


def _p(value: float, se: float, df: float) -> float | None:
    return float(2 * stats.t.sf(abs(value) / se, df)) if se > 0 and df > 0 else None


def _warnings(anchors: Sequence[str], drift: Sequence[Drift]) -> list[str]:
    out = []
    if len(anchors) == 1:
        out.append(f"one anchor only ({anchors[0]}): its own change between the campaigns cannot be told from drift")
    out += [
        f"the drift of anchor {d.anchor} cannot be judged: its times do not vary, or are all cut at tau"
        for d in drift
        if d.interval is None
    ]
    moved = [d for d in drift if d.p is not None and d.p <= 1 - LEVEL]
    out += [
        f"anchor {d.anchor} drifted: its RMST in the second campaign is {d.ratio:.2f} of the first's" for d in moved
    ]
    return out


SCHEMA = "labctl.linked/1"
NOT_RESOLVED = "not resolved at this N"


@dataclass(frozen=True)
class CampaignTable:
    """One campaign as its lab exports it: rows of its operations table, and the kind of its episodes."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    kind: str

    def campaign(self) -> Campaign:
        """Its cells, for `linked`. Raises `TableError`."""
        return Campaign(self.name, cells_of(table_from_rows(self.rows, source=self.name)), self.kind)


def linked_pairs(
    first: CampaignTable,
    second: CampaignTable,
    anchors: Sequence[str],
    *,
    tau: float,
    alpha: float,
    seed: int = 0,
    boot: int = 9999,
) -> dict[str, Any]:
    """The linked comparison as one plain dict: {schema, campaigns, tau, alpha, anchors, pairs, warnings}; tau in s.

    A pair is `linked.Linked` with p_holm (Holm over these pairs) and a verdict. An arm that only shares its name with
    one of the other campaign is no anchor. A pair that may not be compared is a warning beside others that may. Raises
    `LinkError` where nothing may be compared, `TableError`.
    """
    one, two = first.campaign(), second.campaign()
    met = [arm for arm in anchors if arm in one.arms() and arm in two.arms()]
    if not met:
        apart = f"campaigns {one.name} and {two.name} share no anchor with a scored episode in both"
        raise LinkError(f"{apart} (planned: {', '.join(anchors) or 'none'}); they cannot be compared")
    news = [sorted(side.arms() - set(met)) for side in (one, two)]
    if not all(news):
        done = [side.name for side, new in zip((one, two), news, strict=True) if not new]
        raise LinkError(f"every scored arm of {done[0]} is an anchor; the report of one campaign compares all there is")
    found: dict[tuple[str, str], Linked] = {}
    refused: list[LinkError] = []
    for a, b in itertools.product(*news):
        sides = _only(one, [a, *met]), _only(two, [b, *met])
        try:
            found[a, b] = compare_linked(sides[0], a, sides[1], b, tau_ns=round(tau * NS), seed=seed, boot=boot)
        except LinkError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    adjusted = holm({key: pair.p for key, pair in found.items() if pair.p is not None})
    pairs = [_pair(pair, adjusted.get(key), alpha) for key, pair in found.items()]
    lost = [arm for arm in anchors if arm not in met]
    warnings = [f"anchor {arm} has no scored episode in one of the campaigns and is left out" for arm in lost]
    warnings += [f"not compared: {error}" for error in refused]
    warnings += [text for pair in found.values() for text in pair.warnings]
    return {
        "schema": SCHEMA,
        "campaigns": [one.name, two.name],
        "tau": tau,
        "alpha": alpha,
        "anchors": met,
        "pairs": pairs,
        "warnings": list(dict.fromkeys(warnings)),
    }


def _only(campaign: Campaign, arms: Iterable[str]) -> Campaign:
    kept = set(arms)
    return replace(campaign, cells={key: cell for key, cell in campaign.cells.items() if key[0] in kept})


def _pair(found: Linked, p_holm: float | None, alpha: float) -> dict[str, Any]:
    if p_holm is None or p_holm > alpha:
        verdict = NOT_RESOLVED
    else:
        verdict = f"{found.a} takes less time" if found.ratio < 1 else f"{found.b} takes less time"
    kept = {key: value for key, value in found.as_dict().items() if key not in ("campaigns", "warnings")}
    return {**kept, "p_holm": p_holm, "verdict": verdict}
