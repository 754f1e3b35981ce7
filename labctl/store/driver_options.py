"""The options of the drivers that a cell and a protocol name, checked against what each driver declares; and that in a
cell whose episodes are said to be real nothing is simulated; what episodes are stamped with.

May not: import a vendor's library for a driver that ships with labctl, or connect to anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Literal

from labctl.config.axes import check_declared, check_driven
from labctl.config.cell_schema import CameraTable, Cell, Fixture, refuse_unknown
from labctl.config.options import OWN, CameraOptions, Options, SensorOptions, is_own
from labctl.config.protocol_schema import Arm, Protocol
from labctl.config.reasons import SENSOR_LIMIT, SENSOR_LOST
from labctl.config.sensors import check_columns
from labctl.config.toml_text import Document, Location
from labctl.devices import declared_axes, find_driver, options_type
from labctl.errors import InputError, OptionError
from labctl.plain import Json
from labctl.store.lab_folder import Plan

SIMULATED = "labctl.drivers.sim."  # simulations, recordings, wrappers of faults, emulated cells
OF_TABLES: Mapping[str, tuple[str, ...]] = {"camera": CameraOptions.OF_TABLE, "sensor": SensorOptions.OF_TABLE}
ROBOTS, DEVICES = ("robot", "second_robot"), ("teleop", "second_teleop")  # their tables in a cell
OWN_KINDS: Mapping[str, Literal["human", "policy"]] = {  # of arms, by where their controllers are
    "labctl.drivers.teleop.": "human",
    "labctl.drivers.sim.person": "human",
    "labctl.drivers.policy.": "policy",
    "labctl.drivers.sim.policy": "policy",
}
KIND_WORDS = {"human": "person who leads the robot", "policy": "policy"}
# Drivers of which no cell's kind tells, by where they are: the first of them that a campaign uses names its episodes.
TELLING = {"labctl.drivers.sim.faults": "faults", "labctl.drivers.sim.replay": "replay"}
HONEST = "name a real one, or say kind sim, replay or emulated, which every report then shows"


def check_drivers(protocol: Protocol, cell: Cell) -> None:
    """Refuse, at its line, the first driver that nobody has, and a takeover that the cell has no device for. Raises
    InputError.
    """
    check_controllers(protocol)
    named: list[tuple[Location, str]] = [(("camera", i, "driver"), one.driver) for i, one in enumerate(cell.camera)]
    named += [(("sensor", i, "driver"), one.driver) for i, one in enumerate(cell.sensor)]
    named += [((key, "driver"), robot.driver) for key, robot in zip(ROBOTS, cell.robots, strict=False)]
    if protocol.trial.takeover == "allowed" and cell.teleop is None:
        raise protocol.refusal(("trial", "takeover"), f"cell {cell.cell.name} has no [teleop] table to take over with")
    if cell.cell.operator != "console":
        named.append((("cell", "operator"), cell.cell.operator))
    _refuse_unknown(cell, named)


def check_cell_options(cell: Cell, plan: Plan | None = None) -> None:
    """Refuse, at its line of the cell file, the first wrong option of robot, gripper, cameras, sensors and hand device,
    what is simulated in a real cell, and what of the sensors does not go with a plan.

    Raises InputError: what was found, what is allowed.
    """
    real = cell.cell.kind == "real"
    for key, device, side in zip(ROBOTS, DEVICES, cell.sides, strict=False):
        _check_robot(cell, key, device, side, real)
    _check_controllers_apart(cell)
    for index, camera in enumerate(cell.camera):
        at = ("camera", index)
        _check(cell, (*at, "driver"), camera.driver, (*at, "options"), camera.given, real)
    for index, sensor in enumerate(cell.sensor):
        at = ("sensor", index)
        table = _sensor_options(cell, index)
        _check(cell, (*at, "driver"), sensor.driver, (*at, "options"), sensor.given, real)
        check_columns(cell, index, sensor, table.read(sensor.given, sensor.driver).stream())
    if cell.cell.operator != "console":
        _check(cell, ("cell", "operator"), cell.cell.operator, ("cell", "operator"), {}, real)
    if plan is not None:
        _check_sensor_rules(plan.protocol, cell, plan.fixture)


def _check_robot(cell: Cell, key: str, device: str, side: Cell, real: bool) -> None:
    """One robot of a cell and the device that leads it: their options, and what is said of their axes."""
    robot, hand = side.robot, side.teleop
    _check(cell, (key, "driver"), robot.driver, (key, "options"), robot.options, real)
    if (own := declared_axes(robot.driver, robot.options)) is not None or robot.axis:
        declared = own if own is not None else ()
        check_declared(cell, key, robot.axis, len(robot.limits.velocity_rad_s), robot.driver, declared)
    if hand is not None:
        check_driven(cell, device, hand.axis, robot.axis, robot.driver, own or ())
        _check(cell, (device, "device"), hand.driver, (device, "options"), hand.options, real)


def _check_controllers_apart(cell: Cell) -> None:
    """Refuse two robots at one address, as a copied table has them. Raises InputError."""
    hosts = [host for robot in cell.robots for host in _hosts(robot.driver, robot.options)]
    if len(hosts) == 2 and hosts[0] == hosts[1]:
        at = ("second_robot", "options", "host")
        raise cell.refusal(at, f"both robots have the host {hosts[0]}; give the second its own controller's address")


def _hosts(driver: str, given: Mapping[str, Json]) -> list[str]:
    table = options_type(driver)
    found = None if table is None else table.read(given, driver)
    if not isinstance(found, Options):
        return []
    own = found.controller_host()
    inside = [host for other in found.wrapped() for host in _hosts(other.driver, other.options)]
    return [own] if own is not None else inside[:1]


def _sensor_options(cell: Cell, index: int) -> type[SensorOptions]:
    """What a sensor's driver declares for its options, and by them what it records. Raises InputError."""
    driver, at = cell.sensor[index].driver, ("sensor", index, "driver")
    try:
        table = options_type(driver)
    except InputError as error:
        raise cell.refusal(at, str(error)) from None
    if table is None or not issubclass(table, SensorOptions):
        text = f"{driver} is no sensor: its options do not say what it records (config.options.SensorOptions)"
        raise cell.refusal(at, text)
    return table


def _check_sensor_rules(protocol: Protocol, cell: Cell, fixture: Fixture) -> None:
    """Refuse, at its line, a witness of a tote that the fixture has not, and a sensor that could void an episode for a
    reason that the protocol does not list. Raises InputError.
    """
    for index, sensor in enumerate(cell.sensor):
        if sensor.witness is not None:
            totes = [tote.name for tote in fixture.tote]
            there = f"fixture {fixture.fixture.name!r} has"
            refuse_unknown(cell, ("sensor", index, "witness", "tote"), "tote", [sensor.witness.tote], there, totes)
        needed = [SENSOR_LOST] if sensor.required else []
        needed += [SENSOR_LIMIT] if any(limit.then == "void" for limit in sensor.interlock) else []
        for reason in needed:
            if reason not in protocol.trial.void_reasons:
                text = f"void_reasons lacks {reason}, for which sensor {sensor.name!r} of the cell may void an episode"
                raise protocol.refusal(("trial", "void_reasons"), f"{text}; add it")


def records_depth(camera: CameraTable) -> bool:
    """Whether a camera gives depth beside its pictures, as its driver declares and its table sets it."""
    table = options_type(camera.driver)
    declared = None if table is None else table.read(camera.given, camera.driver)
    return bool(getattr(declared, "depth", camera.options.get("depth", False)))


def check_controllers(protocol: Protocol) -> None:
    """Refuse, at its line of a plan, the first controller that no installed driver has, and an arm whose kind is not
    that of its controller: what can be deduced of the others is worked out from kinds. Raises InputError.
    """
    _refuse_unknown(protocol, [(("arm", i, "controller"), arm.controller) for i, arm in enumerate(protocol.arm)])
    for index, arm in enumerate(protocol.arm):
        for driver in (arm.controller, arm.options.get("driver")):  # and what one of faults goes around
            own = _own_kind(driver) if isinstance(driver, str) else arm.kind
            if own not in (None, arm.kind):
                text = f"kind is {arm.kind!r}, and {driver} is a {KIND_WORDS[own]}"
                raise protocol.refusal(("arm", index, "kind"), f"{text}: say {own!r}, or name another controller")


def _own_kind(driver: str) -> Literal["human", "policy"] | None:
    """The kind of arm that one of labctl's own controllers is of; None of anybody else's, and of no controller."""
    with suppress(InputError):
        place = find_driver(driver) if driver.partition(":")[0].isidentifier() else driver
        return next((kind for module, kind in OWN_KINDS.items() if place.startswith(module)), None)
    return None


def _refuse_unknown(document: Document, named: Iterable[tuple[Location, str]]) -> None:
    """Refuse the first driver that is called as an installed one would be, and is none."""
    for at, driver in named:
        if driver.partition(":")[0].isidentifier():
            try:
                find_driver(driver)
            except InputError as error:
                raise document.refusal(at, str(error)) from None


def check_arm_options(protocol: Document, arms: Iterable[Arm], cell: Cell) -> None:
    """The same for the controllers of a protocol's arms, whose options hold their policy cards as tables."""
    for index, arm in enumerate(arms):
        at = ("arm", index)
        _check(protocol, (*at, "controller"), arm.controller, (*at, "options"), arm.options, cell.cell.kind == "real")


def _check(
    document: Document, named_at: Location, driver: str, at: Location, given: Mapping[str, Json], real: bool
) -> None:
    try:
        table = options_type(driver)
        simulated = find_driver(driver).startswith(SIMULATED)
    except InputError as error:
        raise document.refusal(named_at, str(error)) from None
    if real and simulated:
        raise document.refusal(named_at, f'{driver} is no real device, and the cell says kind = "real"; {HONEST}')
    if table is None:
        return
    try:
        found = table.read(given, driver)
        inside = found.wrapped() if isinstance(found, Options) else ()
    except OptionError as error:
        of_table = error.at and error.at[0] in OF_TABLES.get(str(at[0]), ())
        raise document.refusal((*at[:-1], *error.at) if of_table else (*at, *error.at), error.message) from None
    host = found.controller_host() if isinstance(found, Options) else None
    if real and host is not None and is_own(host):
        raise document.refusal((*at, "host"), f'{host} {OWN}, and the cell says kind = "real"; {HONEST}')
    for other in inside:
        _check(document, (*at, other.key), other.driver, (*at, other.key), other.options, real)


def stamped_kind(cell: Cell, arms: Iterable[Arm]) -> str:
    """real, sim, replay, emulated or faults. "faults" where any driver of the cell or of an arm fails on cue, else
    "replay" where a robot of the cell moves as a recorded one did, else what the cell says.
    """
    named = [(robot.driver, robot.options) for robot in cell.robots]
    named += [(hand.driver, hand.options) for side in cell.sides if (hand := side.teleop) is not None]
    named += [(one.driver, one.given) for one in (*cell.camera, *cell.sensor)]
    named += [(arm.controller, arm.options) for arm in arms]
    used = {place for driver, options in named for place in _places(driver, options)}
    return next((kind for place, kind in TELLING.items() if place in used), cell.kind)


def _places(driver: str, given: Mapping[str, Json]) -> list[str]:
    """The module of a driver, and of each that it goes around."""
    found = list[str]()
    with suppress(InputError, OptionError):
        found.append(find_driver(driver).partition(":")[0])
        table = options_type(driver)
        options = None if table is None else table.read(given, driver)
        for inside in options.wrapped() if isinstance(options, Options) else ():
            found += _places(inside.driver, inside.options)
    return found
