"""Switches of the instruction in mid-episode: what a protocol may script. Pure.

May not: send anything; which switch a controller took is in its episode (`labctl.core.record`).

A switch belongs to the protocol, not to an arm: every episode of every arm has the same ones at the same seconds after
go, so that blocks stay paired and nothing about a switch tells arms apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.config.cell_schema import refuse_repeats, refuse_unknown
from labctl.config.toml_text import Document, Table
from labctl.config.values import Positive, Text


class Switch(Table):
    """[[switch]]: `at_s` seconds after go the instruction of every episode becomes `instruction`. ignored: the tag by
    which an assessor says that what was moved after it is not what it asks for.
    """

    name: Text
    at_s: Positive
    instruction: Text
    ignored: Text | None = None


def check_switches(
    document: Document, switches: Sequence[Switch], instruction: str, budget_s: float, tags: Sequence[str]
) -> None:
    """Each has its own name, comes after the one before and within the budget, and changes what stood before it; what
    says that it was ignored is one of `tags`, those that an assessor may tick.

    instruction: that of go; budget_s: of an episode. Raises InputError at the line of the first that does not.
    """
    refuse_repeats(document, ("switch",), [switch.name for switch in switches])
    since_s, standing = 0.0, instruction
    for index, switch in enumerate(switches):
        if switch.at_s >= budget_s:
            text = f"at_s is {switch.at_s:g}, an episode is over after {budget_s:g} s; allowed: more than 0 and less"
            raise document.refusal(("switch", index, "at_s"), f"{text} than {budget_s:g}, or raise the budget")
        if switch.at_s <= since_s:
            text = f"at_s is {switch.at_s:g}, not after the switch before it ({since_s:g} s)"
            raise document.refusal(("switch", index, "at_s"), f"{text}; list switches in order, each at its own time")
        if switch.instruction == standing:
            text = "this instruction stands already; a switch changes it, write another one or drop the switch"
            raise document.refusal(("switch", index, "instruction"), text)
        if switch.ignored is not None:
            at = ("switch", index, "ignored")
            refuse_unknown(document, at, "tag", [switch.ignored], "trial.failure_tags", tags)
        since_s, standing = switch.at_s, switch.instruction
