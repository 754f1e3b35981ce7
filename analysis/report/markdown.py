"""The report as Markdown: the same tables and sentences as the HTML, in plain text.

May not: hold a sentence or a number of its own; it is handed the page that the HTML is rendered from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from labctl.analysis.report.figures import Figure
from labctl.analysis.report.tables import Table

if TYPE_CHECKING:
    from labctl.analysis.report.page import Page


def render(page: Page) -> str:
    """The page as GitHub-flavoured Markdown, ending in one newline."""
    head, say = page["head"], page["say"]
    parts = [f"# {_flat(page['title'])}"]
    parts += [_flat(text) for text in (page["question"], page["meta"]) if text]
    parts += [f"**{badge['label']}** {_flat(badge['text'])}" for badge in page["badges"]]
    parts += [_list(claim.text for claim in page["claims"]), _table(page["main"]), _list(page["cautions"])]
    if page["of_operations"] or page["flow"]:
        parts += [f"## {head['flow']}", say["flow"]]
        parts += _under(head["flow_by_arm"], _table(page["flow_table"]))
        parts += _under(head["voids"], _table(page["void_table"])) or [say["voids"]]
    parts += _of_operations(page) if page["of_operations"] else []
    for section in page["supplementary"]:
        parts += [f"## {section.title}", *map(_flat, section.sentences), _images(section.figures), _flat(section.note)]
        for heading, table in section.tables:
            parts += [f"### {heading}" if heading else "", _table(table)]
        parts += [_images(section.beside)]
    if page["answer_table"]:
        parts += [f"## {head['answers']}", _table(page["answer_table"])]
    parts += [f"## {head['limits']}"]
    parts += _under(head["deviations"], _list(page["deviations"]) or say["deviations"])
    parts += _under(head["warnings"], _list(page["warnings"]) or say["warnings"])
    parts += _under(head["blinding"], _list(page["blinding"]))
    parts += _under(head["notes"], _list(page["notes"]))
    parts += [f"## {head['provenance']}", _table(page["provenance_table"])]
    parts += _under(head["sessions"], _list(page["sessions"]))
    parts += _under(head["verify"], "".join(f"{text}`{code}`" if code else text for text, code in page["verify"]))
    parts += [f"## {head['methods']}", *(f"**{name}.** {text}" for name, text in page["methods"])]
    parts += _clips(page)
    if page["episode_table"]:
        links = [", ".join(f"[{_flat(name)}]({href})" for name, href in videos) for videos in page["videos"]]
        parts += [f"## {head['episodes']}", _table(page["episode_table"], {"Video": links} if any(links) else {})]
    return "\n\n".join(part for part in (*parts, say["footer"]) if part) + "\n"


def _of_operations(page: Page) -> list[str]:
    """What a report of operations has between the flow and the further sections."""
    head, say = page["head"], page["say"]
    parts = [f"## {head['success']}", _images(page["curves"]), _flat(say["success"])]
    if page["compares"]:
        parts += [f"## {_flat(head['hrt'])}", _flat(say["hrt"]), *_hrt(page)]
        parts += [f"## {head['pairs']}", say["pairs"], _table(page["pair_matrix"])]
        parts += _under(head["effects"], _table(page["pair_table"]))
        parts += _under(head["tests"], _table(page["test_table"]))
    parts += [f"## {head['objects']}", _table(page["rmst_table"])]
    parts += _under(head["cells"], _table(page["cell_table"]))
    return parts


def _under(heading: str, text: str) -> list[str]:
    """A part with its heading, or neither."""
    return [f"### {heading}", text] if text else []


def _hrt(page: Page) -> list[str]:
    if not page["reference"]:
        return []
    figure = [page["hrt_figure"]] if page["hrt_figure"] else []
    drawn = _under(page["head"]["pp"], _images(page["pp"]))
    return [_images(figure), _table(page["hrt_table"]), *drawn, _flat(page["say"]["pp"])]


def _clips(page: Page) -> list[str]:
    if not page["clips"]:
        return []
    parts = [f"## {page['head']['clips']}", page["say"]["clips"]]
    for arm, entries in page["clips"].items():
        lines = (f"- **{_flat(e['kind'])}**: {_flat(e['caption'])} [clip]({e['file']})" for e in entries)
        parts += [f"### {_flat(arm)}", "\n".join(lines)]
    return parts


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _flat(text).replace("|", "\\|")


def _table(table: Table | None, more: Mapping[str, Sequence[str]] | None = None) -> str:
    """more: columns of Markdown to add at the right, by heading."""
    if table is None or not table.rows:
        return ""
    numeric = [column.kind == "num" for column in table.columns]
    lines = [[_cell(column.label) for column in table.columns], ["--:" if right else ":--" for right in numeric]]
    lines += [[_cell(cell) for cell in row] for row in table.rows]
    for heading, cells in (more or {}).items():
        for line, cell in zip(lines, (heading, ":--", *cells), strict=True):
            line.append(cell)
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n\n{_flat(table.note)}" if table.note else text


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_flat(line)}" for line in lines)


def _images(figures: Iterable[Figure]) -> str:
    return "\n".join(f"![{_flat(figure.title)}](figures/{figure.name}.svg)" for figure in figures)
