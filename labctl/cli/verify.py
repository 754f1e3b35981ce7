"""`labctl verify`: re-hash everything recorded and name what is broken; `labctl stamp`: have its newest head dated.

May not: mend anything, or change a record: a timestamp lies beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli import completing
from labctl.cli.options import (
    PATH,
    campaign_argument,
    campaign_folders,
    commitment_option,
    example,
    head_option,
    json_option,
    lab_option,
    print_json,
    progress,
)
from labctl.clock import MonotonicClock
from labctl.errors import BrokenRecord, Exit, InputError, LabctlError
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.store.verifying.verify import Verification

MANY = 60  # traces and videos from which on a log gets a line every tenth of them

EPILOG = example(
    "labctl verify first",
    "labctl verify first --head 120:3f9a...  # as printed after an episode",
    "labctl verify published/first           # what labctl publish wrote, on any machine",
    "labctl verify published/two published/two-a published/two-b  # of a joint campaign, together",
)
STAMP = example("labctl stamp first", "labctl verify first  # says what the timestamps bind")


class Unopened(BrokenRecord):
    """What is too broken to be opened: `verify` was asked what is wrong, and answers as it does of any other fault."""

    exit_code = Exit.REFUSED


@contextmanager
def _as_answer() -> Iterator[None]:
    """A record that cannot be opened is an answer here."""
    try:
        yield
    except BrokenRecord as error:
        raise Unopened(str(error)) from error


@click.command(epilog=EPILOG)
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...", shell_complete=completing.campaigns)
@head_option
@commitment_option
@click.option(
    "--certificates",
    type=PATH,
    metavar="PEM",
    help="Of a published folder: the root certificates of the time-stamping authority that you trust.",
)
@lab_option
@json_option
@_as_answer()
def verify(
    campaigns: tuple[str, ...],
    head: str | None,
    commitment: str | None,
    certificates: Path | None,
    lab: Path | None,
    as_json: bool,
) -> int:
    """Check hash chain, commitment, trace and video digests and read models; exit 1 and name what is broken.

    Without CAMPAIGN every campaign of the lab is checked. Whoever can write a campaign's folder can make all of it anew
    so that it holds again: only a head that was noted elsewhere, given with --head, shows that. It binds the entries up
    to its own; --commitment binds the schedule. The lab's list of what it opened (opened.log) is looked at too.
    Of a folder that `labctl publish` wrote, or its archive, it also says what is withheld and what stays unchecked; of
    the published parts of a joint campaign, whether they are one campaign under one seal, and what is missing.
    """
    from labctl.cli.publishing.cells import are_of_cells, verify_together
    from labctl.cli.publishing.publish import is_published, outside, verify_published
    from labctl.store.chain_heads import NOT_CHECKED, noted
    from labctl.store.verifying.verify import verify_campaign

    published = [name for name in campaigns if is_published(name)]
    if published and len(published) != len(campaigns):
        raise InputError(f"{published[0]} was published and others here were not; verify them apart")
    if published and are_of_cells(published):
        return verify_together(published, head, commitment, certificates, as_json=as_json)
    if len(published) > 1:
        raise InputError(f"{published[0]} and {published[1]} are no parts of a joint campaign; verify them one by one")
    if published:
        return verify_published(published[0], head, commitment, certificates, as_json=as_json)
    if certificates is not None:
        raise InputError("--certificates is for a published folder; those of a lab stand in its lab.toml")
    known = noted(head, commitment)
    named = campaigns or (None,)
    folders = list(dict.fromkeys(folder for name in named for folder in campaign_folders(name, lab)))
    if not folders:
        raise InputError("no campaign to verify; start one with: labctl open PROTOCOL.toml --cell CELL.toml")
    for option, value in (("--head", head), ("--commitment", commitment)):
        if value is not None and len(folders) > 1:
            raise InputError(f"{option} belongs to one campaign; name it: labctl verify CAMPAIGN {option} {value}")
    found: list[tuple[str, Verification]] = []
    for folder in folders:
        with _headway(folder.name) as say:
            found.append((folder.name, verify_campaign(folder, known, lab=True, say=say)))
    if as_json:
        documents = [
            {
                "campaign": name,
                "ok": not verified.problems,
                "counts": asdict(verified.counts),
                "head": verified.head,
                "outside": outside(verified.outside),
                "problems": [asdict(problem) for problem in verified.problems],
                "notes": verified.notes,
                "not_bound": verified.not_bound,
            }
            for name, verified in found
        ]
        print_json({"schema": "labctl.verify/1", "campaigns": documents})
    else:
        for name, verified in found:
            for problem in verified.problems:
                click.echo(f"{name}: {problem}")
            for note in verified.notes:
                click.echo(f"{name}: note: {note}")
            click.echo(f"{name}: {verified.state} ({verified.counts}); head {':'.join(verified.head.split())}")
            if head is None or verified.outside is not None:
                click.echo(f"{name}: {verified.outside or NOT_CHECKED}")
    return 1 if any(verified.problems for _, verified in found) else 0


@contextmanager
def _headway(name: str) -> Iterator[Callable[[str], None]]:
    """How far it is: a bar with its expected end on a terminal, elsewhere a line every tenth on standard error."""
    if sys.stderr.isatty():
        with progress(f"verifying {name}", quiet=True) as say:
            yield say
        return
    last = 0

    def tenths(line: str) -> None:
        nonlocal last
        done, of = map(int, line.split()[0].split("/"))
        if of >= MANY and 10 * done // of > last:
            last = 10 * done // of
            click.echo(f"{name}: {done} of {of} looked at (traces and videos)", err=True)

    yield tenths


@click.command(epilog=STAMP)
@campaign_argument(required=False)
@lab_option
@json_option
def stamp(campaign: str | None, lab: Path | None, as_json: bool) -> None:
    """Ask the authority that lab.toml names under [timestamps] to stamp the newest head (RFC 3161).

    A run asks by itself after each head, in a process of its own, and so do open, close, freeze and unblind; this is
    for later, when there was no network. The answer is kept in the campaign's timestamps/ and checked by verify.
    """
    from labctl.store.verifying.timestamps import stamp as ask

    folder = campaign_folder(campaign, lab)
    answer = ask(folder, MonotonicClock())
    if as_json:
        print_json({"schema": "labctl.said/1", "campaign": folder.name, "said": [answer]})
        return
    click.echo(answer)


def stamp_if_asked(folder: Path) -> None:
    """After a verb wrote: a timestamp where the lab names an authority; one that does not come is said, no more."""
    from labctl.store.verifying.timestamps import authority_of
    from labctl.store.verifying.timestamps import stamp as ask

    try:
        if authority_of(folder) is not None:
            click.echo(ask(folder, MonotonicClock()), err=True)
    except LabctlError as error:
        click.echo(f"warning: {error}", err=True)
