"""What assessors say of episodes beside an outcome, as the journal has it and commands bring it.

May not: hold anything but forms.
"""

from __future__ import annotations

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
