"""Driver "policy_openpi": a policy behind openpi's websocket server, or anything that speaks its dialect.

May not: reset a server (openpi's takes a reset for an observation and fails), or guess what its numbers mean: the card
says it.

Strict question and answer; the server keeps nothing between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.policy.client import PolicyClient, card_for
from labctl.drivers.policy.options import WebsocketOptions
from labctl.drivers.policy.websocket import PolicySocket, refuse_traceback
from labctl.errors import DeviceRefused


class OpenpiLink:
    """openpi's dialect over a websocket. See `client.Link`."""

    def __init__(self, socket: PolicySocket) -> None:
        self._socket = socket

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        metadata = self._socket.connect(timeout_s)
        if "action_space" in metadata:
            text = "which wants another dialect: use policy_roboarena and a card for it"
            raise DeviceRefused(f"the server states an action space, so it is a RoboArena server, {text}")
        return metadata

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        answer = refuse_traceback(self._socket.ask(observation, timeout_s))
        if not isinstance(answer, Mapping):
            raise DeviceRefused(f"the answer is no table but {type(answer).__name__}")
        return answer

    def reset(self, session: str, timeout_s: float) -> None:
        """Nothing: the dialect has no reset."""

    def close(self) -> None:
        self._socket.close()


def build(options: WebsocketOptions, *, cell: Cell, fixture: Fixture) -> PolicyClient:
    """A policy behind an openpi server. Raises InputError for a card that does not fit the cell."""
    card, body = card_for("policy_openpi", options, cell)
    socket = PolicySocket(options.endpoint, options.card.server.api_key_env)
    return PolicyClient(card, OpenpiLink(socket), body)
