"""Small drawings written straight as SVG: the flow of trials, the whisker of one arm, the line key of an arm.

May not: need a plotting library, measure text, or hold a number that is not printed in a table too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from labctl.analysis.numerals import count
from labctl.analysis.report.figures import INK, MUTED, RULE, Look
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.report.lab_tables import words
from labctl.analysis.survival.result import AnalysisResult

_WIDTH, _LINE, _PAD = 760, 19, 12
_SIDE_X = 420


def flow(lab: Lab, order: Sequence[str]) -> str:
    """CONSORT-style diagram: planned, run, scored on the left; not run, void, ended early beside them; arms below."""
    counts = lab.get("flow")
    if not counts:
        return ""
    voids = counts.get("voids") or {}
    void = sum(int(n) for n in voids.values()) if voids or "voids" in counts else None
    reasons = [f"{words(reason)}: {n}" for reason, n in sorted(voids.items())]
    stages = [
        (["Trials planned", count(counts.get("planned"))], ["Not run", count(counts.get("not_run"))], []),
        (
            ["Episodes run", count(counts.get("run"))],
            ["Void (slot run again, same arm)", count(void)],
            [
                f"before go: {count(counts.get('voids_before_go'))}, after go: {count(counts.get('voids_after_go'))}",
                *reasons,
            ],
        ),
        (
            ["Episodes scored", count(counts.get("scored"))],
            ["Scored, but ended early", count(counts.get("ended_early"))],
            [],
        ),
    ]
    parts: list[str] = []
    y, previous = 8, 0
    for (title, n), (side, side_n), lines in stages:
        height = 2 * _PAD + _LINE * (2 + len(lines))
        middle = y + height // 2
        if previous:
            parts.append(_arrow(150, previous, 150, middle - 31))
        parts.append(_box(20, middle - 31, 260, 62, [title], n))
        parts.append(_arrow(280, middle, _SIDE_X, middle))
        parts.append(_box(_SIDE_X, y, _WIDTH - _SIDE_X - 20, height, [side, *lines], side_n))
        previous = middle + 31
        y += height + 26
    by_arm = counts.get("by_arm") or {}
    arms = [arm for arm in order if arm in by_arm] + sorted(set(by_arm) - set(order))
    bottom = _arms(parts, arms, by_arm, previous, max(y, previous + 44))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom}" role="img" '
        f'aria-label="Flow of trials from planned to scored" font-size="14" fill="{INK}">{"".join(parts)}</svg>'
    )


def _arms(
    parts: list[str], arms: Sequence[str], by_arm: Mapping[str, Mapping[str, int]], previous: int, top: int
) -> int:
    """Boxes of the arms, four to a row, hung below the last stage; returns the height used."""
    if not arms:
        return top
    across = min(4, len(arms))
    width = (_WIDTH - 40 - 16 * (across - 1)) // across
    parts.append(_line(150, previous, 150, top - 14))
    for i, arm in enumerate(arms):
        x, y = 20 + (i % across) * (width + 16), top + (i // across) * 104
        tally = by_arm[arm]
        scored = f"scored {count(tally.get('scored'))} of {count(tally.get('planned'))}"
        lost = f"void {count(tally.get('voids'))}, not run {count(tally.get('not_run'))}"
        early = f"ended early {count(tally.get('ended_early'))}"
        if i < across:
            centre = x + width // 2
            parts.append(_line(min(150, centre), top - 14, max(150, centre), top - 14))
            parts.append(_arrow(centre, top - 14, centre, y))
        parts.append(_box(x, y, width, 90, [_clip(arm, width), scored, lost, early], ""))
    return top + (1 + (len(arms) - 1) // across) * 104


def _clip(text: str, width: int) -> str:
    fits = width // 8 - 2
    return text if len(text) <= fits else f"{text[: fits - 1]}…"


def _box(x: int, y: int, width: int, height: int, lines: Sequence[str], n: str) -> str:
    """A box with a bold heading, an emphasised number and lines of small print."""
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="#ffffff" stroke="{MUTED}"/>'
    row = y + _PAD + 14
    text = f'<text x="{x + 14}" y="{row}" font-weight="600">{escape(lines[0])}</text>'
    if n:
        row += _LINE + 2
        text += f'<text x="{x + 14}" y="{row}" font-size="17" font-weight="600">{escape(n)}</text>'
    for line in lines[1:]:
        row += _LINE
        text += f'<text x="{x + 14}" y="{row}" font-size="13" fill="{MUTED}">{escape(line)}</text>'
    return shape + text


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{MUTED}" fill="none"/>'


def _arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    head = "l-4 -7h8z" if x1 == x2 else "l-7 -4v8z"
    return f'{_line(x1, y1, x2, y2)}<path d="M{x2} {y2}{head}" fill="{MUTED}"/>'


def key(look: Look) -> str:
    """The line of an arm as drawn in the figures, 26 by 10."""
    dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
    return (
        f'<svg class="key" viewBox="0 0 26 10" width="26" height="10" aria-hidden="true">'
        f'<path d="M0 5H26" stroke="{look.colour}" stroke-width="2"{dash}/>{_mark(look, 13, 5)}</svg>'
    )


def _mark(look: Look, x: float, y: float) -> str:
    shapes = {
        "o": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4"',
        "s": f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"',
        "^": f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z"',
        "D": f'<path d="M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"',
        "v": f'<path d="M{x:.1f} {y + 4:.1f}l4 -7h-8z"',
        "P": f'<path d="M{x - 1.3:.1f} {y - 4:.1f}h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z"',
    }
    return f'{shapes[look.mark]} fill="{look.colour}"/>' if look.mark else ""


def whiskers(result: AnalysisResult, looks: Mapping[str, Look]) -> dict[str, str]:
    """arm -> a strip with its HRT and 95 % interval on one logarithmic axis shared by all; empty without any HRT."""
    reference = result.get("reference")
    arms = [a for a in result.get("arms") or [] if a.get("hrt")]
    values = [b for a in arms for b in (a["hrt"], a.get("hrt_floor"), *(a.get("hrt_ci") or ())) if b]
    if not values or all(a["arm"] == reference for a in arms):
        return {}
    low, high = math.log(0.9 * min(values)), math.log(1.1 * max(1.0, *values))

    def x(value: float) -> float:
        return 150.0 * (math.log(max(value, math.exp(low))) - low) / (high - low)

    strips = {}
    for a in arms:
        value = a["hrt"] or 0.0
        marks = f'<path d="M0 10H150" stroke="{RULE}"/><path d="M{x(1):.1f} 2V18" stroke="#000000"/>'
        if floor := a.get("hrt_floor"):
            at = x(floor)
            marks += f'<path d="M{at:.1f} 2V18" stroke="{MUTED}" stroke-dasharray="2 2"/>'
        if a["arm"] != reference:
            look = looks[a["arm"]]
            if span := a.get("hrt_ci"):
                ends = [x(b) for b in span]
                marks += f'<path d="M{ends[0]:.1f} 10H{ends[1]:.1f}" stroke="{look.colour}" stroke-width="2.5"/>'
            marks += _mark(look, x(value), 10)
        label = f"HRT {100 * value:.1f} %"
        strips[a["arm"]] = (
            f'<svg class="whisker" viewBox="0 0 150 20" width="120" height="16" role="img" '
            f'aria-label="{label}">{marks}</svg>'
        )
    return strips
