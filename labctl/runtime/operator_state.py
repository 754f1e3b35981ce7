"""What a running campaign shows to whoever looks: the state a console draws. Values only.

May not: hold an arm, a latency, a rate or a running score; whoever reads it may have to be blind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from labctl.clock import SECOND
from labctl.core.detector import as_operations
from labctl.core.events import EndReason
from labctl.core.interlock import CALM_MODES, Hold, Limits, Snapshot, overridable
from labctl.core.liveness import Presence
from labctl.core.rollout import VOIDABLE, Rollout, proposal, typed
from labctl.core.session import Role
from labctl.core.trial import FINISHED, State, Trial, allowed, standing
from labctl.runtime.campaign_writer import Desk
from labctl.store.scene_references import rules as scene_rules

PERSONAL = ("unacknowledged:", "cell_faulted")  # holds that only a named person clears
MACHINE_ENDS = VOIDABLE | {EndReason.SAFETY_STOP}
EARLIER = 12  # trials of the history that are shown
BREAK_NS = 1800 * SECOND  # a longer time between two scores was a break, not the pace of the evening


def board(
    desk: Desk,
    trial: Trial | None,
    live: Sequence[Hold],
    rollout: Rollout | None,
    scene: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Phase, session, the trial whose turn it is, its clock, holds, the scene (as `SceneWatch.shown`), the proposed
    outcome while scoring, progress.
    """
    state, opened = desk.state, desk.opened
    return {
        "campaign": opened["campaign"],
        "cell": desk.campaign.cell.cell.name,
        "kind": opened["kind"],
        "phase": str(state.phase),
        "session": state.session.id if state.session else None,
        "people": [{"id": p.id, "roles": [str(role) for role in p.roles]} for p in state.session.people]
        if state.session
        else [],
        "handover": desk.handover,
        "checks": list(desk.campaign.protocol.session.checks),
        "rules": _rules(desk),
        "trial": trial.id if trial else None,
        "trial_state": str(trial.state) if trial else None,
        "episode": trial.episode if trial else None,
        "voids": trial.voids if trial else 0,
        "block": trial.block if trial else None,
        "block_left": _left_in_block(desk, trial),
        "blocks": len({slot.block for slot in state.trials.values()}),
        "condition": trial.condition if trial else None,
        "card": _card(desk, trial),
        "by_role": {
            str(role): [str(verb) for verb in allowed(state, trial, live, role)] if trial else []
            for role in (Role.OPERATOR, Role.SETTER, Role.ASSESSOR)
        },
        "times": _times(trial, rollout),
        "instructions": _instructions(desk, trial, rollout),
        "scene": scene,
        "holds": [
            {
                "code": hold.code,
                "text": hold.text,
                "clears": hold.clears,
                "needs_person": hold.code.startswith(PERSONAL),
                "overridable": overridable(hold) and scene_rules(opened)["override"] == "allowed",
            }
            for hold in live
        ],
        "waiting": sorted(set(state.holds) - set(standing(state, trial))),
        "hand": _hand(trial, rollout),
        "recovered": _recovered(desk, trial),
        "operator_ready": bool(rollout and rollout.operator_ready),
        "counted": desk.counted.get(trial.episode or "", 0) if trial else 0,
        "touching": bool(typed(trial, rollout)),
        "proposal": _proposal(desk, trial),
        "evidence": _evidence(desk, trial),
        "ended": str(trial.ended) if trial and trial.ended else None,
        "exhausted": bool(trial and trial.exhausted),
        "progress": list(finished(desk)),
        "pace_s": _pace_s(desk.scored_ns),
        "earlier": _earlier(desk),
    }


def camera_words(names: Sequence[str], presence: Presence, rollout: Rollout | None) -> list[dict[str, Any]]:
    """Of each camera node: name, lost (why it gives no pictures, "" when it does), missing (frames of this episode)."""
    words = []
    for name in names:
        lost = presence.unseeing(name) if presence.alive(name) else "its process is not there"
        missing = rollout.missing(name) if rollout is not None else 0
        words.append({"name": name.removeprefix("camera:"), "lost": lost, "missing": missing})
    return words


def finished(desk: Desk) -> tuple[int, int]:
    """How many trials are scored or not run, of how many."""
    trials = desk.state.trials.values()
    return sum(trial.state in FINISHED for trial in trials), len(trials)


def recording_words(body: Mapping[str, Any] | None) -> dict[str, str]:
    """What the last recording (RecordingSealed) tells of each part: its rate and clock, the gaps."""
    if body is None:
        return {}
    words = {"recorder": f"{body['gaps'] or 'no'} gap{'' if body['gaps'] == 1 else 's'}"}
    for stream, fit in (body.get("clocks") or {}).items():
        name = "arm" if stream.startswith("arm/") else stream.replace("camera/", "camera ")
        rate = f"{(fit['n'] - 1) / fit['span_s']:.1f} Hz, " if fit["span_s"] else ""
        words[name] = f"{rate}clock {fit['drift_ppm']:+.0f} ppm"
    return words


def devices(
    snapshot: Snapshot,
    limits: Limits,
    cameras: Sequence[Mapping[str, Any]] = (),
    recording: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, str]]:
    """What every part of the cell last said: {name: {state: ok | wrong, text, recorded}}; cameras: as `camera_words`,
    recording: as `recording_words`.
    """
    mode = f"{snapshot.arm_mode}{': ' if snapshot.arm_reason else ''}{snapshot.arm_reason}"
    ages = {"arm": (snapshot.arm_age_ns, limits.arm_ns), "recorder": (snapshot.recorder_age_ns, limits.recorder_ns)}
    ages |= {f"camera {name}": (age, limits.camera_ns) for name, age in sorted(snapshot.camera_age_ns.items())}
    found = {}
    for name, (age_ns, limit_ns) in ages.items():
        fine = age_ns is not None and age_ns <= limit_ns and (name != "arm" or snapshot.arm_mode in CALM_MODES)
        heard = (
            "never heard"
            if age_ns is None
            else ("answers" if age_ns <= limit_ns else f"silent for {age_ns // SECOND} s")
        )
        found[name] = {"state": "ok" if fine else "wrong", "text": f"{heard}, {mode}" if name == "arm" else heard}
    for camera in cameras:
        entry = found[f"camera {camera['name']}"]
        if entry["state"] == "ok" and camera["lost"]:
            entry |= {"state": "wrong", "text": f"no pictures: {camera['lost']}"}
        if camera["missing"]:
            entry["text"] += f"; {camera['missing']} frames missing"
    free = snapshot.free_gb
    found["disk"] = {
        "state": "ok" if free is not None and free >= limits.min_free_gb else "wrong",
        "text": "could not be read" if free is None else f"{free:.0f} GB free",
    }
    told = recording_words(recording)
    return {name: {**entry, "recorded": told.get(name, "")} for name, entry in found.items()}


def _rules(desk: Desk) -> dict[str, Any]:
    rules = desk.campaign.protocol.trial
    return {
        "items": rules.items_staged,
        "budget_s": rules.budget_s,
        "arming_s": rules.arming_s,
        "early_end": rules.early_end,
        "void_reasons": list(rules.void_reasons),
        "tags": list(rules.failure_tags),
        "stages": list(rules.stages),
        "candidates": sorted(arm.name for arm in desk.campaign.protocol.arm) if rules.ask_guess else [],
    }


def _card(desk: Desk, trial: Trial | None) -> dict[str, Any] | None:
    """The condition at hand, as a setter reads it."""
    return next((dict(entry) for entry in desk.opened["conditions"] if trial and entry["id"] == trial.condition), None)


def _left_in_block(desk: Desk, trial: Trial | None) -> int:
    if trial is None:
        return 0
    return sum(t.block == trial.block and t.state not in FINISHED for t in desk.state.trials.values())


def _times(trial: Trial | None, rollout: Rollout | None) -> dict[str, int | None]:
    """Monotonic ns of this host: when start opens, when the episode began, when its budget is over, when it ended."""
    if rollout is None or trial is None or trial.episode != rollout.episode:
        return {"start_due_ns": None, "go_ns": None, "deadline_ns": None, "end_ns": None}
    return {
        "start_due_ns": rollout.start_due_ns,
        "go_ns": rollout.go_ns,
        "deadline_ns": rollout.deadline_ns,
        "end_ns": rollout.end_ns,
    }


def _instructions(desk: Desk, trial: Trial | None, rollout: Rollout | None) -> list[dict[str, Any]]:
    """Where the protocol switches the instruction: every one of them, that of go first, with its planned seconds after
    go and when the controller took it, monotonic ns. Of every arm the same; empty without switches.
    """
    switches = desk.opened.get("switches", ())
    if not switches:
        return []
    current = rollout is not None and trial is not None and trial.episode == rollout.episode
    took = {-1: rollout.go_ns, **rollout.switched} if current and rollout is not None else {}
    first = {"name": "go", "at_s": 0.0, "instruction": desk.opened["instruction"]}
    return [{**entry, "taken_ns": took.get(number)} for number, entry in enumerate([first, *switches], -1)]


def _hand(trial: Trial | None, rollout: Rollout | None) -> Mapping[str, Any] | None:
    """What the device of a person's trial says until the episode ends. Whoever is in the room sees that person."""
    if rollout is None or trial is None or trial.episode != rollout.episode or rollout.reason is not None:
        return None
    return rollout.hand


def _recovered(desk: Desk, trial: Trial | None) -> list[str]:
    """What this run concluded at its start about the trial whose turn it is, until another episode of it has begun."""
    if trial is None or (trial.state != State.PLANNED and trial.ended != EndReason.PROCESS_LOST):
        return []
    return [line for line in desk.recovered if line.startswith((f"trial {trial.id} ", f"trial {trial.id}:"))]


def _evidence(desk: Desk, trial: Trial | None) -> int | None:
    """The seq of the machine's event that may stand behind a void after go."""
    end = desk.ends.get(trial.episode or "") if trial else None
    return end.seq if end is not None and EndReason(end.body["reason"]) in MACHINE_ENDS else None


def _pace_s(scored_ns: Sequence[int]) -> float | None:
    """Median seconds from one score to the next this evening, breaks left out; None before there are three."""
    steps = [b - a for a, b in pairwise(scored_ns[-20:]) if b - a < BREAK_NS]
    return round(median(steps) / SECOND, 1) if len(steps) >= 2 else None


def _earlier(desk: Desk) -> list[dict[str, Any]]:
    """The last trials that are done, without what came of them."""
    done = [t for t in desk.state.trials.values() if t.state in FINISHED][-EARLIER:]
    return [
        {"trial": t.id, "block": t.block, "condition": t.condition, "state": str(t.state), "voids": t.voids}
        for t in done
    ]


def _proposal(desk: Desk, trial: Trial | None) -> dict[str, Any] | None:
    """For scoring: from the journal, since the episode may be an earlier run's."""
    if trial is None or trial.state != State.SCORING:
        return None
    episode, items = trial.episode or "", desk.opened["items_staged"]
    operations = desk.operations.get(episode, [])
    devices_tell = any(op["result"] != "safety_stop" for told in desk.operations.values() for op in told)
    if not devices_tell and trial.go_ns and trial.end_ns:
        operations = as_operations(desk.detected.get(episode, []), trial.go_ns, trial.end_ns)[:items]
    return proposal(operations, items)
