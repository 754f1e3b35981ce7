"""An episodes table in which every column is filled, and docs/gallery.md drawn from it and from the real blocks.

    python tests/support/statistics/gallery.py     (make gallery) draws docs/gallery/ and the page anew; look at it

May not: be taken for a measurement. Its arms are simulated: `narrow` is weak where the wording changes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from labctl.analysis.blocks.added_latency import Delayed, lateness_of
from labctl.analysis.blocks.means import Draws
from labctl.analysis.episode_facts import Lateness
from labctl.analysis.episodes_report.page import build_page
from labctl.analysis.episodes_table.analyze import analyze
from labctl.analysis.episodes_table.cohort import Plan
from labctl.analysis.episodes_table.reading import read_episodes
from labctl.analysis.episodes_table.table import EpisodesTable, table_from_rows
from labctl.analysis.report.figures import Figure
from labctl.analysis.report.lab_facts import Lab

ROOT = Path(__file__).resolve().parents[3]
REAL = ROOT / "tests" / "unit" / "analysis" / "data" / "roboarena_blocks.csv"
PAGE, PICTURES = ROOT / "docs" / "gallery.md", ROOT / "docs" / "gallery"
ARMS = {"broad": 0.86, "narrow": 0.82, "slow": 0.7}
"""Arm -> chance of each of three stages under the base condition."""
TASKS = {
    "drawer": ("tidying; long", "train"), "towel": ("cloth", "train"), "cups": ("tidying", "train"),
    "lid": ("long", "test"), "spoon": ("tidying", "test"), "cable": ("cloth; long", "test"),
}  # fmt: skip
WORTH = {"drawer": 0.06, "towel": 0.0, "cups": 0.04, "lid": -0.08, "spoon": 0.0, "cable": -0.62}
AXES = ("", "S-LANG", "V-SC", "VB-POSE", "S-LANG+V-SC")
LEVELS = (
    *(("latency", f"v{k}", "", -0.02 - 0.3 * (k > 2)) for k in (1, 2, 3, 4)),
    *(("spatial", "", d, -0.16 * k) for k, d in enumerate(("easy", "medium", "hard"))),
    *(("light", f"v{k}", "", -0.05 * k) for k in (1, 2)),
)
ADDED_S = {"v1": 0.1, "v2": 0.2, "v3": 0.4, "v4": 0.8}
BUDGET_S = 90.0


def everything(sets: int = 30, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of every column: `sets` sets of a base, four perturbations and nine levels, all arms in each block."""
    rng, of_light = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    rows: list[dict[str, Any]] = []
    for at in range(sets):
        task = list(TASKS)[at % len(TASKS)]
        site = f"site-{at % 5 + 1}"
        same = {"set": f"set-{at}", "task": task, "tags": TASKS[task][0], "split": TASKS[task][1], "site": site}
        same |= {"evaluator": f"e{at % 10}", "session": f"evening-{at // 6}", "instruction": f"the {task} task"}
        luck = 0.08 * rng.standard_normal() + WORTH[task]
        for axis in AXES:
            more = {"condition": f"{task} {axis or 'plain'}", "base": f"{task} plain" if axis else "", "axis": axis}
            rows += _block(f"{at}-{axis or 'plain'}", {**same, **more}, luck, axis, rng)
        for family, stress, difficulty, cost in LEVELS:
            level = stress or difficulty
            more = {"condition": f"{task} {family} {level}", "base": f"{task} plain", "family": family}
            more |= {"stress": stress, "difficulty": difficulty}
            drawn = of_light if family == "light" else rng
            rows += _block(f"{at}-{family}-{level}", {**same, **more}, luck + cost, "", drawn)
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column, "") for column in columns} for row in rows]


def _block(name: str, same: dict[str, Any], luck: float, axis: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    order = rng.permutation(list(ARMS)).tolist()
    rows = []
    for place, arm in enumerate(order, 1):
        chance = ARMS[arm] + luck - 0.45 * (arm == "narrow" and "S-LANG" in axis) - 0.03 * ("V-SC" in axis)
        reached = 0
        while reached < 3 and rng.random() < np.clip(chance, 0.02, 0.98):
            reached += 1
        pace = 1.6 if arm == "slow" else 1.0
        times = np.cumsum(pace * rng.gamma(6.0, 2.2, 3))[:reached].round(2).tolist()
        done = reached == 3 and times[-1] < BUDGET_S
        times = [t for t in times if t < BUDGET_S]
        reached = len(times)
        row = {"block": name, "arm": arm, **same, "position": place, "success": int(done), "stage": reached}
        row |= {f"stage_{k}_s": times[k - 1] if k <= reached else "" for k in (1, 2, 3)}
        row |= {"score": (0.0, 0.25, 0.75, 1.0)[reached], "budget_s": BUDGET_S}
        rows.append({**row, "time_s": times[-1] if done else BUDGET_S, "compared": f"{order[0]}|{order[1]}"})
    first, second = (row["score"] + 0.15 * rng.standard_normal() for row in rows[:2])
    said = "tie" if abs(first - second) < 0.15 else order[0] if first > second else order[1]
    return [{**row, "preferred": said} for row in rows]


def table_of_everything(sets: int = 30, seed: int = 0) -> EpisodesTable:
    """`everything` as a checked table."""
    return table_from_rows(everything(sets, seed), source="made-up episodes")


def delayed(rows: list[dict[str, Any]], seed: int = 0) -> Lateness:
    """What a campaign's report has of the rows of the latency levels beside their bases, as if traces had measured."""
    rng, found = np.random.default_rng(seed), []
    for row in rows:
        if row["family"] == "latency" or row["condition"].endswith(" plain"):
            added_s = ADDED_S.get(row["stress"], 0.0)
            measured_s = 0.12 + added_s + 0.03 * rng.random()
            found.append(Delayed(row["arm"], row["stress"] or "base", added_s, measured_s, row["score"], row["set"]))
    made = lateness_of(found, "score", 0.95, Draws(seed, 1999))
    assert made is not None
    return made


def sections(table: EpisodesTable, title: str, lab: Lab | None = None) -> list[tuple[str, list[Figure], str]]:
    """Every section of the report of a table that has pictures: its heading, those, its note."""
    page, _ = build_page(analyze(table, Plan(boot=1999, perm=1999)), title=title, lab=lab)
    return [(s.title, [*s.figures, *s.beside], s.note) for s in page["supplementary"] if s.figures]


def on_white(svg: str) -> str:
    """A picture that can be read on a dark page too."""
    end = svg.index(">", svg.index("<svg")) + 1
    return f'{svg[:end]}<rect width="100%" height="100%" fill="#ffffff"/>{svg[end:]}'


def _main() -> None:
    """Draw docs/gallery.md and its pictures."""
    made = (
        ("Made up, every column filled", table_of_everything(), "made", "Simulated: `narrow` is weak where the "
         "wording changes, `slow` takes longer, every arm fails with cables."),
        ("The 281 real blocks", read_episodes(REAL), "real", "RoboArena’s public data, cut to sessions of all seven "
         "policies; see [episodes](episodes.md)."),
    )  # fmt: skip
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    parts = [
        "# Gallery",
        "Every picture of a report of episodes (`labctl report EPISODES.csv --out DIR`), drawn by `make gallery`. In a "
        "report each stands beside its table, and its numbers are in `figures/`. A part is there only where the table "
        "has its columns. Pictures of a report of operations: [looking](looking.md), [statistics](statistics.md).",
    ]
    for heading, table, prefix, said in made:
        parts += [f"## {heading}", said]
        lab = Lab(lateness=delayed(everything())) if prefix == "made" else None
        for title, drawn, note in sections(table, heading, lab):
            parts.append(f"### {title}")
            for figure in drawn:
                name = f"{prefix}-{figure.name}.svg"
                (PICTURES / name).write_text(on_white(figure.svg), encoding="utf-8")
                parts.append(f"![{figure.title}](gallery/{name})")
            parts.append(note)
    PAGE.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    _main()
