"""Types of what --json prints of the queue and of submissions. `documents` names them.

May not: be printed from elsewhere than the verb it is named for.
"""

from __future__ import annotations

from typing import TypedDict

from labctl.queue.dry_run import DryRun


class QueueAct(TypedDict):
    """What a word of `labctl queue` did. name: a submission's id or an entry's name; head: of the queue's chain;
    not_told: a line for each way of [alerts] that failed.
    """

    schema: str
    name: str
    did: str
    head: str
    not_told: list[str]


class QueueKey(TypedDict):
    """`labctl queue trust` and `revoke`."""

    schema: str
    public: str
    who: str
    did: str


class QueueVerified(TypedDict):
    """`labctl queue verify`, which exits with 1 where it is not ok."""

    schema: str
    ok: bool
    entries: int
    head: str
    problems: list[str]


class DryRunDone(DryRun):
    """`labctl queue dry-run`, which exits with 1 where it failed."""

    schema: str
    submission: str
    head: str
    not_told: list[str]


class SubmissionRead(TypedDict):
    """`labctl queue read`. alias: the arm's name; reasons: by part, such as "approval"; dry_run: the newest."""

    schema: str
    submission: str
    head: str
    alias: str
    key: str
    who: str
    contact: str
    policy: str
    campaign: str
    endpoint: str | None
    container: str | None
    note: str
    expires: str
    card: str
    reasons: dict[str, str]
    dry_run: DryRun | None


class KeyMade(TypedDict):
    """`labctl submit key`. table: the file for the lab."""

    schema: str
    file: str
    table: str
    public: str


class RequestMade(TypedDict):
    """`labctl submit sign`."""

    schema: str
    file: str
    bytes: int
    lab: str
    campaign: str
    expires: str
