"""What a protocol of this size can and cannot resolve, and how many hours it takes; before anything is drawn.

May not: draw a schedule, name an arm, or promise power (that needs a model of the effect).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

from scipy.stats import binomtest

from labctl.design import deducible_share
from labctl.model import Fixture, Protocol, protocol_conditions

# The default number of label swaps of the permutation test (methodology.md 3.1); fewer distinct ones are all tried.
SWAPS = 9999
# Items of one episode depend on each other. PhAIL (arXiv 2605.29710, 4.4 operations per episode) measured this factor.
DESIGN_EFFECT = 2.25


@dataclass(frozen=True, slots=True)
class Preview:
    """What `labctl plan` prints. Half-widths and p-values are fractions, durations hours."""

    name: str
    question: str
    fixture: str
    conditions: tuple[tuple[str, int, int], ...]  # (condition, blocks, trials)
    arms: int
    blocks: int
    trials: int
    episodes_per_arm: int
    budget_s: float
    tau_s: float
    deducible_share: float
    smallest_p: float
    policy_pairs: int
    smallest_holm_p: float
    alpha: float
    half_width_episodes: float
    half_width_items: float
    hours_at_most: float
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The same as one JSON object, under the key names of this class."""
        shown = {name: getattr(self, name) for name in self.__slots__}
        shown["conditions"] = [{"condition": c, "blocks": b, "trials": t} for c, b, t in self.conditions]
        shown["warnings"] = list(self.warnings)
        return {"schema": "labctl.plan/1", **shown}


def preview(protocol: Protocol, fixture: Fixture, *, staging_s: float, scoring_s: float) -> Preview:
    """The preview of a validated protocol. `staging_s` and `scoring_s` are a person's time for each trial.

    Half-widths are of the 95 % Wilson interval where it is widest, at a half.
    Raises InputError when protocol and fixture do not fit each other.
    """
    conditions = protocol_conditions(protocol, fixture)
    per_condition, arms = protocol.design.blocks_per_condition, len(protocol.arm)
    blocks = per_condition * len(conditions)
    trials = blocks * arms
    budget_s = protocol.trial.budget_s
    kinds = [arm.kind for arm in protocol.arm]
    pairs = list(combinations(kinds, 2))
    policy_pairs = sum(1 for pair in pairs if "human" not in pair)
    # Human against policy is a family of its own (methodology.md 3.2), so Holm counts the larger of the two families.
    smallest_p = smallest_swap_p(blocks)
    family = max(policy_pairs, len(pairs) - policy_pairs, 1)
    items = round(blocks * protocol.trial.items_staged / DESIGN_EFFECT)
    half_items = wilson_half_width(max(items, 1))
    smallest_holm = min(1.0, smallest_p * family)
    alpha = protocol.analysis.alpha
    per_trial_s = staging_s + protocol.trial.arming_s + budget_s + scoring_s
    return Preview(
        name=protocol.protocol.name,
        question=protocol.protocol.question,
        fixture=fixture.fixture.name,
        conditions=tuple((c.id, per_condition, per_condition * arms) for c in conditions),
        arms=arms,
        blocks=blocks,
        trials=trials,
        episodes_per_arm=blocks,
        budget_s=budget_s,
        tau_s=protocol.analysis.tau_s,
        deducible_share=deducible_share(kinds),
        smallest_p=smallest_p,
        policy_pairs=policy_pairs,
        smallest_holm_p=smallest_holm,
        alpha=alpha,
        half_width_episodes=wilson_half_width(blocks),
        half_width_items=half_items,
        hours_at_most=trials * per_trial_s / 3600,
        warnings=tuple(_warnings(blocks, smallest_holm, alpha)),
    )


def smallest_swap_p(blocks: int) -> float:
    """The smallest two-sided p that swapping two arms' labels within `blocks` blocks can give.

    2^blocks swaps exist, half of them mirror images, so five blocks cannot beat 2/32 = .0625; with more swaps than are
    tried, (0 + 1) / (tried + 1).
    """
    return max(2.0 / 2.0 ** min(blocks, 1000), 1.0 / (SWAPS + 1))


def wilson_half_width(n: int, confidence: float = 0.95) -> float:
    """Half the width of the Wilson interval of n/2 (rounded down) successes in n, as a fraction."""
    interval = binomtest(n // 2, n).proportion_ci(confidence_level=confidence, method="wilson")
    return float(interval.high - interval.low) / 2


def _warnings(blocks: int, smallest_holm: float, alpha: float) -> list[str]:
    if smallest_holm <= alpha:
        return []
    return [
        f"{blocks} blocks cannot reach p <= {alpha:g} after Holm's correction (best possible {smallest_holm:.3g}); "
        "plan more blocks_per_condition or fewer arms"
    ]
