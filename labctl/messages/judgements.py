"""What assessors say of episodes beside an outcome, as the journal has it and commands bring it.

May not: hold anything but forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict


class PreferenceAsked(TypedDict):
    """The two episodes of a block that were drawn for it are scored, first and second in the order they ran: which was
    better? The entry is of the second one's trial."""

    first: str
    second: str


class PreferenceStated(PreferenceAsked):
    """What an assessor said of two episodes: first, second or neither was better, and why in a sentence. A later entry
    replaces it.
    """

    preferred: str
    why: str


class WitnessEntry(TypedDict):
    """A model that is asked how episodes went, as the protocol's [witness] names it."""

    model: str
    url: str
    key_env: str | None
    pictures: int


class WitnessStated(TypedDict):
    """What a vision-language model said of an episode from pictures of its cameras: a witness, whose statement changes
    nothing. said: the option that it chose, None for an answer that names none; value: what that comes to by the
    measure of the task (items moved, stages reached, 1 or 0, the score of an anchor), None where it could not tell;
    pictures: by camera, when each that it was sent was taken, ns; until November 2026 the moments that they stood for.
    """

    model: str
    question: str
    options: Sequence[str]
    said: int | None
    value: float | None
    pictures: Mapping[str, Sequence[int]]
