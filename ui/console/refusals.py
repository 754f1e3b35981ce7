"""Which keys do something now, and why the others do not, in words: no key is ever silent. Pure.

May not: draw or send.
"""

from __future__ import annotations

from collections.abc import Hashable

from labctl.core.published_state import PublishedState as State
from labctl.ui.console import acts, words
from labctl.ui.console.keys import ACTS

ANYWHERE = frozenset({"count", "reach", "touch", "note", "quit"})  # also from a page beside the first screen
UNDO = "nothing was scored here in the last ten seconds; a later correction is made in the review"
NOT_YET = "not yet: "  # how the answer to an ENTER begins that something stands against for now
OVER = "every trial is finished and the run is over: Q leaves this console"
CHANGED = "what this does has changed since it was offered, so it did nothing; read the screen and press again"
UNHEARD = "no word from the run process, so this does nothing; SPACE stops the robot"
WITHOUT_WORD = frozenset({"page", "quit"})  # acts of the console's keys that need nothing of the run process
READ_ONLY = "this console only looks; open one without --read-only to act"
MOVING = "the robot may move now, and SPACE must stop it: no words are typed before it rests"
PASTED = "pasted text does nothing outside a text field"
CTRL_C = "Ctrl-C does nothing here: SPACE or F12 stops the robot, Q leaves this console and the run goes on"
NOTHING_OPEN = "nothing is open that ESC could close; SPACE stops the robot"
_TWICE = "press E twice to end it"
_VOID = {
    "planned": "there is no episode to void: nothing has begun",
    "staging": "there is no episode to void yet; R gives the trial back",
    "committed": "the arm is being revealed; void it once it is armed",
    "running": f"a void comes after the motion: {_TWICE}, or SPACE to stop the robot, then V",
}


def may_move(state: State | None) -> bool:
    """May the robot move, or begin to without another key at this console? Then no text may be open."""
    if state is None:
        return False
    on_its_way = state["trial_state"] == "staging" and not state["staged"]
    return on_its_way or state["trial_state"] in ("committed", "armed", "running")


def at_hand(state: State | None) -> tuple[str | None, ...]:
    """The episode at hand and where it stands: what a form about it was opened for."""
    return (state["trial"], state["episode"], state["trial_state"]) if state else ()


def gone_on(state: State, began: Hashable) -> str:
    """Why a form about an episode is closed: what became of that meanwhile. began: `at_hand` when it was opened."""
    trial, void = (began[0] if isinstance(began, tuple) and began else None), state["voided"]
    if state["trial"] == trial and void:
        return f"the episode was voided meanwhile ({words.words_of(void['reason'])})"
    if state["trial"] == trial and state["trial_state"] == "running":
        return "the episode has begun; a void comes after the motion"
    if state["trial"] == trial and state["trial_state"] == "scoring":
        return "the episode has ended meanwhile; V voids it now, ENTER scores it"
    return "the episode was scored or given up meanwhile, at another console"


def offers(action: str, state: State | None, who: str, *, read_only: bool, may_undo: bool) -> bool:
    """Can a key do something now? Those that cannot are not shown. action: a name of the console's keys."""
    if action == "undo":
        return may_undo
    if action in ("stop", "primary"):
        return not read_only
    if action in WITHOUT_WORD or action not in ACTS:
        return True
    if read_only or state is None:
        return False
    trial, rules = state["trial_state"], state["rules"]
    match action:
        case "end" | "futility":
            early = rules["early_end"] != "forbidden" or words.done(state)
            return early and acts.role_for(state, who, "end") is not None
        case "void" | "release" | "skip":
            return acts.role_for(state, who, action) is not None
        case "confirm":
            return state["needs_second"] and bool(acts.roles_of(state, who))
        case "override":
            return acts.may_override(state, who) is not None
        case "reference":
            return trial == "staging"
        case "count":
            return trial in ("running", "scoring") and bool(state["session"]) and rules["measure"] != "score"
        case "reach":
            return trial in ("running", "scoring") and bool(rules["steps"])
        case "touch":
            return trial == "running" or state["touching"]
        case "prefer":
            return acts.may_prefer(state, who) and not may_move(state)
        case "acknowledge":
            return bool(state["waiting"]) or any(hold["needs_person"] for hold in state["holds"])
        case "people":
            return state["session"] is not None and bool(acts.roles_of(state, who))
    return state["session"] is not None


def refusal(action: str, state: State | None, who: str, *, read_only: bool) -> str:
    """Why an action of the console's keys, which `offers` does not offer, does nothing now."""
    if read_only:
        return READ_ONLY
    if state is None:
        return "no word from the run process yet"
    trial = state["trial_state"]
    match action:
        case "void":
            return _VOID.get(trial or "") or _role(state, who, "void", "there is no episode to void")
        case "confirm":
            return "there is nothing to confirm: no episode waits here that a second person would have to void"
        case "end" | "futility":
            if state["rules"]["early_end"] == "forbidden" and trial == "running" and not words.done(state):
                return "the protocol lets no episode end early: it goes on to its budget; SPACE stops the robot"
            return _role(state, who, "end", "no episode runs that could be ended")
        case "release":
            return _role(state, who, "release", "only a trial that is being staged is given back")
        case "skip":
            return _role(state, who, "skip", "a trial may be skipped only once it was voided too often")
        case "override":
            return _override(state)
        case "reference":
            return "a reference is taken of a scene that is being staged"
        case "count" if state["rules"]["measure"] == "score":
            return "nothing is counted of this task; its rubric comes when the episode is over"
        case "reach" if not state["rules"]["steps"]:
            return "this task has no stages"
        case "reach":
            return "stages are reached while an episode runs and until it is scored"
        case "count":
            return "items are counted while an episode runs and until it is scored"
        case "touch":
            return "no episode runs in which a hand could be"
        case "undo":
            return UNDO
        case "prefer":
            return _prefer(state, who)
        case "acknowledge":
            return "nothing waits for an acknowledgement"
        case "people" if state["session"] is not None:
            return acts.stranger(who)
        case "wait" | "note" | "people" | "leave_session":
            return "no session is open; ENTER on the first screen opens one"
    return "that key does nothing now"


def _role(state: State, who: str, verb: str, otherwise: str) -> str:
    return acts.for_others(state, who, verb, verb) or otherwise


def _prefer(state: State, who: str) -> str:
    if state["compare"] is None:
        return "no pair of episodes waits for a word on which was better"
    return MOVING if acts.may_prefer(state, who) else "which of two was better is for the assessor to say"


def _override(state: State) -> str:
    if state["trial_state"] != "staging":
        return "O commits a staged scene that only its pictures stand against; none is being staged"
    firm = [hold["text"] for hold in state["holds"] if not hold["overridable"]]
    if firm:
        return f"O cannot go over this: {firm[0]}"
    return "O is for operator or setter" if state["holds"] else "nothing stands against the scene: ENTER commits it"


def no_primary(state: State | None, who: str, *, fresh: bool) -> str:
    """Why ENTER does nothing on the first screen, "" when it does something."""
    if state is not None and acts.over(state):
        return OVER
    if state is None or not fresh:
        return "no word from the run process: ENTER does nothing before there is; SPACE still reaches the robot"
    act = acts.primary(state, who)
    if act is not None:
        return f"{NOT_YET}{act.why_not}" if act.why_not else ""
    match state["trial_state"]:
        case "armed":
            return "you are ready already; it starts by itself when the wait is over"
        case "running":
            return f"ENTER does nothing while the robot may move; SPACE stops it, {_TWICE.removeprefix('press ')}"
    return "ENTER has nothing to do now"
