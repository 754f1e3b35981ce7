"""What every figure of a report shares (looks, bytes, CSV), and HRT with whiskers; curves are in `success_curves`.

May not: use pyplot or global matplotlib state, fetch a font, or stamp a date: the same input gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import itertools
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from labctl.analysis.numerals import number, percent
from labctl.analysis.survival.result import AnalysisResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import RcKeyType

INK, MUTED, RULE = "#1a1d21", "#5b636d", "#d9dde2"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe & Ito; black is the reference
_DASHES = ("5 2", "1.5 1.5", "7 2 1.5 2", "3 1.5", "9 3", "7 2 1.5 2 1.5 2")
_MARKS = ("o", "s", "^", "D", "v", "P")
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_STYLE: dict[RcKeyType, str | float | bool] = {
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
    "text.parse_math": False,  # an arm may be called "$5 and $10"
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
    def narrow(self) -> bool:
        """Whether it was drawn to stand beside others (less than five inches)."""
        width = re.search(r'<svg[^>]*? width="([0-9.]+)pt"', self.svg)
        return width is not None and float(width[1]) < 5 * 72

    @property
    def inline(self) -> str:
        """The SVG without prologue, sized by its container, with ids that cannot meet those of another figure."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1, flags=re.DOTALL)
        label = f' role="img" aria-label="{escape(self.title)}"'
        body = re.sub(r'(<svg[^>]*?) height="[^"]*"', lambda found: found[1] + label, body, count=1, flags=re.DOTALL)
        body = re.sub(r'\bid="', f'id="{self.name}-', body)
        return re.sub(r'(url\(|href=")#', rf"\1#{self.name}-", body)


def slugs(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """For each name one that is safe in a file name and as an XML id, that none of the others has and none `taken`."""
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"
        numbered = (f"{plain}-{i}" for i in itertools.count(2))
        found[name] = next(one for one in itertools.chain([plain], numbered) if one not in used)
        used.add(found[name])
    return found


def looks(arms: Sequence[str], reference: str | None) -> dict[str, Look]:
    """One look per arm, stable in the order given; the reference is a solid black line."""
    found = {reference: Look("#000000", "", "")} if reference is not None and reference in arms else {}
    others = [arm for arm in dict.fromkeys(arms) if arm not in found]
    for i, arm in enumerate(others):
        again = i + i // len(_COLOURS)  # beyond six a colour comes back with another dash and mark
        found[arm] = Look(_COLOURS[i % len(_COLOURS)], _DASHES[again % len(_DASHES)], _MARKS[again % len(_MARKS)])
    return found


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
        at = "offset points"
        ax.annotate(str(reference), (100, top), (-5, 0), ha="right", va="center", color=INK, textcoords=at)
        if floor:
            ax.axvline(100 * floor, color=MUTED, linewidth=1, linestyle=(0, (1.5, 2)))
            label = f"floor {percent(floor)} %"
            ax.annotate(label, (100 * floor, top), (5, 0), ha="left", va="center", color=MUTED, textcoords=at)
            low.append(100 * floor)
        ax.set_xlim(0.85 * min(low), 1.15 * max(high))  # before the scale, which warns where all lies at one place
        ax.set_xscale("log")
        ax.set(ylim=(-0.5, len(arms) - 0.1), yticks=[])
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


_BESIDE_IN = 0.12
"""Room left and right: a browser's letters are wider than those that the layout was measured by, and would be cut."""


def make(name: str, title: str, size: tuple[float, float], draw: Callable[[Axes], None], numbers: str) -> Figure:
    """Draw one figure of `size` inches: the same input, the same bytes."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # that its list of fonts cannot be kept, on a full disk say, is no line for whoever asked for a report
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # the page's figures are text in the reader's own fonts; only the PNG has a box for such a letter
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Canvas(figsize=size)
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        # Once for both files. A figure that has an engine is laid out, and drawn to no end, before each of them.
        ConstrainedLayoutEngine(w_pad=_BESIDE_IN).execute(figure)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=180, metadata={"Software": None})
    text = svg.getvalue().decode().replace("'DejaVu Sans'", _FONTS)
    return Figure(name, title, text, png.getvalue(), numbers)


def to_csv(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """The numbers of a figure as CSV text; None is empty."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((head, *rows))
    return out.getvalue()


def records_csv(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Rows of the same keys as a CSV file, the keys of the first as its head."""
    return to_csv(rows[0], (row.values() for row in rows)).encode()
