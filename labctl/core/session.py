"""People and sessions: who was there in which role, what the opening checks gave, and so whose orders and
confirmations count.

May not: tell whether people are who they say they are (an id is typed, not proven), open files, read a clock, or decide
what happens next (`trial` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from labctl.core.evening_bodies import SessionOpened
from labctl.errors import InputError, StateError
from labctl.messages.body_parts import PersonEntry

if TYPE_CHECKING:  # whoever reads a journal does not wait for the schemas
    from labctl.config.protocol_schema import Protocol


class Role(StrEnum):
    """What a person does in a session. One person in several roles is a limit of blinding, recorded as such."""

    OPERATOR = "operator"
    SETTER = "setter"
    ASSESSOR = "assessor"
    ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Person:
    """An opaque id and the roles taken in a session."""

    id: str
    roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """Who was there in which role, what the opening checks gave, and the note left at closing."""

    id: str
    people: tuple[Person, ...]
    checks: Mapping[str, bool | str] = field(default_factory=dict[str, bool | str])
    handover: str | None = None

    @property
    def operators(self) -> tuple[str, ...]:
        """The ids of those who operate."""
        return tuple(person.id for person in self.people if Role.OPERATOR in person.roles)

    @property
    def ids(self) -> frozenset[str]:
        """Whoever is there, in whatever role."""
        return frozenset(person.id for person in self.people)

    def body(self) -> SessionOpened:
        """The body of SessionOpened."""
        people: list[PersonEntry] = [
            {"id": person.id, "roles": [str(role) for role in person.roles]} for person in self.people
        ]
        return {"session": self.id, "people": people, "checks": dict(self.checks)}


def session_from(body: SessionOpened) -> Session:
    """The session of a SessionOpened body. Raises InputError for no people, a person twice, or an unknown role."""
    people = tuple(_person(entry) for entry in body["people"])
    ids = [person.id for person in people]
    if not people:
        raise InputError("a session needs at least one person with a role")
    if len(set(ids)) != len(ids):
        raise InputError(f"a person is listed twice in the session: {', '.join(ids)}; list each once, with all roles")
    return Session(body["session"], people, dict(body.get("checks", {})))


def _person(entry: PersonEntry) -> Person:
    known = [str(role) for role in Role]
    wrong = [role for role in entry["roles"] if role not in known]
    if wrong or not entry["roles"] or not entry["id"]:
        found = f"role {wrong[0]!r}" if wrong else "no role or no id"
        raise InputError(f"person {entry['id']!r} has {found}; roles are {', '.join(known)}")
    return Person(entry["id"], tuple(Role(role) for role in entry["roles"]))


def everyone(before: tuple[Person, ...], now: tuple[Person, ...]) -> tuple[Person, ...]:
    """All who were there at some time, each with every role that they took."""
    roles: dict[str, list[Role]] = {}
    for person in (*before, *now):
        taken = roles.setdefault(person.id, [])
        taken += [role for role in person.roles if role not in taken]
    return tuple(Person(name, tuple(taken)) for name, taken in roles.items())


def missing_checks(protocol: Protocol, session: Session) -> tuple[str, ...]:
    """Opening checks the protocol asks for that the session answered with no, with nothing, or not at all."""
    return tuple(name for name in protocol.session.checks if not session.checks.get(name))


People = Mapping[str, frozenset[Role]]


def joined(known: People, session: Session) -> People:
    """Those known so far, and who came to this session, each with every role they ever took in the campaign."""
    now = {person.id: known.get(person.id, frozenset()) | set(person.roles) for person in session.people}
    return {**known, **now}


def present(session: Session | None, known: People) -> People:
    """Whose orders and confirmations count now: the open session's people; outside of a session everyone who was in
    one.
    """
    return known if session is None else joined({}, session)


def check_person(people: People, who: str, role: Role | None = None) -> None:
    """Whether this person is one of `people`, in this role (None: in any). Raises StateError."""
    if who not in people:
        there = ", ".join(f"{name} ({', '.join(sorted(taken))})" for name, taken in sorted(people.items()))
        raise StateError(f"{who!r} is in no session here; there: {there or 'nobody'}. People are entered in a session")
    if role is not None and role not in people[who]:
        raise StateError(f"{who} is {' and '.join(sorted(people[who]))} here, not {role}")


def check_watched(session: Session | None, watched: frozenset[str], who: str) -> None:
    """Whether this person may confirm that an episode is void: one of the open session, and of the one in which the
    episode ended (`watched`, `Trial.watched`). Raises StateError.
    """
    if session is None:
        raise StateError("no session is open, and a second person is one of a session: open one first")
    check_person(joined({}, session), who)
    if who not in watched:
        raise StateError(f"{who} came after this episode was over; one who was here confirms its void, or it is scored")
