"""What labctl asks of devices and controllers: small Protocol classes and the values they exchange.

May not: import a driver, read a clock or the environment. Drivers implement these classes without importing anything
else of labctl than this module, `streams`, `plain`, `clock`, `errors` and `config`; `load` finds them by the name in a
TOML file.

Units: seconds, metres, radians, newtons; times are integer ns of the host's monotonic clock unless named otherwise.
Frames: poses are of the tool centre point (TCP) in the robot's base frame, as x y z qx qy qz qw (scalar last).
"""

from __future__ import annotations

import importlib
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from labctl.axes import Axis
from labctl.errors import InputError, MissingExtra
from labctl.extras import missing_extra
from labctl.plain import GIVE_UP_S, CameraAbout, DeviceAbout, Hand, Json, RobotAbout
from labctl.streams import StreamSpec as StreamSpec  # for drivers, which declare their streams

D = TypeVar("D")
Kind = Literal["real", "sim", "replay", "faults", "emulated"]


@dataclass(slots=True)
class Batch:
    """Samples of one stream since the last batch: t_ns (n,) int64 ascending, values (n, len(columns))."""

    stream: str
    t_ns: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """Something that happened at a device, at its measured time.

    kinds used by the runner: "success" (an item reached the target), "lost" (body: cause), "safety_stop" (body:
    reason), "fault" (body: reason; the device needs a person), "sensed" (body: what: opened, grasped, lifted, placed
    or closed), "note".
    """

    kind: str
    t_ns: int
    body: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RobotStatus:
    """`mode`: idle, moving, stopped, safety_stop (latched; needs `recover` on an operator's word), fault, lost."""

    mode: Literal["idle", "moving", "stopped", "safety_stop", "fault", "lost"]
    reason: str = ""


@dataclass(slots=True)
class Setpoints:
    """Timed setpoints: t_ns (n,), q (n, dof) of the arm's axes, in rad where they turn, in m where they slide, in m/s
    and rad/s where they are speeds of a base, each of which lasts for its control period and no longer; gripper (n,)
    of the hand's one axis, an opening in m where nothing else is declared, or (n, h) of a hand of h axes.
    """

    t_ns: np.ndarray
    q: np.ndarray
    gripper: np.ndarray


@dataclass(slots=True)
class Actions:
    """Setpoints in their three states: what was asked for, what the limits left of it, what the device was given.

    t_ns (n,), ascending, is the setpoint's own time. requested, limited, sent (n, dof + h): the arm's axes, then the
    hand's, each in its own unit (`labctl.axes.axes_of`). delay_s (n,): from the setpoint's time to when `sent` was
    given to the device; 0 in simulation. `sent` differs from `limited` while the device stops or was not to be given a
    setpoint: then it repeats the last. Setpoints of a stop that began because none came in time are rows too, each
    1 ns behind the row before, as late ones may follow; what nobody asked for is not a number.
    """

    t_ns: np.ndarray
    requested: np.ndarray
    limited: np.ndarray
    sent: np.ndarray
    delay_s: np.ndarray


@runtime_checkable
class Robot(Protocol):
    """A robot arm with its gripper, owned by the robot's process. Verbs are idempotent; `stop` may come from any
    thread.

    `follow` gets setpoints one control period apart for the time since the last call up to now. Each is answered once
    and in order as part of an `Actions`, by this call or a later one: a real robot is given its setpoints by a thread
    of its own. With no setpoints it returns what has been answered since. One whose axes are not joints in rad and an
    opening in m declares `axes` (`labctl.axes.Axis`); of an axis of kind twist `observe` has the measured speed in q
    and in dq, and `labctl.testing.driving` asks for the rest. To a robot with a true attribute
    `takes_steps` setpoints jump where a step of a policy begins. `drain` returns all samples measured since the last
    drain. `stage` prepares for a trial: the hand opens, the robot goes to where episodes begin, if the cell says where,
    a simulated one sets its scene; `staged` is true once that is done. `clipped` names the limit that shaped the last
    setpoints. `about` is complete once connected, and asks nothing. None may block for long but `connect`, `stage` and
    `recover`, which raises DeviceRefused until the device is ready.
    """

    kind: Kind
    dof: int
    joint_names: tuple[str, ...]
    streams: tuple[StreamSpec, ...]
    control_hz: float
    clipped: str

    def connect(self, now_ns: int) -> None: ...
    def stage(self, condition: Mapping[str, Json], seed: int, now_ns: int) -> None: ...
    def staged(self) -> bool: ...
    def to_joints(self, poses: np.ndarray, q_seed: np.ndarray) -> np.ndarray: ...
    def to_pose(self, q: np.ndarray) -> np.ndarray: ...
    def follow(self, wanted: Setpoints) -> Actions: ...
    def drain(self, now_ns: int) -> list[Batch]: ...
    def observe(self) -> dict[str, np.ndarray]: ...
    def about(self) -> RobotAbout: ...
    def events(self) -> list[DeviceEvent]: ...
    def status(self) -> RobotStatus: ...
    def stop(self) -> None: ...
    def recover(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Gripper(Protocol):
    """A gripper that a robot driver loads by name: `build(options, *, host)`. It talks to its device in a thread of
    its own.

    `connect` opens the link, moves nothing and raises DeviceLost. `target` (opening in m) never blocks: the latest
    wins. `opening` is the last measured one, m. `recover` is called on an operator's word only: it activates the
    gripper, clears its fault or connects to it anew where it was lost, and raises DeviceRefused while that is not done.
    `stop` leaves the fingers where they are. `about` is complete once connected, and asks nothing.
    """

    kind: Kind
    stroke_m: float

    def connect(self) -> None: ...
    def target(self, opening_m: float) -> None: ...
    def opening(self) -> float: ...
    def about(self) -> DeviceAbout: ...
    def status(self) -> RobotStatus: ...
    def stop(self) -> None: ...
    def recover(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class Frame:
    """One picture: image (height, width, 3) uint8 RGB, host time on receipt, device time in ms of the clock `domain`,
    NaN without one, and the device's own count, which jumps where it dropped frames; counted: False where number is of
    what came, and frames are missed by their times. depth: (height, width) uint16 seen from where the image was taken,
    in units of `about()["depth_scale_m"]`; None without.
    """

    image: np.ndarray
    host_ns: int
    device_time: float
    number: int
    depth: np.ndarray | None = None
    domain: str = "device"
    counted: bool = True


@runtime_checkable
class Camera(Protocol):
    """One camera, owned by its own process. `sense` receives the robot's observations (simulated cameras draw them;
    real ones ignore).

    `connect` raises DeviceLost when the camera is not there; after a loss it may be called again. `grab` returns None
    while no new frame is there and may block for one frame period; it raises DeviceLost when the camera is gone or
    gives the same picture over and over. `about` is complete once connected.
    """

    kind: Kind
    width: int
    height: int
    rate_hz: float

    def connect(self, now_ns: int) -> None: ...
    def sense(self, observation: Mapping[str, np.ndarray]) -> None: ...
    def grab(self, now_ns: int) -> Frame | None: ...
    def about(self) -> CameraAbout: ...
    def close(self) -> None: ...


@runtime_checkable
class Sensor(Protocol):
    """One sensor, owned by its own process: force and torque, a scale, a light barrier, a temperature.

    `stream` is what its options declare (`labctl.config.options.SensorOptions.stream`). `connect` changes nothing at
    the device and raises DeviceLost when it is not there; after a loss, and `close`, it may be called again. `drain`
    returns what was measured since the last call, by the host's time of receipt; it waits for nothing and raises
    DeviceLost once the sensor is gone. `sense` receives the robot's observations and their time, where `observes` asks
    for them: a simulated one is made of them, and a robot's own measurement comes by them.
    """

    kind: Kind
    stream: StreamSpec
    observes: bool

    def connect(self, now_ns: int) -> None: ...
    def sense(self, t_ns: int, observation: Mapping[str, np.ndarray]) -> None: ...
    def drain(self, now_ns: int) -> Batch: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Picture:
    """What a controller sees of a camera: image (height, width, 3) uint8 RGB at full size, and when its light fell
    (receipt less the camera's latency), ns.
    """

    image: np.ndarray
    t_ns: int


@dataclass(slots=True)
class Observation:
    """What a controller sees: named arrays (robot state, tracker) read at t_ns (docs/policies.md), the task, and of
    each camera it asked for (`Pace.cameras`) the pictures of the last `Pace.history_s`, the newest last.
    """

    t_ns: int
    arrays: Mapping[str, np.ndarray]
    instruction: str = ""
    images: Mapping[str, Sequence[Picture]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a controller wants to be asked. A question waits until every camera has a picture no older than max_age_s.

    deadline_s: an answer that comes later is not used. late: what then: "hold" (the robot stands; a fresh question once
    the late answer is in) or "end" (the episode, at the deadline). give_up_s: an unanswered question ends the episode.
    ask_ahead_s: the next question comes this long before the executed actions run out.
    """

    cameras: tuple[str, ...] = ()
    max_age_s: float = math.inf
    history_s: float = 0.0
    deadline_s: float = math.inf
    late: Literal["hold", "end"] = "hold"
    give_up_s: float = GIVE_UP_S
    ask_ahead_s: float = 0.0


@dataclass(slots=True)
class ActionChunk:
    """What a controller wants: n timed actions, the first `execute` of which are used before asking again.

    space: "joint_position" -> values (n, dof) rad; "joint_velocity" -> (n, dof) rad/s; "tcp_pose" -> (n, 7) m and
    quaternion (of any length); "tcp_velocity" -> (n, 6) m/s and rad/s about the base frame's axes. Two count from what
    is measured when a step begins: "joint_step" -> (n, dof) rad; "tcp_step" -> (n, 7) m along the base axes and a
    quaternion that turns about them, through the point about_m (3,) m in the tool's frame. gripper as `Setpoints` has
    it. dt_s: time between actions. delay_s: time the answer took, for a host under a manual clock: modelled or
    measured. done: the controller says the task is finished. starts: the first action begins when the answer arrives
    ("reply"), or action i is due i steps after the observation was captured, and what is past is dropped ("capture").
    As the server says, else NaN: server_s of the policy itself, call_s of the whole question, gpu_memory_mb on the GPU.
    """

    space: Literal["joint_position", "joint_velocity", "tcp_pose", "tcp_velocity", "joint_step", "tcp_step"]
    values: np.ndarray
    gripper: np.ndarray
    dt_s: float
    execute: int
    delay_s: float = 0.0
    done: bool = False
    starts: Literal["reply", "capture"] = "reply"
    server_s: float = math.nan
    call_s: float = math.nan
    gpu_memory_mb: float = math.nan
    about_m: tuple[float, float, float] = (0.0, 0.0, 0.0)


@runtime_checkable
class Controller(Protocol):
    """A policy or a person. `load` and `warm` happen before the clock starts and may be slow; `infer` is on the clock.

    `pace` is asked for after `load`. load_s, warm_s: how long the last `load` and `warm` took, modelled or measured,
    for a host under a manual clock. `close` may come while another verb runs in a second thread, which then raises.
    """

    kind: Kind
    load_s: float
    warm_s: float
    pace: Pace

    def load(self) -> None: ...
    def warm(self, observation: Observation) -> None: ...
    def reset(self, seed: int) -> None: ...
    def infer(self, observation: Observation) -> ActionChunk: ...
    def close(self) -> None: ...


@runtime_checkable
class Telling(Protocol):
    """A controller whose server may report what it needs: `told`, after `warm`, has any of gpu_memory_mb, memory_mb,
    model_mb (MB of 10^6 bytes) and parameters. It tells arms apart, so it goes where an arm's name goes; and so does
    `software`, which a controller may have: what its policy runs on, name -> version.
    """

    told: Mapping[str, float]


@runtime_checkable
class ByHand(Protocol):
    """A controller that is a person at a device. Its screen shows `hand`; q (dof,) rad. It raises nothing and may be
    asked while another verb runs in a second thread. A policy never has it: people see the person anyway.
    """

    def hand(self, q: np.ndarray) -> Hand: ...


@runtime_checkable
class OptionsTable(Protocol):
    """What `labctl.config.options.Options` is to whoever loads a driver."""

    @classmethod
    def read(cls, given: Mapping[str, Json], driver: str) -> Self: ...


def load(name: str, options: Mapping[str, Json], *, where: str = "", **given: Any) -> Any:
    """Load a driver by the name in a TOML file: one of labctl's, one that an installed package registers, or
    "package.module:function" (`labctl.drivers.find`). Nothing else imports drivers.
    Its function `build(options, **given)` returns the device: robots, cameras and controllers are given
    `cell` and `fixture` as `labctl.config.cell_schema` has them, grippers and emulators a `host`. `options` are read
    into the `labctl.config.options.Options` that `build` declares for them; a driver that declares none gets a table.
    Raises as `no_stand_in`, InputError for an unknown name, a wrong option or a library that cannot be loaded,
    MissingExtra when a library that labctl has an extra for is not installed.
    """
    build, table = _build_of(name, where), options_type(name)
    shown = name.rpartition(".")[2] if name.startswith("labctl.") else name
    made = build(options if table is None else table.read(options, shown), **given)
    return no_stand_in(made, name, getattr(given.get("cell"), "kind", ""))


def no_stand_in(device: D, name: str, kind_of_cell: str) -> D:
    """The device. Raises InputError for one that only plays the part in a cell whose episodes are said to be real."""
    if (kind := getattr(device, "kind", "real")) != "real" and kind_of_cell == "real":
        raise InputError(f'{name} is {kind} with these options, and the cell says kind = "real"; change one of the two')
    return device


def options_type(name: str, *, shipped: bool = False) -> type[OptionsTable] | None:
    """What a driver declares for its options; None where it declares nothing, or its library is not there to see it.
    One that ships with labctl is not imported for this; shipped: nor any other. Raises InputError for an unknown name.
    """
    declared = importlib.import_module("labctl.drivers").OPTIONS.get(name)
    if declared is not None:
        module_name, _, class_name = declared.partition(":")
        return getattr(importlib.import_module(module_name), class_name)
    if shipped:
        return None
    find_driver(name)
    try:
        kind = typing.get_type_hints(_build_of(name, "")).get("options")
    except (InputError, MissingExtra, NameError):
        return None
    return kind if isinstance(kind, type) and issubclass(kind, OptionsTable) else None


def declared_axes(driver: str, options: Mapping[str, Json]) -> Sequence[Axis] | None:
    """The axes that a robot's options declare; None where it has joints in rad and one opening in m."""
    table = options_type(driver)
    return getattr(table.read(options, driver), "axes", lambda: None)() if table is not None else None


def _build_of(name: str, where: str) -> Callable[..., Any]:
    try:
        module_name, _, function = find_driver(name).partition(":")
    except InputError as error:
        raise InputError(str(error), where=where or None) from None
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = missing_extra(error, f"driver {name!r}")
        if missing is not None:
            raise missing from error
        raise InputError(f"driver {name!r} needs the module {error.name!r}: install it", where=where or None) from error
    except ImportError as error:  # a shared object that its wheel expects the system to have
        raise InputError(f"driver {name!r} cannot load its library: {error}", where=where or None) from error
    build: Callable[..., Any] | None = getattr(module, function, None)
    if build is None:
        raise InputError(f"driver {name!r} has no function {function!r}", where=where or None)
    return build


def find_driver(name: str) -> str:
    """Where a driver is, as "module:function", without importing it. Raises InputError for a name that nobody has."""
    return str(importlib.import_module("labctl.drivers").find(name))
