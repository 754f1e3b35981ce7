"""Driver "policy_roboarena": a policy behind a RoboArena server, which says on connecting what it needs and answers.

May not: follow an answer whose action space the server does not state, or one that is not the card's.

Every question carries an endpoint, a reset is answered by text, and all
actions of an answer are followed: the server chooses how many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labctl.config.cell_schema import Cell, Fixture
from labctl.config.policy_card import Card
from labctl.drivers.policy.client import PolicyClient, card_for
from labctl.drivers.policy.options import WebsocketOptions
from labctl.drivers.policy.websocket import PolicySocket, last_line, refuse_traceback
from labctl.errors import DeviceRefused, in_words
from labctl.plain import count

# What the wire calls an action space -> what a card calls it; the rotation of its cartesian ones is DROID's.
SPACES = {
    "joint_position": "joint_position",
    "joint_velocity": "droid_joint_velocity",
    "cartesian_position": "tcp_pose",
    "cartesian_velocity": "droid_cartesian_velocity",
}
EXTERIOR_LEFT = re.compile(r"^observation/exterior_image_\d+_left$")
RIGHT = re.compile(r"^observation/\w+_right$")
WRIST = "observation/wrist_image_left"
RESET_DONE = "reset successful"


class RoboArenaLink:
    """RoboArena's dialect over a websocket. See `client.Link`."""

    def __init__(self, socket: PolicySocket, card: Card) -> None:
        self._socket = socket
        self._card = card
        self._session: str | None = None
        self._needs_session = False

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        metadata = self._socket.connect(timeout_s)
        problem = misfit(metadata, self._card)
        if problem is not None:
            raise DeviceRefused(problem)
        needs = metadata.get("needs_session_id")
        self._needs_session = not isinstance(needs, np.ndarray) and bool(needs)
        return metadata

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        message = {**observation, "endpoint": "infer"}
        if self._needs_session and self._session is not None:
            message["session_id"] = self._session
        answer = refuse_traceback(self._socket.ask(message, timeout_s))
        if isinstance(answer, np.ndarray):
            return {self._card.action.keys[0]: answer}  # older servers answer with the bare array
        if not isinstance(answer, Mapping):
            raise DeviceRefused(f"the answer is neither a table nor an array but {type(answer).__name__}")
        return answer

    def reset(self, session: str, timeout_s: float) -> None:
        """A new episode. Raises DeviceRefused when the server does not say that it has begun one."""
        self._session = session
        answer = self._socket.ask({"endpoint": "reset", "session_id": session}, timeout_s)
        if not isinstance(answer, str):
            raise DeviceRefused(f"the server answers a reset with {type(answer).__name__} instead of a word")
        if answer.strip() != RESET_DONE:
            if "Traceback" in answer:
                refuse_traceback(answer)
            raise DeviceRefused(f"the server answers a reset with {last_line(answer)!r}")

    def close(self) -> None:
        self._socket.close()


def misfit(needs: Mapping[str, Any], card: Card) -> str | None:
    """Why a card does not give a server what it says it needs, or does not read its answers as it states them."""
    try:
        return _misfit(needs, card)
    except (TypeError, ValueError) as error:  # a table where a word belongs, an array where a number does
        return f"what the server says it needs is not of RoboArena's form ({in_words(error)})"


def _misfit(needs: Mapping[str, Any], card: Card) -> str | None:
    space = needs.get("action_space")
    if space is None:
        return "the server states no action space, as RoboArena's do; for openpi's dialect use policy_openpi"
    action = card.action
    if SPACES.get(space) != action.space:
        meant = SPACES.get(space, "nothing labctl knows")
        return f"the server answers in {space!r}, which is {meant} in a card; this one says {action.space!r}"
    if space == "cartesian_position" and action.rotation != "euler_xyz":
        return f"the server answers with Euler angles (euler_xyz); the card says {action.rotation!r}"
    keys = [entry.key for entry in card.input]
    exterior = sum(EXTERIOR_LEFT.match(key) is not None for key in keys)
    wanted = needs.get("n_external_cameras", exterior)
    if exterior != wanted:
        return f"the server wants {count(wanted, 'exterior camera')}, the card has {exterior}"
    if needs.get("needs_wrist_camera") and WRIST not in keys:
        return f"the server wants a wrist camera; the card has no {WRIST!r}"
    if needs.get("needs_stereo_camera") and not any(RIGHT.match(key) for key in keys):
        return "the server wants stereo pictures; the card has no key that ends in _right"
    return _size_misfit(needs.get("image_resolution"), card)


def _size_misfit(resolution: Sequence[int] | None, card: Card) -> str | None:
    if resolution is None:
        return None
    for entry in card.input:
        if entry.camera is not None:
            size = [entry.height or card.image.height, entry.width or card.image.width]
            if size != list(resolution):
                wants = "x".join(map(str, resolution))
                return f"the server wants pictures of {wants} (height x width); {entry.key!r} is {size[0]}x{size[1]}"
    return None


def build(options: WebsocketOptions, *, cell: Cell, fixture: Fixture) -> PolicyClient:
    """A policy behind a RoboArena server. Raises InputError for a card that does not fit the cell."""
    card, body = card_for("policy_roboarena", options, cell)
    socket = PolicySocket(options.endpoint, options.card.server.api_key_env)
    return PolicyClient(card, RoboArenaLink(socket, card), body)
