"""What an assessor's page shows of a task that is not counted in items, and what it posts of one. Pure.

May not: judge what an outcome may be (`labctl.core.outcome` does), or add to what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from labctl.core.campaign_state import said_of
from labctl.core.outcome import Outcome
from labctl.core.published_state import Compare
from labctl.core.task import ITEMS, SCORE, Task
from labctl.errors import InputError
from labctl.messages.judgements import PreferenceStated
from labctl.plain import Json


def measure_shown(task: Task | None, outcome: Outcome | None) -> Json:
    """A task with its stages or anchors, and how far an outcome says it got, None for one that says nothing; None of
    a task in items.
    """
    if task is None or task.measure == ITEMS:
        return None
    return {
        "name": task.name,
        "measure": task.measure,
        "instruction": task.instruction,
        "stages": [
            {"name": one["name"], "points": one["points"], "definition": one["definition"]} for one in task.stages
        ],
        "rubric": [{"score": one["score"], "text": one["text"], "pictured": "picture" in one} for one in task.rubric],
        "reached_s": list(outcome.reached_s or ()) if outcome else [],
        "score": outcome.score if outcome else None,
    }


def posted(task: Task, body: Mapping[str, Json]) -> dict[str, Json]:
    """What a page says of an episode of this task, by its measure. Raises InputError where it says nothing."""
    if task.measure == ITEMS:
        moved, lost = body.get("moved"), body.get("lost")
        if not isinstance(moved, int) or not isinstance(lost, int):
            raise InputError("moved and lost are whole numbers, 0 or more")
        return {"items_staged": task.items, "moved": moved, "lost": lost, "remaining": task.items - moved - lost}
    key = "score" if task.measure == SCORE else "reached_s"
    if body.get(key) is None:
        raise InputError(f"the task is judged by {task.measure} and what was posted has no {key}")
    return {key: body[key]}


def pair(compare: Compare, stated: PreferenceStated | None) -> Json:
    """Two episodes to compare, and what was said of them; empty words where nothing was. seen: to be sent back."""
    return {
        "question": compare["question"],
        "block": compare["block"],
        "first": compare["first"],
        "second": compare["second"],
        "places": list(compare["places"]),
        "preferred": stated["preferred"] if stated else "",
        "why": stated["why"] if stated else "",
        "seen": said_of(stated),
    }


def preference(body: Mapping[str, Json]) -> PreferenceStated:
    """What a page says of two episodes. Raises InputError for another form."""
    words = {key: body.get(key) for key in ("first", "second", "preferred", "why")}
    wrong = next((key for key, value in words.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise InputError(f"{wrong} is {words[wrong]!r}; first, second, preferred and why are texts")
    first, second, preferred, why = (str(words[key]) for key in ("first", "second", "preferred", "why"))
    return {"first": first, "second": second, "preferred": preferred, "why": why}
