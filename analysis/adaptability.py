"""Adaptability: what an arm moves after the instruction was switched in mid-episode, and how soon.

May not: know a campaign, count an episode whose controller did not take the switch, or claim that a switch caused
anything: what comes after it is also later.

After NEBULA's success under switches. A switch's stretch goes from when the controller took it to the next switch or
the end; the stretch before it from the switch before, or go. The median time to the first moved item is Kaplan–Meier's:
a stretch that ends without one is censored there, unless the operations table has nothing cut off at the end of the
episode (the rest was lost, or it stopped for safety): then there is never one, as a ghost is never in its curves.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from labctl.analysis.binary import wilson
from labctl.analysis.intervals import LOG
from labctl.analysis.numerals import MISSING, NOT_REACHED, count, estimate, number
from labctl.analysis.stress import mean
from labctl.analysis.survival import NEVER_NS, Ints, Spells, quantile_ns
from labctl.analysis.tables import ARM, Column, Table

NS = 1_000_000_000
HEADING = "Adaptability: after a switch of the instruction"


@dataclass(frozen=True)
class Watched:
    """One scored episode that got to go, in ns of its host: when items were moved (n,), when the controller took each
    switch by name, and when the policy was asked (m,); empty for a person, whose device takes no instruction. spent:
    nothing was cut off at its end, so what had not moved by then never would.
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


def after_switches(watched: Watched, names: Sequence[str]) -> list[dict[str, Any]]:
    """One entry per switch of the protocol, in its order. `met`: the controller took it; else all that follows is None.

    switch_s since go; moved_before in before_s, moved_after in after_s: items and seconds of the stretches around it;
    first_s: from the switch to the first item moved in its stretch, "inf" where there never would be one; asked_s: to
    the first question that carried it.
    """
    taken = sorted((at_ns, name) for name, at_ns in watched.taken_ns.items())
    edges = [watched.go_ns, *(at_ns for at_ns, _ in taken), watched.end_ns]
    found = {}
    for place, (at_ns, name) in enumerate(taken, 1):
        before = [t for t in watched.moved_ns if edges[place - 1] < t <= at_ns]
        after = sorted(t for t in watched.moved_ns if at_ns < t <= edges[place + 1])
        never = "inf" if watched.spent and place == len(taken) else None
        asked = watched.request_ns[(watched.request_ns >= at_ns) & (watched.request_ns < edges[place + 1])]
        found[name] = {
            "switch_s": (at_ns - watched.go_ns) / NS,
            "moved_before": len(before),
            "before_s": (at_ns - edges[place - 1]) / NS,
            "moved_after": len(after),
            "after_s": (edges[place + 1] - at_ns) / NS,
            "first_s": (after[0] - at_ns) / NS if after else never,
            "asked_s": (int(asked[0]) - at_ns) / NS if len(asked) else None,
        }
    keys = ("switch_s", "moved_before", "before_s", "moved_after", "after_s", "first_s", "asked_s")
    about = {"episode": watched.episode, "arm": watched.arm, "object": watched.object}
    return [{**about, "switch": name, "met": name in found, **found.get(name, dict.fromkeys(keys))} for name in names]


def by_arm(entries: Sequence[Mapping[str, Any]], arms: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """One entry per arm with an episode and per switch, from entries of `after_switches`.

    met of `episodes`; succeeded: episodes of those with an item moved after it, with `share` and Wilson's `ci`;
    items and seconds before and after, summed; first_s: median seconds to the first item, "inf" where it is not
    reached; asked_s: as a measure of `stress.arm_stress`. None where no episode met the switch.
    """
    found = []
    for arm in arms:
        for name in names:
            own = [one for one in entries if one["arm"] == arm and one["switch"] == name]
            if own:
                found.append(
                    {"arm": arm, "switch": name, "episodes": len(own), **_measured([o for o in own if o["met"]])}
                )
    return found


def _measured(met: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    n, succeeded = len(met), sum(one["moved_after"] > 0 for one in met)
    return {
        "met": n,
        "succeeded": succeeded,
        "share": succeeded / n if n else None,
        "ci": [*wilson(succeeded, n)] if n else None,
        "moved_before": sum(one["moved_before"] for one in met),
        "before_s": sum(one["before_s"] for one in met),
        "moved_after": sum(one["moved_after"] for one in met),
        "after_s": sum(one["after_s"] for one in met),
        "first_s": _median_first_s(met),
        "asked_s": mean(met, "asked_s", LOG),
    }


def _median_first_s(met: Sequence[Mapping[str, Any]]) -> float | str | None:
    if not met:
        return None
    waited = [one["after_s"] if one["first_s"] is None else one["first_s"] for one in met]
    time_ns = np.array([NEVER_NS if seconds == "inf" else round(seconds * NS) for seconds in waited], np.int64)
    event = np.array([one["first_s"] is not None for one in met])
    if not event.any():
        return "inf"
    median = quantile_ns(Spells(time_ns, event, np.arange(len(met)), len(met)))
    return "inf" if median == NEVER_NS else median / NS


def table(found: Mapping[str, Any] | None) -> Table | None:
    """The report's table; None where the protocol switches nothing. found: {switches, arms, episodes}."""
    entries = (found or {}).get("arms") or []
    if not found or not entries:
        return None
    columns = (
        *(ARM, Column("Switch", "text"), Column("Met / scored episodes"), Column("Moved an item after it")),
        *(
            Column("% [95 %]"),
            Column("Items per min before"),
            Column("Items per min after"),
            Column("Median s to the first"),
        ),
        Column("Asked with it after s [95 %]"),
    )
    rows = tuple(
        (
            entry["arm"],
            entry["switch"],
            f"{count(entry['met'])} / {count(entry['episodes'])}",
            f"{count(entry['succeeded'])} / {count(entry['met'])}" if entry["met"] else MISSING,
            estimate(entry["share"], entry["ci"], scale=100),
            _per_minute(entry["moved_before"], entry["before_s"]),
            _per_minute(entry["moved_after"], entry["after_s"]),
            NOT_REACHED if entry["first_s"] == "inf" else number(entry["first_s"]),
            estimate(entry["asked_s"]["value"], entry["asked_s"]["ci"], digits=2),
        )
        for entry in entries
    )
    told = "; ".join(
        f"{one['name']}, {one['at_s']:g} s after go: “{one['instruction'].rstrip('.')}”" for one in found["switches"]
    )
    note = (
        f"The same in every episode of every arm: {told}. Met: the controller took it while the episode ran; one that "
        "was over before is in no other number, so an arm that is done early meets it in its slow episodes only. After "
        "it: up to the next switch or the end, by what the labels count as moved, whatever the instruction asks. "
        "Intervals of shares are Wilson’s, one episode a unit. Median: Kaplan–Meier; an episode without an item after "
        "it is censored where its stretch ends, or never has one if all that was left was lost or it stopped for "
        "safety. The first may have been under way at the switch. After is also later: fewer items are left, so "
        "compare arms, not an arm with its own past. A person can read the script, a policy cannot. Asked with it: "
        "from the switch to the first question that carried it, which waits for the chunk before it. Each episode’s "
        "values: figures/adaptability.csv."
    )
    return Table(columns, rows, note)


def files(found: Mapping[str, Any] | None) -> dict[str, bytes]:
    """The values of every episode as a CSV file by name; nothing where the protocol switches nothing."""
    rows = (found or {}).get("episodes") or []
    if not rows:
        return {}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(["" if value is None else value for value in row.values()] for row in rows)
    return {"figures/adaptability.csv": text.getvalue().encode()}


def _per_minute(moved: int, seconds: float) -> str:
    return number(60.0 * moved / seconds) if seconds else MISSING
