"""Where arms are weak: tasks by arms, axes and categories, tags, train against test, stress and difficulty.

May not: sum anything with published results, or call a drop or a break real that its p and interval do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis import numerals
from labctl.analysis.episodes_report import stress_section
from labctl.analysis.episodes_report.arms_section import Looks
from labctl.analysis.episodes_report.claims import level, ordered
from labctl.analysis.episodes_report.drawing import Dot, cells, dots
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.result import AxisDrop, EpisodesResult
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

MOST_TAGS = 12


def sections(result: EpisodesResult, looks: Looks) -> list[Section]:
    """Each where the table has its columns."""
    made = [
        _tasks(result),
        _axes(result, looks),
        stress_section.section(result, looks),
        _retention(result, looks),
        _tags(result, looks),
    ]
    return [section for section in made if section is not None]


def _tasks(result: EpisodesResult) -> Section | None:
    found = result["tasks"]
    if found is None:
        return None
    order, by = ordered(result), {(cell["task"], cell["arm"]): cell for cell in found["cells"]}
    tasks = list(dict.fromkeys(cell["task"] for cell in found["cells"]))
    grid = [[by[task, arm]["mean"] for arm in order] for task in tasks]
    figure = cells("tasks", f"{found['by'].capitalize()}s by arms", tasks, order, grid)
    each = level(result)
    rows = tuple(
        (task, *(numerals.estimate(by[task, a]["mean"], by[task, a]["ci"], digits=2) for a in order)) for task in tasks
    )
    head = (Column(found["by"].capitalize(), "text"), *(Column(arm) for arm in order))
    tables = [("", Table(head, rows, f"Mean {result['measure']} [{each} %]; single intervals, not adjusted."))]
    return Section(
        "tasks",
        f"{found['by'].capitalize()}s by arms",
        (figure,),
        tuple(tables),
        "",
        tuple(words.tasks(result)),
        wide=True,
    )


def _axes(result: EpisodesResult, looks: Looks) -> Section | None:
    if not result["axes"]:
        return None
    each, figures, tables = level(result), [], []
    of_axes = [drop for drop in result["axes"] if drop["axis"]]
    of_categories = [drop for drop in result["axes"] if not drop["axis"]]
    for name, title, drops in (("axes", "By axis", of_axes), ("categories", "By category", of_categories)):
        shown = [
            Dot(f"{drop['axis'] or drop['category']} · {drop['arm']}", drop["drop"], drop["ci"], looks[drop["arm"]])
            for drop in _by_axis(drops)
        ]
        axis = f"drop of the mean {result['measure']} against its base [{each} %, all {name} of an arm]"
        figures.append(dots(name, title, shown, axis, zero=0.0))
        tables.append((title, _drops(drops, each)))
    if result["compositions"]:
        rows = tuple(words.compositions(result))
        columns = (
            Column("Axes together", "text"), ARM, Column("Drop together"), Column("Single drops added up"),
            Column(f"Beyond [{each} %]"), Column("p"), Column("Sets"),
        )  # fmt: skip
        tables.append(("Several axes at once", Table(columns, rows, "Not adjusted. Above 0: more than one by one.")))
    sentences = tuple(_sentence(arm, of_axes) for arm in dict.fromkeys(drop["arm"] for drop in of_axes))
    note = (
        "Base less perturbed in the same set of blocks; right of 0 is worse with the axis. Intervals and p are "
        "adjusted over the axes (or categories) of an arm. An interval that holds 0 is no finding that an axis costs "
        "nothing. Nothing here is summed with published tables."
    )
    return Section(
        "axes", "What a perturbation costs", tuple(figures), tuple(tables), note, sentences, wide=True, opened=True
    )


def _by_axis(drops: Sequence[AxisDrop]) -> list[AxisDrop]:
    names = list(dict.fromkeys(drop["axis"] or drop["category"] for drop in drops))
    return sorted(drops, key=lambda drop: (names.index(drop["axis"] or drop["category"]), drop["arm"]))


def _drops(drops: Sequence[AxisDrop], each: str) -> Table:
    rows = tuple(
        (
            drop["axis"] or "all", drop["category"], drop["arm"], numerals.number(drop["base"], 3),
            numerals.number(drop["perturbed"], 3), numerals.estimate(drop["drop"], drop["ci"], digits=3),
            numerals.p_value(drop["p"], drop["p_error"]), str(drop["pairs"]),
        )
        for drop in _by_axis(drops)
    )  # fmt: skip
    columns = (
        Column("Axis", "text"), Column("Category", "text"), ARM, Column("Base"), Column("Perturbed"),
        Column(f"Drop [{each} %, adjusted]"), Column("p (Holm)"), Column("Sets"),
    )  # fmt: skip
    return Table(columns, rows, "Sets: those that hold both. A dash for an interval: so few sets exclude nothing.")


def _sentence(arm: str, drops: Sequence[AxisDrop]) -> str:
    """Which axes cost an arm something: those whose adjusted interval excludes no drop."""
    own = [drop for drop in drops if drop["arm"] == arm]
    clear = [drop for drop in own if drop["ci"] is not None and drop["ci"][0] > 0]
    gained = [drop for drop in own if drop["ci"] is not None and drop["ci"][1] < 0]
    parts = [f"{drop['axis']} by {numerals.estimate(drop['drop'], drop['ci'], digits=3)}" for drop in clear]
    better = [
        f"{drop['axis']} by {numerals.estimate(-drop['drop'], [-drop['ci'][1], -drop['ci'][0]], digits=3)}"
        for drop in gained
        if drop["ci"]
    ]
    rest = [drop["axis"] for drop in own if drop not in clear and drop not in gained]
    text = f"{arm} drops with {numerals.listing(parts)}" if parts else f"{arm}: no axis was shown to lower it"
    text += f"; it rises with {numerals.listing(better)}" if better else ""
    return f"{text}; not resolved: {', '.join(rest)}." if rest else f"{text}."


def _retention(result: EpisodesResult, looks: Looks) -> Section | None:
    found = [row for row in result["retention"] if row["train"] is not None and row["test"] is not None]
    if not found:
        return None
    each = level(result)
    shown = [Dot(row["arm"], row["retention"], row["ci"], looks[row["arm"]]) for row in found]
    figure = dots("retention", "Retention", shown, f"test / train, with its {each} % interval", zero=1.0)
    rows = tuple(
        (
            row["arm"], numerals.number(row["train"], 3), numerals.number(row["test"], 3),
            numerals.estimate(row["retention"], row["ci"], digits=3),
        )
        for row in found
    )  # fmt: skip
    columns = (ARM, Column("Train"), Column("Test"), Column(f"Retention, test / train [{each} %]"))
    note = (
        "1 is nothing lost. Intervals by Fieller, of each arm by itself; where the training score is not clear of 0 "
        "there is none. Test tasks may also be harder by themselves: an arm’s retention is read beside that of others."
    )
    return Section(
        "retention", "Retention on the test split", (figure,), (("", Table(columns, rows)),), note, wide=True
    )


def _tags(result: EpisodesResult, looks: Looks) -> Section | None:
    found = [row for row in result["tags"] if row["effect"] is not None]
    if not result["tags"]:
        return None
    each = level(result)
    names = list(dict.fromkeys(row["tag"] for row in found))[:MOST_TAGS]
    shown = [Dot(f"{r['tag']} · {r['arm']}", r["effect"], r["ci"], looks[r["arm"]]) for r in found if r["tag"] in names]
    axis = f"mean {result['measure']} at tasks with the tag less without, with its {each} % interval"
    figures = (dots("tags", "Tags", shown, axis, zero=0.0),) if shown else ()
    rows = tuple(
        (
            r["tag"], r["arm"], f"{r['tasks_with']} / {r['tasks_without']}",
            numerals.number(r["with"], 3), numerals.number(r["without"], 3),
            numerals.estimate(r["effect"], r["ci"], digits=3), numerals.p_value(r["p"], r["p_error"]),
            numerals.p_value(r["smallest_p"], None),
            "; ".join(filter(None, (r["within"] and f"within {r['within']}", r["words"]))),
        )
        for r in result["tags"]
    )  # fmt: skip
    columns = (
        Column("Tag", "text"), ARM, Column("Tasks with / without"), Column("Mean with"), Column("Mean without"),
        Column(f"Effect [{each} %]"), Column("p"), Column("Smallest p possible"), Column("Said", "text"),
    )  # fmt: skip
    note = (
        "By permuting a tag over tasks: with few tasks no p can be small, so the smallest possible stands beside each. "
        "Tasks differ in more than a tag. Nothing is adjusted over tags or arms."
    )
    return Section("tags", "Tags", figures, (("", Table(columns, rows)),), note, wide=True)
