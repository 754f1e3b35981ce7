"""The report's section on who the human reference is: operators, learning and fatigue, practice kept apart.

May not: estimate (see `labctl.analysis.episodes.operators`), or mix practice into a number of the reference.
"""

from __future__ import annotations

from labctl.analysis.episode_facts import Practice
from labctl.analysis.numerals import MISSING, count, estimate, number
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import Column, Table
from labctl.analysis.supplement_result import PeopleOfCells

ALL = "all"


def section(people: PeopleOfCells | None, practice: Practice | None) -> Section | None:
    """The section, or None where nothing is known of the people. people: of the supplement; practice: of
    `labctl.analysis.episodes.operators`.
    """
    tables = [*_operators(people), *_practice(practice)]
    if not tables:
        return None
    return Section("people", "The human reference, person by person", (), tuple(tables))


def _operators(people: PeopleOfCells | None) -> list[tuple[str, Table]]:
    if not people:
        return []
    rows = tuple(
        (
            one["operator"],
            count(one["episodes"]),
            count(one["sessions"]),
            f"{count(one['moved'])} / {count(one['staged'])}",
            estimate(one["share"], one["moved_ci"], scale=100),
            estimate(one["rate"], one["rate_ci"]),
        )
        for one in people["operators"]
    )
    columns = (
        *(Column("Operator", "text"), Column("Episodes"), Column("Sessions"), Column("Items moved / staged")),
        *(Column("% [95 %]"), Column("Items per hour [95 %]")),
    )
    note = (
        f"Scored episodes of {people['reference']}. A name with + is a session with several operators: the record does "
        "not say who of them drove. Items per hour from go to end; t on the log scale, one episode a unit."
    )
    by_cell = people.get("by_cell", [])
    every = [(ALL, people["learning"], people["fatigue"])]
    every += [(one["cell"], one["learning"], one["fatigue"]) for one in by_cell]
    trends = [("Learning: per further episode of a person", cell, found) for cell, found, _ in every]
    trends += [("Fatigue: per further episode of a session", cell, found) for cell, _, found in every if found]
    slopes = tuple(
        (
            *(name, *((cell,) if by_cell else ())),
            *(estimate(found["value"], found["ci"], digits=2), count(found["episodes"]), count(found["df"])),
        )
        for name, cell, found in trends
    )
    words = (
        "Least squares within person and object (fatigue: and session); a slope above 0 is learning, below 0 fatigue "
        "or wear. The reference is not corrected for either."
    )
    words += "" if people["fatigue"] else " Nobody had two sessions: learning and fatigue cannot be told apart."
    words += " A person is one of a cell: the slope of all is within cells too." if by_cell else ""
    of = (Column("Cell", "text"),) if by_cell else ()
    headings = (Column("What", "text"), *of, Column("Items per hour [95 %]"), Column("Episodes"), Column("df"))
    return [("", Table(columns, rows, note)), ("Learning and fatigue", Table(headings, slopes, words))]


def _practice(practice: Practice | None) -> list[tuple[str, Table]]:
    if not practice or not practice.get("people"):
        return []
    rule = practice["rule"]
    rows = tuple(
        (
            one["person"],
            count(one["episodes"]),
            ", ".join(number(rate, 0) for rate in one["rates"]),
            number(one["rate_at_end"]),
            MISSING if one["plateau"] is None else f"at episode {one['plateau']}",
        )
        for one in practice["people"]
    )
    columns = (
        *(Column("Person", "text"), Column("Practice episodes"), Column("Items per hour, in order", "text")),
        *(Column("Mean of the last"), Column("Plateau", "text")),
    )
    note = (
        "Before the person's first reference episode; in no other number of this report. Plateau, "
        f"{rule.get('stated', '')}: a line through the last {rule['last']} episodes changes by less than "
        f"{number(100 * rule['within'], 0)} % of their mean."
    )
    return [("Practice", Table(columns, rows, note))]
