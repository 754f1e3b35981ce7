"""What every controller does, whichever it is: the contract of labctl.devices.Controller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from support.policies.cards import card
from support.policies.gr00t_servers import FakeGr00t
from support.policies.policy_servers import FakeServer

from labctl.devices import Controller, load
from labctl.testing.controller import ControllerConformance
from labctl.testing.given import SIMULATED
from labctl.testing.options import Driver, OptionsConformance

CONTROLLERS = {
    "sim_person": ("sim_person", {}),
    **{
        f"sim_policy {skill}": ("sim_policy", {"skill": skill})
        for skill in ("swift", "steady", "halting", "clumsy", "slow")
    },
    "faults": ("faults", {"driver": "sim_person", "verb": "warm", "fault": "delay"}),
    "policy_callable": (
        "policy_callable",
        {"card": card("callable"), "function": "support.policies.policy_servers:hold"},
    ),
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


class TestEveryController(ControllerConformance):
    @pytest.fixture(params=list(CONTROLLERS))
    def controller(self, request: pytest.FixtureRequest) -> Iterator[Controller]:
        driver, options = CONTROLLERS[request.param]
        with served(driver) if driver.startswith("policy_") else nullcontext() as server:
            if server is not None:
                options = {**options, "endpoint": server.uri}
            made = load(driver, options, **SIMULATED)
            made.load()
            yield made
            made.close()


class TestOptions(OptionsConformance):
    @pytest.fixture(params=list(CONTROLLERS))
    def driver(self, request: pytest.FixtureRequest) -> Driver:
        return *CONTROLLERS[request.param], SIMULATED
