"""The simulated operator without a person's pauses: for campaigns in real time that are to be over soon.

May not: do anything that the simulated operator does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from labctl.config.options import NoOptions
from labctl.drivers.sim.operator import SimulatedOperator


class PromptOperator(SimulatedOperator):
    """For whom staging and scoring take no longer than any other key."""

    pauses_s: ClassVar[Mapping[str, float]] = {}


def build(options: NoOptions) -> PromptOperator:
    """The prompt operator."""
    return PromptOperator()
