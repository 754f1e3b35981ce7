"""The report's section on a person of another time.

May not: compare: it prints what was declared, and says what it is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from labctl.analysis.episode_facts import Historical
from labctl.analysis.numerals import estimate, listing
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

TITLE = "A person of another time (historical)"
MARK = "HISTORICAL: "
RATIOS = "HRT against the historical person, as the protocol declared; not tested"
NOTE = (
    "Measured at another time, maybe by other people, in other light and with other items. It is in no pair, no test "
    "and no interval of this campaign, and is none of its arms."
)


def section(found: Historical | None, by_cell: Mapping[str, Historical] | None = None) -> Section | None:
    """The section; None for a campaign that names no such person. by_cell: of a joint one, what each of its parts froze
    and its own arms, none put together with another's.
    """
    each = {cell: one for cell, one in {"": found, **(by_cell or {})}.items() if one}
    tables: list[tuple[str, Table]] = []
    sentences: list[str] = []
    for cell, one in each.items():
        named = f"{cell}: " if cell else ""
        tables.append((cell and f"Cell {cell}", _of_person(one)))
        if one["arms"] is not None:
            tables.append((f"{named}{RATIOS}", _ratios(one)))
        from_ = f"{MARK}{named}{one['source']}; {one['rig']}; {one['dates']}; episodes: {one['episodes']}. {NOTE}"
        sentences += [from_, *_shorter(one)]
    return Section("historical", TITLE, (), tuple(tables), sentences=tuple(sentences)) if each else None


def _of_person(found: Historical) -> Table:
    columns = (Column("Object", "text"), Column("Episodes"), Column("Items moved"), Column("RMST s [95 %]"))
    rows = tuple(
        (one["object"], str(one["episodes"]), str(one["moved"]), estimate(one["rmst"], one["rmst_ci"]))
        for one in found["cells"]
    )
    frozen = f"The rows were frozen at opening, sha256 {found['sha256'][:16]}…; tau {found['tau']:g} s as here."
    return Table(columns, rows, frozen)


def _ratios(found: Historical) -> Table:
    rows = tuple(
        (one["arm"], listing(one["objects"]), estimate(one["hrt"], one["hrt_ci"], scale=100.0))
        for one in found["arms"] or ()
    )
    note = "RMST of the historical person divided by RMST of the arm, mean over the objects that both met, in percent."
    return Table((ARM, Column("Objects", "text"), Column("historical HRT % [95 %]")), rows, note)


def _shorter(found: Historical) -> tuple[str, ...]:
    if found["shorter"] is None:
        return ()
    caution = f"Its episodes had budgets down to {found['shorter']:g} s, below tau ({found['tau']:g} s)"
    return (f"{caution}: its curve is carried flat from there.",)
