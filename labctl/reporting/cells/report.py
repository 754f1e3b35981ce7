"""One report of a campaign in several cells, from the folder of each: rows put under each other, facts put together.

May not: mix campaigns that do not share a sealed schedule, or kinds of cell; verify or analyse otherwise than the
report of one campaign does.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from labctl.analysis.report.judged_facts import Judgements
from labctl.analysis.report.lab_facts import OTHER_LAB, Clip, EpisodeEntry, Lab
from labctl.config.protocol_schema import Protocol
from labctl.core.event_bodies import CampaignUnblinded
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.errors import InputError, StateError
from labctl.messages.joint import JointPart
from labctl.plain import count
from labctl.reporting.campaign_report import opened_seal
from labctl.reporting.cells.counts import (
    disputed_of,
    flow_of,
    hours_of,
    own_people,
    part_name,
    practice_of,
    session_name,
    stops_of,
)
from labctl.reporting.cells.measured import answer_times_of, sensors_of, stress_of
from labctl.reporting.cells.stated import EARLY, OPENED, opened_beside, stated
from labctl.reporting.clips.cutting import clips
from labctl.reporting.episodes_page import PAGE, page_of
from labctl.reporting.facts import by_episodes, facts, kind_of, refuse_mixed, voids_as_failures
from labctl.reporting.from_traces import Early, add_measured
from labctl.reporting.judgements import judgements
from labctl.reporting.label_streams import label_facts, witnesses
from labctl.reporting.operations_table import Row, operations, recorded, that_count
from labctl.reporting.other_ways import ways_of
from labctl.reporting.policy_software import changes_of_policies
from labctl.reporting.practice import human_trials, practice
from labctl.reporting.relabellings import Exchange, relabellings
from labctl.reporting.rows_report import BOOT, PERM, plan_of, write_report
from labctl.reporting.touches import touched_by_arm
from labctl.store.chain_heads import outside
from labctl.store.frozen_cards import trained_line, trained_with
from labctl.store.lab_folder import lab_with
from labctl.store.read_once import ReadOnce
from labctl.store.verifying.timestamps import dated
from labctl.store.verifying.verified import arms_of, protocol_of, samples_of, verified_but
from labctl.store.verifying.verify import NOTHING
from labctl.store.verifying.withheld import IN_A_LAB, Published

ELSEWHERE = "its pictures are in the publication of its cell"


@dataclass(frozen=True)
class _Part:
    """One folder: what is read of it while it is open."""

    folder: Path
    joint: JointPart
    record: Record
    unblinding: CampaignUnblinded
    protocol: Protocol
    made: Sequence[Row]  # as recorded, void ones too
    rows: Sequence[Row]  # those that count
    lab: Lab
    stated: Mapping[str, Mapping[str, str]]  # on its lab's word
    published: Published

    @property
    def early(self) -> list[str]:
        """Who scored before passing the calibration, a line each."""
        return [line for _, line in sorted(self.stated.get(EARLY, {}).items())]

    @property
    def name(self) -> str:
        return self.folder.name


def report_cells(
    folders: Sequence[Path],
    out: Path,
    *,
    boot: int = BOOT,
    perm: int = PERM,
    seed: int = 0,
    labels: str = "best",
    say: Callable[[str], None] = lambda line: None,
    published: Mapping[Path, Published] = MappingProxyType({}),
) -> Path:
    """Write the report of a joint campaign's parts into `out`; return the path of its page. A part that is not among
    them is named in it, with the blocks that are missing; in which order the folders are given is of no account.
    published: what published parts leave out, by their folders; where they are not linked, the report's page of
    episodes leads to no picture.

    Raises what `report_campaign` raises, InputError for folders of different joint campaigns, StateError for tasks that
    are not counted in items.
    """
    say(f"1/4 verifying {count(len(folders), 'record')}")
    draws = {"boot": boot, "seed": seed}
    parts = [_read(folder, labels, published.get(folder, IN_A_LAB), **draws) for folder in folders]
    _refuse_strangers(parts)
    parts.sort(key=lambda part: (list(part.joint["cells"]).index(part.joint["cell"]), part.joint["part"]))
    folders = [part.folder for part in parts]
    rows = [row for part in parts for row in own_people(part.rows, part.joint)]
    records, first = [part.record for part in parts], parts[0]
    analysis = first.protocol.analysis
    plan = plan_of(analysis, analysis.alpha, rows, (), (boot, perm, seed))
    plan["design"] = _design(parts)
    title = first.joint["name"]
    say("2/4 cutting clips")
    lab = joined(parts)
    lab["clips"] = _clips(parts)
    cut = {clip["file"]: clip.pop("data", b"") for clip in lab["clips"]}
    lab["episodes"], lab["episodes_page"] = _episodes(parts, out), PAGE
    without = {part.folder: _unseen(part) for part in parts}
    made = [row for part in parts for row in own_people(part.made, part.joint)]
    ways, factors = ways_of(records, made), analysis.random_factors
    spared = any(record.spares(episode) for record in records for _, episode in record.scored)
    every = _with_all_stops(parts, labels) if spared else None

    def files() -> dict[str, bytes]:
        return {**cut, **page_of(folders, out, without=without)}

    return write_report(rows, out, lab, title, plan, ways, factors, files, say, every)


def _with_all_stops(parts: Sequence[_Part], labels: str) -> list[Row]:
    """The rows of all cells where whatever stopped an episode counts."""
    found = ((part.joint, operations(part.record, labels=labels, all_stops=True)) for part in parts)
    return [row for joint, rows in found for row in own_people(rows, joint)]


def _clips(parts: Sequence[_Part]) -> list[Clip]:
    """Clips of episodes that are chosen among those of all cells; each is cut where it was recorded."""
    every = [entry for part in parts for entry in part.lab.get("episodes", [])]
    found: list[Clip] = []
    for part in parts:
        others = [entry["episode"] for entry in every if entry["episode"] not in part.record.episodes]
        found += clips(part.folder, every, without={*others, *part.published.unseen})
    return sorted(found, key=lambda clip: clip["file"])  # its number is that of the choice


def _episodes(parts: Sequence[_Part], out: Path) -> list[EpisodeEntry]:
    """The scored episodes of all cells, each with its cell and where its videos lie as seen from the report; where they
    lie in several labs, with a command that asks for the cell's: which folder that is, a page does not know.
    """
    found: list[EpisodeEntry] = []
    several = len({lab_with(part.folder) or part.folder for part in parts}) > 1
    for part in parts:
        unseen = _unseen(part)
        for entry in part.lab.get("episodes", []):
            there = [] if entry["episode"] in unseen else entry["video"]
            video = [os.path.relpath(part.folder / name, out.resolve()) for name in there]
            command = f"{entry['rrd_command']} {OTHER_LAB}" if several else entry["rrd_command"]
            found.append({**entry, "cell": part.joint["cell"], "video": video, "rrd_command": command})
    return found


def _unseen(part: _Part) -> Mapping[str, str]:
    """Why the pictures of episodes are not beside the report."""
    if part.published.linked:
        return part.published.unseen
    filmed = [name for name, episode in part.record.episodes.items() if episode.videos]
    return {**dict.fromkeys(filmed, ELSEWHERE), **part.published.unseen}


def _design(parts: Sequence[_Part]) -> dict[tuple[str, str], list[Exchange]]:
    """The relabellings that the schedule could have drawn: squares are those of the cell that they were drawn for,
    which its first part names, wherever a block was run. Empty where one cell's cannot be reconstructed.
    """
    found: dict[tuple[str, str], list[Exchange]] = {}
    for part in parts:
        if part.joint["part"] == 1:
            own = relabellings(part.unblinding["schedule"])
            if not own:
                return {}
            for pair, exchanges in own.items():
                found.setdefault(pair, []).extend(exchanges)
    return found


def _read(folder: Path, labels: str, published: Published, *, boot: int, seed: int) -> _Part:
    early = Early()
    with verified_but(folder, withheld=published.withheld, seen=early.seen) as (campaign, events, _):
        record = record_of(events)
        unblinding = opened_seal(record, folder)
        joint = campaign.opened.get("joint")
        if joint is None:
            raise InputError(f"{folder.name} is no part of a joint campaign; report it by itself")
        if by_episodes(campaign.opened):
            raise StateError(
                f"{folder.name} has tasks that are not counted in items: export each cell's table (labctl export "
                f"{folder.name} --to episodes), put them under each other and report that table; it has a column cell"
            )
        refuse_mixed(record, folder.name)
        stream = label_facts(labels, witnesses(record))
        protocol = protocol_of(campaign)
        made = recorded(record, labels=labels)
        rows = that_count(made, record)
        names = [arm.name for arm in protocol.arm]
        lab = facts(record, names, alpha=protocol.analysis.alpha, robot=campaign.cell.robot.driver, rows=rows)
        lab.setdefault("deviations", []).extend(changes_of_policies(record, names))
        provenance = lab.setdefault("provenance", {})
        provenance["labels"] = f"{stream['stream']}: {stream['text']}"
        trained = trained_with(protocol, campaign.fixture, arms_of(campaign))
        lab["trained"] = [{"condition": condition, "arm": arm} for condition, arm in trained]
        with closing(samples_of(campaign, held=True)) as traces:
            about = (lab, ReadOnce(traces), campaign, protocol, record, published.untraced, rows)
            add_measured(*about, boot=boot, seed=seed, early=early)()
        provenance["anchored to"] = str(outside(NOTHING, events))
        if stamps := dated(folder, events).facts:
            provenance["timestamps"] = "; ".join(stamps)
    said = published.stated or stated(folder, record)
    return _Part(folder, joint, record, unblinding, protocol, made, rows, lab, said, published)


def _refuse_strangers(parts: Sequence[_Part]) -> None:
    first = parts[0]
    seen: dict[tuple[str, int], str] = {}
    for part in parts:
        if part.joint["commitment"] != first.joint["commitment"]:
            raise InputError(f"{first.name} and {part.name} are of different joint campaigns; they are never pooled")
        if kind_of(part.record) != kind_of(first.record):
            kinds = f"{first.name} is {kind_of(first.record)} and {part.name} is {kind_of(part.record)}"
            raise StateError(f"{kinds}; cells of different kinds are never pooled")
        key = part.joint["cell"], part.joint["part"]
        if key in seen:
            raise InputError(f"{seen[key]} and {part.name} are both part {key[1]} of cell {key[0]}; name one of them")
        seen[key] = part.name


def joined(parts: Sequence[_Part]) -> Lab:
    """The facts of all cells as those of one report; what is said of one cell begins with its name."""
    first, labs, records = parts[0], [part.lab for part in parts], [part.record for part in parts]
    rows, arms = [row for part in parts for row in part.rows], [arm.name for arm in first.protocol.arm]
    cells = [part.joint["cell"] for part in parts]
    own = [(part_name(part.joint), part.lab) for part in parts]
    names = list(dict.fromkeys(cells))
    blinding = [(c, one["blinding"]) for c, one in zip(cells, labs, strict=True) if "blinding" in one]
    early = [f"{cell}: {why}" for cell, one in blinding if (why := one["early_unblinding"])]
    opened = [wall for one in labs if (wall := one.get("opened_wall"))]
    closed = [wall for one in labs if (wall := one.get("closed_wall"))]
    lab: Lab = {
        "campaign": first.joint["name"],
        "question": first.lab.get("question", ""),
        "phase": ", ".join(dict.fromkeys(one.get("phase", "") for one in labs)),
        "alpha": first.protocol.analysis.alpha,
        "provisional": any(one.get("provisional") for one in labs) or any(part.early for part in parts),
        "provisional_why": _each(cells, [[*p.lab.get("provisional_why", ()), *p.early] for p in parts]),
        "unreviewed": _each(cells, [one.get("unreviewed", ()) for one in labs]),
        "kind": kind_of(first.record),
        "cell": ", ".join(names),
        "robot": ", ".join(dict.fromkeys(one.get("robot", "") for one in labs)),
        "commitment": first.joint["commitment"],
        "head": ", ".join(f"{c} {one.get('head')}" for c, one in zip(cells, labs, strict=True)),
        "opened_wall": min(opened, default=None),
        "closed_wall": max(closed, default=None),
        "sessions": [
            {**session, "session": session_name(str(session["session"]), part.joint)}
            for part in parts
            for session in part.lab.get("sessions", ())
        ],
        "flow": flow_of([one["flow"] for one in labs if "flow" in one]),
        "abandoned": _each(cells, [one.get("abandoned", ()) for one in labs]),
        "deviations": [
            *_missing(parts),
            *_each(cells, [[*p.early, *p.lab.get("deviations", ())] for p in parts]),
        ],
        "blinding": {
            "deducible_share": max(one["deducible_share"] for _, one in blinding),
            "shared_uid": any(one["shared_uid"] for _, one in blinding),
            "early_unblinding": "; ".join(early) or None,
            "statement": blinding[0][1]["statement"],
        },
        "void_as_failure": voids_as_failures(records, arms, rows),
        "disputed": disputed_of([one["disputed"] for one in labs if "disputed" in one]),
        "stops": stops_of([one.get("stops") for one in labs]),
        "interventions": touched_by_arm(records, rows, arms),
        "hours": hours_of(first.joint["name"], [(p.joint, p.lab["hours"]) for p in parts if "hours" in p.lab]),
        "practice": practice_of(
            {
                cell: practice([(part.record, human_trials(part.record, part.protocol)) for part in own])
                for cell, own in _by_cell(parts).items()
            }
        ),
        "judgements": _judgements(parts, arms),
        "answer_times": answer_times_of(own),
        "sensors": sensors_of(own),
        "trained": first.lab.get("trained", []),
        "provenance": _provenance(parts),
        "notes": [
            *(trained_line(one["condition"], one["arm"]) for one in first.lab.get("trained", ())),
            *_each(cells, [part.published.lines() for part in parts]),
            f"One campaign in {count(len(names), 'cell')} ({', '.join(names)}) under one sealed schedule; "
            "each cell has a chain of its own, and each was verified by itself. They are held against the seal host, "
            f"there, by: labctl joint verify {shlex.quote(first.joint['name'])}",
        ],
    }
    if then := {name: one["historical"] for name, one in own if "historical" in one}:
        lab["historical_by_cell"] = then
    if (stress := stress_of(own)) is not None:
        lab["stress"] = stress
    return lab


def _provenance(parts: Sequence[_Part]) -> dict[str, str | Mapping[str, str] | None]:
    """Each part's, by its name, with what its lab opened beside it."""
    records = [part.record for part in parts]
    found: dict[str, str | Mapping[str, str] | None] = {}
    for part in parts:
        opened = opened_beside(part.stated, records)
        own = {**part.lab.get("provenance", {}), **({OPENED: opened} if opened else {})}
        found |= {f"{part_name(part.joint)}: {key}": value for key, value in own.items()}
    return found


def _by_cell(parts: Sequence[_Part]) -> dict[str, list[_Part]]:
    found: dict[str, list[_Part]] = {}
    for part in parts:
        found.setdefault(part.joint["cell"], []).append(part)
    return found


def _judgements(parts: Sequence[_Part], arms: Sequence[str]) -> Judgements:
    """Of all cells as one list, and of each by itself."""
    by_cell = {cell: judgements([part.record for part in own], arms) for cell, own in _by_cell(parts).items()}
    return {**judgements([part.record for part in parts], arms), "by_cell": by_cell}


def _missing(parts: Sequence[_Part]) -> list[str]:
    """Cells of the joint campaign that are not in this report, and blocks that nobody completed."""
    first = parts[0].joint
    there = {part.joint["cell"] for part in parts}
    lines = [f"cell {name} of this campaign is not in this report" for name in first["cells"] if name not in there]
    scored: dict[int, set[str]] = {}
    of_block: dict[int, set[str]] = {}
    by_cell: dict[str, set[int]] = {name: set() for name in first["cells"]}
    for part in parts:
        counted = {trial.id for trial, _ in part.record.scored}
        for slot in part.unblinding["schedule"]:
            block = int(slot.get("block", -1))
            of_block.setdefault(block, set()).add(slot["trial"])
            if slot["trial"] in counted:
                scored.setdefault(block, set()).add(slot["trial"])
                by_cell[part.joint["cell"]].add(block)
    if begun := sorted(b for b, done in scored.items() if done != of_block[b]):
        names = ", ".join(map(str, begun))
        lines.append(f"blocks {names} are not complete: no block is completed on another rig")
    counts = {name: len(blocks) for name, blocks in by_cell.items() if name in there}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{name} {n}" for name, n in counts.items())
        lines.append(f"cells ran unequal numbers of blocks: {each}; cells count alike in every number all the same")
    return lines


def _each(cells: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [f"{cell}: {line}" for cell, own in zip(cells, lines, strict=True) for line in own]
