"""Where a campaign stands and what was recorded, as plain values for a screen or JSON.

May not: tally outcomes, or name an arm before unblinding: whoever reads this may still stage, operate or score.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from labctl.core.record import Record
from labctl.core.trial import FINISHED, CampaignState, next_trial


def standing(state: CampaignState) -> dict[str, Any]:
    """Phase, progress, the trial whose turn it is, holds and the chain's head. No arm and no outcome, in any phase."""
    counts = Counter(str(trial.state) for trial in state.trials.values())
    turn = next_trial(state)
    current = None
    if turn is not None:
        current = {
            "trial": turn.id,
            "number": list(state.trials).index(turn.id) + 1,
            "block": turn.block,
            "condition": turn.condition,
            "state": str(turn.state),
            "episode": turn.episode,
            "voids": turn.voids,
        }
    return {
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


def recorded(record: Record) -> list[dict[str, Any]]:
    """One entry per episode, in the order they began. `arm` is there only after unblinding, and `switched`, how many
    switches of the instruction the controller took, where the protocol has any.
    """
    state, arms = record.state, record.arms
    switching = bool(state.opened.get("switches"))
    return [
        {
            "episode": episode.id,
            "trial": trial.id,
            "block": trial.block,
            "condition": trial.condition,
            "state": "voided" if episode.void else str(trial.state),
            "ended": episode.end_reason,
            **({} if episode.ended_by is None else {"ended_by": episode.ended_by}),
            "void": episode.void.reason if episode.void else None,
            "sealed": episode.sealed is not None,
            "gaps": len(episode.gaps),
            "clocks": episode.clocks,
            "began": episode.revealed.wall,
            **({"switched": len(episode.switches)} if switching else {}),
            **({"arm": arms[trial.id]} if arms else {}),
        }
        for episode in record.episodes.values()
        for trial in [state.trials[episode.trial]]
    ]
