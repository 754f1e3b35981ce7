"""A wrapped driver behaves until its cue, then fails the way it was told to."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from labctl import devices
from labctl.config.cell_schema import Cell
from labctl.devices import Pace, load
from labctl.drivers.sim import faults
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.store.driver_options import check_cell_options
from labctl.store.lab_folder import read_cell

ROOT = Path(__file__).resolve().parents[4]

FAULT = {"driver": "sim_fr3", "verb": "observe"}


@pytest.mark.parametrize(("fault", "error"), [("raise", DeviceLost), ("refuse", DeviceRefused)])
def test_a_fault_strikes_after_the_calls_that_go_well(given, fault, error):
    robot = load("faults", {**FAULT, "fault": fault, "after": 2}, **given)
    robot.observe()
    robot.observe()
    with pytest.raises(error, match="on cue in observe"):
        robot.observe()
    assert robot.status().mode == "idle"


def test_a_hanging_call_hangs_until_the_device_is_closed(given):
    robot = load("faults", {**FAULT, "fault": "hang"}, **given)
    thread = threading.Thread(target=robot.observe)
    thread.start()
    assert thread.is_alive()
    robot.close()
    thread.join(60.0)
    assert not thread.is_alive()


def test_a_delayed_call_answers_as_the_device_would(given):
    robot = load("faults", {**FAULT, "fault": "delay", "delay_s": 0.001}, **given)
    assert robot.observe()["q"].shape == (7,)


def test_an_exit_ends_the_process_without_a_word():
    code = (
        "from labctl.devices import load\n"
        "from labctl.testing.given import SIMULATED\n"
        "load('faults', {'driver': 'sim_person', 'verb': 'load', 'fault': 'exit'}, **SIMULATED).load()\n"
        "print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (faults.EXIT_CODE, "", "")


def test_a_wrapped_device_is_one_of_kind_faults_and_still_meets_its_protocol(given):
    robot = load("faults", {**FAULT, "fault": "raise"}, **given)
    assert robot.kind == "faults"
    assert isinstance(robot, devices.Robot)
    person = load("faults", {"driver": "sim_person", "verb": "infer", "fault": "raise"}, **given)
    assert isinstance(person, devices.Controller)


class Learning:
    """A controller that knows its times and its software only once it has loaded."""

    kind = "sim"

    def __init__(self) -> None:
        self.load_s = self.warm_s = 0.0
        self.pace, self.software, self.told = Pace(), dict[str, str](), dict[str, float]()

    def load(self) -> None:
        self.load_s, self.software, self.pace = 12.0, {"openpi": "1"}, Pace(cameras=("wrist",))

    def warm(self, observation: object) -> None:
        self.warm_s, self.told = 3.0, {"gpu_memory_mb": 7.0}

    def reset(self, seed: int) -> None: ...
    def infer(self, observation: object) -> None: ...
    def close(self) -> None: ...


def test_what_a_wrapped_controller_learns_while_it_loads_is_told_of_it():
    inner = Learning()
    wrapped: Any = faults.Faulty.around(inner, "infer", 0, "raise", 0.0)
    assert isinstance(wrapped, devices.Controller) and isinstance(wrapped, devices.Telling)
    wrapped.load()
    wrapped.warm(None)
    for name in ("load_s", "warm_s", "pace", "software", "told"):
        assert getattr(wrapped, name) == getattr(inner, name), name
    assert wrapped.pace.cameras == ("wrist",) and wrapped.kind == "faults"
    with pytest.raises(DeviceLost, match="on cue in infer"):
        wrapped.infer(None)


CAMERA = 'driver = "sim_camera"', '[camera.options]\nview = "over_shoulder"'


def test_where_a_cell_may_name_it_and_where_not(tmp_path):
    path = tmp_path / "cell.toml"

    def written(cell: str, *changes: tuple[str, str]) -> Cell:
        text = (ROOT / "hw_configs" / f"{cell}.toml").read_text("utf-8")
        for old, new in changes:
            text = text.replace(old, new, 1)
        path.write_text(text, "utf-8")
        return read_cell(path)

    options = '[robot.options]\ndriver = "sim_rail"\nverb = "observe"\nfault = "raise"\n[robot.limits]'
    check_cell_options(written("sim_rail", ('driver = "sim_rail"', 'driver = "faults"'), ("[robot.limits]", options)))
    options = '[camera.options]\ndriver = "sim_camera"\nverb = "grab"\nfault = "raise"'
    wrong = written("sim_fr3", (CAMERA[0], 'driver = "faults"'), (CAMERA[1], options))
    line = path.read_text("utf-8").splitlines().index('driver = "sim_camera"') + 1
    with pytest.raises(InputError, match=rf"cell\.toml:{line}: .*neither a camera nor a sensor"):
        check_cell_options(wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**FAULT, "fault": "explode"}, 'fault must be one of "delay", "raise", "refuse", "hang", "exit"'),
        ({**FAULT, "fault": "raise", "when": 3}, "no option 'when'"),
        ({"driver": "sim_fr3", "fault": "raise"}, "needs the option 'verb'"),
        ({**FAULT, "verb": "sing", "fault": "raise"}, "has no verb 'sing'"),
        ({**FAULT, "verb": "_move", "fault": "raise"}, "has no verb '_move'"),
        ({**FAULT, "verb": "close", "fault": "raise"}, "has no verb 'close'"),
        ({**FAULT, "verb": "dof", "fault": "raise"}, "has no verb 'dof'"),
        ({**FAULT, "fault": "raise", "rate_hz": 10.0}, "neither a camera nor a sensor"),
        ({**FAULT, "fault": "raise", "after": -1}, "after must be a whole number"),
        ({**FAULT, "fault": "delay", "delay_s": -1}, "delay_s must be a number from 0"),
        ({**FAULT, "driver": "sim_nothing", "fault": "raise"}, "no driver named 'sim_nothing'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given, options, says):
    with pytest.raises(InputError, match=says):
        load("faults", options, **given)
