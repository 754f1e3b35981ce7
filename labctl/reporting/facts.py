"""What only a campaign can tell a report: flow, deviations, blinding, provenance, episodes. From the journal.

May not: estimate anything, or be asked before unblinding (every part is by arm).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labctl.clock import SECOND
from labctl.core.events import EndReason, Event, Kind
from labctl.core.skew import campaign_clock, clock_warnings
from labctl.core.trial import CampaignState, State, Trial
from labctl.errors import StateError
from labctl.reporting.operations_table import WRONG_END

EARLY = frozenset({EndReason.OPERATOR, EndReason.FUTILITY, EndReason.SHUTDOWN})


@dataclass(slots=True)
class Told:
    """What the journal says of one campaign, gathered once. `voids` are the EpisodeVoided events."""

    arms: dict[str, str] = field(default_factory=dict)  # trial -> arm
    attempts: Counter[str] = field(default_factory=Counter)  # trial -> episodes revealed
    started: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # episode -> EpisodeStarted body
    sealed: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # episode -> RecordingSealed body
    voids: list[Event] = field(default_factory=list)
    scorers: dict[str, str] = field(default_factory=dict)  # episode -> who counted last
    looked_at: set[str] = field(default_factory=set)  # episodes whose operations were reviewed
    pins: Mapping[str, Any] = field(default_factory=dict)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    deviations: list[str] = field(default_factory=list)
    opened_wall: str | None = None
    closed_wall: str | None = None
    unblinded: Mapping[str, Any] = field(default_factory=dict)
    reviewed: bool = False
    frozen: bool = False


def gather(events: Sequence[Event]) -> Told:
    """Everything a report needs, in one pass. Raises StateError before unblinding."""
    told = Told()
    gaps: Counter[str] = Counter()
    for event in events:
        body = event.body
        match event.kind:
            case Kind.CAMPAIGN_OPENED:
                told.opened_wall = event.wall
            case Kind.CAMPAIGN_CLOSED:
                told.closed_wall = event.wall
            case Kind.CAMPAIGN_REVIEWED:
                told.reviewed = True
            case Kind.CAMPAIGN_FROZEN:
                told.frozen = True
            case Kind.CAMPAIGN_UNBLINDED:
                told.unblinded = body
                told.arms = {slot["trial"]: slot["arm"] for slot in body["schedule"]}
                told.deviations += _failures(body.get("openings") or [])
            case Kind.SESSION_OPENED:
                people = [f"{person['id']} ({', '.join(person['roles'])})" for person in body["people"]]
                told.sessions[body["session"]] = {"session": body["session"], "people": people}
            case Kind.SESSION_CLOSED:
                told.sessions[body["session"]]["handover"] = body.get("handover")
            case Kind.RUN_STARTED:
                told.pins = body.get("pins") or told.pins
                told.deviations += [
                    f"{event.wall}: after an interruption: {line}" for line in body.get("recovered") or []
                ]
            case Kind.ARM_REVEALED if event.trial:
                told.attempts[event.trial] += 1
            case Kind.EPISODE_STARTED if event.episode:
                told.started[event.episode] = body
            case Kind.RECORDING_SEALED if event.episode:
                told.sealed[event.episode] = body
                for stream, fit in (body.get("clocks") or {}).items():
                    told.deviations += [f"episode {event.episode}: {text}" for text in clock_warnings(stream, fit)]
            case Kind.EPISODE_VOIDED:
                told.voids.append(event)
            case Kind.GAP if event.episode:
                gaps[event.episode] += 1
            case Kind.OUTCOME_RECORDED if event.episode:
                told.scorers[event.episode] = event.who
            case Kind.OPERATIONS_REVIEWED if event.episode:
                told.looked_at.add(event.episode)
            case Kind.OUTCOME_CORRECTED:
                told.scorers[str(event.episode)] = event.who
                told.deviations.append(
                    f"{event.wall}: outcome of {event.episode} corrected by {event.who}: {body['why']}"
                )
            case Kind.DEVIATION:
                told.deviations.append(f"{event.wall}: {body['text']}")
            case Kind.REFERENCE_SET:
                told.deviations.append(
                    f"{event.wall}: new reference of camera {body['camera']}, by {event.who}: {body['reason']}"
                )
            case Kind.CELL_FAULTED:
                told.deviations.append(f"{event.wall}: cell faulted: {body['reason']}")
    if not told.arms:
        raise StateError("the campaign is not unblinded; nothing may be said by arm")
    told.deviations += [f"episode {episode}: {n} gap(s) in the recording" for episode, n in gaps.items()]
    return told


def _failures(openings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What controllers said when they failed: sealed until now, since it may name them."""
    told = [opening for opening in openings if str(opening["field"]).startswith("failure:")]
    return [f"episode {opening['episode']}: its controller failed: {opening['value']}" for opening in told]


def kinds(told: Told) -> list[str]:
    """The kinds of cell the episodes were stamped with (real, sim, ...)."""
    return sorted({str(body["kind"]) for body in told.started.values()})


def refuse_mixed(told: Told, name: str) -> None:
    """Raises StateError when episodes of one report were stamped with different kinds of cell."""
    found = kinds(told)
    if len(found) > 1:
        raise StateError(
            f"{name} holds episodes of kinds {', '.join(found)}, which a report never mixes; export each kind"
        )


def facts(state: CampaignState, told: Told, arms: Sequence[str], *, alpha: float, robot: str) -> dict[str, Any]:
    """The `lab` dict of `labctl.analysis.report.page.build_report`. `arms` are in the order of the protocol."""
    opened = state.opened
    open_reasons = [] if told.reviewed else ["operation events were not reviewed by an assessor"]
    open_reasons += [] if told.frozen else ["the campaign is not frozen"]
    return {
        "campaign": opened["campaign"],
        "question": opened["protocol"]["question"],
        "phase": str(state.phase),
        "alpha": alpha,
        "provisional": bool(open_reasons),
        "provisional_why": open_reasons,
        "kind": ", ".join(kinds(told)) or opened["kind"],
        "cell": opened["cell"]["name"],
        "robot": robot,
        "commitment": opened["commitment"],
        "head": state.head,
        "opened_wall": told.opened_wall,
        "closed_wall": told.closed_wall,
        "sessions": list(told.sessions.values()),
        "flow": {**_flow(state.trials.values(), told), "by_arm": _flow_by_arm(state, told, arms)},
        "deviations": [*_durability(told), *told.deviations, *_wrong_ends(state, told)],
        "blinding": {
            "deducible_share": opened["deducible_share"],
            "shared_uid": opened["shared_uid"],
            "early_unblinding": (told.unblinded.get("reason") or "none given") if state.unblinded_early else None,
            "statement": "Who staged, operated and scored was not told which arm a trial had before unblinding.",
        },
        "episodes": [_episode(trial, told) for trial in state.trials.values() if trial.state == State.SCORED],
        "provenance": {**_provenance(opened, told.pins), "clocks": _clocks(told)},
        "void_as_failure": _voids_as_failures(state, told, arms),
    }


def _flow(trials: Any, told: Told) -> dict[str, Any]:
    """planned: slots of the schedule; run: episodes whose arm was revealed; ended_early: by a person, then scored."""
    chosen = {trial.id: trial for trial in trials}
    voids = [event for event in told.voids if event.trial in chosen]
    after_go = sum(bool(event.body.get("after_go")) for event in voids)
    return {
        "planned": len(chosen),
        "run": sum(told.attempts[trial] for trial in chosen),
        "scored": sum(trial.state == State.SCORED for trial in chosen.values()),
        "not_run": sum(trial.state != State.SCORED for trial in chosen.values()),
        "voids": dict(sorted(Counter(str(event.body["reason"]) for event in voids).items())),
        "voids_before_go": len(voids) - after_go,
        "voids_after_go": after_go,
        "ended_early": sum(trial.state == State.SCORED and trial.ended in EARLY for trial in chosen.values()),
    }


def _flow_by_arm(state: CampaignState, told: Told, arms: Sequence[str]) -> dict[str, dict[str, int]]:
    found = {}
    for arm in arms:
        flow = _flow([trial for trial in state.trials.values() if told.arms[trial.id] == arm], told)
        kept = {key: flow[key] for key in ("planned", "run", "scored", "not_run", "ended_early")}
        found[arm] = {**kept, "voids": sum(flow["voids"].values())}
    return found


def _voids_as_failures(state: CampaignState, told: Told, arms: Sequence[str]) -> list[dict[str, Any]]:
    """Items moved of staged with every void after go counted as an episode in which nothing moved; empty if none."""
    after_go = Counter(told.arms[event.trial] for event in told.voids if event.trial and event.body.get("after_go"))
    if not after_go:
        return []
    rows = []
    for arm in arms:
        outcomes = [trial.outcome for trial in state.trials.values() if trial.outcome and told.arms[trial.id] == arm]
        staged = sum(outcome.items_staged for outcome in outcomes) + after_go[arm] * state.opened["items_staged"]
        rows.append({"arm": arm, "moved": sum(outcome.moved for outcome in outcomes), "staged": staged})
    return rows


def _episode(trial: Trial, told: Told) -> dict[str, Any]:
    outcome, episode = trial.outcome, str(trial.episode)
    assert outcome is not None, f"trial {trial.id} is scored without an outcome"
    duration = None if trial.go_ns is None or trial.end_ns is None else (trial.end_ns - trial.go_ns) / SECOND
    videos = told.sealed.get(episode, {}).get("videos") or {}
    return {
        "episode": episode,
        "arm": told.arms[trial.id],
        "object": trial.condition.split("/")[0],
        "block": trial.block,
        "outcome": "success"
        if outcome.moved == outcome.items_staged
        else "partial"
        if outcome.moved
        else "nothing moved",
        "moved": outcome.moved,
        "staged": outcome.items_staged,
        "end_reason": WRONG_END if outcome.wrong_end else str(trial.ended),
        "duration_s": duration,
        "video": [str(video["file"]) for video in videos.values()],
        "rrd_command": f"labctl show {episode}",
    }


def _wrong_ends(state: CampaignState, told: Told) -> list[str]:
    """Where a device ended an episode as all done and a person found items remaining."""
    lines = []
    for trial in state.trials.values():
        if trial.outcome is not None and trial.outcome.wrong_end:
            episode, outcome = str(trial.episode), trial.outcome
            left = f"{outcome.remaining} of {outcome.items_staged} items remaining"
            seen = "reviewed" if episode in told.looked_at else "not reviewed"
            who = told.scorers[episode]
            said = f"a device ended it as all done; {who} counted {left}, censored there, {seen}"
            lines.append(f"episode {episode}: {said}")
    return lines


def _clocks(told: Told) -> dict[str, str] | None:
    """How each device's clock ran over the campaign; None where no device has one."""
    fits: dict[str, list[Mapping[str, Any]]] = {}
    for body in told.sealed.values():
        for stream, fit in (body.get("clocks") or {}).items():
            fits.setdefault(stream, []).append(fit)
    return {f"{stream}:": campaign_clock(found) for stream, found in sorted(fits.items())} or None


def _durability(told: Told) -> list[str]:
    loose = sum(not body["durable"] for body in told.started.values())
    return [f"{loose} episodes were journalled without waiting for the disk (simulation only)"] if loose else []


def _provenance(opened: Mapping[str, Any], pins: Mapping[str, Any]) -> dict[str, Any]:
    hashes = {f"{name}_sha256": opened[name]["sha256"] for name in ("protocol", "cell", "fixture")}
    versions = {name: pins[name] for name in ("labctl", "python") if name in pins} | dict(pins.get("packages") or {})
    git = pins.get("git") or {}
    commit = f"{git['commit']}{' with local changes' if git.get('dirty') else ''}" if git else None
    return {**hashes, "versions": versions, "git": commit}
