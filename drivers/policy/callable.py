"""Driver "policy_callable": a policy that is a Python function, called in the controller's own process.

May not: interrupt it (a call that does not end takes its process with it, when the question is given up), or let an
error of it be anything but the end of an episode.

The function gets one dict of arrays and returns its actions: an array
(n, values + gripper), or a dict that has the card's `keys`. A class is made into an object once, without arguments, and
the object called; a `reset` it has is called when an episode begins, and
a table `about` it has is what it says of itself. The module lies beside lab.toml, is installed, or on PYTHONPATH.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from labctl.config.cell_schema import Cell, Fixture
from labctl.config.policy_card import Card
from labctl.drivers.policy.client import PolicyClient, card_for
from labctl.drivers.policy.options import CallableOptions
from labctl.errors import DeviceRefused, InputError


class CallableLink:
    """A function in this process. See `client.Link`; its times are kept by whoever asks."""

    def __init__(self, name: str, card: Card) -> None:
        module, _, attribute = name.partition(":")
        self.module, self._attribute, self._name = module, attribute, name
        self._key = card.action.keys[0]
        self._function: Any = None
        if not self._is_there():
            text = "put it beside lab.toml, install it beside labctl, or put its folder on PYTHONPATH"
            raise InputError(f"function {name!r}: there is no module {module!r} here; {text}")

    def _is_there(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False
        except Exception as error:  # its package's own, which is run for this
            text = f"the package of {self.module!r} cannot be imported ({type(error).__name__}: {error})"
            raise InputError(f"function {self._name!r}: {text}") from error

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        found = getattr(self._guarded(importlib.import_module, self.module), self._attribute, None)
        if not callable(found):
            raise DeviceRefused(f"module {self.module!r} has no function {self._attribute!r}")
        self._function = self._guarded(found) if inspect.isclass(found) else found
        about = getattr(self._function, "about", None)
        return about if isinstance(about, Mapping) else {}

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        answer = self._guarded(self._function, dict(observation))
        return answer if isinstance(answer, Mapping) else {self._key: answer}

    def reset(self, session: str, timeout_s: float) -> None:
        reset = getattr(self._function, "reset", None)
        if callable(reset):
            self._guarded(reset)

    def close(self) -> None:
        """Nothing to let go of: the process ends with the episode."""

    def _guarded(self, call: Any, *given: Any) -> Any:
        try:
            return call(*given)
        except Exception as error:
            sys.stderr.write(traceback.format_exc())
            text = str(error).splitlines()[0][:200] if str(error) else ""
            raise DeviceRefused(f"{self._name} failed: {type(error).__name__}: {text}") from None


def build(options: CallableOptions, *, cell: Cell, fixture: Fixture) -> PolicyClient:
    """A policy that is a function. Raises InputError for one that is not there, or a card that does not fit."""
    card, body = card_for("policy_callable", options, cell)
    return PolicyClient(card, CallableLink(options.function, card), body)
