"""What the journal says of a campaign's run beside the states of its trials, folded event by event.

May not: hold the journal, the campaign or its ledger: screens are drawn from it, and in a journal every arm is sealed.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.core.event_bodies import OperationRecorded, RecordingSealed, StageReached, body_of
from labctl.core.events import Event, Kind
from labctl.core.published_state import Handover
from labctl.core.task import reached_after
from labctl.messages.body_parts import Detected


class RunFacts:
    """operations, counted (the operator's own tally), reached (when each stage of the task was, ns), detected (by the
    detector): by episode. recording: of the last RecordingSealed. scored_ns: when trials were scored on this boot.
    recovered: what the last run concluded at its start. handover: of the last session that was closed.
    """

    def __init__(self) -> None:
        self.operations: dict[str, list[OperationRecorded]] = {}
        self.counted: dict[str, int] = {}
        self.reached: dict[str, tuple[int, ...]] = {}
        self.detected: dict[str, Sequence[Detected]] = {}
        self.recording: RecordingSealed | None = None
        self.scored_ns: list[int] = []
        self.recovered: list[str] = []
        self.handover: Handover | None = None
        self._boot = ""

    def note(self, event: Event) -> None:
        """One more entry of the journal, in order."""
        if event.kind == Kind.OPERATION_RECORDED and event.episode:
            self.operations.setdefault(event.episode, []).append(body_of(event, OperationRecorded))
        elif event.kind == Kind.ITEM_COUNTED and event.episode:
            self.counted[event.episode] = event.body["moved"]
        elif event.kind == Kind.STAGE_REACHED and event.episode:
            before = self.reached.get(event.episode, ())
            self.reached[event.episode] = reached_after(before, body_of(event, StageReached))
        elif event.kind == Kind.RECORDING_SEALED and event.episode:
            self.recording = body_of(event, RecordingSealed)
            if event.body.get("detected") is not None:
                self.detected[event.episode] = event.body["detected"]
        elif event.kind == Kind.RUN_STARTED:
            self.recovered = list(event.body.get("recovered", ()))
        elif event.kind == Kind.SESSION_CLOSED:
            self.handover = {"text": event.body.get("handover", ""), "who": event.who, "wall": event.wall}
        elif event.kind == Kind.OUTCOME_RECORDED:
            if event.boot != self._boot:
                self._boot, self.scored_ns = event.boot, []
            self.scored_ns.append(event.at_ns)
