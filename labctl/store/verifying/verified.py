"""The one reader of whatever shows what a campaign holds: it holds, or a person said to show it all the same and what
comes out says so. `tests/unit/store/test_one_reader.py` fails where a campaign is opened otherwise.

May not: show anything, or pass over what is to be shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.core.events import Event
from labctl.core.trial import Phase
from labctl.errors import BrokenRecord, StateError
from labctl.messages.body_parts import VideoEntry
from labctl.store.atomic_files import file_errors
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import Noted
from labctl.store.database_backend import uncollected
from labctl.store.lab_folder import read_text
from labctl.store.ledger import Ledger
from labctl.store.media.reading import local_file
from labctl.store.problem import Problem
from labctl.store.verifying.recordings import Seen
from labctl.store.verifying.verify import NOTHING, read_all_but, recording_problems, verify_campaign
from labctl.store.verifying.withheld import NOTHING_WITHHELD, Withheld

JOURNAL_ALONE: Collection[str] = ()
WITH_PHOTOS: Collection[str] = ("",)  # and no recording: no episode is named so

if TYPE_CHECKING:  # whoever looks at no recording, and at no arm, does not wait for the import
    from labctl.config.protocol_schema import Arm, Protocol
    from labctl.store.traces import TraceStore


def refuse_unless_it_holds(
    folder: Path, recordings: Collection[str] | None = None, *, unverified: bool = False
) -> str | None:
    """Verify what is to be shown of a campaign: its journal with all that was frozen, and the recordings of these
    episodes (None: all). Nothing when it holds; with `unverified` the first problem in words, for what comes out.

    Raises BrokenRecord for what does not hold, InputError when the folder is no campaign.
    """
    return _why_broken(folder, verify_campaign(folder, recordings=recordings).problems, unverified=unverified)


def _as_verified(campaign: Campaign, events: Sequence[Event]) -> None:
    """Raises BrokenRecord when the journal that was opened is not the one that was verified; it may have grown."""
    if campaign.events()[: len(events)] != list(events):
        name = campaign.folder.name
        raise BrokenRecord(f"the journal of {name} was changed while it was read; see: labctl verify {name}")


@dataclass(frozen=True, slots=True)
class Verified:
    """A campaign that was verified and opened to be shown. broken: what does not hold, where somebody asked to see it
    all the same; None where all of it does.
    """

    campaign: Campaign
    broken: str | None
    unverified: bool

    def with_recordings(self, episodes: Collection[str]) -> str | None:
        """The recordings of these episodes are to be shown too: `broken` with theirs. Raises BrokenRecord."""
        folder = self.campaign.folder
        found = recording_problems(folder, self.campaign.events(), episodes)
        return self.broken or _why_broken(folder, found, unverified=self.unverified)


@contextmanager
def verified(
    folder: Path, recordings: Collection[str] | None = None, *, unverified: bool = False
) -> Generator[Verified, None, None]:
    """A campaign to read from, once `refuse_unless_it_holds` has let it pass, whose terms and errors these are."""
    looked = verify_campaign(folder, recordings=recordings)
    broken = _why_broken(folder, looked.problems, unverified=unverified)
    with in_passing(folder, looked.events) as campaign:
        _as_verified(campaign, looked.events)
        yield Verified(campaign, broken, unverified)


@contextmanager
def verified_but(
    folder: Path,
    lost: Collection[str] = (),
    noted: Noted = NOTHING,
    withheld: Withheld = NOTHING_WITHHELD,
    seen: Seen | None = None,
) -> Generator[tuple[Campaign, list[Event], dict[str, str]], None, None]:
    """A campaign whose whole record holds but for the recordings of `lost` episodes and what was `withheld` when it was
    published, its events, and what is wrong with each of those lost. Errors as `verify.read_all_but`.
    """
    events, missing = read_all_but(folder, lost, noted, withheld, seen)
    with in_passing(folder, events) as campaign:
        _as_verified(campaign, events)
        yield campaign, events, missing


def in_passing(folder: Path, known: Sequence[Event] = ()) -> Campaign:
    """A campaign as it is, not verified: for what was verified a moment ago, and for what shows nothing of a record.
    known: as `Campaign.open` has it.
    """
    with uncollected():
        return Campaign.open(folder, known=known)


def samples_of(campaign: Campaign, *, held: bool = False) -> TraceStore:
    """The recorded samples of a campaign, to read. Whoever asks closes it; held: soon, and asks much until then. Raises
    StorageError.
    """
    from labctl.store.traces import TraceStore

    return TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True, held=held)


def protocol_of(campaign: Campaign) -> Protocol:
    """The protocol of an unblinded campaign as it was frozen; it names arms. Raises StateError before."""
    from labctl.config.protocol_schema import parse_protocol

    if campaign.state.phase != Phase.UNBLINDED:
        raise StateError(f"campaign {campaign.folder.name} is {campaign.state.phase}; its protocol names arms")
    return parse_protocol(Ledger.open(campaign.folder).protocol_text(), "protocol.toml")


def arms_of(campaign: Campaign) -> dict[str, Arm]:
    """The arms of an unblinded campaign by name, each with its policy card. Raises StateError before."""
    from labctl.store.frozen_cards import with_cards

    return with_cards(protocol_of(campaign), Ledger.open(campaign.folder).cards())


def treatments_of(campaign: Campaign) -> dict[str, tuple[str, str]]:
    """The treatments of an unblinded campaign's arms, as `linking.treatments` has them. Raises StateError before."""
    from labctl.store.linking import treatments

    return treatments(protocol_of(campaign), Ledger.open(campaign.folder).cards())


def sealed_texts(campaign: Campaign) -> dict[str, str]:
    """The TOML files that an unblinded campaign was opened from, as they were sealed: name -> text. Raises StateError
    before, StorageError, BrokenRecord.
    """
    if campaign.state.phase != Phase.UNBLINDED:
        raise StateError(f"campaign {campaign.folder.name} is {campaign.state.phase}; its protocol names arms")
    ledger = Ledger.open(campaign.folder)
    texts = {name: read_text(campaign.folder / name) for name in ("cell.toml", "fixture.toml")}
    return {**texts, "protocol.toml": ledger.protocol_text(), **ledger.cards()}


def _why_broken(folder: Path, problems: Sequence[Problem], *, unverified: bool) -> str | None:
    if not problems:
        return None
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if unverified:
        return f"this record does not hold: {problems[0]}{more}"
    raise BrokenRecord(
        f"{problems[0]}{more}; nothing is shown of a record that does not hold; see: labctl verify {folder.name}; "
        "--unverified, where a verb has it, shows it all the same and says so in what comes out"
    )


def sealed_video(folder: Path, video: VideoEntry) -> bytes:
    """The bytes of a camera's video, read once: those that were sealed and no others, whatever becomes of the file
    meanwhile. `video`: its entry in the record, of which the journal was verified.

    Raises BrokenRecord when the file is gone, lies elsewhere or has changed, StorageError when the disk refuses,
    Unreachable for one that a media store alone has, and does not give.
    """
    path = local_file(folder, video)
    if not path.is_file():
        raise BrokenRecord(f"the video {video['file']} is gone; see: labctl verify {folder.name}")
    with file_errors(str(path)):
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != video["sha256"]:
        raise BrokenRecord(
            f"the video {video['file']} is not the one that was sealed; see: labctl verify {folder.name}"
        )
    return data
