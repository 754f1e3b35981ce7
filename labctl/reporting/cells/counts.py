"""What the cells of one campaign counted, put together: trials, episodes in dispute, stops by hand, hours, practice,
and whose they are. Pure.

May not: count anything anew: each cell's are as the report of one campaign has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labctl.analysis.report.lab_facts import ArmStops, Counts, Disputed, Flow, Hours, Line, Stops
from labctl.messages.joint import JointPart
from labctl.reporting.operations_table import Row
from labctl.reporting.times.hours import added, place_of_block

if TYPE_CHECKING:
    from labctl.analysis.episode_facts import Practice, Practised


def own_people(rows: Sequence[Row], joint: JointPart) -> list[Row]:
    """A part's rows with its sessions and operators named with their cell: each counts its sessions from one, and "p01"
    of two labs are two people. Of one lab's cells they are two as well: where a part lies changes no report.
    """
    return [
        {
            **row,
            "session": session_name(str(row["session"]), joint) if row.get("session") else row.get("session"),
            "operator": person_of(str(row["operator"]), joint["cell"]) if row.get("operator") else row.get("operator"),
        }
        for row in rows
    ]


def session_name(session: str, joint: JointPart) -> str:
    """A session of a part as it is called among those of all."""
    return f"{part_name(joint)}: {session}"


def part_name(joint: JointPart) -> str:
    """A part by its cell, a further one of it with its number."""
    return f"{joint['cell']} part {joint['part']}" if joint["part"] > 1 else joint["cell"]


def person_of(named: str, cell: str) -> str:
    """A person of a part as they are called among those of all; several who operated together have "+" between them."""
    return "+".join(f"{cell}: {one}" for one in named.split("+"))


def flow_of(flows: Sequence[Flow]) -> Flow:
    """`Lab.flow` of all cells."""
    voids: Counter[str] = Counter()
    by_arm: dict[str, Counter[str]] = {}
    for flow in flows:
        voids.update(flow["voids"])
        for arm, own in flow["by_arm"].items():
            by_arm.setdefault(arm, Counter()).update(own)
    counts: Counts = {
        "planned": sum(flow["planned"] for flow in flows),
        "run": sum(flow["run"] for flow in flows),
        "scored": sum(flow["scored"] for flow in flows),
        "not_run": sum(flow["not_run"] for flow in flows),
        "voids": dict(voids),
        "voids_before_go": sum(flow["voids_before_go"] for flow in flows),
        "voids_after_go": sum(flow["voids_after_go"] for flow in flows),
        "ended_early": sum(flow["ended_early"] for flow in flows),
    }
    return {**counts, "by_arm": {arm: dict(own) for arm, own in by_arm.items()}}


def hours_of(campaign: str, found: Sequence[tuple[JointPart, Hours]]) -> Hours:
    """`Lab.hours` of all cells: a line of each part's with its cell's name before its own, those of one name added up.
    A cell's line is that of its parts; what all cells took together is a sum of rigs, which may have run at once.
    """
    cells: dict[str, list[Line]] = {}
    blocks: dict[tuple[str, str], list[Line]] = {}
    operators: dict[str, list[Line]] = {}
    for joint, one in found:
        cell = joint["cell"]
        cells.setdefault(cell, []).append(one["total"])
        for line in one["blocks"]:
            blocks.setdefault((cell, line["of"]), []).append(line)
        for line in one["operators"]:
            operators.setdefault(person_of(line["of"], cell), []).append(line)
    names = list(cells)
    in_order = sorted(blocks, key=lambda key: (names.index(key[0]), place_of_block(key[1])))
    return {
        "schema": found[0][1]["schema"],
        "campaign": campaign,
        "total": added("all", [one["total"] for _, one in found]),
        "cells": [added(cell, own) for cell, own in cells.items()],
        "blocks": [added(f"{cell}: {of}", blocks[cell, of]) for cell, of in in_order],
        "operators": [added(of, own) for of, own in operators.items()],
        "what": found[0][1]["what"],
    }


def practice_of(found: Mapping[str, Practice]) -> Practice:
    """`Lab.practice` of all cells, by cell, whose rule is one: nothing of it is added up, since a person's rates are
    those of one rig.
    """
    people: list[Practised] = [
        {**one, "person": person_of(one["person"], cell)} for cell, own in found.items() for one in own["people"]
    ]
    return {"rule": next(iter(found.values()))["rule"], "people": people}


def disputed_of(found: Sequence[Disputed]) -> Disputed:
    """`Lab.disputed` of all cells."""
    by_arm, untold = Counter[str](), Counter[str]()
    for one in found:
        by_arm.update(one["by_arm"])
        untold.update(one.get("untold", {}))
    return {
        "episodes": sum(one["episodes"] for one in found),
        "scored": sum(one["scored"] for one in found),
        "by_arm": dict(by_arm),
        "untold": dict(untold),
        "untimed": sum(one["untimed"] for one in found),
    }


def stops_of(found: Sequence[Stops | None]) -> Stops | None:
    """`Lab.stops` of all cells, whose protocol is one; None where nobody stopped an episode in any."""
    some = [one for one in found if one]
    if not some:
        return None
    of: dict[str, list[ArmStops]] = {}
    for one in some:
        for arm in one["arms"]:
            of.setdefault(arm["arm"], []).append(arm)
    return {
        "counted": some[0]["counted"],
        "arms": [
            {
                "arm": arm,
                "by_cause": _added([one["by_cause"] for one in own]),
                "not_counted": _added([one["not_counted"] for one in own]),
                "void": sum(one["void"] for one in own),
            }
            for arm, own in of.items()
        ],
    }


def _added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    added: Counter[str] = Counter()
    for one in counts:
        added.update(one)
    return dict(sorted(added.items()))
