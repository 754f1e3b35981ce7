"""What is said about a record that does not hold.

May not: look for problems; the modules that own a record do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not hold: `what` kind of damage, `where`, and the detail. episode: whose recording it is in,
    if it is in a recording and nowhere else.
    """

    what: str
    where: str
    detail: str
    episode: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.where}: {self.detail}"
