"""What a running campaign shows to whoever looks: the state a console draws. Values only.

May not: hold an arm, a latency, a rate or a running score; whoever reads it may have to be blind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labctl.desk import Desk
from labctl.interlock import Hold
from labctl.rollout import proposal
from labctl.trial import State, Trial

PERSONAL = ("unacknowledged:", "cell_faulted")  # holds that only a named person clears


def board(desk: Desk, trial: Trial | None, live: Sequence[Hold], *, operator_ready: bool) -> dict[str, Any]:
    """Phase, session, the trial whose turn it is, holds, the proposed outcome while scoring, progress."""
    return {
        "phase": str(desk.state.phase),
        "session": desk.state.session.id if desk.state.session else None,
        "checks": list(desk.campaign.protocol.session.checks),
        "trial": trial.id if trial else None,
        "trial_state": str(trial.state) if trial else None,
        "block": trial.block if trial else None,
        "condition": trial.condition if trial else None,
        "holds": [
            {
                "code": hold.code,
                "text": hold.text,
                "clears": hold.clears,
                "needs_person": hold.code.startswith(PERSONAL),
            }
            for hold in live
        ],
        "operator_ready": operator_ready,
        "proposal": _proposal(desk, trial),
        "exhausted": bool(trial and trial.exhausted),
        "progress": list(finished(desk)),
    }


def finished(desk: Desk) -> tuple[int, int]:
    """How many trials are scored or not run, of how many."""
    trials = desk.state.trials.values()
    return sum(trial.state in (State.SCORED, State.NOT_RUN) for trial in trials), len(trials)


def _proposal(desk: Desk, trial: Trial | None) -> dict[str, Any] | None:
    """For scoring: from the journal, since the episode may be an earlier run's."""
    if trial is None or trial.state != State.SCORING:
        return None
    return proposal(desk.operations.get(trial.episode or "", []), desk.opened["items_staged"])
