"""What an assessor reviews: the operations of an episode by three witnesses, and whether they agree. Pure.

May not: learn an arm, or let a review contradict the outcome: counts are corrected as an outcome, with a why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.clock import SECOND
from labctl.core.event_bodies import OperationRecorded, Result
from labctl.core.record import Record
from labctl.core.trial import State, Trial
from labctl.errors import InputError, StateError
from labctl.messages.body_parts import OUTSIDE, Detected, Judged

RESULTS: tuple[Result, ...] = ("success", "lost", "safety_stop")
VERDICTS: Mapping[Judged, str] = {
    "success": "placed",
    "lost": "lost",
    "neutral": "put back, or handled again",
    "unknown": "cannot tell",
}
ORDERED = "ordered"  # how the edge of a candidate begins that was ordered and is in no hold
NEAR_NS = SECOND // 2  # a candidate this near to an operation is taken for the same


@dataclass(slots=True)
class Item:
    """One episode to review. `device`: operations as devices reported them; `reviewed`: as an assessor left them, None
    before; `counted`: the operator's tally, None when no item was counted; `taps`: (moved so far, t_ns) of that tally.
    """

    trial: Trial
    device: Sequence[OperationRecorded] = ()
    counted: int | None = None
    reviewed: Sequence[OperationRecorded] | None = None
    detected: Sequence[OperationRecorded] = ()
    devices_tell: bool = True  # this campaign's devices report placements
    taps: Sequence[tuple[int, int]] = ()
    candidates: Sequence[Detected] = ()  # every end of a hold between go and end, counted as an operation or not
    whose: str = ""  # who says what stands now, for words; the detector or the review unless given

    @property
    def operations(self) -> list[OperationRecorded]:
        """What stands now: the review, else what devices reported, else what the detector found."""
        if self.reviewed is not None:
            return list(self.reviewed)
        return list(self.device) if self.devices_tell else [*self.detected, *self.device]

    @property
    def differences(self) -> list[str]:
        """Where the witnesses disagree, in words."""
        outcome = self.trial.outcome
        assert outcome is not None
        found: list[str] = []
        moved = sum(op["result"] == "success" for op in self.operations)
        lost = sum(op["result"] == "lost" for op in self.operations)
        whose = self.whose or ("the detector" if self.reviewed is None else "the review")
        if moved != outcome.moved:
            found.append(f"{whose} saw {moved} moved, the assessor {outcome.moved}")
        if outcome.wrong_end:
            left = f"{outcome.remaining} of {outcome.items_staged} remaining"
            found.append(f"a device ended this episode as all done, the assessor counted {left}")
        if lost > outcome.lost:
            found.append(f"{whose} saw {lost} lost, the assessor {outcome.lost}")
        seen = sum(op["result"] == "success" for op in self.detected)
        if self.detected and self.reviewed is None and seen not in (moved, outcome.moved):
            found.append(f"the traces show {seen} moved, the assessor {outcome.moved}")
        if self.counted is not None and self.counted != outcome.moved:
            found.append(f"the operator counted {self.counted} moved, the assessor {outcome.moved}")
        doubtful = sum(one["result"] == "unknown" for one in self.candidates)
        if doubtful and self.reviewed is None:
            found.append(f"the traces cannot tell what came of {doubtful} candidate{'s' * (doubtful > 1)}")
        return found

    @property
    def disputed(self) -> bool:
        """Whether somebody has to look: witnesses and assessor disagree, or a detector could not tell."""
        return bool(self.differences)

    def since_go_s(self, t_ns: int) -> float:
        """Seconds from go."""
        assert self.trial.go_ns is not None
        return (t_ns - self.trial.go_ns) / SECOND


def queue(record: Record) -> list[Item]:
    """The scored episodes that got to go, of tasks counted in items: those not yet reviewed first, of these the ones
    with most differences first. Of another measure there are no operations to confirm.
    """
    went = [(trial, episode) for trial, episode in record.scored if episode.go_ns is not None]
    telling = any(len(episode.operations) > len(episode.stops) for _, episode in went)
    items = [
        Item(
            trial,
            episode.operations,
            episode.counted,
            episode.reviewed,
            episode.detected or (),
            devices_tell=telling,
            taps=episode.counts,
            candidates=_while_it_ran(trial, (episode.sealed or {}).get("detected") or ()),
        )
        for trial, episode in went
        if trial.outcome is None or not trial.outcome.measured
    ]
    return sorted(items, key=lambda item: (item.reviewed is not None, -len(item.differences)))


def unsettled(items: Sequence[Item]) -> list[Item]:
    """What a review has to look at before it may be finished: episodes in dispute that nobody has reviewed."""
    return [item for item in items if item.disputed and item.reviewed is None]


def seen(candidate: Detected) -> str:
    """What the traces show of a candidate, in words: "release over left, held 3.2 s: placed"."""
    zone = candidate["zone"]
    where = "outside both totes" if zone == OUTSIDE else f"over {zone}"
    if candidate["edge"].startswith(ORDERED):
        nothing = "fingers shut on nothing" if candidate["result"] == "neutral" else VERDICTS[candidate["result"]]
        return f"{candidate['edge']} {where}, no hold seen: {nothing}"
    return f"{candidate['edge']} {where}, held {candidate['held_s']:.1f} s: {VERDICTS[candidate['result']]}"


def matched(item: Item, operations: Sequence[OperationRecorded]) -> tuple[list[str], list[Detected]]:
    """For every operation what the traces show of it, "" where nothing, and the candidates that are near none."""
    left = list(item.candidates)
    words: list[str] = []
    for op in operations:
        near = [one for one in left if abs(one["t_ns"] - op["t_ns"]) <= NEAR_NS]
        nearest = min(near, key=lambda one: abs(one["t_ns"] - op["t_ns"]), default=None)
        words.append("" if nearest is None else seen(nearest))
        if nearest is not None:
            left.remove(nearest)
    return words, left


def _while_it_ran(trial: Trial, candidates: Sequence[Detected]) -> list[Detected]:
    go_ns, end_ns = trial.go_ns or 0, trial.end_ns or 0
    return [one for one in candidates if go_ns <= one["t_ns"] <= end_ns]


def checked(trial: Trial, operations: Sequence[OperationRecorded]) -> list[OperationRecorded]:
    """The operations of a review, in order and numbered. Raises InputError for a time outside the episode, an unknown
    result or counts that are not the outcome's, StateError for a trial that is not scored.
    """
    outcome = trial.outcome
    if trial.state != State.SCORED or outcome is None or trial.go_ns is None or trial.end_ns is None:
        raise StateError(f"trial {trial.id} is {trial.state}; only a scored episode that got to go is reviewed")
    found: list[OperationRecorded] = []
    for number, op in enumerate(sorted(operations, key=lambda op: op["t_ns"])):
        if op["result"] not in RESULTS:
            raise InputError(f"unknown result {op['result']!r}; results are {', '.join(RESULTS)}")
        if not trial.go_ns <= op["t_ns"] <= trial.end_ns:
            at, length = (op["t_ns"] - trial.go_ns) / SECOND, (trial.end_ns - trial.go_ns) / SECOND
            raise InputError(f"an operation at {at:.2f} s lies outside the episode of {length:.2f} s")
        found.append({"op_index": number, "result": op["result"], "t_ns": int(op["t_ns"]), "cause": op.get("cause")})
    moved = sum(op["result"] == "success" for op in found)
    lost = sum(op["result"] == "lost" for op in found)
    if moved != outcome.moved or lost > outcome.lost:
        said = f"the outcome says moved {outcome.moved}, lost {outcome.lost}; these events moved {moved}, lost {lost}"
        raise InputError(f"{said}; correct the outcome or the events")
    return found
