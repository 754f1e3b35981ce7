"""Practice of teleoperators: recorded beside a campaign, outside of its trials, in no number of the reference. Pure.

May not: touch a trial or a file, or count practice that came after a person's first reference episode.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from labctl.core.evening_bodies import PracticeRecorded
from labctl.core.event_bodies import CampaignOpened
from labctl.core.record import Record
from labctl.errors import InputError
from labctl.messages.body_parts import Plateau
from labctl.plain import Json

LAST, WITHIN = 5, 0.1  # the rule where the protocol states none


def practice_from(args: Mapping[str, Json], opened: CampaignOpened) -> PracticeRecorded:
    """The body of PracticeRecorded. opened: CampaignOpened's body.

    Raises InputError for nobody, an object that is not in the protocol, or counts that cannot be.
    """
    objects = list(dict.fromkeys(condition["object"] for condition in opened["conditions"]))
    person, thing = str(args.get("person", "")).strip(), str(args.get("object", ""))
    if not person:
        raise InputError("practice names nobody; give the person's opaque id")
    if thing not in objects:
        raise InputError(f"object {thing!r} is not in the protocol; there: {', '.join(objects)}")
    moved, staged, seconds = args.get("moved"), args.get("staged"), args.get("duration_s")
    whole = not isinstance(moved, bool) and not isinstance(staged, bool)
    if not whole or not isinstance(moved, int) or not isinstance(staged, int) or not 0 <= moved <= staged or staged < 1:
        raise InputError(f"{moved!r} of {staged!r} items moved cannot be; give whole numbers, moved at most staged")
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
        raise InputError(f"{seconds!r} s is no duration; give seconds above 0")
    return {"person": person, "object": thing, "moved": moved, "staged": staged, "duration_s": float(seconds)}


def practice_before(record: Record, human: Collection[str]) -> list[PracticeRecorded]:
    """Practice episodes in order that came before the person's first reference episode. human: the trials of the
    reference, known after unblinding; every operator of the session open at an episode counts as having driven it.
    """
    return [practice.body for practice in record.practice if practice.drove.isdisjoint(human)]


def rule_of(opened: CampaignOpened) -> Plateau:
    """The rule of the plateau of a campaign: last, within, and who states it."""
    stated = opened.get("plateau")
    if stated is None:
        return {"last": LAST, "within": WITHIN, "stated": "by labctl's default, not by the protocol"}
    return {**stated, "stated": "as the protocol states it"}
