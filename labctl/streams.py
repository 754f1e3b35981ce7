"""How a recorded channel is declared: its columns, unit, rate and clock, and which columns a blind role may see.

May not: read or write a sample, know a device, or open a column that nothing declares to be open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from labctl.plain import SpecEntry

STATE = "arm/state"  # of the robot, or the first of two
ODOMETRY = "base/odometry"  # of a robot that drives
PLACE, SPEEDS = ("x", "y", "yaw"), ("vx", "vy", "wz")  # its columns: from where it was staged, and along its own axes
POSE = ("tcp.x", "tcp.y", "tcp.z", "tcp.qx", "tcp.qy", "tcp.qz", "tcp.qw")  # its columns of the tool's pose, base frame
SEEN = ".seen"  # after a camera's name: its pictures as a policy got them, where a condition has edits of them
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared channel: known before anything connects.

    `columns` name the values of one sample, in order; `dtype` is a numpy little-endian code such as "<f8" or "<i8".
    `clock` says whose clock stamps a sample: "host" or a device's own (then a column holds the device time).

    What a blind role may see of it is said here and nowhere else: nothing of a stream that is `arm_dependent`
    (latencies, a policy's timing; its digests are sealed too), else the `public_columns`. `private_columns` are those
    whose shape can tell one policy from another. Each column is one of the two: what is named in neither, or in both,
    is hidden, and the conformance suite refuses it. Exports, views and whoever comes later ask `open_columns`.
    """

    name: str
    columns: tuple[str, ...]
    unit: str
    rate_hz: float
    dtype: str = "<f8"
    clock: str = "host"
    arm_dependent: bool = False
    private_columns: tuple[str, ...] = ()
    public_columns: tuple[str, ...] = ()

    @property
    def units(self) -> tuple[str, ...]:
        """Of each column, where `unit` names one for all of them or one for each, apart by spaces; else "" for each."""
        return units_of(self.unit, len(self.columns))

    def open_columns(self) -> tuple[int, ...]:
        """Where the columns stand that a blind role may see."""
        if self.arm_dependent:
            return ()
        shown = set(self.public_columns) - set(self.private_columns)
        return tuple(i for i, column in enumerate(self.columns) if column in shown)

    def unclear_columns(self) -> tuple[str, ...]:
        """The columns, and names of none, of which the declaration does not say which they are; hidden, all of them."""
        if self.arm_dependent:
            return ()
        private, public = set(self.private_columns), set(self.public_columns)
        return tuple(sorted((set(self.columns) - (private ^ public)) | ((private | public) - set(self.columns))))


def robot_states(columns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Which of the streams, by their columns, are states of robots: "arm/state", and behind it that of a second robot,
    "NAME/state".
    """
    others = [
        name
        for name, of in columns.items()
        if name != STATE and name.endswith("/state") and any(column.startswith("q.") for column in of)
    ]
    return (*([STATE] if STATE in columns else []), *sorted(others))


def placed_axes(spec: StreamSpec) -> tuple[str, ...]:
    """Of a robot's states the led axes that have a place: all but the speeds of a base, which are in m/s and rad/s."""
    return tuple(placed_units(spec))


def placed_units(spec: StreamSpec) -> dict[str, Literal["rad", "m"]]:
    """The axes of `placed_axes`, each with what its place is measured in: m where the declaration says so of it (a
    rail), else rad. What adds up several axes does so by unit.
    """
    named = zip(spec.columns, spec.units, strict=True)
    return {
        name.removeprefix("q."): "m" if unit == "m" else "rad"
        for name, unit in named
        if name.startswith("q.") and not unit.endswith("/s")
    }


def odometry_spec(rate_hz: float) -> StreamSpec:
    """The declared stream of where a robot that drives has come to: m, rad in the frame of the place where it was
    staged; m/s, rad/s along its own axes. In its speeds the rate of a policy's answers stands out.
    """
    unit = "m m rad m/s m/s rad/s"
    return StreamSpec(ODOMETRY, (*PLACE, *SPEEDS), unit, rate_hz, private_columns=SPEEDS, public_columns=PLACE)


def units_of(unit: str, columns: int) -> tuple[str, ...]:
    """The unit of each of so many columns, where a declaration names one for all or one for each; else "" for each."""
    given = unit.replace(",", " ").split()
    if len(given) == 1:
        return tuple(given * columns)
    return tuple(given) if len(given) == columns else ("",) * columns


def unit_of(unit: str, columns: int, kept: Sequence[int]) -> str:
    """The declaration's unit for those of its columns that are kept; as it was where it does not name one for each."""
    each = units_of(unit, columns)
    return " ".join(each[i] for i in kept) if len(set(each)) > 1 else unit


def spec_of(fields: SpecEntry) -> StreamSpec:
    """The declaration that `dataclasses.asdict` made JSON of. One that was recorded before there were `public_columns`
    leaves open what it did then.
    """
    columns = tuple(fields["columns"])
    private = fields.get("private_columns")
    public = fields.get("public_columns")
    if private is None:
        private = columns if fields["name"] == "arm/action" else _telling(columns)
    if public is None:
        public = [column for column in columns if column not in private]
    given = {"columns": columns, "private_columns": tuple(private), "public_columns": tuple(public)}
    return StreamSpec(**{**fields, **given})


def of_both_pictures(of_cameras: Mapping[str, T]) -> dict[str, T]:
    """What holds of each camera, by its name, for its raw pictures and for those as a policy got them."""
    return {camera + SEEN: value for camera, value in of_cameras.items()} | dict(of_cameras)


def _telling(columns: Sequence[str]) -> tuple[str, ...]:
    """Of columns that nothing is declared of those in which the rate of a policy's answers stands out: speeds, torques,
    device times. Recordings of before there was a declaration rest on it.
    """
    return tuple(column for column in columns if column.startswith(("dq.", "tau.", "device_s")))
