"""What a cell, a fixture and a lab file may say: strict schemas, with each rule that one file alone can break; and the
kinds of values that every schema is made of.

May not: open files, or know what happens to a campaign. Attribute names equal the TOML keys.
Units are in the names: _s seconds, _m metres, _rad radians, _hz per second, _gb 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from labctl.config.alerts import AlertsTable
from labctl.config.axes import check_axes
from labctl.config.media import MediaTable
from labctl.config.robots import Caps as Caps  # for nodes and drivers, which know the cell by this module
from labctl.config.robots import Limits as Limits
from labctl.config.robots import RobotTable as RobotTable
from labctl.config.robots import SecondRobot as SecondRobot
from labctl.config.robots import TeleopTable as TeleopTable
from labctl.config.robots import check_lease, check_limits, check_metres, check_second, check_sizes, one_robot
from labctl.config.sensors import SensorTable, check_sensors
from labctl.config.server import StoreTable
from labctl.config.toml_text import Document, Location, Table, parse, suggestion
from labctl.config.values import Box, FileName, Interval, Lax, PlainName, Point, Positive, Size, Text, Texts
from labctl.times import zone_named

# The perturbation axes of BridgeV2-★: the part before the hyphen is the category, of Visual, Semantic, Behavioural.
AXIS_CODES = (
    *("V-AUG", "V-SC", "V-OBJ", "V-VIEW", "V-LIGHT"),
    *("S-PROP", "S-LANG", "S-MO", "S-AFF", "S-INT"),
    "B-HOBJ",
    *("VB-POSE", "VB-ISC", "VB-MOBJ"),
    *("SB-NOUN", "SB-SMO", "SB-VRB"),
    "VS-PROP",
    "VSB-NOBJ",
)

MOST_LATENCY_S = 1.0
CellKind = Literal["real", "sim", "replay", "emulated"]


class CellHead(Table):
    """[cell]. `operator` is a driver that stages and scores a headless run, or "console"."""

    name: FileName
    kind: CellKind
    clock: Literal["monotonic", "manual"] = "monotonic"
    operator: Text = "console"
    durable: bool = True


class Lease(Table):
    """[lease]: how long the robot moves on without word from the run process, and after the newest target's time;
    run_silent_s: how long that process may be there without its loop turning before it gives no more word.
    """

    duration_s: Annotated[float, Field(gt=0, le=5)]
    stale_target_s: Annotated[float, Field(gt=0, le=5)]
    run_silent_s: Annotated[float, Field(gt=0, le=10)] = 2.0


class Readiness(Table):
    """[readiness]. ask_arms: before the first motion of every start each arm is loaded, and asked for an answer where
    it has a policy card; without an answer of all of them nothing moves. like_voids: so many episodes in a row that
    are void for the same reason, of the machine's own, are a hold; 0: never.
    """

    ask_arms: bool = True
    like_voids: Annotated[int, Field(ge=0, le=100)] = 2


class OwnVideo(Table):
    """[camera.video]: what of [video] is otherwise for one camera."""

    codec: Text | None = None
    preset: Text | None = None
    crf: Annotated[int, Field(ge=0, le=51)] | None = None
    keyframe_s: Positive | None = None


class CameraTable(Table):
    """[[camera]]. The name becomes a file name. `latency_s`: from light to receipt, measured by `labctl doctor
    --latency` or stated. `options` are the driver's. For scenes: `ignore` are boxes (left, top, right, bottom, as
    shares of the picture) that are not compared; a thing off by `tolerance_px` counts as in its place.
    """

    name: FileName
    driver: Text
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    rate_hz: Positive
    latency_s: Annotated[float, Field(ge=0, le=MOST_LATENCY_S)] = 0.0
    video: OwnVideo = OwnVideo()
    ignore: Annotated[tuple[Box, ...], Lax] = ()
    tolerance_px: Positive = 2.0
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def given(self) -> dict[str, JsonValue]:
        """What its driver is built with: its options, and the size and rate of its table."""
        return {**self.options, "width": self.width, "height": self.height, "rate_hz": self.rate_hz}


class Video(Table):
    """[video]: how cameras encode."""

    codec: Text = "libx264"
    preset: Text = "ultrafast"
    crf: Annotated[int, Field(ge=0, le=51)] = 23
    keyframe_s: Positive = 1.0


class Storage(Table):
    """[storage]: less free disk than this is a hold; a trace chunk holds about `chunk_s`, which a kill may lose."""

    min_free_gb: Annotated[float, Field(ge=0)] = 1.0
    chunk_s: Annotated[float, Field(gt=0, le=10)] = 1.0


class Cell(Document):
    """A robot and its surroundings."""

    cell: CellHead
    robot: Annotated[RobotTable, BeforeValidator(one_robot)]
    second_robot: SecondRobot | None = None
    lease: Lease
    camera: Annotated[tuple[CameraTable, ...], Lax] = ()
    sensor: Annotated[tuple[SensorTable, ...], Lax] = ()
    teleop: TeleopTable | None = None
    second_teleop: TeleopTable | None = None
    video: Video = Video()
    storage: Storage = Storage()
    readiness: Readiness = Readiness()

    @property
    def kind(self) -> CellKind:
        """What its robot is; see `CellHead`."""
        return self.cell.kind

    @property
    def joints(self) -> int:
        """How many axes the robot's arm has: its joints, and what it stands on."""
        of = self.robots
        return sum(len(one.limits.velocity_rad_s) + sum(not axis.hand for axis in one.axis) for one in of)

    @property
    def hand(self) -> int:
        """How many axes its hand has: one opening, where [[robot.axis]] says nothing else."""
        return sum(sum(axis.hand for axis in one.axis) or 1 for one in self.robots)

    @property
    def robots(self) -> tuple[RobotTable, ...]:
        """Its robots: one, or two."""
        return (self.robot,) if self.second_robot is None else (self.robot, self.second_robot)

    @property
    def names(self) -> tuple[str, ...]:
        """What the axes of each robot begin with: nothing where there is one."""
        return ("",) if self.second_robot is None else (self.second_robot.first_name, self.second_robot.name)

    @property
    def driver(self) -> tuple[str, dict[str, JsonValue]]:
        """The driver that its robot is loaded by, with the options; of two robots the one that leads both."""
        return (self.robot.driver, self.robot.options) if self.second_robot is None else ("pair", {})

    @property
    def sides(self) -> tuple[Cell, ...]:
        """The cell as each of its robots has it: its own table and device, and none of the other's."""
        if self.second_robot is None:
            return (self,)
        own = {name: getattr(self.second_robot, name) for name in RobotTable.model_fields}
        return (
            self.model_copy(update={"second_robot": None, "second_teleop": None}),
            self.model_copy(
                update={
                    "robot": RobotTable.model_construct(**own),
                    "second_robot": None,
                    "teleop": self.second_teleop,
                    "second_teleop": None,
                }
            ),
        )

    def video_of(self, camera: CameraTable) -> Video:
        """How a camera encodes: [video], and what its own [camera.video] says instead."""
        return self.video.model_copy(update=camera.video.model_dump(exclude_none=True))


class FixtureHead(Table):
    """[fixture]."""

    name: FileName
    description: str = ""


class Lid(Table):
    """[tote.lid]: a lid that is slid off by its handle. handle_m: where the handle is while it is closed; slides_m: the
    way from there until it is open; both robot base frame.
    """

    handle_m: Point
    slides_m: Point
    grasp_width_m: Positive


class Tote(Table):
    """[[tote]]: centre of its floor and inner size, robot base frame. lid: closed at go where it is the target."""

    name: PlainName
    centre_m: Point
    size_m: Size
    lid: Lid | None = None


class FixtureObject(Table):
    """[[object]]: `difficulty` scales grasp failures of simulated controllers only."""

    name: PlainName
    item_size_m: Size
    grasp_width_m: Positive
    difficulty: Positive = 1.0
    axes: Texts = ()
    tags: Texts = ()


class Layout(Table):
    """[[layout]]: `tote_side` names the target tote. `reference`: a picture of the staged scene by camera, relative to
    the fixture's file; {object} in it stands for the object's name. `distractors`: objects of which one
    item each lies beside those of the condition's object. `yaw_rad`: from which to which direction items lie, of their
    length against the base's x; anyhow without.
    """

    name: PlainName
    tote_side: PlainName
    camera_side: Literal["left", "right"]
    instructions: Text
    distractors: Annotated[tuple[PlainName, ...], Lax] = ()
    yaw_rad: Interval | None = None
    reference: dict[str, Text] = Field(default_factory=dict)
    axes: Texts = ()
    tags: Texts = ()


class Fixture(Document):
    """The physical jig."""

    fixture: FixtureHead
    tote: Annotated[tuple[Tote, ...], Lax, Field(min_length=2)]
    object: Annotated[tuple[FixtureObject, ...], Lax, Field(min_length=1)]
    layout: Annotated[tuple[Layout, ...], Lax, Field(min_length=1)]


class Setup(Table):
    """What the drivers of a cell are built with; it goes to other processes as JSON."""

    cell: Cell
    fixture: Fixture


class ConsoleTable(Table):
    """[console]: `keys` rebinds a key by its name (`labctl console --help` lists them); `theme` is one of Textual's."""

    keys: dict[str, Text] = Field(default_factory=dict)
    theme: Text | None = None


class TimestampsTable(Table):
    """[timestamps]: a time-stamping authority (RFC 3161) that stamps heads. certificates: a PEM file, relative to
    lab.toml; every certificate in it is trusted. timeout_s: how long an answer is waited for.
    """

    authority: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+\S*$")]
    certificates: Text
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 10.0


class Lab(Document):
    """lab.toml. people: opaque ids of those who work there; the only one acts where nobody is named. timezone: what
    people read times in; this computer's unless given.
    """

    people: Texts = ()
    timezone: Text | None = None
    console: ConsoleTable = ConsoleTable()
    timestamps: TimestampsTable | None = None
    alerts: AlertsTable | None = None
    store: StoreTable | None = None
    media: MediaTable | None = None


def parse_lab(text: str, where: str) -> Lab:
    """The settings in a lab.toml. Raises InputError with file:line."""
    found = parse(Lab, text, where)
    if found.timezone is not None:
        try:
            zone_named(found.timezone)
        except ValueError as error:
            raise found.refusal(("timezone",), f"timezone {error}") from None
    return found


def parse_cell(text: str, where: str, *, frozen: bool = False) -> Cell:
    """The cell in a TOML text; `where` is its file's name for messages. frozen: of a campaign that was opened already,
    whose box and lease may be of any size. Raises InputError with file:line.
    """
    found = parse(Cell, text, where)
    kind = found.cell.kind
    if found.cell.clock == "manual" and kind not in ("sim", "replay"):
        raise found.refusal(
            ("cell", "clock"), f"clock is 'manual' and kind is {kind!r}; only sim and replay cells have simulated time"
        )
    if not found.cell.durable and kind != "sim":
        raise found.refusal(
            ("cell", "durable"), f"durable is false and kind is {kind!r}; only a sim cell may risk its record"
        )
    check_limits(found, "robot", found.robot)
    if not frozen:
        check_metres(found, found.robot, found.second_robot)
        lasts = {"duration_s": found.lease.duration_s, "stale_target_s": found.lease.stale_target_s}
        check_lease(found, lasts, found.robot.control_hz)
        check_sizes(found, found.robots, found.camera, found.sensor, found.video)
    if found.second_robot is not None:
        check_limits(found, "second_robot", found.second_robot)
        check_second(found, found.robot, found.second_robot)
    elif found.second_teleop is not None:
        raise found.refusal(("second_teleop",), "this cell has one robot; [teleop] is its device, drop [second_teleop]")
    refuse_repeats(found, ("camera",), [camera.name for camera in found.camera])
    refuse_repeats(found, ("sensor",), [sensor.name for sensor in found.sensor])
    check_sensors(found, found.sensor)
    for key, robot in zip(("robot", "second_robot"), found.robots, strict=False):
        refuse_repeats(found, (key, "axis"), [axis.name for axis in robot.axis])
        check_axes(found, key, robot.axis)
    for key, device in (("teleop", found.teleop), ("second_teleop", found.second_teleop)):
        refuse_repeats(found, (key, "axis"), [axis.name for axis in device.axis] if device else [])
    for index, camera in enumerate(found.camera):
        for left, top, right, bottom in camera.ignore:
            if left >= right or top >= bottom:
                text = f"box [{left:g}, {top:g}, {right:g}, {bottom:g}] is empty; give left, top, right, bottom"
                raise found.refusal(("camera", index, "ignore"), text)
    return found


def parse_fixture(text: str, where: str) -> Fixture:
    """The fixture in a TOML text; `where` is its file's name for messages. Raises InputError with file:line."""
    found = parse(Fixture, text, where)
    totes = [tote.name for tote in found.tote]
    refuse_repeats(found, ("tote",), totes)
    for table, entries in (("object", found.object), ("layout", found.layout)):
        refuse_repeats(found, (table,), [entry.name for entry in entries])
        for index, entry in enumerate(entries):
            refuse_unknown(found, (table, index, "axes"), "axis", entry.axes, "axes", AXIS_CODES)
    for index, layout in enumerate(found.layout):
        at, objects = ("layout", index), [entry.name for entry in found.object]
        refuse_unknown(found, (*at, "tote_side"), "tote", [layout.tote_side], "totes", totes)
        refuse_unknown(found, (*at, "distractors"), "object", layout.distractors, "objects", objects)
        refuse_repeats(found, (*at, "distractors"), layout.distractors)
        if layout.yaw_rad is not None and layout.yaw_rad[0] >= layout.yaw_rad[1]:
            low, high = layout.yaw_rad
            message = f"yaw_rad is [{low:g}, {high:g}]; the first must be below the second"
            raise found.refusal((*at, "yaw_rad"), message)
    return found


def refuse_repeats(document: Document, at: Location, names: Sequence[str]) -> None:
    """Raises InputError at the first name that came before."""
    for index, name in enumerate(names):
        if name in names[:index]:
            raise document.refusal(
                (*at, index, "name"), f"{name!r} appears twice in {at[-1]!r}; every entry needs its own name"
            )


def refuse_unknown(
    document: Document,
    at: Location,
    what: str,
    names: Sequence[str],
    whose: str,
    known: Sequence[str],
    where: str | None = None,
) -> None:
    """Raises InputError at the first of `names` that is not known, with the nearest one and what there is."""
    for name in names:
        if name not in known:
            message = f"unknown {what} {name!r}{suggestion(name, known)}; {whose}: {', '.join(known)}"
            raise document.refusal(at, message, where)
