"""Numbers of a policy of two robots: whose they are its card says, in ALOHA's order too, and a card that does not is
refused in one line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.policies.cards import card
from support.robots.cells import cell_named
from support.robots.pairs import pair_cell, told_pair

from labctl.clock import SECOND
from labctl.config.policy_card import parse_card
from labctl.devices import ActionChunk, Observation, load
from labctl.drivers.common.robot_tables import Tool
from labctl.drivers.common.sides import Sides
from labctl.drivers.policy import client
from labctl.errors import InputError
from labctl.nodes.playing import Play, chunk_problem, tools_of
from labctl.testing.given import FIXTURE

STATE = ["left.joint_position", "left.gripper", "right.joint_position", "right.gripper"]
asked: list[dict[str, Any]] = []
ROW = np.array([*np.linspace(0.1, 0.7, 7), 1.0, *np.linspace(-0.1, -0.7, 7), 0.0])


def aloha(seen: dict[str, Any]) -> np.ndarray:
    """Left joints, left gripper, right joints, right gripper: four times the same."""
    asked.append(seen)
    return np.tile(ROW, (4, 1))


def counting(seen: dict[str, Any]) -> np.ndarray:
    """50 actions, each of which is its number, on every joint."""
    return np.repeat(np.arange(50.0)[:, None], 16, axis=1)


def reached(seen: dict[str, Any]) -> np.ndarray:
    """Each tool where it is, shifted by a centimetre along x, right first."""
    right, left = (np.array([0.01, 0, 0, 0, 0, 0, 1.0, 0.0]) for _ in range(2))
    return np.tile(np.concatenate([right, left]), (4, 1))


def made(states: list[str] = STATE, robots: list[str] | None = None, **action: Any) -> dict[str, Any]:
    found = card("callable")
    found["input"][0]["state"] = states
    found["action"] |= {"robots": ["left", "right"] if robots is None else robots, **action}
    return found


def loaded(given: dict[str, Any], function: str = "aloha", cell: Any = None) -> Any:
    options = {"card": given, "function": f"{__name__}:{function}"}
    return load("policy_callable", options, cell=cell or pair_cell(), fixture=FIXTURE)


def seen_by_the_pair() -> Observation:
    robot, *_ = told_pair()
    return Observation(0, robot.observe(), "Move.")


def test_an_action_in_alohas_order_is_parted_to_both_arms_and_both_hands() -> None:
    policy, seen = loaded(made()), seen_by_the_pair()
    policy.load()
    chunk = policy.infer(seen)
    assert chunk_problem(chunk, 14, 2, 2) is None
    assert chunk.values[0] == pytest.approx(np.concatenate([ROW[:7], ROW[8:15]]))
    assert chunk.gripper.shape == (4, 2) and chunk.gripper[0] == pytest.approx([0.0, 0.08]), "left closed, right open"
    state = next(iter(asked[-1].values()))
    assert state.shape == (16,) and state[:7] == pytest.approx(seen.arrays["q"][:7], abs=1e-6)
    assert state[8:15] == pytest.approx(seen.arrays["q"][7:], abs=1e-6) and state[7] == state[15] == 0.0


@pytest.mark.parametrize("late_s", [0.0, 0.3, 0.6])
def test_an_answer_for_two_that_comes_late_is_followed_as_one_for_one_robot(late_s: float) -> None:
    """What of its first actions is past by then is made up by those that follow: of 50 at 50 Hz, 25 are executed."""
    given = made(execute=25)
    given["timing"] |= {"rate_hz": 50.0, "starts": "capture"}
    policy = loaded(given, "counting")
    policy.load()
    both = policy.infer(seen_by_the_pair())
    assert both.values.shape == (50, 14) and both.gripper.shape == (50, 2) and chunk_problem(both, 14, 2, 2) is None
    now_ns = round(late_s * SECOND)
    alone = ActionChunk("joint_position", both.values[:, :7], both.gripper[:, 0], both.dt_s, 25, starts="capture")
    one, two = (Play(chunk, 0, now_ns, 1, "e") for chunk in (alone, both))
    assert two.t_ns.tolist() == one.t_ns.tolist() and len(two.t_ns) == min(25, 50 - round(late_s * 50) - 1)
    (message,) = two.targets(now_ns, {})
    assert np.asarray(message.arrays["values"])[0, 0] == pytest.approx(round(late_s * 50) + 1)


def test_of_two_answers_the_shorter_one_rests_until_the_longer_is_over() -> None:
    def answer(execute: int, at: float) -> ActionChunk:
        return ActionChunk("joint_position", at + np.arange(4.0)[:, None], np.zeros(4), 0.1, execute)

    both = Sides(pair_cell()).together([answer(1, 0.0), answer(3, 10.0)])
    assert both.execute == 3 and both.values.tolist() == [[0.0, 10.0], [0.0, 11.0], [0.0, 12.0]]


def test_steps_of_both_tools_count_from_where_each_is_measured_whichever_comes_first() -> None:
    action = {"space": "tcp_delta", "rotation": "quaternion_xyzw", "relative_to": "measured"}
    given = made(["right.tcp_position", "left.tcp_position"], ["right", "left"], **action)
    given["tool"] = {"frame": "tcp"}
    policy, seen = loaded(given, "reached", pair_cell()), seen_by_the_pair()
    policy.load()
    chunk = policy.infer(seen)
    assert chunk.space == "tcp_step" and chunk.values.shape == (4, 14) and chunk_problem(chunk, 14, 2, 2) is None
    play = Play(chunk, 0, 0, 1, "e")
    (message,) = play.targets(0, seen.arrays)
    wanted = np.asarray(message.arrays["values"])[0]
    assert wanted[[0, 7]] == pytest.approx(tools_of(seen.arrays)[[0, 7]] + 0.01)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (made(["joint_position"]), "reads joint_position of which robot? this cell has left and right: say left.joint"),
        (made(robots=[]), 'leads one robot; this cell has left and right: say robots = ["left", "right"] in [action]'),
        (made(robots=["left"]), "leads left; this cell has left and right"),
        (made(robots=["left", "upper"]), "leads left and upper; this cell has left and right"),
    ],
)
def test_a_card_that_does_not_say_whose_its_numbers_are_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        loaded(given)
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("action", "refused"),
    [
        ({"space": "droid_cartesian_velocity"}, True),
        ({"space": "tcp_delta", "rotation": "rotvec", "relative_to": "measured"}, True),
        ({"space": "droid_joint_velocity"}, False),
        ({"space": "joint_delta", "relative_to": "measured"}, False),
    ],
)
def test_steps_of_two_tools_that_are_mounted_otherwise_are_refused(
    monkeypatch: pytest.MonkeyPatch, action: dict[str, Any], *, refused: bool
) -> None:
    """One answer names one point that a step turns about: the second tool would have turned about the first one's."""
    tools = iter([Tool((0.0, 0.0, 0.1034)), Tool((0.0, 0.0, 0.25))])
    monkeypatch.setattr(client, "tool_of", lambda side: next(tools))
    given = made(**action)
    given["timing"]["rate_hz"], given["tool"] = 15.0, {"frame": "flange"}
    if refused:
        with pytest.raises(InputError, match="turn about a point that is not the same at both tools; mount them alike"):
            loaded(given)
    else:
        loaded(given)


def test_a_card_of_two_robots_is_refused_in_a_cell_of_one() -> None:
    with pytest.raises(InputError, match="this cell has one robot; say joint_position"):
        loaded(made(), cell=cell_named("sim_fr3"))
    with pytest.raises(InputError, match="leads left and right, and this cell has one robot; drop robots"):
        loaded(made(["joint_position"]), cell=cell_named("sim_fr3"))


def test_an_answer_of_another_width_is_refused_with_what_was_needed() -> None:
    policy, seen = loaded(made(space="joint_velocity"), "narrow"), seen_by_the_pair()
    policy.load()
    with pytest.raises(Exception, match=r"joint_velocity and a gripper of each robot need \(n, 16\)"):
        policy.infer(seen)


def narrow(seen: dict[str, Any]) -> np.ndarray:
    return np.zeros((4, 8))


def test_a_misspelt_state_of_a_robot_is_refused_when_the_card_is_read() -> None:
    from support.policies.cards import card_toml

    text = card_toml("callable").replace('state = ["joint_position"]', 'state = ["left.joint_postion"]')
    with pytest.raises(InputError, match="did you mean"):
        parse_card(text, "card.toml")
