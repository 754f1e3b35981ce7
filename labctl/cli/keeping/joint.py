"""`labctl joint`: several cells under one seal. The seal host's verbs (open, serve, status, gone, back, give, unblind,
verify, publish) and a cell's (join, tell).

May not: print an arm before unblinding, or listen beyond this machine unless an address says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    Words,
    campaign_argument,
    example,
    file_argument,
    json_option,
    lab_option,
    print_json,
    who_option,
)
from labctl.cli.publishing.cells import joint_publish
from labctl.clock import MonotonicClock
from labctl.errors import InputError
from labctl.people.acting import acting
from labctl.plain import count
from labctl.store.lab_folder import JOURNAL, campaign_folder, find_lab, read_cell, read_plan

if TYPE_CHECKING:
    from labctl.cli.contract.joint_forms import PartGiven
    from labctl.config.cell_schema import Cell
    from labctl.joint.state import HeadBody, JointState
    from labctl.store.lab_folder import Plan
    from labctl.store.opened_body import Frozen

NAMED = "[default: the joint campaign's and the cell's]"
ADDRESS = click.option(
    "--address",
    default="tcp://127.0.0.1:7441",
    metavar="tcp://HOST:PORT",
    help="Where cells find this host.",
    show_default=True,
)
EPILOG = example(
    "labctl joint open protocols/two.toml --address tcp://192.0.2.10:7441   # at the seal host",
    "labctl joint serve two                                                 # there, while cells run",
    "labctl joint join a.invitation.toml protocols/two.toml --cell cells/fr3.toml   # at each cell",
    "labctl run two-a",
)
NAME = click.argument("name", metavar="NAME")
REASON = click.option("--reason", required=True, metavar="TEXT", help="Why; it stands in the journal for good.")


@click.group(cls=Words, epilog=EPILOG)
def joint() -> None:
    """Several cells that share one campaign: one sealed schedule at one host, a journal per cell.

    The seal host deals the blocks of a protocol with [cells] and keeps the arms. Each cell runs its part as a campaign
    of its own, and is told the arm of one trial at a time, for the head of its journal. While the seal host is away no
    new trial begins; an episode that runs goes on. docs/several-cells.md has an evening, step by step.
    """


@joint.command("open", epilog=example("labctl joint open protocols/two.toml"))
@file_argument("protocol", "PROTOCOL.toml")
@click.option("--name", metavar="NAME", help="[default: the protocol's name]")
@ADDRESS
@who_option
@lab_option
@json_option
def open_(protocol: Path, name: str | None, address: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Deal, draw and seal the schedule over all cells, once; write an invitation for each cell.

    An invitation holds a cell's key: carry it to that cell and to nobody else. Nothing moves and nobody is asked.
    """
    import os

    from labctl.joint.making import make_joint

    home = find_lab(lab)
    made = make_joint(
        protocol,
        home,
        address=address,
        entropy=os.urandom(32),
        anchor=MonotonicClock().anchor(),
        who=acting(who, home),
        name=name,
    )
    if as_json:
        invitations = [str(path) for path in made.invitations]
        found = {"schema": "labctl.joint_opened/1", "joint": made.folder.name, "folder": str(made.folder)}
        print_json({**found, "commitment": made.commitment, "head": made.head, "invitations": invitations})
        return
    click.echo(f"sealed {made.folder.name} for {count(len(made.invitations), 'cell')}")
    click.echo(f"commitment {made.commitment}")
    click.echo("It binds every cell's schedule: publish it or note it down.")
    click.echo(f"head {made.head}")
    for path in made.invitations:
        click.echo(f"invitation {path}  (a key: carry it to that cell, then delete it here)")
    click.echo(f"next: labctl joint serve {made.folder.name}")


@joint.command(epilog=example("labctl joint serve two"))
@NAME
@click.option("--bind", metavar="tcp://HOST:PORT", help="Listen there [default: the address of `open`].")
@lab_option
@json_option
def serve(name: str, bind: str | None, lab: Path | None, as_json: bool) -> None:
    """Answer the cells until Ctrl-C. Killed and started again it goes on: each answer was journalled before it left."""
    from labctl.bus import Message
    from labctl.doors import more_files
    from labctl.joint.door import Door
    from labctl.joint.keys import check_address
    from labctl.runtime.hosting.ending import on_signals

    folder = _folder(name, lab)
    if bind is not None:
        check_address(bind, "--bind")
    more_files()
    with Door(folder, bind).open() as door:
        if as_json:
            print_json({"schema": "labctl.joint_serving/1", "joint": folder.name, "address": door.address})
        else:
            click.echo(f"the seal of {folder.name} answers at {door.address}; Ctrl-C ends it")
        asked: list[Message] = []
        put_back = on_signals(asked.append)
        while not asked:
            door.turn(200)
        put_back()
    click.echo("ended; no trial begins in any cell until it answers again", err=as_json)


@joint.command(epilog=example("labctl joint status two"))
@NAME
@lab_option
@json_option
def status(name: str, lab: Path | None, as_json: bool) -> None:
    """Which cell has how many blocks, and how far it was given arms. No arm is shown."""
    from labctl.joint.state import fold_joint
    from labctl.store.journal import events_of

    folder = _folder(name, lab)
    state = fold_joint(events_of(folder))
    rows = _rows(state)
    if as_json:
        head = {"seq": state.last["seq"], "hash": state.last["hash"]}
        about = {"joint": folder.name, "commitment": state.opened["commitment"], "unblinded": state.unblinded}
        print_json({"schema": "labctl.joint_status/1", **about, "head": head, "parts": rows})
        return
    for row in rows:
        click.echo(
            f"{row['cell']:<12} part {row['part']}  blocks {row['blocks']:>4}  "
            f"given {row['given']:>4} of {row['trials']}  {row['stands']}"
        )
    click.echo(f"head {state.last['seq']}:{state.last['hash']}")


@joint.command(epilog=example("labctl joint gone two b --reason 'the robot is in repair'"))
@NAME
@click.argument("cell", metavar="CELL")
@REASON
@who_option
@lab_option
@json_option
def gone(name: str, cell: str, reason: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """A cell has dropped out: it is given no further arm until it is back. What it recorded stays as it is."""
    from labctl.joint.seal_host import writing

    folder = _folder(name, lab)
    with writing(folder, "joint gone") as host:
        host.gone(cell, who=acting(who, folder), reason=reason)
        free = len(host.free_blocks())
        head = host.state.last
    if as_json:
        return _acted(folder, "gone", reason, head, cell=cell, free_blocks=free)
    click.echo(f"cell {cell} is gone; {count(free, 'block')} of cells that are gone can be given to others")
    back_again = f"labctl joint back {name} {cell} --reason TEXT"
    click.echo(f"next: labctl joint give {name} --reason TEXT, or when it returns: {back_again}")
    return None


@joint.command(epilog=example("labctl joint back two b --reason 'repaired'"))
@NAME
@click.argument("cell", metavar="CELL")
@REASON
@who_option
@lab_option
@json_option
def back(name: str, cell: str, reason: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """A cell that was gone is there again: it goes on with the blocks that nobody else was given."""
    from labctl.joint.seal_host import writing

    folder = _folder(name, lab)
    with writing(folder, "joint back") as host:
        host.back(cell, who=acting(who, folder), reason=reason)
        left = sum(len(part.blocks) for part in host.state.parts_of(cell))
        head = host.state.last
    if as_json:
        return _acted(folder, "back", reason, head, cell=cell, blocks=left)
    click.echo(f"cell {cell} is back, with {count(left, 'block')}")
    return None


@joint.command(epilog=example("labctl joint give two --reason 'b will not return'"))
@NAME
@REASON
@who_option
@lab_option
@json_option
def give(name: str, reason: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Deal the blocks that cells which are gone have not begun to the cells that are there, as evenly as they go.

    A block moves whole, with its arms and its order as they were sealed; one that was begun stays. Each cell gets its
    share as a further part, a campaign of its own.
    """
    from labctl.joint.seal_host import writing

    folder = _folder(name, lab)
    with writing(folder, "joint give") as host:
        parts = host.move(host.dealt_anew(), who=acting(who, folder), reason=reason)
        head = host.state.last
    if as_json:
        given: list[PartGiven] = [
            {"cell": part["cell"], "part": part["part"], "blocks": len(part["blocks"])} for part in parts
        ]
        return _acted(folder, "give", reason, head, parts=given)
    for part in parts:
        click.echo(f"cell {part['cell']}: part {part['part']} with {count(len(part['blocks']), 'block')}")
        click.echo(f"next, at that cell: labctl joint join INVITATION PROTOCOL --cell CELL --part {part['part']}")
    return None


@joint.command(epilog=example("labctl joint unblind two"))
@NAME
@click.option("--reason", default="", metavar="TEXT", help="Why; needed before every cell is over.")
@who_option
@lab_option
@json_option
def unblind(name: str, reason: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Open the schedule, for good, once every cell is frozen or gone; then `labctl unblind` at each cell asks for its
    part. Before that it needs a reason.
    """
    from labctl.joint.seal_host import writing

    folder = _folder(name, lab)
    with writing(folder, "joint unblind") as host:
        early = host.unblind(who=acting(who, folder), reason=reason)
        head = host.state.last
    if as_json:
        return _acted(folder, "unblind", reason, head, early=early)
    click.echo("unblinded early: " + reason if early else "unblinded")
    click.echo(f"head {head['seq']}:{head['hash']}")
    click.echo("next, at each cell while `labctl joint serve` runs: labctl unblind CAMPAIGN")
    return None


@joint.command(epilog=example("labctl joint verify two", "labctl joint verify two copies/two-a copies/two-b"))
@NAME
@click.argument("campaigns", nargs=-1, metavar="[CAMPAIGN]...")
@lab_option
@json_option
def verify(name: str, campaigns: tuple[str, ...], lab: Path | None, as_json: bool) -> int:
    """Verify the seal host's chain, the chain of each cell whose campaign is in this lab or given, by its name or its
    folder, and that they agree.

    Exit 1 when anything is broken, by name.
    """
    from labctl.joint.checking import parts_here, verify_joint

    folder = _folder(name, lab)
    given = list(dict.fromkeys(campaign_folder(one, lab) for one in campaigns))
    found = verify_joint(folder, [*given, *parts_here(folder, given)])
    if as_json:
        problems = [{"what": p.what, "where": p.where, "detail": p.detail} for p in found.problems]
        about = {"joint": name, "head": found.head, "entries": found.entries, "given": found.given}
        checked = {"cells": found.cells, "problems": problems, "notes": found.notes}
        print_json({"schema": "labctl.joint_verification/1", **about, **checked})
        return int(bool(found.problems))
    for problem in found.problems:
        click.echo(f"{problem.what}: {problem.where}: {problem.detail}")
    for note in found.notes:
        click.echo(f"note: {note}")
    cells = ", ".join(found.cells) or "none"
    entries = count(found.entries, "entry", "entries")
    click.echo(f"{entries} at the seal host, {count(found.given, 'arm')} given; cells read: {cells}")
    click.echo(f"head {found.head}")
    click.echo("broken" if found.problems else "the record holds")
    return int(bool(found.problems))


@joint.command(epilog=example("labctl joint join a.invitation.toml protocols/two.toml --cell cells/fr3.toml"))
@file_argument("invitation", "INVITATION.toml")
@file_argument("protocol", "PROTOCOL.toml")
@click.option("--cell", required=True, type=PATH, metavar="CELL.toml", help="The cell to run in.")
@click.option("--part", default=1, type=click.IntRange(1), help="2, 3, …: a further part that this cell was given.")
@click.option("--name", metavar="NAME", help=f"Of the campaign {NAMED}.")
@who_option
@lab_option
@json_option
def join(
    invitation: Path,
    protocol: Path,
    cell: Path,
    part: int,
    name: str | None,
    who: str | None,
    lab: Path | None,
    as_json: bool,
) -> None:
    """At a cell: open this cell's part as a campaign, with protocol, fixture and cards as the seal host has them.

    Done again after it was interrupted it goes on where it was.
    """
    import os

    from labctl.checks.opening import refuse_what_cannot_run
    from labctl.cli.doctor import warn_of_secrets
    from labctl.joint.cell import join as join_cell
    from labctl.reporting.historical import line_of, looked_up

    home, plan = find_lab(lab), read_plan(protocol)

    def further(plan: Plan, found: Cell) -> Frozen | None:
        person_then = looked_up(plan, home, found)
        if person_then is not None:
            click.echo(f"historical reference: {line_of(person_then)}", err=as_json)
        return person_then

    refuse_what_cannot_run(plan, read_cell(cell), cell, home, offline=True)
    warn_of_secrets(plan, cell)
    opened, before = join_cell(
        invitation,
        protocol,
        cell,
        home,
        entropy=os.urandom(32),
        anchor=MonotonicClock().anchor(),
        who=acting(who, home),
        part=part,
        name=name,
        further=further,
    )
    if as_json:
        found = {"schema": "labctl.opened/1", "campaign": opened.name, "folder": str(opened.folder)}
        print_json({**found, "commitment": opened.commitment, "head": opened.head, "joined_again": before})
        return
    click.echo(f"{'joined again with' if before else 'opened'} {opened.name}")
    click.echo(f"commitment {opened.commitment}")
    click.echo(f"head {opened.head}")
    click.echo(f"next: labctl run {opened.name}")


@joint.command(epilog=example("labctl joint tell two-a"))
@campaign_argument()
@lab_option
@json_option
def tell(campaign: str, lab: Path | None, as_json: bool) -> None:
    """At a cell: tell the seal host that this cell's part is closed, reviewed or frozen, with its head."""
    from labctl.joint.cell import tell as tell_host

    folder = campaign_folder(campaign, lab)
    said = tell_host(folder)
    if as_json:
        print_json({"schema": "labctl.said/1", "campaign": folder.name, "said": [said]})
        return
    click.echo(said)


def _acted(folder: Path, did: str, reason: str, head: HeadBody, **more: str | int | list[PartGiven]) -> None:
    """What a word of the seal host did, as a document, with the head that its journal has now."""
    about = {"schema": "labctl.joint_act/1", "joint": folder.name, "did": did, "reason": reason}
    print_json({**about, **more, "head": {"seq": head["seq"], "hash": head["hash"]}})


def _folder(name: str, lab: Path | None) -> Path:
    from labctl.joint.seal_host import JOINT

    home = find_lab(lab) / JOINT
    if not (home / name / JOURNAL).is_file():
        there = sorted(path.parent.name for path in home.glob(f"*/{JOURNAL}"))
        raise InputError(f"no joint campaign {name!r} in {home}; there: {', '.join(there) or 'none'}")
    return home / name


def _rows(state: JointState) -> list[dict[str, str | int]]:
    rows: list[dict[str, str | int]] = []
    for part in state.parts.values():
        stands = part.phase or ("not joined" if part.head is None else "open")
        stands = f"{stands}, declared gone" if part.cell in state.gone else stands
        trials = sum(len(state.blocks[number]["trials"]) for number in part.blocks)
        counts = {"blocks": len(part.blocks), "trials": trials, "given": len(part.given)}
        rows.append({"cell": part.cell, "part": part.number, **counts, "stands": stands})
    return rows


joint.add_command(joint_publish)
