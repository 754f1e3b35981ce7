"""Campaigns as use cases: open one from a protocol and a cell, attach to it, close, freeze and unblind it.

May not: run a trial, or write anything before everything that could be refused has been checked.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self

from labctl.clock import SECOND, Anchor, MonotonicClock
from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import Event, Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.reviewed import how_frozen, not_reviewed
from labctl.core.trial import TO_UNBLINDED, CampaignState, Phase, State, advance, fold, tally
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.store.atomic_files import file_errors, folder_in_one_step, replace_file
from labctl.store.chain_heads import append_head, chain_and_head_problems, head_text
from labctl.store.database_backend import sqlite_url
from labctl.store.journal import Journal, campaigns_in, journal_url, refuse_no_campaign
from labctl.store.lab_folder import Plan, check_name, read_cell, read_fixture, read_plan, read_text, refuse_moved
from labctl.store.ledger import Ledger, check_commitment, check_roots
from labctl.store.locks import campaign_lock, lab_lock
from labctl.store.opened_body import (
    check_format,
    files_in,
    freeze,
    joint_body,
    opened_body,
    schedule_of,
    seal,
    unsealed,
)

if TYPE_CHECKING:  # whoever reads a campaign does not wait for the schemas
    from labctl.bus import Body
    from labctl.config.cell_schema import Cell, Fixture
    from labctl.config.protocol_schema import Arm, Protocol
    from labctl.store.linking import Linked
    from labctl.store.opened_body import Dealt, Frozen, Opening

PRIVATE = 0o700
PATIENCE_NS = 10 * SECOND  # with another opening in the same lab


@dataclass(frozen=True, slots=True)
class Opened:
    """A campaign that has just been opened; the commitment to its schedule and its first head, to be published."""

    folder: Path
    name: str
    commitment: str
    head: str
    links: Sequence[Linked] = ()


class Campaign:
    """A campaign folder, attached. Use as a context manager; only a writer has `ledger` and `protocol`."""

    def __init__(self, folder: Path, journal: Journal, ledger: Ledger | None, known: Sequence[Event] = ()) -> None:
        self.folder, self.journal, self._ledger = folder, journal, ledger
        events = journal.events(known=known)
        self._read = events if ledger is None else None
        check_format(body_of(events[0], CampaignOpened), folder.name)
        if ledger is not None:
            problems = chain_and_head_problems(folder, events)
            if problems:
                raise BrokenRecord(f"{problems[0]}; nothing more is written to it; see: labctl verify {folder.name}")
        self.state: CampaignState = fold(events)
        self.opened = self.state.opened

    @classmethod
    def open(cls, folder: Path, *, writer: bool = False, known: Sequence[Event] = ()) -> Self:
        """Attach to a campaign. A writer holds the campaign's lock first (`locks.campaign_lock`); readers need none.
        known: its entries as they were read before (see `Journal.events`).

        Raises StateError for a writer where the lab was moved away from, StorageError when the folder is no campaign,
        BrokenRecord when its journal or seal contradicts itself or, for a writer, when the chain does not hold.
        """
        folder = folder.resolve()
        if writer:
            refuse_moved(folder)
        url = journal_url(folder)
        name = _only(campaigns_in(url), folder)
        durable = writer and read_cell(folder / "cell.toml", frozen=True).cell.durable
        ledger = Ledger.open(folder, durable=durable) if writer else None
        journal = Journal.open(url, name, readonly=not writer, durable=durable)
        try:
            return cls(folder, journal, ledger, known)
        except StateError as error:
            journal.close()
            text = f"its journal contradicts itself: {error}; see: labctl verify {folder.name}"
            raise BrokenRecord(f"{folder.name}: {text}") from error
        except BaseException:
            journal.close()
            raise

    @property
    def ledger(self) -> Ledger:
        """The opened seal. Raises StateError for a reader."""
        if self._ledger is None:
            raise StateError(f"campaign {self.folder.name} was opened for reading; its seal stays closed")
        return self._ledger

    @property
    def traces_url(self) -> str:
        """URL of the campaign's trace store."""
        return sqlite_url(self.folder / "traces.db")

    @cached_property
    def cell(self) -> Cell:
        """The cell as it was frozen. Raises InputError."""
        return read_cell(self.folder / "cell.toml", frozen=True)

    @cached_property
    def fixture(self) -> Fixture:
        """The fixture as it was frozen."""
        return read_fixture(self.folder / "fixture.toml")

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol as it was frozen; it names arms, so only a writer may ask."""
        from labctl.config.protocol_schema import parse_protocol

        return parse_protocol(self.ledger.protocol_text(), "protocol.toml")

    @cached_property
    def arms(self) -> dict[str, Arm]:
        """The protocol's arms by name, each with its policy card as a plain dict; only a writer may ask."""
        from labctl.store.frozen_cards import with_cards

        return with_cards(self.protocol, self.ledger.cards())

    def events(self) -> list[Event]:
        """All events of the journal so far. A reader reads each of them once."""
        if self._read is None:
            return self.journal.events()
        self._read += self.journal.events(after=self._read[-1].seq)
        return list(self._read)

    def record(self) -> Record:
        """What the journal records so far."""
        return record_of(self.events(), self.state)

    def log(
        self,
        kind: Kind,
        body: Body,
        *,
        anchor: Anchor,
        who: str,
        trial: str | None = None,
        episode: str | None = None,
    ) -> Event:
        """Commit an event and fold it in. Raises StateError, before anything is written, when it may not follow."""
        seq, body = self.state.last_seq + 1, self.ledger.binding(kind, body)
        advance(self.state, Event(seq, kind, anchor.mono_ns, anchor.boot, anchor.wall, who, trial, episode, body))
        event = self.journal.append(kind, anchor=anchor, who=who, trial=trial, episode=episode, body=body)
        self.state = advance(self.state, event)
        return event

    def close(self) -> None:
        """Let go of the journal. Idempotent."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _only(names: Sequence[str], folder: Path) -> str:
    if folder.name in names:
        return folder.name
    if len(names) != 1:
        raise BrokenRecord(f"{folder / 'journal.db'} holds {len(names)} campaigns, none of them {folder.name!r}")
    return names[0]


def open_campaign(
    protocol_path: Path,
    cell_path: Path,
    lab: Path,
    *,
    entropy: bytes,
    anchor: Anchor,
    who: str,
    name: str | None = None,
    extends: Path | None = None,
    anchors: Sequence[str] = (),
    further: Callable[[Plan, Cell], Frozen | None] = lambda plan, cell: None,
    dealt: Dealt | None = None,
) -> Opened:
    """Freeze a protocol, draw and seal its schedule from 32 bytes of entropy, start the journal in LAB/campaigns/NAME.

    The name is the protocol's unless given; a taken one gets -2, -3, … `extends` is the folder of an earlier campaign
    and `anchors` the arms run in both (see `linking.links_of`). further: looks at plan and cell when everything that
    files alone can tell is in order, may refuse, and returns the rows of a historical reference. dealt: the part of a
    joint campaign that this is; its schedule is not drawn here. Everything is checked first and the folder appears
    whole or not at all. Raises InputError, StorageError, StateError while another opens, and what `links_of` raises.
    """
    from labctl.config.conditions import protocol_conditions
    from labctl.store.driver_options import check_arm_options, check_cell_options, check_drivers
    from labctl.store.frozen_cards import check_policies, with_cards
    from labctl.store.linking import links_of, sealed_links
    from labctl.store.opened_list import add_opened
    from labctl.store.rubric_pictures import anchor_pictures, keep_anchors
    from labctl.store.scene_references import check_given, given_body, given_pictures, keep_given
    from labctl.store.traces import TraceStore

    plan = read_plan(protocol_path)
    cell = read_cell(cell_path)
    conditions = protocol_conditions(plan.protocol, plan.fixture)
    pictures, anchors_shown = given_pictures(plan), anchor_pictures(plan)
    check_given(pictures, cell)
    check_drivers(plan.protocol, cell)
    check_cell_options(cell, plan)
    check_arm_options(plan.protocol, with_cards(plan.protocol, plan.cards).values(), cell)
    check_policies(plan, cell)
    if name is not None:
        check_name("campaign", name)
    links = links_of(plan, cell, lab, extends, anchors)
    person_then = further(plan, cell)
    schedule = schedule_of(plan, conditions, entropy, dealt)
    cell_text = read_text(cell_path)
    campaigns = lab.resolve() / "campaigns"
    called = name or plan.protocol.protocol.name
    with _new_folder(campaigns, called, given=name is not None) as (campaign_name, folder):
        replace_file(folder / "cell.toml", cell_text.encode())
        replace_file(folder / "fixture.toml", plan.fixture_text.encode())
        keep_given(pictures, folder)
        keep_anchors(anchors_shown, folder)
        commitment = seal(folder, plan, schedule, entropy, dealt)
        TraceStore.create(sqlite_url(folder / "traces.db"), campaign_name, apart=True).close()
        journal = Journal.create(journal_url(folder), campaign_name)
        try:
            tied = sealed_links(links, Ledger.open(folder))
            body: CampaignOpened = {
                **opened_body(campaign_name, plan, cell, cell_text, commitment, schedule.public(), anchors_shown),
                "references": given_body(pictures),
                "links": tied,
                **freeze(plan, person_then, folder),
                **joint_body(dealt),
                **files_in(lab, plan, cell_path),
            }
            event = journal.append(Kind.CAMPAIGN_OPENED, anchor=anchor, who=who, body=body)
            fold([event])
        finally:
            journal.close()
        append_head(folder, event.seq, event.hash, anchor.wall)
        about = {"protocol": plan.protocol.protocol.name, "protocol_sha256": body["protocol"]["sha256"]}
        add_opened(lab, MonotonicClock(), campaign=campaign_name, commitment=commitment, wall=anchor.wall, **about)
    return Opened(campaigns / campaign_name, campaign_name, commitment, head_text(event.seq, event.hash), links)


@contextmanager
def _new_folder(campaigns: Path, wanted: str, *, given: bool) -> Generator[tuple[str, Path], None, None]:
    """A free name, and a folder to fill that becomes campaigns/name when the block ends well, and nothing otherwise.
    One is opened at a time in a lab, so that no two take one name.
    """
    with file_errors(str(campaigns)):
        campaigns.mkdir(parents=True, exist_ok=True)
    what = "the opening of a campaign in this lab"
    with lab_lock(campaigns.parent, "opening", "open", what=what, clock=MonotonicClock(), patience_ns=PATIENCE_NS):
        name = _free_name(campaigns, wanted, given=given)
        workshop = campaigns / f".opening-{name}"  # no folder in `campaigns` has a journal before it is whole
        try:  # private: before unblinding its traces tell arms apart, answer times alone do
            with folder_in_one_step(campaigns / name, building=workshop / name, mode=PRIVATE) as folder:
                yield name, folder
        finally:
            shutil.rmtree(workshop, ignore_errors=True)


def _free_name(campaigns: Path, wanted: str, *, given: bool) -> str:
    if given and (campaigns / wanted).exists():
        raise InputError(f"campaign {wanted!r} is there already in {campaigns}; choose another name")
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(name for name in names if not (campaigns / name).exists())


def close_campaign(
    folder: Path, *, who: str, reason: str = "", abandon: bool = False, anchor: Anchor | None = None
) -> list[str]:
    """No more trials. Planned ones become not_run, each with an event; a staged or committed one is released first.
    abandon: the campaign is given up, which every report of it prints with the reason.

    Returns lines to print. Raises StateError with the remedy for an episode that is armed or running, or when no
    reason is given and trials are left or it is given up.
    """
    with writing(folder, "close", anchor) as (campaign, now):
        _check_phase(campaign, Phase.OPEN, "close")
        trials = campaign.state.trials.values()
        for trial in trials:
            if trial.state == State.SCORING:
                raise StateError(
                    f"{trial.place} has ended and has no score; score or void it first: labctl run {folder.name}"
                )
            if trial.state in (State.ARMED, State.RUNNING):
                raise StateError(
                    f"{trial.place} has an open episode (it is {trial.state}); "
                    f"end it, or start `labctl run {folder.name}` once to conclude what a crash left, then close"
                )
        left = [t for t in trials if t.state in (State.PLANNED, State.STAGING, State.COMMITTED)]
        if left and not reason:
            raise StateError(
                f"not run yet: {len(left)} of {len(trials)} trials: labctl run {folder.name}; "
                "or close all the same and say why with --reason TEXT"
            )
        if abandon and not reason:
            raise StateError(f"campaign {folder.name} is given up with a reason; say why with --reason TEXT")
        for trial in left:
            why = {"reason": "campaign_closed"}
            if trial.state != State.PLANNED:
                campaign.log(Kind.TRIAL_RELEASED, why, anchor=now, who=who, trial=trial.id)
            campaign.log(Kind.TRIAL_SKIPPED, why, anchor=now, who=who, trial=trial.id)
        body = {"reason": reason or "every trial is finished", **({"abandoned": True} if abandon else {})}
        campaign.log(Kind.CAMPAIGN_CLOSED, body, anchor=now, who=who)
        how = "abandoned" if abandon else "closed"
        return [f"{how}: of {len(trials)} trials {tally(campaign.state)}", _head_line(campaign)]


def freeze_campaign(folder: Path, *, who: str, unreviewed: bool = False, anchor: Anchor | None = None) -> list[str]:
    """No more review; the head before freezing is in the event. unreviewed: without a review that was finished, for
    good; the event has it, and every report says so.

    Returns lines to print. Raises StateError when it is not closed, not reviewed (unless unreviewed) or not all scored.
    """
    with writing(folder, "freeze", anchor) as (campaign, now):
        reviewed = campaign.state.phase == Phase.REVIEWED
        if not reviewed:
            _check_phase(campaign, Phase.CLOSED, "freeze")
            if not unreviewed:
                raise StateError(not_reviewed(campaign.record(), folder.name))
        _, head = campaign.journal.head()
        campaign.log(Kind.CAMPAIGN_FROZEN, {"reviewed": reviewed, "head": head}, anchor=now, who=who)
        return [how_frozen(campaign.record(), reviewed=reviewed), _head_line(campaign)]


def unblind_campaign(
    folder: Path, *, who: str, reason: str = "", anchor: Anchor | None = None, opening: Opening | None = None
) -> list[str]:
    """Open the seal into the journal: schedule, secret and every sealed value, so that it alone proves the commitment.

    Before freezing it needs a reason and is recorded as early. opening: of a joint campaign's part, by its seal host.
    Lines to print. Raises StateError, BrokenRecord when the seal does not give the commitment (nothing is written).
    """
    with writing(folder, "unblind", anchor) as (campaign, now):
        phase = campaign.state.phase
        if phase == Phase.UNBLINDED:
            raise StateError(f"campaign {folder.name} is unblinded already")
        early = phase != Phase.FROZEN
        if early and not reason:
            before = TO_UNBLINDED[phase].removesuffix(" and unblind").removesuffix(", unblind")
            raise StateError(f"campaign {folder.name} is {phase}; {before} it first, or give a --reason TEXT")
        opened = unsealed(campaign.ledger, folder.name, opening)
        problems = check_commitment(campaign.opened["commitment"], opened) or check_roots(campaign.events(), opened)
        if problems:
            raise BrokenRecord(f"the seal of {folder.name} is broken, not unblinded: {problems[0]}")
        body = {"early": early, "reason": reason or None, **opened}
        campaign.log(Kind.CAMPAIGN_UNBLINDED, body, anchor=now, who=who)
        how = f"unblinded early, while {phase}: {reason}" if early else "unblinded"
        return [f"{how}; the commitment {campaign.opened['commitment']} holds", _head_line(campaign)]


@contextmanager
def writing(folder: Path, verb: str, anchor: Anchor | None) -> Generator[tuple[Campaign, Anchor], None, None]:
    """A campaign that one verb may write into, and the time it does; what it wrote has a head outside the database when
    it is done. Raises StateError naming whoever holds it.
    """
    refuse_no_campaign(folder)
    with campaign_lock(folder, verb), Campaign.open(folder, writer=True) as campaign:
        now, before = anchor or MonotonicClock().anchor(), campaign.journal.head()
        yield campaign, now
        if campaign.journal.head() != before:
            try:
                append_head(folder, *campaign.journal.head(), now.wall)
            except StorageError as error:
                text = f"{verb} is done and journalled, {_head_line(campaign)}; but heads.log does not hold that head"
                raise StorageError(f"{text}: {error}") from error


def _check_phase(campaign: Campaign, phase: Phase, verb: str) -> None:
    found, name = campaign.state.phase, campaign.folder.name
    if found != phase:
        first = f": labctl close {name}, then labctl {verb} {name}" if found == Phase.OPEN else ""
        raise StateError(f"campaign {name} is {found}; {verb} is for one that is {phase}{first}")


def _head_line(campaign: Campaign) -> str:
    return f"head {head_text(*campaign.journal.head())}"
