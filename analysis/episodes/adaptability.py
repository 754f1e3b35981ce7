"""Adaptability: what an arm moves after the instruction was switched in mid-episode, and how soon.

May not: read a campaign, count an episode whose controller did not take the switch, call an item moved after it a
success that nobody judged, or claim that a switch caused anything: what comes after it is also later.

After NEBULA's success under switches: an arm that is deaf to one moves items all the same, so an episode succeeds only
where an assessor could say that it was ignored, and did not. A switch's stretch goes from when the controller took it
to the next switch or the end; the stretch before it from the switch before, or go. The median time to the first moved
item is Kaplan–Meier's: a stretch that ends without one is censored there, unless the operations table has nothing cut
off at the end of the episode (the rest was lost, or it stopped for safety): then there is never one, as a ghost is
never in its curves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labctl.analysis.binary.rates import wilson
from labctl.analysis.episode_facts import AfterSwitch, ArmAfterSwitch, Stretch
from labctl.analysis.episodes.stress import mean
from labctl.analysis.survival.curves import NEVER_NS, Durations, Ints, quantile_ns
from labctl.analysis.survival.intervals import LOG
from labctl.analysis.table import NS

NOT_MET: Stretch = {
    "switch_s": None,
    "moved_before": None,
    "before_s": None,
    "moved_after": None,
    "after_s": None,
    "first_s": None,
    "asked_s": None,
}


@dataclass(frozen=True)
class Watched:
    """One scored episode that got to go, in ns of its host: when items were moved (n,), when the controller took each
    switch by name, and when the policy was asked (m,); empty for a person, whose device takes no instruction. spent:
    nothing was cut off at its end, so what had not moved by then never would. ignored: by switch, whether an assessor
    said so; a switch that nobody judges is not in it.
    """

    episode: str
    arm: str
    object: str
    go_ns: int
    end_ns: int
    moved_ns: Sequence[int] = ()
    taken_ns: Mapping[str, int] = field(default_factory=dict)
    request_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    spent: bool = False
    ignored: Mapping[str, bool] = field(default_factory=dict)


def after_switches(watched: Watched, names: Sequence[str]) -> list[AfterSwitch]:
    """One entry per switch of the protocol, in its order. `met`: the controller took it; else all that follows is None.

    switch_s since go; moved_before in before_s, moved_after in after_s: items and seconds of the stretches around it;
    first_s: from the switch to the first item moved in its stretch, "inf" where there never would be one; asked_s: to
    the first question that carried it.
    """
    taken = sorted((at_ns, name) for name, at_ns in watched.taken_ns.items())
    edges = [watched.go_ns, *(at_ns for at_ns, _ in taken), watched.end_ns]
    found: dict[str, Stretch] = {}
    for place, (at_ns, name) in enumerate(taken, 1):
        before = [t for t in watched.moved_ns if edges[place - 1] < t <= at_ns]
        after = sorted(t for t in watched.moved_ns if at_ns < t <= edges[place + 1])
        never = "inf" if watched.spent and place == len(taken) else None
        requests = watched.request_ns[(watched.request_ns >= at_ns) & (watched.request_ns < edges[place + 1])]
        found[name] = {
            "switch_s": (at_ns - watched.go_ns) / NS,
            "moved_before": len(before),
            "before_s": (at_ns - edges[place - 1]) / NS,
            "moved_after": len(after),
            "after_s": (edges[place + 1] - at_ns) / NS,
            "first_s": (after[0] - at_ns) / NS if after else never,
            "asked_s": (int(requests[0]) - at_ns) / NS if len(requests) else None,
        }
    return [
        {
            "episode": watched.episode,
            "arm": watched.arm,
            "object": watched.object,
            "switch": name,
            "met": name in found,
            "followed": _followed(watched.ignored.get(name), found.get(name)),
            **found.get(name, NOT_MET),
        }
        for name in names
    ]


def _followed(ignored: bool | None, stretch: Stretch | None) -> bool | None:
    return None if ignored is None or stretch is None else not ignored and bool(stretch["moved_after"])


def by_arm(entries: Sequence[AfterSwitch], arms: Sequence[str], names: Sequence[str]) -> list[ArmAfterSwitch]:
    """One entry per arm with an episode and per switch, from entries of `after_switches`.

    met of `episodes`; moved: episodes of those with an item moved after it; succeeded: that followed it, with `share`
    and Wilson's `ci`, None where nobody judged;
    items and seconds before and after, summed; first_s: median seconds to the first item, "inf" where it is not
    reached; asked_s: as a measure of `stress.arm_stress`. None where no episode met the switch.
    """
    found: list[ArmAfterSwitch] = []
    for arm in arms:
        for name in names:
            own = [one for one in entries if one["arm"] == arm and one["switch"] == name]
            if own:
                found.append(_measured(arm, name, len(own), [one for one in own if one["met"]]))
    return found


def _measured(arm: str, switch: str, episodes: int, met: Sequence[AfterSwitch]) -> ArmAfterSwitch:
    n, judged = len(met), [one["followed"] for one in met if one["followed"] is not None]
    succeeded = sum(judged) if judged else None
    return {
        "arm": arm,
        "switch": switch,
        "episodes": episodes,
        "met": n,
        "moved": sum((one["moved_after"] or 0) > 0 for one in met),
        "succeeded": succeeded,
        "share": None if succeeded is None else succeeded / len(judged),
        "ci": None if succeeded is None else [*wilson(succeeded, len(judged))],
        "moved_before": sum(one["moved_before"] or 0 for one in met),
        "before_s": sum(one["before_s"] or 0.0 for one in met),
        "moved_after": sum(one["moved_after"] or 0 for one in met),
        "after_s": sum(one["after_s"] or 0.0 for one in met),
        "first_s": _median_first_s(met),
        "asked_s": mean((one["asked_s"] for one in met), LOG),
    }


def _median_first_s(met: Sequence[AfterSwitch]) -> float | str | None:
    if not met:
        return None
    waited = [one["after_s"] if one["first_s"] is None else one["first_s"] for one in met]
    time_ns = np.array([_ns(seconds) for seconds in waited], np.int64)
    event = np.array([one["first_s"] is not None for one in met])
    if not event.any():
        return "inf"
    median = quantile_ns(Durations(time_ns, event, np.arange(len(met)), len(met)))
    return "inf" if median == NEVER_NS else median / NS


def _ns(seconds: float | str | None) -> int:
    return NEVER_NS if seconds == "inf" else round(float(seconds or 0.0) * NS)
