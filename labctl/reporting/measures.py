"""What a report measures beside the outcomes: how people touched the episodes of each arm, and its traces' timing.

May not: be asked before unblinding (every part is by arm), or count an episode that was not scored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from labctl.clock import SECOND
from labctl.core.interventions import Ran, by_arm
from labctl.core.record import Record
from labctl.errors import LabctlError, StateError
from labctl.store.traces import TraceStore

POLICY, ACTION = "policy", "arm/action"
QUESTION = ("capture_ns", "request_ns", "first_ns", "executed")


def touched_by_arm(record: Record, rows: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> list[dict[str, Any]]:
    """`interventions.by_arm` of the scored episodes that got to go. rows: the operations table, which says when items
    were moved.
    """
    of, moved = record.arms, success_times(rows)
    return by_arm(
        (
            Ran(
                of[episode.trial],
                episode.interventions,
                episode.go_ns,
                episode.end_ns,
                [episode.go_ns + round(at_s * SECOND) for at_s in moved.get(episode.id, ())],
            )
            for _, episode in record.scored
            if episode.go_ns is not None and episode.end_ns is not None
        ),
        arms,
    )


def success_times(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """{episode: [seconds from go to each success]}, from rows of the operations table."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["kind"] == "success":
            times = found.setdefault(row["episode"], [])
            times.append((times[-1] if times else 0.0) + float(row["time_s"]))
    return found


def watched(
    episodes: Sequence[Mapping[str, Any]],
    record: Record,
    rows: Sequence[Mapping[str, Any]],
    people: Collection[str],
) -> list[dict[str, Any]]:
    """Episodes of `traces_of` as the arguments of `analysis.adaptability.Watched`: when items were moved, by rows of
    the operations table, and when their controllers took each switch. people: arms that no policy drives.
    """
    moved = success_times(rows)
    cut = {row["episode"] for row in rows if row["kind"] == "censored"}
    found = []
    for one in episodes:
        own = {name: one[name] for name in ("episode", "arm", "object", "go_ns", "end_ns")}
        own["spent"] = one["episode"] not in cut
        moved_ns = (one["go_ns"] + round(at_s * SECOND) for at_s in moved.get(one["episode"], ()))
        own["moved_ns"] = [min(at_ns, one["end_ns"]) for at_ns in moved_ns]  # rows are rounded to 1 us
        own["taken_ns"] = {switch.name: switch.t_ns for switch in record.episodes[one["episode"]].switches}
        if "request_ns" in one and one["arm"] not in people:
            own["request_ns"] = one["request_ns"]
        found.append(own)
    return found


def traces_of(store: TraceStore, record: Record, *, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """Questions and sent targets of every scored episode that got to go, as the arguments of `analysis.stress.Traces`.
    Episodes that a person took over are left out, and so are those `without` a recording.

    Raises StateError before unblinding: timing tells arms apart. Streams that are not there, or hold a damaged chunk,
    are left empty.
    """
    if record.unblinding is None:
        raise StateError(f"the campaign is {record.state.phase}; stress measures tell arms apart, unblind it first")
    found, of = [], record.arms
    for trial, episode in record.scored:
        if episode.go_ns is None or episode.end_ns is None or episode.taken_over or episode.id in without:
            continue
        about = {"episode": episode.id, "arm": of[trial.id], "object": trial.condition.split("/")[0]}
        specs = {spec.name: spec.columns for spec in store.streams(episode.id)}
        asked = _read(store, episode.id, POLICY, specs)
        if asked is not None and all(name in specs[POLICY] for name in QUESTION):
            capture, request, first, executed = (asked[1][:, specs[POLICY].index(name)] for name in QUESTION)
            about |= {"capture_ns": capture, "request_ns": request, "first_ns": np.where(executed > 0, first, -1)}
        told = _read(store, episode.id, ACTION, specs)
        if told is not None:
            joints = [i for i, name in enumerate(specs[ACTION]) if name.startswith("sent.") and name != "sent.gripper"]
            about |= {"sent_ns": told[0], "sent": told[1][:, joints]}
        found.append({**about, "go_ns": episode.go_ns, "end_ns": episode.end_ns})
    return found


def _read(
    store: TraceStore, episode: str, stream: str, specs: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray] | None:
    if stream not in specs:
        return None
    try:
        return store.read(episode, stream)
    except LabctlError:  # a damaged chunk is named by `verify`, without which there is no report
        return None
