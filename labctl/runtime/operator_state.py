"""What a running campaign shows to whoever looks, and when: the state that a console draws.

May not: reach the campaign, its ledger or its protocol: all it draws from is a `BlindView` and what the cell's nodes
report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from labctl.clock import SECOND
from labctl.core.campaign_state import blocks_in_all, pairs
from labctl.core.event_bodies import RecordingSealed
from labctl.core.events import EndReason
from labctl.core.interlock import (
    CALM_MODES,
    NO_PICTURE_YET,
    NO_VALUE_YET,
    Limits,
    SensorSeen,
    Snapshot,
    overridable,
)
from labctl.core.liveness import Liveness
from labctl.core.published_state import (
    CameraState,
    CampaignPart,
    DeviceState,
    EarlierTrial,
    Instruction,
    PublishedState,
    Voided,
)
from labctl.core.rollout import Rollout
from labctl.core.session import Role
from labctl.core.task import condition_of
from labctl.core.trial import FINISHED, CampaignState, State, Trial, allowed, standing
from labctl.plain import count
from labctl.runtime.blind_view import BlindView

PUBLISH_NS = SECOND
UNACKNOWLEDGED = "unacknowledged:"  # how the codes of journalled holds begin here
PERSONAL = (UNACKNOWLEDGED, "cell_faulted")  # holds that only a named person clears
EARLIER = 12  # trials of the history that are shown
BREAK_NS = 1800 * SECOND  # a longer time between two scores was a break, not the pace of the evening


@dataclass(frozen=True, slots=True)
class CellReport:
    """What the nodes of the cell report. staged: the trial whose scene is set and whose robot stands where episodes
    begin, "" without. clipped: the limit that shapes the motion now. recording: of the last episode that was sealed.
    """

    snapshot: Snapshot
    limits: Limits
    cameras: Sequence[CameraState]
    staged: str | None
    clipped: str
    recording: RecordingSealed | None


class Publication:
    """When the state is published, and what it says. `next_ns` is when that is done though nothing has changed."""

    def __init__(self, run_id: int) -> None:
        self._run_id = run_id
        self._moment = 0
        self._last: tuple[object, ...] = ()
        self.next_ns = 0

    def due(self, seen: tuple[object, ...], now_ns: int) -> bool:
        """Whether to publish: what is `seen` now is otherwise than at the last time, or that is a while ago."""
        if seen == self._last and now_ns < self.next_ns:
            return False
        self._moment += seen != self._last
        self._last, self.next_ns = seen, now_ns + PUBLISH_NS
        return True

    def state(self, view: BlindView, cell: CellReport, version: int) -> PublishedState:
        """What is published. version: what a command that answers to it has to name."""
        turn, snapshot = view.turn, cell.snapshot
        verbs = allowed(view.state, turn, view.live, Role.OPERATOR) if turn else ()
        return {
            "run": self._run_id,
            "version": version,
            "moment": self._moment,
            "allowed": [str(verb) for verb in verbs],
            "staged": bool(turn and cell.staged == turn.id),
            "arm": {"mode": snapshot.robot_mode, "reason": snapshot.robot_reason},
            "clipped": cell.clipped,
            "devices": devices(snapshot, cell.limits, cell.cameras, cell.recording),
            "cameras": cell.cameras,
            **campaign_part(view),
        }


def campaign_part(view: BlindView) -> CampaignPart:
    """Phase, session, the trial whose turn it is, its times, holds, the scene, the proposed outcome while scoring,
    progress.
    """
    state, turn = view.state, view.turn
    opened, session = state.opened, state.session
    return {
        "campaign": opened["campaign"],
        "cell": view.cell,
        "kind": opened["kind"],
        "phase": str(state.phase),
        "session": session.id if session else None,
        "people": [{"id": p.id, "roles": [str(role) for role in p.roles]} for p in session.people] if session else [],
        "trial": turn.id if turn else None,
        "trial_state": str(turn.state) if turn else None,
        "episode": turn.episode if turn else None,
        "voids": turn.voids if turn else 0,
        "voided": _voided(turn),
        "block": turn.block if turn else None,
        "block_left": _left_in_block(view),
        "blocks": blocks_in_all(state),
        "alone": turn is not None and turn.block in opened.get("alone", ()),
        "condition": turn.condition if turn else None,
        "following": _following(view),
        "card": (card := condition_of(opened, turn.condition) if turn else None),
        "sources": [tote for tote in view.totes if card and tote != card["tote_side"]],
        "by_role": {
            str(role): [str(verb) for verb in allowed(state, turn, view.live, role)] if turn else []
            for role in (Role.OPERATOR, Role.SETTER, Role.ASSESSOR)
        },
        "instructions": _instructions(view),
        "holds": [
            {
                "code": hold.code,
                "text": hold.text,
                "clears": hold.clears,
                "needs_person": hold.code.startswith(PERSONAL),
                "overridable": overridable(hold) and view.overrides,
                "awaited": hold.awaited,
                "raised": state.raised.get(hold.code.removeprefix(UNACKNOWLEDGED)),
            }
            for hold in view.live
        ],
        "waiting": sorted(set(state.holds) - set(standing(state, turn))),
        "recovered": _recovered(view),
        "compare": next((pair for pair, stated in pairs(state) if stated is None), None),
        "ended": str(turn.ended) if turn and turn.ended else None,
        "exhausted": bool(turn and turn.exhausted),
        "last_void": bool(turn and turn.next_void_is_last),
        "progress": list(finished(state)),
        "pace_s": _pace_s(view.scored_ns),
        "earlier": _earlier(state),
        **view.shown,
    }


def camera_states(names: Sequence[str], liveness: Liveness, rollout: Rollout | None) -> list[CameraState]:
    """Of each camera node: name, lost (why it gives no pictures, "" when it does), missing (frames of this episode)."""
    states: list[CameraState] = []
    for name in names:
        lost = liveness.unseeing(name) if liveness.alive(name) else "its process is not there"
        missing = rollout.missing(name) if rollout is not None else 0
        states.append({"name": name.removeprefix("camera:"), "lost": lost, "missing": missing})
    return states


def finished(state: CampaignState) -> tuple[int, int]:
    """How many trials are scored or not run, of how many."""
    return sum(trial.state in FINISHED for trial in state.trials.values()), len(state.trials)


def recording_lines(body: RecordingSealed | None) -> dict[str, str]:
    """The rate, clock and gaps of each part in the last recording (a RecordingSealed body)."""
    if body is None:
        return {}
    lines = {"recorder": count(body["gaps"], "gap") if body["gaps"] else "no gaps"}
    for stream, fit in (body.get("clocks") or {}).items():
        name = "arm" if stream.startswith("arm/") else stream.replace("camera/", "camera ")
        rate = f"{(fit['n'] - 1) / fit['span_s']:.1f} Hz, " if fit["span_s"] else ""
        share = f", {100 * fit['received']:.1f} % of commands received" if "received" in fit else ""
        lines[name] = f"{rate}clock {fit['drift_ppm']:+.0f} ppm{share}"
    return lines


def devices(
    snapshot: Snapshot,
    limits: Limits,
    cameras: Sequence[CameraState] = (),
    recording: RecordingSealed | None = None,
) -> dict[str, DeviceState]:
    """What every part of the cell last reported, by name; cameras: as `camera_states`, recording: as
    `recording_lines`.
    """
    mode = f"{snapshot.robot_mode}{': ' if snapshot.robot_reason else ''}{snapshot.robot_reason}"
    ages = {"arm": snapshot.robot_age_ns, "recorder": snapshot.recorder_age_ns}
    ages |= {f"camera {name}": age_ns for name, age_ns in sorted(snapshot.camera_age_ns.items())}
    recorded = recording_lines(recording)
    found: dict[str, DeviceState] = {}
    for name, age_ns in ages.items():
        silent = _silent(age_ns, limits)
        state = "wrong" if silent or (name == "arm" and snapshot.robot_mode not in CALM_MODES) else "ok"
        text = f"{silent or 'answers'}, {mode}" if name == "arm" else silent or "answers"
        if age_ns is None and name.replace("camera ", "camera:") in snapshot.starting:
            state, text = "awaited", "is being started"
        found[name] = {"state": state, "text": text, "recorded": recorded.get(name, "")}
    for camera in cameras:
        entry = found[f"camera {camera['name']}"]
        if entry["state"] == "ok" and camera["lost"]:
            awaited = camera["lost"] == NO_PICTURE_YET and f"camera:{camera['name']}" in snapshot.starting
            entry["state"], entry["text"] = "awaited" if awaited else "wrong", f"no pictures: {camera['lost']}"
        if camera["missing"]:
            entry["text"] += f"; {count(camera['missing'], 'frame')} missing"
    found |= {
        f"sensor {name}": _sensor(name, seen, snapshot, limits) for name, seen in sorted(snapshot.sensors.items())
    }
    free = snapshot.free_gb
    found["disk"] = {
        "state": "ok" if free is not None and free >= limits.min_free_gb else "wrong",
        "text": "could not be read" if free is None else f"{free:.0f} GB free",
        "recorded": "",
    }
    return found


def _sensor(name: str, seen: SensorSeen, snapshot: Snapshot, limits: Limits) -> DeviceState:
    """A sensor: wrong while it gives no values or is beyond a limit, whether or not the cell can do without it."""
    if f"sensor:{name}" in snapshot.starting and (seen.age_ns is None or seen.lost == NO_VALUE_YET):
        return {"state": "awaited", "text": "is being started", "recorded": ""}
    text = _silent(seen.age_ns, limits) or (f"no values: {seen.lost}" if seen.lost else "; ".join(seen.beyond))
    return {"state": "wrong" if text else "ok", "text": text or "answers", "recorded": ""}


def _silent(age_ns: int | None, limits: Limits) -> str:
    """That a signal is not heard, in words; "" while it is."""
    if age_ns is None:
        return "never heard"
    return f"silent for {age_ns // SECOND} s" if age_ns > limits.silent_ns else ""


def _voided(turn: Trial | None) -> Voided | None:
    """Why the last episode of the trial at hand is void, until the next one is armed."""
    if turn is None or turn.last_void is None or turn.state not in (State.PLANNED, State.STAGING):
        return None
    return {"reason": turn.last_void.reason, "after_go": turn.last_void.after_go}


def _following(view: BlindView) -> str | None:
    """The condition of the trial after the one at hand, so that its scene can be got ready."""
    state = view.state
    later = state.order[state.finished + 1 :]
    return state.trials[later[0]].condition if later else None


def _left_in_block(view: BlindView) -> int:
    turn = view.turn
    if turn is None:
        return 0
    return sum(t.block == turn.block and t.state not in FINISHED for t in view.state.trials.values())


def _instructions(view: BlindView) -> list[Instruction]:
    """Where the protocol switches the instruction: every one of them, that of go first. Of every arm the same; empty
    without switches.
    """
    opened = view.state.opened
    switches = opened.get("switches", ())
    if not switches:
        return []
    go_ns, taken = view.shown["times"]["go_ns"], view.switched
    first: Instruction = {"name": "go", "at_s": 0.0, "instruction": opened["instruction"], "taken_ns": go_ns}
    later: list[Instruction] = [
        {"at_s": switch["at_s"], "instruction": switch["instruction"], "name": switch["name"], "taken_ns": taken.get(n)}
        for n, switch in enumerate(switches)
    ]
    return [first, *later]


def _recovered(view: BlindView) -> list[str]:
    """What this run concluded at its start about the trial whose turn it is, until another episode of it has begun."""
    turn = view.turn
    if turn is None or (turn.state != State.PLANNED and turn.ended != EndReason.PROCESS_LOST):
        return []
    return [line for line in view.recovered if line.startswith((f"{turn.place} ", f"{turn.place}:"))]


def _pace_s(scored_ns: Sequence[int]) -> float | None:
    """Median seconds from one score to the next since the host was started, breaks left out; None before there are
    three.
    """
    steps = [b - a for a, b in pairwise(scored_ns) if b - a < BREAK_NS]
    return round(median(steps) / SECOND, 1) if len(steps) >= 2 else None


def _earlier(state: CampaignState) -> list[EarlierTrial]:
    """The last trials that are done, without what came of them."""
    done = [t for t in state.trials.values() if t.state in FINISHED][-EARLIER:]
    return [
        {"trial": t.place, "block": t.block, "condition": t.condition, "state": str(t.state), "voids": t.voids}
        for t in done
    ]
