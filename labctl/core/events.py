"""The journal's vocabulary: what an event is, its kinds, and the bytes its hash covers. Pure.

May not: write anything, or know where events are stored. `journal` stores them; `trial` and `recovery` give them
meaning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

GENESIS = "0" * 64


class Kind(StrEnum):
    """Every kind of journal entry. The comment lists the keys of its body."""

    CAMPAIGN_OPENED = "CampaignOpened"  # see docs/architecture.md "CampaignOpened"
    SESSION_OPENED = "SessionOpened"  # session, people:[{id, roles}], checks:{}
    SESSION_CLOSED = "SessionClosed"  # session, handover
    RUN_STARTED = "RunStarted"  # pins:{version, git, python, packages}, recovered:[text]
    RUN_STOPPED = "RunStopped"  # reason
    TRIAL_STAGING = "TrialStaging"  # setter
    SCENE_COMMITTED = (
        "SceneCommitted"  # photo:{camera: {file, sha256, t_ns}}, match:{camera: see scene_watch}, snapshot
    )
    REFERENCE_SET = "ReferenceSet"  # camera, photo:{file, sha256, t_ns}, old: sha256 | None, reason
    TRIAL_RELEASED = "TrialReleased"  # reason   (staging or committed -> planned)
    TRIAL_SKIPPED = "TrialSkipped"  # reason   (planned -> not_run)
    ARM_REVEALED = "ArmRevealed"  # sealed: sha256; the episode id is new here
    EPISODE_STARTED = "EpisodeStarted"  # pins, kind, durable, budget_s, items_staged, sealed: sha256
    GO = "Go"  # go_ns: first live observation handed to a warm controller (device-side time)
    OPERATION_RECORDED = "OperationRecorded"  # op_index, result: "success"|"lost"|"safety_stop", t_ns, cause
    ITEM_COUNTED = "ItemCounted"  # moved: the operator's own tally so far, t_ns
    INTERVENTION_BEGAN = "InterventionBegan"  # number: from 0, kind: a Touch, by: console | device, t_ns
    INTERVENTION_ENDED = "InterventionEnded"  # number, kind: as it turned out, t_ns, note
    INSTRUCTION_SWITCHED = "InstructionSwitched"  # number: from 0, name, instruction, planned_ns, t_ns: taken
    EPISODE_ENDED = "EpisodeEnded"  # reason, end_ns
    GAP = "Gap"  # stream, from_ns, to_ns, lost, why, holes: of a camera's frames, how many places this gap tells of
    RECORDING_SEALED = (
        # streams:{name:{n, chunks, root}}, root, videos:{camera:{file, sha256, frames, about?, depth?}}, gaps, clocks:
        # {stream: skew.ClockFit}; about: {file, sha256}, depth: {file, sha256, frames}
        "RecordingSealed"
    )
    OUTCOME_RECORDED = "OutcomeRecorded"  # outcome: see model.Outcome
    OUTCOME_CORRECTED = "OutcomeCorrected"  # old, new, why
    OPERATIONS_REVIEWED = "OperationsReviewed"  # operations:[{op_index, result, t_ns, cause}] as an assessor saw, note
    EPISODE_VOIDED = "EpisodeVoided"  # reason, evidence: event seq | None, confirmed_by: person | None, after_go: bool
    HOLD_RAISED = "HoldRaised"  # code, text
    HOLD_CLEARED = "HoldCleared"  # code, acknowledged_by; of a stop also why, contact: bool
    CELL_FAULTED = "CellFaulted"  # reason
    FAULT_ACKNOWLEDGED = "FaultAcknowledged"  # reason
    DEVIATION = "Deviation"  # text
    NOTE = "Note"  # text: what a person found worth keeping
    PRACTICE_RECORDED = "PracticeRecorded"  # person, object, moved, staged, duration_s: teleoperation outside of trials
    ARM_GUESSED = "ArmGuessed"  # guess: a candidate | None ("cannot tell"), before unblinding, for the blinding index
    CAMPAIGN_CLOSED = "CampaignClosed"  # reason
    CAMPAIGN_REVIEWED = "CampaignReviewed"  # by
    CAMPAIGN_FROZEN = "CampaignFrozen"  # reviewed: bool, head
    CAMPAIGN_UNBLINDED = "CampaignUnblinded"  # early: bool, reason, schedule: [{trial, arm}], secret_hex, openings


class EndReason(StrEnum):
    """Why an episode's motion ended."""

    ALL_DONE = "all_done"  # devices counted every item moved or lost; an outcome may say that they were wrong
    BUDGET = "budget"
    CONTROLLER_DONE = "controller_done"
    OPERATOR = "operator"
    FUTILITY = "futility"
    SAFETY_STOP = "safety_stop"
    INTERLOCK = "interlock"
    ARM_LOST = "arm_lost"
    CAMERA_LOST = "camera_lost"
    CONTROLLER_LOST = "controller_lost"
    RECORDER_LOST = "recorder_lost"
    PROCESS_LOST = "process_lost"
    SHUTDOWN = "shutdown"


class Touch(StrEnum):
    """How a person touched an episode while it ran."""

    TAKE_OVER = "take_over"  # drove the arm in the controller's place
    HAND = "hand_in_scene"
    RESET = "reset"  # put an item or the arm back, or nudged it
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Event:
    """One journal entry. `at_ns` is monotonic on boot `boot`; `wall` is the ISO 8601 anchor; `who` the opaque id of a
    person or process.
    """

    seq: int
    kind: str
    at_ns: int
    boot: str
    wall: str
    who: str
    trial: str | None = None
    episode: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    prev: str = GENESIS
    hash: str = ""


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8, no NaN. The only serialisation that is ever hashed.

    Raises ValueError for NaN or infinity.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def event_hash(event: Event) -> str:
    """sha256 over the previous hash and every field but the hash itself."""
    fields = [
        event.seq,
        event.kind,
        event.at_ns,
        event.boot,
        event.wall,
        event.who,
        event.trial,
        event.episode,
        event.body,
    ]
    return hashlib.sha256(event.prev.encode() + b"\n" + canonical(fields)).hexdigest()


def digest(value: Any) -> str:
    """sha256 hex of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()
