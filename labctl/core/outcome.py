"""The assessor's record of an episode, and what in it contradicts itself.

May not: open files, or score anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labctl.bus import Body
from labctl.core.events import EndReason
from labctl.core.task import ITEMS, SCORE, STAGES, SUCCESS, Task
from labctl.errors import InputError
from labctl.messages.body_parts import OutcomeBody
from labctl.plain import count


@dataclass(frozen=True, slots=True)
class Outcome:
    """The assessor's record of an episode. Counts are items; staged = moved + lost + remaining. wrong_end: a device
    ended it as all done, and a person found items remaining.

    reached_s: of a task in stages (or of one, success), when each of those reached was, in order, s after go, None
    where nobody saw when; score: 0 to 1 by a rubric. Of these the whole task counts as the one item.

    Raises InputError for counts that contradict each other or the reason the episode ended.
    """

    items_staged: int
    moved: int
    lost: int
    remaining: int
    end_reason: EndReason
    notes: str = ""
    stage_reached: str | None = None
    tags: tuple[str, ...] = ()
    wrong_end: bool = False
    reached_s: tuple[float | None, ...] | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        counts = {name: getattr(self, name) for name in ("items_staged", "moved", "lost", "remaining")}
        for name, number in counts.items():
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise InputError(f"{name} is {number!r}; it must be a whole number of items, 0 or more")
        if self.items_staged < 1:
            raise InputError("items_staged is 0; an episode has at least one item")
        if self.moved + self.lost + self.remaining != self.items_staged:
            total = f"moved {self.moved} + lost {self.lost} + remaining {self.remaining}"
            raise InputError(f"{total} is not the {count(self.items_staged, 'item')} staged; count again")
        self._check_end()
        if self.score is not None and (not _number(self.score) or not 0 <= self.score <= 1):
            raise InputError(f"score is {self.score!r}; it must be a number from 0 to 1, as the rubric has it")
        last = 0.0
        for number, seconds in enumerate(self.reached_s or (), 1):
            if seconds is None:
                continue
            if not _number(seconds) or not last <= seconds < math.inf:
                raise InputError(
                    f"reached_s[{number}] is {seconds!r}; it must be seconds after go, not before the stage before it, "
                    "or null where nobody saw when"
                )
            last = seconds

    def _check_end(self) -> None:
        found = f"{self.remaining} of {self.items_staged} items remaining"
        if type(self.wrong_end) is not bool:
            raise InputError(f"wrong_end is {self.wrong_end!r}; it must be true or false")
        disputed = self.end_reason == EndReason.ALL_DONE and self.remaining > 0
        if disputed and not self.wrong_end:
            raise InputError(
                f"a device ended this episode as all_done, and {found} says that it was wrong: correct the counts, or "
                "say wrong_end = true; what remains is then censored at that end, and a review looks at it first"
            )
        if self.wrong_end and not disputed:
            raise InputError(
                "wrong_end is for an episode that a device ended as all_done while items remain; this one was ended by "
                f"{self.end_reason} with {self.remaining} remaining; leave it out"
            )

    @property
    def extent(self) -> str:
        """How much was moved, in two words at most; of a task that is not counted in items, how much was done."""
        if self.measured:
            return "success" if self.moved else "partial" if self.reached_s or self.score else "nothing done"
        return "success" if self.moved == self.items_staged else "partial" if self.moved else "nothing moved"

    @property
    def measured(self) -> bool:
        """Whether it is of a task that is not counted in items."""
        return self.reached_s is not None or self.score is not None

    def body(self) -> OutcomeBody:
        """The `outcome` of OutcomeRecorded, plain JSON values."""
        found: OutcomeBody = {
            "items_staged": self.items_staged,
            "moved": self.moved,
            "lost": self.lost,
            "remaining": self.remaining,
            "end_reason": str(self.end_reason),
            "notes": self.notes,
            "stage_reached": self.stage_reached,
            "tags": list(self.tags),
        }
        if self.wrong_end:  # left out otherwise, as it was before an end could be disputed
            found["wrong_end"] = True
        if self.reached_s is not None:
            found["reached_s"] = list(self.reached_s)
        if self.score is not None:
            found["score"] = self.score
        return found


def _number(value: float) -> bool:
    return type(value) in (int, float)


def judged(
    typed: Body, *, ended: str, lasted_s: float | None, task: Task, stages: Sequence[str], failure_tags: Sequence[str]
) -> Outcome:
    """The outcome that a person typed, at whichever door: as `outcome_from`, and of this campaign: by the measure of
    the trial's task, of so many items staged, with a stage and tags of its protocol. ended: why the motion ended, as
    journalled; lasted_s: when, after go, None of an episode that had none (which is void, and was scored in campaigns
    of before November 2026).

    Raises InputError with what is allowed.
    """
    outcome = outcome_from({**_measured(typed, task, ended, lasted_s), "end_reason": ended})
    if lasted_s is None and (outcome.moved or outcome.lost or outcome.reached_s or outcome.score):
        raise InputError(
            "this episode ended before go: nothing in it was moved, lost or reached; all of it remains, a score is 0"
        )
    if outcome.items_staged != task.counted:
        raise InputError(
            f"items_staged is {outcome.items_staged}; each episode of this campaign has {task.counted}: an item that "
            "was not there counts as lost or remaining, or the episode is void"
        )
    stage = [] if outcome.stage_reached is None else [("stage", outcome.stage_reached, stages)]
    for what, name, known in [*stage, *(("tag", tag, failure_tags) for tag in outcome.tags)]:
        if name not in known:
            raise InputError(f"{what} {name!r} is not in the protocol; there: {', '.join(known) or 'none'}")
    return outcome


_COUNTS = ("items_staged", "moved", "lost", "remaining")
_TYPED = {ITEMS: _COUNTS, SUCCESS: ("reached_s",), STAGES: ("reached_s",), SCORE: ("score",)}


def _measured(typed: Body, task: Task, ended: str, lasted_s: float | None) -> Body:
    """What was typed, if it is of the task's measure; of one that is not items with the counts that follow from it."""
    known, all_keys = _TYPED[task.measure], dict.fromkeys(name for names in _TYPED.values() for name in names)
    there = [name for name in all_keys if typed.get(name) is not None]
    wrong, missing = [name for name in there if name not in known], [name for name in known if name not in there]
    if task.measure != ITEMS and (wrong or missing):
        found = f"has {wrong[0]}" if wrong else f"has no {missing[0]}"
        raise InputError(
            f"task {task.name!r} is measured by {task.measure} and the outcome {found}; it needs {known[0]}"
        )
    if task.measure == ITEMS:
        if wrong:
            raise InputError(f"the task is measured in items and the outcome has {wrong[0]}; leave it out")
        return typed
    done = typed.get("score") == 1
    if task.measure != SCORE:
        times: Sequence[float | None] = typed["reached_s"]
        if isinstance(times, str) or not hasattr(times, "__len__") or len(times) > len(task.stages):
            most = f"{len(task.stages)}: {', '.join(stage['name'] for stage in task.stages)}"
            raise InputError(f"reached_s is {times!r}; it must be a list of one time a stage reached, at most {most}")
        late = [
            t for t in times if t is not None and _number(t) and lasted_s is not None and t > lasted_s + _ROUNDING_S
        ]
        if late:
            raise InputError(f"reached_s has {late[0]:g}; the episode was over {lasted_s:g} s after go")
        done = len(times) == len(task.stages)
    counts = {"items_staged": task.counted, "moved": int(done), "lost": 0, "remaining": int(not done)}
    return {**typed, **counts, "wrong_end": not done and ended == EndReason.ALL_DONE}


_ROUNDING_S = 1e-3


def outcome_from(body: Body) -> Outcome:
    """The outcome of a journalled or typed body. Raises InputError for unknown or missing keys and contradictions."""
    known = list(Outcome.__dataclass_fields__)
    wrong = [name for name in body if name not in known]
    missing = [name for name in known[:5] if name not in body]
    if wrong or missing:
        found = f"unknown {wrong[0]!r}" if wrong else f"no {missing[0]!r}"
        raise InputError(f"outcome has {found}; its keys are {', '.join(known)}")
    if body["end_reason"] not in list(EndReason):
        raise InputError(f"unknown end reason {body['end_reason']!r}; known: {', '.join(EndReason)}")
    return Outcome(
        items_staged=body["items_staged"],
        moved=body["moved"],
        lost=body["lost"],
        remaining=body["remaining"],
        end_reason=EndReason(body["end_reason"]),
        notes=body.get("notes", ""),
        stage_reached=body.get("stage_reached"),
        tags=tuple(body.get("tags", ())),
        wrong_end=body.get("wrong_end", False),
        reached_s=None if (times := body.get("reached_s")) is None else tuple(times),
        score=body.get("score"),
    )
