"""The conditions of a campaign: what a protocol asks for, out of what its fixture has.

May not: open files, or know an arm.
"""

from __future__ import annotations

from dataclasses import dataclass

from labctl.config.cell_schema import Fixture, FixtureObject, Layout
from labctl.config.protocol_schema import Protocol, check_against_fixture
from labctl.config.tasks import root_of
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Condition:
    """Object x initial layout, with perturbation axes and tags, or a task with its instruction and layout. `id` is
    "<object>/<layout>", or the condition's own name.

    task and what follows: None in the short form. set: the condition whose blocks those of this one run beside;
    inputs: edits of what a policy sees (`inputs.Edit.entry`).
    """

    id: str
    object: str
    layout: str
    axes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    task: str | None = None
    instruction: str | None = None
    base: str | None = None
    set: str | None = None
    split: str | None = None
    family: str | None = None
    difficulty: str | None = None
    stress: str | None = None
    inputs: tuple[dict[str, Json], ...] | None = None


def protocol_conditions(protocol: Protocol, fixture: Fixture) -> tuple[Condition, ...]:
    """Every condition of the design: objects outermost, or as the [[condition]] tables list them. Raises InputError for
    a name the fixture lacks.
    """
    check_against_fixture(protocol, fixture, "")
    objects = {entry.name: entry for entry in fixture.object}
    layouts = {entry.name: entry for entry in fixture.layout}
    if not protocol.task:
        return tuple(
            Condition(f"{name}/{layout}", name, layout, *_of_fixture(objects[name], layouts[layout]))
            for name in protocol.design.objects or ()
            for layout in protocol.design.layouts or ()
        )
    tasks, rows = {task.name: task for task in protocol.task}, {row.name: row for row in protocol.conditions}
    found: list[Condition] = []
    for row in rows.values():
        task = tasks[row.task]
        name, layout = row.object or task.objects[0], row.layout or task.layout
        assert layout is not None  # `check_conditions` has seen to it
        axes, tags = _of_fixture(objects[name], layouts[layout])
        found.append(
            Condition(
                id=row.name,
                object=name,
                layout=layout,
                axes=tuple(dict.fromkeys((*axes, *row.axes))),
                tags=tuple(dict.fromkeys((*tags, *row.tags))),
                task=row.task,
                instruction=row.instruction or task.instruction,
                base=row.base,
                set=root_of(row.name, rows),
                split=row.split,
                family=row.family,
                difficulty=row.difficulty,
                stress=row.stress,
                inputs=tuple(one.entry() for one in row.inputs) or None,
            )
        )
    return tuple(found)


def sets_of(conditions: tuple[Condition, ...]) -> list[list[str]]:
    """The ids of conditions whose blocks belong together, in order; a condition of the short form is alone."""
    found: dict[str, list[str]] = {}
    for condition in conditions:
        found.setdefault(condition.set or condition.id, []).append(condition.id)
    return list(found.values())


def _of_fixture(thing: FixtureObject, layout: Layout) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The axes and tags that the fixture gives an object in a layout."""
    return (*thing.axes, *layout.axes), (*thing.tags, *layout.tags)
