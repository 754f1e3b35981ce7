"""The kinds of picture that a report of episodes is made of: dots and lines with intervals, cells, steps.

May not: compute what it draws, or look different from `analysis/report/figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labctl.analysis.report.figures import INK, MUTED, RULE, Figure, Look, make, to_csv
from labctl.analysis.results import Bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE, SMALL = 7.4, 3.7
_TEXT_INCH = 0.075
"""Width of a letter of the small print, about."""


@dataclass(frozen=True)
class Dot:
    """One line of a picture of dots: its words, its value and interval, and how it is drawn. mark: further values as
    short strokes; thin: a second, wider interval.
    """

    label: str
    value: float | None
    ci: Bounds
    look: Look
    marks: tuple[float, ...] = ()
    thin: Bounds = None


def dots(
    name: str,
    title: str,
    shown: Sequence[Dot],
    axis: str,
    *,
    limits: tuple[float, float] | None = None,
    zero: float | None = None,
    whole: bool = False,
) -> Figure:
    """Values with their intervals under each other, the first on top. zero: where a line of no effect stands; whole:
    ticks at whole numbers alone.
    """

    def draw(ax: Axes) -> None:
        if zero is not None:
            ax.axvline(zero, color=INK, linewidth=0.8)
        for y, dot in enumerate(reversed(shown)):
            ax.plot((0, 1), (y, y), color=RULE, linewidth=0.6, transform=ax.get_yaxis_transform(), zorder=0)
            if dot.thin is not None:
                ax.plot([*dot.thin], [y, y], color=dot.look.colour, linewidth=0.9, linestyle=(0, (2, 2)))
            if dot.ci is not None:
                ax.plot([*dot.ci], [y, y], color=dot.look.colour, linewidth=2, solid_capstyle="butt")
            if dot.marks:
                ax.plot([*dot.marks], [y] * len(dot.marks), "|", color=MUTED, markersize=7, markeredgewidth=1)
            if dot.value is not None:
                mark = dot.look.mark or "o"
                ax.plot(dot.value, y, color=dot.look.colour, marker=mark, markersize=5.5, linestyle="none")
        if whole:
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if limits:
            ax.set_xlim(*limits)
        ax.set(ylim=(-0.6, len(shown) - 0.4), xlabel=axis)
        ax.set_yticks(range(len(shown)), [dot.label for dot in reversed(shown)])
        ax.tick_params(axis="y", length=0, labelcolor=INK)
        ax.spines["left"].set_visible(False)

    rows = [
        (dot.label, _short(dot.value), *(map(_short, dot.ci or ("", ""))), "; ".join(map(_short, dot.marks)))
        for dot in shown
    ]
    text = to_csv(("label", "value", "low", "high", "marks"), rows)
    return make(name, title, (WIDE, 0.85 + 0.27 * len(shown)), draw, text)


def cells(
    name: str,
    title: str,
    down: Sequence[str],
    across: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    axis: str = "",
    middle: bool = False,
) -> Figure:
    """A number from 0 to 1 in each cell, its shade saying how high; middle: two colours that part at one half."""
    longest = max((len(word) for word in across), default=0) * _TEXT_INCH
    turned = longest > 5.2 / max(1, len(across))

    def draw(ax: Axes) -> None:
        import numpy as np
        from matplotlib import colormaps

        # paler than the map's own ends, so that black text reads on each of them
        shades = colormaps["RdBu" if middle else "Blues"]
        grid = np.array([[np.nan if value is None else value for value in row] for row in values], dtype=float)
        colour = shades(0.2 + 0.6 * grid if middle else 0.55 * grid)
        colour[np.isnan(grid)] = (1, 1, 1, 1)
        ax.imshow(colour, aspect="auto")
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                text = "" if value is None else f"{value:.2f}"
                ax.text(x, y, text, ha="center", va="center", fontsize=8, color=INK)
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        ax.set_xticks(range(len(across)), [*across], **turn)
        ax.set_yticks(range(len(down)), [*down])
        ax.tick_params(length=0, labelcolor=INK)
        ax.set_xlabel(axis)
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)

    rows = [(word, *map(_short, row)) for word, row in zip(down, values, strict=True)]
    height = 0.6 + 0.27 * len(down) + (0.62 * longest if turned else 0)
    return make(name, title, (WIDE, height), draw, to_csv(("", *across), rows))


@dataclass(frozen=True)
class Line:
    """An arm's values over places, with their intervals."""

    look: Look
    values: Sequence[float | None]
    intervals: Sequence[Bounds]


def levels(
    name: str,
    title: str,
    lines: Mapping[str, Line],
    places: Sequence[str],
    axis: str,
    *,
    small: bool = True,
) -> Figure:
    """Values from 0 to 1 at places in order (stages, levels, places in a block), arms side by side with whiskers."""

    def draw(ax: Axes) -> None:
        for i, line in enumerate(lines.values()):
            shift = (i - (len(lines) - 1) / 2) * min(0.1, 0.5 / len(lines))
            known = [(x + shift, y) for x, y in enumerate(line.values) if y is not None]
            ax.plot(
                [x for x, _ in known], [y for _, y in known], color=line.look.colour, linestyle=line.look.linestyle,
                linewidth=1.4, marker=line.look.mark or "o", markersize=4.5,
            )  # fmt: skip
            for x, ends in enumerate(line.intervals):
                if ends is not None:
                    ax.plot([x + shift] * 2, [*ends], color=line.look.colour, linewidth=1.1)
        ax.set(ylim=(-0.02, 1.02), xlim=(-0.5, len(places) - 0.5), ylabel=axis)
        ax.set_xticks(range(len(places)), [*places])
        name_lines(ax, {arm: line.look for arm, line in lines.items()})
        if small:
            ax.set_title(title)

    rows = [
        (arm, place, _short(value), *(map(_short, ends or ("", ""))))
        for arm, line in lines.items()
        for place, value, ends in zip(places, line.values, line.intervals, strict=True)
    ]
    text = to_csv(("arm", "place", "value", "low", "high"), rows)
    return make(name, title, (SMALL if small else WIDE, 3.1), draw, text)


def steps(
    name: str, title: str, curves: Mapping[str, tuple[Look, Sequence[float], Sequence[float]]], axis: str, until: float
) -> Figure:
    """The share of episodes (0 to 1) by each time: steps up, carried on to `until`."""

    def draw(ax: Axes) -> None:
        for look, times, shares in curves.values():
            ax.step(
                [*times, until], [*shares, shares[-1]], where="post", color=look.colour, linestyle=look.linestyle,
                linewidth=1.6,
            )  # fmt: skip
        ax.set(xlim=(0, until), ylim=(0, 1.02), xlabel="seconds since go", ylabel=axis)
        name_lines(ax, {arm: look for arm, (look, _, _) in curves.items()})
        ax.set_title(title)

    rows = [
        (arm, _short(t), _short(share))
        for arm, (_, times, shares) in curves.items()
        for t, share in zip(times, shares, strict=True)
    ]
    return make(name, title, (SMALL, 3.1), draw, to_csv(("arm", "t_s", "share"), rows))


def name_lines(ax: Axes, shown: Mapping[str, Look]) -> None:
    """Which line is which arm's, in the corner with the most room; nothing where there is one."""
    from matplotlib.lines import Line2D

    if len(shown) < 2:
        return
    keys = [
        Line2D(
            [], [], color=look.colour, linestyle=look.linestyle, marker=look.mark or None, markersize=4, linewidth=1.4
        )
        for look in shown.values()
    ]
    ax.legend(keys, [*shown], frameon=False, fontsize=7 if len(shown) < 6 else 6, loc="best", borderaxespad=0.2)


def _short(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"
