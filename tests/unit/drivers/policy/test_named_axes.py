"""Actions whose card names each number: split into arm and hand as the robot has them, refused where it has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.policies.cards import card
from support.robots.cells import cell_named
from support.runs.axes import cell_of
from support.runs.campaigns import HUMAN, make_campaign

from labctl.axes import Axis, hand_of
from labctl.config.policy_card import Card
from labctl.devices import Observation, load
from labctl.drivers.common.simulated_axes import ON_A_BASE, ON_A_RAIL, WITH_A_HAND
from labctl.drivers.policy import actions as table
from labctl.drivers.policy.inputs import read
from labctl.errors import InputError
from labctl.nodes.playing import chunk_problem
from labctl.testing.given import FIXTURE

ROBOTS = {"sim_rail": ON_A_RAIL, "sim_hand": WITH_A_HAND, "sim_base": ON_A_BASE}


def card_of(axes: tuple[Axis, ...], **units: str) -> dict[str, Any]:
    """A card whose actions are these axes, in their units or in others."""
    made = card("callable")
    named = [{"name": axis.name, "unit": units.get(axis.name, axis.unit)} for axis in axes]
    made["action"] |= {"space": "axes", "axis": named, "rotation": None, "relative_to": None}
    return made


def loaded(driver: str, made: dict[str, Any]) -> Any:
    given = {"card": made, "function": "math:floor"}
    return load("policy_callable", given, cell=cell_named(driver), fixture=FIXTURE)


@pytest.mark.parametrize("driver", list(ROBOTS))
def test_numbers_go_to_the_axes_that_the_card_names_as_they_are(driver: str) -> None:
    axes = ROBOTS[driver]
    made, hand = Card.model_validate_json(json.dumps(card_of(axes))), len(hand_of(axes))
    dof = len(axes) - hand
    rows = table.answer_rows({"actions": np.arange(3.0 * len(axes)).reshape(3, -1)}, made.action, dof)
    chunk = table.to_chunk(rows, made, {"q": np.zeros(dof)})
    assert chunk.space == "joint_position" and chunk_problem(chunk, dof, hand) is None
    together = np.column_stack([chunk.values, chunk.gripper])
    assert together.tolist() == rows.tolist()
    loaded(driver, card_of(axes)).close()


@pytest.mark.parametrize("driver", list(ROBOTS))
def test_the_state_axes_is_every_axis_in_its_unit_in_the_order_of_an_action(driver: str) -> None:
    """As a training record has them, which names "observation.state" so."""
    axes = ROBOTS[driver]
    made = card_of(axes)
    made["input"][0] |= {"state": ["axes"], "dtype": "float64"}
    loaded(driver, made).close()
    hand = len(hand_of(axes))
    seen = {"q": np.linspace(-0.4, 0.3, len(axes) - hand), "gripper": np.linspace(0.2, 0.9, hand)}
    question = read(Card.model_validate_json(json.dumps(made)), Observation(0, seen))
    assert next(iter(question.values())).tolist() == [*seen["q"], *seen["gripper"]]


def test_a_state_of_one_opening_is_refused_where_the_hand_is_none() -> None:
    """A vacuum of 1 read as metres is a hand that is wide open."""
    made = card_of(ON_A_RAIL)
    made["input"][0]["state"] = ["joint_position", "gripper"]
    with pytest.raises(InputError, match=r"reads the state gripper, one opening; the hand of sim_rail has vacuum"):
        loaded("sim_rail", made)
    made = card_of(ON_A_BASE)
    made["input"][0]["state"] = ["joint_position", "gripper"]
    loaded("sim_base", made).close()


def test_the_state_axes_is_refused_where_the_robot_declares_none() -> None:
    made = card("callable")
    made["input"][0]["state"] = ["axes"]
    with pytest.raises(InputError, match="reads the state axes, and sim_fr3 declares none; use joint_position and gri"):
        loaded("sim_fr3", made)


def test_a_card_of_joints_leaves_open_which_numbers_are_speeds_and_one_of_the_tool_lets_the_base_rest() -> None:
    made = card("callable")
    made["action"] |= {"space": "joint_position", "rotation": None, "relative_to": None}
    with pytest.raises(
        InputError, match="joint_position does not say which numbers are speeds, and sim_base has a base"
    ):
        loaded("sim_base", made)
    of_tool = {"space": "tcp_pose", "rotation": "quaternion_xyzw", "frame": "base"}
    made["action"] |= of_tool
    loaded("sim_base", made).close()


def test_another_unit_order_or_space_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="axis 'rail' of sim_rail is in m, the policy card has it in mm"):
        loaded("sim_rail", card_of(ON_A_RAIL, rail="mm"))
    with pytest.raises(InputError, match="name them as rail, fr3_joint1"):
        loaded("sim_rail", card_of(ON_A_RAIL[::-1]))
    with pytest.raises(InputError, match="sim_fr3 declares none; use joint_position and a gripper"):
        loaded("sim_fr3", card_of(ON_A_RAIL))
    with pytest.raises(InputError, match=r"the hand of sim_rail has vacuum \[1\]: say space = \"axes\""):
        loaded("sim_rail", card("callable"))


def test_a_campaign_with_another_unit_is_not_opened(tmp_path: Path) -> None:
    from support.policies.cards import card_toml

    axes = "".join(f'[[action.axis]]\nname = "{axis.name}"\nunit = "mm"\n' for axis in ON_A_RAIL)
    text = card_toml("callable").replace('space = "joint_position"', 'space = "axes"') + axes
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "card.toml").write_text(text, "utf-8")
    options = {"card": "card.toml", "function": "math:floor"}
    arm = {"name": "a", "kind": "policy", "controller": "policy_callable", "options": options}
    with pytest.raises(InputError) as error:
        make_campaign(tmp_path, [HUMAN, arm], cell=cell_of("sim_rail"))
    said = str(error.value)
    assert "axis 'rail' of sim_rail is in m, the policy card has it in mm" in said and "\n" not in said
    assert "p.toml:" in said
