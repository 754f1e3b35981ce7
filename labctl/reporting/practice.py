"""What teleoperators practised before the reference, for a report: in one campaign, or in a cell's parts of one.

May not: put practice into a number of the reference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from labctl.config.protocol_schema import Protocol
from labctl.core.record import Record
from labctl.people.practised import practice_before, rule_of

if TYPE_CHECKING:
    from labctl.analysis.episode_facts import Practice


def human_trials(record: Record, protocol: Protocol) -> frozenset[str]:
    """The trials of the reference, known after unblinding."""
    human = {arm.name for arm in protocol.arm if arm.kind == "human"}
    return frozenset(trial for trial, arm in record.arms.items() if arm in human)


def practice(parts: Sequence[tuple[Record, Collection[str]]]) -> Practice:
    """What teleoperators practised before the reference, and whether they reached the plateau. parts: the records of
    one cell under one protocol in their order, each with the trials of its reference; whoever drove the reference in
    an earlier one has no practice in a later one.
    """
    from labctl.analysis.episodes import operators

    entries, drove = [], set[str]()
    for record, human in parts:
        entries += [body for body in practice_before(record, human) if body["person"] not in drove]
        ran = (one for one in record.episodes.values() if one.trial in human and one.go_ns is not None)
        drove.update(person for episode in ran for person in episode.operators)
    rule = rule_of(parts[0][0].state.opened)
    return {"rule": rule, "people": operators.practised(entries, last=rule["last"], within=rule["within"])}
