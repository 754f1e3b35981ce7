"""The streams of labels of a campaign: who says when items were moved. Which there are, and how each is named. Pure.

May not: mix streams (`labctl.reporting.operations_table` makes the rows of one), or decide which is right: an
outcome's counts are a person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labctl.analysis.report.lab_facts import Labels
from labctl.core.record import Record
from labctl.errors import StateError

STREAMS = ("best", "operator", "detector", "reviewed", "device")
_WORDS = {
    "operator": "the operator's tally as it was counted",
    "detector": "the detector's, from the traces of gripper and tool",
    "reviewed": "an assessor's review",
    "device": "what devices reported",
}
_WITHOUT = {
    "operator": "no operator counted an item while an episode ran",
    "detector": "no sealed recording holds what the detector found",
    "reviewed": "no episode was reviewed",
    "device": "no device reported a placement",
}


def tallied(counts: Iterable[tuple[int, int]]) -> list[int]:
    """When each item that stands in the operator's tally was counted, ns, ascending. counts: (moved so far, t_ns) of
    every ItemCounted of one episode, in order; one taken back takes the last.
    """
    times: list[int] = []
    for moved, t_ns in counts:
        del times[moved:]
        times += [t_ns] * (moved - len(times))
    return times


def witnesses(record: Record) -> dict[str, int]:
    """Of how many scored episodes that got to go each stream says anything, by stream, and "scored": how many there
    are. A device that reports placements in some episode says of all of them.
    """
    went = [episode for _, episode in record.scored if episode.go_ns is not None]
    telling = any(len(episode.operations) > len(episode.stops) for episode in went)
    return {
        "scored": len(went),
        "operator": sum(episode.counted is not None for episode in went),
        "detector": sum(episode.detected is not None for episode in went),
        "reviewed": sum(episode.reviewed is not None for episode in went),
        "device": len(went) if telling else 0,
    }


def label_facts(labels: str, found: Mapping[str, int]) -> Labels:
    """What a report says of the stream it stands on.

    Raises StateError, in one line, when nothing of that stream was recorded.
    """
    if labels != "best" and not found[labels]:
        there = [name for name in _WORDS if found[name]]
        have = f"there is {', '.join(there)}" if there else "there is none at all"
        raise StateError(f"--labels {labels}: {_WITHOUT[labels]}; {have}")
    if labels == "best":
        other = "device" if found["device"] else "detector"
        if not found["reviewed"]:
            return {"stream": other, "text": _WORDS[other], "episodes": found[other], "scored": found["scored"]}
        text = f"{_WORDS['reviewed']} for {found['reviewed']} of {found['scored']} episodes, else {_WORDS[other]}"
        stream = "reviewed" if found["reviewed"] == found["scored"] else f"reviewed, else {other}"
        return {"stream": stream, "text": text, "episodes": found["scored"], "scored": found["scored"]}
    sentence = _WORDS[labels]
    rest = found["scored"] - found[labels]
    if rest and labels == "reviewed":
        sentence += f"; {rest} of {found['scored']} episodes were not reviewed and stand as reported"
    elif rest and labels == "operator":
        sentence += f"; of {rest} of {found['scored']} episodes none was counted"
    elif rest:
        sentence += f"; {rest} of {found['scored']} episodes have none"
    known: Labels = {"stream": labels, "text": sentence, "episodes": found[labels], "scored": found["scored"]}
    return {**known, "asked": labels}
