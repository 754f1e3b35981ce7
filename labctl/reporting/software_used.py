"""Which software each episode ran on, and whether it changed within a campaign.

May not: read anything but the record and the version that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from labctl.core.event_bodies import EpisodeStarted
from labctl.core.record import Record
from labctl.messages.body_parts import Pins
from labctl.software import analysed_by, in_words

T = TypeVar("T")


class Stretch(NamedTuple, Generic[T]):
    """Episodes in the order in which they ran that had the same software, or robot: the first, the last, how many."""

    first: str
    last: str
    episodes: int
    of: T


def _stretches(record: Record) -> list[Stretch[Pins]]:
    """The scored episodes by software, in the order in which they started."""
    return together(episodes_with(record, lambda start: start.get("pins")))


def episodes_with(record: Record, fact_of: Callable[[EpisodeStarted], T | None]) -> list[tuple[str, T]]:
    """Scored episodes, and what their start says of something; those that say nothing are left out."""
    scored = {episode.id for _, episode in record.scored}
    started = [(one.id, one.start) for one in record.episodes.values() if one.id in scored and one.start is not None]
    return [(name, fact) for name, start in started if (fact := fact_of(start)) is not None]


def together(episodes: Iterable[tuple[str, T]]) -> list[Stretch[T]]:
    """Episodes that follow each other and have the same, as one."""
    found: list[Stretch[T]] = []
    for name, of in episodes:
        if found and found[-1].of == of:
            found[-1] = found[-1]._replace(last=name, episodes=found[-1].episodes + 1)
        else:
            found.append(Stretch(name, name, 1, of))
    return found


def one_by_one(found: Iterable[Stretch[T]], in_words: Callable[[T], str]) -> str:
    """Which episodes had what, in the order in which they ran."""
    return "; ".join(f"{one.first} to {one.last} ({one.episodes}): {in_words(one.of)}" for one in found)


def software_facts(record: Record) -> dict[str, str]:
    """Rows of the provenance: what analysed, and where the software changed between episodes, what ran which."""
    facts = {"analysed_by": analysed_by()}
    found = _stretches(record)
    if len(found) > 1:
        facts["software_of_episodes"] = one_by_one(found, in_words)
    return facts


def changes(record: Record) -> list[str]:
    """A line for each change of software between two episodes that follow each other."""
    return [
        f"the software changed before episode {after.first}: {differing(before.of, after.of)}"
        for before, after in pairwise(_stretches(record))
    ]


def differing(before: Pins, after: Pins) -> str:
    """What differs, each as NAME OLD to NEW."""
    old, new = _flat(before), _flat(after)
    if "beneath" in before and "beneath" in after:  # an earlier labctl wrote none
        old, new = {**before["beneath"], **old}, {**after["beneath"], **new}
    return changed(old, new)


def changed(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """What differs, each as NAME OLD to NEW."""
    names = [name for name in (*old, *(name for name in new if name not in old)) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name, 'absent')} to {new.get(name, 'absent')}" for name in names)


def _flat(pins: Pins) -> Mapping[str, str]:
    git = pins["git"]
    commit = "none" if git is None else git["commit"][:12] + (" with local changes" if git["dirty"] else "")
    found = {"labctl": pins["labctl"], "commit": commit, "python": pins["python"], **pins["packages"]}
    code = {"code": pins["code"][:12]} if "code" in pins else {}
    return found | code | ({"the lab's modules": pins["modules"][:12]} if "modules" in pins else {})
