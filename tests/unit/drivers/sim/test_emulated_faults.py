"""What an emulated controller may be given as a fault: what is wrong is refused before its loop meets it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import pytest
from support.robots.emulators import address

from labctl.devices import load
from labctl.drivers.sim.control_port import Number, checked_fault
from labctl.errors import InputError
from labctl.plain import Json
from labctl.testing.given import FIXTURE

EMULATORS = {"fr3": "franka.emulator.fr3", "ur": "ur.emulator.controller", "ros2": "ros2.emulator.robot"}
WRONG = [
    ("fr3", "packet_loss", {"n": "many"}, "n must be a whole number from 0 to 1000000, found 'many'"),
    ("fr3", "packet_loss", {"n": 2.5}, "n must be a whole number"),
    ("fr3", "packet_loss", {"n": True}, "n must be a whole number"),
    ("fr3", "silence", {"seconds": "2s"}, "seconds must be a number from 0"),
    ("fr3", "silence", {"seconds": float("inf")}, "seconds must be a number from 0"),
    ("fr3", "silence", {"seconds": float("nan")}, "seconds must be a number from 0"),
    ("fr3", "silence", {"seconds": 1e306}, "seconds must be a number from 0"),
    ("fr3", "silence", {"second": 10}, "silence has no argument 'second'; known: seconds"),
    ("fr3", "state_loss", {"share": "5%"}, "share must be a number from 0 to 1,"),
    ("fr3", "refuse_version", {"version": 70000}, "version must be a whole number from 1 to 65535"),
    ("fr3", "reflex", {"name": "earthquake"}, "name must be one of joint_position_limits_violation,"),
    ("fr3", "reflex", {"name": ["joint_reflex"]}, "name must be one of"),
    ("fr3", "user_stop", {"seconds": 2}, "user_stop has no argument 'seconds'; known: none"),
    ("fr3", "earthquake", {}, "no fault 'earthquake'; known: reflex,"),
    ("fr3", "silence", ["seconds"], "an object of names and values"),
    ("ur", "speed_slider", {"fraction": "half"}, "fraction must be a number from 0 to 1,"),
    ("ur", "speed_scaling", {"fraction": -1}, "fraction must be a number from 0 to 1,"),
    ("ur", "rtde_stall", {"seconds": "4s"}, "seconds must be a number from 0"),
    ("ur", "dashboard_refuse", {"answer": "\udcff"}, "answer must be a line of text"),
    ("ur", "dashboard_refuse", {"verb": None}, "verb must be a line of text"),
    ("ros2", "silence", {"seconds": "4s"}, "seconds must be a number from 0"),
    ("ros2", "speed_slider", {"fraction": "half"}, "fraction must be a number from 0 to 1,"),
]


def module_of(emulator: str) -> Any:
    """The module of an emulator, whose test is left out where what it needs is not installed."""
    if emulator == "ros2":
        pytest.importorskip("cyclonedds")
    return importlib.import_module(f"labctl.drivers.{EMULATORS[emulator]}")


@pytest.mark.parametrize(("emulator", "fault", "given", "says"), WRONG)
def test_a_fault_with_a_wrong_argument_is_refused(emulator: str, fault: str, given: Json, says: str) -> None:
    module = module_of(emulator)
    with pytest.raises(InputError) as caught:
        checked_fault(fault, given, module.FAULTS, module.ARGUMENTS)
    assert says in str(caught.value)


@pytest.mark.parametrize("emulator", EMULATORS)
def test_what_a_fault_says_of_itself_names_the_arguments_that_it_takes(emulator: str) -> None:
    module = module_of(emulator)
    said = {name: re.match(r"([a-z, ]+) = ", text.rpartition("; ")[2]) for name, text in module.FAULTS.items()}
    named = {name: set(found[1].split(", ")) for name, found in said.items() if found}
    assert named == {name: set(arguments) for name, arguments in module.ARGUMENTS.items()}


def extremes(arguments: Mapping[str, Any], *, least: bool) -> dict[str, Any]:
    """An argument of each name, as small or as large as it may be."""
    found = dict[str, Any]()
    for key, one in arguments.items():
        numbers = (one.least, one.most) if isinstance(one, Number) else (7, 2.5)
        text = one.among[0 if least else -1] if not isinstance(one, Number) and one.among else None
        value = text or numbers[0 if least else 1]
        found[key] = int(value) if isinstance(one, Number) and one.whole else value
    return found


@pytest.mark.parametrize("least", [True, False])
@pytest.mark.parametrize(("name", "build"), [("fr3", "franka.emulator.fr3:build"), ("ur", "ur.emulator.models:ur5e")])
def test_the_loop_takes_whatever_was_not_refused(name: str, build: str, least: bool) -> None:
    module, emulator = module_of(name), load(f"labctl.drivers.{build}", {}, host=address(), fixture=FIXTURE)
    try:
        for fault in module.FAULTS:
            emulator.inject(fault, extremes(module.ARGUMENTS.get(fault, {}), least=least))
        for _ in module.FAULTS:
            emulator._obey(*emulator._asked.get_nowait())
    finally:
        emulator.close()


def test_a_refused_fault_is_not_asked_of_the_loop() -> None:
    emulator = load("labctl.drivers.franka.emulator.fr3:build", {}, host=address(), fixture=FIXTURE)
    try:
        with pytest.raises(InputError, match="has no argument 'second'"):
            emulator.inject("silence", {"second": 10})
        assert emulator._asked.empty()
    finally:
        emulator.close()
