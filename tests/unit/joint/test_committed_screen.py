"""While another host is asked for a trial's arm, the console says so and asks for no key."""

from __future__ import annotations

from typing import Any

from labctl.ui.console import acts

STATE: Any = {"session": "s1", "trial": "t-1", "trial_state": "committed", "exhausted": False}


def test_a_committed_trial_waits_for_the_seal_host_and_not_for_a_key() -> None:
    page = acts._committed(STATE, 0)
    assert acts._PAGES["committed"] is acts._committed
    assert (page.state, page.line) == ("committed", "asking the seal host for this trial")
    assert "ENTER" not in " ".join([page.line, *page.details]) and "committed" not in acts.LEADS
