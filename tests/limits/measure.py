"""What the verbs cost in labs of several sizes: seconds of CPU, peak memory, sizes of files; kept in figures.json.

python -P tests/limits/measure.py WORK [--episodes 100 1000 10000] [--items 0 128] [--verbs status episodes ...]

WORK gets a demo, a lab of every size and what the verbs write, each removed when it was measured (--keep: not). CPU is
user and system time of the verb and of every process it waited for; memory the largest resident set of any of them.
Figures of a size and verb measured again replace the earlier ones.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from made_lab import made

FIGURES = Path(__file__).with_name("figures.json")
LABCTL = [str(Path(sys.executable).parent / "labctl")]
OUT, NAME = "{out}", "limits"
VERBS: dict[str, list[str]] = {
    "status": ["status"],
    "episodes": ["episodes", NAME],
    "episodes --json": ["episodes", NAME, "--json"],
    "episodes --page": ["episodes", NAME, "--page", OUT + ".html"],
    "status --hours": ["status", NAME, "--hours"],
    "export --to table": ["export", NAME, "--to", "table", "--out", OUT + ".csv"],
    "export --where": ["export", NAME, "--to", "table", "--where", "outcome=failure", "--out", OUT + ".csv"],
    "export --to episodes": ["export", NAME, "--to", "episodes", "--out", OUT + ".csv"],
    "verify": ["verify", NAME],
    "report": ["report", NAME, "--out", OUT],
    "publish": ["publish", NAME, "--licence", "CC-BY-4.0", "--out", OUT],
}
"""A name in the page -> what is typed."""


@dataclass(frozen=True)
class Cost:
    """Of one command: CPU and wall time in s, largest resident set in MB, and its exit code."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    exit: int


def cost(command: list[str], cwd: Path, log: Path) -> Cost:
    """Run a command to its end."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.chdir(cwd)
        to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, 1), os.dup2(to, 2)
        os.execv(command[0], command)
    _, status, used = os.wait4(pid, 0)
    wall_s = time.monotonic() - begun
    code = os.waitstatus_to_exitcode(status)
    return Cost(round(used.ru_utime + used.ru_stime, 2), round(wall_s, 2), round(used.ru_maxrss / 1024, 1), code)


def sizes(lab: Path) -> dict[str, float]:
    """MB of what a campaign of the lab consists of."""
    folder = lab / "campaigns" / NAME
    found = {name: (folder / name).stat().st_size for name in ("journal.db", "traces.db", "seal/traces.db")}
    found["video"] = sum(path.stat().st_size for path in (folder / "video").rglob("*") if path.is_file())
    return {name: round(size / 1e6, 1) for name, size in found.items()}


def keep(size: str, more: dict[str, Any]) -> None:
    """Add figures of a size to what is kept."""
    kept = json.loads(FIGURES.read_text("utf-8")) if FIGURES.is_file() else {}
    kept.setdefault(size, {}).update(more)
    FIGURES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("work", type=Path)
    asked.add_argument("--episodes", type=int, nargs="*", default=[100, 1000, 10_000])
    asked.add_argument("--items", type=int, nargs="*", default=[128])
    asked.add_argument("--verbs", nargs="*", choices=VERBS, default=list(VERBS), metavar="VERB")
    asked.add_argument("--keep", action="store_true", help="the labs, for another time")
    given = asked.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    template = work / "demo"
    if not template.is_dir():
        found = cost([*LABCTL, "demo", "--dir", str(template)], work, work / "demo.log")
        assert found.exit == 0, (work / "demo.log").read_text("utf-8")
    for items in given.items:
        for episodes in given.episodes:
            measure(work, template, episodes, items, given.verbs, kept=given.keep)
    return 0


def measure(work: Path, template: Path, episodes: int, items: int, verbs: list[str], *, kept: bool) -> None:
    """One size: make its lab, and each verb once."""
    name = f"{episodes} episodes of {items or 4} items"
    lab = work / f"lab-{episodes}-{items}"
    if not (lab / "made").is_file():
        shutil.rmtree(lab, ignore_errors=True)
        begun = time.process_time()
        made(template, lab, episodes, items)
        (lab / "made").touch()
        keep(name, {"made_cpu_s": round(time.process_time() - begun, 1)})
    keep(name, {"size": episodes, "items": items or 4, "mb": sizes(lab)})
    for verb in verbs:
        out = work / f"out-{episodes}-{items}"
        found = cost([*LABCTL, *(word.replace(OUT, str(out)) for word in VERBS[verb])], lab, work / "last.log")
        load = round(os.getloadavg()[0], 1)
        print(f"{name}: {verb}: {found.cpu_s} s of CPU, {found.wall_s} s, {found.peak_mb} MB, load {load}", flush=True)
        if found.exit:
            print((work / "last.log").read_text("utf-8")[-1000:], flush=True)
        keep(name, {verb: {"cpu_s": found.cpu_s, "peak_mb": found.peak_mb, "load": load, "exit": found.exit}})
        for path in work.glob(out.name + "*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not kept:
        shutil.rmtree(lab)


if __name__ == "__main__":
    raise SystemExit(main())
