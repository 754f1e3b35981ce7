"""`labctl lab move`: a lab to another disk or computer, with proof.

May not: move while anything of the lab runs, or delete the old place.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from labctl.cli.options import PATH, Words, example, json_option, lab_option, print_json, progress
from labctl.clock import MonotonicClock
from labctl.errors import InputError
from labctl.extras import require
from labctl.plain import count
from labctl.store.lab_folder import MARK, MOVED, find_lab

MOVE = example(
    "labctl lab move /mnt/large/our-lab        # to another disk",
    "labctl lab move --by /mnt/disk/backups    # to another computer: labctl restore there",
)


@click.group(cls=Words, epilog=MOVE)
def lab() -> None:
    """What concerns a lab as a whole. To make one: labctl new; to keep one: labctl backup."""


@lab.command(epilog=MOVE)
@click.argument("to", type=PATH, metavar="NEW-FOLDER", required=False)
@click.option("--by", "backups", type=PATH, metavar="BACKUPS", help="Move by a last snapshot in this folder.")
@lab_option
@json_option
def move(to: Path | None, backups: Path | None, lab: Path | None, as_json: bool) -> int:
    """Move the lab to NEW-FOLDER, or by a snapshot to another computer. Nothing of it may run.

    Each file is copied, read back and compared by digest; each campaign is verified up to the head that it had before.
    Then the old place is marked as moved: no command takes it for a lab any more. Nothing is deleted: do that by hand
    when the new place has its first backup.
    """
    from labctl.backup.moving import move, move_by_snapshot

    if (to is None) == (backups is None):
        raise InputError("name one place: NEW-FOLDER on this computer, or --by BACKUPS for another one")
    require("lab", "verifying what is moved")
    broken_off = lab is not None and (lab / MOVED).is_file()
    folder = lab.resolve() if lab is not None and broken_off else find_lab(lab)
    anchor = MonotonicClock().anchor()
    passed_over: Sequence[str] = ()
    with progress("moving", quiet=True) as say:
        if to is not None:
            moved = move(folder, to, anchor, say)
        else:
            assert backups is not None
            taken, moved = move_by_snapshot(folder, backups, anchor, say)
            passed_over = taken.passed_over
    for line in passed_over:
        click.echo(f"an earlier snapshot cannot be read, and this one was taken without it: {line}", err=True)
    problems = moved.problems
    if as_json:
        said = {"files": moved.files, "bytes": moved.size, "digest": moved.digest, "heads": dict(moved.heads)}
        more = {"problems": problems, "left": list(moved.left), "passed_over": list(passed_over)}
        print_json({"schema": "labctl.lab_moved/1", "lab": str(folder), "to": moved.to, **said, **more})
        return 1 if problems else 0
    click.echo(f"moved to {moved.to}: {count(moved.files, 'file')}, {moved.size / 1e6:.1f} MB; digest {moved.digest}")
    for name, head in moved.heads.items():
        found = moved.verified.get(name)
        held = f"{found.state} ({found.counts})" if found else "in the snapshot"
        click.echo(f"{name}: {held}; head before and after {head or 'cannot be read'}")
    for line in (*problems, *(f"stayed: {one}" for one in moved.left)):
        click.echo(line)
    click.echo(f"{folder} is no lab any more ({MOVED}; its settings are {MARK}.before). Nothing was deleted")
    if backups is not None:
        click.echo(f"on the other computer: labctl restore {shlex.quote(str(backups.resolve()))} NEW-FOLDER")
    click.echo("say the new place where the old one is written: $LABCTL_LAB, units of systemd, backups")
    return 1 if problems else 0
