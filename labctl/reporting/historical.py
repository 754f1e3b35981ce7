"""Looks up the person of another time that a protocol names: its rows, and where they are from, in words.

May not: freeze them (`labctl.store.opened_body` does), or read a campaign that is not unblinded or does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.episode_facts import Historical
from labctl.config.human import Historical as Named
from labctl.config.protocol_schema import AnalysisPlan
from labctl.core.event_bodies import CampaignOpened
from labctl.errors import BrokenRecord, InputError, LabctlError, StateError, TableError
from labctl.messages.historical import HistoricalEntry
from labctl.reporting.facts import by_episodes, kind_of
from labctl.reporting.operations_table import COLUMNS as OF_OPERATIONS
from labctl.reporting.operations_table import SOMETIMES, csv_text, operations
from labctl.store.driver_options import stamped_kind
from labctl.store.lab_folder import Plan, campaign_folder
from labctl.store.opened_body import HISTORICAL, Frozen, rows_of, text_digest
from labctl.store.verifying.verified import JOURNAL_ALONE, protocol_of, verified

if TYPE_CHECKING:
    from labctl.analysis.table import Row
    from labctl.config.cell_schema import Cell

AT = ("human", "reference")
COLUMNS = [name for name in OF_OPERATIONS if name not in SOMETIMES]


def looked_up(plan: Plan, lab: Path, cell: Cell | None = None) -> Frozen | None:
    """What the protocol's historical reference is now; None where it names none. cell: that it is to be printed beside,
    whose kind it has to be of.

    Raises InputError at the protocol's line for a campaign or table that is not there, cannot be read, has no person
    or is of another kind, and for rows that are not the ones that were pinned.
    """
    named = plan.protocol.human.reference if plan.protocol.human else None
    if named is None:
        return None
    key = "campaign" if named.campaign is not None else "table"
    try:
        found = _of_campaign(named, lab) if named.campaign is not None else _of_table(named, plan.path.parent)
    except (InputError, StateError, BrokenRecord, TableError) as error:
        raise _refused(plan, key, str(error)) from None
    kind = found.entry.get("kind")
    if cell is not None and kind is not None and kind != (own := stamped_kind(cell, plan.protocol.arm)):
        text = f"{named.campaign} is of kind {kind} and this cell of kind {own}; kinds are never mixed"
        raise _refused(plan, key, text)
    if named.hrt and any(task.measure != "items" for task in plan.protocol.tasks):
        raise _refused(plan, "hrt", "HRT is of items; this protocol has a task of another measure, take hrt out")
    if named.sha256 not in (None, found.entry["sha256"]):
        raise _refused(plan, "sha256", f"its rows give {found.entry['sha256']}; they are not those that were pinned")
    return found


def line_of(found: Frozen) -> str:
    """What `labctl plan` and `labctl open` say of it."""
    entry = found.entry
    where = f"{entry['source']}; {entry['rig']}; {entry['dates']}; episodes: {entry['episodes']}"
    return f"{where}; printed as historical, never tested; sha256 {entry['sha256']}"


def printed(
    folder: Path, opened: CampaignOpened, plan: AnalysisPlan, rows: Sequence[Row], *, boot: int, seed: int
) -> Historical | None:
    """The frozen person as a report of this campaign prints it; None without one. rows: of the campaign's operations
    table; boot, seed: the report's. Raises BrokenRecord for rows that are not those that were frozen.
    """
    then = rows_of(folder, opened)
    if not then or "historical" not in opened:
        return None
    from labctl.analysis.episodes.historical import historical
    from labctl.analysis.table import table_from_rows

    entry, ours = opened["historical"], table_from_rows(rows, source=folder.name)
    given = {"ratios": entry["hrt"], "boot": boot, "seed": seed, "estimator": plan.estimator}
    found = historical(then, ours, plan.tau_s, **given)
    return {
        **found,
        "source": entry["source"],
        "rig": entry["rig"],
        "dates": entry["dates"],
        "episodes": entry["episodes"],
        "sha256": entry["sha256"],
    }


def _refused(plan: Plan, key: str, text: str) -> LabctlError:
    return plan.protocol.refusal((*AT, key), f"historical reference: {text}", str(plan.path))


def _of_campaign(named: Named, lab: Path) -> Frozen:
    folder = campaign_folder(named.campaign or "", lab)
    with verified(folder, JOURNAL_ALONE) as shown:
        record = shown.campaign.record()
        if record.unblinding is None:
            raise StateError(f"campaign {folder.name} is not unblinded; nobody may know which trials the person's are")
        if by_episodes(record.state.opened):
            raise InputError(f"campaign {folder.name} is not counted in items; that is not there yet")
        person = [arm.name for arm in protocol_of(shown.campaign).arm if arm.kind == "human"]
        rows = [row for row in operations(record) if row["arm"] in person]
        if not rows:
            raise InputError(f"campaign {folder.name} has no scored episode of a person")
        cell, opened = shown.campaign.cell, record.state.opened
        day = f"{(record.opened_wall or '')[:10]} to {(record.closed_wall or record.opened_wall or '')[:10]}"
        rig = f"cell {opened['cell']['name']} ({cell.robot.driver}, {kind_of(record)})"
        made = _frozen(rows, named, f"campaign {folder.name} at head {record.state.head[:16]}…", rig, day)
        return Frozen(made.text, {**made.entry, "kind": kind_of(record), "head": record.state.head})


def _of_table(named: Named, folder: Path) -> Frozen:
    from labctl.analysis import reading

    path = folder / (named.table or "")
    if not path.is_file():
        raise InputError(f"table {named.table!r} is no file in {folder}")
    lines = [row for _, row in reading.read_any(path).lines]
    reading.read_table(path)
    rows = [{name: row.get(name) for name in ("arm", *COLUMNS)} for row in lines if row.get("arm") == named.arm]
    if not rows:
        arms = ", ".join(sorted({str(row.get("arm")) for row in lines}))
        raise InputError(f"table {named.table!r} has no arm {named.arm!r}; its arms are {arms}")
    source = f"table {path.name}, arm {named.arm}"
    return _frozen(rows, named, source, named.rig or "", named.dates or "")


def _frozen(rows: Sequence[Row], named: Named, source: str, rig: str, dates: str) -> Frozen:
    columns = [name for name in ("arm", *COLUMNS) if any(row.get(name) not in (None, "") for row in rows)]
    made = csv_text(columns, rows)
    entry: HistoricalEntry = {
        "file": HISTORICAL,
        "sha256": text_digest(made),
        "source": source,
        "rig": rig,
        "dates": dates,
        "episodes": len({row["episode"] for row in rows}),
        "hrt": named.hrt,
    }
    return Frozen(made, entry)
