"""How many blocks would have done: the test on fewer of the same blocks, how often it finds the pair and the sign.

May not: be called power. Blocks are drawn from those of one campaign, without putting back: a difference that is luck
is found as well as a true one, and near all blocks every draw is the campaign itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.monte_carlo import share_error
from labctl.analysis.numerals import counted
from labctl.analysis.results import Result
from labctl.analysis.survival.curves import Floats
from labctl.errors import QuestionError

STATEMENTS = (
    "Fewer blocks drawn from those of this campaign, not new ones: it says how sure this campaign was along the way, "
    "and is no power for another."
)


@dataclass(frozen=True)
class Enough(Result):
    """`blocks` of the campaign's, drawn many times: share `detected` by swaps within blocks (p at most alpha) with
    its Monte-Carlo `error`; `wrong_found`: detected with the other sign than that of all blocks; `wrong_sign`: a mean
    of that other sign, detected or not.
    """

    blocks: int
    detected: float
    error: float
    wrong_found: float
    wrong_sign: float


def enough(
    differences: Floats, sizes: Sequence[int], alpha: float = 0.05, draws: int = 300, perm: int = 999, seed: int = 0
) -> list[Enough]:
    """The differences (n,) of one pair, nan left out, at every size up to n, in the order given.

    Raises QuestionError for a size that is no number of blocks.
    """
    d = np.asarray(differences, dtype=float)
    d = d[~np.isnan(d)]
    wrong = [size for size in sizes if not 1 <= size <= len(d)]
    if wrong:
        raise QuestionError(f"{counted(wrong[0], 'block')} cannot be drawn from {len(d)}; ask for 1 to {len(d)}")
    rng, sign = np.random.default_rng(seed), np.sign(d.mean())
    found = []
    for size in sizes:
        drawn = rng.permuted(np.tile(d, (draws, 1)), axis=1)[:, :size].T
        signs = rng.choice([-1.0, 1.0], size=(perm, size))
        means, swapped = drawn.mean(axis=0), np.abs(signs @ drawn) / size
        p = (1 + (swapped >= np.abs(means) * (1 - 1e-9) - 1e-12).sum(axis=0)) / (perm + 1)
        hit, against = p <= alpha, np.sign(means) == -sign
        share = float(hit.mean())
        found.append(
            Enough(size, share, share_error(share, draws), float((hit & against).mean()), float(against.mean()))
        )
    return found
