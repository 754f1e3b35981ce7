"""The conditions of a campaign: what a protocol asks for, out of what its fixture has; and what of both is refused in a
new plan alone.

May not: open files, or know an arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labctl.config.cell_schema import Fixture, FixtureObject, Layout, Tote
from labctl.config.protocol_schema import Protocol, check_against_fixture
from labctl.config.robots import check_length
from labctl.config.tasks import root_of
from labctl.config.toml_text import Document, Location
from labctl.plain import LONGEST_S, Json

NEITHER = "tie"  # as `preferred` of an episodes table has it
BETWEEN = ";"  # tags of an episodes table
WIDEST_M = 0.5  # that any hand opens, as of a policy card
MOST_TRIALS = 100_000  # of a campaign: ten seconds to draw, and fourteen a day for twenty years
STICKS_OUT = 2  # an item may, but not so many times the tote that it lies in


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


def check_new(protocol: Protocol, fixture: Fixture) -> None:
    """What is refused where a plan is read that is not sealed yet; campaigns that have it are read on. Raises
    InputError with file:line.
    """
    check_length(protocol, ("protocol", "name"), protocol.protocol.name)
    if protocol.preference is not None:
        for index, arm in enumerate(protocol.arm):
            if "|" in arm.name or arm.name.strip() == NEITHER:
                why = f"with [preference] a table of episodes names two arms as a|b, and {NEITHER!r} is neither of them"
                raise protocol.refusal(("arm", index, "name"), f"name is {arm.name!r}; {why}: give it another name")
    for table in ("condition", "template"):
        for index, row in enumerate(getattr(protocol, table)):
            _check_tags(protocol, (table, index, "tags"), row.tags)
    for table in ("object", "layout"):
        for index, entry in enumerate(getattr(fixture, table)):
            _check_tags(fixture, (table, index, "tags"), entry.tags)
    _check_totes(fixture)
    _check_sizes(fixture)
    _check_length(protocol)


def _check_length(protocol: Protocol) -> None:
    """No trial is longer than anybody waits, and no campaign longer than anybody draws."""
    given: list[tuple[Location, float]] = [(("trial", "arming_s"), protocol.trial.arming_s)]
    given += [(("task", index, "budget_s"), task.budget_s) for index, task in enumerate(protocol.task)]
    if not protocol.task:
        given.append((("trial", "budget_s_per_item"), protocol.tasks[0].budget_s))
    for at, seconds in given:
        if seconds > LONGEST_S:
            what = "arming" if at[-1] == "arming_s" else "the budget of an episode"
            raise protocol.refusal(at, f"{what} is {seconds:g} s, and at most {LONGEST_S:g} s are planned; shorten it")
    extra = protocol.alone[1] if protocol.alone else 0
    each = protocol.design.blocks_per_condition * len(protocol.arm) + extra
    trials = each * protocol.conditions_count
    if trials > MOST_TRIALS:
        text = f"{protocol.conditions_count} conditions x {each} trials are {trials:.6g}, and at most {MOST_TRIALS}"
        raise protocol.refusal(("design", "blocks_per_condition"), f"{text} are planned; plan fewer blocks of each")


def _check_tags(document: Document, at: Location, tags: Sequence[str]) -> None:
    for tag in tags:
        if BETWEEN in tag:
            text = f"tag {tag!r} has a {BETWEEN!r}, which stands between tags in a table of episodes"
            raise document.refusal(at, f"{text}; write them apart, or take it out")


def _check_totes(fixture: Fixture) -> None:
    """Of two totes that share floor an item's place is the first one's. One that lies whole within a later one is the
    finer name, and told from it.
    """
    for index, tote in enumerate(fixture.tote):
        for before in fixture.tote[:index]:
            own, first = _floor(tote), _floor(before)
            shared = all(a < d - 1e-9 and c < b - 1e-9 for (a, b), (c, d) in zip(own, first, strict=True))
            within = all(a <= c and d <= b for (a, b), (c, d) in zip(own, first, strict=True))
            if shared and (not within or own == first):
                ends = " and ".join(f"{axis} = {a:g} to {b:g} m" for axis, (a, b) in zip("xy", own, strict=True))
                other = " and ".join(f"{axis} = {a:g} to {b:g} m" for axis, (a, b) in zip("xy", first, strict=True))
                text = f"tote {tote.name!r} is at {ends}, and {before.name!r} at {other}: nothing tells them apart"
                raise fixture.refusal(("tote", index, "centre_m"), f"{text}; correct centre_m or size_m of one")


def _floor(tote: Tote) -> list[tuple[float, float]]:
    return [(at - size / 2, at + size / 2) for at, size in zip(tote.centre_m[:2], tote.size_m[:2], strict=True)]


def _check_sizes(fixture: Fixture) -> None:
    widest = max(math.hypot(*tote.size_m) for tote in fixture.tote)
    for index, thing in enumerate(fixture.object):
        longest = max(thing.item_size_m)
        if longest > STICKS_OUT * widest:
            text = f"item_size_m of {thing.name!r} is {longest:g} m long, and no tote more than {widest:.2g} m across"
            raise fixture.refusal(("object", index, "item_size_m"), f"{text}; give it in m")
        if thing.grasp_width_m > min(longest, WIDEST_M):
            text = f"grasp_width_m of {thing.name!r} is {thing.grasp_width_m:g} m, wider than"
            what = f"the item, {longest:g} m long" if longest < WIDEST_M else f"any hand opens, {WIDEST_M:g} m"
            raise fixture.refusal(("object", index, "grasp_width_m"), f"{text} {what}; give it in m")
    for index, tote in enumerate(fixture.tote):
        if tote.lid is not None and tote.lid.grasp_width_m > WIDEST_M:
            text = (
                f"grasp_width_m of the lid of {tote.name!r} is {tote.lid.grasp_width_m:g} m, wider than any hand opens"
            )
            raise fixture.refusal(("tote", index, "lid", "grasp_width_m"), f"{text}, {WIDEST_M:g} m; give it in m")
