"""What a console offers now: one primary act, the others, and the words for what is going on. Pure.

May not: draw, send, read a clock, or offer what the run process would refuse: it goes by the published `by_role`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labctl.clock import SECOND
from labctl.core.events import EndReason
from labctl.core.published_state import PublishedState as State
from labctl.core.scene_words import verdict
from labctl.plain import count
from labctl.ui.console import words
from labctl.ui.console.words import clock, short

# state of a trial -> the verb that leads on, who usually does it, the words on the button
LEADS = {
    "planned": ("stage", "setter"),
    "staging": ("commit", "operator"),
    "armed": ("start", "operator"),
    "scoring": ("score", "assessor"),
}
ROLES = ("operator", "setter", "assessor")


@dataclass(frozen=True, slots=True)
class Act:
    """Something a person can do now: verb and role for the command, the words on the button. `why_not` says what
    stands against it; such an act is shown and cannot be done.
    """

    verb: str
    role: str
    label: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """What the main screen says: one word for the state, one line on what it means, lines of detail, the time bar
    (done, of) in seconds.
    """

    state: str
    line: str
    details: Sequence[str] = ()
    bar: tuple[float, float] | None = None


def roles_of(state: State, who: str) -> tuple[str, ...]:
    """The roles that this person took in the open session."""
    return next((tuple(person["roles"]) for person in state["people"] if person["id"] == who), ())


def role_among(state: State, who: str, roles: Sequence[str]) -> str | None:
    """The first of these roles that this person took, or None."""
    return next((role for role in roles if role in roles_of(state, who)), None)


def role_for(state: State, who: str, verb: str) -> str | None:
    """A role of this person that may do this now, or None."""
    return next((r for r in ROLES if r in roles_of(state, who) and verb in state["by_role"].get(r, ())), None)


def primary(state: State | None, who: str) -> Act | None:
    """The one thing to do next, done by this person or, with `why_not`, held or left to another."""
    if state is None:
        return None
    if state["session"] is None:
        return Act("session", "operator", "Open the session") if state["trial"] or not _all_done(state) else None
    if may_prefer(state, who) and state["trial_state"] in ("planned", None):
        return Act("prefer", "assessor", "Say which of two episodes was better")
    personal = next((hold for hold in state["holds"] if hold["needs_person"]), None)
    if personal is not None:
        return Act("acknowledge", "operator", f"Acknowledge: {short(personal['text'].partition(';')[0])}")
    if state["trial"] is None:
        return Act("session_close", "operator", "Close the session")
    if state["exhausted"] and state["trial_state"] == "planned":
        return _act(state, who, "skip", "operator", "Skip this trial: it was voided too often")
    lead = LEADS.get(state["trial_state"] or "")
    if lead is None:
        return None
    verb, usual = lead
    if verb == "start" and state["operator_ready"]:
        return None
    return _act(state, who, verb, usual, _label(state, verb))


def may_prefer(state: State, who: str) -> bool:
    """Is there a pair of episodes of which this person may say which was better?"""
    return state["compare"] is not None and "assessor" in roles_of(state, who)


def _act(state: State, who: str, verb: str, usual: str, label: str) -> Act:
    role = role_for(state, who, verb)
    if role is not None:
        waiting = verb == "commit" and not state["staged"]
        return Act(verb, role, label, "the robot is on its way to where episodes begin" if waiting else "")
    if state["holds"]:
        return Act(verb, usual, label, state["holds"][0]["text"])
    otherwise = "sealing the recording" if verb == "score" else "not possible now"
    return Act(verb, usual, label, for_others(state, who, verb, "this") or otherwise)


def stranger(who: str) -> str:
    """What is said to whoever is not in the session that is open."""
    return f"{who} is not in this session: J by one who is, or X closes it"


def for_others(state: State, who: str, verb: str, subject: str) -> str:
    """Which roles may do this now, said to somebody of another; "" when none may. subject: what "this" is called."""
    able = " or ".join(role for role in ROLES if verb in state["by_role"].get(role, ()))
    if able and state["session"] is not None and not roles_of(state, who):
        return stranger(who)
    return able and f"{subject} is for the {able}; you are {', '.join(roles_of(state, who)) or 'watching'}"


def _label(state: State, verb: str) -> str:
    return {
        "stage": f"Stage {_what(state)}",
        "commit": f"Commit: {_staged(state)}",
        "start": "Start again" if state["withheld"] else "Ready: start when the time comes",
        "score": "Score this episode",
    }[verb]


def _staged(state: State) -> str:
    """What a commit says of the scene: that it is as in its picture only where there is one."""
    pictured = any(one["reference"] is not None for one in state["scene"]["cameras"].values())
    return "the scene is as in the picture" if pictured else "the scene is as the card says"


def page(state: State | None, now_ns: int) -> Page:
    """What is going on, in words."""
    if state is None:
        return Page("no word yet", "waiting for the run process")
    if over(state):
        name = state["campaign"]
        line = f"every trial is finished; next: labctl close {name}, then labctl review {name}"
        return Page("all done", line, ["P shows the way from here to the report"])
    if state["session"] is None:
        left = ["an episode waits for its score"] if state["trial_state"] == "scoring" else []
        return Page(
            "closed", "no session is open; people and roles come first", [*left, *_tonight(state), *_recovered(state)]
        )
    if state["trial"] is None and state["compare"] is not None:
        return Page("all done", "no trial is left; which of two episodes was better is still to be said")
    if state["trial"] is None:
        return Page("all done", "no trial is left; close the session with a note for the next ones")
    return _PAGES[state["trial_state"] or ""](state, now_ns)


def _planned(state: State, now_ns: int) -> Page:
    return Page(
        "next",
        f"trial {number(state)}: {_what(state)}",
        [*_voided(state), *_tonight(state), *_setting(state), *_recovered(state)],
    )


def _staging(state: State, now_ns: int) -> Page:
    home = (
        "the robot is where episodes begin"
        if state["staged"]
        else "the robot is on its way to where episodes begin: hands off"
    )
    lines = [*_voided(state), *_setting(state), home, *_matches(state)]
    return Page("staging", f"set the scene: {_what(state)}", lines)


def _voided(state: State) -> list[str]:
    """Why the last episode of this trial does not count, whoever or whatever made it void."""
    void = state["voided"]
    if void is None:
        return []
    again = "it may only be skipped" if state["exhausted"] else "run again with the same arm"
    return [f"voided {'after' if void['after_go'] else 'before'} go: {words.words_of(void['reason'])}; {again}"]


def _matches(state: State) -> list[str]:
    """How well each camera's view fits its reference."""
    scene = state["scene"]
    limit_px = float(scene["rules"].get("max_camera_shift_px") or 0.0)
    lines = ["taking the photos"] if scene["photographing"] else []
    for name, seen in scene["cameras"].items():
        found = seen["scene"]
        if seen["problem"]:
            lines.append(f"{name}: {seen['problem']}")
        elif found:
            only = "" if seen["counts"] else " (an earlier block's picture; it only informs)"
            asked = "" if seen["needed"] is None else f" ({seen['needed']:.0f} needed)"
            lines.append(f"{name}: match {found['score']:.0f} of 100{asked}, {verdict(found, limit_px)}{only}")
        elif seen["reference"] is None:
            lines.append(f"{name}: no picture yet to compare with; this one will be it")
    return lines


def may_override(state: State | None, who: str) -> str | None:
    """The role by which this person may commit a scene that only its pictures stand against, or None."""
    if state is None or state["trial_state"] != "staging" or not state["holds"]:
        return None
    if not all(hold["overridable"] for hold in state["holds"]):
        return None
    return role_among(state, who, ("operator", "setter"))


def _armed(state: State, now_ns: int) -> Page:
    due = state["times"]["start_due_ns"]
    left = max(0.0, (due - now_ns) / SECOND) if due else 0.0
    of = float(state["rules"]["arming_s"])
    ready = (
        "you are ready; hands out of the cell"
        if state["operator_ready"]
        else "hands out of the cell, then say that you are ready"
    )
    lines = [*filter(None, [words.hand_line(state)]), ready, *words.instructions(state, now_ns)]
    withheld = state["withheld"]
    if left > 0:
        line = f"starts in {left:.0f} s: the same wait for everyone"
        lines.append("a policy that is not ready by then makes the episode void; anything else is waited for")
    elif state["operator_ready"]:
        line = "starting"
    elif withheld:
        line = "not started, and nothing is lost: put it right or wait, then press ENTER again"
        lines.insert(0, f"not ready: {withheld}")
    else:
        line = "the wait is over: it starts with your ENTER"
        lines.append("a policy that is not ready then makes the episode void; anything else is waited for")
    return Page("armed", line, lines, (of - left, of))


def _committed(state: State, now_ns: int) -> Page:
    """Seen only where another host has the seal."""
    return Page("committed", "asking the seal host for this trial", ["nothing moves before it answers"])


def _running(state: State, now_ns: int) -> Page:
    budget = float(state["rules"]["budget_s"])
    deadline = state["times"]["deadline_ns"]
    left = max(0.0, (deadline - now_ns) / SECOND) if deadline else budget
    moves = "the robot may move at any moment"
    if not deadline:
        return Page("running", "waiting for go", [*filter(None, [words.hand_line(state)]), moves])
    lines = [*filter(None, [words.hand_line(state)]), *words.counted(state), moves]
    lines += words.instructions(state, now_ns)
    if state["touching"]:
        lines.append("a hand is in it: press i when it is out")
    if state["clipped"]:
        lines.append(f"the motion is shaped by a limit: {state['clipped']}")
    lines += words.cameras(state)
    return Page("running", f"{clock(left)} left of {clock(budget)}", lines, (budget - left, budget))


def _scoring(state: State, now_ns: int) -> Page:
    if "score" not in state["by_role"].get("assessor", ()):
        return Page("sealing", "the recording is being sealed; the outcome comes after", words.cameras(state))
    ended = state["ended"]
    why = [f"it ended: {words.ENDED[EndReason(ended)]}"] if ended else []
    lines = [*why, *_counts(state), *words.cameras(state), *_recovered(state)]
    asked = _ASKED[state["rules"]["measure"]]
    return Page("scoring", f"what happened? {asked}", lines)


_ASKED = {
    "items": "count what lies where",
    "success": "say whether it was done",
    "stages": "say how far it got",
    "score": "score it by the rubric",
}


def _counts(state: State) -> list[str]:
    if state["rules"]["measure"] != "items":
        return words.counted(state)
    found, items = state["proposal"], state["rules"]["items"]
    lines = [f"staged {count(items, 'item')}; you counted {state['counted']} moved"]
    if found:
        lines.append(
            f"the detector proposes: moved {found['moved']}, lost {found['lost']}, remaining {found['remaining']}"
        )
        if found["moved"] != state["counted"]:
            lines.append("the two differ: count again")
    return lines


_PAGES = {
    "planned": _planned,
    "staging": _staging,
    "armed": _armed,
    "committed": _committed,
    "running": _running,
    "scoring": _scoring,
}


def number(state: State) -> str:
    """What people call the trial whose turn it is, of all ("2 of 48")."""
    done, of = state["progress"]
    return f"{done + 1} of {of}"


def _what(state: State) -> str:
    card = state["card"]
    if card is None:
        return "?, ?"
    where = f"{card['object']}, {card['layout']}"
    return f"{where} ({card['task']})" if "task" in card else where


def _setting(state: State) -> list[str]:
    card = state["card"]
    if not card:
        return []
    items = count(state["rules"]["items"], "item")
    return [
        f"{items} of {card['object']}, from the {' or '.join(state['sources'])} tote to the {card['tote_side']} "
        f"one; camera {card['camera_side']}",
        card["instructions"],
        *([f"the task: {card['instruction']}"] if "instruction" in card else []),
    ]


def _tonight(state: State) -> list[str]:
    lines = []
    if state["block"] is not None:
        lines.append(
            f"block {state['block'] + 1} of {state['blocks']}, {count(state['block_left'], 'trial')} left in it"
            + (", an extra one of the person alone" if state["alone"] else "")
        )
    note = state["handover"]
    if note and note["text"]:
        lines.append(f"handover from {note['who']}: {note['text']}")
    return lines


def _recovered(state: State) -> list[str]:
    """What the run concluded about this trial when it was started again."""
    lines = state["recovered"]
    return ["the run was interrupted; what it found when it was started again:", *lines] if lines else []


def header(state: State | None) -> str:
    """One line: campaign, cell, block, progress, about how long the rest takes."""
    if state is None:
        return "labctl"
    done, of = state["progress"]
    parts = [state["campaign"], f"{state['cell']} ({state['kind']})"]
    if state["block"] is not None:
        alone = ", the person alone" if state["alone"] else ""
        parts.append(f"block {state['block'] + 1}/{state['blocks']}{alone}")
    parts.append(f"{done}/{count(of, 'trial')}")
    if state["pace_s"] and done < of:
        parts.append(f"about {clock(state['pace_s'] * (of - done), coarse=True)} to go")
    if state["waiting"]:
        parts.append(f"holds after this {words.trial_or_block(state['waiting'][0])}")
    return " · ".join(parts)


def fixes(state: State | None) -> list[tuple[str, str]]:
    """(what is wrong, what clears it) for every live hold, in order; what only takes its time is not wrong."""
    return [
        (hold["text"], hold["clears"])
        for hold in (state["holds"] if state else ())
        if hold["code"] != "no_session" and not hold["awaited"]
    ]


def awaited(state: State | None) -> list[str]:
    """One line on what only takes its time, as at every start; none when nothing does."""
    found = [hold["text"] for hold in (state["holds"] if state else ()) if hold["awaited"]]
    return [f"getting ready: {'; '.join(found)}"] if found else []


def against(state: State | None) -> str:
    """The line over the holds: what they stand against."""
    if state is not None and state["trial_state"] in ("running", "scoring"):
        return "before the next trial is staged:"
    return "something stands against going on:"


def over(state: State) -> bool:
    """Every trial is finished and the session closed: a run ends then, and is not missed."""
    return state["session"] is None and _all_done(state)


def _all_done(state: State) -> bool:
    done, of = state["progress"]
    return done >= of
