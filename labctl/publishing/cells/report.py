"""The one report of a joint campaign from its published parts, and the seal host's record published with that report.

May not: take a number from a folder that its record does not give, or call a report the published one that was made of
other parts.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labctl.core.event_bodies import body_of
from labctl.errors import BrokenRecord, InputError, ReportError, StateError
from labctl.joint.checking import verify_joint
from labctl.joint.state import JointKind, JointOpened
from labctl.plain import count
from labctl.publishing.again import Again, held_against
from labctl.publishing.cards import licence_lines, plain
from labctl.publishing.cells.check import Together, check_together
from labctl.publishing.cells.seal_record import (
    ENTRIES,
    JointManifest,
    PartListed,
    is_seal_record,
    lines_of,
)
from labctl.publishing.check import reading_a_strangers
from labctl.publishing.manifest import ReportMade, by_episode, manifest_bytes, withheld_of
from labctl.publishing.publish import TITLE, Request, checked, files_of_folder, in_zone, to_disk
from labctl.publishing.versions import versions
from labctl.reporting.cells.report import report_cells
from labctl.store.atomic_files import folder_in_one_step, replace_file
from labctl.store.chain_heads import head_text
from labctl.store.database_backend import PUBLISHED
from labctl.store.footage import file_digest
from labctl.store.journal import events_of
from labctl.store.verifying.withheld import Published


@dataclass(frozen=True, slots=True)
class JointMade:
    """What `labctl joint publish` made. digest: sha256 hex of the manifest; missing: what is not in its report."""

    folder: Path
    manifest: JointManifest
    digest: str
    missing: Sequence[str]


@dataclass(frozen=True, slots=True)
class JointAgain:
    """A joint report from published parts. again: how it compares with the published one, None where that cannot be
    said, and why; missing: cells and blocks that are not in it; notes: what else is to be said.
    """

    page: Path
    together: Together
    again: Again | None
    why: str
    notes: Sequence[str]


def refuse_unless_together(folders: Sequence[Path], say: Callable[[str], None] = lambda line: None) -> Together:
    """Published parts that hold, each and together. Raises BrokenRecord naming the first problem, and as
    `check_together`.
    """
    found = check_together(folders, say=say)
    for part in found.parts:
        if part.checked.problems:
            look = f"labctl verify {shlex.quote(str(part.folder))}"
            text = f"{part.checked.problems[0]}; nothing is shown of it; see: {look}"
            raise BrokenRecord(f"{part.name}: {text}")
    if found.problems:
        all_ = shlex.join(map(str, folders))
        raise BrokenRecord(f"{found.problems[0]}; nothing is shown of it; see: labctl verify {all_}")
    return found


def joint_report(
    together: Together, out: Path, say: Callable[[str], None] = lambda line: None, *, linked: bool = True
) -> Path:
    """Write the report of parts that hold. Numbers of draws, seed and zone are those of the seal host's manifest, or
    else of the first part's; linked: whether it leads to the videos in the parts' folders.
    """
    if not together.parts:
        raise InputError(f"{together.sealed.folder} is the seal host's record alone; name published parts beside it")
    asked = _asked(together)
    published: dict[Path, Published] = {}
    for part in together.parts:
        manifest, record = part.checked.admitted.manifest, part.checked.admitted.record
        samples, pictures = by_episode(manifest.withheld)
        held, unseen = withheld_of(manifest.withheld), {**pictures, **samples}
        published[record] = Published(held, samples, unseen, manifest.stated or {"": {}}, None, linked)
    with reading_a_strangers(together.parts[0].folder), in_zone(asked.timezone):
        more = {"boot": asked.boot, "perm": asked.perm, "seed": asked.seed, "labels": asked.labels}
        return report_cells(list(published), out, say=say, published=published, **more)


def report_together(
    folders: Sequence[Path], out: Path, say: Callable[[str], None] = lambda line: None, *, linked: bool = True
) -> JointAgain:
    """Verify published parts of one joint campaign and write their one report into `out`. With the seal host's record
    and every part that its report is of, it is held against that report; it then leads to no file elsewhere, nor
    unless `linked`.

    Raises as `refuse_unless_together`, ReportError for an `out` in one of the folders.
    """
    for folder in folders:
        if out.resolve().is_relative_to(folder.resolve()):
            raise ReportError(f"--out {out} lies in a published folder, which nobody changes; give another")
    together = refuse_unless_together(folders)
    seal = together.seal
    page = joint_report(together, out, say, linked=linked and seal is None)
    if seal is None:
        why = "not held against a published one: the seal host's record, which has it, is not among the folders"
        return JointAgain(page, together, None, why, _draws(together))
    here = {(one.name, one.checked.admitted.digest) for one in together.parts}
    listed = {(one.campaign, one.manifest) for one in seal.manifest.parts}
    if here != listed:
        away = ", ".join(sorted(name for name, _ in listed - here))
        more = ", ".join(sorted(name for name, _ in here - listed))
        why = f"it is of {away}, as published then, which is not here" if away else f"{more} was not in it"
        return JointAgain(page, together, None, f"not held against the published one: {why}", ())
    again = held_against(seal.folder, seal.manifest.files, seal.manifest.versions, page)
    return JointAgain(page, together, again, "", ())


def _asked(together: Together) -> ReportMade:
    return (
        together.parts[0].checked.admitted.manifest.report if together.seal is None else together.seal.manifest.report
    )


def _draws(together: Together) -> list[str]:
    """What is to be said where the parts' own reports were made with different numbers of draws."""
    first = _asked(together)
    others = [one.name for one in together.parts if one.checked.admitted.manifest.report != first]
    if not others:
        return []
    text = f"made with {first.boot} bootstrap samples, {first.perm} label swaps, seed {first.seed}, as the report of"
    return [f"{text} {together.parts[0].name} was; that of {', '.join(others)} has others"]


def publish_joint(
    host: Path,
    folders: Sequence[Path],
    out: Path,
    request: Request,
    timezone: str,
    say: Callable[[str], None] = lambda line: None,
) -> JointMade:
    """Publish the seal host's record in `host` as `out`, with the one report of these published parts. request: of it
    licence, title, creator, boot, perm, seed and force; timezone: of the report's times, by its name.

    Raises StateError before unblinding, BrokenRecord for a record or a part that does not hold, InputError.
    """
    licence, licence_text = checked(request, out, host)
    if seal := next((one for one in folders if is_seal_record(one)), None):
        raise InputError(f"{seal} is a seal host's record; name the published parts of its cells")
    say("1/4 verifying the seal host's record")
    looked, events = verify_joint(host, ()), events_of(host)
    if looked.problems:
        raise BrokenRecord(f"{looked.problems[0]}; nothing is published of it; see: labctl joint verify {host.name}")
    unblinded = next((event for event in events if event.kind == JointKind.UNBLINDED), None)
    if unblinded is None:
        raise StateError(
            f"joint campaign {host.name} is sealed: unblind it first, once every cell is over: "
            f"labctl joint unblind {host.name}"
        )
    opened, last = body_of(events[0], JointOpened), events[-1]
    say(f"2/4 verifying {count(len(folders), 'part')}")
    first = check_together(folders)
    if not first.parts:
        raise InputError("name the published folder of at least one part; labctl publish makes it at each cell")
    of = first.parts[0].checked.admitted.manifest
    with folder_in_one_step(out, replacing=True) as building:
        manifest = JointManifest(
            schema="labctl.published_joint/1",
            campaign=opened["name"],
            title=(request.title or of.title)[:TITLE],
            kind=of.kind,
            head=head_text(last.seq, last.hash),
            commitment=opened["commitment"],
            frozen=unblinded.wall,
            licence=licence,
            creator=request.creator,
            versions=versions(),
            report=ReportMade(request.boot, request.perm, request.seed, "best", timezone),
            parts=[
                PartListed(one.name, one.joint["cell"], one.joint["part"], one.checked.admitted.digest)
                for one in first.parts
            ],
            files={},
        )
        replace_file(building / ENTRIES, lines_of(events), durable=False)
        _sign(building, manifest)
        together = refuse_unless_together([building, *folders])
        (building / PUBLISHED).unlink()
        joint_report(together, building / "report", lambda line: say(f"3/4 report: {line}"), linked=False)
        say("4/4 writing the manifest")
        replace_file(building / "LICENSE.txt", licence_text.encode(), durable=False)
        replace_file(building / "README.md", _card(manifest, together).encode(), durable=False)
        to_disk(building)
        manifest = _sign(building, manifest)
    return JointMade(out, manifest, file_digest(out / PUBLISHED), together.missing)


def _sign(folder: Path, manifest: JointManifest) -> JointManifest:
    """The manifest of what is in a folder, written there."""
    whole = replace(manifest, files=files_of_folder(folder))
    replace_file(folder / PUBLISHED, manifest_bytes(whole))
    return whole


def _card(manifest: JointManifest, together: Together) -> str:
    """What people read first."""
    names = [one.name for one in together.parts]
    beside = " ".join(f"../{name}" for name in names)
    lines = [
        f"# {plain(manifest.title)}",
        "",
        f"The seal host's record of the joint campaign `{manifest.campaign}` ({manifest.kind}) and its one report of "
        f"{count(len(names), 'part')}. What each cell recorded is in publications of its own:",
        "",
        *(
            f"* `{one.campaign}`, cell {one.cell}: sha256 of its published.json `{one.manifest}`"
            for one in manifest.parts
        ),
        "",
        "Not in the report:",
        "",
        *([f"* {plain(line)}" for line in together.missing] or ["* nothing is missing"]),
        "",
        "## Check it",
        "",
        "With the parts' folders beside this one:",
        "",
        "```console",
        "$ pip install 'labctl[lab]'",
        f"$ labctl verify . {beside}",
        f"$ labctl report . {beside} --out ../again",
        "```",
        "",
        f"* head of the seal host's journal: `{manifest.head}`",
        f"* commitment to the whole schedule, published at opening: `{manifest.commitment}`",
        "",
        "## What is in it",
        "",
        f"* `{ENTRIES}`: the seal host's journal as lines of JSON: the blocks dealt to cells and days, which arm was "
        "given when and for which head of the cell's journal, the heads joined at each block, the opened schedule",
        "* `report/`: the one report, made of the parts named above",
        "* `published.json`: size and digest of every file, the parts, versions",
        "",
        *licence_lines(manifest),
    ]
    return "\n".join(lines)
