"""Leaderboards through anchors: campaigns that were opened linked to one another, and everything else with its reason.

May not: compare arms of campaigns that are not linked, or rank by a number without how sure it is. A place is a range:
from one more than the arms that are resolved to be faster, to as many as are not resolved to be slower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from labctl.analysis.episodes.linked import CampaignTable, linked_pairs
from labctl.analysis.survival.verdicts import OPEN
from labctl.errors import LinkError, TableError
from labctl.publishing.shown import Shown

Key = tuple[str, str]  # campaign, arm


@dataclass(frozen=True, slots=True)
class Place:
    """An arm on a board. ratio: its restricted mean time an item over the reference's, in its own campaign, with
    interval; below 1 is faster. first, last: the places it may have. also: later campaigns it ran in as an anchor.
    """

    arm: str
    campaign: str
    episodes: int
    ratio: float | None
    interval: tuple[float, float] | None
    first: int
    last: int
    also: tuple[str, ...] = ()
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """Linked campaigns, the arm that all of them ran as an anchor, and the arms held against it."""

    campaigns: tuple[str, ...]
    reference: str
    kind: str
    places: tuple[Place, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Boards:
    """apart: campaign -> why it has no place on any board."""

    boards: list[Board] = field(default_factory=list[Board])
    apart: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class _Join:
    earlier: Shown
    later: Shown
    anchors: tuple[str, ...]
    changed: tuple[str, ...]


def boards_of(campaigns: Sequence[Shown]) -> Boards:
    """The boards of these campaigns."""
    found = Boards()
    joins, why = _joins(campaigns)
    for group in _groups(campaigns, joins):
        if len(group) == 1:
            found.apart[group[0].name] = why.get(group[0].name, "linked to no other campaign of this site")
            continue
        inside = [join for join in joins if join.later in group]
        found.boards.append(_board(group, inside, found))
    return found


def _joins(campaigns: Sequence[Shown]) -> tuple[list[_Join], dict[str, str]]:
    """Which campaigns may be compared, and why a link of one is not followed."""
    by_name = {one.name: one for one in campaigns}
    joins: list[_Join] = []
    why: dict[str, str] = {}
    for later in campaigns:
        for link in later.links:
            earlier = by_name.get(link.campaign)
            if earlier is None:
                why[later.name] = f"it was opened linked to {link.campaign}, which is not in this site"
            elif link.head not in earlier.hashes:
                why[later.name] = f"it was linked to another {link.campaign}: the one here has no such head"
            elif not link.anchors:
                why[later.name] = f"it was linked to {earlier.name} through no arm"
            elif earlier.manifest.kind != later.manifest.kind:
                why[later.name] = f"it is {later.manifest.kind} and {earlier.name} is {earlier.manifest.kind}"
            elif not (earlier.of_items and later.of_items):
                why[later.name] = "its tasks are not counted in items, of which alone linked campaigns are compared"
            elif earlier.tau_s != later.tau_s:
                why[later.name] = f"its horizon is {later.tau_s} s, that of {earlier.name} {earlier.tau_s} s"
            else:
                joins.append(_Join(earlier, later, link.anchors, link.changed))
    return joins, why


def _groups(campaigns: Sequence[Shown], joins: Sequence[_Join]) -> list[list[Shown]]:
    """Campaigns that joins lead between, each group in the order given."""
    of = {one.name: {one.name} for one in campaigns}
    for join in joins:
        both = of[join.earlier.name] | of[join.later.name]
        for name in both:
            of[name] = both
    seen: set[str] = set()
    groups: list[list[Shown]] = []
    for one in campaigns:
        if one.name not in seen:
            groups.append([other for other in campaigns if other.name in of[one.name]])
            seen |= of[one.name]
    return groups


def _board(group: Sequence[Shown], joins: Sequence[_Join], found: Boards) -> Board:
    anchors = set.intersection(*(set(join.anchors) for join in joins))
    people = {arm for one in group for arm in one.people}
    reference = min(anchors, key=lambda arm: (arm not in people, arm), default=None)
    members = list(group)
    if reference is None:
        first = joins[0]
        reference = min(first.anchors)
        members = [first.earlier, first.later]
        for one in group:
            if one not in members:
                found.apart[one.name] = f"no anchor that it shares is {reference}, against which the others are held"
    inside = [join for join in joins if join.later in members and join.earlier in members]
    anchored = {(join.later.name, arm): join.earlier.name for join in inside for arm in join.anchors}
    keys = [(one.name, arm["arm"]) for one in members for arm in one.result["arms"]]
    keys = [key for key in keys if key not in anchored]
    faster, notes = _resolved(members, inside, anchored)
    by_name = {one.name: one for one in members}
    places = []
    for name, arm in keys:
        own = next(one for one in by_name[name].result["arms"] if one["arm"] == arm)
        ratio, interval = (1.0, None) if arm == reference else _ratio(by_name[name], arm, reference)
        ahead = sum((other, (name, arm)) in faster for other in keys)
        behind = sum(((name, arm), other) in faster for other in keys)
        also = tuple(later for (later, which), first in anchored.items() if which == arm and first == name)
        place = Place(
            arm, name, own["episodes"], ratio, interval, 1 + ahead, len(keys) - behind, also, arm == reference
        )
        places.append(place)
    places.sort(key=lambda one: (one.ratio is None, one.ratio, one.arm))
    names = tuple(one.name for one in members)
    return Board(names, reference, members[0].manifest.kind, tuple(places), tuple(dict.fromkeys(notes)))


def _ratio(one: Shown, arm: str, reference: str) -> tuple[float | None, tuple[float, float] | None]:
    """RMST of an arm over that of the reference, and its interval, in one campaign's own report."""
    for pair in one.result["pairs"]:
        if {pair["a"], pair["b"]} == {arm, reference} and pair["log_rmst_ratio"] is not None:
            sign = 1 if pair["a"] == arm else -1
            bounds = pair["log_rmst_ratio_ci"]
            interval = None
            if bounds is not None:
                low, high = sorted(math.exp(sign * bound) for bound in bounds)
                interval = low, high
            return math.exp(sign * pair["log_rmst_ratio"]), interval
    return None, None


def _resolved(
    members: Sequence[Shown], joins: Sequence[_Join], anchored: dict[Key, str]
) -> tuple[set[tuple[Key, Key]], list[str]]:
    """(faster, slower) of every pair that is resolved, and what is to be said of the comparisons. An anchor counts as
    the arm of the campaign that it ran in first.
    """

    def key(name: str, arm: str) -> Key:
        while (name, arm) in anchored:
            name = anchored[name, arm]
        return name, arm

    faster: set[tuple[Key, Key]] = set()
    notes: list[str] = []
    for one in members:
        for pair in one.result["pairs"]:
            ratio = pair["log_rmst_ratio"]
            if pair.get("leads") is None or not ratio:
                continue
            quick, slow = (pair["a"], pair["b"]) if ratio < 0 else (pair["b"], pair["a"])
            faster.add((key(one.name, quick), key(one.name, slow)))
    for join in joins:
        one, two = (CampaignTable(of.name, of.rows, of.manifest.kind) for of in (join.earlier, join.later))
        same = f"counts as the same in {one.name} and {two.name} on its opener's word"
        notes += [f"{arm} {same}" for arm in join.changed]
        between = f"{one.name} and {two.name}"
        if join.later.tau_s is None:
            notes.append(f"{between}: the protocol names no horizon (tau_s); their arms are not compared")
            continue
        try:
            linked = linked_pairs(
                one, two, join.anchors, tau=join.later.tau_s, alpha=join.later.alpha, estimator=join.later.estimator
            )
        except (LinkError, TableError) as error:
            notes.append(f"{between}: {error}")
            continue
        notes += [f"{between}: {text}" for text in linked["warnings"]]
        for pair in linked["pairs"]:
            if pair["verdict"] == OPEN:
                continue
            a, b = key(join.earlier.name, pair["a"]), key(join.later.name, pair["b"])
            faster.add((a, b) if pair["ratio"] < 1 else (b, a))
    return faster, notes
