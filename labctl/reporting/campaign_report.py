"""From a campaign or a table to a report folder: verify, refuse, analyse, write.

May not: write a report over a broken record, before unblinding, or over episodes of mixed kinds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.episode_facts import LinkedPairs, Practice
from labctl.analysis.report.lab_facts import Lab
from labctl.config.protocol_schema import Protocol
from labctl.core.event_bodies import CampaignUnblinded
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.trial import TO_UNBLINDED
from labctl.errors import StateError
from labctl.processes import one_beside
from labctl.reporting.clips.cutting import Cutting, planned
from labctl.reporting.episodes_page import PAGE, page_of
from labctl.reporting.facts import by_episodes, facts, kind_of, refuse_mixed
from labctl.reporting.file_drawer import drawer_facts
from labctl.reporting.from_traces import Early, add_measured
from labctl.reporting.interim_look import OFF_PLAN, judged_at, look_notes
from labctl.reporting.judgements import judgements
from labctl.reporting.label_streams import label_facts, witnesses
from labctl.reporting.operations_table import operations, recorded, that_count
from labctl.reporting.other_ways import ways_of
from labctl.reporting.policy_software import changes_of_policies
from labctl.reporting.practice import human_trials, practice
from labctl.reporting.rows_report import BOOT, PERM, plan_of, write_report
from labctl.reporting.touches import touched_by_arm
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import Noted, outside
from labctl.store.frozen_cards import trained_line, trained_with
from labctl.store.linking import Linked, Pairing, link_note, not_the_same, opened_links, pair_up, unlike
from labctl.store.read_once import ReadOnce
from labctl.store.verifying.timestamps import dated
from labctl.store.verifying.verified import (
    JOURNAL_ALONE,
    arms_of,
    in_passing,
    protocol_of,
    samples_of,
    treatments_of,
    verified,
    verified_but,
)
from labctl.store.verifying.verify import NOTHING
from labctl.store.verifying.withheld import IN_A_LAB, NOTHING_WITHHELD, Published, Withheld

if TYPE_CHECKING:
    from labctl.analysis.table import Row


def report_campaign(
    folder: Path,
    out: Path,
    *,
    boot: int = BOOT,
    perm: int = PERM,
    seed: int = 0,
    labels: str = "best",
    say: Callable[[str], None] = lambda line: None,
    pairing: Pairing | None = None,
    lost: Collection[str] = (),
    noted: Noted = NOTHING,
    published: Published = IN_A_LAB,
    beside: Executor | None = None,
) -> Path:
    """Write the report of an unblinded campaign into `out`; return the path of its HTML page. labels: the stream that
    says when items were moved, one of `label_streams.STREAMS`. `say` hears each step as it begins ("2/4 …"); pairing:
    as `report_linked` has it. lost: episodes whose recordings do not hold: nothing of those is read, and the report
    names each. Their outcomes are in the journal and count. noted: what binds the record from outside its folder.
    published: what a published record leaves out, and where the report of it is read. beside: a process to cut clips
    and draw figures, which whoever waits for this has begun already; None: one is begun here.

    Raises BrokenRecord when anything else recorded or noted does not hold, StateError before unblinding, for mixed
    kinds or for a stream of labels that nobody recorded, InputError for a recording called lost that holds.
    """
    say("1/4 verifying the record")
    early = Early()
    with ExitStack() as at_end:
        read = verified_but(folder, lost, noted, published.withheld, early.seen)
        campaign, events, missing = at_end.enter_context(read)
        unheard, unseen = {**missing, **published.untraced}, {**missing, **published.unseen}
        record = early.record(events)
        unblinding = opened_seal(record, folder)
        refuse_mixed(record, folder.name)
        stream = label_facts(labels, witnesses(record))
        made = recorded(record, labels=labels)
        rows = that_count(made, record)
        protocol = protocol_of(campaign)
        lab = _lab(campaign, protocol, record, published.read_at or out, missing, rows, published)
        say("2/4 cutting clips")
        beside = beside or at_end.enter_context(one_beside((folder / "traces.db").stat().st_size))
        # Without another process in a thread: coding pictures leaves the interpreter to what is worked out meanwhile.
        cutter = beside or at_end.enter_context(ThreadPoolExecutor(1))
        traces = samples_of(campaign, held=True)
        at_end.callback(traces.close)
        chosen = planned(campaign, record, traces, lab.get("episodes", []), without=unseen)
        cutting = Cutting(chosen, cutter, shared=beside is not None)
        given = {"boot": boot, "seed": seed, "early": early}
        measure = add_measured(lab, ReadOnce(traces), campaign, protocol, record, unheard, rows, **given)
        names = [arm.name for arm in protocol.arm]
        lab["labels"] = stream
        provenance = lab.setdefault("provenance", {})
        provenance["anchored to"] = str(outside(noted, events))
        if stamps := dated(folder, events).facts:
            provenance["timestamps"] = "; ".join(stamps)
        provenance.update(published.stated or drawer_facts(folder.resolve().parent.parent, record))
        links = opened_links(campaign.opened, unblinding)
        lab.setdefault("notes", []).extend(link_note(link, folder.name) for link in links)
        if pairing is not None:
            link = next(link for link in links if link.campaign == pairing.link["campaign"])
            _add_linked(lab, pairing.earlier, link, record, rows, protocol, labels, published.earlier)
            _add_not_the_same(lab, link, pairing.earlier, campaign)
        lab["interventions"] = touched_by_arm([record], rows, names)
        lab["practice"] = practice([(record, human_trials(record, protocol))])
        analysis, alpha = protocol.analysis, judged_at(record.state, protocol)[0]
        lab["episodes_page"] = PAGE
        of = [*([pairing.earlier] if pairing else []), folder]
        without = {folder: unseen} | ({pairing.earlier: published.earlier_unseen} if pairing else {})
        page = partial(page_of, of, published.read_at or out, lab.get("linked"), without)
        tasks = by_episodes(record.state.opened)
        if tasks:  # whose figures are drawn here
            page = cutter.submit(page).result
        else:
            page = partial(page, known={folder: events})

        def files() -> dict[str, bytes]:
            """What is read from recordings."""
            cutting.go_on()  # behind the figures, which are asked for by now
            measure()
            episodes = page()
            cut = lab["clips"] = cutting.done()
            return {**{clip["file"]: clip.pop("data", b"") for clip in cut}, **episodes}

        plan = plan_of(analysis, alpha, rows, unblinding["schedule"], (boot, perm, seed))
        if tasks:
            say(f"3/4 working out the statistics ({boot} bootstrap samples, {perm} label swaps)")
            from labctl.analysis.episodes_table.cohort import Plan as OfEpisodes
            from labctl.reporting.measured_report import report_tasks

            of_episodes = OfEpisodes(plan["reference"], analysis.tau_s, boot, perm, seed, alpha)
            return report_tasks(record, rows, out, folder, of_episodes, lab, files())
        spared = any(record.spares(episode) for _, episode in record.scored)
        every = operations(record, labels=labels, all_stops=True) if spared else None
        further, ways = analysis.random_factors, ways_of([record], made)
        return write_report(rows, out, lab, folder.name, plan, ways, further, files, say, every, beside)


def report_linked(
    folders: Sequence[Path],
    out: Path,
    *,
    boot: int = BOOT,
    perm: int = PERM,
    seed: int = 0,
    labels: str = "best",
    say: Callable[[str], None] = lambda line: None,
    noted: Noted = NOTHING,
    beside: Executor | None = None,
) -> Path:
    """Write the report of the later of two linked campaigns, with its arms held against the earlier's through anchors.
    noted: of the later, whose first entry holds the head that the earlier had then. beside: as `report_campaign`.

    Raises what `report_campaign` and `linking.pair_up` raise, and LinkError where nothing may be compared.
    """
    pairing = pair_up(folders)
    for folder in folders:
        with in_passing(folder) as campaign:
            opened_seal(campaign.record(), folder)
    given = {"boot": boot, "perm": perm, "seed": seed, "labels": labels, "say": say, "noted": noted}
    return report_campaign(pairing.later, out, pairing=pairing, beside=beside, **given)


def _add_linked(
    lab: Lab,
    earlier: Path,
    link: Linked,
    record: Record,
    rows: Sequence[Row],
    protocol: Protocol,
    labels: str,
    withheld: Withheld,
) -> None:
    """Put the linked comparison into `lab`; what is provisional of the earlier campaign is so of this report."""
    lab["linked"], before = linked_with(earlier, link, record, rows, protocol, labels, withheld)
    given_up = before.get("abandoned", [])
    lab.setdefault("abandoned", []).extend(given_up)
    lab.setdefault("unreviewed", []).extend(before.get("unreviewed", []))
    lab.setdefault("deviations", []).extend(given_up)
    lab["provisional"] = lab.get("provisional", False) or before.get("provisional", False)
    why = before.get("provisional_why", [])
    lab.setdefault("provisional_why", []).extend(f"{link.campaign}: {reason}" for reason in why)


def _add_not_the_same(lab: Lab, link: Linked, earlier: Path, later: Campaign) -> None:
    """Name anchors in `lab` that are no anchors by the two records."""
    before, now = treatments_of(in_passing(earlier)), treatments_of(later)
    found = not_the_same(link, later.opened["campaign"], before, now)
    linked = lab.get("linked")
    if linked is not None and found:
        linked["warnings"] = [*found.values(), *linked["warnings"]]
        linked["changed"] = [*linked.get("changed", ()), *found]  # no digest says that they are the same


def linked_with(
    earlier: Path,
    link: Linked,
    later: Record,
    rows: Sequence[Row],
    protocol: Protocol,
    labels: str,
    withheld: Withheld = NOTHING_WITHHELD,
) -> tuple[LinkedPairs, Lab]:
    """`linked.linked_pairs` of an earlier campaign and a later one (its record, rows and protocol), and the earlier's
    facts. withheld: of the earlier, where it was published. Raises as `report_linked`.
    """
    from labctl.analysis.episodes import linked as pairs

    alpha = judged_at(later.state, protocol)[0]
    with verified_but(earlier, withheld=withheld) as (campaign, events, _):
        record = record_of(events)
        refuse_mixed(record, earlier.name)
        label_facts(labels, witnesses(record))
        earlier_rows = operations(record, labels=labels)
        before = facts(record, [], alpha=alpha, robot=campaign.cell.robot.driver, rows=earlier_rows)
    one = pairs.CampaignTable(link.campaign, earlier_rows, kind_of(record))
    two = pairs.CampaignTable(later.state.opened["campaign"], rows, kind_of(later))
    plan = protocol.analysis
    found = pairs.linked_pairs(one, two, link.anchors, tau=plan.tau_s, alpha=alpha, estimator=plan.estimator)
    warnings = [*unlike(record.state.opened, later.state.opened), *found["warnings"]]
    return {**found, "warnings": warnings, "head": link.head, "changed": list(link.changed)}, before


def opened_seal(record: Record, folder: Path) -> CampaignUnblinded:
    if record.unblinding is None:
        state = record.state
        raise StateError(f"campaign {folder.name} is {state.phase}; {TO_UNBLINDED[state.phase]} it first")
    return record.unblinding


def _lab(
    campaign: Campaign,
    protocol: Protocol,
    record: Record,
    out: Path,
    lost: Mapping[str, str],
    rows: Sequence[Row],
    published: Published,
) -> Lab:
    arms = [arm.name for arm in protocol.arm]
    alpha, look = judged_at(record.state, protocol)
    lab = facts(record, arms, alpha=alpha, robot=campaign.cell.robot.driver, rows=rows)
    lab["look"], lab["notes"] = look, look_notes(record, look, alpha)
    lab["judgements"] = judgements([record], arms)
    trained = trained_with(protocol, campaign.fixture, arms_of(campaign))
    lab["trained"] = [{"condition": condition, "arm": arm} for condition, arm in trained]
    lab.setdefault("notes", []).extend(trained_line(*one) for one in trained)
    deviations = lab.setdefault("deviations", [])
    if look and look.startswith(OFF_PLAN):
        deviations.insert(0, look)
    deviations += changes_of_policies(record, arms)
    deviations += [f"episode {name}: its recording is lost and left out: {why}" for name, why in lost.items()]
    lab.setdefault("notes", []).extend(published.lines())
    for episode in lab.get("episodes", []):
        if not published.linked or episode["episode"] in lost or episode["episode"] in published.unseen:
            episode["video"] = []
        episode["video"] = [os.path.relpath(campaign.folder / video, out.resolve()) for video in episode["video"]]
    return lab


def practised(folder: Path) -> Practice:
    """Everything that was practised beside a campaign, and who is at the plateau. Raises BrokenRecord
    for a journal that does not hold.
    """
    with verified(folder, JOURNAL_ALONE) as shown:
        return practice([(shown.campaign.record(), ())])
