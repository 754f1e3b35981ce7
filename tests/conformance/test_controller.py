"""What every controller does, whichever it is: the contract of labctl.devices.Controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from support.cards import card
from support.gr00t_servers import FakeGr00t
from support.observations import GIVEN
from support.policy_servers import FakeServer

from labctl.devices import Controller, Observation, Pace, load
from labctl.errors import InputError

CONTROLLERS = {
    "sim_person": ("sim_person", {}),
    **{
        f"sim_policy {skill}": ("sim_policy", {"skill": skill})
        for skill in ("swift", "steady", "halting", "clumsy", "slow")
    },
    "faults": ("faults", {"driver": "sim_person", "verb": "warm", "fault": "delay"}),
    "policy_callable": ("policy_callable", {"card": card("callable"), "function": "support.policy_servers:hold"}),
    **{
        f"policy_{dialect}": (f"policy_{dialect}", {"card": card(dialect), "endpoint": f"{wire}://127.0.0.1:1"})
        for dialect, wire in (("openpi", "ws"), ("roboarena", "ws"), ("gr00t", "tcp"))
    },
}


def served(driver: str) -> Any:
    """A server on loopback for a driver that needs one."""
    if driver == "policy_gr00t":
        return FakeGr00t(task=False)
    return FakeServer(dialect=driver.removeprefix("policy_")) if driver != "policy_callable" else nullcontext()


@pytest.fixture(params=list(CONTROLLERS))
def controller(request) -> Iterator[Any]:
    driver, options = CONTROLLERS[request.param]
    with served(driver) if driver.startswith("policy_") else nullcontext() as server:
        if server is not None:
            options = {**options, "endpoint": server.uri}
        made = load(driver, options, **GIVEN)
        made.load()
        yield made
        made.close()


@pytest.fixture
def seen() -> Observation:
    robot = load("sim_fr3", {}, **GIVEN)
    robot.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1, 0)
    return Observation(0, robot.observe(), "Move the items.")


def test_it_is_a_controller_and_says_of_which_kind(controller):
    assert isinstance(controller, Controller)
    assert controller.kind in ("real", "sim", "replay", "faults", "emulated")
    assert controller.load_s >= 0 and controller.warm_s >= 0
    assert isinstance(controller.pace, Pace) and controller.pace.deadline_s <= controller.pace.give_up_s


def test_an_answer_is_a_chunk_of_finite_actions_some_of_which_are_executed(controller, seen):
    controller.reset(1)
    for _ in range(5):
        chunk = controller.infer(seen)
        n = len(chunk.values)
        assert chunk.space in ("tcp_pose", "joint_position")
        assert chunk.gripper.shape == (n,) and 1 <= chunk.execute <= n
        assert np.isfinite(chunk.values).all() and np.isfinite(chunk.gripper).all()
        assert chunk.dt_s > 0 and chunk.delay_s >= 0
        if chunk.space == "tcp_pose":
            assert chunk.values.shape == (n, 7)
            assert np.abs(np.linalg.norm(chunk.values[:, 3:], axis=1) - 1).max() < 1e-9


def test_the_same_seed_gives_the_same_answers_warmed_or_not(controller, seen):
    answers = []
    for warm in (False, True):
        if warm:
            controller.warm(seen)
        controller.reset(9)
        answers.append([controller.infer(seen) for _ in range(4)])
    for one, two in zip(*answers, strict=True):
        assert one.values.tobytes() == two.values.tobytes()
        assert (one.execute, one.done) == (two.execute, two.done)
        assert controller.kind == "real" or one.delay_s == two.delay_s, "a modelled time is one of the answer's"


def test_answering_leaves_the_observation_as_it_was(controller, seen):
    before = {name: value.copy() for name, value in seen.arrays.items()}
    controller.reset(2)
    controller.warm(seen)
    controller.infer(seen)
    assert all((before[name] == value).all() for name, value in seen.arrays.items())


def test_closing_twice_is_no_error(controller):
    controller.close()
    controller.close()


@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_an_unknown_option_is_refused_by_name(name):
    driver, options = CONTROLLERS[name]
    with pytest.raises(InputError, match="haste"):
        load(driver, {**options, "haste": 1}, **GIVEN)
