"""What the cells of one campaign counted, put together: episodes in dispute, stops by hand, and whose episodes they
are. Pure.

May not: count anything anew: each cell's are as the report of one campaign has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from labctl.analysis.report.lab_facts import ArmStops, Disputed, Stops
from labctl.messages.joint import JointPart
from labctl.reporting.operations_table import Row


def own_people(rows: Sequence[Row], joint: JointPart) -> list[Row]:
    """A part's rows with its sessions and operators named with their cell: each counts its sessions from one, and "p01"
    of two labs are two people. Of one lab's cells they are two as well: where a part lies changes no report.
    """
    return [
        {
            **row,
            "session": session_name(str(row["session"]), joint) if row.get("session") else row.get("session"),
            "operator": _people(str(row["operator"]), joint["cell"]) if row.get("operator") else row.get("operator"),
        }
        for row in rows
    ]


def session_name(session: str, joint: JointPart) -> str:
    """A session of a part as it is called among those of all."""
    part = f" part {joint['part']}" if joint["part"] > 1 else ""
    return f"{joint['cell']}{part}: {session}"


def _people(named: str, cell: str) -> str:
    """named: one person, or several who operated together, with "+" between them."""
    return "+".join(f"{cell}: {one}" for one in named.split("+"))


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
