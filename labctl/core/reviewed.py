"""What an assessor reviews: the operations of an episode by three witnesses, and whether they agree. Pure.

May not: learn an arm, or let a review contradict the outcome: counts are corrected as an outcome, with a why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from labctl.clock import SECOND
from labctl.core.event_bodies import OperationRecorded, OperationsReviewed, OutcomeConfirmed, Result
from labctl.core.events import Kind
from labctl.core.outcome import Outcome
from labctl.core.record import Episode, Record
from labctl.core.task import ITEMS, SCORE, STAGES, Task, task_of
from labctl.core.trial import CORRECTED, JUDGED, REVIEWS, State, Trial
from labctl.errors import InputError, StateError
from labctl.messages.body_parts import DOWN, OUTSIDE, UP, Detected, Judged
from labctl.plain import count

RESULTS: tuple[Result, ...] = get_args(Result)
VERDICTS: Mapping[Judged, str] = {
    "success": "placed",
    "lost": "lost",
    "neutral": "put back, or handled again",
    "unknown": "cannot tell",
}
ORDERED = "ordered"  # how the edge of a candidate begins that was ordered and is in no hold
_FAR_NS = 10**9 * SECOND  # what is further away is said to be so far
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
    task: Task | None = None  # None where it is counted in items
    judged: Sequence[Outcome] = ()  # by second assessors, from the video alone
    models: Sequence[str] = ()  # what each model that was asked said, in words: no difference to be settled

    @property
    def seen(self) -> int:
        """What a screen that shows this names when it confirms or corrects it, for `check_seen`."""
        return len(self.trial.said)

    @property
    def _unsettled(self) -> Sequence[Outcome]:
        """What second assessors said that nobody settled: since the last review, or of an outcome corrected since."""
        since = since_review(self.trial)
        if self.reviewed is None or CORRECTED in since:
            return self.judged
        return self.judged[len(self.judged) - since.count(JUDGED) :]

    @property
    def reopened(self) -> bool:
        """Whether somebody has to look again: it was reviewed, and what was said since leaves it in dispute."""
        corrected = CORRECTED in since_review(self.trial)
        apart_since = any(apart(self.task, one, self._stands) for one in self._unsettled)
        return self.reviewed is not None and self.disputed and (corrected or apart_since)

    @property
    def settled(self) -> bool:
        """Whether a review may be finished over it: nobody has to look, or somebody has looked at what stands."""
        return not self.disputed or (self.reviewed is not None and not self.reopened)

    @property
    def progress(self) -> str:
        """Whether it was reviewed, in words."""
        again = "before what is in dispute was said: to be looked at again"
        return "not yet" if self.reviewed is None else again if self.reopened else "already"

    @property
    def _stands(self) -> Outcome:
        assert self.trial.outcome is not None
        return self.trial.outcome

    @property
    def operations(self) -> list[OperationRecorded]:
        """What stands now: the review, else what devices reported, else what the detector found."""
        if self.reviewed is not None:
            return list(self.reviewed)
        return list(self.device) if self.devices_tell else [*self.detected, *self.device]

    @property
    def differences(self) -> list[str]:
        """What somebody has to look at, in words: where witnesses disagree, and what the detector could not tell."""
        asked = f"the traces cannot tell what came of {count(self.untold, 'candidate')}"
        return [*self.disagreements, asked] if self.untold else self.disagreements

    @property
    def untold(self) -> int:
        """Of how many candidates the detector could not tell what came of them; none once somebody looked."""
        return sum(one["result"] == "unknown" for one in self.candidates) if self.reviewed is None else 0

    @property
    def disagreements(self) -> list[str]:
        """Where the witnesses disagree, in words. What a second assessor said of an episode is no difference any more
        once an assessor has reviewed it after that.
        """
        outcome = self._stands
        found = [
            f"a second assessor says {in_words(self.task, one)}, the first {in_words(self.task, outcome)}"
            for one in self._unsettled
            if apart(self.task, one, outcome)
        ]
        if self.task is not None:
            return found
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
        return found

    @property
    def disputed(self) -> bool:
        """Whether somebody has to look: witnesses and assessor disagree, or a detector could not tell."""
        return bool(self.differences)

    def since_go_s(self, t_ns: int) -> float:
        """Seconds from go."""
        assert self.trial.go_ns is not None
        return (t_ns - self.trial.go_ns) / SECOND


SCORES_APART = 0.1
"""Scores by a rubric that differ by as much are a disagreement; of other measures any difference is."""


def value_of(task: Task | None, outcome: Outcome) -> float:
    """What an outcome comes to by the measure of its task: items moved, stages reached (of a success 1 or 0), or the
    score.
    """
    if outcome.score is not None:
        return outcome.score
    return float(outcome.moved if task is None else len(outcome.reached_s or ()))


def apart(task: Task | None, one: Outcome, other: Outcome) -> bool:
    """Whether two assessors disagree on an episode."""
    by = abs(value_of(task, one) - value_of(task, other))
    return by > SCORES_APART - 1e-9 if one.score is not None else by > 0


def in_words(task: Task | None, outcome: Outcome) -> str:
    """An outcome by the measure of its task."""
    return worded(task, value_of(task, outcome), outcome.items_staged)


def worded(task: Task | None, value: float, items: int) -> str:
    """What an outcome comes to, in words. items: staged."""
    if task is None:
        return f"{value:g} of {items} moved"
    if task.measure == STAGES:
        return f"{value:g} of {len(task.stages)} stages"
    return f"score {value:g}" if task.measure == SCORE else "done" if value else "not done"


def queue(record: Record) -> list[Item]:
    """The scored episodes that got to go: those to look at first, of these the ones with most differences first. Of a
    task that is not counted in items there are no operations: what is confirmed is the outcome.
    """
    went = [(trial, episode) for trial, episode in record.scored if episode.go_ns is not None]
    telling = any(len(episode.operations) > len(episode.stops) for _, episode in went)
    items: list[Item] = []
    for trial, episode in went:
        judged, models = [outcome for _, outcome in episode.judged], _models(record, trial, episode)
        if trial.outcome is not None and trial.outcome.measured:
            done = None if episode.confirmed_by is None else ()
            task = task_of(record.state.opened, trial.condition)
            items.append(Item(trial, reviewed=done, task=task, judged=judged, models=models, devices_tell=telling))
            continue
        items.append(
            Item(
                trial,
                episode.operations,
                episode.counted,
                episode.reviewed,
                episode.detected or (),
                devices_tell=telling,
                taps=episode.counts,
                candidates=_while_it_ran(trial, (episode.sealed or {}).get("detected") or ()),
                judged=judged,
                models=models,
            )
        )
    return sorted(items, key=lambda item: (item.reviewed is not None and item.settled, -len(item.differences)))


@dataclass(frozen=True, slots=True)
class Unseen:
    """An episode that waits for a second assessor: what it was about, and nothing that was said of it."""

    trial: str
    episode: str
    task: Task


def unseen(record: Record, who: str) -> list[Unseen]:
    """The episodes that wait for this person as a second assessor, in schedule order."""
    opened = record.state.opened
    return [Unseen(one.id, one.episode or "", task_of(opened, one.condition)) for one in to_judge(record, who)]


def to_judge(record: Record, who: str) -> list[Trial]:
    """The episodes of which this person, as a second assessor, has still to say how they went, in schedule order."""
    return [trial for trial, episode in record.scored if episode.go_ns is not None and not against(record, who, trial)]


def against(record: Record, who: str, trial: Trial) -> str:
    """Why this person cannot be the second assessor of a scored trial, "" where they can: who was in its session saw it
    happen, and who scored, corrected or reviewed it knows what was said.
    """
    episode = record.episodes.get(trial.episode or "")
    if trial.state != State.SCORED or episode is None or episode.go_ns is None:
        return f"{trial.place} is {trial.state}; a scored episode that got to go is judged"
    if who in (person for person, _ in episode.judged):
        return f"{who} has judged {episode.id} already"
    session = record.sessions.get(episode.session or "")
    if session is not None and who in (person.id for person in session.people):
        return f"{who} was in the session of {episode.id} and saw it; a second assessor judges by the video alone"
    if who in episode.knows:
        return f"{who} knows what was said of {episode.id}; a second assessor judges without"
    return ""


def confirmed(
    trial: Trial, operations: Sequence[OperationRecorded], note: str
) -> tuple[Kind, OperationsReviewed | OutcomeConfirmed]:
    """The entry of an assessor who went over an episode. Raises as `checked`, and InputError for operations of a task
    that has none.
    """
    if trial.outcome is None or not trial.outcome.measured:
        return Kind.OPERATIONS_REVIEWED, {"operations": checked(trial, operations), "note": note}
    if operations:
        raise InputError(f"{trial.place} is not counted in items; it has no operations, its outcome is confirmed")
    return Kind.OUTCOME_CONFIRMED, {"note": note}


def looked_at(record: Record) -> str:
    """How many episodes somebody has gone over, in words."""
    items = queue(record)
    return f"{sum(item.reviewed is not None for item in items)} of {count(len(items), 'episode')} looked at"


def not_reviewed(record: Record, name: str) -> str:
    """Why a campaign of this name is not frozen before its review is finished, and what to do."""
    items = queue(record)
    left = len(unsettled(items))
    if not left:
        return f"the review of campaign {name} is not finished: labctl review {name} --finish, then freeze"
    return (
        f"{left} of {len(items)} episodes of campaign {name} are in dispute and not reviewed, and none can be once it "
        f"is frozen: labctl review {name}, then labctl review {name} --finish; or freeze it as it is, which every "
        f"report says: labctl freeze {name} --unreviewed"
    )


def how_frozen(record: Record, *, reviewed: bool) -> str:
    """How a campaign was frozen, in words."""
    return f"frozen, reviewed: {looked_at(record)}" if reviewed else "frozen without a review"


def unsettled(items: Sequence[Item]) -> list[Item]:
    """What a review has to look at before it may be finished: episodes in dispute, not reviewed since they are."""
    return [item for item in items if not item.settled]


def since_review(trial: Trial) -> Sequence[str]:
    """The entries on how its episode went since the last review of it; all of them before one."""
    reviews = [n for n, one in enumerate(trial.said, 1) if one in REVIEWS]
    return trial.said[reviews[-1] if reviews else 0 :]


def check_seen(trial: Trial, task: Task, seen: int | None) -> None:
    """Whether what a person saw of a trial's episode, `Item.seen`, is what stands; None asks for whatever stands.
    Raises StateError that says what came since.
    """
    if seen is None or trial.outcome is None or seen == len(trial.said):
        return
    since = dict.fromkeys(trial.said[max(seen, 0) :]) or ["it is another record"]
    now = in_words(None if task.measure == ITEMS else task, trial.outcome)
    shown = f"since {trial.episode} was shown, {', '.join(since)}"
    raise StateError(f"nothing was written: {shown}; its outcome is now {now}: look again")


def seen(candidate: Detected) -> str:
    """What the traces show of a candidate, in words: "release over left, held 3.2 s: placed"; of two robots whose it
    was: "right: release over …".
    """
    of = f"{robot}: " if (robot := candidate.get("robot")) is not None else ""
    edge, zone, verdict = candidate["edge"], candidate["zone"], VERDICTS[candidate["result"]]
    where = "outside both totes" if zone == OUTSIDE else f"over {zone}"
    by = ", ".join(candidate.get("witnesses", ()))
    if edge.startswith(ORDERED):
        nothing = "fingers shut on nothing" if candidate["result"] == "neutral" else verdict
        return f"{of}{edge} {where}, no hold seen: {nothing}"
    if edge in (UP, DOWN):
        return f"{of}{edge} of {by} {where}, no hold seen: {verdict}"
    also = f", seen by {by} too" if by else ""
    return f"{of}{edge} {where}, held {candidate['held_s']:.1f} s{also}: {verdict}"


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


def _models(record: Record, trial: Trial, episode: Episode) -> list[str]:
    """What each model said of an episode; of several statements of one model the last."""
    if not episode.witnessed:
        return []
    task = task_of(record.state.opened, trial.condition)
    of = None if task.measure == ITEMS else task
    values = {one["model"]: one["value"] for one, _ in episode.witnessed}
    return [
        f"{model} {'cannot tell' if value is None else 'says ' + worded(of, value, task.items)}"
        for model, value in values.items()
    ]


def _while_it_ran(trial: Trial, candidates: Sequence[Detected]) -> list[Detected]:
    go_ns, end_ns = trial.go_ns or 0, trial.end_ns or 0
    return [one for one in candidates if go_ns <= one["t_ns"] <= end_ns]


def checked(trial: Trial, operations: Sequence[OperationRecorded]) -> list[OperationRecorded]:
    """The operations of a review, in order and numbered. Raises InputError for a time outside the episode, an unknown
    result or counts that are not the outcome's, StateError for a trial that is not scored.
    """
    outcome = trial.outcome
    if trial.state != State.SCORED or outcome is None or trial.go_ns is None or trial.end_ns is None:
        raise StateError(f"{trial.place} is {trial.state}; only a scored episode that got to go is reviewed")
    found: list[OperationRecorded] = []
    for number, op in enumerate(sorted(operations, key=lambda op: op["t_ns"])):
        if op["result"] not in RESULTS:
            raise InputError(f"unknown result {op['result']!r}; results are {', '.join(RESULTS)}")
        if not trial.go_ns <= op["t_ns"] <= trial.end_ns:
            far_ns = max(-_FAR_NS, min(op["t_ns"] - trial.go_ns, _FAR_NS))
            at, length = far_ns / SECOND, (trial.end_ns - trial.go_ns) / SECOND
            raise InputError(f"an operation at {at:.2f} s lies outside the episode of {length:.2f} s")
        found.append({"op_index": number, "result": op["result"], "t_ns": int(op["t_ns"]), "cause": op.get("cause")})
        if (robot := op.get("robot")) is not None:
            found[-1]["robot"] = robot
    moved = sum(op["result"] == "success" for op in found)
    lost = sum(op["result"] == "lost" for op in found)
    if moved != outcome.moved or lost > outcome.lost:
        text = f"the outcome says moved {outcome.moved}, lost {outcome.lost}; these events moved {moved}, lost {lost}"
        raise InputError(f"{text}; correct the outcome or the events")
    return found
