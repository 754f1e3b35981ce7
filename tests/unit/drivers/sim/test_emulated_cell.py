"""An emulated cell's robot is the driver of the real cell, built by the same function; nothing stands in for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.robots.cells import FIXTURE, cell_named
from support.robots.emulators import leave_out_without_client

from labctl.devices import load
from labctl.drivers.sim.emulated import EmulatedCell
from labctl.errors import DeviceLost

PAIRS = [("emulated_fr3", "fr3_droid_cell"), ("emulated_ur5e", "ur5e_cell")]


def robot_of(name: str) -> Any:
    cell = cell_named(name)
    return load(cell.robot.driver, cell.robot.options, cell=cell, fixture=FIXTURE)


@pytest.mark.parametrize(("emulated", "real"), PAIRS)
def test_an_emulated_cell_wraps_the_driver_of_the_real_one(emulated: str, real: str):
    leave_out_without_client(emulated)
    outer, arm = robot_of(emulated), robot_of(real)
    inner = outer._inner
    assert type(inner) is type(arm) and type(inner._link) is type(arm._link)
    assert type(inner._link).__module__ in ("labctl.drivers.franka.robot", "labctl.drivers.ur.robot")
    for verb in ("follow", "recover", "status"):
        assert getattr(outer, verb) == getattr(inner, verb), "handed on as it is"


def test_a_fault_in_the_scene_s_thread_is_told_and_nobody_waits_for_the_scene() -> None:
    def ask(request: object) -> dict[str, Any]:
        raise ZeroDivisionError("in labctl")

    verbs = dict.fromkeys(("to_joints", "to_pose", "follow", "status", "about", "stop", "recover", "staged"))
    inner = SimpleNamespace(dof=7, joint_names=(), control_hz=100.0, streams=(), **verbs)
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0)  # type: ignore[arg-type]
    made._watch()
    with pytest.raises(DeviceLost, match="ZeroDivisionError: in labctl"):
        made.staged()


def test_a_scene_that_is_asked_for_while_the_one_before_is_set_is_set_too() -> None:
    """The robot was taken for staged with the scene before last."""
    asked, verbs = list[dict[str, Any]](), dict.fromkeys(("to_joints", "to_pose", "follow", "status", "about", "stop"))

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        if request["do"] == "stage" and request["seed"] == 1:
            made.stage({}, 2, 0)
        return {"items": [], "events": [], "scene": {}, "t_ns": 0}

    inner = SimpleNamespace(dof=7, joint_names=(), control_hz=100.0, streams=(), recover=None, **verbs)
    inner.staged, inner.stage = lambda: True, lambda *_: None
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0)  # type: ignore[arg-type]
    made.stage({}, 1, 0)
    made._stage_if_home()
    assert not made.staged()
    made._stage_if_home()
    assert made.staged()
    assert [request["seed"] for request in asked if request["do"] == "stage"] == [1, 2]


def test_a_stop_while_the_robot_goes_home_takes_the_scene_back_too() -> None:
    """A cell that was stopped on its way home waited on for the robot to come there, and never came back."""
    asked, seen = list[dict[str, Any]](), list[bool]()

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request)
        return {"items": [], "events": [], "scene": {}, "t_ns": 0}

    verbs = dict.fromkeys(("to_joints", "to_pose", "follow", "status", "about", "recover"))
    inner = SimpleNamespace(dof=7, joint_names=(), control_hz=100.0, streams=(), **verbs)
    inner.staged, inner.stage, inner.stop = lambda: True, lambda *_: None, lambda: seen.append(made.staged())
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0)  # type: ignore[arg-type]
    made.stage({}, 1, 0)
    made.stop()
    assert seen == [False], "not taken for staged while it is being stopped"
    made._stage_if_home()
    assert not asked
    inner.stop = lambda: made.stage({}, 2, 0)
    made.stop()
    made._stage_if_home()
    assert [request["seed"] for request in asked if request["do"] == "stage"] == [2], (
        "what was asked for after it stays"
    )
