"""Driver "support.policies.dying_policy:build": a simulated policy that dies while it loads; its `words` say why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.devices import Controller, load
from labctl.errors import DeviceLost


def build(options: Mapping[str, Any], **given: Any) -> Controller:
    made = load("sim_policy", {"skill": "swift"}, **given)

    def die() -> None:
        raise DeviceLost(options["words"])

    made.load = die
    return made
