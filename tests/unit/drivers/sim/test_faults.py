"""A wrapped driver behaves until its cue, then fails the way it was told to."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from labctl import devices
from labctl.devices import load
from labctl.drivers.sim import faults
from labctl.errors import DeviceLost, DeviceRefused, InputError

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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**FAULT, "fault": "explode"}, 'fault must be one of "delay", "raise", "refuse", "hang", "exit"'),
        ({**FAULT, "fault": "raise", "when": 3}, "no option 'when'"),
        ({"driver": "sim_fr3", "fault": "raise"}, "needs the option 'verb'"),
        ({**FAULT, "verb": "sing", "fault": "raise"}, "has no verb 'sing'"),
        ({**FAULT, "fault": "raise", "after": -1}, "after must be a whole number"),
        ({**FAULT, "fault": "delay", "delay_s": -1}, "delay_s must be a number from 0"),
        ({**FAULT, "driver": "sim_nothing", "fault": "raise"}, "no driver named 'sim_nothing'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given, options, says):
    with pytest.raises(InputError, match=says):
        load("faults", options, **given)
