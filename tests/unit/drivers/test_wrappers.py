"""What a driver is that goes around another: all that labctl asks of the one inside, it has too."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.pairs import pair_cell

from labctl import devices
from labctl.axes import axes_of
from labctl.devices import ActionChunk, Observation, Pace, declared_axes, load
from labctl.drivers.common.sides import TwoControllers
from labctl.drivers.pair.robot import PairRobot
from labctl.drivers.sim.emulated import EmulatedCell
from labctl.drivers.sim.faults import Faulty
from labctl.testing.given import FIXTURE

ROOT = Path(__file__).resolve().parents[3]
# What a robot or a controller may have beyond its Protocol, and whoever leads it asks for.
OF_ROBOTS, OF_CONTROLLERS = {"axes", "takes_steps"}, {"told", "software", "hand"}


def robot_with_everything(name: str = "sim_rail") -> Any:
    cell = cell_named(name)
    robot = load(cell.robot.driver, cell.robot.options, cell=cell, fixture=FIXTURE)
    robot.takes_steps = True
    return robot


class Knowing:
    """A controller that has everything a controller may have."""

    kind = "sim"

    def __init__(self, torch: str = "2.1") -> None:
        self.load_s = self.warm_s = 1.0
        self.pace, self.told, self.software = Pace(), dict[str, float](), dict[str, str]()
        self._torch = torch

    def load(self) -> None:
        self.pace = Pace(cameras=("wrist",))

    def warm(self, observation: Observation) -> None:
        self.told = {"gpu_memory_mb": 7000.0, "parameters": 3e9}
        self.software = {"openpi": "1", "torch": self._torch}

    def reset(self, seed: int) -> None: ...

    def infer(self, observation: Observation) -> ActionChunk:
        chunk = ActionChunk("joint_position", np.zeros((1, 7)), np.zeros(1), 0.1, 1, server_s=0.1, call_s=0.2)
        chunk.gpu_memory_mb = 7000.0
        return chunk

    def hand(self, q: np.ndarray) -> Mapping[str, Any]:
        return {}

    def close(self) -> None: ...


def around_robots() -> list[Any]:
    link = SimpleNamespace(host="127.0.0.1")
    second = pair_cell().second_robot
    assert second is not None
    return [
        Faulty.around(robot_with_everything(), "observe", 0, "raise", 0.0),
        EmulatedCell(robot_with_everything(), link, 100.0, FIXTURE),  # type: ignore[arg-type]
        PairRobot((robot_with_everything(), robot_with_everything()), second),
    ]


@pytest.mark.parametrize("made", around_robots(), ids=lambda made: type(made).__name__)
def test_a_robot_around_another_has_all_that_labctl_asks_of_the_one_inside(made: Any) -> None:
    """An emulated robot on a rail was led as seven joints and an opening."""
    assert isinstance(made, devices.Robot)
    assert not {name for name in OF_ROBOTS if not hasattr(made, name)}
    assert made.takes_steps and "rail" in {axis.name.rpartition(".")[2] for axis in axes_of(made)}


def test_what_a_driver_s_options_declare_stands_through_the_driver_around_it() -> None:
    inside = {"driver": "sim_rail", "driver_options": {}}
    for driver, options in (("faults", {"verb": "observe", "fault": "raise"}), ("emulated", {})):
        assert declared_axes(driver, {**inside, **options}) == declared_axes("sim_rail", {}), driver


def test_one_controller_for_two_robots_tells_what_both_tell() -> None:
    """What its policies need, and what they run on, was in no episode and in no report."""
    cell, seen = pair_cell(), {"q": np.zeros(14), "dq": np.zeros(14), "gripper": np.zeros(2)}
    first, second = Knowing("2.1"), Knowing("2.2")
    both: Any = TwoControllers(cell, (first, second))
    assert isinstance(both, devices.Telling) and not both.told and not both.software
    both.load()
    assert both.pace.cameras == ("wrist",), "as a controller has it once it has loaded"
    both.warm(Observation(0, seen))
    assert both.told == {"gpu_memory_mb": 14000.0, "parameters": 6e9}
    assert both.software == {"openpi": "1", "torch": "2.1 + 2.2"}
    second.told, second.software = {"parameters": 1e9}, {"jax": "0.4"}
    assert both.told == {"parameters": 4e9}, "of a sum that lacks one of the two nobody learns anything"
    assert both.software == {"openpi": "1", "torch": "2.1", "jax": "0.4"}
    chunk = both.infer(Observation(0, seen))
    assert (chunk.server_s, chunk.call_s, chunk.gpu_memory_mb) == (0.1, 0.2, 14000.0)
    second.infer = lambda _: ActionChunk("joint_position", np.zeros((1, 7)), np.zeros(1), 0.1, 1)  # type: ignore[method-assign]
    assert math.isnan(both.infer(Observation(0, seen)).server_s)


def test_a_controller_around_another_has_all_that_it_has() -> None:
    made = Faulty.around(Knowing(), "infer", 0, "raise", 0.0)
    assert isinstance(made, devices.Controller)
    assert not {name for name in OF_CONTROLLERS if not hasattr(made, name)}


def test_what_is_asked_of_a_device_beyond_its_protocol_is_what_these_tests_look_for() -> None:
    """An attribute that a node reads of its robot or controller without its having to be there."""
    read = set[str]()
    for path in (ROOT / "labctl" / "nodes").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(name)), *_]):
                    if ast.unparse(of).rpartition(".")[2].strip("_") in ("robot", "controller"):
                        read.add(name)
    protocols = (devices.Robot, devices.Controller, devices.Telling, devices.ByHand)
    beyond = read - {name for each in protocols for name in (*vars(each), *each.__annotations__)}
    assert beyond == {"axes", "takes_steps", "software"} and beyond <= OF_ROBOTS | OF_CONTROLLERS
