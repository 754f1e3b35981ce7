"""From a campaign or a table to a report folder: verify, refuse, analyse, write.

May not: write a report over a broken record, before unblinding, or over episodes of mixed kinds.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from labctl import entry
from labctl.campaign import Campaign
from labctl.errors import StateError
from labctl.export import operations
from labctl.ledger import Ledger
from labctl.model import Protocol, parse_protocol
from labctl.report_facts import Told, facts, gather, refuse_mixed
from labctl.trial import Phase
from labctl.verify import read_events_or_refuse

BOOT = PERM = 9999


def report_campaign(folder: Path, out: Path, *, boot: int = BOOT, perm: int = PERM, seed: int = 0) -> Path:
    """Write the report of an unblinded campaign into `out`; return the path of its HTML page.

    Raises BrokenRecord when anything recorded does not hold, StateError before unblinding or for mixed kinds.
    """
    events = read_events_or_refuse(folder)
    with Campaign.open(folder) as campaign:
        if campaign.state.phase != Phase.UNBLINDED:
            steps = {
                "open": "close, freeze and unblind",
                "closed": "freeze and unblind",
                "reviewed": "freeze and unblind",
            }
            step = steps.get(str(campaign.state.phase), "unblind")
            raise StateError(f"campaign {folder.name} is {campaign.state.phase}; {step} it first")
        told = gather(events)
        refuse_mixed(told, folder.name)
        rows = operations(events)
        protocol = parse_protocol(Ledger.open(folder).protocol_text(), "protocol.toml")
        lab = _lab(campaign, protocol, told, out)
        analysis = protocol.analysis
    reference = analysis.reference if any(row["arm"] == analysis.reference for row in rows) else None
    return _write(rows, out, lab, folder.name, analysis.tau_s, reference, (boot, perm, seed))


def report_table(
    table: Path,
    out: Path,
    *,
    tau: float | None,
    reference: str | None,
    boot: int = BOOT,
    perm: int = PERM,
    seed: int = 0,
) -> Path:
    """Write the report of a bare operations table (CSV); it claims nothing of blinding. Raises TableError."""
    _, lines = entry.analysis("reading").read_csv(table)
    entry.analysis("reading").read_table(table)
    rows = [row for _, row in lines]
    return _write(rows, out, None, table.stem, tau, reference, (boot, perm, seed))


def _write(
    rows: list[Any],
    out: Path,
    lab: Any,
    title: str,
    tau: float | None,
    reference: str | None,
    sizes: tuple[int, int, int],
) -> Path:
    boot, perm, seed = sizes
    table = entry.analysis("table").table_from_rows(rows, source=title)
    result = entry.analysis("analyze").analyze(table, reference=reference, tau=tau, boot=boot, perm=perm, seed=seed)
    return entry.analysis("report").build_report(result, rows, out, lab=lab, title=title).html


def _lab(campaign: Campaign, protocol: Protocol, told: Told, out: Path) -> dict[str, Any]:
    arms = [arm.name for arm in protocol.arm]
    lab = facts(campaign.state, told, arms, alpha=protocol.analysis.alpha, robot=campaign.cell.robot.driver)
    for episode in lab["episodes"]:
        episode["video"] = [os.path.relpath(campaign.folder / video, out.resolve()) for video in episode["video"]]
    return lab
