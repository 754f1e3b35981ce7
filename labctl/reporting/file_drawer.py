"""Which campaigns of the same protocol this lab opened, those that were given up or thrown away among them: a result
means less the more often it was tried.

May not: open a seal. Which policies another campaign had is known once that one is unblinded, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.errors import LabctlError
from labctl.store.opened_list import OpenedOnce, opened_in
from labctl.store.verifying.verified import JOURNAL_ALONE, verified
from labctl.times import day

THIS = "this report's"


def drawer(lab: Path, record: Record) -> dict[str, str]:
    """Name and commitment of a campaign -> what became of it, in the order of opening: of the same protocol, or
    unblinded and with an arm in common. {} where the lab keeps no list; one line where the list does not hold.
    """
    try:
        entries = opened_in(lab)
    except LabctlError as error:
        return {"": str(error)}
    opened, arms = record.state.opened, set(record.arms.values())
    lines, sealed = {}, 0
    for entry in entries:
        name = name_in_list(entry.campaign, entry.commitment)
        if entry.commitment == opened["commitment"]:
            lines[name] = THIS
            continue
        became, theirs = _became(lab, entry)
        shared = sorted(arms & theirs)
        if _same(entry, opened["protocol"]["name"], opened["protocol"]["sha256"]):
            lines[name] = became
        elif shared:
            lines[name] = f"{became}, protocol {entry.protocol}, with {', '.join(shared)}"
        elif not theirs:
            sealed += 1
    if sealed:
        lines[f"{sealed} of other protocols:"] = "not unblinded, or gone: which policies they had is not known"
    return lines


def name_in_list(campaign: str, commitment: str) -> str:
    """What a campaign is called in the list."""
    return f"{campaign} ({commitment[:8]}):"


def before(lab: Path, commitment: str) -> list[str]:
    """Campaigns of the same protocol that were opened before the one of this commitment: name, and what became of it,
    no arm. [] where the list does not hold.
    """
    try:
        entries = opened_in(lab)
    except LabctlError:
        return []
    this = next((entry for entry in entries if entry.commitment == commitment), None)
    if this is None:
        return []
    earlier = entries[: entries.index(this)]
    kin = [entry for entry in earlier if _same(entry, this.protocol, this.protocol_sha256)]
    return [f"{entry.campaign} ({_became(lab, entry)[0]})" for entry in kin]


def _same(entry: OpenedOnce, protocol: str, sha256: str) -> bool:
    """Is that campaign of this protocol: by its name, or by its bytes under another?"""
    return entry.protocol == protocol or entry.protocol_sha256 == sha256


def _became(lab: Path, entry: OpenedOnce) -> tuple[str, set[str]]:
    """What became of a campaign of the list, in words, and its arms once they are known."""
    folder, when = lab / "campaigns" / entry.campaign, day(entry.wall)
    if not (folder / "journal.db").is_file():
        return f"opened {when}, its folder is gone", set()
    try:
        with verified(folder, JOURNAL_ALONE, unverified=True) as shown:
            record = record_of(shown.campaign.events())
    except LabctlError:
        return f"opened {when}, cannot be read", set()
    if record.state.opened["commitment"] != entry.commitment:
        return f"opened {when}, its folder holds another campaign now", set()
    scored = sum(trial.outcome is not None for trial in record.state.trials.values())
    arms = set(record.arms.values()) if record.unblinding is not None else set()
    given_up = ", abandoned" if record.closing and record.closing.get("abandoned") else ""
    given_up += ", its record does not hold" if shown.broken else ""
    return f"opened {when}, {record.state.phase}{given_up}, {scored} of {len(record.state.trials)} trials scored", arms


def drawer_facts(lab: Path, record: Record) -> Mapping[str, Mapping[str, str]]:
    """The row of the report's provenance; {} where there is nothing to list."""
    lines = drawer(lab, record)
    return {"opened by this lab": lines} if lines else {}
