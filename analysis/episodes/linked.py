"""Arms of two campaigns, compared through the anchors fixed when the later was opened; never directly.

May not: pool episodes of different campaigns, mix kinds of robot (real, simulated, replayed), or compare without an
anchor: two evenings differ by more than their arms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from labctl.analysis.episode_facts import LinkedPair, LinkedPairs
from labctl.analysis.results import Result, plain_in
from labctl.analysis.survival.cells import Cell, cells_of
from labctl.analysis.survival.clusters import Replicates, clusters, rmst_replicates
from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.survival.intervals import IDENTITY, LEVEL, Interval, t_interval
from labctl.analysis.survival.spread import rounding_alone
from labctl.analysis.survival.verdicts import OPEN, holm
from labctl.analysis.table import NS, Row, table_from_rows
from labctl.errors import LinkError

Key = tuple[str, str]


@dataclass(frozen=True)
class Campaign:
    """One campaign's cells; `fake` is the kind of its episodes: "real", "sim", "replay", "emulated", "faults"."""

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

    `ratio` below 1: `a` took less time. `naive` is the ratio without anchors, for comparison only. Interval and p are
    by t on the log ratio, with clustered jackknife errors of every arm and anchor, `df` degrees of freedom after
    Satterthwaite; labels cannot be swapped between campaigns. `apart` is by how much anchors changed each for itself
    beyond chance, a standard deviation of log ratios, which is part of the error; None with one anchor.
    """

    a: str
    b: str
    campaigns: tuple[str, str]
    anchors: tuple[str, ...]
    objects: tuple[str, ...]
    ratio: float
    interval: Interval | None
    p: float | None
    df: float | None
    apart: float | None
    naive: float
    drift: tuple[Drift, ...]
    warnings: tuple[str, ...]


def compare_linked(first: Campaign, a: str, second: Campaign, b: str, *, tau_ns: int) -> Linked:
    """Compare arm `a` of one campaign with arm `b` of another through every arm that both ran (methodology §4).

    log ratio = mean over objects of [log RMST_a - mean over anchors of log RMST] in the first campaign, less the same
    of b in the second. Raises `LinkError` without an anchor, without a common object, for mixed kinds of episodes or
    for unequal time budgets.
    """
    anchors, objects = _shared(first, a, second, b)
    sides = []
    for campaign, arm in ((first, a), (second, b)):
        wanted = {k: c for k, c in campaign.cells.items() if k[0] in {arm, *anchors} and k[1] in objects}
        found = rmst_replicates(clusters(wanted, tau_ns, 0), 1)  # of which only value and covariance are used
        if any(found.value[k] <= 0 for k in wanted):
            raise LinkError(f"an RMST of campaign {campaign.name} is 0 s; a ratio cannot be taken")
        sides.append(found)
    n = len(objects)
    own = [{(arm, o): 1 / n for o in objects} for arm in (a, b)]
    met = {(k, o): -1 / (n * len(anchors)) for k in anchors for o in objects}
    value, parts = _difference(sides, [{**w, **met} for w in own])
    changes = [_difference(sides[::-1], [{(k, o): 1 / n for o in objects}] * 2) for k in anchors]
    beyond, apart = _apart(changes)
    judged = _judged(value, [*parts, *beyond])
    drift = tuple(Drift(k, math.exp(v), *_judged(v, error)[:2]) for k, (v, error) in zip(anchors, changes, strict=True))
    naive = math.exp(_difference(sides, own)[0])
    return Linked(
        a, b, (first.name, second.name), tuple(anchors), tuple(objects), math.exp(value), *judged, apart, naive, drift,
        tuple(_warnings(anchors, drift)),
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


@dataclass(frozen=True)
class Part:
    """One independent part of an error: its estimated variance, that estimate's degrees of freedom, and how much of it
    counts: less than all of it where something was taken off for what is counted elsewhere."""

    variance: float
    df: float
    counts: float


def _difference(sides: Sequence[Replicates], weights: Sequence[Mapping[Key, float]]) -> tuple[float, list[Part]]:
    """Weighted sum of log RMST in the first campaign less that in the second, and the parts of its variance."""
    one, two = (
        math.fsum(w * math.log(found.value[k]) for k, w in by.items()) for found, by in zip(sides, weights, strict=True)
    )
    return one - two, [part for found, by in zip(sides, weights, strict=True) for part in _parts(found, by)]


def _parts(found: Replicates, weights: Mapping[Key, float]) -> list[Part]:
    """Variance of the weighted sum of logs for each set of cells that are drawn together.

    n / (n - 1) times the jackknife's, as a mean of n has it, on n - 1 degrees of freedom: an anchor of two episodes has
    one. A set of a single unit tells nothing of its own variance: not a number.
    """
    out = []
    left = list(weights)
    while left:
        together = [k for k in left if (left[0], k) in found.covariance]
        left = [k for k in left if k not in together]
        units = min(found.held[k] for k in together)
        pull = {k: weights[k] / found.value[k] for k in together}
        variance = math.fsum(pull[k] * pull[m] * found.covariance[k, m] for k in together for m in together)
        variance = max(variance, 0.0) * units / (units - 1) if units > 1 else math.nan
        out.append(Part(variance, units - 1, variance))
    return out


def _apart(changes: Sequence[tuple[float, Sequence[Part]]]) -> tuple[list[Part], float | None]:
    """What the comparison's variance gains because every arm changes a little for itself between campaigns, and the
    standard deviation of such changes; nothing, and None, with one anchor, which cannot tell.

    k anchors' changes spread by their own errors and by that: var = mean of squared errors + what is looked for. The
    new arms have it once, the mean over anchors 1/k of it.
    """
    k = len(changes)
    if k < 2:
        return [], None
    seen = float(np.var([value for value, _ in changes], ddof=1))
    known = math.fsum(part.variance for _, parts in changes for part in parts) / k
    excess = max(seen - known, 0.0)
    if not excess > 0:
        return [], None if math.isnan(known) else 0.0
    share = 1 + 1 / k
    return [Part(share * seen, k - 1, share * excess)], math.sqrt(excess)


def _judged(value: float, parts: Sequence[Part]) -> tuple[Interval | None, float | None, float | None]:
    """Interval of exp(value), p and degrees of freedom by Satterthwaite (1946): a variance that is a sum of estimates
    has the degrees of freedom that its own variance implies."""
    variance = math.fsum(part.counts for part in parts)
    if rounding_alone(math.sqrt(max(variance, 0.0)), value):
        return None, None, None
    df = variance**2 / math.fsum(part.variance**2 / part.df for part in parts if part.variance)
    se = math.sqrt(variance)
    interval = t_interval(value, se, max(df, 1.0), IDENTITY)
    return _exp(interval), float(2 * special.stdtr(max(df, 1.0), -abs(value) / se)), df


def _exp(interval: Interval | None) -> Interval | None:
    return None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))


ENOUGH_ANCHORS = 4
"""Of arms that change by 20 % each for itself, two anchors let .08 to .11 of like pairs pass for different at .05, four
.05 to .06 (docs/statistics-calibration.md)."""


def _warnings(anchors: Sequence[str], drift: Sequence[Drift]) -> list[str]:
    out = []
    if len(anchors) == 1:
        out.append(f"one anchor only ({anchors[0]}): its own change between the campaigns cannot be told from drift")
    if 1 < len(anchors) < ENOUGH_ANCHORS:
        few = f"{len(anchors)} anchors ({', '.join(anchors)}) hardly show by how much arms change each for itself"
        much = f"where they do, p and interval claim too much; with {ENOUGH_ANCHORS} they hold"
        out.append(f"{few} between campaigns; {much}")
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


@dataclass(frozen=True)
class CampaignTable:
    """One campaign as its lab exports it: rows of its operations table, and the kind of its episodes."""

    name: str
    rows: Sequence[Row]
    kind: str

    def campaign(self, estimator: str = KAPLAN_MEIER) -> Campaign:
        """Its cells, for `linked`. Raises `TableError`."""
        return Campaign(self.name, cells_of(table_from_rows(self.rows, source=self.name), estimator), self.kind)


def linked_pairs(
    first: CampaignTable,
    second: CampaignTable,
    anchors: Sequence[str],
    *,
    tau: float,
    alpha: float,
    estimator: str = KAPLAN_MEIER,
) -> LinkedPairs:
    """The linked comparison as one plain dict; tau in s, estimator: of RMSTs, the later protocol's.

    A pair is `linked.Linked` with p_holm (Holm over these pairs) and a verdict. An arm that only shares its name with
    one of the other campaign is no anchor. A pair that may not be compared is a warning beside others that may. Raises
    `LinkError` where nothing may be compared, `TableError`.
    """
    one, two = first.campaign(estimator), second.campaign(estimator)
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
            found[a, b] = compare_linked(sides[0], a, sides[1], b, tau_ns=round(tau * NS))
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


def _pair(found: Linked, p_holm: float | None, alpha: float) -> LinkedPair:
    quicker = found.a if found.ratio < 1 else found.b
    verdict = OPEN if p_holm is None or p_holm > alpha else f"{quicker} takes less time"
    own = {key: value for key, value in vars(found).items() if key not in ("campaigns", "warnings")}
    return plain_in({**own, "p_holm": p_holm, "verdict": verdict}, LinkedPair)
