"""The report as Markdown: the same tables and sentences as the HTML, in plain text.

May not: hold a sentence or a number of its own; it is handed the page that the HTML is rendered from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from labctl.analysis.tables import Table


def render(page: Mapping[str, Any]) -> str:
    """The page as GitHub-flavoured Markdown, ending in one newline."""
    parts = [f"# {_flat(page['title'])}"]
    parts += [_flat(page[key]) for key in ("question", "meta") if page[key]]
    parts += [f"**{badge['label']}** {_flat(badge['text'])}" for badge in page["badges"]]
    parts += [_list(claim.text for claim in page["claims"]), _table(page["main"]), _list(page["cautions"])]
    parts += ["## From plan to score", _table(page["flow_table"])]
    if page["void_table"]:
        parts += ["### If every void after go had been an episode without success", _table(page["void_table"])]
    parts += ["## Success over time", _images(page["curves"]), _flat(page["band_note"])]
    if page["reference"]:
        parts += [f"## Compared with {_flat(page['reference'])}", _table(page["hrt_table"])]
        parts += [_images([page["hrt_figure"]] if page["hrt_figure"] else []), _images(page["pp"])]
    parts += ["## Pairs of arms", _table(page["pair_matrix"]), _table(page["pair_table"])]
    parts += ["## Arm by object", _table(page["rmst_table"]), _table(page["cell_table"])]
    for heading, key in (("Deviations", "deviations"), ("Warnings", "warnings"), ("Blinding", "blinding")):
        parts += [f"## {heading}", _list(page[key]) or "None recorded."]
    if page["notes"]:
        parts += ["## Notes", _list(page["notes"])]
    parts += ["## Provenance", _table(page["provenance_table"]), _list(page["sessions"])]
    parts += ["".join(f"{text}`{code}`" if code else text for text, code in page["verify"])]
    parts += ["## What the words mean", *(f"**{name}.** {text}" for name, text in page["methods"])]
    if page["episode_table"]:
        parts += ["## Episodes", _table(page["episode_table"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _flat(text: Any) -> str:
    return " ".join(str(text).split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")


def _table(table: Table | None) -> str:
    if table is None or not table.rows:
        return ""
    numeric = [column.kind == "num" for column in table.columns]
    lines = [[_cell(column.label) for column in table.columns], ["--:" if right else ":--" for right in numeric]]
    lines += [[_cell(cell) for cell in row] for row in table.rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n{_flat(table.note)}" if table.note else text


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_flat(line)}" for line in lines)


def _images(figures: Iterable[Any]) -> str:
    return "\n".join(f"![{_flat(figure.title)}](figures/{figure.name}.svg)" for figure in figures)
