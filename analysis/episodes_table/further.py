"""The entries of a result that rest on optional columns: preference, sites and people, axes, tags, splits, stress.

May not: compute a statistic; `analysis/blocks/` does. It lays columns out as that folder takes them.
"""

from __future__ import annotations

import math
import re

import numpy as np

from labctl.analysis.blocks import preference
from labctl.analysis.blocks.axes import Drop, Perturbed, axis_drops, category_drops
from labctl.analysis.blocks.means import mean_over_units
from labctl.analysis.blocks.retention import retention
from labctl.analysis.blocks.sites import SiteEffects, site_effects
from labctl.analysis.blocks.stress import Stressed, responses
from labctl.analysis.blocks.tags import tag_contrasts
from labctl.analysis.episodes_table.cohort import Cohort, Pair, Plan
from labctl.analysis.episodes_table.result import (
    AtLevel,
    AxisDrop,
    Factor,
    FamilyMean,
    PairOfFactor,
    Prediction,
    Preference,
    Retained,
    StressLevel,
    TagEffect,
)
from labctl.analysis.episodes_table.table import TIE, EpisodesTable
from labctl.analysis.results import Bounds, bounds
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import Interval
from labctl.analysis.survival.verdicts import pairs_of

TRAIN, TEST = "train", "test"
_SEPARATOR = re.compile(r"\s*;\s*")


def preferred(cohort: Cohort, plan: Plan) -> tuple[Preference | None, tuple[str, ...]]:
    """The entry `preference`: Bradley-Terry-Davidson over blocks, and how often a preference goes with the score; and
    what of it the comparisons leave without bound.
    """
    table = cohort.table
    compared, verdicts = table.of_block("compared"), table.of_block("preferred")
    at = [i for i, word in enumerate(verdicts) if word]
    if not at:
        return None, ()
    two = [[table.arms.index(arm.strip()) for arm in compared[i].split("|")] for i in at]
    first, second = (np.array([pair[side] for pair in two], dtype=np.int64) for side in (0, 1))
    verdict = [_verdict(verdicts[i], table.arms[a]) for i, a in zip(at, first, strict=True)]
    judged = np.array(verdict, dtype=np.int64)
    found = preference.davidson(
        table.arms, first, second, judged, cohort.unit[at], min(plan.boot, 1999), plan.seed, plan.level
    )
    entry: Preference = {
        "first": found.first,
        "second": found.second,
        "tie": found.tie,
        "davidson": [{"arm": s.arm, "strength": s.strength, "ci": bounds(s.ci)} for s in found.davidson],
        "tie_parameter": known(found.tie_parameter),
        "order_effect": known(found.order_effect),
        "order_ci": bounds(found.order_ci),
        "agreement": preference.agreement(judged, cohort.measure[at, first], cohort.measure[at, second]),
    }
    return entry, found.words


def known(value: float | None) -> float | None:
    """A number as JSON has it: None for what is unknown or has no bound."""
    return value if value is not None and math.isfinite(value) else None


def _verdict(verdict: str, first: str) -> int:
    if verdict == TIE:
        return preference.TIE
    return preference.FIRST if verdict == first else preference.SECOND


def factors(cohort: Cohort, plan: Plan) -> tuple[dict[str, Factor], list[str]]:
    """The entry `factors`, and what cannot be told apart: tau2 and i2 are means over pairs of arms, `prediction` has an
    entry for each pair, of the mean difference that a further level would find.
    """
    table = cohort.table
    found: dict[str, Factor] = {}
    words: dict[str, None] = {}
    site, evaluator = table.of_block("site"), _one_of(table, "evaluator")
    if all(site):
        by_pair = _effects(cohort, plan, site, evaluator)
        found["site"] = _factor(by_pair, site)
        if evaluator:
            found["evaluator"] = _factor(by_pair, evaluator, nested=True)
        words |= dict.fromkeys(word for effects in by_pair.values() for word in effects.words)
    elif evaluator and len(set(evaluator)) > 1:
        found["evaluator"] = _factor(_effects(cohort, plan, evaluator, None), evaluator)
    cell = table.of_block("cell")
    if all(cell) and len(set(cell)) > 1:
        found["cell"] = _factor(_effects(cohort, plan, cell, None), cell)
    operator = _one_of(table, "operator")
    if operator:
        found["operator"] = _factor(_effects(cohort, plan, operator, None), operator)
    return found, list(words)


def _effects(cohort: Cohort, plan: Plan, level: list[str], nested: list[str] | None) -> dict[Pair, SiteEffects]:
    return {
        pair: site_effects(*_by_unit(cohort, cohort.difference(cohort.measure, pair), level, nested), plan.level)
        for pair in pairs_of(cohort.table.arms, plan.reference)
    }


def _by_unit(
    cohort: Cohort, differences: Floats, level: list[str], nested: list[str] | None
) -> tuple[Floats, list[str], list[str] | None]:
    """The differences of blocks with their levels, of a set its mean at each of them: blocks of a set that have more in
    common than their site would make sites look unlike.
    """
    if cohort.single:
        return differences, level, nested
    own: dict[tuple[int, str, str], list[float]] = {}
    for unit, difference, *at in zip(cohort.unit.tolist(), differences.tolist(), level, nested or level, strict=True):
        if math.isfinite(difference):
            own.setdefault((unit, at[0], at[1]), []).append(difference)
    means = np.array([math.fsum(values) / len(values) for values in own.values()])
    return means, [at for _, at, _ in own], [at for _, _, at in own] if nested else None


def _factor(by_pair: dict[Pair, SiteEffects], names: list[str], *, nested: bool = False) -> Factor:
    spreads = [s for effects in by_pair.values() if (s := effects.evaluator if nested else effects.site) is not None]
    predictions: list[Prediction] = [
        {"a": a, "b": b, "difference": effects.mean, "low": effects.prediction[0], "high": effects.prediction[1]}
        for (a, b), effects in by_pair.items()
        if not nested and effects.prediction is not None
    ]
    return {
        "levels": len(set(names)),
        "tau2": float(np.mean([s.tau2 for s in spreads])) if spreads else None,
        "i2": float(np.mean([s.i2 for s in spreads])) if spreads else None,
        "prediction": predictions,
        "pairs": [] if nested else [_pair(pair, effects) for pair, effects in by_pair.items()],
    }


def _pair(pair: Pair, found: SiteEffects) -> PairOfFactor:
    levels: list[AtLevel] = [
        {"level": at.site, "blocks": at.blocks, "mean": at.mean, "without": at.without} for at in found.sites
    ]
    return {
        "a": pair[0],
        "b": pair[1],
        "mean": found.mean,
        "ci": bounds(found.ci),
        "tau2": found.site.tau2 if found.site else None,
        "i2": found.site.i2 if found.site else None,
        "q_p": known(found.q_p),
        "levels": levels,
    }


def _one_of(table: EpisodesTable, column: str) -> list[str] | None:
    """The operator, or evaluator, of every block, None where one has several, or none."""
    at: dict[int, set[str]] = {}
    for block, person in zip(table.block.tolist(), table.words[column], strict=True):
        at.setdefault(block, set()).add(person)
    if any(len(own) > 1 or "" in own for own in at.values()):
        return None
    return table.of_block(column)


def axes(cohort: Cohort, plan: Plan) -> list[AxisDrop]:
    """The entry `axes`: the drop of each axis against its base in the same set, then those of whole categories (axis
    ""), each adjusted over the axes, or categories, of its arm.
    """
    rows, asked = perturbed_rows(cohort), (plan.alpha, plan.perm, plan.seed)
    return [_drop(found) for found in (*axis_drops(rows, *asked), *category_drops(rows, *asked))]


def perturbed_rows(cohort: Cohort) -> list[Perturbed]:
    """The episodes as `blocks/axes.py` takes them; none of a table without axes or sets."""
    table = cohort.table
    if not (any(table.words["axis"]) and any(table.words["set"])):
        return []
    columns = (table.words[name] for name in ("condition", "base", "axis", "set"))
    values = measure_of_rows(cohort).tolist()
    return [
        Perturbed(table.arms[arm], value, *texts)
        for arm, value, texts in zip(table.arm.tolist(), values, zip(*columns, strict=True), strict=True)
    ]


def _drop(found: Drop) -> AxisDrop:
    return {
        "axis": found.axis,
        "category": found.category,
        "arm": found.arm,
        "base": found.base,
        "perturbed": found.perturbed,
        "drop": found.drop,
        "ci": bounds(found.ci),
        "p": found.p_holm,
        "p_error": found.error,
        "pairs": found.pairs,
    }


def tags(cohort: Cohort, plan: Plan) -> list[TagEffect]:
    """The entry `tags`: what a tag of the task does to each arm's mean of the measure, by permutation over tasks, each
    with its own tags (`tag_units`).
    """
    table = cohort.table
    if not any(table.words["tags"]):
        return []
    units = tag_units(table)
    tasks = list(dict.fromkeys(units))
    at = {unit: i for i, unit in enumerate(tasks)}
    place = np.array([at[unit] for unit in units])
    named_tags = sorted(frozenset[str]().union(*(held for _, held in tasks)))
    values = measure_of_rows(cohort)
    scores = {arm: _means(values, place, table.arm == i, len(tasks)) for i, arm in enumerate(table.arms)}
    found = tag_contrasts(
        scores, {tag: [tag in held for _, held in tasks] for tag in named_tags}, plan.perm, plan.seed, plan.level
    )
    return [
        {
            "tag": f.tag, "arm": f.arm, "with": f.with_tag, "without": f.without_tag, "effect": f.effect,
            "ci": _possible(f.ci), "p": f.p, "p_error": f.error, "smallest_p": f.smallest_p,
            "tasks_with": f.tasks_with, "tasks_without": f.tasks_without, "within": f.within, "words": f.words,
        }
        for f in found
    ]  # fmt: skip


def tag_units(table: EpisodesTable) -> list[tuple[str, frozenset[str]]]:
    """Of each row the task, else condition, else instruction, else block, and its tags: of a task whose conditions have
    different tags, those with the same are a task of their own.
    """
    named = next((n for n in ("task", "condition", "instruction") if all(table.words[n])), None)
    task = table.words[named] if named else [table.blocks[i] for i in table.block]
    held = [frozenset(_SEPARATOR.split(text)) - {""} for text in table.words["tags"]]
    return list(zip(task, held, strict=True))


def _possible(ci: Interval | None) -> Bounds:
    """An interval of a difference of two means from 0 to 1, cut at what it can be."""
    return None if ci is None else [max(-1.0, ci[0]), min(1.0, ci[1])]


def _means(values: Floats, place: np.ndarray, own: np.ndarray, count: int) -> Floats:
    own = own & np.isfinite(values)
    sums, sizes = np.bincount(place[own], values[own], count), np.bincount(place[own], minlength=count)
    return np.divide(sums, sizes, out=np.full(count, np.nan), where=sizes > 0)


def kept(cohort: Cohort, plan: Plan) -> list[Retained]:
    """The entry `retention`: test over train, of each arm, by units."""
    table = cohort.table
    split = np.array(table.words["split"])
    if not ((split == TRAIN).any() and (split == TEST).any()):
        return []
    values, unit = measure_of_rows(cohort), cohort.unit[table.block]
    found: list[Retained] = []
    for i, arm in enumerate(table.arms):
        train, test = ((table.arm == i) & (split == side) for side in (TRAIN, TEST))
        r = retention(values[train], values[test], unit[train].tolist(), unit[test].tolist(), plan.level)
        found.append({"arm": arm, "train": r.train, "test": r.test, "retention": r.retention, "ci": bounds(r.ci)})
    return found


def stress(cohort: Cohort, plan: Plan) -> list[StressLevel]:
    """The entry `stress`: each arm's mean of the measure at every level of a family, levels in order: `stress`, or
    `difficulty` where a row has none.
    """
    return [
        {"family": f.family, "level": f.level, "arm": f.arm, "score": f.score, "ci": bounds(f.ci)}
        for f in responses(stressed_rows(cohort), plan.level)
    ]


def families(cohort: Cohort, plan: Plan) -> list[FamilyMean]:
    """The entry `families`: each arm's mean of the measure over all episodes of a family, over whole units."""
    table, values = cohort.table, measure_of_rows(cohort)
    of_family, unit = np.array(table.words["family"]), cohort.unit[table.block]
    found: list[FamilyMean] = []
    for family in dict.fromkeys(filter(None, table.words["family"])):
        for i, arm in enumerate(table.arms):
            own = (of_family == family) & (table.arm == i)
            mean = mean_over_units(values[own], unit[own], 0.0, 1.0, plan.draws, plan.level)
            if mean.n:
                found.append(
                    {"family": family, "arm": arm, "episodes": mean.n, "score": mean.value, "ci": bounds(mean.interval)}
                )
    return found


def stressed_rows(cohort: Cohort) -> list[Stressed]:
    """The episodes under a level of a family, as `blocks/stress.py` takes them."""
    words, arms = cohort.table.words, cohort.table.arms
    columns = (words[name] for name in ("family", "stress", "difficulty", "set"))
    values = zip(cohort.table.arm.tolist(), measure_of_rows(cohort).tolist(), *columns, strict=True)
    return [
        Stressed(arms[arm], family, level or difficulty, value, group)
        for arm, value, family, level, difficulty, group in values
        if family and (level or difficulty)
    ]


def measure_of_rows(cohort: Cohort) -> Floats:
    """The measure of every row [rows]."""
    return cohort.measure[cohort.table.block, cohort.table.arm]
