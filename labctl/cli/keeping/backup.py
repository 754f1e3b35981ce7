"""`labctl backup`: a snapshot of the lab, also while it runs; `labctl restore`: a lab made of one, with proof.

May not: start anything in a restored lab, or write over one that is there.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import PATH, example, json_option, lab_option, print_json, progress
from labctl.clock import MonotonicClock
from labctl.errors import BrokenRecord, InputError
from labctl.extras import require
from labctl.plain import count
from labctl.store.lab_folder import find_lab

if TYPE_CHECKING:
    from labctl.backup.repository import Repository, Snapshot
    from labctl.cli.contract.forms import Unread

BACKUP = example(
    "labctl backup /mnt/disk/our-lab          # again tomorrow: only what is new is written",
    "labctl backup /mnt/disk/our-lab --list",
    "labctl backup /mnt/disk/our-lab --check  # read all of it again",
)
RESTORE = example(
    "labctl restore /mnt/disk/our-lab our-lab-again",
    "labctl restore /mnt/disk/our-lab as-of-friday --at 20261120",
)


@click.command(epilog=BACKUP)
@click.argument("backups", type=PATH, metavar="BACKUPS")
@click.option("--list", "listing", is_flag=True, help="Say which snapshots are there; take none.")
@click.option("--check", is_flag=True, help="Read every kept file again and name what is damaged; take no snapshot.")
@lab_option
@json_option
def backup(backups: Path, listing: bool, check: bool, lab: Path | None, as_json: bool) -> int:
    """Keep a snapshot of the whole lab in the folder BACKUPS, which is made when it is not there.

    A lab may run meanwhile: each database is copied as of one moment, each campaign so that it can go on from there. A
    file that did not change is not copied again, so a snapshot an evening costs what the evening recorded. The snapshot
    holds the seals, as the lab does: keep BACKUPS as closely, best on another disk, and note the printed heads.
    """
    from labctl.backup.repository import Repository

    if listing and check:
        raise InputError("--list and --check are two questions; ask one of them")
    if listing:
        return _print_list(Repository(backups), as_json)
    if check:
        return _print_check(Repository(backups), as_json)
    _take(backups, lab, as_json)
    return 0


def _take(backups: Path, lab: Path | None, as_json: bool) -> None:
    from labctl.backup.repository import Repository
    from labctl.backup.snapshot import take_snapshot, what_is_there
    from labctl.exports.destination import size
    from labctl.store.locks import Lock

    folder = find_lab(lab)
    there = what_is_there(folder)  # what cannot be read is refused before anything is made
    repository = Repository.made(backups, of=folder)
    with Lock(backups / ".lock", "backup", what=f"{backups}"), progress("backing up", quiet=True) as say:
        taken = take_snapshot(folder, repository, MonotonicClock().anchor(), say, there=there)
    found = taken.snapshot
    for line in taken.passed_over:
        click.echo(f"an earlier snapshot cannot be read, and this one was taken without it: {line}", err=True)
    if as_json:
        print_json(
            {
                "schema": "labctl.backup/1",
                "backups": str(backups),
                "snapshot": taken.name,
                "files": len(found.files),
                "new_files": taken.new_files,
                "new_bytes": taken.new_bytes,
                "heads": [asdict(head) for head in found.heads],
                "left_out": found.left_out,
                "damaged": found.damaged,
                "passed_over": list(taken.passed_over),
            }
        )
        return
    new = f"{taken.new_files} new ({size(taken.new_bytes)})" if taken.new_files else "none new"
    click.echo(f"kept {taken.name}: {count(len(found.files), 'file')}, {new}")
    for head in found.heads:
        click.echo(f"{head.campaign}: {head.phase}; head {head.seq}:{head.hash}")
    for line in found.damaged:
        click.echo(f"damaged, and kept so: {line}")
    for line in found.left_out:
        click.echo(f"left out: {line}")
    click.echo(f"restore it with: labctl restore {shlex.quote(str(backups))} NEW-FOLDER")


def _print_list(repository: Repository, as_json: bool) -> int:
    from labctl.exports.destination import size

    found: list[Snapshot] = []
    unread: list[Unread] = []
    code = 0
    for name in repository.names():
        try:
            found.append(repository.snapshot(name))
        except BrokenRecord as error:
            code = int(error.exit_code)
            unread.append({"name": name, "error": str(error)})
            click.echo(f"{name}  damaged: {error}", err=True)
    rows = [
        {
            "snapshot": one.taken,
            "lab": one.lab,
            "files": len(one.files),
            "bytes": sum(file.size for file in one.files),
            "heads": [asdict(head) for head in one.heads],
        }
        for one in found
    ]
    if as_json:
        print_json(
            {"schema": "labctl.backups/1", "backups": str(repository.folder), "snapshots": rows, "unread": unread}
        )
        return code
    for one in found:
        whole = sum(file.size for file in one.files)
        campaigns = ", ".join(f"{head.campaign} {head.seq}" for head in one.heads) or "no campaign"
        click.echo(f"{one.taken}  {one.lab}  {count(len(one.files), 'file')}, {size(whole)}  {campaigns}")
    if not found and not code:
        click.echo("no snapshot yet")
    return code


def _print_check(repository: Repository, as_json: bool) -> int:
    with progress("reading", quiet=True) as say:
        looked, problems = repository.problems(say)
    if as_json:
        print_json(
            {
                "schema": "labctl.backup_check/1",
                "backups": str(repository.folder),
                "files": looked,
                "ok": not problems,
                "problems": problems,
            }
        )
    else:
        for line in problems:
            click.echo(line)
        text = f"{len(problems)} damaged" if problems else "each as it was kept"
        click.echo(f"{count(len(repository.names()), 'snapshot')}, {count(looked, 'file')}: {text}")
    return 1 if problems else 0


@click.command(epilog=RESTORE)
@click.argument("backups", type=PATH, metavar="BACKUPS")
@click.argument("to", type=PATH, metavar="NEW-FOLDER")
@click.option("--at", metavar="TIME", help="A snapshot by how its time begins [default: the newest].")
@json_option
def restore(backups: Path, to: Path, at: str | None, as_json: bool) -> int:
    """Make a lab of a snapshot, in a folder that is not there yet, and verify every campaign of it.

    Each file is compared with its digest before the lab is put in its place, then each campaign is verified up to the
    head that it had; exit 1 where one does not hold. A campaign that is open can go on from here: in one place
    only, for two that go on are two records with one name. Nothing moves by itself.
    """
    from labctl.backup.repository import Repository
    from labctl.backup.restoring import restore as restored

    require("lab", "verifying what is restored")
    with progress("restoring", quiet=True) as say:
        made = restored(Repository(backups), to, at, say)
    if as_json:
        campaigns = [
            {
                "campaign": name,
                "ok": not found.problems,
                "head": found.head,
                "problems": [str(problem) for problem in found.problems],
            }
            for name, found in made.verified.items()
        ]
        print_json(
            {
                "schema": "labctl.restored/1",
                "folder": str(to),
                "snapshot": made.snapshot.taken,
                "files": len(made.snapshot.files),
                "ok": made.whole,
                "campaigns": campaigns,
                "missing": made.missing,
                "open": made.open,
            }
        )
        return 0 if made.whole else 1
    held = count(len(made.snapshot.files), "file")
    click.echo(f"restored {made.snapshot.taken} of {made.snapshot.lab} to {to}: {held}")
    for name, found in made.verified.items():
        for problem in found.problems:
            click.echo(f"{name}: {problem}")
        click.echo(f"{name}: {found.state} ({found.counts}); head {':'.join(found.head.split())}")
    for name in made.missing:
        click.echo(f"{name}: the snapshot has its head and not its journal")
    for name in made.open:
        click.echo(f"{name} is open: let it go on here or where it was, not in both")
    return 0 if made.whole else 1
