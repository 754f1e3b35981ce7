"""The streams of labels of a campaign: who says when items were moved. Which there are, and how each is named. Pure.

May not: mix streams (`labctl.reporting.operations_table` makes the rows of one), or decide which is right: an
outcome's counts are a person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from labctl.core.events import Event, Kind
from labctl.core.trial import CampaignState, State
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


def witnesses(events: Sequence[Event], state: CampaignState) -> dict[str, int]:
    """Of how many scored episodes that got to go each stream says anything, by stream, and "scored": how many there
    are. A device that reports placements in some episode says of all of them.
    """
    scored = {t.episode for t in state.trials.values() if t.state == State.SCORED and t.go_ns is not None}
    heard: dict[str, set[str]] = {name: set() for name in _WORDS}
    for event in events:
        if event.episode not in scored or event.episode is None:
            continue
        if event.kind == Kind.ITEM_COUNTED:
            heard["operator"].add(event.episode)
        elif event.kind == Kind.OPERATIONS_REVIEWED:
            heard["reviewed"].add(event.episode)
        elif event.kind == Kind.RECORDING_SEALED and event.body.get("detected") is not None:
            heard["detector"].add(event.episode)
        elif event.kind == Kind.OPERATION_RECORDED and event.body["result"] != "safety_stop":
            heard["device"].add(event.episode)
    device = len(scored) if heard["device"] else 0
    return {"scored": len(scored), **{name: len(found) for name, found in heard.items()}, "device": device}


def label_facts(labels: str, found: Mapping[str, int]) -> dict[str, Any]:
    """What a report says of the stream it stands on: {stream, text, episodes: of how many it says anything, scored}.

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
    said = _WORDS[labels]
    rest = found["scored"] - found[labels]
    if rest and labels == "reviewed":
        said += f"; {rest} of {found['scored']} episodes were not reviewed and stand as reported"
    elif rest and labels == "operator":
        said += f"; of {rest} of {found['scored']} episodes none was counted"
    elif rest:
        said += f"; {rest} of {found['scored']} episodes have none"
    return {"stream": labels, "text": said, "episodes": found[labels], "scored": found["scored"]}
