"""What the compiled kernel buys `labctl analyze` from table to JSON, at the paper's size and at a million operations.

CPU seconds of the whole process, reading included, the library already made; decisions 22 and 37 rest on the ratios.
The cost is linear in the replicates: at a million operations the default 9,999 lie on the line through two smaller
runs.
"""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.statistics.cohorts import cohort

from labctl.analysis.table import GHOST, KINDS, NS

pytestmark = [pytest.mark.benchmark, pytest.mark.limit(86_400)]
DEFAULT = 9_999
NAMES = {code: name for name, code in KINDS.items()}
ANALYZE = "import sys; from labctl.cli import main; main(sys.argv[1:])"


def written(path: Path, episodes: int, human: int) -> Path:
    with path.open("w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(("episode", "arm", "object", "kind", "time_s", "items_staged", "budget_s"))
        for (arm, obj), cell in cohort(np.random.default_rng(0), episodes, human=human).items():
            times = np.where(cell.kind == GHOST, cell.ghost_ns, cell.durations.time_ns) / NS
            for kind, time, episode in zip(cell.kind, times, cell.durations.episode, strict=True):
                rows.writerow((f"{arm}-{obj}-{episode}", arm, obj, NAMES[kind], f"{time:.6f}", 6, 360))
    return path


def cpu_s(table: Path, replicates: int, *, compiled: bool) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["--reference", "human", "--tau", "240", "--boot", str(replicates), "--perm", str(replicates), "--json"]
    told = os.environ if compiled else {**os.environ, "CC": "no-such-compiler"}
    command = [sys.executable, "-c", ANALYZE, "analyze", str(table), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=told)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_at_the_papers_size(tmp_path: Path) -> None:
    table = written(tmp_path / "paper.csv", 37, 99)
    cpu_s(table, 99, compiled=True)
    print()
    for replicates in (1_000, DEFAULT):
        compiled, plain = (cpu_s(table, replicates, compiled=made) for made in (True, False))
        print(f"  {replicates} replicates: compiled {compiled:.1f} s, numpy {plain:.1f} s, {plain / compiled:.1f} ×")


def test_at_a_million_operations(tmp_path: Path) -> None:
    table = written(tmp_path / "million.csv", 12_500, 12_500)
    few, more = 16, 64
    fixed, each = {}, {}
    for made in (True, False):
        low, high = (cpu_s(table, replicates, compiled=made) for replicates in (few, more))
        each[made] = (high - low) / (more - few)
        fixed[made] = low - few * each[made]
    compiled, plain = (fixed[made] + DEFAULT * each[made] for made in (True, False))
    print(f"\n  a replicate: compiled {each[True]:.2f} s, numpy {each[False]:.2f} s, {each[False] / each[True]:.1f} ×")
    print(f"  {DEFAULT} replicates: compiled {compiled:.0f} s, numpy {plain:.0f} s, {plain / compiled:.1f} ×")
