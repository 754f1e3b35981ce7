"""The simulated operator without a person's pauses: for campaigns in real time that are to be over soon.

May not: do anything that the simulated operator does not.
"""

from __future__ import annotations

from labctl.drivers.sim.operator import REACTION_S, SimulatedOperator

from labctl.config.options import NoOptions


def build(options: NoOptions) -> SimulatedOperator:
    """A simulated operator for whom staging and scoring take no longer than any other key."""
    return SimulatedOperator(staging_s=REACTION_S, scoring_s=REACTION_S)
