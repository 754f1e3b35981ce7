"""The report's section on what was asked of every arm and what it was judged by: stages, anchors and their pictures.

May not: read a campaign, estimate, or say how anything went.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from labctl.analysis.numerals import count, number
from labctl.analysis.report.figures import INK, Figure
from labctl.analysis.report.lab_facts import Asked
from labctl.analysis.report.sections.supplementary_sections import Section
from labctl.analysis.report.tables import Column, Table

POINTS = 240.0  # of 1/72 inch: how wide a picture stands in the page, narrow, so that those of a rubric stand in a row
LETTERS, LINE = 46, 12.0  # of a line of the title above a picture, and how high it is
FONTS = "DejaVu Sans, Verdana, Arial, sans-serif"
_HEADINGS = {"stages": ("Stage", "Points"), "score": ("Anchor", "Score")}
NOTE = (
    "The same for every arm; a condition may word the instruction otherwise. A stage counts only after those before "
    "it, and the score is points reached of points possible; a rubric’s number may lie between two anchors."
)


def section(asked: Sequence[Asked] | None, files: Mapping[str, bytes]) -> Section | None:
    """The section, None without tasks. files: the pictures by the names that anchors give, as PNG."""
    if not asked:
        return None
    columns = (*(Column(label, "text") for label in ("Task", "Judged by", "Told")), Column("Budget s"))
    rows = tuple((one["task"], one["measure"], one["instruction"], number(one["budget_s"], 0)) for one in asked)
    tables = [("", Table(columns, rows))]
    for one in asked:
        if not one["steps"]:
            continue
        name, worth = _HEADINGS[one["measure"]]
        steps = tuple(
            (step["name"] or count(place), f"{step['worth']:g}", step["text"])
            for place, step in enumerate(one["steps"], 1)
        )
        tables.append((one["task"], Table((Column(name, "text"), Column(worth), Column("In words", "text")), steps)))
    return Section("asked", "What was asked", tuple(_pictures(asked, files)), tuple(tables), NOTE, wide=True)


def _pictures(asked: Sequence[Asked], files: Mapping[str, bytes]) -> Iterator[Figure]:
    for one in asked:
        for step in one["steps"]:
            if step["picture"] in files:
                title = f"{one['task']}, {step['worth']:g}: {step['text']}"
                yield _figure(step["picture"], title, files[step["picture"]], step["worth"], step["text"])


def _figure(file: str, title: str, png: bytes, worth: float, text: str) -> Figure:
    """A picture as a report's figure, under its title; its width and height stand in the header of a PNG."""
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    lines = textwrap.wrap(title, LETTERS)
    above, high = LINE * len(lines) + 4, POINTS * height / width
    words = "".join(
        f'<text x="0" y="{LINE * (number + 1) - 3:g}">{html.escape(line)}</text>' for number, line in enumerate(lines)
    )
    image = f'href="data:image/png;base64,{base64.b64encode(png).decode()}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{POINTS:g}pt" height="{above + high:g}pt" '
        f'viewBox="0 0 {POINTS:g} {above + high:g}" font-family="{FONTS}" font-size="9" fill="{INK}">{words}'
        f'<image y="{above:g}" width="{POINTS:g}" height="{high:g}" {image}/></svg>\n'
    )
    numbers = io.StringIO()
    csv.writer(numbers, lineterminator="\n").writerows([("score", "text"), (f"{worth:g}", text)])
    name = file.removeprefix("figures/").removesuffix(".png")
    return Figure(name, title, svg, png, numbers.getvalue())
