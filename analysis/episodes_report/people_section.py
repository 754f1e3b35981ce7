"""What people and places say: preference, the order of running, sites and who judged.

May not: correct a difference for any of these; it shows whether they matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis import numerals
from labctl.analysis.episodes_report.arms_section import Looks
from labctl.analysis.episodes_report.claims import level
from labctl.analysis.episodes_report.drawing import Dot, Line, dots, levels
from labctl.analysis.episodes_table import words
from labctl.analysis.episodes_table.result import AtLevel, EpisodesResult, Factor
from labctl.analysis.report.figures import MUTED, Figure, Look
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import ARM, Column, Table

_PLAIN = Look("#0072B2", "", "o")
_UNCLEAR = Look(MUTED, "", "o")


def sections(result: EpisodesResult, looks: Looks) -> list[Section]:
    """Preference, order and factors, each where the table has its columns."""
    made = [
        _preference(result, looks),
        _order(result),
        *(_factor(name, f, result) for name, f in result["factors"].items() if f["levels"] > 1),
    ]
    return [section for section in made if section is not None]


def _preference(result: EpisodesResult, looks: Looks) -> Section | None:
    found, shown = result["preference"], words.preference(result)
    if found is None or shown is None:
        return None
    table = Table((ARM, Column(shown[0].headings[1].capitalize())), tuple(shown[0].rows))
    drawn = [Dot(s["arm"], s["strength"], s["ci"], looks[s["arm"]]) for s in found["davidson"]]
    axis = f"strength, all adding up to 1, with its {level(result)} % interval"
    known = any(dot.value is not None for dot in drawn)
    figure = dots("preference", "Strength by preference", drawn, axis, limits=(0, _beyond(drawn))) if known else None
    note = (
        "Bradley–Terry–Davidson: the odds that an arm is preferred over another are the ratio of their strengths, with "
        "ties and an effect of which ran first; intervals by drawing whole blocks. A preference is one person’s view "
        "of two episodes, beside the score and not part of it. A dash: the comparisons leave a strength without bound."
    )
    figures = () if figure is None else (figure,)
    return Section("preference", "Preference", figures, (("", table),), note, tuple(shown[1]), wide=True)


def _beyond(drawn: list[Dot]) -> float:
    return 1.05 * max(end for dot in drawn for end in (dot.value or 0.0, *(dot.ci or ())))


def _order(result: EpisodesResult) -> Section | None:
    order = result["order"]
    if not order["places"] and order["trend"] is None:
        return None
    each = level(result)
    figures: list[Figure] = []
    if order["places"]:
        line = Line(_PLAIN, order["places"], order["places_ci"])
        places = [str(number) for number in range(1, len(order["places"]) + 1)]
        axis = f"mean {result['measure']} [{each} %]"
        figures.append(levels("places", "By place within a block", {"all arms": line}, places, axis))
    rows = tuple((arm, numerals.signed(effect)) for arm, effect in order["after"].items())
    table = Table((ARM, Column("Next episode higher by")), rows)
    tables = (("The episode after this arm", table),) if rows else ()
    note = (
        "Means over all arms by place; intervals of each mean. The test compares places within blocks. Where a "
        "schedule drew the order, the p of carry-over is exact; nothing is corrected for it."
    )
    return Section("order", "Order of running", tuple(figures), tables, note, tuple(words.of_order(result)), wide=True)


def _factor(name: str, found: Factor, result: EpisodesResult) -> Section:
    """A factor's spread, with each pair at each level."""
    sentences = tuple(words.of_factor(name, found))
    if not found["pairs"] or found["tau2"] is None:
        return Section(name, name.capitalize() + "s", (), (), "", sentences)
    ahead = {(p["a"], p["b"]): [p["low"], p["high"]] for p in found["prediction"]}
    shown, rows = [], []
    for pair in found["pairs"]:
        known = [at["mean"] for at in pair["levels"]]
        without = [at["without"] for at in pair["levels"] if at["without"] is not None]
        clear = pair["ci"] is not None and not pair["ci"][0] <= 0 <= pair["ci"][1]
        label = f"{pair['a']} less {pair['b']}"
        further = ahead.get((pair["a"], pair["b"]))
        shown.append(Dot(label, pair["mean"], pair["ci"], _PLAIN if clear else _UNCLEAR, tuple(known), further))
        rows.append(
            (
                label,
                numerals.estimate(pair["mean"], pair["ci"], digits=3),
                numerals.number(None if pair["tau2"] is None else pair["tau2"] ** 0.5, 3),
                numerals.percent(pair["i2"], 0),
                numerals.p_value(pair["q_p"], None),
                numerals.interval([min(without), max(without)], digits=3) if without else numerals.MISSING,
                numerals.interval(further, digits=3),
            )
        )
    each = level(result)
    columns = (
        Column("Pair", "text"), Column(f"Mean over {name}s [{each} %]"), Column(f"Spread between {name}s (SD)"),
        Column("I2 %"), Column("p, no spread"), Column("Mean without one, least to most"),
        Column(f"A further {name} [{each} %]"),
    )  # fmt: skip
    names = [at["level"] for at in found["pairs"][0]["levels"]]
    listed = tuple(
        (label[0], *(_at(pair["levels"], level_name) for level_name in names))
        for label, pair in zip(rows, found["pairs"], strict=True)
    )
    by_level = Table((Column("Pair", "text"), *(Column(n) for n in names)), listed, "Mean difference (blocks).")
    axis = f"difference within blocks, mean over {name}s [{each} %]"
    figure = dots(f"by-{name}", f"Differences by {name}", shown, axis, zero=0.0)
    note = (
        f"Random effects of each pair’s differences over {name}s, by REML, one interval for each pair and not adjusted "
        f"over pairs; coloured where it excludes 0. Strokes: each {name}. "
        f"Dashed: what a further {name} would find in about as many blocks, from five on."
    )
    tables = (("", Table(columns, tuple(rows))), (f"At each {name}", by_level))
    return Section(name, name.capitalize() + "s", (figure,), tables, note, sentences, wide=True)


def _at(levels_of: Sequence[AtLevel], name: str) -> str:
    found = next((at for at in levels_of if at["level"] == name), None)
    return numerals.MISSING if found is None else f"{numerals.number(found['mean'], 3)} ({found['blocks']})"
