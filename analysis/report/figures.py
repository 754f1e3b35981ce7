"""The figures of a report: success over time, P-P against the reference, HRT with whiskers. SVG, PNG and CSV of each.

May not: use pyplot or global matplotlib state, fetch a font, or stamp a date: the same input gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from labctl.analysis.numerals import number, percent
from labctl.analysis.survival.bands import Band
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = tuple[Floats, Floats]
"""Times in s and F as a fraction, both (k,)."""
INK, MUTED, RULE = "#1a1d21", "#5b636d", "#d9dde2"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe & Ito; black is the reference
_DASHES = ("5 2", "1.5 1.5", "7 2 1.5 2", "3 1.5", "9 3", "7 2 1.5 2 1.5 2")
_MARKS = ("o", "s", "^", "D", "v", "P")
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "labctl",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "text.color": INK,
}


@dataclass(frozen=True)
class Look:
    """How one arm is drawn everywhere: colour, dash pattern (SVG lengths, "" is solid) and marker; readable in grey."""

    colour: str
    dash: str
    mark: str

    @property
    def linestyle(self) -> Literal["solid"] | tuple[float, tuple[float, ...]]:
        """The same dash pattern in matplotlib's form."""
        return (0, tuple(float(x) for x in self.dash.split())) if self.dash else "solid"


@dataclass(frozen=True)
class Figure:
    """One picture as files and as inline SVG. `title` heads it, `csv` holds the numbers it draws."""

    name: str
    title: str
    svg: str
    png: bytes
    csv: str

    @property
    def inline(self) -> str:
        """The SVG without prologue, sized by its container, with ids that cannot meet those of another figure."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1, flags=re.DOTALL)
        body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 role="img"', body, count=1, flags=re.DOTALL)
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        return re.sub(r'(url\(|href=")#', rf"\1#{self.name}-", body)


def slug(text: str) -> str:
    """A name that is safe in a file name and as an XML id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def looks(arms: Sequence[str], reference: str | None) -> dict[str, Look]:
    """One look per arm, stable in the order given; the reference is a solid black line."""
    found = {reference: Look("#000000", "", "")} if reference is not None and reference in arms else {}
    others = [arm for arm in dict.fromkeys(arms) if arm not in found]
    for i, arm in enumerate(others):
        found[arm] = Look(_COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)], _MARKS[i % len(_MARKS)])
    return found


def curve_figures(
    result: AnalysisResult, styles: Mapping[str, Look], bands: Mapping[tuple[str, str], Band]
) -> list[Figure]:
    """F(t), one figure per object; `bands` maps (arm, object) to a pointwise band and may lack any of them."""
    figures = []
    for obj, curves in _curves(result).items():

        def draw(ax: Axes, obj: str = obj, curves: dict[str, Curve] = curves) -> None:
            ends = []
            for arm, (t, f) in curves.items():
                look = styles[arm]
                if (band := bands.get((arm, obj))) is not None:
                    low, high = 100 * band[1], 100 * band[2]
                    ax.fill_between(band[0], low, high, step="post", color=look.colour, alpha=0.13, linewidth=0)
                ax.step(
                    t, 100 * f, where="post", color=look.colour, linestyle=look.linestyle, linewidth=1.7,
                    marker=look.mark or None, markersize=3.6, markevery=max(1, len(t) // 5),
                )  # fmt: skip
                ends.append((100 * float(f[-1]), arm, look.colour))
            tau = float(result["tau"])
            ax.set(xlim=(0, tau), ylim=(0, 102), xlabel="seconds since the previous success", ylabel="items moved, %")
            ax.set_title(obj)
            _label_ends(ax, tau, ends)

        band_of = {arm: bands.get((arm, obj)) for arm in curves}
        figures.append(make(f"success-{slug(obj)}", obj, (4.9, 3.1), draw, _curve_csv(obj, curves, band_of)))
    return figures


def pp_figures(result: AnalysisResult, styles: Mapping[str, Look]) -> list[Figure]:
    """P-P plot per object: (F_reference(t), F_arm(t)) up to tau. The diagonal is the reference itself."""
    reference = result.get("reference")
    figures = []
    for obj, curves in _curves(result).items():
        if reference not in curves or len(curves) < 2:
            continue
        points = {arm: _pp(curves[reference], curve) for arm, curve in curves.items() if arm != reference}

        def draw(ax: Axes, obj: str = obj, points: dict[str, tuple[Floats, ...]] = points) -> None:
            ax.plot((0, 100), (0, 100), color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
            for arm, (_, x, y) in points.items():
                look = styles[arm]
                ax.plot(
                    100 * x, 100 * y, color=look.colour, linestyle=look.linestyle, linewidth=1.7,
                    marker=look.mark or None, markersize=3.6, markevery=max(1, len(x) // 5),
                )  # fmt: skip
            ax.set(xlim=(0, 102), ylim=(0, 102), xlabel=f"{reference}: items moved, %", ylabel="arm: items moved, %")
            ax.set_aspect("equal")
            ax.set_title(obj)

        rows = [
            (obj, arm, f"{t:.6g}", f"{x:.6g}", f"{y:.6g}")
            for arm, xyz in points.items()
            for t, x, y in zip(*xyz, strict=True)
        ]
        text = to_csv(("object", "arm", "t_s", "f_reference", "f_arm"), rows)
        figures.append(make(f"pp-{slug(obj)}", obj, (3.1, 3.1), draw, text))
    return figures


def hrt_figure(result: AnalysisResult, styles: Mapping[str, Look]) -> Figure | None:
    """HRT per arm on a logarithmic axis: dot, 95 % whisker, the floor as a dotted line. None without any HRT."""
    reference = result.get("reference")
    arms = [a for a in result.get("arms") or [] if a.get("hrt") and a["arm"] != reference]
    if not arms:
        return None

    def draw(ax: Axes) -> None:
        floor = next((a["hrt_floor"] for a in arms if a.get("hrt_floor")), None)
        shown = [(a["arm"], value, a.get("hrt_ci") or [value]) for a in arms if (value := a["hrt"])]
        low = [100 * least for _, value, span in shown for least in (value, span[0])]
        high = [100.0, *(100 * span[-1] for _, _, span in shown)]
        for y, (arm, value, span) in enumerate(reversed(shown)):
            look = styles[arm]
            if len(span) == 2:
                ax.plot([100 * b for b in span], [y, y], color=look.colour, linewidth=2, solid_capstyle="butt")
            ax.plot(100 * value, y, color=look.colour, marker=look.mark, markersize=6, linestyle="none")
            label = f"{arm}: {percent(value)} %"
            ax.annotate(label, (100 * value, y), (0, 8), textcoords="offset points", ha="center")
        top = len(arms) - 0.35
        ax.axvline(100, color="#000000", linewidth=1)
        beside: dict[str, Any] = {"textcoords": "offset points", "va": "center"}
        ax.annotate(str(reference), (100, top), (-5, 0), ha="right", color=INK, **beside)
        if floor:
            ax.axvline(100 * floor, color=MUTED, linewidth=1, linestyle=(0, (1.5, 2)))
            ax.annotate(f"floor {percent(floor)} %", (100 * floor, top), (5, 0), ha="left", color=MUTED, **beside)
            low.append(100 * floor)
        ax.set_xscale("log")
        ax.set(xlim=(0.85 * min(low), 1.15 * max(high)), ylim=(-0.5, len(arms) - 0.1), yticks=[])
        ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200) if 0.85 * min(low) <= t <= 1.15 * max(high)]
        ax.set_xticks(ticks, [str(t) for t in ticks])
        ax.minorticks_off()
        ax.set_xlabel(f"human-relative throughput, %  (tau = {number(result['tau'], 0)} s, logarithmic)")
        ax.spines["left"].set_visible(False)

    keys = ("hrt", "hrt_floor")
    spans = ("hrt_ci", "hrt_ci_percentile")
    rows = [
        [a["arm"], *(a.get(k) for k in keys), *(bound for span in spans for bound in (a.get(span) or (None, None)))]
        for a in arms
    ]
    head = ("arm", *keys, *(f"{s}_{end}" for s in spans for end in ("low", "high")))
    return make("hrt", "HRT", (7.4, 1.0 + 0.48 * len(arms)), draw, to_csv(head, rows))


def _curves(result: AnalysisResult) -> dict[str, dict[str, Curve]]:
    """object -> arm -> (t, F) from 0 to tau, carried flat beyond the last event; the reference comes first."""
    found: dict[str, dict[str, Curve]] = {}
    cells = sorted(result.get("cells") or [], key=lambda c: c["arm"] != result.get("reference"))
    for obj in dict.fromkeys(c["object"] for c in result.get("cells") or []):
        for cell in (c for c in cells if c["object"] == obj and c.get("curve")):
            t, f = (np.asarray(cell["curve"][key], float) for key in ("t", "F"))
            inside = t <= result["tau"]
            t, f = np.r_[0.0, t[inside]], np.r_[0.0, f[inside]]
            found.setdefault(obj, {})[cell["arm"]] = (np.r_[t, result["tau"]], np.r_[f, f[-1]])
    return found


def _pp(reference: Curve, arm: Curve) -> tuple[Floats, ...]:
    """Times and both step functions at them, to the shorter of the two curves."""
    end = min(reference[0][-1], arm[0][-1])
    times = np.union1d(reference[0], arm[0])
    times = times[times <= end]
    at = [f[np.searchsorted(t, times, side="right") - 1] for t, f in (reference, arm)]
    return times, at[0], at[1]


def _label_ends(ax: Axes, x: float, ends: Sequence[tuple[float, str, str]], gap: float = 8.0) -> None:
    """Names at the right end of their curves, pushed apart so that none overlaps; `gap` is in units of y."""
    placed: list[tuple[float, str, str]] = []
    for y, arm, colour in sorted(ends):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, arm, colour))
    excess = max(0.0, placed[-1][0] - 100.0) if placed else 0.0
    for y, arm, colour in placed:
        at = (x, y - excess)
        ax.annotate(arm, at, (5, 0), textcoords="offset points", va="center", color=colour, annotation_clip=False)


def make(name: str, title: str, size: tuple[float, float], draw: Callable[[Axes], None], numbers: str) -> Figure:
    """Draw one figure of `size` inches: the same input, the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(_STYLE):
        figure = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=180, metadata={"Software": None})
    text = svg.getvalue().decode().replace("'DejaVu Sans'", _FONTS)
    return Figure(name, title, text, png.getvalue(), numbers)


def _curve_csv(obj: str, curves: Mapping[str, Curve], bands: Mapping[str, Band | None]) -> str:
    rows = []
    for arm, (t, f) in curves.items():
        band = bands.get(arm)
        for x, y in zip(t, f, strict=True):
            ends = ("", "")
            if band is not None:
                i = max(0, int(np.searchsorted(band[0], x, side="right")) - 1)
                ends = (f"{band[1][i]:.6g}", f"{band[2][i]:.6g}")
            rows.append((obj, arm, f"{x:.6g}", f"{y:.6g}", *ends))
    return to_csv(("object", "arm", "t_s", "f", "f_low", "f_high"), rows)


def to_csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """The numbers of a figure as CSV text; None is empty."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((head, *rows))
    return out.getvalue()


def records_csv(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Rows of the same keys as a CSV file, the keys of the first as its head."""
    return to_csv(rows[0], (row.values() for row in rows)).encode()
