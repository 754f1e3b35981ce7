"""`labctl media`: the lab's media store, where videos lie once they are sealed, and what is kept of them here.

May not: delete anything in a store, take a key from the command line, or remove a file whose copy was not verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.keeping.database import folders
from labctl.cli.options import (
    FiniteRange,
    Words,
    campaign_argument,
    example,
    json_option,
    lab_option,
    print_json,
    progress,
    who_option,
)
from labctl.errors import BrokenRecord, Exit, InputError, StateError
from labctl.people.acting import acting
from labctl.plain import Json, count
from labctl.store.lab_folder import MARK, campaign_folder, lab_settings

if TYPE_CHECKING:
    from labctl.config.media import MediaTable
    from labctl.store.media.places import MediaStore

EPILOG = example(
    "labctl media list first            # where each file is, by the journal",
    "labctl media upload                # of every campaign, what is missing; verified and journalled",
    "labctl media check first           # the store's copies against the digests that were sealed",
    "labctl media trim first --older-than 30",
    "labctl media fetch first --episode first-003",
)


@click.group(cls=Words, epilog=EPILOG)
def media() -> None:
    """The lab's media store: videos in a bucket, or in a folder on another disk.

    Where lab.toml names one ([media] url) videos are uploaded beside the run, each once its recording is sealed; what
    tells arms apart waits for unblinding. An object is called by its digest alone. Keys are found as AWS's own tools
    find them, never in lab.toml. Whatever shows a video that lies in the store alone fetches it to a cache and compares
    its digest. docs/media.md has rules, buckets and what to do when a store is away.
    """


@media.command("list", epilog=example("labctl media list first", "labctl media list first --json"))
@campaign_argument(required=False)
@lab_option
@json_option
def list_(campaign: str | None, lab: Path | None, as_json: bool) -> int:
    """Where each media file is: here, in a store, both, or gone. Of the folder and the journal; no store is asked."""
    from labctl.store.media.held import held
    from labctl.store.media.looking import IN_WORDS, places, summary
    from labctl.store.media.uploading import events_that_hold

    found: list[Mapping[str, Json]] = []
    codes: list[int] = []
    for folder in folders(campaign, lab):
        try:
            rows = places(folder, held(events_that_hold(folder)), lab_settings(folder).media)
        except BrokenRecord as error:
            codes.append(_of_one(error, folder, campaign))
            continue
        files = [
            {
                "episode": row.file.episode,
                "file": row.file.file,
                "sha256": row.file.sha256,
                "where": row.where,
                "waits": row.waits,
                "place": row.copy.place if row.copy else None,
                "version": row.copy.version if row.copy else None,
                "until": row.copy.until if row.copy else None,
                "checked": row.copy.checked if row.copy else None,
            }
            for row in rows
        ]
        found.append({"campaign": folder.name, "files": files})
        if as_json:
            continue
        for row in rows:
            place = (
                f"  {row.copy.place}" + (f" version {row.copy.version}" if row.copy.version else "") if row.copy else ""
            )
            waits = "  (may not leave yet)" if row.waits else ""
            click.echo(f"{row.file.file}  {IN_WORDS[row.where]}{place}{waits}")
        click.echo(f"{folder.name}: {summary(rows) or 'no media'}")
    if as_json:
        print_json({"schema": "labctl.media/1", "does": "list", "campaigns": found})
    return max(codes, default=0)


@media.command(epilog=example("labctl media upload", "labctl media upload first"))
@campaign_argument(required=False)
@who_option
@lab_option
@json_option
def upload(campaign: str | None, who: str | None, lab: Path | None, as_json: bool) -> int:
    """Send what the store has not, verify it, and have that in the journal; of one campaign or of all.

    An upload that was broken off goes on where it was. Nothing goes that is not as it was sealed, nothing again but
    what the store has lost or holds otherwise, and nothing is removed here. What is uploaded while a campaign is run is
    journalled by the next upload after it.
    """
    from labctl.store.media import uploading

    found: list[Mapping[str, Json]] = []
    codes: list[int] = []
    for folder in folders(campaign, lab):
        with _store(folder) as (store, table), progress(f"uploading {folder.name}", quiet=as_json) as say:
            try:
                done = uploading.upload(folder, store, table, who=acting(who, folder), say=say)
            except BrokenRecord as error:
                codes.append(_of_one(error, folder, campaign))
                found.append(asdict(uploading.Uploaded(folder.name, table.url, broken=[str(error)])))
                continue
        found.append(asdict(done))
        for line in [*done.broken, *(f"{name}: neither here nor in the store" for name in done.gone)]:
            codes.append(int(Exit.BROKEN_RECORD))
            click.echo(f"{folder.name}: not stored: {line}", err=True)
        if not as_json:
            click.echo(f"{folder.name}: {done}")
        if done.later:
            click.echo(f"{folder.name}: not journalled yet: {done.later}; then again: labctl media upload", err=True)
    if as_json:
        print_json({"schema": "labctl.media/1", "does": "upload", "campaigns": found})
    return max(codes, default=0)


@media.command(epilog=example("labctl media check", "labctl media check first --json"))
@campaign_argument(required=False)
@lab_option
@json_option
def check(campaign: str | None, lab: Path | None, as_json: bool) -> int:
    """Compare each journalled copy in the store with the digest that was sealed. Exit code 1 if one does not hold.

    A copy that lies in the store alone is read; the others as [media] check says.
    """
    from labctl.store.media.looking import Asked, ask

    found: list[Mapping[str, Json]] = []
    for folder in folders(campaign, lab):
        with _store(folder) as (store, table), progress(f"checking {folder.name}", quiet=True) as say:
            try:
                asked = ask(folder, store, table, say)
            except BrokenRecord as error:
                if campaign is not None:
                    raise
                asked = Asked(folder.name, table.url, 0, [str(error)])
        found.append({**asdict(asked), "ok": not asked.problems})
        for problem in () if as_json else asked.problems:
            click.echo(f"{folder.name}: {problem}")
        if not as_json:
            state = count(len(asked.problems), "problem") if asked.problems else "all hold"
            apart = f"; {count(asked.elsewhere, 'file')} in another store alone, not asked" if asked.elsewhere else ""
            click.echo(f"{folder.name}: {count(asked.checked, 'file')} in {asked.place}, {state}{apart}")
    if as_json:
        print_json({"schema": "labctl.media/1", "does": "check", "campaigns": found})
    return 0 if all(one["ok"] for one in found) else 1


@media.command(epilog=example("labctl media fetch first", "labctl media fetch first --episode first-003"))
@campaign_argument()
@click.option("--episode", "episodes", multiple=True, metavar="EPISODE", help="Of this one alone; repeatable.")
@lab_option
@json_option
def fetch(campaign: str, episodes: tuple[str, ...], lab: Path | None, as_json: bool) -> None:
    """Bring files that are not here back to where they were, each compared with its digest first."""
    from labctl.store.media.trimming import bring_back

    folder = campaign_folder(campaign, lab)
    with _store(folder) as (store, table), progress(f"fetching {folder.name}", quiet=as_json) as say:
        files = bring_back(folder, store, table, episodes, say)
    if as_json:
        print_json({"schema": "labctl.media/1", "does": "fetch", "campaign": folder.name, "files": files})
        return
    click.echo(f"{folder.name}: {count(len(files), 'file')} fetched")


@media.command(
    epilog=example(
        "labctl media trim first --older-than 30 --dry-run", "labctl media trim  # by [media] keep_days of lab.toml"
    )
)
@campaign_argument(required=False)
@click.option(
    "--older-than",
    type=FiniteRange(min=0),
    metavar="DAYS",
    help="Files sealed longer ago than this [default: keep_days of lab.toml].",
)
@click.option("--open", "unsettled", is_flag=True, help="Also of a campaign that is neither frozen nor unblinded.")
@click.option("--dry-run", is_flag=True, help="Say what would go; remove nothing.")
@who_option
@lab_option
@json_option
def trim(
    campaign: str | None,
    older_than: float | None,
    unsettled: bool,
    dry_run: bool,
    who: str | None,
    lab: Path | None,
    as_json: bool,
) -> int:
    """Remove local copies of videos, each after its copy in the store was verified once more.

    The journal has which, by what rule and where the copy is before a file goes. Nothing in the store is touched.
    Without CAMPAIGN every campaign that is frozen or unblinded is looked at.
    """
    from labctl.store.media import trimming

    found: list[Mapping[str, Json]] = []
    codes: list[int] = []
    for folder in folders(campaign, lab):
        with _store(folder) as (store, table), progress(f"trimming {folder.name}", quiet=True) as say:
            keep_days = table.keep_days if older_than is None else older_than
            if keep_days is None:
                raise InputError("which files? give --older-than DAYS, or [media] keep_days in lab.toml")
            by = acting(who, folder)
            try:
                done = trimming.trim(folder, store, table, keep_days, who=by, unsettled=unsettled, dry=dry_run, say=say)
            except BrokenRecord as error:
                codes.append(_of_one(error, folder, campaign))
                none = trimming.Trimmed(folder.name, table.url, broken=[str(error)])
                found.append({**asdict(none), "dry_run": dry_run})
                continue
            except StateError as error:
                if campaign is not None:
                    raise
                click.echo(f"{folder.name}: left as it is: {error}", err=True)
                continue
        found.append({**asdict(done), "dry_run": dry_run})
        for line in done.broken:
            codes.append(int(Exit.BROKEN_RECORD))
            click.echo(f"{folder.name}: kept: {line}", err=True)
        if not as_json:
            click.echo(f"{folder.name}: {'would be ' if dry_run else ''}{done}")
    if as_json:
        print_json({"schema": "labctl.media/1", "does": "trim", "campaigns": found})
    return max(codes, default=0)


def _of_one(error: BrokenRecord, folder: Path, named: str | None) -> int:
    """Say that a campaign's chain does not hold, and go on with the others. Raises it where that one was named."""
    if named is not None:
        raise error
    click.echo(f"{folder.name}: {error}", err=True)
    return int(error.exit_code)


@contextmanager
def _store(folder: Path) -> Iterator[tuple[MediaStore, MediaTable]]:
    from labctl.store.media.opening import open_store

    table = lab_settings(folder).media
    if table is None:
        raise InputError(f"no media store is named; add [media] url to {MARK} (docs/media.md)")
    store = open_store(table)
    try:
        yield store, table
    finally:
        store.close()
