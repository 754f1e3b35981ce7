"""Claims about the simulated operator."""

from __future__ import annotations

import pytest
from labctl.drivers.sim.operator import WHO, SimulatedOperator


@pytest.mark.parametrize(("there", "verb"), [("ann", "session_close"), (WHO, None)])
def test_a_session_that_somebody_else_left_open_is_ended_first(there: str, verb: str | None) -> None:
    """Its people alone may order anything; a headless run would wait for ever."""
    quiet = {"trial": "t-1", "holds": [], "allowed": [], "exhausted": False, "operator_ready": False, "proposal": None}
    state = {"session": "s-3", "people": [{"id": there, "roles": ["operator"]}], **quiet}
    wanted = SimulatedOperator().decide(state)  # type: ignore[arg-type]
    assert (wanted and wanted["verb"]) == verb
