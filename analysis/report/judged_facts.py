"""What second assessors and models judged beside the first assessor, as types.

May not: judge who is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from labctl.analysis.results import Bounds


class Guesses(TypedDict):
    """People's guesses of the arm in episodes of this one: how many, right ones, "could not tell", Bang's index."""

    arm: str
    said: int
    unknown: int
    right: int
    index: float
    interval: Bounds


class Tags(TypedDict):
    """In how many of an arm's episodes each failure tag was ticked."""

    arm: str
    episodes: int
    by_tag: dict[str, int]


class Witness(TypedDict):
    """A witness's counts against the assessor's in n episodes: share with the same, kappa, weighted kappa."""

    witness: str
    n: int
    same: float
    kappa: float | None
    interval: Bounds
    weighted: float | None


class SecondAssessor(TypedDict):
    """Of a task, the episodes that a second assessor judged from their videos alone, against the outcome that stood
    then. agreement: weighted kappa (items, success, stages) or ICC(2,1) (score), None where nothing varies; same: the
    share on which both agree; disagreements: the others; adjudicated: of these, those an assessor has gone over since.
    """

    task: str
    measure: str
    n: int
    same: float
    statistic: str
    agreement: float | None
    interval: Bounds
    disagreements: int
    adjudicated: int


class ModelWitness(TypedDict):
    """Of a task, what a vision-language model said of episodes from pictures, against the outcome that stood then.
    unknown: of how many it could not tell, which the rest leaves out; same: the share on which both agree; agreement:
    as of a second assessor.
    """

    model: str
    task: str
    measure: str
    n: int
    unknown: int
    same: float | None
    statistic: str
    agreement: float | None
    interval: Bounds


class Judgements(TypedDict):
    """What people recorded beside outcomes; each empty where nothing was. by_cell: of a joint campaign, the same of
    each cell by itself; the rest is then of all cells' judgements as one list.
    """

    guesses: list[Guesses]
    tags: list[Tags]
    witnesses: list[Witness]
    second: list[SecondAssessor]
    models: list[ModelWitness]
    by_cell: NotRequired[Mapping[str, Judgements]]
