"""Is a difference the same everywhere: site, and evaluator nested in it, as random effects of paired differences.

May not: name a variance that the design cannot tell from another: words say what cannot be separated.

Blocks of one evaluator at one site are a mean; their spread about it is one variance for all, so that a place with few
blocks, or with equal ones, is not taken for a sure one. The means go to `random_effects`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.numerals import counted
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import FEWEST_TO_PREDICT, IDENTITY, LEVEL, Interval, t_interval
from labctl.analysis.survival.random_effects import RandomEffects, reml
from labctl.analysis.survival.spread import beyond_rounding, size_of


@dataclass(frozen=True)
class Spread(Result):
    """A factor: `tau2` between its levels (the square of a score's unit) and its share `i2`."""

    tau2: float
    i2: float


@dataclass(frozen=True)
class AtSite(Result):
    """Mean difference of the blocks of one site; `without` is the whole without this site."""

    site: str
    blocks: int
    mean: float
    without: float | None


@dataclass(frozen=True)
class SiteEffects(Result):
    """The mean difference over sites, with `ci` by t on sites less one, and how far sites differ.

    `q_p`: are site means as alike as blocks allow, Cochran's Q by F. `prediction`: what a further site would find in
    about as many blocks, from the spread of site means themselves, by t on sites less one. (With tau2 in their place,
    after J. P. T. Higgins, S. G. Thompson & D. J. Spiegelhalter, J. R. Stat. Soc. A 172 (2009) 137, it covered .87 to
    .90: tau2 is often estimated as 0.) What the design does not give is None.
    """

    mean: float | None
    ci: Interval | None
    site: Spread | None
    evaluator: Spread | None
    q_p: float | None
    prediction: Interval | None
    sites: tuple[AtSite, ...]
    words: tuple[str, ...]


def site_effects(
    differences: Floats, site: Sequence[str], evaluator: Sequence[str] | None = None, level: float = LEVEL
) -> SiteEffects:
    """`differences` (n,) of paired blocks, nan left out, with the site (n,) and the evaluator (n,) of each.

    An evaluator who worked at two sites is taken as one at each.
    """
    d = np.asarray(differences, dtype=float)
    known = np.flatnonzero(~np.isnan(d))
    at = [(site[i], evaluator[i] if evaluator else "") for i in known.tolist()]
    cells = sorted(set(at))
    names = sorted({s for s, _ in cells})
    words = _words(names, cells, evaluator is not None)
    place = {cell: c for c, cell in enumerate(cells)}
    cell = np.array([place[one] for one in at], dtype=int)
    n = np.bincount(cell, minlength=len(cells)).astype(float)
    means = np.bincount(cell, d[known], minlength=len(cells)) / np.maximum(n, 1)
    df = len(known) - len(cells)
    squares = float(((d[known] - means[cell]) ** 2).sum())
    within = beyond_rounding(squares / df, size_of(d[known])) if df > 0 else 0.0
    if len(names) < 2 or not within > 0:
        why = "one site: what holds there may not elsewhere" if len(names) == 1 else "no block has both arms"
        lacks = (
            why if len(names) < 2 else "blocks of one evaluator do not vary, so that nothing says how sure a mean is"
        )
        mean = float(d[known].mean()) if len(known) else None
        return SiteEffects(mean, None, None, None, None, None, (), (*words, lacks))
    of_site = np.array([names.index(s) for s, _ in cells])
    whole = _fit(means, within / n, of_site, len(cells) > len(names), df)
    by_site = _site_means(means, n, of_site, len(names))
    plain = reml(by_site[0], within / by_site[1], [np.arange(len(names))], df)
    others = [_without(means, within / n, of_site, s, df) for s in range(len(names))]
    k = len(names)
    mean_ci = t_interval(whole.mean, whole.se, k - 1, IDENTITY, level)
    ahead = None
    if k >= FEWEST_TO_PREDICT:
        spread = float(by_site[0].std(ddof=1)) * math.sqrt(1 + 1 / k)
        ahead = t_interval(float(by_site[0].mean()), spread, k - 1, IDENTITY, level)
    else:
        words = (*words, f"{counted(k, 'site')}: an interval for a new one needs {FEWEST_TO_PREDICT}")
    spreads = [Spread(*both) for both in zip(whole.tau2, whole.i2, strict=True)]
    return SiteEffects(
        whole.mean,
        mean_ci,
        spreads[0],
        spreads[1] if len(spreads) > 1 else None,
        plain.p,
        ahead,
        tuple(
            AtSite(name, int(size), float(mean), without)
            for name, mean, size, without in zip(names, *by_site, others, strict=True)
        ),
        words,
    )


def _fit(means: Floats, v: Floats, of_site: np.ndarray, nested: bool, df: int) -> RandomEffects:
    return reml(means, v, [of_site, np.arange(len(means))] if nested else [of_site], df)


def _without(means: Floats, v: Floats, of_site: np.ndarray, site: int, df: int) -> float | None:
    """Mean over sites without one of them; None where one or none is left."""
    kept = of_site != site
    left = len(set(of_site[kept]))
    if left < 2:
        return None
    return _fit(means[kept], v[kept], of_site[kept], int(kept.sum()) > left, df).mean


def _site_means(means: Floats, n: Floats, of_site: np.ndarray, sites: int) -> tuple[Floats, Floats]:
    size, total = np.zeros(sites), np.zeros(sites)
    np.add.at(size, of_site, n)
    np.add.at(total, of_site, means * n)
    return total / size, size


def _words(names: Sequence[str], cells: Sequence[tuple[str, str]], known: bool) -> tuple[str, ...]:
    """What the design cannot tell apart."""
    if not known:
        return ()
    found: list[str] = []
    per = defaultdict(set)
    for s, e in cells:
        per[s].add(e)
    single = [name for name in names if len(per[name]) == 1]
    if single and len(single) == len(names):
        found.append("each site has one evaluator: what is called site is site and evaluator together")
    elif single:
        where = f"{', '.join(single)} {'has' if len(single) == 1 else 'have'} one evaluator only"
        found.append(f"{where}: the other sites alone tell evaluators from sites")
    places = defaultdict(set)
    for s, e in cells:
        places[e].add(s)
    found += [
        f"{e} worked at {', '.join(sorted(s))}: taken as one evaluator at each"
        for e, s in sorted(places.items())
        if len(s) > 1
    ]
    return tuple(found)
