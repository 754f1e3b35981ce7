"""What a campaign's first entry states of its protocol, cell and fixture, the number of its format, the rows of a
person of another time that are frozen beside it (`labctl.reporting.historical` looks them up), and where its schedule
comes from: drawn here, or dealt by the seal host of a joint campaign, which keeps the arms until each trial's turn.

May not: name an arm, an endpoint or the order of the arms in that entry; what the seal adds, `open_campaign` adds.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from labctl.core.event_bodies import CampaignOpened
from labctl.core.events import digest
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.messages.body_parts import (
    ConditionEntry,
    Plateau,
    SceneRules,
    Slot,
    SlotWithArm,
    SwitchEntry,
    TaskEntry,
    Unsealed,
)
from labctl.messages.historical import HistoricalEntry
from labctl.messages.joint import JointPart
from labctl.messages.judgements import WitnessEntry
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.lab_folder import Plan
from labctl.store.ledger import Ledger
from labctl.store.problem import Problem
from labctl.store.rubric_pictures import AnchorPicture, with_pictures

if TYPE_CHECKING:  # whoever reads a campaign does not wait for the schemas
    from labctl.config.cell_schema import Cell
    from labctl.config.conditions import Condition
    from labctl.config.protocol_schema import Protocol
    from labctl.core.design import Schedule

FORMAT = 2
INVITATION = "invitation.toml"  # beside the seal of a cell's part: how its seal host is reached
HISTORICAL = "historical.csv"  # in a campaign's folder: rows of a person of another time
# What is bound from a format on, in words for whoever verifies a campaign of an earlier one.
_BOUND_SINCE: Mapping[int, tuple[str, ...]] = {
    2: (
        "what the streams' columns are called and mean, and which streams tell arms apart",
        "how long controllers took to start, and why they failed, until the campaign was unblinded",
        "which of several sealed values are left when some are taken away, until the campaign was unblinded",
    )
}


def opened_body(
    name: str,
    plan: Plan,
    cell: Cell,
    cell_text: str,
    commitment: str,
    schedule: Sequence[Slot],
    pictures: Sequence[AnchorPicture] = (),
) -> CampaignOpened:
    """CampaignOpened but for references and links. commitment, schedule: as the seal publishes them; pictures: of the
    rubrics' anchors. No arm's name, endpoint or order may stand in it.
    """
    from labctl.config.conditions import protocol_conditions
    from labctl.core.design import deducible_share
    from labctl.store.driver_options import stamped_kind

    protocol, fixture, rules = plan.protocol, plan.fixture, plan.protocol.trial
    layouts = {layout.name: layout for layout in fixture.layout}
    kinds = [arm.kind for arm in protocol.arm]
    body: CampaignOpened = {
        "campaign": name,
        "format": FORMAT,
        "kind": stamped_kind(cell, protocol.arm),
        "cell": {"name": cell.cell.name, "sha256": text_digest(cell_text)},
        "fixture": {"name": fixture.fixture.name, "sha256": text_digest(plan.fixture_text)},
        "protocol": {
            "name": protocol.protocol.name,
            "sha256": text_digest(plan.protocol_text),
            "question": protocol.protocol.question,
            **({"cards_sha256": digest(dict(plan.cards))} if plan.cards else {}),
        },
        "conditions": [
            ConditionEntry(
                **{key: value for key, value in asdict(condition).items() if value is not None},
                tote_side=layouts[condition.layout].tote_side,
                camera_side=layouts[condition.layout].camera_side,
                instructions=layouts[condition.layout].instructions,
            )
            for condition in protocol_conditions(protocol, fixture)
        ],
        "arms_count": len(kinds),
        "has_human": "human" in kinds,
        "deducible_share": deducible_share(kinds, protocol.alone_share),
        "instruction": "" if protocol.task else protocol.tasks[0].instruction,
        "items_staged": max(task.items_staged for task in protocol.tasks),
        "budget_s": max(task.budget_s for task in protocol.tasks),
        "arming_s": rules.arming_s,
        "max_voids": rules.max_voids,
        "process_lost": rules.process_lost,
        "camera_lost": rules.camera_lost,
        "early_end": rules.early_end,
        "stops_count": list(rules.stops_count),
        "estimand": protocol.estimand.model_dump(),
        "void_reasons": list(rules.void_reasons),
        "scene": SceneRules(**protocol.scene.model_dump()),
        "tau_s": protocol.analysis.tau_s,
        "takeover": rules.takeover,
        "plateau": _plateau(protocol),
        "durable": cell.cell.durable,
        "shared_uid": True,  # operator and run process: this version has no second user to run as
        "commitment": commitment,
        "schedule": schedule,
    }
    if protocol.task:
        left_out = {"objects": True, "layout": True, "rubric": {"__all__": {"picture"}}}
        tasks = [TaskEntry(**task.model_dump(mode="json", exclude=left_out)) for task in protocol.task]
        body["tasks"] = with_pictures(tasks, pictures)
    if protocol.alone is not None:
        placed = {slot["block"] for slot in schedule if slot["position"]}
        body["alone"] = sorted({slot["block"] for slot in schedule} - placed)
    if protocol.preference is not None:
        body["preference"] = protocol.preference.question
    if protocol.witness is not None:
        body["witness"] = WitnessEntry(**protocol.witness.model_dump())
    if protocol.switch:
        body["switches"] = [SwitchEntry(**switch.model_dump(exclude_none=True)) for switch in protocol.switch]
    return body


class FilesPart(TypedDict, total=False):
    """What a campaign's first entry has of where its files lay."""

    files: Mapping[str, str]


def files_in(lab: Path, plan: Plan, cell_path: Path) -> FilesPart:
    """Where cell, fixture and protocol lie in the lab's folder; of one that lies elsewhere nothing is told."""
    found: dict[str, str] = {}
    for kind, path in (("cell", cell_path), ("fixture", plan.fixture_path), ("protocol", plan.path)):
        with suppress(ValueError):
            found[kind] = path.resolve().relative_to(lab.resolve()).as_posix()
    return {"files": found} if found else {}


def text_digest(text: str) -> str:
    """sha256 hex of a frozen text."""
    return hashlib.sha256(text.encode()).hexdigest()


def format_of(opened: CampaignOpened) -> int:
    """Of CampaignOpened's body. Those of before November 2026 say none: 1."""
    return int(opened.get("format", 1))


def not_bound(opened: CampaignOpened) -> list[str]:
    """What this campaign's format binds to nothing, though today's does."""
    mine = format_of(opened)
    return [text for since, texts in _BOUND_SINCE.items() if since > mine for text in texts]


def format_facts(opened: CampaignOpened) -> Mapping[str, Mapping[str, str]]:
    """The row of the report's provenance; {} for today's format."""
    texts = not_bound(opened)
    return {"format": {str(format_of(opened)): f"bound to no digest: {'; '.join(texts)}"}} if texts else {}


def check_format(opened: CampaignOpened, name: str) -> None:
    """Raises InputError for a campaign of a later labctl."""
    if format_of(opened) > FORMAT:
        raise InputError(
            f"campaign {name} has format {format_of(opened)}, this labctl reads up to {FORMAT}; use a later labctl"
        )


def _plateau(protocol: Protocol) -> Plateau | None:
    """Practice goes on until it is reached, as the protocol states it; None where it states none."""
    human = protocol.human if any(arm.kind == "human" for arm in protocol.arm) else None
    return None if human is None else {"last": human.plateau_last, "within": human.plateau_change}


@dataclass(frozen=True, slots=True)
class Frozen:
    """What is frozen: the rows as the text of a CSV file, and what the campaign's first entry says of them."""

    text: str
    entry: HistoricalEntry


class HistoricalPart(TypedDict, total=False):
    """What a campaign's first entry has of it; nothing without one."""

    historical: HistoricalEntry


def freeze(plan: Plan, found: Frozen | None, folder: Path) -> HistoricalPart:
    """Keep the rows in a campaign's folder. Raises InputError where the protocol names a historical reference and
    whoever opens it has not looked it up, StorageError.
    """
    named = plan.protocol.human and plan.protocol.human.reference
    if found is None:
        if named:
            text = "a historical reference is looked up by the verb that opens: labctl open, or labctl joint join"
            raise plan.protocol.refusal(("human", "reference"), text, str(plan.path))
        return {}
    replace_file(folder / HISTORICAL, found.text.encode())
    return {"historical": found.entry}


def rows_of(folder: Path, opened: CampaignOpened) -> list[Mapping[str, str]]:
    """The frozen rows; [] where there are none. Raises BrokenRecord for a file that is not the one that was frozen."""
    if problems := historical_problems(folder, opened):
        raise BrokenRecord(str(problems[0]))
    if "historical" not in opened:
        return []
    with file_errors(str(folder / HISTORICAL)):
        text = (folder / HISTORICAL).read_text("utf-8", errors="replace")  # as it is digested
    return list(csv.DictReader(text.splitlines()))


def historical_problems(folder: Path, opened: CampaignOpened) -> list[Problem]:
    """What is wrong with the frozen rows of a campaign."""
    entry = opened.get("historical")
    if entry is None:
        return []
    path = folder / entry["file"]
    with file_errors(str(path)):
        there = path.is_file()
        found = text_digest(path.read_text("utf-8", errors="replace")) if there else ""
    if found == entry["sha256"]:
        return []
    finding = "its rows are not the ones that were frozen at opening" if there else "the file is gone"
    return [Problem("changed historical reference", entry["file"], finding)]


@dataclass(frozen=True, slots=True)
class Dealt:
    """A cell's part as its seal host dealt it: public slots, what binds their arms, and the text of the invitation."""

    entry: JointPart
    slots: Sequence[Slot]
    commitment: str
    invitation: str


@dataclass(frozen=True, slots=True)
class Opening:
    """What a seal host says of a part once all is unblinded: its slots with their arms, and what binds them."""

    slots: Sequence[SlotWithArm]
    nonce_hex: str


class JointBody(TypedDict, total=False):
    """What a campaign's first entry has of it; nothing of a campaign by itself."""

    joint: JointPart


def schedule_of(plan: Plan, conditions: tuple[Condition, ...], entropy: bytes, dealt: Dealt | None) -> Schedule:
    """The schedule to seal, drawn from the entropy or as it was dealt, without arms then. Raises InputError."""
    from labctl.config.conditions import sets_of
    from labctl.core import design

    protocol = plan.protocol
    if protocol.cells is not None and dealt is None:
        text = "several cells share this protocol: labctl joint open seals it, labctl joint join opens each part"
        raise protocol.refusal(("cells",), text, str(plan.path))
    if dealt is None:
        arms = [arm.name for arm in protocol.arm]
        return design.draw(sets_of(conditions), arms, protocol.design.blocks_per_condition, entropy, protocol.alone)
    known = {condition.id for condition in conditions}
    strange = next((slot["condition"] for slot in dealt.slots if slot["condition"] not in known), None)
    if strange is not None:
        raise InputError(f"the seal host dealt condition {strange!r}, which {plan.path} does not have")
    return design.Schedule(
        tuple(
            design.Slot(number, slot["trial"], slot["block"], slot["position"], slot["condition"], "")
            for number, slot in enumerate(dealt.slots)
        )
    )


def seal(folder: Path, plan: Plan, schedule: Schedule, entropy: bytes, dealt: Dealt | None) -> str:
    """The seal of a campaign, and what binds its arms. Raises StateError, StorageError."""
    commitment = Ledger.create(folder, schedule, entropy, plan.protocol_text, plan.cards)
    if dealt is None:
        return commitment
    path = Ledger.open(folder).private_file(INVITATION)
    replace_file(path, dealt.invitation.encode(), mode=0o600)
    return dealt.commitment


def joint_body(dealt: Dealt | None) -> JointBody:
    """What the first entry says of the joint campaign."""
    return {} if dealt is None else {"joint": dealt.entry}


def unsealed(ledger: Ledger, name: str, opening: Opening | None) -> Unsealed:
    """Everything in a seal, for unblinding. Raises StateError for a part whose seal host has not opened it,
    BrokenRecord where that opens another arm than it revealed.
    """
    found = ledger.open_all()
    if not ledger.joint:
        return found
    if opening is None:
        text = f"its arms are at the seal host; while it answers: labctl unblind {name}"
        raise StateError(f"campaign {name} is a part of a joint one; {text}")
    revealed: Mapping[str, str] = ledger.revealed()
    for slot in opening.slots:
        if revealed.get(slot["trial"], slot["arm"]) != slot["arm"]:
            raise BrokenRecord(f"trial {slot['trial']}: the seal host opens another arm than it revealed")
    return {**found, "schedule": list(opening.slots), "nonce_hex": opening.nonce_hex}
