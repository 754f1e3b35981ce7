"""The answer of `labctl power` for times as one plain object: what was assumed, power per size, N, what is resolvable.

May not: print, or read a protocol file; it is given numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

from labctl.analysis.planning.distributions import Arm, Distribution, stated
from labctl.analysis.planning.pilot import Pilot
from labctl.analysis.planning.simulation import (
    MEASURES,
    HrtPrecision,
    Plan,
    Power,
    Resolvable,
    episodes_for,
    hrt_precision,
    powers,
    resolvable,
)
from labctl.errors import QuestionError

SCHEMA = "labctl.power/1"
LOST = 0.04
"""Share of items lost where none is stated: what PhAIL saw, 3.5 to 5.7 % (arXiv 2605.29710)."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Request:
    """The sizes and levels requested. `reference` is the arm HRT refers to; `alpha` is before Holm's correction, which
    counts the pairs with the reference and the others as `families` has them, else those of the arms given.
    """

    tau_s: float
    sizes: tuple[int, ...]
    alpha: float = 0.05
    target: float = 0.8
    reference: str | None = None
    runs: int = 200
    perm: int = 299
    seed: int = 0
    families: tuple[int, int] | None = None


class Law(TypedDict):
    """What was assumed of an arm at one object, as `distributions.Distribution` has it."""

    mean_s: float
    shape: float
    frailty: float
    lost: float
    items: int
    budget_s: float
    scene: float


class ArmLaws(TypedDict):
    """An arm by its laws, {object: law}: the RMST requested or seen in a pilot, and its own, seconds."""

    arm: str
    rmst_asked: float
    rmst: float
    laws: dict[str, Law]


class MeasurePower(TypedDict):
    """Power of one measure at `episodes` per arm and object, and its Monte-Carlo standard error."""

    episodes: int
    measure: str
    power: float
    error: float


class Needed(TypedDict):
    """Episodes per arm and object that reach the target, and a 95 % Monte-Carlo range; None beyond the sizes tried."""

    episodes: int | None
    low: float | None
    high: float | None


class PairPower(TypedDict):
    """Power for a pair of arms at its level, and by measure the episodes that the target takes.

    Of a pilot's arms the power is at the laws that fit it best; the assurance is the mean power over the laws that it
    goes with.
    """

    a: str
    b: str
    level: float
    power: list[MeasurePower]
    episodes_for_target: dict[str, Needed]
    assurance: NotRequired[list[MeasurePower]]
    assurance_for_target: NotRequired[dict[str, Needed]]


class ToldApart(TypedDict):
    """What is told apart from `arm` (its RMST in seconds) with `episodes` per arm and object, at a level."""

    arm: str
    rmst: float
    episodes: int
    level: float
    by_measure: list[Resolvable]


class HrtAt(HrtPrecision):
    """Of an arm, with `episodes` per arm and object."""

    arm: str
    episodes: int


class Answer(TypedDict):
    """What was asked, the arms as they were drawn, and what came of it. sizes: episodes per arm and object;
    no_assurance: why a pilot gives none; analysed_by: the labctl that computed it, of whoever prints it.
    """

    schema: str
    question: str
    tau_s: float
    alpha: float
    target: float
    reference: str | None
    runs: int
    perm: int
    seed: int
    objects: list[str]
    sizes: list[int]
    arms: list[ArmLaws]
    pairs: list[PairPower]
    resolvable: ToldApart
    hrt: list[HrtAt]
    no_assurance: NotRequired[str]
    analysed_by: NotRequired[str]


def arms_from_rmst(
    named: Mapping[str, float], distribution: Distribution, tau_s: float, lost: Sequence[float], objects: Sequence[str]
) -> tuple[Arm, ...]:
    """Arms with stated RMSTs, the same at every object.

    `lost` is one share for each arm, or empty: then `LOST`, and nothing where that alone would make up half of the
    RMST. Raises QuestionError.
    """
    shares = lost or [LOST if LOST * tau_s < value / 2 else 0.0 for value in named.values()]
    return tuple(
        stated(name, value, tau_s, replace(distribution, lost=share), objects)
        for (name, value), share in zip(named.items(), shares, strict=True)
    )


def levels(
    arms: Sequence[str], reference: str | None, alpha: float, counted: tuple[int, int] | None = None
) -> dict[tuple[str, str], float]:
    """The level of every pair at Holm's strictest step; pairs with the reference are a family of their own. counted:
    how many pairs the families have where these arms are not all of a plan's.
    """
    pairs = list(itertools.combinations(arms, 2))
    with_reference = [pair for pair in pairs if reference in pair]
    others = [pair for pair in pairs if reference not in pair]
    sizes = counted or (len(with_reference), len(others))
    both = zip((with_reference, others), sizes, strict=True)
    return {pair: alpha / size for family, size in both for pair in family}


def answer(
    arms: Sequence[Arm],
    request: Request,
    progress: Progress = lambda what, done, of: None,
    pilot: Pilot | None = None,
) -> Answer:
    """Simulate and answer, with the assurance that `pilot` gives, whose arms these are. Raises QuestionError for arms
    or sizes that make no sense.
    """
    _check(arms, request)
    plan = Plan(tuple(arms), request.tau_s, request.runs, request.perm, request.seed)
    by_pair = levels([arm.name for arm in arms], request.reference, request.alpha, request.families)
    rows = powers(plan, request.sizes, by_pair, lambda done, of: progress("power", done, of))
    pairs: list[PairPower] = [
        {
            "a": a,
            "b": b,
            "level": level,
            "power": _rows(rows, a, b),
            "episodes_for_target": _needed(rows, a, b, request),
        }
        for (a, b), level in by_pair.items()
    ]
    unable = pilot and pilot.too_small()
    if pilot is not None and unable is None:
        assured = powers(
            plan,
            request.sizes,
            by_pair,
            lambda done, of: progress("assurance", done, of),
            _fits(pilot, request, progress),
        )
        for pair in pairs:
            pair["assurance"] = _rows(assured, pair["a"], pair["b"])
            pair["assurance_for_target"] = _needed(assured, pair["a"], pair["b"], request)
    planned = request.sizes[-1]
    others = [arm for arm in arms if arm.name != request.reference]
    base = min(others, key=lambda arm: arm.rmst_s)
    strictest = min(level for pair, level in by_pair.items() if request.reference not in pair or len(others) == 1)
    halved = replace(plan, runs=max(20, request.runs // 2))
    detect = resolvable(
        halved, base.name, planned, strictest, request.target, lambda done, of: progress("resolvable", done, of)
    )
    found: Answer = {
        "schema": SCHEMA,
        "question": "times",
        "tau_s": request.tau_s,
        "alpha": request.alpha,
        "target": request.target,
        "reference": request.reference,
        "runs": request.runs,
        "perm": request.perm,
        "seed": request.seed,
        "objects": list(plan.objects),
        "sizes": list(request.sizes),
        "arms": [_arm(arm) for arm in arms],
        "pairs": pairs,
        "resolvable": {
            "arm": base.name,
            "rmst": base.rmst_s,
            "episodes": planned,
            "level": strictest,
            "by_measure": detect,
        },
        "hrt": [
            {"arm": arm.name, "episodes": size, **hrt_precision(halved, request.reference, arm.name, size)}
            for arm in others
            for size in request.sizes
            if request.reference is not None
        ],
    }
    if unable is not None:
        found["no_assurance"] = unable
    return found


def _fits(pilot: Pilot, request: Request, progress: Progress) -> list[tuple[Arm, ...]]:
    """The arms of every campaign, each fitted to the pilot with its episodes weighed anew."""
    found: list[tuple[Arm, ...]] = []
    for run in range(request.runs):
        found.append(pilot.drawn(request.seed, run))
        progress("fits to the pilot", run + 1, request.runs)
    return found


def _rows(found: Sequence[Power], a: str, b: str) -> list[MeasurePower]:
    return [
        {"episodes": r.episodes, "measure": r.measure, "power": r.power, "error": r.error}
        for r in found
        if (r.a, r.b) == (a, b)
    ]


def _needed(found: Sequence[Power], a: str, b: str, request: Request) -> dict[str, Needed]:
    out: dict[str, Needed] = {}
    for measure in MEASURES:
        own = [r for r in found if (r.a, r.b) == (a, b) and r.measure == measure]
        best, low, high = episodes_for(own, request.target)
        out[measure] = {"episodes": None if best is None else math.ceil(round(best, 6)), "low": low, "high": high}
    return out


def _arm(arm: Arm) -> ArmLaws:
    laws = {o: _law(distribution) for o, distribution in arm.distributions.items()}
    return {"arm": arm.name, "rmst_asked": arm.asked_s, "rmst": arm.rmst_s, "laws": laws}


def _law(found: Distribution) -> Law:
    return {
        "mean_s": found.mean_s,
        "shape": found.shape,
        "frailty": found.frailty,
        "lost": found.lost,
        "items": found.items,
        "budget_s": found.budget_s,
        "scene": found.scene,
    }


def _check(arms: Sequence[Arm], request: Request) -> None:
    names = [arm.name for arm in arms]
    if len(arms) < 2 or len(set(names)) < len(names):
        raise QuestionError(f"arms are {', '.join(names)}; power for times needs two or more, each named once")
    if request.reference is not None and request.reference not in names:
        raise QuestionError(f"no arm {request.reference!r} to refer to; the arms are {', '.join(names)}")
    budgets = {distribution.budget_s for arm in arms for distribution in arm.distributions.values()}
    if request.tau_s > min(budgets):
        raise QuestionError(f"tau is {request.tau_s:g} s, beyond the episode budget of {min(budgets):g} s; lower tau")
    if not request.sizes or min(request.sizes) < 2:
        raise QuestionError("sizes are episodes per arm and object; allowed is 2 and more")
    smallest = 1 / (request.perm + 1)
    strictest = min(levels(names, request.reference, request.alpha, request.families).values())
    if smallest > strictest:
        need = math.ceil(1 / strictest) - 1
        raise QuestionError(
            f"{request.perm} swaps give no p below {smallest:.2g} and the level is {strictest:.2g}; --perm {need}"
        )
