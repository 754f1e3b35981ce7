"""Claims about the simulated operator."""

from __future__ import annotations

import pytest

from labctl.core.events import LOOK_SAID_STOP, STOP_BY_HAND
from labctl.drivers.sim.operator import WHO, SimulatedOperator


@pytest.mark.parametrize(("there", "verb"), [("ann", "session_close"), (WHO, None)])
def test_a_session_that_somebody_else_left_open_is_ended_first(there: str, verb: str | None) -> None:
    """Its people alone may order anything; a headless run would wait for ever."""
    quiet = {"trial": "t-1", "holds": [], "allowed": [], "exhausted": False, "operator_ready": False, "proposal": None}
    quiet["compare"] = None
    state = {"session": "s-3", "people": [{"id": there, "roles": ["operator"]}], **quiet}
    wanted = SimulatedOperator().decide(state)  # type: ignore[arg-type]
    assert (wanted and wanted["verb"]) == verb


def test_it_prefers_what_it_scored_higher_itself_and_neither_where_it_cannot_know() -> None:
    person = {
        "session": "s",
        "people": [{"id": WHO, "roles": ["assessor"]}],
        "holds": [],
        "trial": "t",
        "compare": None,
    }
    proposal = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
    scoring = {**person, "compare": None, "allowed": ["score"], "proposal": proposal, "episode": "e-1"}
    operator = SimulatedOperator()
    for state in (scoring, {**scoring, "episode": "e-2", "proposal": {**proposal, "moved": 2, "remaining": 0}}):
        operator.decide(state)  # type: ignore[arg-type]
    asked = {**person, "allowed": [], "compare": {"first": "e-1", "second": "e-2"}}
    assert operator.decide(asked)["args"]["preferred"] == "second"  # type: ignore[arg-type, index]
    assert SimulatedOperator().decide(asked)["args"]["preferred"] == "neither"  # type: ignore[arg-type, index]


@pytest.mark.parametrize(
    ("code", "answers"),
    [
        (LOOK_SAID_STOP, {}),
        (STOP_BY_HAND, {"why": "simulated operator", "cause": "danger"}),
        ("safety_stop", {"why": "simulated operator", "contact": False}),
    ],
)
def test_it_answers_what_the_hold_asks_and_no_robot_has_stopped_where_a_look_says_stop(
    code: str, answers: dict[str, object]
) -> None:
    people = [{"id": WHO, "roles": ["operator"]}]
    state = {"session": "s-3", "people": people, "trial": "t-1", "holds": [{"code": code, "needs_person": True}]}
    wanted = SimulatedOperator().decide(state)  # type: ignore[arg-type]
    assert wanted is not None and wanted["verb"] == "acknowledge"
    assert wanted["args"] == {"code": code, **answers}


@pytest.mark.parametrize(
    ("trial_state", "codes", "staged"),
    [
        ("planned", ["sensor_limit:scale"], True),
        ("planned", ["sensor_limit:scale", "camera_lost:top"], False),
        ("staging", ["sensor_limit:scale"], False),
        ("planned", [], False),
    ],
)
def test_a_tote_that_is_too_full_for_its_scale_is_emptied_by_staging(
    trial_state: str, codes: list[str], staged: bool
) -> None:
    """A person takes the items out before the console lets him stage; the simulated scene empties when it is staged."""
    people = [{"id": WHO, "roles": ["operator"]}]
    state = {"session": "s-3", "people": people, "trial": "t-1", "trial_state": trial_state, "exhausted": False}
    state |= {"allowed": [], "compare": None, "proposal": None, "measured": None, "operator_ready": False}
    state["holds"] = [{"code": code, "needs_person": False} for code in codes]
    wanted = SimulatedOperator().decide(state)  # type: ignore[arg-type]
    assert ((wanted or {}).get("verb") == "stage") == staged
