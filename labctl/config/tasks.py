"""[[task]], [[condition]] and [pools]: what is asked of an arm, how it is judged, and the sparse list of what is tried.

May not: open files, or draw a schedule. `labctl.config.conditions` makes a campaign's conditions of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from labctl.config.cell_schema import AXIS_CODES, refuse_repeats, refuse_unknown
from labctl.config.inputs import Edits, check_edits
from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import Lax, PlainName, Positive, Share, Text, Texts

KEYS = 9  # stages of a task at most: each has a digit at the console
Measure = Literal["items", "success", "stages", "score"]
Sensed = Literal["opened", "grasped", "lifted", "placed", "closed"]
Names = Annotated[tuple[PlainName, ...], Lax]


class Stage(Table):
    """[[task.stages]]: a step of a task, in order. definition: when it counts as reached, in words that two assessors
    read alike; sensed: what of a device's reports, or of the traces, is it.
    """

    name: Text
    points: Positive
    definition: Text
    sensed: Sensed | None = None


class Anchor(Table):
    """[[task.rubric]]: what an episode that is given this score looks like. picture: of one, a PNG or JPEG file,
    relative to the protocol's folder.
    """

    score: Share
    text: Text
    picture: Text | None = None


class Task(Table):
    """[[task]]: measure: items (how many were moved), success (yes or no, and when), stages (the furthest one reached
    in order; the score is points reached / points possible) or score (a number from 0 to 1 by a rubric).
    """

    name: PlainName
    instruction: Text
    objects: Annotated[Names, Field(min_length=1)]
    layout: PlainName | None = None
    measure: Measure = "items"
    items_staged: Annotated[int, Field(ge=1)] = 1
    budget_s: Positive
    stages: Annotated[tuple[Stage, ...], Lax, Field(max_length=KEYS)] = ()
    rubric: Annotated[tuple[Anchor, ...], Lax] = ()
    failure_tags: Texts = ()


class Perturbation(Table):
    """What a condition and a template say alike. base: the condition perturbed; blocks run next to the base's."""

    task: Text
    instruction: Text | None = None
    base: Text | None = None
    axes: Texts = ()
    tags: Texts = ()
    split: Literal["train", "test"] | None = None
    family: Text | None = None
    difficulty: Literal["easy", "medium", "hard"] | None = None
    stress: Text | None = None
    inputs: Edits = ()


class ConditionRow(Perturbation):
    """[[condition]]: one staging of a task."""

    name: PlainName
    object: PlainName | None = None
    layout: PlainName | None = None


class Template(Perturbation):
    """[[template]]: conditions that differ in object and layout alone: each of `objects` (else the task's) in each of
    `layouts` (else the task's). In `name` and `base` {object} and {layout} stand for theirs.
    """

    name: Text
    objects: Names = ()
    layouts: Names = ()


class Pool(Table):
    """[pools.train], [pools.test]: objects, layouts (backgrounds) and wordings of an instruction."""

    objects: Names = ()
    layouts: Names = ()
    instructions: Texts = ()


class Pools(Table):
    """[pools]: what policies may have been trained with, and what none has seen."""

    train: Pool = Pool()
    test: Pool = Pool()


class Preference(Table):
    """[preference]: after one drawn pair of episodes of each block the assessor says which did better, or neither, and
    why. question: as it is asked.
    """

    question: Text = "Which of the two episodes did the task better?"


def expanded(found: Document, index: int, template: Template, tasks: Sequence[Task]) -> list[ConditionRow]:
    """The conditions of a template. Raises InputError for one whose names are none or not distinct."""
    at = ("template", index)
    refuse_unknown(found, (*at, "task"), "task", [template.task], "tasks", [task.name for task in tasks])
    task = next(task for task in tasks if task.name == template.task)
    shared = template.model_dump(exclude={"name", "base", "objects", "layouts"})
    rows: list[ConditionRow] = []
    for name in template.objects or task.objects:
        for layout in template.layouts or (task.layout,):
            made = {key: _filled(getattr(template, key), name, layout) for key in ("name", "base")}
            left = [text for text in made.values() if text is not None and re.search(r"[{}]", text)]
            if left:
                message = f"{left[0]!r} has a brace that is filled by nothing; {{object}} and {{layout}} are"
                raise found.refusal((*at, "name"), f"{message}, the layout where one is given")
            try:
                rows.append(ConditionRow.model_validate({**shared, **made, "object": name, "layout": layout}))
            except ValidationError:
                message = f"{made['name']!r} is no condition's name: no slash, no blank at its ends"
                raise found.refusal((*at, "name"), message) from None
    return rows


def listed_at(at: Location, key: str) -> Location:
    """Where a condition's object or layout stands: a template lists several of them."""
    return (*at, key if at[0] == "condition" else f"{key}s")


def _filled(text: str | None, name: str, layout: str | None) -> str | None:
    return None if text is None else text.replace("{object}", name).replace("{layout}", layout or "{layout}")


def check_tasks(found: Document, tasks: Sequence[Task], tags: Sequence[str]) -> None:
    """Raises InputError at the first task that contradicts itself. tags: [trial] failure_tags, which every task has."""
    refuse_repeats(found, ("task",), [task.name for task in tasks])
    for index, task in enumerate(tasks):
        at = ("task", index)
        refuse_repeats(found, (*at, "objects"), task.objects)
        refuse_repeats(found, (*at, "stages"), [stage.name for stage in task.stages])
        refuse_repeats(found, (*at, "failure_tags"), [*tags, *task.failure_tags])
        for key, measure in (("stages", "stages"), ("rubric", "score")):
            given = bool(getattr(task, key))
            if given and task.measure != measure:
                message = f'task {task.name!r} is measured in {task.measure}; {key} are of measure = "{measure}"'
                raise found.refusal((*at, key), f"{message}, leave them out or change the measure")
            if not given and task.measure == measure:
                raise found.refusal(
                    (*at, "measure"), f'task {task.name!r} has measure = "{measure}" and no [[task.{key}]]; add them'
                )
        scores = [anchor.score for anchor in task.rubric]
        if scores and (scores != sorted(set(scores)) or scores[0] != 0 or scores[-1] != 1):
            listed = ", ".join(f"{score:g}" for score in scores)
            message = f"the rubric of task {task.name!r} anchors {listed}; it must rise from 0 to 1, as in 0, 0.5, 1"
            raise found.refusal((*at, "rubric"), message)


def check_conditions(
    found: Document, placed: Sequence[tuple[Location, ConditionRow]], tasks: Sequence[Task], pools: Pools
) -> None:
    """Raises InputError at the first condition that names what is not there or crosses what may not be crossed. placed:
    with the table that each comes from.
    """
    known = {task.name: task for task in tasks}
    names: set[str] = set()
    for at, row in placed:
        if row.name in names:
            raise found.refusal((*at, "name"), f"{row.name!r} appears twice; every condition needs its own name")
        names.add(row.name)
        refuse_unknown(found, (*at, "task"), "task", [row.task], "tasks", list(known))
        refuse_unknown(found, (*at, "axes"), "axis", row.axes, "axes", AXIS_CODES)
        refuse_repeats(found, (*at, "axes"), row.axes)
        refuse_repeats(found, (*at, "tags"), row.tags)
        check_edits(found, (*at, "inputs"), row.inputs)
        task = known[row.task]
        if row.object is not None:
            refuse_unknown(
                found, listed_at(at, "object"), "object", [row.object], f"task {task.name!r} has", task.objects
            )
        elif len(task.objects) > 1:
            listed = ", ".join(task.objects)
            raise found.refusal(at, f"condition {row.name!r} needs an object; task {task.name!r} has {listed}")
        if row.layout is None and task.layout is None:
            raise found.refusal(at, f"condition {row.name!r} has no layout, nor has task {task.name!r}; give one")
    by_name = {row.name: row for _, row in placed}
    for at, row in placed:
        if row.base is not None:
            _check_base(found, (*at, "base"), row, by_name)
        if row.stress is not None:
            _check_stress(found, (*at, "stress"), row, by_name, known[row.task])
    _check_pools(found, placed, known, pools)


def _check_base(found: Document, at: Location, row: ConditionRow, by_name: Mapping[str, ConditionRow]) -> None:
    refuse_unknown(found, at, "base", [row.base or ""], "conditions", list(by_name))
    chain = [row.name]
    while (above := by_name[chain[-1]].base) is not None and above in by_name:
        if above in chain:
            circle = " -> ".join([*chain[chain.index(above) :], above])
            raise found.refusal(at, f"the bases go in a circle: {circle}; one of them must have no base")
        chain.append(above)
    other = by_name[chain[1]]
    if other.task != row.task:
        message = f"condition {row.name!r} is of task {row.task!r} and its base {other.name!r} of {other.task!r}"
        raise found.refusal(at, f"{message}; a drop is measured within one task")


def _check_stress(
    found: Document, at: Location, row: ConditionRow, by_name: Mapping[str, ConditionRow], task: Task
) -> None:
    """A level of stress stands by itself: on a base without any, with no axis, object or wording changed beside it, and
    either staged in another layout or made by edits of what a policy sees.
    """
    base = by_name[row.base] if row.base is not None else None
    if base is None or row.family is None:
        lacks = "base" if base is None else "family"
        raise found.refusal(
            at, f"condition {row.name!r} has a stress and no {lacks}; a level is of a family, on a base"
        )
    if base.stress is not None or base.inputs:
        what = "is under stress itself" if base.stress is not None else "has inputs of its own"
        raise found.refusal(at, f"stress crossed: the base {base.name!r} of {row.name!r} {what}")
    named = row.object or task.objects[0], base.object or task.objects[0]
    wording = row.instruction or task.instruction, base.instruction or task.instruction
    axes = set(row.axes) ^ set(base.axes)
    layouts = row.layout or task.layout, base.layout or task.layout
    for what, apart in (
        ("axes", axes),
        ("object", named[0] != named[1]),
        ("instruction", wording[0] != wording[1]),
        ("layout", row.inputs and layouts[0] != layouts[1]),
    ):
        if apart:
            message = f"stress crossed: condition {row.name!r} changes its {what} against {base.name!r} as well"
            raise found.refusal(at, f"{message}; each stress is applied by itself")
    same = [one for one in by_name.values() if (one.base, one.family, one.stress) == (row.base, row.family, row.stress)]
    if same[0] is not row:
        raise found.refusal(at, f"level {row.stress!r} of {row.family!r} is that of {same[0].name!r} already")


def _check_pools(
    found: Document, placed: Sequence[tuple[Location, ConditionRow]], tasks: Mapping[str, Task], pools: Pools
) -> None:
    """The pools are disjoint, a train condition uses nothing of the test pool, and a test one something of it."""
    for kind, trained, tested in _kinds(pools):
        both = [name for name in tested if name in trained]
        if both:
            message = f"{both[0]!r} is in pools.train.{kind} too; what was trained with cannot test, keep it in one"
            raise found.refusal(("pools", "test", kind), message)
    for place, row in placed:
        at, task = (*place, "split"), tasks[row.task]
        used = {
            "objects": row.object or task.objects[0],
            "layouts": row.layout or task.layout,
            "instructions": row.instruction or task.instruction,
        }
        new = [kind for kind, _, tested in _kinds(pools) if used[kind] in tested]
        if row.split == "train" and new:
            message = f"condition {row.name!r} is a train one and uses {used[new[0]]!r} of pools.test.{new[0]}"
            raise found.refusal(at, f"{message}; use one of pools.train, or make it a test condition")
        if row.split == "test" and not new:
            message = f"condition {row.name!r} is a test one and uses nothing of [pools.test]"
            raise found.refusal(at, f"{message}; list its object, layout or instruction there")


def _kinds(pools: Pools) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    for kind in Pool.model_fields:
        yield kind, getattr(pools.train, kind), getattr(pools.test, kind)


def root_of(name: str, rows: Mapping[str, ConditionRow]) -> str:
    """The condition at the end of a row's bases, itself where it has none: all with the same one belong together."""
    while (above := rows[name].base) is not None:
        name = above
    return name
