"""Questions about a keyframe with the answer that the record gives: what comes next (plan), what is seen (perception),
how far it is (stage). One of a few options is right.

May not: ask them, or take an answer for a fact: what is right is known from the record alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labctl.checks.keyframes import Hold, Keyframe

Kind = Literal["plan", "perception", "stage"]
KINDS: tuple[Kind, ...] = ("plan", "perception", "stage")
NOTHING = "nothing"
DONE = "nothing: the task is done"
TAKE, BRING = "take hold of an item", "bring what it holds to the target tote and let go"


@dataclass(frozen=True, slots=True)
class Question:
    """options: at least two; right: the place of the right one."""

    kind: Kind
    text: str
    options: tuple[str, ...]
    right: int

    def prompt(self) -> str:
        """The question as it is put, with a letter for each option."""
        return f"{self.text}\n{lettered(self.options)}\nAnswer with one letter and nothing else."


def lettered(options: Sequence[str]) -> str:
    """A line for each option, with its letter."""
    return "\n".join(f"{chr(ord('A') + i)}. {option}" for i, option in enumerate(options))


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """What the record tells of an episode. stages: of its task, in order, none for one counted in items; reached_ns:
    when each was; moved_ns: when items arrived in the target tote; objects: the fixture's; object: which is handled.
    """

    instruction: str
    items: int
    stages: tuple[str, ...]
    reached_ns: tuple[int, ...]
    moved_ns: tuple[int, ...]
    holds: tuple[Hold, ...]
    objects: tuple[str, ...]
    object: str


def questions(recorded: RecordedTask, at: Keyframe) -> list[Question]:
    """One of each kind, but for what the record cannot tell: whether it holds an item, where something at the target
    tote was between the fingers (an item that lay there, or a handle).
    """
    now = [hold for hold in recorded.holds if hold.from_ns <= at.t_ns < hold.to_ns]
    held, clear = bool(now), all(hold.clear for hold in now)
    task = f'A robot was told: "{recorded.instruction}" The picture shows it at work.'
    named = (NOTHING, *recorded.objects)
    seen = Question(
        "perception",
        f"{task} What is between its fingers?",
        named,
        named.index(recorded.object) if held else 0,
    )
    sure = [seen] if clear else []
    if recorded.stages:
        done = sum(t_ns <= at.t_ns for t_ns in recorded.reached_ns)
        so_far = ("none", *("; ".join(recorded.stages[: n + 1]) for n in range(len(recorded.stages))))
        plan = Question("plan", f"{task} Which step is it to take next?", (*recorded.stages, DONE), done)
        return [plan, *sure, Question("stage", f"{task} Which steps are done already?", so_far, done)]
    moved = sum(t_ns <= at.t_ns for t_ns in recorded.moved_ns)
    counts = tuple(str(n) for n in range(recorded.items + 1))
    left = recorded.items - moved
    options = (TAKE, BRING, DONE)
    plan = Question("plan", f"{task} What is it to do next?", options, 1 if held else 0 if left else 2)
    count = f"{task} How many of the {recorded.items} items lie in the target tote already?"
    return [*([plan, *sure] if clear else ()), Question("stage", count, counts, moved)]
