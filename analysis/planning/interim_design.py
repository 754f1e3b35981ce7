"""What a design of so many blocks can resolve at best, before anything is drawn: p-values, intervals, effects, looks.

May not: handle a protocol's names, or promise power for times without a model (`simulation` has one).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NotRequired, TypedDict

from labctl.analysis.monte_carlo import MOST
from labctl.analysis.numerals import counted
from labctl.analysis.planning.power import paired_resolvable, ratio_resolvable, wilson_half_width
from labctl.analysis.planning.spending import Look, looks
from labctl.analysis.survival.resample import Exchange, exchanges_of, smallest_by_design
from labctl.analysis.survival.verdicts import smallest_p

POWER = 0.8
DISCORDANT = (0.2, 0.3, 0.5)
"""Shares of pairs of trials that disagree, for which a resolvable difference is given; .5 is two coins."""
DESIGN_EFFECT = 2.25
"""Items of an episode depend on each other: PhAIL (arXiv 2605.29710, 4.4 operations per episode) measured this."""
SPREAD = 0.6
"""Standard error of log RMST from one episode: .54 to .66 for RMSTs between a sixth and half of tau, in simulated
episodes of 4 to 12 items with frailty .55 and 4 % of items lost; up to .86 for faster arms, less for slower ones."""


class Difference(TypedDict):
    """The smallest difference of two rates, a fraction, when a share `discordant` of pairs disagrees; None: none."""

    discordant: float
    difference: float | None


class Effects(TypedDict):
    """What is found with `power` at level `alpha`: differences of success rates, and a ratio of two RMSTs, by `spread`,
    the standard error of log RMST from one episode; None where no p of a pair is as small as alpha.
    """

    power: float
    alpha: float
    success: list[Difference]
    rmst_ratio: float | None
    spread: float


class PlannedLook(TypedDict):
    """A look as `spending.Look` has it, the least p it can give after Holm's correction, and whether it can stop."""

    number: int
    blocks: int
    information: float
    z: float
    level: float
    spent: float
    smallest_holm_p: float
    can_stop: bool


class RegisteredMargin(TypedDict):
    """A protocol's margin; shown_rmst_ratio: within which arms that are alike are shown to be at `power`."""

    rmst_ratio: float
    non_inferior_to: str | None
    shown_rmst_ratio: float
    power: float


class Widths(TypedDict):
    """Half widths of 95 % intervals of one arm, fractions."""

    half_width_success: float
    half_width_items: float


class Resolution(TypedDict):
    """What a number of blocks can resolve. family_pairs: that Holm's correction counts; half widths are of 95 %
    intervals, fractions; margin: where a protocol registers one.
    """

    family_pairs: int
    smallest_p: float
    smallest_holm_p: float
    half_width_success: float
    half_width_items: float
    design_effect: float
    resolvable: Effects
    looks: list[PlannedLook]
    warnings: list[str]
    margin: NotRequired[RegisteredMargin]


def resolution(
    units: int,
    items_staged: int,
    *,
    arms: int,
    reference: bool,
    alpha: float,
    looks_after: Sequence[int] = (),
    of: str = "block",
    drawn: Callable[[int], Sequence[Exchange]] | None = None,
) -> Resolution:
    """What `units` blocks of `arms` arms can resolve, one pair of arms at a time. Of a report by episodes whose blocks
    share sets, units are sets (`of`): it swaps and counts a set as one, whatever it holds. drawn: of a report by
    operations, how the labels of a pair could have been drawn in so many blocks.

    Pairs with the plan's reference, where it names one, are a family of their own (`verdicts.holm_by_family`), so
    Holm's correction counts the larger of the two; without one it counts all pairs. Effects are those found with 80 %
    power at its strictest step. Each look of a sequential plan has whether it can stop.
    """
    family = max(families(arms, reference=reference))
    step = alpha / family
    smallest = _smallest_p(units, family, alpha, drawn)
    found: Resolution = {
        "family_pairs": family,
        "smallest_p": smallest,
        "smallest_holm_p": min(1.0, smallest * family),
        **half_widths(units, items_staged),
        "design_effect": DESIGN_EFFECT,
        "resolvable": {
            "power": POWER,
            "alpha": step,
            "success": [
                {"discordant": share, "difference": paired_resolvable(units, share, POWER, step)}
                for share in DISCORDANT
            ],
            "rmst_ratio": ratio_resolvable(units, SPREAD, POWER, step) if smallest <= step else None,
            "spread": SPREAD,
        },
        "looks": [_look(look, family, drawn) for look in (looks(looks_after, alpha) if looks_after else ())],
        "warnings": [],
    }
    found["warnings"] = _warnings(found, counted(units, of), alpha)
    return found


def families(arms: int, *, reference: bool) -> tuple[int, int]:
    """How many pairs of a plan's arms Holm's correction counts together: those with its reference, and the others."""
    return (arms - 1, math.comb(arms - 1, 2)) if reference else (0, math.comb(arms, 2))


def half_widths(units: int, items_staged: int) -> Widths:
    """How wide the 95 % intervals of an arm with one episode in each of `units` blocks may be; of sets, where the
    episodes of a set go alike.
    """
    items = max(1.0, units * items_staged / DESIGN_EFFECT)
    return {"half_width_success": wilson_half_width(units), "half_width_items": wilson_half_width(items)}


def smallest_swap_p(blocks: int, swaps: int = MOST) -> float:
    """The smallest two-sided p of one pair that meets once in each of `blocks` blocks: 2 / 2^blocks.

    Five blocks cannot beat .0625. Of more distinct swaps than `swaps` as many are drawn, and 1 / (swaps + 1) is least.
    """
    more_than_drawn = swaps.bit_length() + 1  # blocks with twice as many swaps as are drawn; more change nothing
    return smallest_p([(1, 1)] * min(blocks, more_than_drawn), swaps)


def _smallest_p(units: int, family: int, alpha: float, drawn: Callable[[int], Sequence[Exchange]] | None) -> float:
    """Of one pair: by what the schedule could have drawn where a report takes that (`exchanges_of`), else by swaps."""
    if drawn is not None:
        ways = list(drawn(units))
        met = [block for blocks, _ in ways for block in blocks]
        if exchanges_of({("a", "b"): ways}, "a", "b", met, family, alpha):
            return max(smallest_by_design(ways), 1 / (MOST + 1))
    return smallest_swap_p(units)


def _look(look: Look, family: int, drawn: Callable[[int], Sequence[Exchange]] | None) -> PlannedLook:
    least = min(1.0, _smallest_p(look.blocks, family, look.level, drawn) * family)
    return {
        "number": look.number,
        "blocks": look.blocks,
        "information": look.information,
        "z": look.z,
        "level": look.level,
        "spent": look.spent,
        "smallest_holm_p": least,
        "can_stop": least <= look.level,
    }


def _warnings(found: Resolution, size: str, alpha: float) -> list[str]:
    out = []
    best = found["smallest_holm_p"]
    if best > alpha:
        out.append(
            f"{size} cannot reach p <= {alpha:g} after Holm's correction "
            f"(best possible {best:.3g}); plan more blocks_per_condition or fewer arms"
        )
    idle = [look for look in found["looks"] if not look["can_stop"]]
    out += [
        f"look {look['number']} cannot stop: after {counted(look['blocks'], 'block')} there is no p below "
        f"{look['smallest_holm_p']:.2g} after Holm's correction and its level is {look['level']:.2g}; look later"
        for look in idle
    ]
    return out
