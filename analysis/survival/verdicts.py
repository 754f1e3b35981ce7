"""What may be said of a pair of arms: better, different without an order, depends on the object, not resolved.

May not: test. It weighs an adjusted p and the signs of scalars; the sign of a KS statistic is never among them, since
it can go round in a circle (PhAIL, arXiv 2605.29710, appendix).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labctl.analysis.results import Result

BETTER = "better"
CROSSING = "different, crossing"
DEPENDS = "depends on object"
OPEN = "not resolved at this N"
ALPHA = 0.05


@dataclass(frozen=True)
class Verdict(Result):
    """`kind` is one of the four; `leads` names the arm only where `kind` is "better"."""

    a: str
    b: str
    kind: str
    leads: str | None
    p_holm: float


def verdict(
    arms: tuple[str, str],
    p_holm: float | None,
    favours_a: Sequence[float | None],
    *,
    opposed: bool = False,
    alpha: float = ALPHA,
) -> Verdict | None:
    """Judge a pair. Each of `favours_a` is above 0 where the first arm did better, None where it cannot be said.

    Resolved means p_holm <= alpha. Then: depends on object if the arms lead at different objects, each by a p of its
    own (`opposed`); better if every scalar favours the same arm; else different, crossing. None without a p or a
    scalar: such a pair was not tested.
    """
    said = [s for s in favours_a if s is not None]
    if p_holm is None or not said:
        return None
    if p_holm > alpha:
        return Verdict(*arms, OPEN, None, p_holm)
    if opposed:
        return Verdict(*arms, DEPENDS, None, p_holm)
    if all(s > 0 for s in said) or all(s < 0 for s in said):
        return Verdict(*arms, BETTER, arms[0] if said[0] > 0 else arms[1], p_holm)
    return Verdict(*arms, CROSSING, None, p_holm)
