"""The text of the pages beside the first screen, and amounts in words and in characters. Pure.

May not: draw, read a clock, or show an outcome, a latency, a policy's rate or anything of an arm that is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.clock import SECOND
from labctl.core.events import EndReason
from labctl.core.published_state import LiveHold, PublishedState
from labctl.plain import count
from labctl.times import local, minutes

BAR = 24  # characters of a bar
WAITING = "waiting for the run process"
ENDED = {
    EndReason.ALL_DONE: "a device counted every item moved or lost",
    EndReason.BUDGET: "its time was over",
    EndReason.CONTROLLER_DONE: "the controller said that it was done",
    EndReason.OPERATOR: "the operator ended it",
    EndReason.FUTILITY: "the operator ended it for lack of progress",
    EndReason.SAFETY_STOP: "the robot was stopped",
    EndReason.INTERLOCK: "a sensor was beyond a limit that ends an episode",
    EndReason.ARM_LOST: "the robot's process was lost",
    EndReason.CAMERA_LOST: "a camera was lost",
    EndReason.SENSOR_LOST: "a sensor was lost",
    EndReason.SENSOR_LIMIT: "a sensor was beyond a limit that makes an episode void",
    EndReason.CONTROLLER_LOST: "the controller was lost",
    EndReason.RECORDER_LOST: "the recorder was lost",
    EndReason.PROCESS_LOST: "the run process was lost",
    EndReason.LEASE_LAPSED: "the robot stopped: the run process was not heard in time",
    EndReason.SUSPENDED: "the computer was suspended",
    EndReason.ROBOT_FAULT: "the robot could not go on without a person",
    EndReason.SHUTDOWN: "the run was ended",
}


def words_of(reason: str) -> str:
    """Why an episode ended or is void, as people say it. The journal's word for a lost robot is older than the one for
    the treatments that are compared.
    """
    return "robot lost" if reason == EndReason.ARM_LOST else reason.replace("_", " ")


def holds(state: PublishedState | None) -> list[str]:
    """Every hold: what is wrong, what clears it, and whether that takes a person."""
    if state is None:
        return [WAITING]
    lines: list[str] = []
    for hold in state["holds"]:
        lines += [
            f"{'…' if hold['awaited'] else '✖'} {hold['text']}",
            f"  to go on: {hold['clears']}",
            f"  {_who_clears(hold)}",
            "",
        ]
    for code in state["waiting"]:
        lines += [f"… a hold after this {trial_or_block(code)} was asked for", "  a lets go of it", ""]
    return lines or ["nothing; the trial can go on"]


def _who_clears(hold: LiveHold) -> str:
    if hold["needs_person"]:
        return "it stays until a person has looked and acknowledges it: a"
    if hold["overridable"]:
        return "it goes with its cause; o commits all the same, with a reason that every report prints"
    return "it goes with its cause"


def trial_or_block(code: str) -> str:
    """After which of the two a hold that was asked for begins, by its code."""
    return "trial" if code.startswith("after_trial") else "block"


def session(state: PublishedState | None) -> list[str]:
    """Who is here in which role, what was handed over, the pace."""
    if state is None:
        return [WAITING]
    lines = [f"campaign  {state['campaign']} in cell {state['cell']} ({state['kind']})"]
    if state["session"] is None:
        lines.append("session   none is open; ENTER on the first screen opens one")
    else:
        lines.append(f"session   {state['session']}")
        lines += [f"  {person['id']}: {', '.join(person['roles'])}" for person in state["people"]]
        lines.append("  j on the first screen: somebody comes, leaves or changes role")
    if state["checks"]:
        lines += ["", "checks at every opening", *(f"  {check}" for check in state["checks"])]
    note = state["handover"]
    if note and note["text"]:
        lines += ["", f"handed over by {note['who']} ({local(note['wall'])})", f"  {note['text']}"]
    if state["pace_s"]:
        lines += ["", f"pace      a trial every {clock(state['pace_s'])} this evening"]
    return lines


def hand(state: PublishedState | None) -> list[str]:
    """The device of a person's trial: clutch, input, how much is let through, how near a leader stands."""
    device = state["hand"] if state else None
    if state is None or device is None:
        return [
            "nobody drives by hand now.",
            "In a trial that a person drives, this page shows their device, the clutch, how near a leader",
            "stands to the robot, and the ramp. It begins when the scene is committed.",
        ]
    lines = [
        f"device   {device['device']}",
        f"clutch   {'held' if device['engaged'] else 'not held: the robot rests'}",
        f"input    {'fresh' if device['fresh'] else 'stale: the robot rests'}",
        f"ramp     {bar(device['ramp'])} {100 * device['ramp']:.0f} % of the wish gets through",
    ]
    if device["gap_rad"] is not None:
        lines += ["", f"leader to robot, at most {device['limit_rad']:g} rad before go"]
        for number, gap in enumerate(device["gap_rad"], 1):
            far = "  ✖ too far" if gap > device["limit_rad"] else ""
            lines.append(f"joint {number}  {bar(gap / device['limit_rad'])} {gap:.2f} rad{far}")
    return [*lines, "", hand_line(state) or ""]


def hand_line(state: PublishedState) -> str | None:
    """One line for the first screen on the hand of a person's trial; None when nobody drives."""
    device = state["hand"]
    if not device:
        return None
    running = state["trial_state"] == "running"
    if device["waits"]:
        rests = "; the robot rests" if running else ""
        return f"by hand ({device['device']}): {device['waits']}{rests}"
    return f"by hand ({device['device']}): {'the hand has the robot' if running else 'the hand is ready; keep holding'}"


def instructions(state: PublishedState, now_ns: int) -> list[str]:
    """Where the protocol switches the instruction: the one that stands, and the next with the seconds to it."""
    every = state["instructions"]
    stood = [entry for entry in every if entry["taken_ns"] is not None]
    lines = [f"instruction now: {stood[-1]['instruction']}"] if stood else []
    following = every[every.index(stood[-1]) + 1 :] if stood else every[1:]
    if not following:
        return lines
    entry, go_ns = following[0], every[0]["taken_ns"]
    left_s = None if go_ns is None else entry["at_s"] - (now_ns - go_ns) / SECOND
    when = "" if left_s is None else f" (in {left_s:.0f} s)" if left_s > 0 else " (due, not yet taken)"
    return [*lines, f"switch at {entry['at_s']:g} s{when}: {entry['instruction']}"]


def cameras(state: PublishedState) -> list[str]:
    """What a lost camera means for the episode that runs or was recorded."""
    lines = []
    running = state["trial_state"] == "running"
    for camera in state["cameras"]:
        if camera["lost"] and running:
            lines.append(
                f"camera {camera['name']} gives no pictures ({camera['lost']}): the episode goes on, the gap is marked"
            )
        elif camera["missing"] and not running:  # a few are nothing to look at while a robot moves
            lines.append(
                f"camera {camera['name']}: {count(camera['missing'], 'frame')} missing, marked as a gap in this "
                "episode, which counts all the same"
            )
    return lines


def path(state: PublishedState | None) -> list[str]:
    """The steps from an open campaign to its report, the one at hand marked, each with its command."""
    if state is None:
        return [WAITING]
    name, (done, of) = state["campaign"], state["progress"]
    where = f"{done} of {of} finished"
    if state["block"] is not None:
        where += f", block {state['block'] + 1} of {state['blocks']}"
    if state["pace_s"] and done < of:
        where += f", about {clock(state['pace_s'] * (of - done), coarse=True)} to go"
    steps = [
        ("trials", f"{bar(done / of)} {where}"),
        ("close", f"labctl close {name}     no more trials (end the run first)"),
        ("review", f"labctl review {name}     the assessor, blind; disagreements first"),
        ("freeze", f"labctl freeze {name}     after labctl review {name} --finish; no more review"),
        ("unblind", f"labctl unblind {name}     arms become known"),
        ("report", f"labctl report {name} --out report     where it lies is printed at its end"),
    ]
    marks = "✔▶····" if done >= of else "▶·····"
    lines = [f"{mark} {what:<8} {text}" for mark, (what, text) in zip(marks, steps, strict=True)]
    return [*lines, "", "How the arms do is said in the report and nowhere before."]


def cell(state: PublishedState | None) -> Sequence[Sequence[str]]:
    """What answers and what does not, and how each did in the last recording."""
    found = state["devices"] if state else {}
    return [(name, entry["text"], entry["recorded"], entry["state"]) for name, entry in found.items()]


def history(state: PublishedState | None) -> Sequence[Sequence[str]]:
    """The last trials, without what came of them."""
    return [
        (
            entry["trial"].removeprefix("trial "),
            str(entry["block"] + 1),
            entry["condition"],
            entry["state"].replace("_", " "),
            str(entry["voids"]),
        )
        for entry in reversed(state["earlier"] if state else ())
    ]


def done(state: PublishedState) -> bool:
    """Whether every stage of the task was seen reached."""
    return bool(state["rules"]["steps"]) and state["reached"] == len(state["rules"]["steps"])


def counted(state: PublishedState) -> list[str]:
    """What a person counted of the task at hand so far, and which keys say more."""
    steps, reached, measure = state["rules"]["steps"], state["reached"], state["rules"]["measure"]
    if measure == "items":
        return [f"you counted {state['counted']} of {state['rules']['items']} items moved"]
    if measure == "score":
        return ["it is scored by its rubric when it is over"]
    ends = ": e ends the episode" if state["trial_state"] == "running" else ""
    if measure == "success":
        waits = "press 1 when it is done" if state["trial_state"] == "running" else "nobody pressed 1: not seen done"
        return [f"seen done{ends}; backspace takes it back" if reached else waits]
    marks = ("reached" if number <= reached else f"press {number}" for number in range(1, len(steps) + 1))
    lines = [f"{mark}: {step['name']}: {step['definition']}" for mark, step in zip(marks, steps, strict=True)]
    return [*lines, f"all stages are reached{ends}"] if done(state) else lines


def clock(seconds: float, *, coarse: bool = False) -> str:
    """1:05 for 65 s; coarse: minutes or hours in words."""
    if coarse:
        whole = round(seconds / 60)
        return f"{whole} min" if whole < 90 else f"{whole / 60:.1f} h"
    return minutes(seconds + 0.5)


def short(text: str, most: int = 48) -> str:
    """A text cut to fit a button."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def bar(share: float) -> str:
    """A bar of fixed length, filled by a share from 0 to 1."""
    filled = round(BAR * min(1.0, max(0.0, share)))
    return "█" * filled + "·" * (BAR - filled)
