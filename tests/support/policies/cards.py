"""Small policy cards for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labctl.config.policy_card import parse_card

CARD = """
[policy]
name = "test-policy"
dialect = "{dialect}"
[[input]]
key = "{prefix}joint_position"
state = ["joint_position"]
{inputs}
[gripper]
action = "0_open_1_closed"
open_m = 0.08
binarise_at = 0.5
[action]
space = "joint_position"
execute = {execute}
{action}
[timing]
rate_hz = {rate}
deadline_s = {deadline}
late = "{late}"
give_up_s = {give_up}
{timing}
[server]
ready_s = {ready}
{server}
"""
CAMERA = """
[[input]]
key = "{key}"
camera = "{camera}"
width = 64
height = 48
resize = "pad"
"""


def card_toml(dialect: str = "openpi", **given: Any) -> str:
    """The text of a card that asks for joint positions; `given` fills its blanks (see CARD)."""
    blanks: dict[str, Any] = {"prefix": "observation/", "inputs": "", "action": "", "timing": "", "server": ""}
    blanks |= {"execute": 4, "rate": 20.0, "deadline": 2.0, "late": "hold", "give_up": 4.0, "ready": 120.0}
    if dialect == "gr00t":
        blanks |= {"prefix": "state.", "action": 'keys = ["joint_position", "gripper_position"]'}
    if dialect == "roboarena":
        blanks["execute"] = 0
    return CARD.format(dialect=dialect, **{**blanks, **given})


def card(dialect: str = "openpi", **given: Any) -> dict[str, Any]:
    """The same card as a driver gets it."""
    return parse_card(card_toml(dialect, **given), "card.toml").model_dump(mode="json")


def policy_arm(lab: Path, name: str, uri: str, dialect: str = "openpi", **given: Any) -> dict[str, Any]:
    """An arm with a card of its own in the lab's protocols."""
    cards = lab / "protocols" / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    (cards / f"{name}.toml").write_text(card_toml(dialect, **given), "utf-8")
    options = {"card": f"cards/{name}.toml", "endpoint": uri}
    return {"name": name, "kind": "policy", "controller": f"policy_{dialect}", "options": options}
