"""What two robots say, put side by side: setpoints answered, streams, observations, words.

May not: talk to a robot, or put a sample of one at a time of the other's: each keeps its own stream and its own times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from labctl.axes import Axis
from labctl.devices import Actions, Batch, RobotStatus, StreamSpec
from labctl.plain import DeviceAbout, Json, RobotAbout

# How bad a robot's state is for a pair of them: the worse one's is the pair's.
WORSE = ("idle", "moving", "stopped", "safety_stop", "fault", "lost")
PARTS = ("q", "dq", "tau")
_UNITS = {"q": "rad", "dq": "rad/s", "tau": "N.m"}
_TOOL = {**dict.fromkeys(("tcp.x", "tcp.y", "tcp.z"), "m"), **{f"tcp.q{axis}": "1" for axis in "xyzw"}}


def state_of(spec: StreamSpec, name: str, axes: Sequence[Axis]) -> StreamSpec:
    """A robot's state stream with its axes by their longer names and a unit for each column: "q.left.fr3_joint1",
    "left.gripper". axes: the robot's own, by their short names.
    """
    short = {axis.name: axis.unit for axis in axes}
    given = spec.units if all(spec.units) else ()
    renamed, units = dict[str, str](), list[str]()
    for i, column in enumerate(spec.columns):
        part, _, axis = column.partition(".")
        if part in PARTS and axis in short:
            renamed[column], unit = f"{part}.{name}.{axis}", _UNITS[part]
        elif column in short:
            renamed[column], unit = f"{name}.{column}", short[column]
        else:
            renamed[column], unit = column, _TOOL.get(column, "s" if column == "device_s" else "1")
        units.append(given[i] if given else unit)
    columns = [
        tuple(renamed[column] for column in each) for each in (spec.columns, spec.private_columns, spec.public_columns)
    ]
    return replace(
        spec, columns=columns[0], private_columns=columns[1], public_columns=columns[2], unit=" ".join(units)
    )


def second_stream(stream: str, name: str) -> str:
    """What a stream of the second robot is recorded as: "right/state" for its "arm/state", "right/tracker"."""
    return f"{name}/{stream.removeprefix('arm/')}"


def renamed(batches: Sequence[Batch], name: str) -> list[Batch]:
    """The second robot's samples as they are recorded."""
    return [Batch(second_stream(batch.stream, name), batch.t_ns, batch.values) for batch in batches]


def seen_by_both(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """One observation: q, dq and gripper of both behind each other; what else the first has as it is, what else the
    second has by its name: "right.tcp".
    """
    both = {key: np.concatenate([first[key], second[key]]) for key in ("q", "dq", "gripper")}
    others = {f"{name}.{key}": value for key, value in second.items() if key not in both}
    return {**first, **both, **others}


def worse(states: Sequence[RobotStatus], names: Sequence[str]) -> RobotStatus:
    """The worse of two states, with the robot's name before its reason."""
    at = max(range(len(states)), key=lambda i: WORSE.index(states[i].mode))
    found = states[at]
    return RobotStatus(found.mode, f"{names[at]}: {found.reason}") if found.reason else found


def about_both(first: RobotAbout, second: RobotAbout, name: str) -> RobotAbout:
    """What both say they are. The first one's limits are as those of a robot alone, the second's by its name."""
    found: RobotAbout = {**_devices(first, second), "limits": _by_name(first.get("limits"), second.get("limits"), name)}
    if tool := _by_name(first.get("tool"), second.get("tool"), name):
        found["tool"] = tool
    held = [about["gripper"] for about in (first, second) if "gripper" in about]
    if len(held) == 2:
        found["gripper"] = _grippers(held[0], held[1], name)
    elif held:
        found["gripper"] = held[0]
    return found


def _grippers(first: DeviceAbout, second: DeviceAbout, name: str) -> DeviceAbout:
    limits, found = _by_name(first.get("limits"), second.get("limits"), name), _devices(first, second)
    return {**found, "limits": limits} if limits else found


def _devices(first: DeviceAbout, second: DeviceAbout) -> DeviceAbout:
    """What every device says of itself, of both."""
    return {
        "model": f"{first['model']} + {second['model']}",
        "serial": _both(first["serial"], second["serial"]),
        "firmware": _both(first["firmware"], second["firmware"]),
        "client": _both(first["client"], second["client"]) or "",
    }


def _by_name(first: Mapping[str, Json] | None, second: Mapping[str, Json] | None, name: str) -> dict[str, Json]:
    """The first one's entries as they are, the second's by its name."""
    return {**(first or {}), **{f"{name}.{key}": value for key, value in (second or {}).items()}}


def _both(first: str | None, second: str | None) -> str | None:
    if first == second:
        return first
    return f"{first or 'not told'} + {second or 'not told'}"


Row = tuple[int, np.ndarray, float]  # t_ns, requested, limited and sent (3, k), delay_s


@dataclass(slots=True)
class _Side:
    """Answers of one robot that wait for the other's, and which of its setpoints it has yet to answer."""

    rows: deque[Row] = field(default_factory=deque[Row])
    given: deque[int] = field(default_factory=deque[int])
    last: np.ndarray = field(default_factory=lambda: np.empty(0))  # (k,) as it was sent last

    def silent_until(self, t_ns: int) -> bool:
        """Whether it may still answer something that is due at t_ns or before."""
        return not self.rows and bool(self.given) and self.given[0] <= t_ns


class Answers:
    """Answered setpoints of two robots as rows of both. dofs, hands: how many axes the arm and the hand of each has.

    A row of one robot alone (a stop that it began by itself) has of the other what was sent to it last, and nothing
    that was asked for.
    """

    def __init__(self, dofs: Sequence[int], hands: Sequence[int], held: Sequence[np.ndarray]) -> None:
        self._dofs, self._hands = tuple(dofs), tuple(hands)
        self._sides = [_Side(last=np.array(one, float)) for one in held]
        self._asked: dict[int, np.ndarray] = {}

    def give(self, t_ns: np.ndarray, asked: np.ndarray) -> None:
        """Setpoints that both are given now, and what was asked for, (n, all axes): the arms', then the hands'."""
        for at, row in zip(t_ns.tolist(), asked, strict=True):
            self._asked[at] = row
            for side in self._sides:
                side.given.append(at)

    def take(self, number: int, actions: Actions) -> None:
        """What one of the robots has answered."""
        side = self._sides[number]
        stages = np.stack([actions.requested, actions.limited, actions.sent], axis=1)
        for at, rows, delay_s in zip(actions.t_ns.tolist(), stages, actions.delay_s.tolist(), strict=True):
            side.rows.append((at, rows, delay_s))

    def answered(self) -> Actions:
        """What both have answered by now, in order, each once."""
        found: list[Row] = []
        while heads := [side.rows[0][0] for side in self._sides if side.rows]:
            at = min(heads)
            if any(side.silent_until(at) for side in self._sides):
                break
            found.append(self._row(at))
        if not found:
            width = sum(self._dofs) + sum(self._hands)
            none = np.empty((0, width))
            return Actions(np.empty(0, np.int64), none, none, none, np.empty(0))
        rows = np.stack([row for _, row, _ in found])
        return Actions(
            np.array([at for at, _, _ in found], np.int64),
            rows[:, 0],
            rows[:, 1],
            rows[:, 2],
            np.array([delay for _, _, delay in found]),
        )

    def _row(self, at: int) -> Row:
        parts, delays, asked = list[np.ndarray](), [0.0], 0
        for side in self._sides:
            if side.rows and side.rows[0][0] == at:
                _, rows, delay = side.rows.popleft()
                delays.append(delay)
                side.last = rows[2]
                if side.given and np.isfinite(rows[0]).all():  # an answer, not a stop that it began by itself
                    side.given.popleft()
                    asked += 1
            else:
                rows = np.stack([np.full(len(side.last), np.nan), side.last, side.last])
            parts.append(rows)
        joined = self._joined(parts)
        if asked == len(self._sides) and at in self._asked:
            joined[0] = self._asked.pop(at)
        return at, joined, max(delays)

    def _joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        joints = [rows[:, :dof] for rows, dof in zip(parts, self._dofs, strict=True)]
        hands = [rows[:, dof:] for rows, dof in zip(parts, self._dofs, strict=True)]
        return np.concatenate([*joints, *hands], axis=1)
