"""What every robot does, whichever it is.

The contract of labctl.devices.Robot. A real cell joins by one more entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named, changed
from support.robots.emulators import Emulators, busy, network_is_read

from labctl.clock import SECOND
from labctl.testing.driving import DrivingConformance
from labctl.testing.given import FIXTURE
from labctl.testing.options import Driver, OptionsConformance
from labctl.testing.robot import FollowingConformance, HomingConformance, RobotConformance, RobotRig, SlowedConformance
from labctl.testing.robot_rig import turned

QUIET = {"verb": "events", "fault": "raise", "after": 10**9}
ROBOTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sim_fr3": ("sim_fr3", "sim_fr3", {}),
    "sim_ur5": ("sim_ur5", "sim_ur5", {}),
    "sim_rail": ("sim_rail", "sim_rail", {}),
    "sim_hand": ("sim_hand", "sim_hand", {}),
    "sim_base": ("sim_base", "sim_base", {}),
    "pair": ("pair", "sim_pair", {}),
    "faults": ("faults", "sim_fr3", {"driver": "sim_fr3", **QUIET}),
    "faults_on_a_rail": ("faults", "sim_rail", {"driver": "sim_rail", **QUIET}),
    "replay": ("replay", "sim_fr3", {"arm": "fr3", "file": "recorded.npz"}),
    "fr3_over_fci": ("emulated", "emulated_fr3", {}),
    "fr3_states_of_the_client": ("emulated", "emulated_fr3", {"states": "client"}),
    "fr3_under_impedance": ("emulated", "emulated_fr3", {"servo": "impedance"}),
    "ur5_over_rtde": ("emulated", "emulated_ur5", {}),
    "ur5e_over_ros2": ("emulated", "emulated_ros2", {}),
    "ur5e_over_ros2_by_action": (
        "emulated",
        "emulated_ros2",
        {"command": "action", "command_topic": "/joint_trajectory_controller/follow_joint_trajectory"},
    ),
    "ur5e_over_ros2_by_twist": (
        "emulated",
        "emulated_ros2",
        {"command": "twist", "command_topic": "/servo_node/delta_twist_cmds"},
    ),
    "ur5e_over_rtde": ("emulated", "emulated_ur5e", {}),
}
# Who may not open raw sockets reads the client in fr3_over_fci too.
TRIED = [name for name in ROBOTS if name != "fr3_states_of_the_client" or network_is_read()]
LIVE = [name for name in TRIED if ROBOTS[name][0] == "emulated"]
# The UR5 is the UR5e with other dimensions, and what is ROS 2's own is in tests/emulators/test_ros2.py.
TWICE = (
    "fr3_states_of_the_client",
    "fr3_under_impedance",
    "ur5_over_rtde",
    "ur5e_over_ros2",
    "ur5e_over_ros2_by_action",
    "ur5e_over_ros2_by_twist",
)
MARKS = {
    name: [pytest.mark.real_time, *busy(name), *([pytest.mark.thorough] if name in TWICE else [])] for name in LIVE
}
RIGS: list[Any] = [pytest.param(name, marks=MARKS.get(name, [])) for name in TRIED]
MOVED = [rig for rig in RIGS if rig.values != ("replay",)]  # a replay has its own way


@pytest.fixture(scope="module")
def emulators():
    """Emulators by name, started once and shared: tests close their robot, and the next one connects again. The tests
    of one come after those of another (conftest.py), and only one of them runs: each takes a share of a core.
    """
    with Emulators() as running:
        yield running


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> str:
    """States of a simulated robot that went the way of `turned`, as an export writes them."""
    made = RobotRig("sim_fr3", {}, cell_named("sim_fr3"), live=False)
    made.connect()
    made.follow(turned(made.robot))
    made.wait(SECOND // 2)
    state = [batch for batch in made.batches if batch.stream == "arm/state"]
    columns = next(spec for spec in made.robot.streams if spec.name == "arm/state").columns
    path = tmp_path_factory.mktemp("replay") / "recorded.npz"
    parts = {name: np.concatenate([getattr(batch, name) for batch in state]) for name in ("t_ns", "values")}
    np.savez(path, columns=np.array(columns), **parts)
    return str(path)


class OurRobots:
    """Each of the robots that a parameter names, connected."""

    @pytest.fixture(params=RIGS)
    def rig(self, request: pytest.FixtureRequest, emulators: Emulators, recording: str) -> Iterator[RobotRig]:
        driver, cell_name, options = ROBOTS[request.param]
        live, cell = driver == "emulated", cell_named(cell_name)
        if live:
            emulators.end_all_but(cell_name)
            given, options = options, emulators.options(cell_name)
            options["driver_options"] |= given
        else:  # the simulated ones' own cells say nothing of the tool's speed
            cell = changed(cell, {"robot": {"limits": {"tool_speed_m_s": 0.8}}})
        if driver == "replay":
            options = {**options, "file": recording}
        made = RobotRig(driver, options, cell, live=live)
        try:
            made.connect()
            yield made
        finally:
            made.robot.close()


class TestEveryRobot(OurRobots, RobotConformance):
    pass


@pytest.mark.parametrize("rig", MOVED, indirect=True)
class TestRobotsThatFollow(OurRobots, FollowingConformance):
    pass


@pytest.mark.parametrize("rig", RIGS[-len(LIVE) :], indirect=True)
class TestRobotsThatTakeTheirTimeHome(OurRobots, HomingConformance):
    pass


SLIDERS = ("ur5e_over_rtde", "ur5e_over_ros2")


@pytest.mark.parametrize("rig", [rig for rig in RIGS if rig.values[0] in SLIDERS], indirect=True)
class TestRobotsWithASlider(OurRobots, SlowedConformance):
    @pytest.fixture
    def slider(self, request: pytest.FixtureRequest, emulators: Emulators) -> Iterator[Callable[[float], None]]:
        emulator = emulators[ROBOTS[request.node.callspec.params["rig"]][1]]

        def slide(fraction: float) -> None:
            emulator.clear() if fraction == 1.0 else emulator.inject("speed_slider", fraction=fraction)

        yield slide
        emulator.clear()


@pytest.mark.parametrize("rig", ["sim_base"], indirect=True)
class TestRobotsThatDrive(OurRobots, DrivingConformance):
    pass


class TestOptions(OptionsConformance):
    @pytest.fixture(params=list(ROBOTS))
    def driver(self, request: pytest.FixtureRequest) -> Driver:
        name, cell_name, options = ROBOTS[request.param]
        if not options or name == "emulated":
            options = cell_named(cell_name).robot.options
        return name, options, {"cell": cell_named(cell_name), "fixture": FIXTURE}
