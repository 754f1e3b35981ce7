"""An emulated cell's robot is the driver of the real cell, built by the same function; nothing stands in for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from support.robots.cells import FIXTURE, cell_named, changed
from support.robots.emulators import address, leave_out_without_client

from labctl.checks import doctor
from labctl.checks.doctor import check_scene
from labctl.config.cell_schema import Fixture
from labctl.devices import load
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.control_link import ControlLink
from labctl.drivers.sim.control_port import ControlServer
from labctl.drivers.sim.emulated import EmulatedCell
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.errors import DeviceLost, DeviceRefused, InputError

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
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0, FIXTURE)  # type: ignore[arg-type]
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
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0, FIXTURE)  # type: ignore[arg-type]
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
    made = EmulatedCell(inner, SimpleNamespace(ask=ask), 100.0, FIXTURE)  # type: ignore[arg-type]
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


@pytest.fixture
def emulator() -> Iterator[Callable[[Fixture], str]]:
    """The control port of an emulator that has a fixture: its address."""
    servers = list[ControlServer]()

    def serve(fixture: Fixture) -> str:
        host, plant = address(), SimulatedPlant(FR3, fixture, 0.001, now_ns=0)
        servers.append(ControlServer(host, SimpleNamespace(name="fr3", faults={}, plant=plant)))  # type: ignore[arg-type]
        return host

    yield serve
    for server in servers:
        server.close()


def moved(fixture: Fixture) -> Fixture:
    left, right = fixture.tote
    return fixture.model_copy(update={"tote": (left.model_copy(update={"centre_m": (0.6, 0.35, 0.0)}), right)})


def renamed(fixture: Fixture) -> Fixture:
    first, *rest = fixture.object
    return fixture.model_copy(update={"object": (first.model_copy(update={"name": "sponges"}), *rest)})


def told_otherwise(fixture: Fixture) -> Fixture:
    """Other words for people, another layout beside: the scene of each condition is the same."""
    layouts = tuple(one.model_copy(update={"instructions": "Fill it."}) for one in fixture.layout)
    more = layouts[0].model_copy(update={"name": "layout-9"})
    return fixture.model_copy(update={"layout": (*layouts, more)})


@pytest.mark.parametrize(
    ("other", "apart"), [(moved, "tote 'left'"), (renamed, "object 'sponges'"), (told_otherwise, "")]
)
def test_an_emulator_whose_scene_is_not_the_protocols_is_told_before_opening_and_never_staged(
    emulator: Callable[[Fixture], str], other: Callable[[Fixture], Fixture], apart: str
) -> None:
    """Its items lay elsewhere than the sealed fixture says, and its target was another tote: nothing said so."""
    ours, theirs = (FIXTURE, told_otherwise(FIXTURE)) if not apart else (other(FIXTURE), FIXTURE)
    host, verbs = emulator(theirs), dict.fromkeys(("to_joints", "to_pose", "follow", "status", "about", "recover"))
    cell = changed(cell_named("emulated_fr3"), {"robot": {"options": {"driver_options": {"host": host}}}})
    found = [(check.level, check.text) for check in check_scene(cell, ours)]
    inner = SimpleNamespace(dof=7, joint_names=(), control_hz=100.0, streams=(), **verbs)
    inner.connect, inner.stage, inner.close = lambda now_ns: None, lambda *_: None, lambda: None
    inner.staged = lambda: False
    robot = EmulatedCell(inner, ControlLink(host), 100.0, ours)
    robot.connect(0)
    try:
        if not apart:
            assert not found
            robot.stage({}, 1, 0)
            return
        with pytest.raises(DeviceRefused) as refused:
            robot.stage({}, 1, 0)
    finally:
        robot.close()
    remedy = f"end it, and start it with that of the protocol, 'two-totes': labctl emulate fr3 --host {host} --fixture"
    assert str(refused.value) == f"the emulator on {host} has another fixture ({apart}); {remedy} FILE"
    assert found == [("fail", str(refused.value))]


@pytest.mark.parametrize("name", ["emulated_fr3", "emulated_ur5", "emulated_ros2"])
def test_of_an_emulator_that_does_not_answer_the_scene_is_not_asked(name: str) -> None:
    leave_out_without_client(name)
    cell = changed(cell_named(name), {"robot": {"options": {"driver_options": {"host": address()}}}})
    assert not check_scene(cell, FIXTURE)


def test_a_robot_is_closed_whatever_its_emulator_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[str]()

    def other_scene() -> str:
        raise DeviceLost("no emulator answers")

    robot = SimpleNamespace(other_scene=other_scene, close=lambda: closed.append("closed"))
    monkeypatch.setattr(doctor, "load", lambda *_, **__: robot)
    assert not check_scene(cell_named("emulated_fr3"), FIXTURE) and closed == ["closed"]


def test_a_robot_that_does_not_load_with_the_protocols_fixture_is_a_failed_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`labctl doctor` loads drivers with a fixture of its own: of this one nobody said anything before the run."""

    def refuse(*_: object, fixture: Fixture, **__: object) -> SimpleNamespace:
        if fixture is FIXTURE:
            raise InputError(f"this driver knows no fixture {fixture.fixture.name!r}")
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(doctor, "load", refuse)
    (check,) = check_scene(cell_named("emulated_fr3"), FIXTURE)
    assert (check.name, check.level) == ("scene", "fail")
    assert check.text == "not looked at, the robot does not load: this driver knows no fixture 'two-totes'"


def test_a_robot_that_loads_with_no_fixture_is_said_once_by_the_check_of_the_robot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`labctl doctor CELL --protocol PROTOCOL` said it twice, as of the robot and as of the scene."""

    def refuse(*_: object, **__: object) -> None:
        raise InputError("franky is not installed")

    monkeypatch.setattr(doctor, "load", refuse)
    assert check_scene(cell_named("emulated_fr3"), FIXTURE) == []
