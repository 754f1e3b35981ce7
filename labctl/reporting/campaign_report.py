"""From a campaign or a table to a report folder: verify, refuse, analyse, write.

May not: write a report over a broken record, before unblinding, or over episodes of mixed kinds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.episode_facts import LinkedPairs, Practice
from labctl.analysis.family import STATISTICS
from labctl.analysis.report.lab_facts import Lab
from labctl.config.protocol_schema import AnalysisPlan, Protocol
from labctl.core.event_bodies import CampaignUnblinded
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.trial import TO_UNBLINDED
from labctl.errors import StateError
from labctl.messages.body_parts import SlotWithArm
from labctl.people.practised import practice_before, rule_of
from labctl.processes import one_beside
from labctl.reporting.anchoring import anchored
from labctl.reporting.clip_cutting import clips
from labctl.reporting.episodes_page import PAGE, page_of
from labctl.reporting.facts import by_episodes, facts, kind_of, refuse_mixed
from labctl.reporting.file_drawer import drawer_facts
from labctl.reporting.from_traces import add_measured
from labctl.reporting.interim_look import judged_at, look_notes
from labctl.reporting.judgements import judgements
from labctl.reporting.label_streams import label_facts, witnesses
from labctl.reporting.measures import stress_of
from labctl.reporting.operations_table import operations
from labctl.reporting.other_ways import Plan, Ways, counting, reviewed_alone, ways_of, ways_of_table
from labctl.reporting.policy_software import changes_of_policies
from labctl.reporting.relabellings import Exchange, relabellings
from labctl.reporting.touches import touched_by_arm
from labctl.software import collect_pins, in_words
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import Noted
from labctl.store.frozen_cards import trained_line, trained_with
from labctl.store.linking import Linked, Pairing, link_note, opened_links, pair_up
from labctl.store.read_once import ReadOnce
from labctl.store.verifying.verified import (
    JOURNAL_ALONE,
    arms_of,
    in_passing,
    protocol_of,
    samples_of,
    verified,
    verified_but,
)
from labctl.store.verifying.verify import NOTHING
from labctl.store.verifying.withheld import IN_A_LAB, Published

if TYPE_CHECKING:
    from labctl.analysis.survival.result import Margin
    from labctl.analysis.table import Row

BOOT = PERM = 9999
ALPHA = 0.05  # of a bare table


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
) -> Path:
    """Write the report of an unblinded campaign into `out`; return the path of its HTML page. labels: the stream that
    says when items were moved, one of `label_streams.STREAMS`. `say` hears each step as it begins ("2/4 …"); pairing:
    as `report_linked` has it. lost: episodes whose recordings do not hold: nothing of those is read, and the report
    names each. Their outcomes are in the journal and count. noted: what binds the record from outside its folder.
    published: what a published record leaves out, and where the report of it is read.

    Raises BrokenRecord when anything else recorded or noted does not hold, StateError before unblinding, for mixed
    kinds or for a stream of labels that nobody recorded, InputError for a recording called lost that holds.
    """
    say("1/4 the record is verified")
    with ExitStack() as at_end:
        campaign, events, missing = at_end.enter_context(verified_but(folder, lost, noted, published.withheld))
        unheard, unseen = {**missing, **published.untraced}, {**missing, **published.unseen}
        record = record_of(events)
        unblinding = opened_seal(record, folder)
        refuse_mixed(record, folder.name)
        stream = label_facts(labels, witnesses(record))
        rows = operations(record, labels=labels)
        protocol = protocol_of(campaign)
        lab = _lab(campaign, protocol, record, published.read_at or out, missing, rows, published)
        say("2/4 clips are cut")
        beside = at_end.enter_context(one_beside((folder / "traces.db").stat().st_size))
        # Without another process in a thread: coding pictures leaves the interpreter to what is worked out meanwhile.
        cutter = beside or at_end.enter_context(ThreadPoolExecutor(1))
        cutting = cutter.submit(clips, folder, lab.get("episodes", []), without=list(unseen))
        recorded = samples_of(campaign)
        at_end.callback(recorded.close)
        samples = ReadOnce(recorded)
        add_measured(lab, samples, campaign, protocol, record, unheard, rows)
        names = [arm.name for arm in protocol.arm]
        lab["labels"] = stream
        provenance = lab.setdefault("provenance", {})
        provenance.update(anchored(folder, noted, events))
        provenance.update(published.stated or drawer_facts(folder.resolve().parent.parent, record))
        links = opened_links(campaign.opened, unblinding)
        lab.setdefault("notes", []).extend(link_note(link, folder.name) for link in links)
        if pairing is not None:
            link = next(link for link in links if link.campaign == pairing.link["campaign"])
            _add_linked(lab, pairing.earlier, link, record, rows, protocol, labels)
        lab["interventions"] = touched_by_arm(record, rows, names)
        human = {arm.name for arm in protocol.arm if arm.kind == "human"}
        lab["stress"] = stress_of(campaign, samples, record, names, rows, human, unheard)
        trials = {trial for trial, arm in record.arms.items() if arm in human}
        lab["practice"] = _practice(record, trials)
        analysis, alpha = protocol.analysis, judged_at(record.state, protocol)[0]
        lab["episodes_page"] = PAGE
        beside_it = pairing.earlier if pairing else None
        page = cutter.submit(page_of, folder, published.read_at or out, lab.get("linked"), beside_it, unseen)

        def files() -> dict[str, bytes]:
            made = lab["clips"] = cutting.result()
            return {**{clip["file"]: clip.pop("data", b"") for clip in made}, **page.result()}

        sizes = (boot, perm, seed)
        if by_episodes(record.state.opened):
            say(f"3/4 the statistics are worked out ({boot} bootstrap samples, {perm} label swaps)")
            reference = terms_of(analysis, alpha, rows, unblinding["schedule"]).reference
            from labctl.analysis.episodes_table.cohort import Plan as OfEpisodes
            from labctl.reporting.measured_report import report_tasks

            plan = OfEpisodes(reference, analysis.tau_s, boot, perm, seed, alpha)
            return report_tasks(record, rows, out, folder, plan, lab, files())
        spared = any(record.spares(episode) for _, episode in record.scored)
        every = operations(record, labels=labels, all_stops=True) if spared else None
        asked = terms_of(analysis, alpha, rows, unblinding["schedule"])
        ways = ways_of(record, labels)
        return write_report(rows, out, lab, folder.name, asked, sizes, ways, files, say, every, beside)


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
) -> Path:
    """Write the report of the later of two linked campaigns, with its arms held against the earlier's through anchors.
    noted: of the later, whose first entry holds the head that the earlier had then.

    Raises what `report_campaign` and `linking.pair_up` raise, and LinkError where nothing may be compared.
    """
    pairing = pair_up(folders)
    for folder in folders:
        with in_passing(folder) as campaign:
            opened_seal(campaign.record(), folder)
    return report_campaign(
        pairing.later, out, boot=boot, perm=perm, seed=seed, labels=labels, say=say, pairing=pairing, noted=noted
    )


def _add_linked(
    lab: Lab, earlier: Path, link: Linked, record: Record, rows: Sequence[Row], protocol: Protocol, labels: str
) -> None:
    """Put the linked comparison into `lab`; what is provisional of the earlier campaign is so of this report."""
    lab["linked"], before = linked_with(earlier, link, record, rows, protocol, labels)
    given_up = before.get("abandoned", [])
    lab.setdefault("abandoned", []).extend(given_up)
    lab.setdefault("unreviewed", []).extend(before.get("unreviewed", []))
    lab.setdefault("deviations", []).extend(given_up)
    lab["provisional"] = lab.get("provisional", False) or before.get("provisional", False)
    why = before.get("provisional_why", [])
    lab.setdefault("provisional_why", []).extend(f"{link.campaign}: {reason}" for reason in why)


def linked_with(
    earlier: Path, link: Linked, later: Record, rows: Sequence[Row], protocol: Protocol, labels: str
) -> tuple[LinkedPairs, Lab]:
    """`linked.linked_pairs` of an earlier campaign and a later one (its record, rows and protocol), and the earlier's
    facts. Raises as `report_linked`.
    """
    from labctl.analysis.episodes import linked as pairs

    alpha = judged_at(later.state, protocol)[0]
    with verified_but(earlier) as (campaign, events, _):
        record = record_of(events)
        refuse_mixed(record, earlier.name)
        label_facts(labels, witnesses(record))
        before = facts(record, [], alpha=alpha, robot=campaign.cell.robot.driver)
    one = pairs.CampaignTable(link.campaign, operations(record, labels=labels), kind_of(record))
    two = pairs.CampaignTable(later.state.opened["campaign"], rows, kind_of(later))
    plan = protocol.analysis
    found = pairs.linked_pairs(one, two, link.anchors, tau=plan.tau_s, alpha=alpha, estimator=plan.estimator)
    return {**found, "head": link.head, "changed": list(link.changed)}, before


def opened_seal(record: Record, folder: Path) -> CampaignUnblinded:
    if record.unblinding is None:
        state = record.state
        raise StateError(f"campaign {folder.name} is {state.phase}; {TO_UNBLINDED[state.phase]} it first")
    return record.unblinding


def report_table(
    table: Path,
    out: Path,
    *,
    tau: float | None,
    reference: str | None,
    alpha: float = ALPHA,
    family: Sequence[str] = STATISTICS,
    boot: int = BOOT,
    perm: int = PERM,
    seed: int = 0,
    margin: Margin | None = None,
    random_factors: Sequence[str] = (),
    estimator: str,
) -> Path:
    """Write the report of a bare operations table (CSV); it claims nothing of blinding. Raises TableError."""
    from labctl.analysis import reading

    _, lines = reading.read_csv(table)
    reading.read_table(table)
    rows = [row for _, row in lines]
    asked = AnalysisTerms(tau, reference, alpha, tuple(family), {}, margin, estimator, tuple(random_factors))
    return write_report(rows, out, None, table.stem, asked, (boot, perm, seed), ways_of_table(rows))


@dataclass(frozen=True)
class AnalysisTerms:
    """What an analysis was asked for: of a campaign its protocol and its schedule say it, of a table its options."""

    tau: float | None
    reference: str | None
    alpha: float
    family: tuple[str, ...]
    design: Mapping[tuple[str, str], Sequence[Exchange]]
    margin: Margin | None
    estimator: str
    random_factors: tuple[str, ...] = ()


def terms_of(
    analysis: AnalysisPlan, alpha: float, rows: Sequence[Row], schedule: Sequence[SlotWithArm]
) -> AnalysisTerms:
    """What a protocol asks for; alpha: the level by `judged_at`, rows: of the operations table, schedule: as opened.

    Of an arm that was never scored, nothing: it is no reference, and no other is held against it.
    """
    scored = {row["arm"] for row in rows}
    reference = analysis.reference if analysis.reference in scored else None
    margin: Margin | None = None
    if (margin_of := analysis.margin) is not None and (
        margin_of.non_inferior_to is None or margin_of.non_inferior_to in scored
    ):
        margin = {"rmst_ratio": margin_of.rmst_ratio, "non_inferior_to": margin_of.non_inferior_to}
    design, further = relabellings(schedule), analysis.random_factors
    return AnalysisTerms(analysis.tau_s, reference, alpha, analysis.family, design, margin, analysis.estimator, further)


def write_report(
    rows: Sequence[Row],
    out: Path,
    lab: Lab | None,
    title: str,
    asked: AnalysisTerms,
    sizes: tuple[int, int, int],
    ways: Ways,
    files: Callable[[], Mapping[str, bytes]] = dict,
    say: Callable[[str], None] = lambda line: None,
    every: Sequence[Row] | None = None,
    beside: Executor | None = None,
) -> Path:
    """Analyse rows and write their page. files: asked for when all is drawn. every: the rows with each stop by hand
    counted, where some are not: the verdict is repeated on them. beside: as `build_report` has it.
    """
    from labctl.analysis.episodes.random_factors import anew
    from labctl.analysis.episodes.supplement import supplement
    from labctl.analysis.operations_table.analyze import analyze
    from labctl.analysis.report.page import build_report
    from labctl.analysis.table import table_from_rows

    boot, perm, seed = sizes
    twice = "" if every is None else ", and again with every stop by hand counted"
    say(f"3/4 the statistics are worked out ({boot} bootstrap samples, {perm} label swaps){twice}")
    table = table_from_rows(rows, source=title)
    plan: Plan = {
        "tau": asked.tau,
        "reference": asked.reference,
        "alpha": asked.alpha,
        "family": asked.family,
        "design": asked.design,
        "margin": asked.margin,
        "estimator": asked.estimator,
        "boot": boot,
        "perm": perm,
        "seed": seed,
    }
    result = analyze(table, **plan)
    if asked.random_factors:
        result["anew"] = anew(table, result, asked.random_factors)
    if every is not None and lab and (stops := lab.get("stops")):
        again = analyze(table_from_rows(every, source=title), **plan)
        stops["repeated"] = {"arms": again["arms"], "pairs": again["pairs"]}
    if lab and (alone := reviewed_alone(ways, rows, plan)):
        lab["reviewed"] = alone
    other_ways = counting(ways, result, plan)
    more = supplement(table, result, perm=perm, design=asked.design)
    say("4/4 figures and pages are written")
    given = {"supplement": more, "counting": other_ways, "beside": beside, "made_by": in_words(collect_pins())}
    report = build_report(result, rows, out, files=files, title=title, lab=lab, **given)
    return report.html


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
    lab["judgements"] = judgements(record, arms)
    trained = trained_with(protocol, campaign.fixture, arms_of(campaign))
    lab["trained"] = [{"condition": condition, "arm": arm} for condition, arm in trained]
    lab.setdefault("notes", []).extend(trained_line(*one) for one in trained)
    deviations = lab.setdefault("deviations", [])
    if look and look.startswith("not a planned look"):
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
        return _practice(shown.campaign.record(), ())


def _practice(record: Record, human: Collection[str]) -> Practice:
    """What teleoperators practised before the reference, and whether they reached the plateau. human: its trials."""
    from labctl.analysis.episodes import operators

    entries = practice_before(record, human)
    rule = rule_of(record.state.opened)
    found = operators.practised(entries, last=rule["last"], within=rule["within"])
    return {"rule": rule, "people": found}
