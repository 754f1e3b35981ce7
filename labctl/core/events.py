"""The journal's vocabulary: what an event is, its kinds, and the bytes its hash covers. Pure.

May not: write anything, or know where events are stored. `journal` stores them; `trial` and `recovery` give them
meaning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # whoever reads a journal does not wait for numpy
    from labctl.bus import Body
    from labctl.messages.body_parts import GapBody, Opening


GENESIS = "0" * 64
STOP_BY_HAND = "operator_stop"  # code of the hold that a stop by hand raises
ARMS_UNREADY = "arms_unready"  # code of the hold of a start at which not every arm answered
LOOK_SAID_STOP = "look_said_stop"  # code of the hold that an interim look raises
SEALED_GAP = "gap:"  # how the field of an opening begins that has a gap of a stream that tells arms apart
VOIDS_ALIKE = "voids_alike"  # code of the hold after several voids in a row for the same reason
STOPPED_BY_HAND = "operator stop"  # cause of the operation that such a stop ends


class Kind(StrEnum):
    """Every kind of journal entry. What the body of each holds: `labctl.core.event_bodies`, docs/journal.md."""

    CAMPAIGN_OPENED = "CampaignOpened"
    SESSION_OPENED = "SessionOpened"
    SESSION_CHANGED = "SessionChanged"
    SESSION_CLOSED = "SessionClosed"
    RUN_STARTED = "RunStarted"
    RUN_STOPPED = "RunStopped"
    ARMS_ASKED = "ArmsAsked"
    TRIAL_STAGING = "TrialStaging"
    SCENE_COMMITTED = "SceneCommitted"
    REFERENCE_SET = "ReferenceSet"
    TRIAL_RELEASED = "TrialReleased"
    TRIAL_SKIPPED = "TrialSkipped"
    ARM_REVEALED = "ArmRevealed"
    START_WITHHELD = "StartWithheld"
    EPISODE_STARTED = "EpisodeStarted"
    GO = "Go"
    OPERATION_RECORDED = "OperationRecorded"
    ITEM_COUNTED = "ItemCounted"
    STAGE_REACHED = "StageReached"
    INTERVENTION_BEGAN = "InterventionBegan"
    INTERVENTION_ENDED = "InterventionEnded"
    INSTRUCTION_SWITCHED = "InstructionSwitched"
    EPISODE_ENDED = "EpisodeEnded"
    GAP = "Gap"
    RECORDING_SEALED = "RecordingSealed"
    OUTCOME_RECORDED = "OutcomeRecorded"
    OUTCOME_CORRECTED = "OutcomeCorrected"
    OPERATIONS_REVIEWED = "OperationsReviewed"
    OUTCOME_CONFIRMED = "OutcomeConfirmed"
    OUTCOME_JUDGED = "OutcomeJudged"
    WITNESS_STATED = "WitnessStated"
    PREFERENCE_ASKED = "PreferenceAsked"
    PREFERENCE_STATED = "PreferenceStated"
    EPISODE_VOIDED = "EpisodeVoided"
    HOLD_RAISED = "HoldRaised"
    HOLD_CLEARED = "HoldCleared"
    CELL_FAULTED = "CellFaulted"
    FAULT_ACKNOWLEDGED = "FaultAcknowledged"
    DEVIATION = "Deviation"
    NOTE = "Note"
    PRACTICE_RECORDED = "PracticeRecorded"
    ARM_GUESSED = "ArmGuessed"
    LOOK_TAKEN = "LookTaken"
    MEDIA_STORED = "MediaStored"
    MEDIA_TRIMMED = "MediaTrimmed"
    CAMPAIGN_CLOSED = "CampaignClosed"
    CAMPAIGN_REVIEWED = "CampaignReviewed"
    CAMPAIGN_FROZEN = "CampaignFrozen"
    CAMPAIGN_UNBLINDED = "CampaignUnblinded"


class EndReason(StrEnum):
    """Why an episode's motion ended."""

    ALL_DONE = "all_done"  # devices counted every item moved or lost; an outcome may say that they were wrong
    BUDGET = "budget"
    CONTROLLER_DONE = "controller_done"
    OPERATOR = "operator"
    FUTILITY = "futility"
    SAFETY_STOP = "safety_stop"
    INTERLOCK = "interlock"  # a sensor was beyond a limit of the cell that ends the episode
    ARM_LOST = "arm_lost"
    CAMERA_LOST = "camera_lost"
    SENSOR_LOST = "sensor_lost"  # one without which the cell does not go on
    SENSOR_LIMIT = "sensor_limit"  # a sensor was beyond a limit of the cell that makes the episode void
    CONTROLLER_LOST = "controller_lost"
    RECORDER_LOST = "recorder_lost"
    PROCESS_LOST = "process_lost"
    LEASE_LAPSED = "lease_lapsed"  # the robot stopped because the run process was not heard in time
    SUSPENDED = "suspended"  # the computer was suspended: its monotonic clock, and so lease and budget, stood still
    ROBOT_FAULT = "robot_fault"  # the robot cannot go on without a person
    SHUTDOWN = "shutdown"


STOP_CODES = (STOP_BY_HAND, EndReason.SAFETY_STOP)  # how the codes of holds end that a stop of the robot raises


class InterventionKind(StrEnum):
    """How a person touched an episode while it ran."""

    TAKE_OVER = "take_over"  # drove the robot in the controller's place
    HAND = "hand_in_scene"
    RESET = "reset"  # put an item or the robot back, or nudged it
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
    body: Body = field(default_factory=dict[str, str])
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


def sealed_gaps(openings: Iterable[Opening]) -> dict[str, list[GapBody]]:
    """By episode, what is missing of streams that tell arms apart, in the order in which it was known: no entry of the
    journal says of it that it is.
    """
    found: dict[str, list[GapBody]] = {}
    for opening in openings:
        if opening["field"].startswith(SEALED_GAP):
            found.setdefault(opening["episode"], []).append(opening["value"])
    return found


def gap_words(lost: int | None, why: str | None) -> str:
    """How many samples or frames a gap cost, where that is known, and why."""
    return f"{lost} lost: {why}" if lost else f"{why}"
