"""What each arm of the experiment got of the motion it asked for, and what the robot's controller said meanwhile.

Only after unblinding: how a policy asks for motion shows here. May not: be asked before, or judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from labctl.clock import SECOND
from labctl.core.rollout import ACTION
from labctl.errors import LabctlError
from labctl.reporting.times.recorded import POLICY, SENSOR, read_stream
from labctl.store.read_once import Samples
from labctl.streams import STATE, placed_units, robot_states

DEVICE = "arm/device"
# An action that asks for less than this of every axis in a unit says nothing of a gain. Of a rail what a joint's comes
# to at half a metre.
LEAST = {"rad": 0.01, "m": 0.005}
WORDS = {"rad": ("a hundredth of a radian", "radian"), "m": ("5 mm", "metre")}


@dataclass(frozen=True, slots=True)
class Moved:
    """What the actions of an episode came to, over all of them and all axes in one unit: the sums of asked x had and of
    asked x asked, rad^2 or m^2, and how often an action was so long, s.
    """

    asked_had: float = 0.0
    asked_asked: float = 0.0
    spans: Counter[float] = field(default_factory=Counter[float])


def moved_in(store: Samples, episode: str) -> Mapping[str, Moved] | None:
    """By unit, "rad" and of a robot on a rail "m", of an episode whose questions to a policy are recorded; None of
    another.
    """
    if not {ACTION, POLICY, STATE} <= {spec.name for spec in store.streams(episode)}:
        return None
    try:
        return {unit: _summed(rows) for unit, rows in _asked(store, episode).items()}
    except LabctlError:  # a damaged chunk is named by `verify`, without which there is no report
        return None


def _summed(rows: np.ndarray) -> Moved:
    asked, had, span_s = rows.T
    lengths, often = np.unique(span_s, return_counts=True)
    spans = Counter(dict(zip(lengths.tolist(), often.tolist(), strict=True)))
    return Moved(float(asked @ had), float(asked @ asked), spans)


def motion_lines(
    found: Mapping[str, Mapping[str, Moved] | None], episodes: Mapping[str, str], arms: Sequence[str]
) -> dict[str, str]:
    """arm -> one line, of the arms whose episodes recorded questions to a policy. episodes: episode -> arm; found: what
    was `moved_in` each.

    Gain: of what an action asked for, from the joints measured when it began to the setpoint at its end, the share that
    the joints had gone by then; a fit through all actions and joints. Of a robot on a rail there is one for its joints
    and one for the rail: radians and metres are never in one sum.
    """
    of: dict[str, list[Mapping[str, Moved]]] = {}
    for episode, arm in episodes.items():
        if (moved := found.get(episode)) is not None:
            of.setdefault(arm, []).append(moved)
    return {f"{arm}:": _line(of[arm]) for arm in arms if arm in of}


Said = Sequence[tuple[str, np.ndarray]]


def device_said(store: Samples, episode: str) -> Said:
    """What the controller said of itself beside its states: each column, and its values."""
    found: list[tuple[str, np.ndarray]] = []
    for spec in store.streams(episode):
        if spec.name != DEVICE and (spec.name.startswith(SENSOR) or not spec.name.endswith("/device")):
            continue
        read = read_stream(store, episode, spec.name)
        if read is None:
            continue
        of = "" if spec.name == DEVICE else f"{spec.name.partition('/')[0]}."
        found += [(f"{of}{name}", column) for name, column in zip(spec.columns, read[1].T, strict=True)]
    return found


def device_lines(found: Iterable[Said]) -> dict[str, str]:
    """Of what the controller said in each episode, column by column: its median and its ends, any arm's."""
    parts: dict[str, list[np.ndarray]] = {}
    for said in found:
        for name, column in said:
            parts.setdefault(name, []).append(column)
    rows = {name: np.concatenate(columns) for name, columns in parts.items()}
    return {
        f"{name}:": f"{np.median(row):.3g} in the median, from {row.min():.3g} to {row.max():.3g}"
        for name, row in rows.items()
        if len(row)
    }


def _asked(store: Samples, episode: str) -> dict[str, np.ndarray]:
    """By unit (n, 3): what each action asked of each axis, rad or m, what it had of that at its end, and how long it
    was, s.
    """
    specs = {spec.name: spec for spec in store.streams(episode)}
    columns = {name: spec.columns for name, spec in specs.items()}
    rows: dict[str, list[np.ndarray]] = {}
    for stream in robot_states(columns):
        units = placed_units(specs[stream])
        for unit in dict.fromkeys(units.values()):
            joints = [joint for joint, of in units.items() if of == unit]
            rows.setdefault(unit, []).append(_asked_of(store, episode, columns, stream, joints, LEAST[unit]))
    return {unit: np.concatenate(each) for unit, each in rows.items()}


def _asked_of(
    store: Samples,
    episode: str,
    specs: Mapping[str, Sequence[str]],
    state: str,
    joints: Sequence[str],
    least: float,
) -> np.ndarray:
    t_ns, q = store.read(episode, state)
    q = q[:, [specs[state].index(f"q.{joint}") for joint in joints]]
    asked_ns, requested = store.read(episode, ACTION)
    requested = requested[:, [specs[ACTION].index(f"requested.{joint}") for joint in joints]]
    known = np.isfinite(requested).all(axis=1)
    asked_ns, requested = asked_ns[known], requested[known]
    questions, columns = store.read(episode, POLICY)[1], list(specs[POLICY])
    executed, dt_ns, first_ns = (questions[:, columns.index(name)] for name in ("executed", "dt_ns", "first_ns"))
    counts = executed.clip(0)
    if not counts.any() or not len(asked_ns) or not len(t_ns):
        return np.empty((0, 3))
    nth = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)  # of its question's actions
    spans = np.repeat(dt_ns, counts)
    begins = np.repeat(first_ns, counts) + spans * nth
    ends = begins + spans
    here, there = (t_ns.searchsorted(at).clip(0, len(t_ns) - 1) for at in (begins, ends))
    goal = (asked_ns.searchsorted(ends) - 1).clip(0, len(asked_ns) - 1)
    inside = (t_ns[0] <= begins) & (ends <= min(t_ns[-1], asked_ns[-1]))
    wanted, went = requested[goal] - q[here], q[there] - q[here]
    inside &= np.abs(wanted).max(axis=1) >= least
    asked, had = wanted[inside].ravel(), went[inside].ravel()
    return np.column_stack([asked, had, np.repeat(spans[inside] / SECOND, len(joints))])


def _line(found: Sequence[Mapping[str, Moved]]) -> str:
    """Of the joints first, then of what is measured in m."""
    units = sorted({unit for moved in found for unit in moved}, key=list(LEAST).index)
    each = [_of_unit([moved[unit] for moved in found if unit in moved], unit) for unit in units]
    return each[0] if units == ["rad"] else "; ".join(f"{unit}: {text}" for unit, text in zip(units, each, strict=True))


def _of_unit(found: Sequence[Moved], unit: str) -> str:
    least, word = WORDS[unit]
    spans = sum((moved.spans for moved in found), Counter[float]())
    if not spans:
        return f"no action asked for as much as {least}"
    gain = math.fsum(moved.asked_had for moved in found) / math.fsum(moved.asked_asked for moved in found)
    rate = gain / _median(spans)
    text = f"{gain:.2f} of the way an action asks for is covered when it ends"
    return f"{text}, {rate:.1f} {unit}/s for each {word} it asks for"


def _median(often: Mapping[float, int]) -> float:
    """Of values that occur so often."""
    values = sorted(often)
    below = np.cumsum([often[value] for value in values])
    middle = ((below[-1] - 1) // 2, below[-1] // 2)
    low, high = (values[int(place)] for place in below.searchsorted(middle, side="right"))
    return (low + high) / 2
