"""What each arm's policy ran on, episode by episode, as its seal keeps it; known once the campaign is unblinded.

May not: read anything but the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from labctl.core.record import Record
from labctl.reporting.software_used import Stretch, changed, one_by_one, together
from labctl.reporting.times.answer_times import StartUp


def start_ups(record: Record) -> dict[str, StartUp]:
    """By episode, of controllers that became ready; none before the campaign is unblinded."""
    openings = (record.unblinding or {}).get("openings") or []
    return {opening["episode"]: opening["value"] for opening in openings if opening["field"] == "start_up"}


def policy_software(record: Record, arms: Sequence[str]) -> dict[str, str]:
    """Rows of the provenance: of each arm whose policy says what it runs on, its versions; where they changed, from
    which episode to which.
    """
    found: dict[str, str] = {}
    for arm in arms:
        stretches = _stretches(record, arm)
        if len(stretches) == 1:
            found[f"{arm}:"] = _in_words(stretches[0].of)
        elif stretches:
            found[f"{arm}:"] = one_by_one(stretches, _in_words)
    return found


def changes_of_policies(record: Record, arms: Sequence[str]) -> list[str]:
    """A line for each change of what a policy ran on between two of its episodes."""
    return [
        f"the software of {arm} changed before episode {after.first}: {changed(before.of, after.of)}"
        for arm in arms
        for before, after in pairwise(_stretches(record, arm))
    ]


def _stretches(record: Record, arm: str) -> list[Stretch[Mapping[str, str]]]:
    """An arm's episodes by software, in the order in which they started."""
    begun, of = start_ups(record), record.arms
    went = {name for trial in record.state.trials.values() if of.get(trial.id) == arm for name in trial.episodes}
    told = [(name, software) for name in record.episodes if name in went and (software := _software(begun, name))]
    return together(told)


def _software(begun: Mapping[str, StartUp], episode: str) -> Mapping[str, str]:
    return begun[episode].get("software") or {} if episode in begun else {}


def _in_words(software: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in software.items())
