"""Which software each episode ran on, and whether it changed within a campaign.

May not: read anything but the record and the version that asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from labctl.core.record import Record
from labctl.messages.body_parts import Pins
from labctl.software import collect_pins, in_words


class Stretch(NamedTuple):
    """Episodes in the order in which they ran that had the same software: the first, the last, how many."""

    first: str
    last: str
    episodes: int
    pins: Pins


def stretches(record: Record) -> list[Stretch]:
    """The scored episodes by software, in the order in which they started."""
    scored = {episode.id for _, episode in record.scored}
    started = [(e.id, e.start.get("pins")) for e in record.episodes.values() if e.id in scored and e.start is not None]
    return together((name, pins) for name, pins in started if pins is not None)


def together(episodes: Iterable[tuple[str, Pins]]) -> list[Stretch]:
    """Episodes that follow each other and have the same pins, as one."""
    found: list[Stretch] = []
    for name, pins in episodes:
        if found and found[-1].pins == pins:
            found[-1] = found[-1]._replace(last=name, episodes=found[-1].episodes + 1)
        else:
            found.append(Stretch(name, name, 1, pins))
    return found


def software_facts(record: Record) -> dict[str, str]:
    """Rows of the provenance: what analysed, and where the software changed between episodes, what ran which."""
    facts = {"analysed_by": in_words(collect_pins())}
    found = stretches(record)
    if len(found) > 1:
        facts["software_of_episodes"] = "; ".join(
            f"{one.first} to {one.last} ({one.episodes}): {in_words(one.pins)}" for one in found
        )
    return facts


def changes(record: Record) -> list[str]:
    """A line for each change of software between two episodes that follow each other."""
    found = stretches(record)
    return [
        f"the software changed before episode {after.first}: {differing(before.pins, after.pins)}"
        for before, after in pairwise(found)
    ]


def differing(before: Pins, after: Pins) -> str:
    """What differs, each as NAME OLD to NEW."""
    old, new = _flat(before), _flat(after)
    names = [name for name in (*old, *(name for name in new if name not in old)) if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name, 'absent')} to {new.get(name, 'absent')}" for name in names)


def _flat(pins: Pins) -> Mapping[str, str]:
    git = pins["git"]
    commit = "none" if git is None else git["commit"][:12] + (" with local changes" if git["dirty"] else "")
    found = {"labctl": pins["labctl"], "commit": commit, "python": pins["python"], **pins["packages"]}
    return found | ({"code": pins["code"][:12]} if "code" in pins else {})
