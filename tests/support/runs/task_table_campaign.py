"""Campaigns of the protocol of `labctl demo --tasks`, of any size, in the simulated cell without cameras."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path

from labctl.cli.demo import last_ns
from labctl.clock import SECOND, ManualClock
from labctl.exports.writing import Request, export_campaign
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Opened, close_campaign, freeze_campaign, open_campaign, unblind_campaign
from support.runs.campaigns import ROOT


def open_table(lab: Path, *, blocks: int, conditions: Sequence[str] = (), weak: str = "S-LANG") -> Opened:
    """Open it; conditions: those kept, all without; weak: where policy-b is."""
    for folder in ("protocols", "fixtures", "cells", "campaigns"):
        (lab / folder).mkdir(exist_ok=True, parents=True)
    (lab / "lab.toml").touch()
    (lab / "fixtures/task_table.toml").write_text((ROOT / "fixtures/task_table.toml").read_text("utf-8"), "utf-8")
    text = (ROOT / "protocols/demo_tasks.toml").read_text("utf-8")
    kept, arms = text.split("[[arm]]", 1)
    for table in ("[[condition]]" + part for part in kept.split("[[condition]]")[1:]):
        if conditions and table.split('"')[1] not in conditions:
            kept = kept.replace(table, "")
    for task in ("[[task]]" + part for part in kept.split("[[condition]]")[0].split("[[task]]")[1:]):
        name = task.split('"')[1]
        if f'task = "{name}"' not in kept:
            kept = kept.replace(task, "")
    arms = arms.replace('weak = ["S-LANG"]', f'weak = ["{weak}"]\ntrained = ["towels", "wooden spoons", "scissors"]')
    kept = kept.replace("blocks_per_condition = 8 ", f"blocks_per_condition = {blocks} ")
    (lab / "protocols/p.toml").write_text(f"{kept}[[arm]]{arms}", "utf-8")
    cell = (
        (ROOT / "labctl/templates/demo_cell.toml").read_text("utf-8").replace("min_free_gb = 1.0", "min_free_gb = 0.01")
    )
    (lab / "cells/c.toml").write_text(cell[: cell.index("[[camera]]")] + cell[cell.index("[video]") :], "utf-8")
    entropy = hashlib.sha256(b"task-table").digest()
    anchor = ManualClock(0).anchor()
    return open_campaign(
        lab / "protocols/p.toml", lab / "cells/c.toml", lab, entropy=entropy, anchor=anchor, who="tester"
    )


def run_to_table(folder: Path, table: Path) -> list[dict[str, str]]:
    """Run, close, freeze, unblind; the rows of its episodes table, which is written as `table`."""
    assert run_campaign(folder, lambda *line: None)
    anchor = ManualClock(last_ns(folder) + SECOND).anchor()
    close_campaign(folder, who="tester", anchor=anchor)
    freeze_campaign(folder, who="tester", anchor=anchor, unreviewed=True)
    unblind_campaign(folder, who="tester", anchor=anchor)
    export_campaign(folder, Request("episodes", table), lambda line: None)
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
