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
from labctl.errors import InputError, LabctlError
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.store.verifying.verify import Verification

MANY = 60  # looks at recordings from which on a log is told how far it is

EPILOG = example(
    "labctl verify first",
    "labctl verify first --head 120:3f9a...  # as printed after an episode",
    "labctl verify published/first           # what labctl publish wrote, on any machine",
)
STAMP = example("labctl stamp first", "labctl verify first  # says what the timestamps bind")


@click.command(epilog=EPILOG)
@campaign_argument(required=False)
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
def verify(
    campaign: str | None,
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
    Of a folder that `labctl publish` wrote, or its archive, it also says what is withheld and what stays unchecked.
    """
    from labctl.cli.publishing.publish import is_published, outside, verify_published
    from labctl.store.chain_heads import NOT_CHECKED, noted
    from labctl.store.verifying.verify import verify_campaign

    if campaign is not None and is_published(campaign):
        return verify_published(campaign, head, commitment, certificates, as_json=as_json)
    if certificates is not None:
        raise InputError("--certificates is for a published folder; those of a lab stand in its lab.toml")
    known = noted(head, commitment)
    folders = campaign_folders(campaign, lab)
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
        campaigns = [
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
        print_json({"schema": "labctl.verify/1", "campaigns": campaigns})
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
