"""The report's section on what people recorded beside outcomes: guesses of the arm, failure tags, witnesses.

May not: estimate (see `agreement`), or say more of an index than its interval does.
"""

from __future__ import annotations

from labctl.analysis.numerals import MISSING, count, estimate, number, percent
from labctl.analysis.report.judged_facts import Judgements
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

WITHOUT_A_DIFFERENCE = (
    "Where no two judgements differ the interval of kappa begins at Clopper and Pearson’s bound, since its own error "
    "would be 0, and a few episodes are no certainty."
)


def section(found: Judgements | None) -> Section | None:
    """The section, None where nothing of it was recorded. found: of `labctl.reporting.judgements`."""
    if not found:
        return None
    tables = []
    if found["guesses"]:
        columns = (ARM, *map(Column, ("Guesses", "Right", "Could not tell", "Bang’s index [95 %]")))
        rows = tuple(
            (g["arm"], count(g["said"]), count(g["right"]), count(g["unknown"]),
             estimate(g["index"], g["interval"], digits=2))
            for g in found["guesses"]
        )  # fmt: skip
        note = (
            "Asked after each episode, before unblinding; everybody’s last word counts. 0 is guessing at random, 1 is "
            "knowing, below 0 is taking it for another; a wrong guess of k arms takes away 1 / (k − 1). (Bang, Ni and "
            "Davis 2004.)"
        )
        tables.append(("Could people tell the arm?", Table(columns, rows, note)))
    if found["tags"]:
        names = list(found["tags"][0]["by_tag"])
        columns = (ARM, Column("Episodes"), *(Column(name.replace("_", " ").capitalize()) for name in names))
        rows = tuple(
            (t["arm"], count(t["episodes"]), *(_share(t["by_tag"][name], t["episodes"]) for name in names))
            for t in found["tags"]
        )
        note = "In how many of its scored episodes the assessor ticked the tag, and their share."
        tables.append(("Failure tags", Table(columns, rows, note)))
    if found["witnesses"]:
        labels = ("Episodes", "Same count %", "Kappa [95 %]", "Weighted kappa")
        columns = (Column("Items moved by", "text"), *map(Column, labels))
        rows = tuple(
            (w["witness"], count(w["n"]), percent(w["same"]), estimate(w["kappa"], w["interval"], digits=2),
             number(w["weighted"], 2))
            for w in found["witnesses"]
        )  # fmt: skip
        note = (
            "Each witness’s count of items moved in an episode against the assessor’s outcome. Kappa is agreement "
            "beyond chance (Cohen 1960), weighted by squared differences in the last column; none where both said the "
            f"same of every episode. {WITHOUT_A_DIFFERENCE}"
        )
        tables.append(("Do the witnesses agree?", Table(columns, rows, note)))
    if found["second"]:
        labels = ("Judged by", "Episodes", "Agree %", "Agreement [95 %]", "Disagreements", "Gone over since")
        columns = (Column("Task", "text"), *map(Column, labels))
        rows = tuple(
            (s["task"] or "all", s["measure"], count(s["n"]), percent(s["same"]),
             estimate(s["agreement"], s["interval"], digits=2), count(s["disagreements"]), count(s["adjudicated"]))
            for s in found["second"]
        )  # fmt: skip
        note = (
            "A second assessor judged these episodes from their videos alone, without what was scored. Agreement is "
            "kappa with quadratic weights (Cohen 1968), of scores by a rubric ICC(2,1) (Shrout and Fleiss 1979; such "
            "scores disagree from 0.1 on); none where nothing varies, and no interval where one of the two "
            f"said the same of all. {WITHOUT_A_DIFFERENCE}"
        )
        tables.append(("Does a second assessor agree?", Table(columns, rows, note)))
    if found["models"]:
        labels = ("Judged by", "Episodes", "Could not tell", "Agree %", "Agreement [95 %]")
        columns = (Column("Model", "text"), Column("Task", "text"), *map(Column, labels))
        rows = tuple(
            (m["model"], m["task"] or "all", m["measure"], count(m["n"]), count(m["unknown"]), percent(m["same"]),
             estimate(m["agreement"], m["interval"], digits=2))
            for m in found["models"]
        )  # fmt: skip
        note = (
            "A vision-language model was sent pictures of each episode and the measure’s own words; what it could not "
            "tell is left out of the rest. It is a witness: no outcome changed by it. Agreement with the outcome that "
            "stood then, as of a second assessor."
        )
        tables.append(("Does the model agree?", Table(columns, rows, note)))
    return Section("judgements", "What people recorded", (), tuple(tables)) if tables else None


def _share(n: int, of: int) -> str:
    return f"{n} ({percent(n / of)} %)" if of else MISSING
