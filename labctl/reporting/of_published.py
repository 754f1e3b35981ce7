"""What a report of a published folder knows that one of a lab does not: what was left out, the lab's word, its place.

May not: read a manifest (`labctl.publishing` does), or leave out of a report that something was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labctl.store.verifying.withheld import NOTHING_WITHHELD, Withheld


@dataclass(frozen=True, slots=True)
class Published:
    """withheld: what is not there; untraced, unseen: why the samples, or the pictures, of an episode are not; stated:
    rows of the provenance that are the lab's word; read_at: the folder that the report's links are made for, which the
    one it is written to need not be.
    """

    withheld: Withheld = NOTHING_WITHHELD
    untraced: Mapping[str, str] = field(default_factory=dict[str, str])
    unseen: Mapping[str, str] = field(default_factory=dict[str, str])
    stated: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    read_at: Path | None = None

    def lines(self) -> list[str]:
        """What a report says of it: a line for each reason."""
        found: list[str] = []
        for what, of in (("samples", self.untraced), ("pictures", self.unseen)):
            for why in dict.fromkeys(of.values()):
                named = [episode for episode, reason in of.items() if reason == why]
                found.append(f"withheld when this was published, {what} of {', '.join(named)}: {why}")
        return found


IN_A_LAB = Published()
