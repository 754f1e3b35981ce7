"""Gathers what there is to see of one episode: streams, videos, events and phases, as plain values for a viewer.

May not: import a viewer, or hand out an arm or an arm-dependent stream while the campaign is blinded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labctl.campaign import Campaign
from labctl.errors import InputError
from labctl.events import Event, Kind
from labctl.traces import TraceStore
from labctl.trial import Phase

LEVELS = {Kind.GAP: "WARN", Kind.HOLD_RAISED: "WARN", Kind.EPISODE_VOIDED: "WARN", Kind.CELL_FAULTED: "ERROR"}
PHASES = {
    Kind.ARM_REVEALED: "arming",
    Kind.EPISODE_STARTED: "starting",
    Kind.GO: "running",
    Kind.EPISODE_ENDED: "ended",
    Kind.RECORDING_SEALED: "sealed",
}


def find_episode(folders: Sequence[Path], episode: str) -> Path:
    """The campaign folder that holds an episode. Raises InputError when none of them does."""
    for folder in folders:
        with Campaign.open(folder) as campaign:
            if any(event.episode == episode for event in campaign.events()):
                return folder
    looked = ", ".join(folder.name for folder in folders) or "this lab"
    raise InputError(f"no episode {episode!r} in {looked}; list them with: labctl episodes CAMPAIGN")


def look_at(folder: Path, episode: str) -> dict[str, Any]:
    """Everything recorded of an episode, keyed as `EpisodeView`: title, start_ns, streams, videos, events,
    operations, totes, masked.

    streams: {name: {columns, t_ns (n,), values (n, k), unit, arm_dependent}}; videos: {camera: {path, frame_times_ns,
    pts_us}}.
    Before unblinding `masked` is true and arm-dependent streams are left out here already.
    """
    with Campaign.open(folder) as campaign:
        events = [event for event in campaign.events() if event.episode == episode]
        unblinded = [event for event in campaign.events() if event.kind == Kind.CAMPAIGN_UNBLINDED]
        masked = campaign.state.phase != Phase.UNBLINDED
        fixture = campaign.fixture
        condition = next(trial.condition for trial in campaign.state.trials.values() if episode in trial.episodes)
        store = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True)
    try:
        streams = {
            spec.name: _stream(store, episode, spec)
            for spec in store.streams(episode)
            if not (masked and spec.arm_dependent)
        }
    finally:
        store.close()
    return {
        "title": f"{episode} {condition}" + ("" if masked else f" {_arm(unblinded[-1], events)}"),
        "start_ns": _start(events, streams),
        "streams": streams,
        "videos": _videos(folder, events, streams),
        "events": [_line(event) for event in events],
        "operations": _phases(events),
        "totes": {tote.name: (tote.centre_m, tote.size_m) for tote in fixture.tote},
        "masked": masked,
    }


def _stream(store: TraceStore, episode: str, spec: Any) -> dict[str, Any]:
    t_ns, values = store.read(episode, spec.name)
    return {
        "columns": spec.columns,
        "t_ns": t_ns,
        "values": values,
        "unit": spec.unit,
        "arm_dependent": spec.arm_dependent,
    }


def _arm(unblinding: Event, events: Sequence[Event]) -> str:
    arms = {slot["trial"]: slot["arm"] for slot in unblinding.body["schedule"]}
    return arms[events[0].trial or ""]


def _start(events: Sequence[Event], streams: Mapping[str, Any]) -> int:
    """Go; for an episode that never went, its first sample or event."""
    for event in events:
        if event.kind == Kind.GO:
            return int(event.body["go_ns"])
    firsts = [int(stream["t_ns"][0]) for stream in streams.values() if len(stream["t_ns"])]
    return min(firsts, default=events[0].at_ns)


def _videos(folder: Path, events: Sequence[Event], streams: Mapping[str, Any]) -> dict[str, Any]:
    sealed = [event.body["videos"] for event in events if event.kind == Kind.RECORDING_SEALED]
    found = {}
    for camera, entry in (sealed[-1] if sealed else {}).items():
        index = streams.get(f"camera/{camera}")
        if index is None or not entry["frames"] or not len(index["values"]):
            continue
        columns = list(index["columns"])
        found[camera] = {
            "path": folder / entry["file"],
            "frame_times_ns": index["values"][:, columns.index("host_ns")],
            "pts_us": index["values"][:, columns.index("pts_us")],
        }
    return found


def _line(event: Event) -> tuple[int, str, str]:
    body = event.body
    match event.kind:
        case Kind.OPERATION_RECORDED:
            cause = f" ({body['cause']})" if body["cause"] else ""
            return (
                body["t_ns"],
                "INFO" if body["result"] == "success" else "WARN",
                f"item {body['op_index'] + 1}: {body['result']}{cause}",
            )
        case Kind.EPISODE_ENDED:
            return body["end_ns"], "INFO", f"ended: {body['reason']}"
        case Kind.GO:
            return body["go_ns"], "INFO", "go"
        case Kind.GAP:
            return event.at_ns, "WARN", f"gap in {body.get('stream')}: {body.get('why')}"
        case Kind.EPISODE_VOIDED:
            return event.at_ns, "WARN", f"voided: {body['reason']}"
    return event.at_ns, LEVELS.get(Kind(event.kind), "INFO"), str(event.kind)


def _phases(events: Sequence[Event]) -> list[tuple[int, str]]:
    return [(_line(event)[0], PHASES[Kind(event.kind)]) for event in events if event.kind in PHASES]
