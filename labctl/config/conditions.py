"""The conditions of a campaign: what a protocol asks for, out of what its fixture has.

May not: open files, or know an arm.
"""

from __future__ import annotations

from dataclasses import dataclass

from labctl.config.cell_schema import Fixture
from labctl.config.protocol_schema import Protocol, check_against_fixture


@dataclass(frozen=True, slots=True)
class Condition:
    """Object x initial layout, with perturbation axes and tags. `id` is "<object>/<layout>"."""

    id: str
    object: str
    layout: str
    axes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def protocol_conditions(protocol: Protocol, fixture: Fixture) -> tuple[Condition, ...]:
    """Every condition of the design, objects outermost. Raises InputError for a name the fixture lacks."""
    check_against_fixture(protocol, fixture, "")
    objects = {entry.name: entry for entry in fixture.object}
    layouts = {entry.name: entry for entry in fixture.layout}
    return tuple(
        Condition(
            f"{name}/{layout}",
            name,
            layout,
            (*objects[name].axes, *layouts[layout].axes),
            (*objects[name].tags, *layouts[layout].tags),
        )
        for name in protocol.design.objects
        for layout in protocol.design.layouts
    )
