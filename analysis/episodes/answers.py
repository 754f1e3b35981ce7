"""What answers to questions about keyframes come to: the share that is right, by kind of question and view, beside the
floors of chance and of always giving the same answer.

May not: ask a question, know a picture, or be taken for a result: nothing moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

ALL = "all"


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answered a question of a kind about a view of a keyframe; answer: None where it named none of the options."""

    who: str
    kind: str
    view: str
    mark: str
    episode: str
    options: tuple[str, ...]
    right: int
    answer: int | None


class Cell(TypedDict):
    """Of one who answered, a kind of question and a view ("all" over them): right of asked, with its floors as shares.

    chance: a guess among the options; same: the answer that is right most often, always given. above: from the better
    floor (0) to all right (1), None where a floor is all right. unread: answers that named no option.
    """

    who: str
    kind: str
    view: str
    asked: int
    right: int
    unread: int
    share: float
    chance: float
    same: float
    above: float | None


def table(answers: Sequence[Answer]) -> list[Cell]:
    """Every kind by every view, kinds over all views, and all: in order of appearance. No interval is given: keyframes
    of an episode are not independent of each other.
    """
    found: list[Cell] = []
    for who in dict.fromkeys(one.who for one in answers):
        own = [one for one in answers if one.who == who]
        kinds, views = (list(dict.fromkeys(getattr(one, key) for one in own)) for key in ("kind", "view"))
        for kind in (*kinds, ALL):
            for view in (*(views if len(views) > 1 else ()), ALL):
                some = [one for one in own if kind in (one.kind, ALL) and view in (one.view, ALL)]
                if some:
                    found.append(_cell(who, kind, view, some))
    return found


def _cell(who: str, kind: str, view: str, some: Sequence[Answer]) -> Cell:
    n, right = len(some), sum(one.answer == one.right for one in some)
    chance = sum(1 / len(one.options) for one in some) / n
    same = _same(some) / n
    floor = max(chance, same)
    return {
        "who": who,
        "kind": kind,
        "view": view,
        "asked": n,
        "right": right,
        "unread": sum(one.answer is None for one in some),
        "share": right / n,
        "chance": chance,
        "same": same,
        "above": (right / n - floor) / (1 - floor) if floor < 1 else None,
    }


def _same(some: Sequence[Answer]) -> int:
    """How many the best constant answers get right, one for each kind of question with the same options."""
    by_question: dict[tuple[str, tuple[str, ...]], Counter[int]] = {}
    for one in some:
        by_question.setdefault((one.kind, one.options), Counter())[one.right] += 1
    return sum(max(counts.values()) for counts in by_question.values())
