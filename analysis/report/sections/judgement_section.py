"""The report's section on what people recorded beside outcomes: guesses of the arm, failure tags, witnesses.

May not: estimate (see `agreement`), or say more of an index than its interval does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from labctl.analysis.numerals import MISSING, count, estimate, number, percent
from labctl.analysis.report.judged_facts import Guesses, Judgements, ModelWitness, SecondAssessor, Tags, Witness
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

WITHOUT_A_DIFFERENCE = (
    "Where no two judgements differ the interval of kappa begins at Clopper and Pearson’s bound, since its own error "
    "would be 0, and a few episodes are no certainty."
)


ALL = "all"
OF_CELLS = (
    "All: the judgements of all cells as one list. Where cells differ in how much is done there, kappa and the "
    "intraclass correlation of all count that difference as agreement too: read them cell by cell."
)
Entry = TypeVar("Entry")
Cells = Sequence[tuple[str, Judgements]]


def section(found: Judgements | None) -> Section | None:
    """The section, None where nothing of it was recorded. found: of `labctl.reporting.judgements`."""
    if not found:
        return None
    by_cell = found.get("by_cell", {})
    cells: Cells = [(ALL, found), *(by_cell.items() if len(by_cell) > 1 else ())]
    made = (_guesses, _tags, _witnesses, _second, _models)
    tables = tuple(table for make in made if (table := make(cells)) is not None)
    compared = found["witnesses"] or found["second"] or found["models"]
    note = OF_CELLS if len(cells) > 1 and compared else ""
    return Section("judgements", "What people recorded", (), tables, note) if tables else None


def _table(
    cells: Cells,
    entries: Callable[[Judgements], Sequence[Entry]],
    row: Callable[[Entry], Sequence[str]],
    columns: Sequence[Column],
    note: str,
) -> Table | None:
    """A row for each entry, in a report of several cells of all and of each; None without any. row: as columns have
    it, without the cell, which stands behind the first.
    """
    several = len(cells) > 1
    rows = tuple(
        (first, *((cell,) if several else ()), *rest)
        for cell, found in cells
        for first, *rest in map(row, entries(found))
    )
    first, *rest = columns
    of = (Column("Cell", "text"),) if several else ()
    return Table((first, *of, *rest), rows, note) if rows else None


def _guesses(cells: Cells) -> tuple[str, Table] | None:
    columns = (ARM, *map(Column, ("Guesses", "Right", "Could not tell", "Bang’s index [95 %]")))
    note = (
        "Asked after each episode, before unblinding; everybody’s last word counts. 0 is guessing at random, 1 is "
        "knowing, below 0 is taking it for another; a wrong guess of k arms takes away 1 / (k − 1). (Bang, Ni and "
        "Davis 2004.)"
    )

    def row(g: Guesses) -> Sequence[str]:
        index = estimate(g["index"], g["interval"], digits=2)
        return g["arm"], count(g["said"]), count(g["right"]), count(g["unknown"]), index

    table = _table(cells, lambda found: found["guesses"], row, columns, note)
    return table and ("Could people tell the arm?", table)


def _tags(cells: Cells) -> tuple[str, Table] | None:
    names = sorted({name for _, found in cells for entry in found["tags"] for name in entry["by_tag"]})
    columns = (ARM, Column("Episodes"), *(Column(name.replace("_", " ").capitalize()) for name in names))
    note = "In how many of its scored episodes the assessor ticked the tag, and their share."

    def row(t: Tags) -> Sequence[str]:
        return (
            *(t["arm"], count(t["episodes"])),
            *(_share(t["by_tag"].get(name, 0), t["episodes"]) for name in names),
        )

    table = _table(cells, lambda found: found["tags"], row, columns, note)
    return table and ("Failure tags", table)


def _witnesses(cells: Cells) -> tuple[str, Table] | None:
    labels = ("Episodes", "Same count %", "Kappa [95 %]", "Weighted kappa")
    columns = (Column("Items moved by", "text"), *map(Column, labels))
    note = (
        "Each witness’s count of items moved in an episode against the assessor’s outcome. Kappa is agreement "
        "beyond chance (Cohen 1960), weighted by squared differences in the last column; none where both said the "
        f"same of every episode. {WITHOUT_A_DIFFERENCE}"
    )

    def row(w: Witness) -> Sequence[str]:
        kappa = estimate(w["kappa"], w["interval"], digits=2)
        return w["witness"], count(w["n"]), percent(w["same"]), kappa, number(w["weighted"], 2)

    table = _table(cells, lambda found: found["witnesses"], row, columns, note)
    return table and ("Do the witnesses agree?", table)


def _second(cells: Cells) -> tuple[str, Table] | None:
    labels = ("Judged by", "Episodes", "Agree %", "Agreement [95 %]", "Disagreements", "Gone over since")
    columns = (Column("Task", "text"), *map(Column, labels))
    note = (
        "A second assessor judged these episodes from their videos alone, without what was scored. Agreement is "
        "kappa with quadratic weights (Cohen 1968), of scores by a rubric ICC(2,1) (Shrout and Fleiss 1979; such "
        "scores disagree from 0.1 on); none where nothing varies, and no interval where one of the two "
        f"said the same of all. {WITHOUT_A_DIFFERENCE}"
    )

    def row(s: SecondAssessor) -> Sequence[str]:
        agreement = estimate(s["agreement"], s["interval"], digits=2)
        of = s["task"] or "all", s["measure"], count(s["n"]), percent(s["same"]), agreement
        return *of, count(s["disagreements"]), count(s["adjudicated"])

    table = _table(cells, lambda found: found["second"], row, columns, note)
    return table and ("Does a second assessor agree?", table)


def _models(cells: Cells) -> tuple[str, Table] | None:
    labels = ("Judged by", "Episodes", "Could not tell", "Agree %", "Agreement [95 %]")
    columns = (Column("Model", "text"), Column("Task", "text"), *map(Column, labels))
    note = (
        "A vision-language model was sent pictures of each episode and the measure’s own words; what it could not "
        "tell is left out of the rest. It is a witness: no outcome changed by it. Agreement with the outcome that "
        "stood then, as of a second assessor."
    )

    def row(m: ModelWitness) -> Sequence[str]:
        agreement = estimate(m["agreement"], m["interval"], digits=2)
        of = m["model"], m["task"] or "all", m["measure"], count(m["n"]), count(m["unknown"])
        return *of, percent(m["same"]), agreement

    table = _table(cells, lambda found: found["models"], row, columns, note)
    return table and ("Does the model agree?", table)


def _share(n: int, of: int) -> str:
    return f"{n} ({percent(n / of)} %)" if of else MISSING
