"""The tables and the picture of docs/limits.md, from the figures that `measure.py` kept.

python -P tests/limits/page.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, PICTURE = ROOT / "docs" / "limits.md", ROOT / "docs" / "pictures" / "limits-growth.svg"
PLACE = re.compile(r"(<!-- figures -->\n).*?(<!-- end -->)", re.DOTALL)
Figures = dict[str, dict[str, Any]]


def table(kept: Figures) -> str:
    """A row for each verb: CPU and peak memory at each size."""
    sizes = sorted(kept.values(), key=lambda one: one["size"])
    lines = [
        "| | " + " | ".join(f"{one['size']:,} episodes" for one in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for name in ("journal.db", "traces.db", "video"):
        lines.append(f"| `{name}` | " + " | ".join(f"{one['mb'][name]:,.0f} MB" for one in sizes) + " |")
    for verb in verbs(kept):
        cells = [_cell(one.get(verb)) for one in sizes]
        lines.append(f"| `{verb}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def verbs(kept: Figures) -> list[str]:
    """Every verb that was measured, the cheapest first, by the smallest campaign it was measured of."""
    sizes = sorted(kept.values(), key=lambda one: one["size"], reverse=True)
    found = {verb: one[verb]["cpu_s"] for one in sizes for verb in one if _measured(one[verb])}
    return sorted(found, key=lambda verb: found[verb])


def _measured(value: Any) -> bool:
    return isinstance(value, dict) and "cpu_s" in value


def _cell(found: dict[str, float] | None) -> str:
    if found is None:
        return "not measured"
    return f"{found['cpu_s']:.1f} s, {found['peak_mb']:.0f} MB (load {found['load']:.0f})"


def drawn(kept: Figures) -> None:
    """CPU and memory by size, all by logarithm: a straight line of slope one grows with the size."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "limits"
    from matplotlib import pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    ends = [min(one["size"] for one in kept.values()), max(one["size"] for one in kept.values())]
    for axes, what, label, first in zip(both, ("cpu_s", "peak_mb"), ("CPU, s", "memory, MB"), (1, 30), strict=True):
        for number, verb in enumerate(verbs(kept)):
            of = sorted((one["size"], one[verb][what]) for one in kept.values() if verb in one)
            axes.plot(*zip(*of, strict=True), marker="os^D"[number % 4], color=f"C{number % 10}", label=verb)
        axes.plot(ends, [first * end / ends[0] for end in ends], "k:", label="with the size")
        axes.set(xscale="log", yscale="log", xlabel="episodes (about 100 operations each)", ylabel=label)
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    kept: Figures = json.loads(Path(__file__).with_name("figures.json").read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    PAGE.write_text(PLACE.sub(lambda place: place[1] + table(kept) + place[2], page), "utf-8")
    drawn(kept)


if __name__ == "__main__":
    main()
