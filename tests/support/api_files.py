"""What the pages on `labctl.api` assume beside them: two tables, and a campaign that was recorded long ago."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "campaigns" / "at_88dea84" / "lab"
NOTEBOOK = ROOT / "docs" / "notebooks" / "first_look.ipynb"
# The recipes of docs/api.md by their numbers.
RECIPES = dict(re.findall(r"^### (\d+)\. .*?```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.M | re.S))
MEAN_S = {"human": 8.0, "pi0": 14.0, "act": 26.0}


def operations() -> list[dict[str, object]]:
    """Three arms on two objects in six blocks: three items within 60 s, exponential times per item."""
    rng, rows = np.random.default_rng(7), list[dict[str, object]]()
    for block in range(12):
        for arm, mean in MEAN_S.items():
            same = {"episode": f"{arm}-{block}", "arm": arm, "object": ("towel", "cup")[block % 2]}
            same |= {"block": str(block), "budget_s": 60, "items_staged": 3}
            left = 60.0
            for _ in range(3):
                time = round(float(rng.exponential(mean)), 3)
                done = time < left
                rows.append({**same, "kind": "success" if done else "censored", "time_s": time if done else left})
                left = round(left - time, 3)
                if not done:
                    break
    return rows


def episodes() -> list[dict[str, object]]:
    """Two arms in eight blocks, with a score."""
    rng = np.random.default_rng(8)
    rows = [(block, arm, rng.random() < chance) for block in range(8) for arm, chance in (("pi0", 0.8), ("act", 0.3))]
    return [{"block": b, "arm": arm, "success": int(done), "score": 1.0 if done else 0.5} for b, arm, done in rows]


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def lay_tables(folder: Path) -> None:
    """operations.csv and episodes.csv."""
    write(folder / "operations.csv", operations())
    write(folder / "episodes.csv", episodes())


def lay_campaign(folder: Path) -> Path:
    """A lab in `lab/` with a campaign whose arms are sealed; returns the campaign's folder."""
    shutil.copytree(RECORDED, folder / "lab")
    own = folder / "lab" / "campaigns" / "old"
    for path in (own / "seal").iterdir():
        path.chmod(0o600)
    (own / "seal").chmod(0o700)
    own.chmod(0o700)
    return own
