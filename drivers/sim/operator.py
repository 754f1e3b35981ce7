"""A simulated person at the console: stages, commits, confirms and scores by what the console shows. Every record names
it as simulated.

May not: know arms, traces or the simulated world; it sees what a blind operator sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from labctl.clock import SECOND
from labctl.config.options import NoOptions
from labctl.core.published_state import Compare, PublishedState

Order = dict[str, Any]  # a command, as it travels
WHO = "sim-operator"
STAGING_S = 2.0
SCORING_S = 1.0
REACTION_S = 0.1
BY_HAND, STOPS = "operator_stop", ("operator_stop", "safety_stop")  # how codes of holds end that stops raise
SENSOR_LIMIT, PLANNED = "sensor_limit:", "planned"  # how that of a sensor's limit begins; a trial's state


class SimulatedOperator:
    """Takes the first sensible verb of those the state allows; acknowledges holds; accepts the proposed outcome."""

    kind = "sim"

    pauses_s: ClassVar[Mapping[str, float]] = {"commit": STAGING_S, "score": SCORING_S}  # by verb

    @cached_property
    def _worth(self) -> dict[str, float]:
        """How much of the task an episode got done, by its id; made when it is first asked for, as whoever derives from
        this has a state of their own.
        """
        return {}

    def decide(self, state: PublishedState) -> Order | None:
        if not state["session"]:
            if state["trial"] is None:
                return None
            people = [{"id": WHO, "roles": ["operator", "setter", "assessor"]}]
            checks = {name: "simulated cell, simulated operator" for name in state["checks"]}
            return self._command("session", people=people, checks=checks)
        if all(person["id"] != WHO for person in state["people"]):
            return self._command("session_close", handover="left open; ended by the simulated operator")
        waiting = [hold["code"] for hold in state["holds"] if hold["needs_person"]]
        if waiting:
            why = {"why": "simulated operator"}
            by_hand, stop = waiting[0].endswith(BY_HAND), waiting[0].endswith(STOPS)
            extra = {**why, "cause": "danger"} if by_hand else {**why, "contact": False} if stop else {}
            return self._command("acknowledge", code=waiting[0], **extra)
        allowed = state["allowed"]
        if (pair := state["compare"]) is not None:
            return self._command("prefer", role="assessor", **self._preferred(pair))
        if state["trial"] is None:
            return self._command("session_close", handover="simulated evening over")
        if "score" in allowed and state["proposal"] is not None:
            return self._scored(state, {**state["proposal"]}, state["proposal"]["moved"])
        if "score" in allowed and (measured := state["measured"]) is not None:
            if state["rules"]["measure"] != "score":
                return self._scored(state, {"reached_s": (times := measured["reached_s"] or [])}, len(times))
            return self._scored(state, {"score": (score := measured["score"] or 0.0)}, score)
        if "stage" in allowed or _to_be_emptied(state):
            return self._command("stage", role="setter")
        if "commit" in allowed:
            return self._command("commit")
        if "start" in allowed and not state["operator_ready"]:
            return self._command("start")
        if "skip" in allowed and "stage" not in allowed and state["exhausted"]:
            return self._command("skip", reason="max_voids")
        return None

    def _scored(self, state: PublishedState, outcome: Order, worth: float) -> Order:
        self._worth[state["episode"] or ""] = worth
        return self._command("score", role="assessor", **outcome)

    def _preferred(self, pair: Compare) -> dict[str, str]:
        """The one it scored higher; neither where it scored them alike, or not both itself."""
        first, second = self._worth.get(pair["first"]), self._worth.get(pair["second"])
        better = "neither"
        if first is not None and second is not None and first != second:
            better = "first" if first > second else "second"
        return {"first": pair["first"], "second": pair["second"], "preferred": better, "why": "by what was scored"}

    def delay_ns(self, verb: str) -> int:
        return round(self.pauses_s.get(verb, REACTION_S) * SECOND)

    def _command(self, verb: str, *, role: str = "operator", **args: Any) -> Order:
        return {"verb": verb, "role": role, "who": WHO, "args": args}


def _to_be_emptied(state: PublishedState) -> bool:
    """Whether nothing but a sensor's limit is in the way of a trial's staging, as a scale's under a tote that is full:
    a person empties the tote first, and of a simulated scene the staging itself does.
    """
    codes = [hold["code"] for hold in state["holds"]]
    full = bool(codes) and all(code.startswith(SENSOR_LIMIT) for code in codes)
    return full and state["trial_state"] == PLANNED and not state["exhausted"]


class PromptOperator(SimulatedOperator):
    """For campaigns in real time that are to be over soon: staging and scoring take no longer than any other key."""

    pauses_s: ClassVar[Mapping[str, float]] = {}


def build(options: NoOptions) -> SimulatedOperator:
    """Driver "sim_operator"."""
    return SimulatedOperator()


def prompt(options: NoOptions) -> PromptOperator:
    """Driver "sim_operator_prompt"."""
    return PromptOperator()
