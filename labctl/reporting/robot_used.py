"""Which robot, gripper and limits each episode had, as they said of themselves, and whether that changed.

May not: read anything but the record. Campaigns recorded before December 2026 say nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from labctl.core.record import Record
from labctl.plain import DeviceAbout, Json, RobotAbout
from labctl.reporting.software_used import Stretch, changed, episodes_with, one_by_one, together


def _stretches(record: Record) -> list[Stretch[RobotAbout]]:
    """The scored episodes by robot, in the order in which they started."""
    return together(episodes_with(record, lambda start: start.get("robot")))


def robot_facts(record: Record) -> dict[str, str | Mapping[str, str] | None]:
    """Rows of the provenance: what the robot and its gripper are, and the limits in force."""
    found = _stretches(record)
    if len(found) > 1:
        return {"robot_of_episodes": one_by_one(found, robot_in_words)}
    if not found:
        return {}
    about = found[0].of
    limits = ", ".join(f"{key} {_said(value)}" for key, value in about.get("limits", {}).items())
    return {"robot_as_connected": robot_in_words(about), "limits_in_force": limits}


def changes_of_robot(record: Record) -> list[str]:
    """A line for each change of the robot, its gripper or its limits between two episodes that follow each other."""
    return [
        f"the robot changed before episode {after.first}: {changed(_flat(before.of), _flat(after.of))}"
        for before, after in pairwise(_stretches(record))
    ]


def robot_in_words(about: RobotAbout) -> str:
    """A robot with its gripper in a line; what is not told is left out."""
    held = about.get("gripper")
    return _device(about) + ("" if held is None else f"; gripper: {_device(held)}")


def _device(about: DeviceAbout | RobotAbout) -> str:
    serial = about["serial"]
    parts = (about["model"], None if serial is None else f"serial {serial}", about["firmware"], f"by {about['client']}")
    return ", ".join(part for part in parts if part)


def _flat(about: RobotAbout) -> dict[str, str]:
    """All of it by name, the gripper's and the limits' with what they are of."""
    held, tool = about.get("gripper"), about.get("tool", {})
    found = _of_device(about) | {f"tool.{key}": _said(value) for key, value in tool.items()}
    return found if held is None else found | {f"gripper.{key}": said for key, said in _of_device(held).items()}


def _of_device(about: DeviceAbout | RobotAbout) -> dict[str, str]:
    told = {"model": about["model"], "serial": about["serial"], "firmware": about["firmware"]}
    found = {key: said for key, said in told.items() if said is not None} | {"client": about["client"]}
    return found | {f"limits.{key}": _said(value) for key, value in about.get("limits", {}).items()}


def _said(value: Json) -> str:
    """A value as a person would write it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_said, value))}]"
    return str(value)
