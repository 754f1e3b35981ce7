"""The assessor's record of an episode, and what in it contradicts itself.

May not: open files, or score anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labctl.bus import Body
from labctl.core.events import EndReason
from labctl.errors import InputError
from labctl.messages.body_parts import OutcomeBody


@dataclass(frozen=True, slots=True)
class Outcome:
    """The assessor's record of an episode. Counts are items; staged = moved + lost + remaining. wrong_end: a device
    ended it as all done, and a person found items remaining.

    Raises InputError for counts that contradict each other or the reason the episode ended.
    """

    items_staged: int
    moved: int
    lost: int
    remaining: int
    end_reason: EndReason
    notes: str = ""
    stage_reached: str | None = None
    tags: tuple[str, ...] = ()
    wrong_end: bool = False

    def __post_init__(self) -> None:
        counts = {name: getattr(self, name) for name in ("items_staged", "moved", "lost", "remaining")}
        for name, count in counts.items():
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                raise InputError(f"{name} is {count!r}; it must be a whole number of items, 0 or more")
        if self.items_staged < 1:
            raise InputError("items_staged is 0; an episode has at least one item")
        if self.moved + self.lost + self.remaining != self.items_staged:
            total = f"moved {self.moved} + lost {self.lost} + remaining {self.remaining}"
            raise InputError(f"{total} is not the {self.items_staged} items staged; count again")
        if self.end_reason not in list(EndReason):
            raise InputError(f"unknown end reason {self.end_reason!r}; known: {', '.join(EndReason)}")
        self._check_end()

    def _check_end(self) -> None:
        found = f"{self.remaining} of {self.items_staged} items remaining"
        if type(self.wrong_end) is not bool:
            raise InputError(f"wrong_end is {self.wrong_end!r}; it must be true or false")
        disputed = self.end_reason == EndReason.ALL_DONE and self.remaining > 0
        if disputed and not self.wrong_end:
            raise InputError(
                f"a device ended this episode as all_done, and {found} says that it was wrong: correct the counts, or "
                "say wrong_end = true; what remains is then censored at that end, and a review looks at it first"
            )
        if self.wrong_end and not disputed:
            raise InputError(
                "wrong_end is for an episode that a device ended as all_done while items remain; this one was ended by "
                f"{self.end_reason} with {self.remaining} remaining; leave it out"
            )

    @property
    def extent(self) -> str:
        """How much was moved, in two words at most."""
        return "success" if self.moved == self.items_staged else "partial" if self.moved else "nothing moved"

    def body(self) -> OutcomeBody:
        """The `outcome` of OutcomeRecorded, plain JSON values."""
        found: OutcomeBody = {
            "items_staged": self.items_staged,
            "moved": self.moved,
            "lost": self.lost,
            "remaining": self.remaining,
            "end_reason": str(self.end_reason),
            "notes": self.notes,
            "stage_reached": self.stage_reached,
            "tags": list(self.tags),
        }
        if self.wrong_end:  # left out otherwise, as it was before an end could be disputed
            found["wrong_end"] = True
        return found


def judged(typed: Body, *, ended: str, items: int, stages: Sequence[str], failure_tags: Sequence[str]) -> Outcome:
    """The outcome that a person typed, at whichever door: as `outcome_from`, and of this campaign: of so many items
    staged, with a stage and tags of its protocol. ended: why the motion ended, as journalled.

    Raises InputError with what is allowed.
    """
    outcome = outcome_from({**typed, "end_reason": ended})
    if outcome.items_staged != items:
        raise InputError(
            f"items_staged is {outcome.items_staged}; each episode of this campaign has {items}: an item that was not "
            "there counts as lost or remaining, or the episode is void"
        )
    stage = [] if outcome.stage_reached is None else [("stage", outcome.stage_reached, stages)]
    for what, name, known in [*stage, *(("tag", tag, failure_tags) for tag in outcome.tags)]:
        if name not in known:
            raise InputError(f"{what} {name!r} is not in the protocol; there: {', '.join(known) or 'none'}")
    return outcome


def outcome_from(body: Body) -> Outcome:
    """The outcome of a journalled or typed body. Raises InputError for unknown or missing keys and contradictions."""
    known = list(Outcome.__dataclass_fields__)
    wrong = [name for name in body if name not in known]
    missing = [name for name in known[:5] if name not in body]
    if wrong or missing:
        found = f"unknown {wrong[0]!r}" if wrong else f"no {missing[0]!r}"
        raise InputError(f"outcome has {found}; its keys are {', '.join(known)}")
    reasons = list(EndReason)
    if body["end_reason"] not in reasons:
        raise InputError(f"unknown end reason {body['end_reason']!r}; known: {', '.join(reasons)}")
    return Outcome(
        items_staged=body["items_staged"],
        moved=body["moved"],
        lost=body["lost"],
        remaining=body["remaining"],
        end_reason=EndReason(body["end_reason"]),
        notes=body.get("notes", ""),
        stage_reached=body.get("stage_reached"),
        tags=tuple(body.get("tags", ())),
        wrong_end=body.get("wrong_end", False),
    )
