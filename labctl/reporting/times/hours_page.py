"""Where a campaign's hours went as one HTML page: bars and tables by block and operator, no script, nothing fetched.

May not: count (`hours` does), or show more than `labctl status --hours`, since a blind role reads it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from labctl import times
from labctl.analysis.report.lab_facts import Hours, Line
from labctl.plain import count
from labctl.reporting.times.hours import COLUMNS, DOING, cells, clock, hold_lines
from labctl.reporting.times.timeline import BlockLine
from labctl.store.atomic_files import file_errors, replace_file

COLOURS = {
    "reset": "#b8bec6",
    "staging": "#e0a458",
    "arming": "#f2dc9b",
    "running": "#2f6f9f",
    "scoring": "#8fbf9f",
    "hold": "#b3413a",
}
STYLE = """
body { margin: 0 auto; max-width: 1100px; padding: 24px 20px 48px; color: #1a1d21; background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 32px 0 8px; }
p, dd { color: #5b636d; } .warn { color: #8a4b00; }
.row { display: grid; grid-template-columns: 9em 1fr 6.5em; gap: 10px; align-items: center; margin: 4px 0; }
.row svg { width: 100%; height: 38px; overflow: visible; } .row svg text { font-size: 11px; fill: #5b636d; }
.bar { display: flex; height: 18px; background: #f5f6f8; } .bar span { display: block; }
.time { text-align: right; font-variant-numeric: tabular-nums; }
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; list-style: none; padding: 0; }
.key i { display: inline-block; width: 14px; height: 14px; margin-right: 6px; vertical-align: -2px; }
.box { overflow-x: auto; } table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid #d9dde2; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
dt { font-weight: 600; } dd { margin: 0 0 6px; }
@media (max-width: 640px) { .row { grid-template-columns: 6em 1fr 5.5em; gap: 6px; font-size: 14px; }
  .row svg text { display: none; } }
"""


def write_page(found: Hours, path: Path, *, broken: str = "", lines: Sequence[BlockLine] = ()) -> None:
    """broken: what does not hold of a record that is shown all the same; lines: what each block cost, stretch by
    stretch, of an unblinded campaign. Raises StorageError.
    """
    with file_errors(str(path)):
        replace_file(path, html_of(found, broken, lines).encode())


def html_of(found: Hours, broken: str = "", lines: Sequence[BlockLine] = ()) -> str:
    """The page."""
    total, blocks, people = found["total"], found["blocks"], found["operators"]
    name = escape(str(found["campaign"]))
    head = f"{count(total['trials'], 'trial')} scored, {clock(total['total_s'])} of runs"
    if total["trials"]:
        head += f", {clock(total['total_s'] / total['trials'])} for each scored trial"
    warning = f'<p class="warn">{escape(broken)}</p>' if broken else ""
    longest = max((line["total_s"] for line in blocks), default=0.0)
    keys = "".join(f'<li><i style="background:{COLOURS[doing]}"></i>{doing}</li>' for doing in DOING)
    words = "".join(f"<dt>{key}</dt><dd>{escape(text)}</dd>" for key, text in found["what"].items())
    holds = "".join(f"<li>{escape(line)}</li>" for line in hold_lines(total)) or "<li>none</li>"
    parts = [
        f"<h1>Where the hours of {name} went</h1><p>{escape(head)}</p>{warning}",
        f'<ul class="key">{keys}</ul>{_bar(total, total["total_s"], "all")}',
        f"<h2>Holds by reason</h2><ul>{holds}</ul>",
        "<h2>By block</h2>" + "".join(_bar(line, longest, _block(line)) for line in blocks),
        _table("Block", [*blocks, total]),
        *_timeline(lines),
        "<h2>By operator</h2>" + "".join(_bar(line, total["total_s"], line["of"]) for line in people),
        _table("Operator", people),
        f"<h2>What is counted</h2><dl>{words}</dl><p>Time between runs is not counted, nor what a killed run left "
        "until its next start. Two operators of one session have its time each.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Hours of {name}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _timeline(lines: Sequence[BlockLine]) -> list[str]:
    """A row a block: its stretches side by side, a trial's number where it begins, a line where nothing was done."""
    if not lines:
        return []
    longest = max(line.seconds for line in lines)
    return [
        "<h2>What each block cost, stretch by stretch</h2><p>From left to right as it was; a number is a trial's place "
        "in its block, a dark line a pause (between runs, or for another block's trial), which is not counted.</p>",
        *(_of_block(line, longest) for line in lines),
    ]


def _of_block(line: BlockLine, longest: float) -> str:
    shapes: list[str] = []
    at_s, before = 0.0, ""
    for number, one in enumerate(line.stretches):
        left, width = 1000 * at_s / longest, 1000 * one.seconds / longest
        what = f"trial {one.position}: {one.doing}{f' ({one.hold})' if one.hold else ''} {clock(one.seconds)}"
        what += f", from {times.local(one.wall, seconds=True)}"
        shapes.append(
            f'<rect x="{left:.2f}" y="14" width="{width:.2f}" height="20" fill="{COLOURS[one.doing]}">'
            f"<title>{escape(what)}</title></rect>"
        )
        if one.trial != before:
            shapes.append(f'<text x="{left:.2f}" y="10">{one.position}</text>')
            shapes.append(f'<path d="M{left:.2f} 12V36" stroke="#1a1d21" stroke-width="1"/>')
        if (pause_s := line.pauses_s.get(number)) is not None:
            shapes.append(
                f'<path d="M{left:.2f} 14V34" stroke="#1a1d21" stroke-width="4">'
                f"<title>pause of {clock(pause_s)}</title></path>"
            )
        at_s, before = at_s + one.seconds, one.trial
    trials = len({one.trial for one in line.stretches})
    name = f"block {line.block}: {count(trials, 'trial')}, {clock(line.seconds)}; its sums stand in the table above"
    said = f'role="img" aria-label="{escape(name)}"'
    drawing = f'<svg viewBox="0 0 1000 38" preserveAspectRatio="none" {said}>{"".join(shapes)}</svg>'
    time = f'<span class="time">{clock(line.seconds)}</span>'
    return f'<div class="row"><span>block {line.block}</span>{drawing}{time}</div>'


def _block(line: Line) -> str:
    return f"block {line['of']}" if line["of"].isdigit() else line["of"]


def _bar(line: Line, whole: float, name: str) -> str:
    parts = "".join(
        f'<span title="{doing} {clock(line["by"][doing])}" style="background:{COLOURS[doing]};'
        f'width:{100 * line["by"][doing] / whole:.2f}%"></span>'
        for doing in DOING
        if line["by"][doing] and whole
    )
    time = f'<span class="time">{clock(line["total_s"])}</span>'
    return f'<div class="row"><span>{escape(name)}</span><div class="bar">{parts}</div>{time}</div>'


def _table(of: str, lines: Sequence[Line]) -> str:
    head = "".join(f"<th>{column}</th>" for column in (of, "trials", *COLUMNS))
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells(line)) + "</tr>" for line in lines)
    return f'<div class="box"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
