"""What a device says it is, in the words that a record keeps (`labctl.plain.RobotAbout`).

May not: talk to a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata

from labctl.config.cell_schema import Limits
from labctl.devices import Kind
from labctl.drivers.common.robot_tables import RobotModel, Tool
from labctl.plain import Json, RobotAbout


def library(name: str) -> str:
    """Name and version of an installed distribution; the name alone where it is imported without being installed."""
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return name


def limits_in_force(limits: Limits, more: Mapping[str, Json] | None = None) -> Mapping[str, Json]:
    """The cell's [robot.limits], which no driver passes, and what else the driver keeps to."""
    return {**limits.model_dump(mode="json", exclude_none=True), **(more or {})}


def tool_in_words(tool: Tool, kg: float | None = None) -> Mapping[str, Json]:
    """A tool as the keys of a cell have it, in the frame of the flange."""
    found: dict[str, Json] = {"xyz_m": list(tool.xyz), "rpy_rad": list(tool.rpy)}
    return found if kg is None else {**found, "kg": kg}


def joined(link: object, gripper: object, limits: Limits, robot_model: RobotModel) -> RobotAbout:
    """Of a robot led through a link, with its gripper. Those of packages that are older than `about` say nothing."""
    known = getattr(link, "about", None)
    about: RobotAbout = _silent(robot_model.name) if known is None else known()
    about = {**about, "limits": limits_in_force(limits, about.get("limits"))}
    of_gripper = getattr(gripper, "about", None)
    return about if of_gripper is None else {**about, "gripper": of_gripper()}


def _silent(model: str) -> RobotAbout:
    return {"model": model, "serial": None, "firmware": None, "client": library("labctl")}


def pretended(kind: Kind, robot_model: RobotModel, limits: Limits) -> RobotAbout:
    """Of a robot that is there in software alone."""
    return {
        "model": f"{robot_model.name} ({kind})",
        "serial": None,
        "firmware": None,
        "client": library("labctl"),
        "limits": limits_in_force(limits),
    }
