"""What the verbs of the queue share: which lab, who acts, what is printed of an act, who else gets an alert.

May not: say whose a submission is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import print_json
from labctl.errors import InputError
from labctl.people.acting import NOBODY, acting
from labctl.store.lab_folder import find_lab

if TYPE_CHECKING:
    from labctl.queue.acts import Done


def place(lab: Path | None, who: str | None) -> tuple[Path, str]:
    """The lab's folder and who acts there. Raises InputError."""
    folder = find_lab(lab)
    return folder, acting(who, folder)


def named(lab: Path | None, who: str | None) -> tuple[Path, str]:
    """The same for what a person answers for: a role will not do. Raises InputError."""
    folder, person = place(lab, who)
    if person == NOBODY:
        raise InputError("a person answers for this: give --who ID, or set LABCTL_WHO")
    return folder, person


def say(lab: Path, done: Done, did: str, *, as_json: bool, alert: bool = False, then: str = "") -> None:
    """did: in words, behind the name; then: what comes next, the name where {} stands."""
    from labctl.queue.telling import tell

    failed = tell(lab, done, did) if alert else []
    if as_json:
        print_json(
            {"schema": "labctl.queue_act/1", "name": done.name, "did": did, "head": done.head, "not_told": failed}
        )
    else:
        click.echo(f"{done.name} {did}; head {done.head}")
        if then:
            click.echo(f"next: labctl queue {then.format(done.name)}")
    for line in failed:
        click.echo(f"warning: {line}", err=True)


def reason_of(reason: str) -> str:
    """Raises InputError for an empty one."""
    text = " ".join(reason.split())
    if not text or not text.isprintable() or len(text) > 1000:
        raise InputError("--reason is empty, too long or not printable; say in a line of at most 1000 characters why")
    return text
