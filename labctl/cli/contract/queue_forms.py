"""Types of what --json prints of the queue and of submissions. `documents` names them.

May not: be printed from elsewhere than the verb it is named for.
"""

from __future__ import annotations

from labctl.cli.contract.forms import Document
from labctl.queue.dry_run import DryRun


class QueueAct(Document):
    """What a word of `labctl queue` did. name: a submission's id or an entry's name; head: of the queue's chain;
    not_told: a line for each way of [alerts] that failed.
    """

    name: str
    did: str
    head: str
    not_told: list[str]


class QueueKey(Document):
    """`labctl queue trust` and `revoke`."""

    public: str
    who: str
    did: str


class QueueVerified(Document):
    """`labctl queue verify`, which exits with 1 where it is not ok."""

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


class SubmissionRead(Document):
    """`labctl queue read`. alias: the arm's name; reasons: by part, such as "approval"; dry_run: the newest."""

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


class KeyMade(Document):
    """`labctl submit key`. table: the file for the lab."""

    file: str
    table: str
    public: str


class RequestMade(Document):
    """`labctl submit sign`."""

    file: str
    bytes: int
    lab: str
    campaign: str
    expires: str
