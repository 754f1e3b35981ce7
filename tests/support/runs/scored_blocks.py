"""A campaign whose first blocks were run and scored as told, without a robot: its journal, entry after entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from labctl.bus import Body
from labctl.clock import SECOND, ManualClock
from labctl.core.events import Kind, digest
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import append_head

STARTED = {"pins": {}, "kind": "sim", "durable": False}
MOVED = {"result": "success", "cause": None}
SEALED = {"streams": {}, "root": digest({}), "videos": {}, "gaps": 0}
Times = Callable[[str, int], Sequence[float]]


def score_blocks(folder: Path, blocks: range, times: Times) -> None:
    """Journal the trials of these blocks. times(arm, block): when each item was moved, in s after go, all within the
    budget; what was not moved remains at its end. A trial takes 1,000 s.
    """
    with Campaign.open(folder, writer=True) as campaign:
        budget, items = campaign.opened["budget_s"], campaign.opened["items_staged"]
        for number, trial in enumerate(campaign.state.trials.values()):
            if trial.block not in blocks:
                continue
            clock = ManualClock((number + 1) * 1000 * SECOND)
            arm, episode, go = campaign.ledger.reveal(trial.id), f"e-{number}", clock.now_ns()
            moved = times(arm, trial.block)
            end = go + round((moved[-1] if len(moved) == items else budget) * SECOND)
            reason = "all_done" if len(moved) == items else "budget"

            sealed = [campaign.ledger.seal_value(episode, field, arm) for field in ("arm", "controller")]
            counts = {"items_staged": items, "moved": len(moved), "lost": 0, "remaining": items - len(moved)}
            done = [
                (Kind.OPERATION_RECORDED, {**MOVED, "op_index": index, "t_ns": go + round(at_s * SECOND)})
                for index, at_s in enumerate(moved)
            ]
            entries: list[tuple[Kind, Body]] = [
                (Kind.TRIAL_STAGING, {}),
                (Kind.SCENE_COMMITTED, {"photo": None, "snapshot": {}}),
                (Kind.ARM_REVEALED, {"sealed": sealed[0]}),
                (Kind.EPISODE_STARTED, {**STARTED, "budget_s": budget, "items_staged": items, "sealed": sealed[1]}),
                (Kind.GO, {"go_ns": go}),
                *done,
                (Kind.EPISODE_ENDED, {"reason": reason, "end_ns": end}),
                (Kind.RECORDING_SEALED, SEALED),
                (Kind.OUTCOME_RECORDED, {"outcome": {**counts, "end_reason": reason}}),
            ]
            for kind, body in entries:
                of = None if kind in (Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED) else episode
                campaign.log(kind, body, anchor=clock.anchor(), who="scripted", trial=trial.id, episode=of)
        append_head(folder, *campaign.journal.head(), ManualClock(0).anchor().wall)
