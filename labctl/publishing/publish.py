"""`labctl publish` as a use case: a campaign's record, tables, report and cards in a folder that anybody verifies.

May not: write into the campaign (but the salts of what is withheld), publish one that is not unblinded, or leave a
folder that looks whole and is not: the manifest is written last, and the folder takes its place in one step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from labctl import times
from labctl.core.record import Record
from labctl.core.trial import TO_UNBLINDED
from labctl.errors import InputError, StateError
from labctl.publishing.cards import write_cards
from labctl.publishing.drawing import RECORDINGS, draw
from labctl.publishing.leaving_out import Choice, left_out, sealed_episodes
from labctl.publishing.licences import licence_of
from labctl.publishing.manifest import (
    MOST_DRAWS,
    FileListed,
    Licence,
    Manifest,
    ReportMade,
    by_episode,
    manifest_bytes,
    withheld_of,
)
from labctl.publishing.record_copy import copy_record, refuse_secrets
from labctl.publishing.tables import write_tables
from labctl.publishing.typed_texts import free_texts
from labctl.publishing.versions import versions
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.cells.stated import stated
from labctl.reporting.facts import refuse_mixed
from labctl.reporting.rows_report import BOOT, PERM
from labctl.store.atomic_files import folder_in_one_step, replace_file, sync_file
from labctl.store.chain_heads import head_text
from labctl.store.database_backend import PUBLISHED
from labctl.store.footage import file_digest
from labctl.store.lab_folder import lab_settings
from labctl.store.linking import Pairing
from labctl.store.verifying.verified import verified
from labctl.store.verifying.withheld import Published, Withheld

UTC = "UTC"
TITLE = 200  # characters


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. title, creator, dataset: as the metadata names them; labels: as `report_campaign` has it;
    rerun: with each episode's recording for Rerun's viewer; secrets: also where an address holds a password or a key.
    """

    licence: str
    title: str = ""
    creator: str = ""
    dataset: str = ""
    choice: Choice = field(default_factory=Choice)
    boot: int = BOOT
    perm: int = PERM
    seed: int = 0
    labels: str = "best"
    force: bool = False
    rerun: bool = False
    secrets: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """A published folder. digest: sha256 hex of its manifest, to be noted elsewhere; texts: kind of entry -> how many
    texts people typed into entries of it, which cannot be withheld.
    """

    folder: Path
    manifest: Manifest
    digest: str
    texts: Mapping[str, int]


def publish(folder: Path, out: Path, request: Request, say: Callable[[str], None] = lambda line: None) -> Made:
    """Publish the campaign in `folder` as `out`. `say` is called with each step as it begins ("2/5 …").

    Raises StateError before unblinding, BrokenRecord for a record that does not hold, InputError, StorageError.
    """
    licence, licence_text = checked(request, out, folder)
    say("1/5 verifying the record")
    with verified(folder) as shown, folder_in_one_step(out, replacing=True) as building:
        campaign = shown.campaign
        record, events = campaign.record(), campaign.events()
        _check_phase(record, folder)
        refuse_mixed(record, folder.name)
        if not request.secrets:
            refuse_secrets(campaign)
        say("2/5 copying the record")
        entries = left_out(campaign.folder, events, record, request.choice)
        name = campaign.opened["campaign"]
        copied = building / "campaigns" / name
        copy_record(campaign, events, withheld_of(entries), copied)
        zone = lab_settings(folder).timezone or UTC
        manifest = Manifest(
            schema="labctl.published/1",
            campaign=name,
            title=(request.title or campaign.opened["protocol"].get("question") or name)[:TITLE],
            kind=campaign.opened["kind"],
            head=head_text(*campaign.journal.head()),
            commitment=campaign.opened["commitment"],
            frozen=record.frozen_wall or record.closed_wall or record.opened_wall or "",
            licence=licence,
            creator=request.creator,
            dataset=request.dataset or name,
            versions=versions(),
            report=ReportMade(request.boot, request.perm, request.seed, request.labels, zone),
            stated=stated(folder, record),
            withheld=entries,
            files={},
        )
        (building / "tables").mkdir()
        streams = write_tables(record, events, building / "tables")
        made_report(copied, manifest, building / "report", building / "report", lambda line: say(_within(line)))
        if request.rerun:
            _draw(copied, withheld_of(entries), sealed_episodes(events), building / RECORDINGS, say)
        say("5/5 writing cards and the manifest")
        replace_file(building / "LICENSE.txt", licence_text.encode(), durable=False)
        write_cards(building, manifest, campaign, record, streams)
        manifest = replace(manifest, files=files_of_folder(building))
        to_disk(building)
        replace_file(building / PUBLISHED, manifest_bytes(manifest))
        texts = free_texts(events)
    return Made(out, manifest, file_digest(out / PUBLISHED), texts)


def made_report(
    record: Path,
    manifest: Manifest,
    out: Path,
    read_at: Path,
    say: Callable[[str], None] = lambda line: None,
    *,
    linked: bool = True,
    pairing: Pairing | None = None,
    earlier: Manifest | None = None,
) -> Path:
    """The report of a published record, made of nothing but it and its manifest, into `out`; its links are for one that
    lies at `read_at`, where, unless `linked`, the record is not. pairing, earlier: with the published campaign that it
    was opened linked to, and its manifest. Errors as of `report_campaign`.
    """
    samples, pictures = by_episode(manifest.withheld)
    asked = manifest.report
    published = Published(
        withheld_of(manifest.withheld), samples, {**pictures, **samples}, manifest.stated or {"": {}}, read_at, linked
    )
    if earlier is not None:
        its_samples, its_pictures = by_episode(earlier.withheld)
        published = replace(
            published, earlier=withheld_of(earlier.withheld), earlier_unseen={**its_pictures, **its_samples}
        )
    with in_zone(asked.timezone):
        return report_campaign(
            record,
            out,
            boot=asked.boot,
            perm=asked.perm,
            seed=asked.seed,
            labels=asked.labels,
            say=say,
            published=published,
            pairing=pairing,
        )


@contextmanager
def in_zone(timezone: str) -> Generator[None, None, None]:
    """While a report is made whose times are of this zone, by its name."""
    before = os.environ.get(times.ZONE)
    times.use(timezone)
    try:
        yield
    finally:
        times.use(before)


def _draw(record: Path, withheld: Withheld, episodes: Sequence[str], to: Path, say: Callable[[str], None]) -> None:
    """A recording for Rerun of each episode whose samples go along."""
    going = [episode for episode in episodes if episode not in withheld.traces]
    for number, episode in enumerate(going, 1):
        say(f"4/5 drawing {episode} for Rerun ({number} of {len(going)})")
        draw(record, episode, withheld, to / f"{episode}.rrd")


def _within(line: str) -> str:
    number, _, text = line.partition("/")
    return f"{'3/5' if int(number) < 4 else '4/5'} report: {text.partition(' ')[2]}"


def _check_phase(record: Record, folder: Path) -> None:
    if record.unblinding is None:
        phase = record.state.phase
        raise StateError(
            f"campaign {folder.name} is {phase}: what would be published is sealed; {TO_UNBLINDED[phase]} it first"
        )


def checked(request: Request, out: Path, campaign: Path) -> tuple[Licence, str]:
    """Its licence, and what LICENSE.txt says. Raises InputError for what is not published, or not there."""
    found = licence_of(request.licence)
    if max(request.boot, request.perm) > MOST_DRAWS:
        raise InputError(f"--boot, --perm: a published report has {MOST_DRAWS} draws at most, as others make it again")
    _check_out(out, campaign, force=request.force)
    return found


def _check_out(out: Path, campaign: Path, *, force: bool) -> None:
    """Raises InputError where no publication of a campaign's folder may be written."""
    here = out.resolve()
    if here == Path.cwd():
        raise InputError(f"--out {out} is the folder that labctl runs in; name one that it makes")
    if here.is_relative_to(campaign.resolve()):
        raise InputError(f"--out {out} lies in the campaign's own folder; choose another")
    if not out.exists() and not out.is_symlink():
        return
    if out.is_dir() and not out.is_symlink() and not any(out.iterdir()):
        return
    if out.is_symlink() or not (out / PUBLISHED).is_file():
        raise InputError(f"--out {out} is there and is nothing that labctl published; choose another place")
    if not force:
        raise InputError(f"--out {out} is there already; choose another place, or replace it with --force")


def files_of_folder(folder: Path) -> dict[str, FileListed]:
    """Every file below a folder, by its path there."""
    return {
        path.relative_to(folder).as_posix(): FileListed(path.stat().st_size, file_digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def to_disk(folder: Path) -> None:
    """Have all of a folder on the disk."""
    for path in (*folder.rglob("*"), folder):
        sync_file(path)  # a folder's names too
