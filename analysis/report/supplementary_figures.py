"""Figures beside the headline ones: quantiles against quantiles, the sweep of allowed time, RMST over the campaign.

May not: compute what it draws, or look different from `figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labctl.analysis.report.figures import MUTED, Figure, Look, make, slugs, to_csv
from labctl.analysis.supplement_result import MoreOfArm, Quantiles, Supplement, Swept, Trend, TrendInCell
from labctl.analysis.table import in_cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def qq_figures(found: Supplement, styles: Mapping[str, Look], reference: str) -> list[Figure]:
    """One figure per object: seconds by which the reference, and an arm, had done the same share."""
    made = []
    for obj, name in slugs(dict.fromkeys(cell["object"] for cell in found["cells"])).items():
        own = [(cell["arm"], cell.get("qq")) for cell in found["cells"] if cell["object"] == obj]
        plots = {arm: qq for arm, qq in own if qq and qq["q"]}
        if not plots:
            continue

        def draw(ax: Axes, obj: str = obj, plots: Mapping[str, Quantiles] = plots) -> None:
            top = max(max(qq["arm_t"][-1], qq["reference_t"][-1]) for qq in plots.values()) * 1.06
            ax.plot((0, top), (0, top), color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
            for arm, qq in plots.items():
                look = styles[arm]
                ax.plot(qq["reference_t"], qq["arm_t"], color=look.colour, linestyle=look.linestyle, linewidth=1.7)
                ax.plot(qq["reference_t"][-1], qq["arm_t"][-1], "o", mfc="white", mec=look.colour, markersize=5)
            ax.set(xlim=(0, None), ylim=(0, top), xlabel=f"{reference}, s", ylabel="arm, s")
            ax.set_title(obj)

        rows = [
            (obj, arm, f"{q:.6g}", f"{x:.6g}", f"{y:.6g}")
            for arm, qq in plots.items()
            for q, x, y in zip(qq["q"], qq["reference_t"], qq["arm_t"], strict=True)
        ]
        text = to_csv(("object", "arm", "share", "reference_s", "arm_s"), rows)
        made.append(make(f"qq-{name}", obj, (3.1, 3.1), draw, text))
    return made


def sweep_figures(found: Supplement, styles: Mapping[str, Look]) -> list[Figure]:
    """One figure per object: items per hour against seconds between failures, as the time allowed grows to the budget.

    Solid: what was not done is charged the time allowed. Thin with open circles: the paper's, of successes only.
    Nothing done is drawn at the lower edge, F = 100 % (MTBF/A infinite) at the right one: no arm is left out.
    """
    made = []
    for obj, name in slugs(dict.fromkeys(cell["object"] for cell in found["cells"])).items():
        lines: dict[str, Swept] = {
            c["arm"]: c["sweep"] for c in found["cells"] if c["object"] == obj and c.get("sweep")
        }
        if not lines:
            continue
        both = [v for s in lines.values() for v in map(_finite, [*s["charged"], *s["uph"]]) if v]
        apart = [v for sweep in lines.values() for v in map(_finite, sweep["mtbf"]) if v]
        floor = min(both, default=1.0) / 1.8
        edge = max(apart, default=float(next(iter(lines.values()))["tau"][-1])) * 2.5
        endless = any(v == "inf" for sweep in lines.values() for v in sweep["mtbf"])
        nothing = any(v == 0 for sweep in lines.values() for v in sweep["charged"])

        def draw(
            ax: Axes,
            obj: str = obj,
            lines: Mapping[str, Swept] = lines,
            at: tuple[float, float, bool, bool] = (floor, edge, endless, nothing),
        ) -> None:
            from matplotlib.ticker import LogLocator, NullLocator

            floor, edge, endless, nothing = at
            ends = {}
            for arm, sweep in lines.items():
                look = styles[arm]
                x = np.array([edge if v == "inf" else v for v in sweep["mtbf"]], float)
                paper = np.array([np.nan if v is None else v for v in map(_finite, sweep["uph"])], float)
                charged = np.array([v or floor for v in map(_finite, sweep["charged"])], float)
                ax.plot(x, paper, color=look.colour, linewidth=0.8, marker="o", mfc="white", markersize=2.6)
                ax.plot(
                    x, charged, color=look.colour, linestyle=look.linestyle, linewidth=1.6,
                    marker=look.mark or ".", markersize=3.4,
                )  # fmt: skip
                ends[arm] = (x[-1], charged[-1])
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set(xlabel="seconds between failures (MTBF/A)", ylabel="items per hour")
            for which, shown in ((ax.xaxis, edge if endless else None), (ax.yaxis, floor if nothing else None)):
                which.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                which.set_major_formatter(_plain_number)
                which.set_minor_locator(NullLocator())
                if shown is not None:
                    (ax.axvline if which is ax.xaxis else ax.axhline)(shown, color=MUTED, linewidth=0.8, linestyle=":")
            if endless:
                ax.annotate("F(t) = 100 %", (edge, 1), (-3, -2), xycoords=ax.get_xaxis_transform(),
                            textcoords="offset points", ha="right", va="top", fontsize=7.5, color=MUTED)  # fmt: skip
            if nothing:
                ax.annotate("nothing done", (1, floor), (-2, 3), xycoords=ax.get_yaxis_transform(),
                            textcoords="offset points", ha="right", fontsize=7.5, color=MUTED)  # fmt: skip
            for arm, end in ends.items():
                ax.annotate(arm, end, (6, 0), textcoords="offset points", va="center", color=styles[arm].colour)
            ax.set_title(obj)

        rows = [
            (obj, arm, f"{t:g}", *("" if v is None else v if isinstance(v, str) else f"{v:.6g}" for v in values))
            for arm, sweep in lines.items()
            for t, *values in zip(sweep["tau"], sweep["charged"], sweep["uph"], sweep["mtbf"], strict=True)
        ]
        head = ("object", "arm", "tau_s", "uph_charged", "uph_successes_only", "mtbf_s")
        made.append(make(f"sweep-{name}", obj, (4.9, 3.3), draw, to_csv(head, rows)))
    return made


def _plain_number(value: float, _: float) -> str:
    return f"{value:g}"


def trend_figure(arms: Sequence[MoreOfArm], styles: Mapping[str, Look]) -> Figure | None:
    """RMST of every block in order, arm by arm, with its slope; of several cells one after the other, each with the
    slope that it has there.
    """
    trends = [trend for arm in arms if (trend := arm["trend"])]
    if not trends:
        return None
    cells = {arm["arm"]: found for arm in arms if (found := arm.get("trend_by_cell")) is not None}

    def draw(ax: Axes) -> None:
        for trend in trends:
            look = styles[trend["arm"]]
            x, y = np.array(trend["order"], float), np.array([_finite(v) for v in trend["rmst"]], float)
            ax.plot(x + 1, y, color=look.colour, linestyle="none", marker=look.mark or "o", markersize=3.5)
            for there, slope in _lines(trend, cells.get(trend["arm"])):
                if there.sum() > 2 and slope is not None:
                    ends = np.array([x[there].min(), x[there].max()])
                    level = float(np.nanmean(y[there])) + slope * (ends - x[there].mean())
                    ax.plot(ends + 1, level, color=look.colour, linestyle=look.linestyle, linewidth=1.2)
        order = "block, in the order of the campaign"
        order = "block, in the order of each cell, one cell after the other" if cells else order
        ax.set(xlabel=order, ylabel="RMST, s", ylim=(0, None))

    rows = [
        (trend["arm"], obj, block, str(order), f"{rmst:.6g}")
        for trend in trends
        for order, obj, block, rmst in zip(trend["order"], trend["object"], trend["block"], trend["rmst"], strict=True)
    ]
    return make(
        "trend", "RMST over the campaign", (7.4, 3.0), draw, to_csv(("arm", "object", "block", "order", "rmst_s"), rows)
    )


def _lines(trend: Trend, cells: Sequence[TrendInCell] | None) -> list[tuple[np.ndarray, float | None]]:
    """Which blocks (n,) a line is drawn over, and its slope: one over all, or one in each cell."""
    if cells is None:
        return [(np.ones(len(trend["order"]), dtype=bool), trend["slope"])]
    return [
        (np.array([obj.endswith(in_cell("", one["cell"])) for obj in trend["object"]]), one["slope"]) for one in cells
    ]


def _finite(value: float | str | None) -> float | None:
    return None if value is None or isinstance(value, str) else float(value)
