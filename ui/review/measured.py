"""An outcome that is not counted in items, in lines and rows: what its measure says, and what it is held against. Pure.

May not: draw, or say anything that stands in no outcome and no protocol.
"""

from __future__ import annotations

from labctl.core.outcome import Outcome
from labctl.core.reviewed import in_words
from labctl.core.task import ITEMS, SCORE, Task
from labctl.messages.body_parts import AnchorEntry
from labctl.ui.console.asking import ToScore

Row = tuple[str, str, str, str]  # number, seconds from go, what it is, in which words


def about(task: Task | None, items: int) -> ToScore:
    """What a form needs to ask of an episode by its measure, with nothing that anybody or anything says of it."""
    return {
        "items": items,
        "stages": (),
        "tags": (),
        "counted": 0,
        "proposal": None,
        "ended": None,
        "marks": (),
        "unsaid": (),
        "measure": task.measure if task else ITEMS,
        "steps": task.stages if task else (),
        "rubric": task.rubric if task else (),
        "measured": None,
    }


def lines(task: Task, outcome: Outcome) -> list[str]:
    """The task as it was put, and how it went."""
    sentences = [f"• the task: {task.instruction}", f"• outcome: {in_words(task, outcome)}"]
    return [*sentences, *([f"• note: {outcome.notes}"] if outcome.notes else [])]


def rows(task: Task, outcome: Outcome | None) -> list[Row]:
    """The stages with their definitions, or the rubric's anchors; outcome: with what was reached, and when."""
    if task.measure == SCORE:
        return [("", "", f"score {anchor['score']:g}", _in_words(anchor)) for anchor in task.rubric]
    times = outcome.reached_s or () if outcome else ()
    found: list[Row] = []
    for number, stage in enumerate(task.stages, 1):
        seconds = times[number - 1] if number <= len(times) else None
        reached = "" if outcome is None else ": reached" if number <= len(times) else ": not reached"
        at = "" if seconds is None else f"{seconds:.2f}"
        found.append((str(number), at, f"{stage['name']}{reached}", stage["definition"]))
    return found


def _in_words(anchor: AnchorEntry) -> str:
    """What an anchor says, and where its picture lies in the campaign's folder."""
    return f"{anchor['text']} ({anchor['picture']['file']})" if "picture" in anchor else anchor["text"]
