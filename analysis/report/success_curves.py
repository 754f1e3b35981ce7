"""Success over time, object by object and over all; P–P plots against the reference and of every other pair.

The curve is F(t): the Kaplan–Meier share of operations done within t, a time budget that ran out being slow and not
failed. It is not items moved: an arm that moved 4 of 12 items can reach 100 %, so that every panel says how many
operations its curve still rests on, and how many items were moved. May not: estimate, or draw what nothing supports.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labctl.analysis.numerals import number
from labctl.analysis.report.figures import MUTED, Figure, Look, make, slugs, to_csv
from labctl.analysis.survival.bands import Band
from labctl.analysis.survival.cells import Cell
from labctl.analysis.survival.clusters import Key
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.table import NS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = tuple[Floats, Floats]
"""Times in s and F as a fraction, both (k,)."""
Risk = Mapping[Key, Ints]
"""(arm, object) -> sorted times in ns until which its operations stay at risk."""
FEW = 5
"""Fewer operations at risk than this, and a curve is drawn pale."""
DONE = "operations done within t, %\n(Kaplan–Meier)"
MACRO = "Mean over objects"
_PALE, _SMALL, _ROW_IN = 0.28, 7.5, 0.16
_WIDEST = 2 / 3


def curve_figures(
    result: AnalysisResult, styles: Mapping[str, Look], bands: Mapping[tuple[str, str], Band], risk: Risk | None = None
) -> list[Figure]:
    """F(t), one figure per object and, of two or more objects, their mean first (PhAIL, figure 1).

    `bands` maps (arm, object) to a band and may lack any; `risk` has the times behind each curve, without which no
    number at risk is printed and no curve made pale.
    """
    found, risk = _curves(result), risk or {}
    names, figures = slugs(found, ["macro"]), []
    for obj, curves in found.items():
        own = {arm: bands[arm, obj] for arm in curves if (arm, obj) in bands}
        at = {arm: [risk[arm, obj]] for arm in curves if (arm, obj) in risk}
        figures.append(_panel(f"success-{names[obj]}", obj, curves, styles, own, at, _moved(result, obj)))
    if len(found) > 1:
        mean = _macro(found)
        met = {arm: [(arm, o) for o, curves in found.items() if arm in curves] for arm in mean}
        at = {arm: [risk[k] for k in keys] for arm, keys in met.items() if all(k in risk for k in keys)}
        apart = [arm for arm in mean if any(arm not in curves for curves in found.values())]
        title = MACRO + (f" ({', '.join(apart)}: of those it met)" if apart else "")
        figures.insert(0, _panel("success-macro", title, mean, styles, {}, at, _moved(result, None)))
    return figures


def _panel(
    name: str,
    title: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Look],
    bands: Mapping[str, Band],
    risk: Mapping[str, Sequence[Ints]],
    moved: Mapping[str, str],
) -> Figure:
    tau = float(next(iter(curves.values()))[0][-1])
    ticks = np.linspace(0.0, tau, 5)

    def draw(ax: Axes) -> None:
        ends = []
        for arm, (t, f) in curves.items():
            look = styles[arm]
            few = _few_from(risk[arm], tau) if arm in risk else tau
            if (band := bands.get(arm)) is not None and says_something(band):
                low, high = (_split((band[0], 100 * side), few)[0] for side in band[1:])
                ax.fill_between(low[0], low[1], high[1], step="post", color=look.colour, alpha=0.13, linewidth=0)
            solid, pale = _split((t, f), few)
            ax.step(
                solid[0], 100 * solid[1], where="post", color=look.colour, linestyle=look.linestyle, linewidth=1.7,
                marker=look.mark or None, markersize=3.6, markevery=max(1, len(solid[0]) // 5),
            )  # fmt: skip
            ax.step(
                pale[0], 100 * pale[1], where="post", color=look.colour, linestyle=look.linestyle, linewidth=1.7,
                alpha=_PALE,
            )  # fmt: skip
            ends.append((100 * float(f[-1]), arm, look.colour))
        ax.set(xlim=(0, tau), ylim=(0, 102), xlabel="t, seconds since the previous success, or go", ylabel=DONE)
        ax.set_xticks(ticks, [number(t, 0) for t in ticks])
        ax.set_title(title)
        _label_ends(ax, tau, ends)
        if risk:
            _at_risk(ax, ticks, risk, {arm: styles[arm] for arm in curves}, moved)

    rows = (1 + len(curves)) if risk else 0
    return make(name, title, (4.9, 3.1 + rows * _ROW_IN), draw, _curve_csv(title, curves, bands, risk))


def says_something(band: Band) -> bool:
    """Whether a band leaves out more than it holds: on average over time, less than two thirds of the axis."""
    width = np.diff(band[0])
    return bool((width * (band[2] - band[1])[:-1]).sum() < _WIDEST * width.sum()) if width.sum() else True


def band_sentence(bands: Mapping[tuple[str, str], Band], note: str) -> str:
    """`note` on the bands, with the names of those that are not drawn for saying nothing."""
    silent = [f"{arm} on {obj}" for (arm, obj), band in bands.items() if not says_something(band)]
    if not silent:
        return note
    text = "cover more than two thirds of the plane and are left out here; the CSV files have them"
    return f"{note} The 95 % bands of {', '.join(silent)} {text}." if len(silent) < len(bands) else f"The bands {text}."


def _few_from(times: Sequence[Ints], tau: float) -> float:
    """From when on a curve rests on fewer than `FEW` operations, of all its objects, in s; tau where it never does."""
    ends = np.sort(np.concatenate(times))
    return min(tau, float(ends[-FEW]) / NS) if len(ends) >= FEW else 0.0


def _split(curve: Curve, few: float) -> tuple[Curve, Curve]:
    """The curve until `few` s, and what follows."""
    t, f = curve
    last = int(np.searchsorted(t, few, side="right"))
    level = f[last - 1]
    return (np.r_[t[:last], few], np.r_[f[:last], level]), (np.r_[few, t[last:]], np.r_[level, f[last:]])


def risk_times(result: AnalysisResult, cells: Mapping[Key, Cell]) -> dict[Key, Ints]:
    """`Risk` of the cells of the table behind a result; one whose operations are not all among them has none."""
    count = {(c["arm"], c["object"]): c.get("operations") for c in result.get("cells") or []}
    return {k: np.sort(c.durations.time_ns) for k, c in cells.items() if count.get(k, -1) in (None, len(c.kind))}


def at_risk(times: Ints, t: float) -> int:
    """How many operations are neither done nor cut off before `t` seconds; a lost item stays among them."""
    return len(times) - int(np.searchsorted(times, round(t * NS), side="left"))


def _at_risk(
    ax: Axes,
    ticks: Floats,
    risk: Mapping[str, Sequence[Ints]],
    styles: Mapping[str, Look],
    moved: Mapping[str, str],
) -> None:
    """Rows of numbers below the axis, one per arm in its colour, with its items moved and its name at the right."""
    where = ax.get_xaxis_transform()

    def put(x: float, line: int, text: str, right: float | None, colour: str) -> None:
        """Text centred at x, or from `right` points beyond it on."""
        ax.annotate(
            text, (x, 0), (right or 0, -39 - 11 * line), xycoords=where, textcoords="offset points",
            ha="left" if right else "center", va="center", fontsize=_SMALL, color=colour, annotation_clip=False,
        )  # fmt: skip

    put(float(ticks[0]), 0, "operations at risk", 5, MUTED)
    if any(moved.values()):
        put(float(ticks[-1]), 0, "items moved", 16, MUTED)
    for line, arm in enumerate((arm for arm in styles if arm in risk), start=1):
        for t in ticks:
            put(float(t), line, str(sum(at_risk(times, t) for times in risk[arm])), None, styles[arm].colour)
        put(float(ticks[-1]), line, " ".join(x for x in (moved.get(arm), arm) if x), 16, styles[arm].colour)


def _moved(result: AnalysisResult, obj: str | None) -> dict[str, str]:
    """arm -> `4/12`, items moved of those staged at the object (None: at all); "" where staging is unknown."""
    found = {}
    for arm in dict.fromkeys(c["arm"] for c in result["cells"]):
        own = [c for c in result["cells"] if c["arm"] == arm and obj in (None, c["object"])]
        known = own and all(c.get("items_staged") and c.get("items_moved") is not None for c in own)
        counts = (sum(c[key] or 0 for c in own) for key in ("items_moved", "items_staged"))
        found[arm] = "/".join(map(str, counts)) if known else ""
    return found


def pp_figures(result: AnalysisResult, styles: Mapping[str, Look]) -> list[Figure]:
    """P-P plot per object: (F_reference(t), F_arm(t)) up to tau. The diagonal is the reference itself."""
    reference = result.get("reference")
    found, figures = _curves(result), []
    names = slugs(found)
    for obj, curves in found.items():
        if reference not in curves or len(curves) < 2:
            continue
        points = {arm: _pp(curves[reference], curve) for arm, curve in curves.items() if arm != reference}

        def draw(ax: Axes, obj: str = obj, points: dict[str, tuple[Floats, ...]] = points) -> None:
            _square(ax, f"{reference}: done by t, %", "arm: done by t, %", obj)
            for arm, (_, x, y) in points.items():
                look = styles[arm]
                ax.plot(
                    100 * x, 100 * y, color=look.colour, linestyle=look.linestyle, linewidth=1.7,
                    marker=look.mark or None, markersize=3.6, markevery=max(1, len(x) // 5),
                )  # fmt: skip

        rows = [
            (obj, arm, f"{t:.6g}", f"{x:.6g}", f"{y:.6g}")
            for arm, xyz in points.items()
            for t, x, y in zip(*xyz, strict=True)
        ]
        text = to_csv(("object", "arm", "t_s", "f_reference", "f_arm"), rows)
        figures.append(make(f"pp-{names[obj]}", obj, (3.1, 3.1), draw, text))
    return figures


def arm_pp_figures(result: AnalysisResult, styles: Mapping[str, Look]) -> list[Figure]:
    """P–P plots of every pair of arms that leaves the reference out: each object thin, their mean thick."""
    found = _curves(result)
    arms = [a["arm"] for a in result.get("arms") or [] if a["arm"] != result.get("reference") and a["arm"] in styles]
    pairs, figures = list(itertools.combinations(arms, 2)), []
    names = slugs((f"{a} {b}" for a, b in pairs), slugs(found).values())
    for a, b in pairs:
        shared = {obj: _pp(curves[a], curves[b]) for obj, curves in found.items() if a in curves and b in curves}
        if not shared:
            continue
        if len(shared) > 1:
            mean = _macro({obj: {arm: found[obj][arm] for arm in (a, b)} for obj in shared})
            shared[MACRO] = _pp(mean[a], mean[b])

        def draw(ax: Axes, a: str = a, b: str = b, shared: Mapping[str, tuple[Floats, ...]] = shared) -> None:
            _square(ax, f"{a}: done by t, %", f"{b}: done by t, %", "")
            for obj, (_, x, y) in shared.items():
                thick = obj == MACRO or len(shared) == 1
                ax.plot(100 * x, 100 * y, color="#000000" if thick else MUTED, linewidth=1.9 if thick else 0.8)

        rows = [
            (a, b, obj, f"{t:.6g}", f"{x:.6g}", f"{y:.6g}")
            for obj, xyz in shared.items()
            for t, x, y in zip(*xyz, strict=True)
        ]
        text = to_csv(("a", "b", "object", "t_s", "f_a", "f_b"), rows)
        figures.append(make(f"pp-{names[f'{a} {b}']}", f"{b} against {a}", (3.1, 3.1), draw, text))
    return figures


def _square(ax: Axes, x: str, y: str, title: str) -> None:
    ax.plot((0, 100), (0, 100), color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    ax.set(xlim=(0, 102), ylim=(0, 102), xlabel=x, ylabel=y)
    ax.set_aspect("equal")
    ax.set_title(title)


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


def _macro(found: Mapping[str, Mapping[str, Curve]]) -> dict[str, Curve]:
    """arm -> the mean of its curves over the objects it met, equal weights."""
    mean = {}
    for arm in dict.fromkeys(arm for curves in found.values() for arm in curves):
        own = [curves[arm] for curves in found.values() if arm in curves]
        times = np.unique(np.concatenate([t for t, _ in own]))
        mean[arm] = (times, np.mean([_read(curve, times) for curve in own], axis=0))
    return mean


def _read(curve: Curve, times: Floats) -> Floats:
    return curve[1][np.searchsorted(curve[0], times, side="right") - 1]


def _pp(reference: Curve, arm: Curve) -> tuple[Floats, ...]:
    """Times and both step functions at them, to the shorter of the two curves."""
    end = min(reference[0][-1], arm[0][-1])
    times = np.union1d(reference[0], arm[0])
    times = times[times <= end]
    return times, _read(reference, times), _read(arm, times)


def _label_ends(ax: Axes, x: float, ends: Sequence[tuple[float, str, str]], gap: float = 8.0) -> None:
    """Names at the right end of their curves, pushed apart so that none overlaps; `gap` is in units of y."""
    placed: list[tuple[float, str, str]] = []
    for y, arm, colour in sorted(ends):
        placed.append((max(y, placed[-1][0] + gap) if placed else y, arm, colour))
    excess = max(0.0, placed[-1][0] - 100.0) if placed else 0.0
    for y, arm, colour in placed:
        at = (x, y - excess)
        ax.annotate(arm, at, (5, 0), textcoords="offset points", va="center", color=colour, annotation_clip=False)


def _curve_csv(
    obj: str, curves: Mapping[str, Curve], bands: Mapping[str, Band], risk: Mapping[str, Sequence[Ints]]
) -> str:
    rows = []
    for arm, (t, f) in curves.items():
        band = bands.get(arm)
        for x, y in zip(t, f, strict=True):
            ends = ("", "")
            if band is not None:
                i = max(0, int(np.searchsorted(band[0], x, side="right")) - 1)
                ends = (f"{band[1][i]:.6g}", f"{band[2][i]:.6g}")
            left = str(sum(at_risk(times, x) for times in risk[arm])) if arm in risk else ""
            rows.append((obj, arm, f"{x:.6g}", f"{y:.6g}", *ends, left))
    return to_csv(("object", "arm", "t_s", "f", "f_low", "f_high", "at_risk"), rows)
