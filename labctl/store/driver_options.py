"""The options of the drivers that a cell and a protocol name, checked against what each driver declares; and that in a
cell whose episodes are said to be real nothing is simulated.

May not: import a vendor's library for a driver that ships with labctl, or connect to anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labctl.config.cell_schema import CameraTable, Cell
from labctl.config.options import OWN, CameraOptions, Options, is_own
from labctl.config.protocol_schema import Arm, Protocol
from labctl.config.toml_text import Document, Location
from labctl.devices import find_driver, options_type
from labctl.errors import InputError, OptionError
from labctl.plain import Json

SIMULATED = "labctl.drivers.sim."  # simulations, recordings, wrappers of faults, emulated cells
HONEST = "name a real one, or say kind sim, replay or emulated, which every report then shows"


def check_drivers(protocol: Protocol, cell: Cell) -> None:
    """Refuse, at its line, the first driver that nobody has, and a takeover that the cell has no device for. Raises
    InputError.
    """
    check_controllers(protocol)
    named = [(cell, ("camera", i, "driver"), camera.driver) for i, camera in enumerate(cell.camera)]
    named += [(cell, ("robot", "driver"), cell.robot.driver)]
    if protocol.trial.takeover == "allowed" and cell.teleop is None:
        raise protocol.refusal(("trial", "takeover"), f"cell {cell.cell.name} has no [teleop] table to take over with")
    if cell.cell.operator != "console":
        named += [(cell, ("cell", "operator"), cell.cell.operator)]
    for document, at, driver in named:
        if driver.partition(":")[0].isidentifier():
            try:
                find_driver(driver)
            except InputError as error:
                raise document.refusal(at, str(error)) from None


def check_cell_options(cell: Cell) -> None:
    """Refuse, at its line of the cell file, the first wrong option of robot, gripper, cameras and hand device, and what
    is simulated in a real cell.

    Raises InputError: what was found, what is allowed.
    """
    real = cell.cell.kind == "real"
    _check(cell, ("robot", "driver"), cell.robot.driver, ("robot", "options"), cell.robot.options, real)
    for index, camera in enumerate(cell.camera):
        at = ("camera", index)
        _check(cell, (*at, "driver"), camera.driver, (*at, "options"), camera.given, real)
    if cell.teleop is not None:
        _check(cell, ("teleop", "device"), cell.teleop.driver, ("teleop", "options"), cell.teleop.options, real)
    if cell.cell.operator != "console":
        _check(cell, ("cell", "operator"), cell.cell.operator, ("cell", "operator"), {}, real)


def records_depth(camera: CameraTable) -> bool:
    """Whether a camera gives depth beside its pictures, as its driver declares and its table sets it."""
    table = options_type(camera.driver)
    declared = None if table is None else table.read(camera.given, camera.driver)
    return bool(getattr(declared, "depth", camera.options.get("depth", False)))


def check_controllers(protocol: Protocol) -> None:
    """Refuse, at its line of the protocol, the first controller that no installed driver has. Raises InputError."""
    for index, arm in enumerate(protocol.arm):
        if arm.controller.partition(":")[0].isidentifier():
            try:
                find_driver(arm.controller)
            except InputError as error:
                raise protocol.refusal(("arm", index, "controller"), str(error)) from None


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
        of_table = at[0] == "camera" and error.at and error.at[0] in CameraOptions.OF_TABLE
        raise document.refusal((*at[:-1], *error.at) if of_table else (*at, *error.at), error.message) from None
    host = found.controller_host() if isinstance(found, Options) else None
    if real and host is not None and is_own(host):
        raise document.refusal((*at, "host"), f'{host} {OWN}, and the cell says kind = "real"; {HONEST}')
    for other in inside:
        _check(document, (*at, other.key), other.driver, (*at, other.key), other.options, real)
