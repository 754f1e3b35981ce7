"""The bodies of journal entries about a session at the cell, whichever trial runs: people, the run process, holds,
practice, the pictures that scenes are compared with.

May not: write or check anything. `event_bodies` says what forms are for, and which kind has which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from labctl.messages.body_parts import PersonEntry, Photo, Pins


class SessionOpened(TypedDict):
    """A session begins: who is there in which role, and what the opening checks gave."""

    session: str
    people: Sequence[PersonEntry]
    checks: NotRequired[Mapping[str, bool | str]]


class SessionChanged(TypedDict):
    """Somebody came, left or changed role while it went on. people: all who are there from now on."""

    session: str
    people: Sequence[PersonEntry]


class SessionClosed(TypedDict):
    """A session ends, with a note for the next one."""

    session: str
    handover: NotRequired[str]


class RunStarted(TypedDict):
    """The run process started. pins: versions of what it runs on; recovered: what it concluded of a crash."""

    pins: Pins
    recovered: NotRequired[Sequence[str]]


class ArmsAsked(TypedDict):
    """Before anything moved every arm was loaded, and asked for an answer where it has a policy card: how many there
    are, how many did as they should. Which, and why not, is kept with the seal.
    """

    asked: int
    answer: int


class ReferenceSet(TypedDict):
    """A person declared another picture the reference. old: sha256 of the one before."""

    camera: str
    photo: Photo
    old: str | None
    reason: str


class HoldRaised(TypedDict):
    """A reason against motion, that stands until it is cleared."""

    code: str
    text: str


class HoldCleared(TypedDict):
    """A hold is acknowledged. why and contact: of a stop only; cause: of a stop by hand, as `config.values.StopCause`;
    until November 2026 nobody was asked for it.
    """

    code: str
    acknowledged_by: str
    why: NotRequired[str]
    contact: NotRequired[bool]
    cause: NotRequired[str]


class PracticeRecorded(TypedDict):
    """Teleoperation outside of trials."""

    person: str
    object: str
    moved: int
    staged: int
    duration_s: float
