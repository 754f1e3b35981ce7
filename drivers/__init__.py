"""Drivers: devices, simulated cells, controllers, found by name. They may use labctl.devices, clock and errors, and
nothing above.

A name means a driver of labctl (`BY_NAME`) or one that an installed package registers under the entry-point group
`labctl.drivers`. May not: read that registry for a name of labctl's own, or more than once a process.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from labctl.errors import InputError

GROUP = "labctl.drivers"
# Folders of modules of a lab's own, beside its lab.toml (`store.lab_folder.admit_modules`). They come last: none of
# them hides a module of Python's or of an installed package.
for _folder in os.environ.get("LABCTL_MODULES", "").split(os.pathsep):
    if _folder and _folder not in sys.path:
        sys.path.append(_folder)

# The name in a cell or protocol file -> the module with its `build`, or "module:function". Names outlive the folders
# that modules lie in.
BY_NAME = {
    "emulated": "labctl.drivers.sim.emulated",
    "faults": "labctl.drivers.sim.faults",
    "franka": "labctl.drivers.franka.robot",
    "franka_hand": "labctl.drivers.franka.hand",
    "lines": "labctl.drivers.sensors.lines",
    "opencv_camera": "labctl.drivers.opencv.camera",
    "pair": "labctl.drivers.pair.robot",
    "policy_callable": "labctl.drivers.policy.callable",
    "policy_gr00t": "labctl.drivers.policy.gr00t",
    "policy_openpi": "labctl.drivers.policy.openpi",
    "policy_roboarena": "labctl.drivers.policy.roboarena",
    "realsense": "labctl.drivers.realsense.camera",
    "replay": "labctl.drivers.sim.replay",
    "robotiq_serial": "labctl.drivers.robotiq.serial",
    "robot_wrench": "labctl.drivers.sensors.robot_wrench",
    "robotiq_socket": "labctl.drivers.robotiq.socket",
    "scale_serial": "labctl.drivers.sensors.scale",
    "ros2": "labctl.drivers.ros2.robot",
    "ros2_camera": "labctl.drivers.ros2.camera",
    "ros2_gripper": "labctl.drivers.ros2.gripper",
    "sim_base": "labctl.drivers.sim.axes.base",
    "sim_camera": "labctl.drivers.sim.camera",
    "sim_fr3": "labctl.drivers.sim.robot:fr3",
    "sim_hand": "labctl.drivers.sim.axes.robot:with_a_hand",
    "sim_operator": "labctl.drivers.sim.operator",
    "sim_operator_prompt": "labctl.drivers.sim.operator:prompt",
    "sim_person": "labctl.drivers.sim.person",
    "sim_policy": "labctl.drivers.sim.policy",
    "sim_rail": "labctl.drivers.sim.axes.robot:on_a_rail",
    "sim_scale": "labctl.drivers.sim.scale",
    "sim_ur5": "labctl.drivers.sim.robot:ur5",
    "teleop": "labctl.drivers.teleop.person",
    "teleop_gamepad": "labctl.drivers.teleop.gamepad",
    "teleop_gello": "labctl.drivers.teleop.gello",
    "teleop_keyboard": "labctl.drivers.teleop.keyboard",
    "teleop_spacemouse": "labctl.drivers.teleop.spacemouse",
    "ur5": "labctl.drivers.ur.robot",
}

# The same name -> what its options may be, in a module that imports no vendor's library.
OPTIONS = {
    "emulated": "labctl.drivers.sim.options:Emulated",
    "faults": "labctl.drivers.sim.options:Faults",
    "franka": "labctl.drivers.franka.options:FrankaOptions",
    "franka_hand": "labctl.drivers.franka.options:FrankaHandOptions",
    "lines": "labctl.drivers.sensors.line_options:LinesOptions",
    "opencv_camera": "labctl.drivers.opencv.options:OpencvOptions",
    "pair": "labctl.config.options:NoOptions",
    "policy_callable": "labctl.drivers.policy.options:CallableOptions",
    "policy_gr00t": "labctl.drivers.policy.options:Gr00tOptions",
    "policy_openpi": "labctl.drivers.policy.options:WebsocketOptions",
    "policy_roboarena": "labctl.drivers.policy.options:WebsocketOptions",
    "realsense": "labctl.drivers.realsense.options:RealsenseOptions",
    "replay": "labctl.drivers.sim.options:Replay",
    "robotiq_serial": "labctl.drivers.robotiq.options:RobotiqSerialOptions",
    "robot_wrench": "labctl.drivers.sensors.options:RobotWrenchOptions",
    "robotiq_socket": "labctl.drivers.robotiq.options:RobotiqOptions",
    "scale_serial": "labctl.drivers.sensors.options:SerialScaleOptions",
    "ros2": "labctl.drivers.ros2.options:Ros2Options",
    "ros2_camera": "labctl.drivers.ros2.options:Ros2CameraOptions",
    "ros2_gripper": "labctl.drivers.ros2.options:Ros2GripperOptions",
    "sim_base": "labctl.drivers.sim.options:SimBaseOptions",
    "sim_camera": "labctl.drivers.sim.options:SimCameraOptions",
    "sim_fr3": "labctl.drivers.sim.options:SimFr3Options",
    "sim_hand": "labctl.drivers.sim.options:SimHandOptions",
    "sim_operator": "labctl.config.options:NoOptions",
    "sim_operator_prompt": "labctl.config.options:NoOptions",
    "sim_person": "labctl.drivers.sim.options:SimPerson",
    "sim_policy": "labctl.drivers.sim.options:SimPolicy",
    "sim_rail": "labctl.drivers.sim.options:SimRailOptions",
    "sim_scale": "labctl.drivers.sim.options:SimScaleOptions",
    "sim_ur5": "labctl.drivers.sim.options:SimUr5Options",
    "teleop": "labctl.config.options:NoOptions",
    "teleop_gamepad": "labctl.drivers.teleop.options:GamepadOptions",
    "teleop_gello": "labctl.drivers.teleop.options:GelloOptions",
    "teleop_keyboard": "labctl.drivers.teleop.options:KeyboardOptions",
    "teleop_spacemouse": "labctl.drivers.teleop.options:SpaceMouseOptions",
    "ur5": "labctl.drivers.ur.options:UrOptions",
}

# A folder of drivers -> the extra that brings what they import.
EXTRAS = {name: name for name in ("franka", "ur", "robotiq", "realsense", "ros2", "policy", "teleop")}
EXTRAS["opencv"] = "cameras"

# The name in `labctl emulate NAME` -> the module with its `build`.
EMULATORS = {
    "fr3": "labctl.drivers.franka.emulator.fr3",
    "ros2": "labctl.drivers.ros2.emulator.robot",
    **{
        name: f"labctl.drivers.ur.emulator.models:{name}"
        for name in ("ur5", "ur3e", "ur5e", "ur7e", "ur10e", "ur15", "ur20")
    },
}


@dataclass(frozen=True, slots=True)
class Registered:
    """A driver of an installed package: where it is ("module" or "module:function") and the distribution it is of."""

    name: str
    place: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.place})"


@cache
def registered() -> tuple[Registered, ...]:
    """Every driver that an installed package registers, by name; read once a process, at the first call."""
    from importlib import metadata  # some 30 ms, which a start-up with labctl's own drivers does not need

    found = []
    for entry in metadata.entry_points(group=GROUP):
        distribution, version = (entry.dist.name, entry.dist.version) if entry.dist else ("an unnamed package", "")
        found.append(Registered(entry.name, entry.value.replace(" ", ""), distribution, version))
    return tuple(sorted(found, key=lambda one: (one.name, one.distribution)))


def known() -> Mapping[str, str]:
    """Every name that a file may have -> "module" or "module:function". Raises InputError for a name given twice."""
    places, owners = dict(BY_NAME), {name: f"labctl ({place})" for name, place in BY_NAME.items()}
    for one in registered():
        if one.name in places:
            raise InputError(
                f"two drivers are named {one.name!r}, of {owners[one.name]} and of {one}; "
                f"uninstall a package, or have it register another name"
            )
        places[one.name], owners[one.name] = one.place, str(one)
    return places


def find(name: str) -> str:
    """Where a driver is, as "module:function". `name` is one of `known()`, or "package.module:function" itself.

    Raises InputError for a name that nobody has, or a module that is not there.
    """
    wanted, _, function = name.partition(":")
    place = wanted if "." in wanted else BY_NAME.get(wanted) or known().get(wanted, "")
    module, _, registered_function = place.partition(":")
    try:
        there = bool(module) and not module.startswith(".") and importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    if there:
        return f"{module}:{function or registered_function or 'build'}"
    owner = next((str(one) for one in registered() if one.name == wanted), "")
    if owner:
        raise InputError(f"driver {name!r} of {owner} cannot be loaded: there is no module {module!r}")
    if "." in wanted:
        raise InputError(
            f"no driver named {name!r}: there is no module {wanted!r} here; install the package that has it into this "
            "Python, or put it beside lab.toml"
        )
    near = difflib.get_close_matches(name, known(), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"no driver named {name!r}{meant}; known drivers: {', '.join(sorted(known()))}. "
        f"A package of yours adds one by an entry point in the group {GROUP!r} (docs/howto/robot.md)"
    )
