"""`labctl publish`: a campaign as a folder that anybody verifies; what `verify` and `report` do with such a folder.

May not: decide what may leave, or open a published folder past `labctl.publishing.guard`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    campaign_argument,
    example,
    json_option,
    lab_option,
    print_json,
    progress,
    replicates_options,
    seed_option,
)
from labctl.errors import InputError
from labctl.plain import Json, count
from labctl.store.database_backend import PUBLISHED
from labctl.store.lab_folder import JOURNAL, campaign_folder, read_text

if TYPE_CHECKING:
    from labctl.publishing.again import Again
    from labctl.publishing.check import Checked
    from labctl.publishing.leaving_out import Choice
    from labctl.store.chain_heads import Outside

ARCHIVE = ".zip"
MOST_SHOWN = 10
EPILOG = example(
    "labctl publish first --licence CC-BY-4.0 --out published/first",
    "labctl publish first --licence CC-BY-4.0 --withhold e-2540dd8a12 --why 'a visitor is in the picture' --out p",
    "labctl verify published/first      # by anybody, without the lab",
    "labctl report published/first --out again",
)
LICENCE = "Licence of the data, such as CC-BY-4.0, or a file with its text."
licence_option = click.option("--licence", required=True, metavar="SPDX|FILE", help=LICENCE)


@click.command(epilog=EPILOG)
@campaign_argument()
@click.option("--out", required=True, type=PATH, metavar="DIR", help="Folder to write.")
@licence_option
@click.option("--title", default="", help="Title in the metadata [default: the protocol's question].")
@click.option("--creator", default="", metavar="NAME", help="Who publishes it, for the metadata.")
@click.option("--dataset", default="", metavar="ID", help="What results refer to: an address, or its name on a hub.")
@click.option(
    "--episode",
    "episodes",
    multiple=True,
    metavar="EPISODE",
    help="Only the recordings of these episodes, repeatable; outcomes and operations are there of all.",
)
@click.option(
    "--withhold", multiple=True, metavar="EPISODE", help="Leave out the pictures of this episode: people are in them."
)
@click.option("--why", default="", metavar="TEXT", help="Why the pictures of --withhold are left out.")
@click.option("--no-pictures", is_flag=True, help="Leave out every video and photo.")
@click.option("--rerun", is_flag=True, help="Also each episode as a recording for Rerun's viewer (.rrd).")
@click.option("--archive", is_flag=True, help="Also as one archive beside it, DIR.zip.")
@click.option(
    "--with-secrets", is_flag=True, help="Although an address of cell, protocol or card holds a password or a key."
)
@replicates_options
@seed_option
@click.option("--force", is_flag=True, help="Replace what was published at DIR, and DIR.zip, before.")
@lab_option
@json_option
def publish(
    campaign: str | None,
    out: Path,
    licence: str,
    title: str,
    creator: str,
    dataset: str,
    episodes: tuple[str, ...],
    withhold: tuple[str, ...],
    why: str,
    no_pictures: bool,
    rerun: bool,
    archive: bool,
    with_secrets: bool,
    boot: int,
    perm: int,
    seed: int,
    force: bool,
    lab: Path | None,
    as_json: bool,
) -> None:
    """Write a folder that anybody verifies without the lab: record, report, tables, metadata, manifest.

    The campaign must be unblinded. What is withheld is left out under a salted digest, never rewritten, so that the
    chain still verifies. What people typed is in the journal and goes along. docs/publishing.md has the rest.
    """
    from labctl.publishing.archive import check_place, write_archive
    from labctl.publishing.publish import Request, publish

    choice = _choice(episodes, withhold, why, no_pictures)
    request = Request(
        licence, title, creator, dataset, choice, boot, perm, seed, force=force, rerun=rerun, secrets=with_secrets
    )
    whole = out if out.name else out.absolute()
    packed = whole.with_name(whole.name + ARCHIVE) if archive else None
    if packed is not None:
        check_place(packed, force=force)
    with progress("publish", quiet=as_json) as say:
        made = publish(campaign_folder(campaign, lab), out, request, say)
        if packed is not None:
            write_archive(out, packed)
    manifest = made.manifest
    if as_json:
        said = {"campaign": manifest.campaign, "out": str(out), "archive": str(packed) if packed else None}
        said |= {"files": len(manifest.files), "bytes": sum(one.size for one in manifest.files.values())}
        held = [asdict(entry) for entry in manifest.withheld]
        more = {"manifest_sha256": made.digest, "head": manifest.head, "commitment": manifest.commitment}
        texts = {"free_texts": sum(made.texts.values()), "free_texts_by": dict(made.texts)}
        print_json({"schema": "labctl.published_made/1", **said, **more, "withheld": held, **texts})
        return
    size = sum(one.size for one in manifest.files.values())
    click.echo(f"published {manifest.campaign}: {count(len(manifest.files), 'file')}, {size / 1e6:.1f} MB, in {out}")
    if packed is not None:
        click.echo(f"archive: {packed}")
    if manifest.withheld:
        click.echo(f"withheld: {count(len(manifest.withheld), 'thing')}, listed in {out / PUBLISHED}")
    texts = f"{count(sum(made.texts.values()), 'text')} that people typed"
    if made.texts:
        texts += f" ({', '.join(f'{kind} {number}' for kind, number in made.texts.items())})"
    click.echo(f"look at it before it leaves: {texts}, and the addresses of cell and protocol, are in the record")
    click.echo(f"note elsewhere: head {manifest.head}")
    click.echo(f"note elsewhere: sha256 of {PUBLISHED} {made.digest}")


def _choice(episodes: tuple[str, ...], withhold: tuple[str, ...], why: str, no_pictures: bool) -> Choice:
    from labctl.publishing.leaving_out import PEOPLE, Choice

    if why and not withhold:
        raise InputError("--why says why the pictures of --withhold EPISODE are left out; name the episode")
    chosen = frozenset(episodes) if episodes else None
    return Choice(chosen, dict.fromkeys(withhold, why or PEOPLE), not no_pictures)


def is_published(named: str | None) -> bool:
    """Whether what was typed is a published folder or an archive of one, and no campaign's name."""
    if named is None:
        return False
    path = Path(named)
    if path.suffix == ARCHIVE and path.is_file():
        return True
    return path.is_dir() and not (path / JOURNAL).is_file() and ((path / PUBLISHED).exists() or "/" in named)


@contextmanager
def opened(named: str) -> Iterator[Path]:
    """The folder itself, or that of an archive."""
    from labctl.publishing.archive import unpacked

    path = Path(named)
    if path.is_dir():
        yield path
        return
    if not path.is_file():
        raise InputError(f"{named} is no folder and no archive; give what labctl publish wrote")
    with unpacked(path) as folder:
        yield folder


def verify_published(
    named: str, head: str | None, commitment: str | None, certificates: Path | None, *, as_json: bool
) -> int:
    """`labctl verify DIR`."""
    from labctl.publishing.check import check_published
    from labctl.store.chain_heads import noted

    known = noted(head, commitment)
    trusted = None if certificates is None else read_text(certificates).encode()
    with opened(named) as folder, progress("verifying", quiet=True) as say:
        checked = check_published(folder, known, say, trusted)
    if as_json:
        print_json(checked_json(checked))
    else:
        say_checked(checked)
    return 1 if checked.problems else 0


def say_checked(checked: Checked) -> None:
    """What was found of a published campaign, a line each."""
    name = checked.admitted.manifest.campaign
    for problem in checked.problems:
        click.echo(f"{name}: {problem}")
    for note in checked.notes:
        click.echo(f"{name}: note: {note}")
    for line in checked.withheld:
        click.echo(f"{name}: withheld: {line}")
    state = count(len(checked.problems), "problem") if checked.problems else "holds"
    files = count(len(checked.admitted.manifest.files), "file")
    click.echo(f"{name}: {state} ({files}, {checked.counts}); head {checked.head}")
    if checked.outside is not None and checked.outside.head is not None:
        click.echo(f"{name}: {checked.outside}")
    for line in checked.unchecked:
        click.echo(f"{name}: unchecked: {line}")


def checked_json(checked: Checked) -> dict[str, Json]:
    """The same as a document."""
    manifest, bound = checked.admitted.manifest, checked.outside
    return {
        "schema": "labctl.verify_published/1",
        "campaign": manifest.campaign,
        "ok": not checked.problems,
        "manifest_sha256": checked.admitted.digest,
        "head": checked.head,
        "outside": outside(bound),
        "counts": asdict(checked.counts),
        "problems": [asdict(problem) for problem in checked.problems],
        "notes": list(checked.notes),
        "withheld": [asdict(entry) for entry in manifest.withheld],
        "unchecked": list(checked.unchecked),
    }


def outside(bound: Outside | None) -> dict[str, Json] | None:
    """What of a record something outside its folder binds; None where the record is broken."""
    return None if bound is None else {"head": bound.head, "entries": bound.covered, "commitment": bound.commitment}


def report_published(named: str, out: Path, *, as_json: bool) -> int:
    """`labctl report DIR`; 1 where a number is another one, or by the same versions a byte."""
    from labctl.publishing.again import report_again

    with opened(named) as folder, progress("report", quiet=as_json) as say:
        again = report_again(folder, out, say)
    if as_json:
        said = {"report": str(again.page), "same": again.same, "files": list(again.files), "furthest": again.furthest}
        lines = {"numbers": list(again.numbers), "texts": list(again.texts), "versions": list(again.versions)}
        print_json({"schema": "labctl.report_again/1", **said, **lines})
    else:
        click.echo(f"report: {again.page}")
        say_again(again)
    return 1 if again.numbers else 0


def say_again(again: Again) -> None:
    """How a report made anew compares with the published one; what only reads otherwise, for people to look at."""
    for text in again.texts[:MOST_SHOWN]:
        click.echo(f"in other words: {text}")
    if len(again.texts) > MOST_SHOWN:
        click.echo(f"in other words: {len(again.texts) - MOST_SHOWN} more, all of them with --json")
    click.echo(again.words)


def report_two_published(named: Sequence[str], out: Path) -> Path:
    """`labctl report DIR DIR`, of linked campaigns."""
    from labctl.publishing.again import report_linked_published

    with ExitStack() as stack, progress("report", quiet=True) as say:
        return report_linked_published([stack.enter_context(opened(one)) for one in named], out, say)
