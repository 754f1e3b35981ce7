"""What is asked in a trial and how it is judged, as the campaign's first entry states it for each condition.

May not: judge (`outcome` does), or read a protocol: whoever reads a journal needs no schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labctl.core.event_bodies import CampaignOpened, StageReached
from labctl.messages.body_parts import AnchorEntry, ConditionEntry, Detected, StageEntry

ITEMS, SUCCESS, STAGES, SCORE = "items", "success", "stages", "score"
DONE = "success"  # what a task that is measured by success has for its one stage


@dataclass(frozen=True, slots=True)
class Task:
    """A trial's task. measure: ITEMS, SUCCESS, STAGES or SCORE; items: staged; instruction: as its condition words it.

    name: "" in campaigns without tasks. stages: in order, of SUCCESS its one; rubric: of SCORE, rising from 0 to 1.
    """

    name: str
    measure: str
    items: int
    budget_s: float
    instruction: str
    stages: tuple[StageEntry, ...] = ()
    rubric: tuple[AnchorEntry, ...] = ()
    failure_tags: tuple[str, ...] = ()

    @property
    def counted(self) -> int:
        """Items that an outcome counts: those staged, or the whole task for one where another measure is taken."""
        return self.items if self.measure == ITEMS else 1

    @property
    def done_at(self) -> int | None:
        """How many items, moved or lost, a device may end an episode at; None where a device cannot tell."""
        return self.items if self.measure in (ITEMS, SUCCESS) else None

    def points(self, reached: int) -> float:
        """Points of the first stages / points possible."""
        return sum(stage["points"] for stage in self.stages[:reached]) / sum(stage["points"] for stage in self.stages)


def reported_by_episodes(measures: Sequence[str]) -> bool:
    """Whether a report of tasks that are measured so is by episodes: of several, or of one not counted in items."""
    return len(measures) > 1 or any(measure != ITEMS for measure in measures)


def condition_of(opened: CampaignOpened, name: str) -> ConditionEntry:
    """The condition of this id. Raises KeyError."""
    for entry in opened["conditions"]:
        if entry["id"] == name:
            return entry
    raise KeyError(name)


def task_of(opened: CampaignOpened, condition: str) -> Task:
    """The task of a condition, by its id. opened: CampaignOpened's body."""
    tasks = opened.get("tasks")
    if tasks is None:
        return Task("", ITEMS, opened["items_staged"], opened["budget_s"], opened["instruction"])
    entry = condition_of(opened, condition)
    found = next(task for task in tasks if task["name"] == entry.get("task"))
    stages: Sequence[StageEntry] = found["stages"]
    if found["measure"] == SUCCESS:
        stages = [StageEntry(name=DONE, points=1.0, definition="the task is done")]
    return Task(
        name=found["name"],
        measure=found["measure"],
        items=found["items_staged"],
        budget_s=found["budget_s"],
        instruction=entry.get("instruction") or "",
        stages=tuple(stages),
        rubric=tuple(found["rubric"]),
        failure_tags=tuple(found["failure_tags"]),
    )


def reached_after(before: tuple[int, ...], stage: StageReached) -> tuple[int, ...]:
    """When each stage was reached (ns), after one more was, or the last was taken back."""
    return (*before, stage["t_ns"]) if stage["reached"] > len(before) else before[: stage["reached"]]


def tasks_of(opened: CampaignOpened) -> dict[str, Task]:
    """The task of each condition, by the condition's id."""
    return {entry["id"]: task_of(opened, entry["id"]) for entry in opened["conditions"]}


def proposed(stages: Sequence[StageEntry], detected: Sequence[Detected], go_ns: int, end_ns: int) -> list[int]:
    """When each of the first stages was reached, ns, as far as the holds of an episode tell: each not before the one
    before it, up to the first stage that is not one of theirs, or that no hold shows.
    """
    found: list[int] = []
    for stage in stages:
        since = found[-1] if found else go_ns
        times = [t_ns for t_ns in _times(stage.get("sensed"), detected) if since <= t_ns <= end_ns]
        if not times:
            break
        found.append(min(times))
    return found


def _times(sensed: str | None, detected: Sequence[Detected]) -> Iterator[int]:
    for one in detected:
        at = {
            "grasped": one.get("grasped_ns"),
            "lifted": one.get("lifted_ns"),
            "placed": one["t_ns"] if one["result"] == "success" else None,
        }.get(sensed or "")
        if at is not None:
            yield at
