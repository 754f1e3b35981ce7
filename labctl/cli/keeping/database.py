"""`labctl database`: the lab's PostgreSQL server, which gets a verified copy of journals and traces.

May not: change a campaign's folder, take a password from the command line, or send what is sealed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    Words,
    campaign_argument,
    campaign_folders,
    example,
    json_option,
    lab_option,
    print_json,
)
from labctl.errors import BrokenRecord, Exit, InputError, StateError, StorageError
from labctl.plain import count
from labctl.store.lab_folder import MARK, campaign_folder, find_lab, lab_settings, settings_of
from labctl.times import local

if TYPE_CHECKING:
    from labctl.config.server import StoreTable
    from labctl.store.server.connecting import Server

EPILOG = example(
    "labctl database init --sql | psql -d labctl  # once, by whoever may make roles",
    "labctl database copy",
    "labctl database check first",
    "labctl database fetch first --out restored/first",
)


url_option = click.option(
    "--url",
    metavar="URL",
    help="postgresql+psycopg://USER@HOST/DATABASE, without a password [default: [store] url of lab.toml].",
)


@click.group(cls=Words, epilog=EPILOG)
def database() -> None:
    """The lab's PostgreSQL server: a verified copy of journals and traces.

    A campaign is recorded in its folder, whatever the server does: a run waits for no server. Where lab.toml names one
    ([store] url) what is recorded is copied beside the run and after each verb that writes. What tells arms apart stays
    in the seal on this computer until the campaign is unblinded. Passwords stand in a password file ($PGPASSFILE), a
    service file or $PGPASSWORD, never in lab.toml. docs/postgresql.md has roles, restoring and what a copy proves.
    """


@database.command(
    epilog=example(
        "labctl database init --sql > labctl.sql", "labctl database init --url postgresql+psycopg://admin@db/labctl"
    )
)
@click.option("--sql", is_flag=True, help="Print the script, for whoever may make roles; nothing is asked.")
@url_option
@lab_option
@json_option
def init(sql: bool, url: str | None, lab: Path | None, as_json: bool) -> None:
    """Set a database up: tables that nobody may change, three roles, two views. Done again it changes nothing.

    labctl_owner owns the tables and logs in nowhere, labctl_writer adds to them (a cell), labctl_reader looks. Grant
    these to logins of your own.
    """
    from labctl.store.server.schema import install, script

    if sql:
        click.echo(script(), nl=False)
        return
    table = _table(url, lab)
    said = install(table.url, table.timeout_s)
    if as_json:
        print_json({"schema": "labctl.database/1", "does": "init", "said": said})
        return
    for line in said:
        click.echo(line)


@database.command("copy", epilog=example("labctl database copy", "labctl database copy first"))
@campaign_argument(required=False)
@url_option
@lab_option
@json_option
def copy_(campaign: str | None, url: str | None, lab: Path | None, as_json: bool) -> int:
    """Send what the server has not, of one campaign or of all. Sends nothing twice, and nothing that does not hold."""
    from labctl.store.server.connecting import NotAllowed
    from labctl.store.server.copying import copy
    from labctl.store.server.host_record import HostRecord

    found: list[dict[str, str | int | None]] = []
    codes: list[int] = []
    with _server(url, lab, campaign) as server:
        for folder in folders(campaign, lab):
            try:
                copied = copy(HostRecord(folder), server)
            except (BrokenRecord, NotAllowed) as error:
                codes.append(int(error.exit_code))
                none = {"entries": 0, "sent_entries": 0, "sent_chunks": 0}
                found.append({"campaign": folder.name, **none, "error": str(error)})
                click.echo(f"{folder.name}: {error}", err=True)
                continue
            except StorageError as error:
                raise StorageError(f"{folder.name}: {error}") from error
            for line in copied.broken:
                codes.append(int(Exit.BROKEN_RECORD))
                click.echo(f"{folder.name}: not copied: {line}", err=True)
            sent = {"sent_entries": copied.sent_entries, "sent_chunks": copied.sent_chunks}
            found.append(
                {"campaign": folder.name, "entries": copied.entries, **sent, "error": "; ".join(copied.broken) or None}
            )
            if not as_json:
                click.echo(f"{folder.name}: {copied}")
    if as_json:
        print_json({"schema": "labctl.database/1", "does": "copy", "campaigns": found})
    return max(codes, default=0)


@database.command(epilog=example("labctl database check first", "labctl database check --json"))
@campaign_argument(required=False)
@url_option
@lab_option
@json_option
def check(campaign: str | None, url: str | None, lab: Path | None, as_json: bool) -> int:
    """Hold the server's copy against this computer's folder, row by row. Exit code 1 if one lacks what the other has.

    A head that the server has binds the entries before it as one does that was noted elsewhere, from the time that the
    server's own clock gave it on: no role below the owner's can change it.
    """
    from labctl.store.server.comparing import Compared, compare
    from labctl.store.server.host_record import HostRecord

    found = []
    with _server(url, lab, campaign) as server:
        for folder in folders(campaign, lab):
            try:
                compared = compare(HostRecord(folder), server)
            except StateError as error:  # this login is blind to it: the others of the lab are held against theirs
                if campaign:
                    raise
                compared = Compared(folder.name, 0, 0, "", None, problems=[f"not compared: {error}"])
            found.append({**asdict(compared), "whole": compared.whole})
            for problem in () if as_json else compared.problems:
                click.echo(f"{folder.name}: {problem}")
            if not as_json:
                click.echo(f"{folder.name}: {compared}")
    if as_json:
        print_json({"schema": "labctl.database/1", "does": "check", "campaigns": found})
    return 0 if all(one["whole"] for one in found) else 1


@database.command("list", epilog=example("labctl database list"))
@url_option
@lab_option
@json_option
def list_(url: str | None, lab: Path | None, as_json: bool) -> None:
    """Every campaign that the server has, of all cells and labs that copy to it."""
    from labctl.store.server.fetching import listed

    with _server(url, lab) as server:
        campaigns = listed(server)
    if as_json:
        print_json({"schema": "labctl.database/1", "does": "list", "campaigns": [asdict(one) for one in campaigns]})
        return
    for one in campaigns:
        trials = f"{one.scored} of {one.trials} trials scored"
        click.echo(f"{one.campaign}  {one.cell}  {one.phase}, {trials}; last entry {local(one.last_entry)}")
    if not campaigns:
        click.echo("the server has no campaign; send some with: labctl database copy")


@database.command(epilog=example("labctl database fetch first --out restored/first"))
@click.argument("campaign")
@click.option("--out", required=True, type=PATH, metavar="DIR", help="A new folder.")
@url_option
@lab_option
@json_option
def fetch(campaign: str, out: Path, url: str | None, lab: Path | None, as_json: bool) -> None:
    """Write journal.db and traces.db of CAMPAIGN as the server has them; the chain is verified first.

    For a host that lost its disk, or to go back to files alone. Videos, photos, settings and the seal never were on the
    server: they come from a backup of the folder.
    """
    from labctl.store.server import fetching

    with _server(url, lab) as server:
        found = fetching.fetch(server, campaign, out)
    if as_json:
        document = {**asdict(found), "folder": str(found.folder)}
        print_json({"schema": "labctl.database/1", "does": "fetch", **document})
        return
    what = f"{count(found.entries, 'entry', 'entries')}, {count(found.chunks, 'chunk')} of traces"
    click.echo(f"wrote {found.folder}: {what}; head {found.head}")
    click.echo("videos, photos, settings and the seal come from a backup; then: labctl verify")


def _table(url: str | None, lab: Path | None, folder: Path | None = None) -> StoreTable:
    """The server that was named, or the lab's. Raises InputError."""
    from labctl.config.server import StoreTable, check_url

    if url is not None:
        try:
            return StoreTable(url=check_url(url))
        except ValueError as error:
            text = str(error) if not hasattr(error, "errors") else "it is no address of a PostgreSQL server"
            raise InputError(f"--url: {text}") from None
    if folder is not None:
        table, where = lab_settings(folder).store, str(folder)
    else:
        home = find_lab(lab)
        table, where = settings_of(home).store, str(home / MARK)
    if table is None:
        raise InputError(f"{where}: no server is named; add [store] url to {MARK}, or give --url")
    return table


@contextmanager
def _server(url: str | None, lab: Path | None, campaign: str | None = None) -> Iterator[Server]:
    from labctl.store.server.connecting import Server

    table = _table(url, lab, campaign_folder(campaign, lab) if campaign else None)
    server = Server(table.url, table.timeout_s)
    try:
        yield server
    finally:
        server.close()


def folders(campaign: str | None, lab: Path | None) -> list[Path]:
    """The campaign that was named, or all of the lab. Raises InputError."""
    found = campaign_folders(campaign, lab)
    if not found:
        raise InputError("no campaign in this lab; start one with: labctl open PROTOCOL.toml --cell CELL.toml")
    return found
