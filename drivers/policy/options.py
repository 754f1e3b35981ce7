"""Options of policies: the card, and where the policy is."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from labctl.config.options import Options
from labctl.config.policy_card import Card


class PolicyOptions(Options):
    """Base of a policy's options."""

    card: Card = Field(
        description="the policy card, a file relative to the protocol's folder",
        json_schema_extra={"allowed": "a policy card of the arm's protocol"},
    )


def _is_address(given: str, schemes: tuple[str, ...], *, port_needed: bool, like: str) -> str:
    try:
        parts = urlsplit(given)
        good = parts.scheme in schemes and bool(parts.hostname)
        good = good and (bool(parts.port) if port_needed else parts.port != 0)
    except ValueError:  # a port that is no number, a bracket too many
        good = False
    if not good:
        raise ValueError(f"is {given!r}; {like}")
    return given


def _is_websocket(given: str) -> str:
    like = "a websocket server's is like ws://127.0.0.1:8000"
    return _is_address(given, ("ws", "wss"), port_needed=False, like=like)


def _is_tcp(given: str) -> str:
    return _is_address(given, ("tcp",), port_needed=True, like="a GR00T server's is like tcp://127.0.0.1:5555")


def _is_function(given: str) -> str:
    module, colon, attribute = given.partition(":")
    if not (colon and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise ValueError(f"is {given!r}; write it as package.module:name")
    return given


class WebsocketOptions(PolicyOptions):
    """A policy behind a websocket: openpi's or RoboArena's dialect."""

    endpoint: Annotated[str, AfterValidator(_is_websocket)] = Field(
        description="where the server is",
        json_schema_extra={"allowed": "the server's address, like ws://127.0.0.1:8000"},
    )


class Gr00tOptions(PolicyOptions):
    """A policy behind a GR00T server."""

    endpoint: Annotated[str, AfterValidator(_is_tcp)] = Field(
        description="where the server is",
        json_schema_extra={"allowed": "the server's address, like tcp://127.0.0.1:5555"},
    )


class CallableOptions(PolicyOptions):
    """A policy that is a Python function."""

    function: Annotated[str, AfterValidator(_is_function)] = Field(
        description="what is called: a module beside lab.toml, installed or on PYTHONPATH",
        json_schema_extra={"allowed": "a function, named like my_lab.policies:act"},
    )
