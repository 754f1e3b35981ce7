"""The values of a campaign: conditions, people and sessions, outcomes; and the parsed protocol, cell and fixture.

May not: open files, read a clock, or decide what happens next (`trial` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from labctl.errors import InputError
from labctl.events import EndReason
from labctl.schema import (
    AXIS_CODES,
    MACHINE_VOID_REASONS,
    Cell,
    Fixture,
    Link,
    Protocol,
    check_against_fixture,
    parse_cell,
    parse_fixture,
    parse_protocol,
)

__all__ = [
    "AXIS_CODES",
    "MACHINE_VOID_REASONS",
    "Cell",
    "Condition",
    "Fixture",
    "Link",
    "Outcome",
    "Person",
    "Protocol",
    "Role",
    "Session",
    "check_against_fixture",
    "missing_checks",
    "outcome_from",
    "parse_cell",
    "parse_fixture",
    "parse_protocol",
    "protocol_conditions",
    "session_from",
]


class Role(StrEnum):
    """What a person does in a session. One person in several roles is a limit of blinding, recorded as such."""

    OPERATOR = "operator"
    SETTER = "setter"
    ASSESSOR = "assessor"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Condition:
    """Object x initial layout, with perturbation axes and tags. `id` is "<object>/<layout>"."""

    id: str
    object: str
    layout: str
    axes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def protocol_conditions(protocol: Protocol, fixture: Fixture) -> tuple[Condition, ...]:
    """Every condition of the design, objects outermost. Raises InputError for a name the fixture lacks."""
    check_against_fixture(protocol, fixture, "")
    objects = {entry.name: entry for entry in fixture.object}
    layouts = {entry.name: entry for entry in fixture.layout}
    return tuple(
        Condition(
            f"{name}/{layout}",
            name,
            layout,
            (*objects[name].axes, *layouts[layout].axes),
            (*objects[name].tags, *layouts[layout].tags),
        )
        for name in protocol.design.objects
        for layout in protocol.design.layouts
    )


@dataclass(frozen=True, slots=True)
class Person:
    """An opaque id and the roles taken in a session."""

    id: str
    roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """An evening: who was there in which role, what the opening checks said, and the note left at closing."""

    id: str
    people: tuple[Person, ...]
    checks: Mapping[str, bool | str] = field(default_factory=dict)
    handover: str | None = None

    def body(self) -> dict[str, Any]:
        """The body of SessionOpened."""
        people = [{"id": person.id, "roles": [str(role) for role in person.roles]} for person in self.people]
        return {"session": self.id, "people": people, "checks": dict(self.checks)}


def session_from(body: Mapping[str, Any]) -> Session:
    """The session of a SessionOpened body. Raises InputError for no people, a person twice, or an unknown role."""
    people = tuple(_person(entry) for entry in body["people"])
    ids = [person.id for person in people]
    if not people:
        raise InputError("a session needs at least one person with a role")
    if len(set(ids)) != len(ids):
        raise InputError(f"a person is listed twice in the session: {', '.join(ids)}; list each once, with all roles")
    return Session(body["session"], people, dict(body.get("checks", {})))


def _person(entry: Mapping[str, Any]) -> Person:
    known = [str(role) for role in Role]
    wrong = [role for role in entry["roles"] if role not in known]
    if wrong or not entry["roles"] or not entry["id"]:
        found = f"role {wrong[0]!r}" if wrong else "no role or no id"
        raise InputError(f"person {entry['id']!r} has {found}; roles are {', '.join(known)}")
    return Person(entry["id"], tuple(Role(role) for role in entry["roles"]))


def missing_checks(protocol: Protocol, session: Session) -> tuple[str, ...]:
    """Opening checks the protocol asks for that the session answered with no, with nothing, or not at all."""
    return tuple(name for name in protocol.session.checks if not session.checks.get(name))


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
        if not isinstance(self.wrong_end, bool):
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

    def body(self) -> dict[str, Any]:
        """The `outcome` of OutcomeRecorded, plain JSON values."""
        found = {**asdict(self), "end_reason": str(self.end_reason), "tags": list(self.tags)}
        if not self.wrong_end:
            del found["wrong_end"]  # as it was before an end could be disputed
        return found


def outcome_from(body: Mapping[str, Any]) -> Outcome:
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
    return Outcome(**{**body, "end_reason": EndReason(body["end_reason"]), "tags": tuple(body.get("tags", ()))})
