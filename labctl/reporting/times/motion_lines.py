"""What each arm of the experiment got of the motion it asked for, and what the robot's controller said meanwhile.

Only after unblinding: how a policy asks for motion shows here. May not: be asked before, or judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from labctl.clock import SECOND
from labctl.core.rollout import ACTION
from labctl.errors import LabctlError
from labctl.reporting.times.recorded import POLICY, SENSOR, read_stream
from labctl.store.read_once import Samples
from labctl.streams import STATE, placed_axes, robot_states

DEVICE = "arm/device"
LEAST_RAD = 0.01  # an action that asks for less than this in every joint says nothing of a gain


def motion_lines(store: Samples, episodes: Mapping[str, str], arms: Sequence[str]) -> dict[str, str]:
    """arm -> one line, of the arms whose episodes recorded questions to a policy. episodes: episode -> arm.

    Gain: of what an action asked for, from the joints measured when it began to the setpoint at its end, the share that
    the joints had gone by then; a fit through all actions and joints.
    """
    found: dict[str, list[np.ndarray]] = {}
    for episode, arm in episodes.items():
        if {ACTION, POLICY, STATE} <= {spec.name for spec in store.streams(episode)}:
            try:
                found.setdefault(arm, []).append(_asked(store, episode))
            except LabctlError:  # a damaged chunk is named by `verify`, without which there is no report
                continue
    return {f"{arm}:": _line(np.concatenate(found[arm])) for arm in arms if found.get(arm)}


def device_lines(store: Samples, episodes: Sequence[str]) -> dict[str, str]:
    """What the controller said of itself beside its states, column by column: its median and its ends, any arm's."""
    parts: dict[str, list[np.ndarray]] = {}
    for episode in episodes:
        for spec in store.streams(episode):
            if spec.name != DEVICE and (spec.name.startswith(SENSOR) or not spec.name.endswith("/device")):
                continue
            read = read_stream(store, episode, spec.name)
            if read is None:
                continue
            of = "" if spec.name == DEVICE else f"{spec.name.partition('/')[0]}."
            for name, column in zip(spec.columns, read[1].T, strict=True):
                parts.setdefault(f"{of}{name}", []).append(column)
    rows = {name: np.concatenate(columns) for name, columns in parts.items()}
    return {
        f"{name}:": f"{np.median(row):.3g} in the median, from {row.min():.3g} to {row.max():.3g}"
        for name, row in rows.items()
        if len(row)
    }


def _asked(store: Samples, episode: str) -> np.ndarray:
    """(n, 3): what each action asked of each joint, rad, what it had of that at its end, and how long it was, s."""
    declared = store.streams(episode)
    specs, placed = {spec.name: spec.columns for spec in declared}, {spec.name: placed_axes(spec) for spec in declared}
    rows = [_asked_of(store, episode, specs, stream, placed[stream]) for stream in robot_states(specs)]
    return np.concatenate(rows)


def _asked_of(
    store: Samples, episode: str, specs: Mapping[str, Sequence[str]], state: str, joints: Sequence[str]
) -> np.ndarray:
    t_ns, q = store.read(episode, state)
    q = q[:, [specs[state].index(f"q.{joint}") for joint in joints]]
    asked_ns, requested = store.read(episode, ACTION)
    requested = requested[:, [specs[ACTION].index(f"requested.{joint}") for joint in joints]]
    known = np.isfinite(requested).all(axis=1)
    asked_ns, requested = asked_ns[known], requested[known]
    questions, columns = store.read(episode, POLICY)[1], list(specs[POLICY])
    executed, dt_ns, first_ns = (questions[:, columns.index(name)] for name in ("executed", "dt_ns", "first_ns"))
    rows = []
    for count, span, first in zip(executed.tolist(), dt_ns.tolist(), first_ns.tolist(), strict=True):
        begins = first + span * np.arange(count, dtype=np.int64)
        if not count or not len(asked_ns) or not len(t_ns):
            continue
        here, there = (t_ns.searchsorted(at).clip(0, len(t_ns) - 1) for at in (begins, begins + span))
        goal = (asked_ns.searchsorted(begins + span) - 1).clip(0, len(asked_ns) - 1)
        inside = (t_ns[0] <= begins) & (begins + span <= min(t_ns[-1], asked_ns[-1]))
        wanted, went = requested[goal] - q[here], q[there] - q[here]
        inside &= np.abs(wanted).max(axis=1) >= LEAST_RAD
        asked, had = wanted[inside].ravel(), went[inside].ravel()
        rows.append(np.column_stack([asked, had, np.full(len(asked), span / SECOND)]))
    return np.concatenate(rows) if rows else np.empty((0, 3))


def _line(rows: np.ndarray) -> str:
    if not len(rows):
        return "no action asked for as much as a hundredth of a radian"
    wanted, went, span_s = rows.T
    gain = float(wanted @ went) / float(wanted @ wanted)
    rate = gain / float(np.median(span_s))
    text = f"{gain:.2f} of the way an action asks for is covered when it ends"
    return f"{text}, {rate:.1f} rad/s for each radian it asks for"
