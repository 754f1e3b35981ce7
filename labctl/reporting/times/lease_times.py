"""How late the renewals of the motion lease came, per arm of the experiment: a robot that nearly stopped for the lab's
own reasons. Only after unblinding: a policy that loads the machine shows here.

May not: be asked before unblinding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from labctl.core.rollout import LEASES
from labctl.plain import count
from labctl.reporting.times.recorded import read_stream
from labctl.store.read_once import Samples


def renewals_of(store: Samples, episode: str) -> np.ndarray | None:
    """(n,): for each renewal the seconds since the one before; None where none are recorded. (Of the seconds that were
    left then nothing is said: at the end of a budget there are none, as no lease goes beyond it.)
    """
    read = read_stream(store, episode, LEASES)
    return None if read is None else read[1][:, 0].copy()


def lease_lines(
    found: Mapping[str, np.ndarray | None], episodes: Mapping[str, str], arms: Sequence[str]
) -> dict[str, str]:
    """arm -> one line, of the arms whose episodes recorded renewals. episodes: episode -> arm; found: the `renewals_of`
    each.
    """
    rows: dict[str, list[np.ndarray]] = {}
    for episode, arm in episodes.items():
        if (renewals := found.get(episode)) is not None:
            rows.setdefault(arm, []).append(renewals)
    return {f"{arm}:": _line(np.concatenate(rows[arm])) for arm in arms if rows.get(arm)}


def _line(apart: np.ndarray) -> str:
    if not len(apart):
        return "never renewed"
    often = count(len(apart), "renewal")
    return f"{often}, {np.median(apart):.2f} s apart in the median and {apart.max():.2f} s at most"
