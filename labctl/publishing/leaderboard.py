"""Leaderboards through anchors: campaigns that were opened linked to one another, and everything else with its reason.

May not: compare arms of campaigns that are not linked, or rank by a number without how sure it is. A place is a range:
from one more than the arms that are resolved to be faster, to as many as are not resolved to be slower.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labctl.analysis.episodes.linked import CampaignTable, linked_pairs
from labctl.analysis.survival.verdicts import OPEN
from labctl.errors import LinkError, TableError
from labctl.publishing.shown import Shown
from labctl.store.linking import Linked, not_the_same, unlike

Key = tuple[str, str]  # campaign, arm


@dataclass(frozen=True, slots=True)
class Place:
    """An arm on a board. ratio: its restricted mean time an item over the reference's, in its own campaign, with
    interval; below 1 is faster. first, last: the places it may have. also: the other campaigns it ran in.
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
    unsaid: tuple[str, ...] = ()


def boards_of(campaigns: Sequence[Shown]) -> Boards:
    """The boards of these campaigns."""
    found = Boards()
    joins, why = _as_recorded(*_joins(campaigns))
    for group in _groups(campaigns, joins):
        if len(group) == 1:
            found.apart[group[0].name] = why.get(group[0].name, "linked to no other campaign of this site")
            continue
        _add_boards(group, [join for join in joins if join.later in group], found)
    return found


def _joins(campaigns: Sequence[Shown]) -> tuple[list[_Join], dict[str, str]]:
    """Which campaigns may be compared, and why a link to or from one is not followed."""
    by_name = {one.name: one for one in campaigns}
    joins: list[_Join] = []
    why: dict[str, list[str]] = {}
    for later in campaigns:
        for link in later.links:
            earlier = by_name.get(link.campaign)
            if earlier is None:
                text = f"it was opened linked to {link.campaign}, which is not in this site"
                why.setdefault(later.name, []).append(text)
            elif link.head not in earlier.hashes:
                text = f"it was linked to another {link.campaign}: the one here has no such head"
                why.setdefault(later.name, []).append(text)
            elif (text := _apart(earlier, later, link.anchors)) is not None:
                why.setdefault(later.name, []).append(f"it was opened linked to {earlier.name}, but {text}")
                why.setdefault(earlier.name, []).append(f"{later.name} was opened linked to it, but {text}")
            else:
                joins.append(_Join(earlier, later, link.anchors, link.changed))
    return joins, {name: "; ".join(texts) for name, texts in why.items()}


def _apart(earlier: Shown, later: Shown, anchors: Sequence[str]) -> str | None:
    """Why the link between two campaigns is not followed; None where it is."""
    if not anchors:
        return "through no arm"
    if earlier.manifest.kind != later.manifest.kind:
        return f"{earlier.name} is {earlier.manifest.kind} and {later.name} is {later.manifest.kind}"
    if not (earlier.of_items and later.of_items):
        return "their tasks are not all counted in items, of which alone linked campaigns are compared"
    if earlier.tau_s != later.tau_s:
        return f"the horizon of {earlier.name} is {earlier.tau_s} s and that of {later.name} {later.tau_s} s"
    return None


def _as_recorded(joins: Sequence[_Join], why: Mapping[str, str]) -> tuple[list[_Join], dict[str, str]]:
    """The joins with those anchors alone that are the same by both records, or were said to be changed; one that has
    none left is no join.
    """
    kept: list[_Join] = []
    apart = {name: [text] for name, text in why.items()}
    for join in joins:
        link = Linked(join.earlier.name, "", join.anchors, join.changed)
        others = not_the_same(link, join.later.name, join.earlier.treatments, join.later.treatments)
        anchors = tuple(arm for arm in join.anchors if arm not in others)
        if anchors:
            kept.append(replace(join, anchors=anchors, unsaid=tuple(others.values())))
        else:
            text = "; ".join(others.values())
            apart.setdefault(join.later.name, []).append(f"it was opened linked to {join.earlier.name}, but {text}")
            apart.setdefault(join.earlier.name, []).append(f"{join.later.name} was opened linked to it, but {text}")
    return kept, {name: "; ".join(texts) for name, texts in apart.items()}


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


def _add_boards(group: Sequence[Shown], joins: Sequence[_Join], found: Boards) -> None:
    """The boards of campaigns that joins lead between: one of as many as one anchor holds together, then of those left;
    a campaign that is left alone stands apart.
    """
    held: dict[str, str] = {}
    left = list(group)
    while inside := [join for join in joins if join.earlier in left and join.later in left]:
        reference, members = _largest(left, inside)
        among = [join for join in inside if join.earlier in members and join.later in members]
        found.boards.append(_board(members, reference, among))
        held |= {one.name: reference for one in members}
        left = [one for one in left if one not in members]
    for one in left:
        through = [
            f"{other.name} through {', '.join(join.anchors)}, whose arms are held against {held[other.name]}"
            for join in joins
            for other, this in ((join.earlier, join.later), (join.later, join.earlier))
            if this is one
        ]
        found.apart[one.name] = f"it is linked to {'; and to '.join(through)}"


def _largest(campaigns: Sequence[Shown], joins: Sequence[_Join]) -> tuple[str, list[Shown]]:
    """The anchor that holds most campaigns together, of like ones a person's arm, and those campaigns."""
    people = {arm for one in campaigns for arm in one.people}
    choices: list[tuple[str, list[Shown]]] = []
    for arm in sorted({arm for join in joins for arm in join.anchors}, key=lambda arm: (arm not in people, arm)):
        groups = _groups(campaigns, [join for join in joins if arm in join.anchors])
        choices.append((arm, max(groups, key=len)))
    return max(choices, key=lambda choice: len(choice[1]))


def _board(members: Sequence[Shown], reference: str, joins: Sequence[_Join]) -> Board:
    by_name = {one.name: one for one in members}
    same = _same_arms(members, joins)
    keys = list(dict.fromkeys(same.values()))
    faster, notes = _resolved(members, joins, same)
    places: list[Place] = []
    for name, arm in keys:
        own = next(one for one in by_name[name].result["arms"] if one["arm"] == arm)
        ratio, interval = (1.0, None) if arm == reference else _ratio(by_name[name], arm, reference)
        ahead = sum((other, (name, arm)) in faster for other in keys)
        behind = sum(((name, arm), other) in faster for other in keys)
        also = tuple(of for (of, which), first in same.items() if first == (name, arm) and (of, which) != first)
        place = Place(
            arm, name, own["episodes"], ratio, interval, 1 + ahead, len(keys) - behind, also, arm == reference
        )
        places.append(place)
    places.sort(key=lambda one: (one.ratio is None, one.ratio, one.arm))
    names = tuple(one.name for one in members)
    return Board(names, reference, members[0].manifest.kind, tuple(places), tuple(dict.fromkeys(notes)))


def _same_arms(members: Sequence[Shown], joins: Sequence[_Join]) -> dict[Key, Key]:
    """Every arm of these campaigns -> the arm that it is: an anchor is one arm in all campaigns that joins lead to
    through it, and goes by the first of them that ran it.
    """
    ran = {(one.name, arm["arm"]): None for one in members for arm in one.result["arms"]}
    first: dict[Key, Key] = {}
    for arm in dict.fromkeys(arm for _, arm in ran):
        for group in _groups(members, [join for join in joins if arm in join.anchors]):
            keys = [(one.name, arm) for one in group if (one.name, arm) in ran]
            first |= {key: keys[0] for key in keys}
    return {key: first[key] for key in ran}


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
    members: Sequence[Shown], joins: Sequence[_Join], same: Mapping[Key, Key]
) -> tuple[set[tuple[Key, Key]], list[str]]:
    """(faster, slower) of every pair that is resolved, and what is to be said of the comparisons. same: as
    `_same_arms` has it. Of verdicts that go round in a circle none counts.
    """
    faster: dict[tuple[Key, Key], list[str]] = {}
    notes: list[str] = []

    def say(quick: Key, slow: Key, where: str) -> None:
        if quick in same and slow in same and same[quick] != same[slow]:
            faster.setdefault((same[quick], same[slow]), []).append(where)

    for one in members:
        for pair in one.result["pairs"]:
            ratio = pair["log_rmst_ratio"]
            if pair.get("leads") is None or not ratio:
                continue
            quick, slow = (pair["a"], pair["b"]) if ratio < 0 else (pair["b"], pair["a"])
            say((one.name, quick), (one.name, slow), one.name)
    for join in joins:
        one, two = (CampaignTable(of.name, of.rows, of.manifest.kind) for of in (join.earlier, join.later))
        notes += [f"{text}, and joins nothing" for text in join.unsaid]
        alike = f"counts as the same in {one.name} and {two.name} on its opener's word"
        notes += [f"{arm} {alike}" for arm in join.changed]
        between = f"{one.name} and {two.name}"
        notes += [f"{between}: {text}" for text in unlike(join.earlier.opened, join.later.opened)]
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
            a, b = (join.earlier.name, pair["a"]), (join.later.name, pair["b"])
            say(*((a, b) if pair["ratio"] < 1 else (b, a)), between)
    for circle in _circles(faster):
        said = [f"{quick[1]} before {slow[1]} by {', '.join(faster.pop((quick, slow)))}" for quick, slow in circle]
        notes.append(f"verdicts go round in a circle, and none of them counts for a place: {'; '.join(said)}")
    return set(faster), notes


def _circles(faster: Collection[tuple[Key, Key]]) -> list[list[tuple[Key, Key]]]:
    """Pairs from whose slower arm other pairs lead back to the faster, those of one circle together."""
    after: dict[Key, set[Key]] = {}
    for quick, slow in faster:
        after.setdefault(quick, set()).add(slow)
    reached: dict[Key, frozenset[Key]] = {}
    for start in after:
        seen, left = set[Key](), [start]
        while left:
            new = after.get(left.pop(), set()) - seen
            seen |= new
            left += new
        reached[start] = frozenset(seen)
    circles: dict[frozenset[Key], list[tuple[Key, Key]]] = {}
    for quick, slow in faster:
        if quick in reached.get(slow, ()):
            around = frozenset(arm for arm in reached[quick] if quick in reached.get(arm, ()))
            circles.setdefault(around, []).append((quick, slow))
    return list(circles.values())
