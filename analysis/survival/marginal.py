"""Wang & Chang's estimator of how long an operation takes, whatever episode it is in: rows that count unequally.

May not: estimate or resample; it says which rows count how much, and `curves.py` and the kernel do the rest.

A budget ends a slow episode after few operations and a quick one after many, so that operations thrown together are
mostly of quick episodes and what is left of the budget censors the slow ones first. Here an episode counts once: each
of its m operations that ended counts 1/m, and the one that the end cut short only where it is all there is, since given
how many ended those are exchangeable and the last is not (M.-C. Wang & S.-H. Chang, J. Amer. Statist. Assoc. 94 (1999)
146). It takes for granted that an episode's operations are alike: where later ones are harder it is of a mixture of
them, and `rmst_first_operation` stands beside it.
"""

from __future__ import annotations

import math

import numpy as np
from labctl.analysis.survival.curves import Durations

KAPLAN_MEIER, WANG_CHANG = "kaplan_meier", "wang_chang"
ESTIMATORS = (KAPLAN_MEIER, WANG_CHANG)
"""What RMSTs are made of: every operation counts once, or every episode does."""
WHOLE = math.lcm(*range(1, 21))
"""What an episode counts: 1/m of it is a whole number up to twenty operations, and next to one (5e-8) beyond."""


def marginal(durations: Durations) -> Durations:
    """The rows that count, those of an episode `WHOLE` together; episodes are numbered as they were."""
    ended = np.bincount(durations.episode[durations.event], minlength=durations.episodes)[durations.episode]
    kept = durations.event | (ended == 0)
    rows = np.bincount(durations.episode[kept], minlength=durations.episodes)[durations.episode[kept]]
    worth = np.round(WHOLE / rows)
    return Durations(durations.time_ns[kept], durations.event[kept], durations.episode[kept], durations.episodes, worth)
