"""How late the renewals of the motion lease came, per arm of the experiment: a robot that nearly stopped for the lab's
own reasons. Only after unblinding: a policy that loads the machine shows here.

May not: be asked before unblinding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from labctl.core.rollout import LEASES
from labctl.plain import count
from labctl.reporting.times.recorded import samples_of
from labctl.store.read_once import Samples


def lease_lines(store: Samples, episodes: Mapping[str, str], arms: Sequence[str]) -> dict[str, str]:
    """arm -> one line, of the arms whose episodes recorded renewals. episodes: episode -> arm."""
    rows: dict[str, list[np.ndarray]] = {}
    for episode, arm in episodes.items():
        if (read := samples_of(store, episode, LEASES)) is not None:
            rows.setdefault(arm, []).append(read[1])
    return {f"{arm}:": _line(np.concatenate(rows[arm])) for arm in arms if rows.get(arm)}


def _line(renewals: np.ndarray) -> str:
    """renewals (n, 2): seconds since the one before, seconds that were left. (At the end of a budget none are left: no
    lease goes beyond it. So only the first is summed up.)
    """
    if not len(renewals):
        return "never renewed"
    apart = renewals[:, 0]
    often = count(len(renewals), "renewal")
    return f"{often}, {np.median(apart):.2f} s apart in the median and {apart.max():.2f} s at most"
