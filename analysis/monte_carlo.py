"""How far a share of random draws may be off: the Monte-Carlo error beside every p and every power.

May not: draw, or say which draws were random: whoever listed every way has no error.
"""

from __future__ import annotations

import math


def share_error(share: float, draws: int) -> float:
    """Monte-Carlo standard error of a share of `draws`, never 0 (a share of 0 or 1 is moved in by half a draw)."""
    p = min(max(share, 0.5 / draws), 1 - 0.5 / draws)
    return math.sqrt(p * (1 - p) / draws)
