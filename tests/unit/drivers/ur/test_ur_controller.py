"""Claims about the emulated UR controller that need no client."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise

import pytest
from support.robots.emulators import address

from labctl.clock import MILLISECOND, ManualClock
from labctl.devices import load
from labctl.drivers.ur.emulator import rtde_wire as wire
from labctl.drivers.ur.pose import from_ur
from labctl.testing.given import FIXTURE


def test_it_can_be_asked_for_its_counts_while_it_goes_on_counting() -> None:
    fixture = FIXTURE
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=fixture)
    controller._unsent.extend(range(controller._unsent.maxlen or 0))
    end, interval = threading.Event(), sys.getswitchinterval()

    def count() -> None:
        while not end.is_set():
            controller._unsent.append(1)

    loop = threading.Thread(target=count)
    sys.setswitchinterval(1e-6)
    loop.start()
    try:
        for _ in range(50):
            assert len(controller.stats()["unsent_s"]) == controller._unsent.maxlen
    finally:
        end.set()
        loop.join()
        sys.setswitchinterval(interval)
        controller.close()


class Over(Exception):
    """Enough was seen."""


def test_on_a_machine_without_time_for_its_cycles_it_sends_states_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It made up for all that it had missed before it sent the next one, and missed more meanwhile: with a fifth of a
    core its rounds grew until its client took it for lost ("no state for 2.0 s"), long before the machine had none.
    """
    clock, ticks, many = ManualClock(0), list[bool](), 2000
    monkeypatch.setattr("labctl.drivers.ur.emulator.controller.CLOCK", clock)
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=FIXTURE)
    tick = controller._tick

    def slow_tick(now: int, *, publish: bool = True) -> None:
        tick(now, publish=publish)
        clock.sleep_until(clock.now_ns() + 5 * MILLISECOND)  # for 2 ms of its own
        ticks.append(publish)
        if len(ticks) == many:
            raise Over

    controller._tick = slow_tick
    try:
        with pytest.raises(Over):
            controller.run(lambda: False)
    finally:
        controller.close()
    sent = [0, *(cycle for cycle, publish in enumerate(ticks) if publish), many]
    assert max(after - before for before, after in pairwise(sent)) <= 11, "a fiftieth of a second of its clock apart"


def test_it_serves_the_speed_slider_that_a_person_or_a_client_sets() -> None:
    fixture = FIXTURE
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=fixture)
    try:
        controller._obey("speed_slider", {})
        controller._obey("speed_scaling", {"fraction": 0.75})
        values = controller._values()
        assert (values["target_speed_fraction"], values["speed_scaling"]) == (0.5, 0.75)
        controller._obey("", {})
        assert (controller._values()["target_speed_fraction"], controller._values()["speed_scaling"]) == (1.0, 1.0)
        controller._write({"speed_slider_mask": 1, "speed_slider_fraction": 0.3})
        controller._write({"speed_slider_mask": 0, "speed_slider_fraction": 0.9})
        assert controller._values()["target_speed_fraction"] == 0.3
        controller._write({"speed_slider_mask": 1})  # of a recipe that has no more, or a package that is too short
        assert controller._values()["target_speed_fraction"] == 0.3
    finally:
        controller.close()


def test_it_serves_what_the_vendors_own_client_asks_of_the_tool() -> None:
    """Names and types as Universal Robots' RTDE guide has them, of the recipe in the example of its C++ client."""
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=FIXTURE)
    asked = ("analog_io_types", "tool_mode", "tool_analog_input_types", "tool_analog_input0", "tool_analog_input1")
    asked += ("tool_output_voltage", "tool_output_current", "tool_temperature", "tcp_offset")
    try:
        recipe = wire.Recipe([(name, str(wire.type_of(name, wire.OUTPUT_TYPES, "output"))) for name in asked])
        found = recipe.unpack(recipe.pack(controller._values()))
        assert list(found) == list(asked)
        assert found["tool_mode"] == 253, "the tool runs, as each joint does"
        controller.body.tcp = from_ur([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
        assert recipe.unpack(recipe.pack(controller._values()))["tcp_offset"] == (0.0, 0.0, 0.2, 0.0, 0.0, 0.0)
    finally:
        controller.close()


def test_the_dashboard_does_what_it_answers() -> None:
    """Answers as the e-Series dashboard manual has them; after `restart safety` the robot is switched off."""
    fixture = FIXTURE
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=fixture)
    ask = controller._dashboard.answer
    try:
        controller._obey("safety_fault", {})
        assert (ask("safetystatus"), ask("robotmode")) == ("Safetystatus: FAULT", "Robotmode: POWER_OFF")
        assert ask("unlock protective stop").startswith("Cannot") and ask("power on") == "Powering on"
        assert ask("safetystatus") == "Safetystatus: FAULT", "no other command ends a fault"
        assert ask("restart safety") == "Restarting safety"
        assert (ask("safetystatus"), ask("robotmode")) == ("Safetystatus: NORMAL", "Robotmode: POWER_OFF")
        assert ask("get operational mode") == "NONE"
        assert ask("set operational mode automatic") == "Operational mode AUTOMATIC is set"
        assert ask("get operational mode") == "AUTOMATIC"
        assert ask("clear operational mode").startswith("No longer controlling the operational mode.")
        assert ask("get operational mode") == "NONE"
    finally:
        controller.close()


def test_the_time_that_this_machine_took_from_it_is_none_that_its_watchdog_counts() -> None:
    """It does not run, and so reads nothing; it used to end the program for what a client had written all the time."""
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=address(), fixture=FIXTURE)
    try:
        controller._set_watchdog(4.0)
        controller._catch_up(0, 500)  # a second
        controller._tick(0)
        assert (controller.stats()["popup"], controller.stats()["robot_time_s"]) == ("", 501 * 0.002)
        for _ in range(124):
            controller._tick(0)
        assert controller.stats()["popup"] == ""
        controller._tick(0)
        assert "watchdog" in controller.stats()["popup"], "a quarter of a second in which it could have been written to"
    finally:
        controller.close()
