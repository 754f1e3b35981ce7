"""A site of many published campaigns: what `labctl site` costs, its size, and how long a browser takes with it.

python -P tests/limits/many_campaigns.py WORK [--campaigns 100] [--linked 10] [--rerun-mb 0] [--figures]

Each campaign is simulated: a person and a policy, four episodes without pictures. Of LINKED in a row the first is
extended by all others through the person, so that each such row is a leaderboard. Campaigns that lie in WORK already
are not made again. With --figures what was measured is kept in site.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from measure import LABCTL, cost
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.screens.browser import browsing, chromium

from labctl.clock import SECOND, cpu_ns
from labctl.publishing.publish import Request, publish
from labctl.runtime.campaign_run import run_campaign

KEPT = Path(__file__).with_name("site.json")
SKILLS = ("swift", "steady", "slow", "clumsy")
DRAWS = 999  # of each campaign's bootstrap and label swaps
LOADED = (
    "(e => e && e.loadEventEnd ? [e.loadEventEnd, document.querySelectorAll('*').length] : null)"
    "(location.protocol === 'file:' ? performance.getEntriesByType('navigation')[0] : null)"
)


def published(work: Path, number: int, linked: int) -> Path:
    """Campaign `number`, run and published; where it is."""
    name = f"c-{number:03}"
    out = work / "published" / name
    if out.is_dir():
        return out
    first = number - number % linked
    folder = make_campaign(
        work / "lab",
        [HUMAN, policy(f"policy-{number:03}", skill=SKILLS[number % len(SKILLS)])],
        name=name,
        blocks=2,
        items=2,
        budget=20.0,
        extends=None if number == first else work / "lab" / "campaigns" / f"c-{first:03}",
        anchors=() if number == first else ("human",),
    ).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    publish(folder, out, Request("CC-BY-4.0", boot=DRAWS, perm=DRAWS))
    return out


def looked_at(site: Path) -> dict[str, Any]:
    """Of each page until its load event, s, and how many elements it has, in Chromium from the disk."""
    found = {}
    for name in ("index.html", "runs.html"):
        with browsing() as page:
            page.open((site / name).as_uri())
            while (seen := page.value(LOADED)) is None:
                page.rest(0.2)
            loaded_ms, elements = seen
        size = (site / name).stat().st_size / 1e6
        found[name] = {"loaded_s": round(loaded_ms / 1e3, 2), "elements": elements, "mb": round(size, 2)}
    return found


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("work", type=Path)
    asked.add_argument("--campaigns", type=int, default=100)
    asked.add_argument("--linked", type=int, default=10)
    asked.add_argument("--rerun-mb", type=int, default=0)
    asked.add_argument("--figures", action="store_true", help="keep them for docs/limits.md")
    given = asked.parse_args()
    work, began_ns = given.work.resolve(), cpu_ns()
    folders = [published(work, number, given.linked) for number in range(given.campaigns)]
    print(f"{len(folders)} campaigns, {(cpu_ns() - began_ns) / SECOND:.0f} s of CPU in this process", flush=True)
    site = work / "site"
    shutil.rmtree(site, ignore_errors=True)
    words = ["site", *map(str, folders), "--out", str(site), "--rerun-mb", str(given.rerun_mb)]
    used = cost([*LABCTL, *words], work, work / "site.log")
    print((work / "site.log").read_text("utf-8")[-600:], flush=True)
    files = [path for path in site.rglob("*") if path.is_file()]
    found: dict[str, Any] = {
        "campaigns": len(folders),
        "rerun_mb": given.rerun_mb,
        "site": {"cpu_s": used.cpu_s, "peak_mb": used.peak_mb, "exit": used.exit},
        "mb": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "files": len(files),
        "load": round(os.getloadavg()[0], 1),
        "browser": looked_at(site) if chromium() and not used.exit else None,
    }
    print(json.dumps(found, indent=1))
    if given.figures:
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
        kept[str(len(folders))] = found
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    return used.exit


if __name__ == "__main__":
    raise SystemExit(main())
