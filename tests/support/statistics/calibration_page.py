"""Runs the studies of docs/statistics-calibration.md, keeps their figures with what made them, and writes its tables.

    make calibration                          every study whose figures are not those of the page's runs, then the page
    make calibration STUDIES="looks margins"  those again
    make calibration RUNS=200                 fewer runs of each
    make calibration WORKERS=4                that many studies at once; CLUSTER=tcp://10.0.0.5:8786 on a Dask cluster,
                                              whose workers have this checkout's tests on their PYTHONPATH

Each run of a study has a number, which is its seed: where a study is done changes no figure.

Figures lie in docs/statistics-calibration.json, a study at a time, so that what was cut off goes on where it stopped.
A table of the page stands between two comments that name its study; the words around it are written by hand.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labctl.pieces import Place, each
from support.statistics.studies import STUDIES

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "statistics-calibration.md"
STORE = ROOT / "docs" / "statistics-calibration.json"
PLACE = re.compile(r"(<!-- study (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
Figures = dict[str, Any]


def measured(name: str, runs: int | None) -> Figures:
    """The figures of one study, with what they are of: runs, first number, commit, CPU seconds."""
    study = STUDIES[name]
    count, began = min(runs or study.runs, study.runs), time.process_time()
    columns = study.table(range(study.first, study.first + count))
    spent = round(time.process_time() - began)
    return {"runs": count, "first": study.first, "commit": commit(), "cpu_s": spent, "columns": _plain(columns)}


def commit() -> str:
    """The commit that is checked out, with + where other files than figures and page differ; "" where there is none."""
    head = _git("rev-parse", "--short=8", "HEAD")
    return head + ("+" if head and _git("status", "--porcelain", "-uno", "--", ".", f":!docs/{PAGE.stem}.*") else "")


def _git(*words: str) -> str:
    ask = ["git", "-C", str(ROOT), *words]
    return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()


def _plain(columns: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {row: round(float(v), 6) for row, v in rows.items()} for name, rows in columns.items()}


def written(page: str, store: Mapping[str, Figures]) -> str:
    """The page with the table of every study that has figures; a place of another name is a mistake."""
    names = {found["name"] for found in PLACE.finditer(page)}
    if unknown := names - STUDIES.keys():
        raise SystemExit(f"the page has a place for {sorted(unknown)[0]}; studies are {', '.join(STUDIES)}")

    def put(place: re.Match[str]) -> str:
        name = place["name"]
        return place[0] if name not in store else f"{place[1]}{table(name, store[name])}{place[3]}"

    return PLACE.sub(put, page)


def table(name: str, found: Figures) -> str:
    """One study as Markdown: what it says, its rows and columns, and what made it. Few rows lie down."""
    columns: dict[str, dict[str, float]] = found["columns"]
    rows = list(dict.fromkeys(row for values in columns.values() for row in values))
    if len(columns) > len(rows):
        columns, rows = {row: {c: v[row] for c, v in columns.items() if row in v} for row in rows}, list(columns)
    lines = [STUDIES[name].says, "", f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    lines += [f"| {row} | {' | '.join(_cell(values.get(row)) for values in columns.values())} |" for row in rows]
    first, last = found["first"], found["first"] + found["runs"] - 1
    spent = f", {found['cpu_s']:,} s of CPU" if found["cpu_s"] else ""
    made = f"Runs {first:,} to {last:,} at {found['commit'] or 'no commit'}{spent}"
    if STUDIES[name].shares:
        made += f"; one Monte-Carlo error is {_cell(math.sqrt(0.05 * 0.95 / found['runs']))} at .05 and .95"
    return "\n".join([*lines, "", f"*{made}; `make calibration STUDIES={name}`.*", ""])


def _cell(value: float | None) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if abs(value) > 1 else f"{value:.4f}".replace("0.", ".", 1)


def main(words: list[str] | None = None) -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("studies", nargs="*", metavar="STUDY", help="run these again, figures or not")
    asked.add_argument("--runs", type=int, help="of each study, at most")
    asked.add_argument("--workers", type=int, help="studies at once [default: 1]")
    asked.add_argument("--cluster", help="do them on the workers of this Dask scheduler")
    asked.add_argument("--quick", action="store_true", help="two runs of each: whether it works")
    asked.add_argument("--only-page", action="store_true", help="write the page from the figures that are there")
    asked.add_argument("--page", type=Path, default=PAGE)
    asked.add_argument("--store", type=Path, default=STORE)
    told = asked.parse_args(words)
    if unknown := [name for name in told.studies if name not in STUDIES]:
        asked.error(f"no study {unknown[0]!r}; there are {', '.join(STUDIES)}")
    store: dict[str, Figures] = json.loads(told.store.read_text()) if told.store.exists() else {}
    runs = 2 if told.quick else told.runs
    due = told.studies or [
        name for name in STUDIES if name not in store or store[name]["runs"] < (runs or STUDIES[name].runs)
    ]
    due, place = [] if told.only_page else due, Place(told.workers, told.cluster)
    for name, found in zip(due, each(place, measured, [(n, runs) for n in due], 1, told.store.parent), strict=True):
        store[name] = found
        _replace(told.store, json.dumps({n: store[n] for n in STUDIES if n in store}, indent=1) + "\n")
        print(f"{name}: {store[name]['runs']} runs, {store[name]['cpu_s']} s of CPU", flush=True)
    _replace(told.page, written(told.page.read_text(), store))


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


if __name__ == "__main__":
    main(sys.argv[1:])
