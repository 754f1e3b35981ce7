"""Where a campaign stands and what was recorded, as plain values for a screen or JSON.

May not: tally outcomes, or name an arm before unblinding: whoever reads this may still stage, operate or score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from labctl.core.events import Event, Kind
from labctl.core.switches_taken import taken
from labctl.core.trial import FINISHED, CampaignState, Phase, next_trial


def standing(state: CampaignState) -> dict[str, Any]:
    """Phase, progress, the trial whose turn it is, holds and the chain's head. No arm and no outcome, in any phase."""
    counts = Counter(str(trial.state) for trial in state.trials.values())
    turn = next_trial(state)
    current = None
    if turn is not None:
        current = {
            "trial": turn.id,
            "block": turn.block,
            "condition": turn.condition,
            "state": str(turn.state),
            "episode": turn.episode,
            "voids": turn.voids,
        }
    return {
        "schema": "labctl.status/1",
        "campaign": state.opened.get("campaign"),
        "phase": str(state.phase),
        "trials": len(state.trials),
        "finished": sum(trial.state in FINISHED for trial in state.trials.values()),
        "by_state": dict(sorted(counts.items())),
        "voids": sum(trial.voids for trial in state.trials.values()),
        "current": current,
        "holds": [{"code": code, "text": text} for code, text in state.holds.items()],
        "faulted": state.faulted,
        "session": state.session.id if state.session else None,
        "unblinded_early": state.unblinded_early,
        "commitment": state.opened.get("commitment"),
        "head": {"seq": state.last_seq, "hash": state.head},
    }


def recorded(state: CampaignState, events: Sequence[Event]) -> list[dict[str, Any]]:
    """One entry per episode, in the order they began. `arm` is there only after unblinding, and `switched`, how many
    switches of the instruction the controller took, where the protocol has any.
    """
    found: dict[str, dict[str, Any]] = {}
    arms: dict[str, str] = {}
    for event in events:
        if event.kind == Kind.ARM_REVEALED and event.episode and event.trial:
            trial = state.trials[event.trial]
            found[event.episode] = {
                "episode": event.episode,
                "trial": trial.id,
                "block": trial.block,
                "condition": trial.condition,
                "state": str(trial.state),
                "ended": None,
                "void": None,
                "sealed": False,
                "gaps": 0,
                "clocks": {},
                "began": event.wall,
            }
        elif event.kind == Kind.CAMPAIGN_UNBLINDED:
            arms = {slot["trial"]: slot["arm"] for slot in event.body["schedule"]}
        elif event.episode in found:
            _note(found[event.episode], event)
    episodes = list(found.values())
    if state.opened.get("switches"):
        took = taken(events)
        episodes = [{**episode, "switched": len(took.get(episode["episode"], ()))} for episode in episodes]
    if state.phase == Phase.UNBLINDED or arms:
        episodes = [{**episode, "arm": arms[episode["trial"]]} for episode in episodes]
    return episodes


def _note(episode: dict[str, Any], event: Event) -> None:
    if event.kind == Kind.EPISODE_ENDED:
        episode["ended"] = event.body["reason"]
    elif event.kind == Kind.EPISODE_VOIDED:
        episode["void"] = event.body["reason"]
        episode["state"] = "voided"
    elif event.kind == Kind.RECORDING_SEALED:
        episode["sealed"] = True
        episode["clocks"] = event.body.get("clocks", {})
    elif event.kind == Kind.GAP:
        episode["gaps"] += 1
