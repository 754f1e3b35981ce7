"""The life of a campaign: `labctl new`, `open`, `extend`, `look`, `close`, `freeze` and `unblind`.

May not: write over anything, print anything of the schedule but its commitment, or reveal anything by its own hand:
`labctl.store.campaign` journals what it does.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    campaign_argument,
    computed_here,
    example,
    file_argument,
    json_option,
    lab_option,
    print_json,
    who_option,
)
from labctl.cli.verify import stamp_if_asked
from labctl.clock import MonotonicClock
from labctl.errors import LabctlError
from labctl.people.acting import acting
from labctl.store.lab_folder import MARK, Plan, campaign_folder, find_lab, lab_settings, new_lab

if TYPE_CHECKING:
    from labctl.cli.contract.forms import Phase
    from labctl.config.cell_schema import Cell
    from labctl.store.campaign import Opened
    from labctl.store.opened_body import Frozen

OPEN = example(
    "labctl open protocols/first.toml --cell cells/sim_fr3.toml",
    "labctl open protocols/first.toml --cell cells/sim_fr3.toml --offline",
)
EXTEND = example(
    "labctl extend first protocols/second.toml --cell cells/sim_fr3.toml",
    "labctl extend first protocols/second.toml --cell cells/sim_fr3.toml --anchor human --anchor policy-a",
    "labctl report first second --out report  # when both are unblinded",
)
OFFLINE = click.option(
    "--offline", is_flag=True, help="Do not ask robot, devices and policy servers; drivers and modules are loaded."
)
CELL = click.option("--cell", required=True, type=PATH, metavar="CELL.toml", help="The cell to run in.")


NEW = example(
    "labctl new my-lab",
    "cd my-lab",
    "labctl plan protocols/first.toml",
    "labctl new . --robot fr3_droid_cell   # a real FR3's cell into a lab that is there; first docs/hardware.md",
    "labctl new . --card pi05_droid        # a policy card, to be made true of your checkpoint: docs/policies.md",
)
# cells of hw_configs/ that `new --robot` writes: all but the one that every new lab has
CELLS = (
    *("emulated_fr3", "emulated_ur5", "emulated_ur5e", "emulated_ros2", "emulated_pair", "fr3_droid_cell", "ur5e_cell"),
    *("sim_base", "sim_hand", "sim_pair", "sim_rail", "sim_ur5"),
)
# policy cards of protocols/cards/ that `new --card` writes
CARDS = ("gr00t_n17_droid", "lerobot_act", "my_function", "pi05_droid", "roboarena_droid")


@click.command(epilog=NEW)
@file_argument("folder", "DIR")
@click.option(
    "--robot",
    "robots",
    multiple=True,
    type=click.Choice(CELLS),
    help="A cell of such a robot too, repeatable; into a lab that is there already these cells alone.",
)
@click.option(
    "--card",
    "cards",
    multiple=True,
    type=click.Choice(CARDS),
    help="A card for such a policy too, beside the protocols, repeatable; into a lab that is there already it alone.",
)
@json_option
def new(folder: Path, robots: tuple[str, ...], cards: tuple[str, ...], as_json: bool) -> None:
    """Make a lab folder to start from: a simulated cell, a fixture and a protocol, all commented."""
    written = new_lab(folder, robots, cards)
    if as_json:
        print_json({"schema": "labctl.lab_made/1", "folder": str(folder), "files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(f"wrote {path}")
    go = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
    if robots:
        click.echo(f"next: {go}labctl doctor cells/{robots[0]}.toml")
    elif folder / MARK in written:
        click.echo(f"next: {go}labctl plan protocols/first.toml")
    for name in cards:
        click.echo(f'next: make protocols/cards/{name}.toml true and name it in an arm: card = "cards/{name}.toml"')


@click.command("open", epilog=OPEN)
@file_argument("protocol", "PROTOCOL.toml")
@CELL
@OFFLINE
@who_option
@lab_option
@json_option
def open_(protocol: Path, cell: Path, offline: bool, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Freeze a protocol, draw its schedule once and seal it; print the commitment.

    What could not run is not sealed: options, drivers, modules and cards are tried, and the robot, the devices and each
    policy server are asked, as `labctl doctor` does. Nothing moves. The schedule comes from the operating system's
    entropy and is opened one trial at a time, to the controller only.

    The campaign has the protocol's name. Opened once more, the same protocol makes another campaign, NAME-2, with a
    schedule of its own; a report of either names both. To go on with one that is there: `labctl run NAME`.
    """
    _open(protocol, cell, who, lab, as_json, offline=offline)


@click.command(epilog=EXTEND)
@campaign_argument()
@file_argument("protocol", "PROTOCOL.toml")
@CELL
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    metavar="ARM",
    help="An arm run in both, repeatable [default: those of the protocol's [[link]], else every arm that has the same "
    "name, kind, controller, options and policy card in both].",
)
@OFFLINE
@who_option
@lab_option
@json_option
def extend(
    campaign: str,
    protocol: Path,
    cell: Path,
    anchors: tuple[str, ...],
    offline: bool,
    who: str | None,
    lab: Path | None,
    as_json: bool,
) -> None:
    """Open a campaign linked to an earlier one, CAMPAIGN, so that new arms can be held against its arms later.

    Arms of two campaigns are compared only through anchors: arms of the first that the second runs again. The earlier
    campaign must be unblinded and its chain must hold; its head is written into the new campaign, its anchors into the
    new campaign's seal. A person and one frozen policy make good anchors: one alone cannot be told from drift.
    """
    earlier = campaign_folder(campaign, lab)
    _open(protocol, cell, who, lab, as_json, offline=offline, extends=earlier, anchors=anchors)


def _open(
    protocol: Path,
    cell: Path,
    who: str | None,
    lab: Path | None,
    as_json: bool,
    *,
    offline: bool,
    extends: Path | None = None,
    anchors: Sequence[str] = (),
) -> None:
    import os

    from labctl.checks.opening import refuse_what_cannot_run
    from labctl.cli.doctor import warn_of_secrets
    from labctl.reporting.file_drawer import before
    from labctl.reporting.historical import line_of, looked_up
    from labctl.store.campaign import open_campaign

    anchor, home = MonotonicClock().anchor(), find_lab(lab)

    def further(plan: Plan, found: Cell) -> Frozen | None:
        warn_of_secrets(plan, cell)
        person_then = looked_up(plan, home, found)
        if person_then is not None:
            click.echo(f"historical reference: {line_of(person_then)}", err=as_json)
        if any("card" in arm.options for arm in plan.protocol.arm) and not offline:
            click.echo("the policies are asked whether they answer; that takes as long as their servers do", err=True)
        refuse_what_cannot_run(plan, found, cell, home, offline=offline)
        return person_then

    opened = open_campaign(
        protocol,
        cell,
        home,
        further=further,
        entropy=os.urandom(32),
        anchor=anchor,
        who=acting(who, home),
        extends=extends,
        anchors=anchors,
    )
    with _passing_on(opened.folder):
        _say_opened(opened, as_json)
        if kin := before(home, opened.commitment):
            text = f"there already of this protocol: {', '.join(kin)}; {opened.name} is another campaign"
            click.echo(f"{text}, and a report of any of them names all", err=as_json)


def _say_opened(opened: Opened, as_json: bool) -> None:
    if as_json:
        links = [asdict(link) for link in opened.links]
        found = {
            "schema": "labctl.opened/1",
            "campaign": opened.name,
            "folder": str(opened.folder),
            "commitment": opened.commitment,
            "head": opened.head,
        }
        print_json({**found, "links": links} if links else found)
        return
    click.echo(f"opened {opened.name}")
    for linked in opened.links:
        click.echo(f"linked to {linked.campaign} at head {linked.head}; anchors: {', '.join(linked.anchors)}")
        if linked.changed:
            click.echo(f"counted as the same on your word, though not by digest: {', '.join(linked.changed)}")
        for note in linked.notes:
            click.echo(f"against {linked.campaign}: {note}")
    click.echo(f"commitment {opened.commitment}")
    click.echo(
        "It binds the sealed schedule: publish it or note it down, and `labctl verify` will hold the campaign to it."
    )
    click.echo(f"head {opened.head}")
    click.echo(
        "Cell, fixture, protocol and cards are kept as they are now: what is edited later holds for other campaigns."
    )
    click.echo(f"next: labctl run {opened.name} (with --headless a simulated cell runs by itself)")


@click.command(epilog=example("labctl look first", "labctl look first --json"))
@campaign_argument()
@who_option
@lab_option
@json_option
def look(campaign: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Take a look that the protocol planned ([analysis.looks]) at an open campaign: it says stop, or go on.

    Nothing else is shown, kept or written, and everybody stays blind: by the first so many blocks, the pairs and the
    label stream that the protocol names, the report's test is held to the level of this look. After a stop no further
    trial begins before a person acknowledges it, which every report says. End the run first.
    """
    from labctl.reporting.interim_look import in_words, take_look

    folder = campaign_folder(campaign, lab)
    taken = take_look(folder, who=acting(who, folder))
    with _passing_on(folder):
        if as_json:
            print_json({"schema": "labctl.look/1", "campaign": folder.name, **taken, **computed_here()})
            return
        click.echo(in_words(taken))
        click.echo(f"next: labctl {'close' if taken['says'] == 'stop' else 'run'} {campaign}")


@click.command(
    epilog=example(
        "labctl close first",
        "labctl close first --reason 'the rig is needed'",
        "labctl close first --abandon --reason 'the gripper broke in block 3'",
    )
)
@campaign_argument()
@click.option("--reason", default="", metavar="TEXT", help="Why; needed while trials are left to run.")
@click.option("--abandon", is_flag=True, help="The campaign is given up; every report prints that and the reason.")
@who_option
@lab_option
@json_option
def close(campaign: str, reason: str, abandon: bool, who: str | None, lab: Path | None, as_json: bool) -> None:
    """No more trials: what was not run stays not run, and every later report counts it. Not reversible."""
    from labctl.store.campaign import close_campaign

    folder = campaign_folder(campaign, lab)
    who = acting(who, folder)
    sealed = _seal_first(folder, "close", as_json)
    lines = close_campaign(folder, who=who, reason=reason, abandon=abandon)
    next_ = f"labctl review {campaign} (an assessor, blind), then labctl review {campaign} --finish"
    _say_phase(folder, lines, reason, next_, as_json, sealed=sealed)


@click.command(epilog=example("labctl freeze first", "labctl freeze first --unreviewed  # nobody will ever review it"))
@campaign_argument()
@click.option("--unreviewed", is_flag=True, help="Freeze without a finished review; every report says so for good.")
@who_option
@lab_option
@json_option
def freeze(campaign: str, unreviewed: bool, who: str | None, lab: Path | None, as_json: bool) -> None:
    """No more review: outcomes stand as they are, and the head of the chain is what others can hold you to.

    An assessor goes through the episodes first (`labctl review CAMPAIGN`, then `--finish`): after this nobody can.
    """
    from labctl.reporting.cells.parts import part_of
    from labctl.store.campaign import freeze_campaign

    folder = campaign_folder(campaign, lab)
    lines = freeze_campaign(folder, who=acting(who, folder), unreviewed=unreviewed)
    then = f"labctl unblind {campaign}"
    if part_of(folder) is not None:  # its seal host unblinds it, once it was told of every cell's end
        then = f"labctl joint tell {campaign}; once the seal host has unblinded: {then}"
    _say_phase(folder, lines, "", then, as_json)


@click.command(epilog=example("labctl unblind first"))
@campaign_argument()
@click.option("--reason", default="", metavar="TEXT", help="Why; needed before the campaign is frozen.")
@who_option
@lab_option
@json_option
def unblind(campaign: str, reason: str, who: str | None, lab: Path | None, as_json: bool) -> None:
    """Reveal which arm was which, for good. Before freezing it needs a reason, which every report will print."""
    from labctl.joint.cell import opening_of
    from labctl.store.campaign import unblind_campaign

    folder = campaign_folder(campaign, lab)
    who = acting(who, folder)
    sealed, opening = _seal_first(folder, "unblind", as_json), opening_of(folder)
    lines = unblind_campaign(folder, who=who, reason=reason, opening=opening)
    _say_phase(folder, lines, reason, f"labctl report {campaign} --out report", as_json, sealed=sealed)


def _seal_first(folder: Path, verb: str, as_json: bool) -> list[str]:
    """Seal what runs left unsealed, and say at once what was: the verb itself may be refused after it."""
    from labctl.runtime.campaign_run import seal_what_runs_left

    sealed = seal_what_runs_left(folder, verb)
    for line in sealed:
        click.echo(line, err=as_json)
    return sealed


@contextmanager
def _passing_on(folder: Path) -> Generator[None, None, None]:
    """What a verb wrote is said first, which the block does; then it is dated, and copied to the lab's server, where
    lab.toml names an authority and a server: either may take long, or be interrupted.
    """
    try:
        yield
    finally:
        stamp_if_asked(folder)
        _copy_if_asked(folder)


def _copy_if_asked(folder: Path) -> None:
    """After a verb wrote: a copy where the lab names a server; one that does not answer is said, no more."""
    try:
        table = lab_settings(folder).store
        if table is not None:
            from labctl.store.server.copying import copy_campaign

            for line in copy_campaign(folder, table.url, table.timeout_s).broken:
                click.echo(f"warning: not copied: {line}", err=True)
    except LabctlError as error:
        click.echo(f"warning: not copied: {error}; later: labctl database copy {folder.name}", err=True)


def _say_phase(
    folder: Path, lines: Sequence[str], reason: str, next_: str, as_json: bool, *, sealed: Sequence[str] = ()
) -> None:
    """What a campaign has become: the lines and what comes next, or the same as a document, in which the lines of what
    was `sealed` before stand too.
    """
    from labctl.store.verifying.verified import in_passing

    with _passing_on(folder):
        if not as_json:
            for line in lines:
                click.echo(line)
            click.echo(f"next: {next_}")
            return
        with in_passing(folder) as campaign:
            state, arms = campaign.state, campaign.record().arms
        found: Phase = {
            "schema": "labctl.phase/1",
            "campaign": folder.name,
            "phase": str(state.phase),
            "head": {"seq": state.last_seq, "hash": state.head},
            "reason": reason or None,
            "early": bool(state.unblinded_early),
            "said": [*sealed, *lines],
        }
        if arms:
            found["arms"] = dict(arms)
        print_json(found)
