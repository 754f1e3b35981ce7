"""What every controller does, whichever it is: the contract of `labctl.devices.Controller` as tests.

May not: know a driver. A test class names its controller by a fixture `controller` that gives a loaded one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from labctl.devices import Controller, Observation, Pace, load
from labctl.testing.given import SIMULATED


class ControllerConformance:
    """What every controller does, a policy or a program."""

    @pytest.fixture
    def controller(self) -> Iterator[Controller]:
        """A controller after `load`, closed afterwards. Each class gives its own."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture `controller` that yields a loaded one")

    @pytest.fixture
    def seen(self) -> Observation:
        """What it sees: of the simulated FR3 with three towels, unless a class gives another."""
        robot = load("sim_fr3", {}, **SIMULATED)
        robot.stage({"object": "towels", "layout": "layout-1", "items": 3}, 1, 0)
        return Observation(0, robot.observe(), "Move the items.")

    def test_it_is_a_controller_and_says_of_which_kind(self, controller: Controller) -> None:
        assert isinstance(controller, Controller)
        assert controller.kind in ("real", "sim", "replay", "faults", "emulated")
        assert controller.load_s >= 0 and controller.warm_s >= 0
        pace = controller.pace
        assert isinstance(pace, Pace) and 0 < pace.give_up_s < math.inf
        assert pace.deadline_s == math.inf or pace.deadline_s <= pace.give_up_s

    def test_an_answer_is_a_chunk_of_finite_actions_some_of_which_are_executed(
        self, controller: Controller, seen: Observation
    ) -> None:
        controller.reset(1)
        for _ in range(5):
            chunk = controller.infer(seen)
            n, hand, dof = len(chunk.values), len(seen.arrays["gripper"]), len(seen.arrays["q"])
            tools = sum(name == "tcp" or name.endswith(".tcp") for name in seen.arrays)  # of two robots two
            widths = {"tcp_pose": 7 * tools, "tcp_step": 7 * tools, "tcp_velocity": 6 * tools}
            widths |= dict.fromkeys(("joint_position", "joint_velocity", "joint_step"), dof)
            assert chunk.space in widths, f"labctl.devices.ActionChunk has {', '.join(widths)}"
            assert chunk.values.shape == (n, widths[chunk.space]), f"{chunk.space} of a robot of {dof} axes"
            assert chunk.gripper.shape == ((n,) if hand == 1 else (n, hand)), f"of a hand of {hand} axes"
            assert 1 <= chunk.execute <= n
            assert np.isfinite(chunk.values).all() and np.isfinite(chunk.gripper).all()
            assert chunk.dt_s > 0 and chunk.delay_s >= 0
            if chunk.space in ("tcp_pose", "tcp_step"):
                turns = chunk.values.reshape(-1, 7)[:, 3:]
                assert np.abs(np.linalg.norm(turns, axis=1) - 1).max() < 1e-9, "quaternions are of length 1"

    def test_the_same_seed_gives_the_same_answers_warmed_or_not(
        self, controller: Controller, seen: Observation
    ) -> None:
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

    def test_answering_leaves_the_observation_as_it_was(self, controller: Controller, seen: Observation) -> None:
        before = {name: value.copy() for name, value in seen.arrays.items()}
        controller.reset(2)
        controller.warm(seen)
        controller.infer(seen)
        assert all((before[name] == value).all() for name, value in seen.arrays.items())

    def test_closing_twice_is_no_error(self, controller: Controller) -> None:
        controller.close()
        controller.close()
