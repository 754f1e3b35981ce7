"""How far a share of random draws may be off: the Monte-Carlo error beside every p and every power.

May not: draw, or say which draws were random: whoever listed every way has no error.
"""

from __future__ import annotations

import math

from labctl.errors import TableError


def check_draws(where: str, alpha: float, **counts: int) -> None:
    """Raises `TableError` for a level, or a number of replicates by its name, that makes no sense."""
    if not 0 < alpha < 1:
        raise TableError(where, f"alpha is {alpha:g}; allowed is a level between 0 and 1, such as 0.05")
    for name, count in counts.items():
        if count < 1:
            raise TableError(where, f"{name} is {count}; allowed is a whole number, 1 or more")


def share_error(share: float, draws: int) -> float:
    """Monte-Carlo standard error of a share of `draws`, never 0 (a share of 0 or 1 is moved in by half a draw)."""
    p = min(max(share, 0.5 / draws), 1 - 0.5 / draws)
    return math.sqrt(p * (1 - p) / draws)


MOST, LEAST, WHOLE_UNTIL = 9999, 499, 20_000
"""Replicates and relabellings, and from how many operations on there are fewer."""


def replicates_for(operations: int) -> int:
    """How many replicates and relabellings a table gets where nobody says: `MOST`, of a large one fewer, since its time
    is theirs times its operations while what they leave open stays ± √(p (1 - p) / B). At least `LEAST`.
    """
    return max(LEAST, min(MOST, MOST * WHOLE_UNTIL // max(operations, 1)))
