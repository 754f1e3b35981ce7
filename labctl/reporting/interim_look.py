"""An interim look at an open campaign, blind: of what the arms did it writes and says one word, stop or go on.

May not: say or keep a p, an estimate, an arm or what went wrong with one, look where the protocol planned no look, or
take a look twice. What it works out stays in this process.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.monte_carlo import MOST
from labctl.analysis.numerals import confidence
from labctl.config.interim_analyses import Looks, looks_after
from labctl.config.protocol_schema import Protocol
from labctl.core.events import LOOK_SAID_STOP, Kind
from labctl.core.record import Record
from labctl.core.trial import CampaignState, Phase, State
from labctl.errors import LabctlError, StateError
from labctl.messages.body_parts import LookTaken, SlotWithArm
from labctl.reporting.facts import refuse_mixed, refuse_tasks
from labctl.reporting.label_streams import STREAMS, label_facts, witnesses
from labctl.reporting.operations_table import operations
from labctl.reporting.relabellings import relabellings
from labctl.store.campaign import writing
from labctl.store.verifying.verify import refuse_unless_as_opened

if TYPE_CHECKING:
    from labctl.analysis.planning import spending

OFF_PLAN = "not a planned look"
"""How `spending.standing` begins to speak of what no look was planned for."""


def take_look(folder: Path, *, who: str) -> LookTaken:
    """Take the look that is due, by the first so many blocks, and journal what it says. One that says stop raises a
    hold: no further trial begins before a person acknowledges it, which every report says.

    The test is the report's, by the protocol's `[analysis]`, its pairs and its stream of labels, held to the look's
    level (`spending.looks`). Raises StateError where none is planned, due or possible, or somebody runs the campaign;
    BrokenRecord where journal or seal are not as they were opened.
    """
    with writing(folder, "look", None) as (campaign, now):
        if campaign.state.phase != Phase.OPEN:
            raise StateError(f"campaign {folder.name} is {campaign.state.phase}; only an open one has looks to take")
        refuse_unless_as_opened(folder, campaign.events())
        record, protocol = campaign.record(), campaign.protocol
        refuse_mixed(record, folder.name)
        refuse_tasks(record, folder.name)
        look = due(record, protocol, folder.name)
        stop = _says_stop(record, protocol, campaign.ledger.open_all()["schedule"], look, folder.name)
        planned = protocol.analysis.looks
        assert planned is not None
        taken: LookTaken = {
            "number": look.number,
            "looks": len(planned.fractions),
            "blocks": look.blocks,
            "labels": _stream(planned),
            "says": "stop" if stop else "go on",
        }
        if stop:
            text = (
                f"{in_words(taken)}: the pairs that the protocol names are told apart. labctl close {folder.name} ends "
                "the campaign; whoever goes on acknowledges this, and every report says so"
            )
            campaign.log(Kind.HOLD_RAISED, {"code": LOOK_SAID_STOP, "text": text}, anchor=now, who=who)
        campaign.log(Kind.LOOK_TAKEN, {**taken}, anchor=now, who=who)
        return taken


def in_words(taken: LookTaken) -> str:
    """A look that was taken, in words that every role may read."""
    return f"look {taken['number']} of {taken['looks']}, by the first {taken['blocks']} blocks, says {taken['says']}"


def judged_at(state: CampaignState, protocol: Protocol) -> tuple[float, str | None]:
    """The level p-values are held to and, where the protocol plans looks, which of them this is, or that it is none.

    A block is complete when each of its trials is scored or was void as often as allowed; closing a campaign completes
    nothing.
    """
    alpha, looks = protocol.analysis.alpha, protocol.analysis.looks
    if looks is None:
        return alpha, None
    from labctl.analysis.planning import spending

    blocks, undone = {trial.block for trial in state.trials.values()}, _unfinished(state)
    planned = spending.looks(looks_after(looks, len(blocks)), alpha)
    return spending.standing(planned, len(blocks - undone))


def look_notes(record: Record, look: str | None, alpha: float) -> list[str]:
    """What a report says of looks: which it stands on, what its adjusted intervals are, and those taken before it.
    look, alpha: by `judged_at`.
    """
    if look is None:
        return []
    if look.startswith(OFF_PLAN):
        held = (
            f"Directions are claimed by intervals at the strictest planned level, {confidence(alpha)} %. Repeated "
            "confidence intervals (Jennison & Turnbull 2000, ch. 9) hold at planned looks, and this is none."
        )
    else:
        held = (
            f"Directions are claimed by intervals at the level of this look, {confidence(alpha)} %: repeated "
            "confidence intervals (Jennison & Turnbull 2000, ch. 9), which hold at whichever planned look a campaign "
            "ends."
        )
    held += " Those of 95 % beside them are of one look."
    taken = [f"Taken blind before the end: {in_words(one)}." for one in record.looks]
    return [f"{look[0].upper()}{look[1:]}.", held, *taken]


def due(record: Record, protocol: Protocol, name: str) -> spending.Look:
    """The look to be taken now: the last whose blocks are all complete. Raises StateError where there is none: none is
    planned, the campaign is not as far, this one was taken, or it is the last, which is the report's.
    """
    from labctl.analysis.planning import spending

    planned = protocol.analysis.looks
    if planned is None:
        text = f"the protocol of {name} plans no looks ([analysis.looks])"
        raise StateError(f"{text}; its result is looked at once, at the end")
    blocks = sorted({trial.block for trial in record.state.trials.values()})
    undone = _unfinished(record.state)
    complete = next((n for n, block in enumerate(blocks) if block in undone), len(blocks))
    looks = spending.looks(looks_after(planned, len(blocks)), protocol.analysis.alpha)
    reached = [look for look in looks if look.blocks <= complete]
    after = ", ".join(str(look.blocks) for look in looks)
    so_far = f"{complete} of {len(blocks)} blocks of {name} are complete, looks are planned after {after}"
    if not reached:
        raise StateError(f"not a planned look: {so_far}; go on with: labctl run {name}")
    look = reached[-1]
    if look.blocks == len(blocks):
        raise StateError(f"{so_far}: the last look is the report's; next: labctl close {name}")
    if any(taken["number"] == look.number for taken in record.looks):
        raise StateError(f"look {look.number} was taken already: {so_far}; go on with: labctl run {name}")
    return look


def _says_stop(
    record: Record, protocol: Protocol, schedule: Sequence[SlotWithArm], look: spending.Look, name: str
) -> bool:
    from labctl.analysis.operations_table.cohort import Plan
    from labctl.analysis.planning.interim_test import told_apart
    from labctl.analysis.table import NS, table_from_rows

    plan = protocol.analysis
    assert plan.looks is not None
    stream = _stream(plan.looks)
    label_facts(stream, witnesses(record))
    arms = {slot["trial"]: slot["arm"] for slot in schedule}
    first = sorted({trial.block for trial in record.state.trials.values()})[: look.blocks]
    rows = [{**row, "arm": arms[row["trial"]]} for row in operations(record, labels=stream) if row["block"] in first]
    reference = plan.reference if any(row["arm"] == plan.reference for row in rows) else None
    fixed = {"design": relabellings(schedule), "estimator": plan.estimator}
    given = Plan(round(plan.tau_s * NS), reference, 1, MOST, 0, look.level, plan.family, **fixed)
    pairs = [(pair[0], pair[1]) for pair in plan.looks.pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a library remarks on is about some arm
        try:
            return told_apart(table_from_rows(rows, source=name), given, pairs, look.level)
        except LabctlError:
            text = f"look {look.number} cannot be taken: the first {look.blocks} blocks cannot be tested"
            raise StateError(f"{text}; go on to the next with: labctl run {name}") from None


def _stream(planned: Looks) -> str:
    return planned.labels or STREAMS[0]


def _unfinished(state: CampaignState) -> set[int]:
    """The blocks with a trial that is neither scored nor void as often as allowed."""
    return {t.block for t in state.trials.values() if t.state != State.SCORED and not t.exhausted}
