"""`labctl queue`: what waits for a shared rig, in which order, and what fits into which shift.

May not: start motion, open a campaign, or say whose a submission is (`labctl queue read` does, which is an entry).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    Words,
    example,
    json_option,
    lab_option,
    print_json,
    print_table,
    who_option,
)
from labctl.cli.queueing import submissions
from labctl.cli.queueing.acting import place, reason_of, say
from labctl.clock import MonotonicClock, wall_ns
from labctl.errors import Exit
from labctl.plain import count
from labctl.store.lab_folder import find_lab
from labctl.times import local

if TYPE_CHECKING:
    from labctl.queue.shown import OnShift, Shown, Waits

EPILOG = example(
    "labctl queue                                    # what waits, and which shift has time for it",
    "labctl queue add protocols/second.toml --priority 3",
    "labctl queue add second --instead-of second     # once a person has opened it: labctl open",
    "labctl queue submit request.json                # from outside; then: dry-run, approve, arm",
)
PRIORITY = click.IntRange(1, 9)


@click.group(cls=Words, epilog=EPILOG, invoke_without_command=True)
@lab_option
@json_option
@click.pass_context
def queue(context: click.Context, lab: Path | None, as_json: bool) -> int:
    """The queue of a shared rig: campaigns, protocols and submissions by priority, against the shifts of shifts.toml.

    Hours are by what trials took in this lab. Nothing here starts motion: whoever is on shift opens and runs what is
    first. A submission is an id and nothing else, so that the queue is read by people who have to stay blind; the name
    that it has as an arm, who submitted it and what its dry run came to are sealed (docs/queue.md). Where shifts.toml
    or queue-keys.toml is wrong its line is said, the rest is listed without it, and the exit code is 2.
    """
    if context.invoked_subcommand is not None:
        if lab is not None or as_json:
            raise click.UsageError("give --lab and --json behind the word, as in: labctl queue verify --json", context)
        return 0
    from labctl.queue.book import read
    from labctl.queue.shown import shown

    folder = find_lab(lab)
    found = shown(folder, read(folder), MonotonicClock().anchor().wall)
    if as_json:
        print_json(found)
    else:
        _print(found)
    for fault in found["faults"]:
        click.echo(fault, err=True)
    return int(Exit.BAD_INPUT) if found["faults"] else 0


@queue.command(epilog=example("labctl queue add first", "labctl queue add protocols/second.toml --priority 2"))
@click.argument("what", metavar="CAMPAIGN|PROTOCOL.toml")
@click.option("--priority", type=PRIORITY, help="1 is first.  [default: 5, or of the entry whose place it takes]")
@click.option("--instead-of", metavar="NAME", help="The entry whose place it takes, as a protocol's that was opened.")
@lab_option
@who_option
@json_option
def add(
    what: str, priority: int | None, instead_of: str | None, lab: Path | None, who: str | None, as_json: bool
) -> None:
    """Have a campaign, or a protocol that is not opened yet, wait for the rig."""
    from labctl.queue.turns import add as added

    folder, person = place(lab, who)
    done = added(folder, what, MonotonicClock(), person, priority=priority, instead_of=instead_of)
    say(folder, done, "waits for the rig", as_json=as_json)


@queue.command(epilog=example("labctl queue move second --before first"))
@click.argument("name")
@click.option("--before", required=True, metavar="NAME", help="The entry that it goes before, of the same priority.")
@lab_option
@who_option
@json_option
def move(name: str, before: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Put an entry before another one of its priority."""
    from labctl.queue.turns import move as moved

    folder, person = place(lab, who)
    say(folder, moved(folder, name, before, MonotonicClock(), person), f"goes before {before}", as_json=as_json)


@queue.command(epilog=example("labctl queue priority second 1"))
@click.argument("name")
@click.argument("priority", type=PRIORITY)
@lab_option
@who_option
@json_option
def priority(name: str, priority: int, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Give an entry another priority; it comes behind those that have it already."""
    from labctl.queue.turns import give_priority

    folder, person = place(lab, who)
    done = give_priority(folder, name, priority, MonotonicClock(), person)
    say(folder, done, f"has priority {priority}", as_json=as_json)


@queue.command(epilog=example("labctl queue pause second --reason 'camera 2 is at repair'"))
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Everybody reads it: name no arm and nobody outside.")
@lab_option
@who_option
@json_option
def pause(name: str, reason: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Let an entry keep its place and get no time."""
    from labctl.queue.turns import pause as paused

    folder, person = place(lab, who)
    done = paused(folder, name, reason_of(reason), MonotonicClock(), person)
    say(folder, done, "is paused", as_json=as_json, alert=True)


@queue.command(epilog=example("labctl queue resume second"))
@click.argument("name")
@lab_option
@who_option
@json_option
def resume(name: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Let a paused entry get time again."""
    from labctl.queue.turns import resume as resumed

    folder, person = place(lab, who)
    say(folder, resumed(folder, name, MonotonicClock(), person), "goes on", as_json=as_json, alert=True)


@queue.command(epilog=example("labctl queue withdraw s-4fa2c1 --reason 'its sender asked for it'"))
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Of a submission it is sealed; else everybody reads it.")
@lab_option
@who_option
@json_option
def withdraw(name: str, reason: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Take an entry or a submission out of the queue; what is opened or recorded stays as it is. An arm that a
    submission became is taken out of its protocol, until a campaign is opened from that.
    """
    from labctl.queue.acts import withdraw as withdrawn

    folder, person = place(lab, who)
    done = withdrawn(folder, name, reason_of(reason), MonotonicClock(), person)
    say(folder, done, "is withdrawn", as_json=as_json, alert=True)


@queue.command(epilog=example("labctl queue verify"))
@lab_option
@json_option
def verify(lab: Path | None, as_json: bool) -> int:
    """Hash the queue's own journal and seal again and name what is broken; exit 1 where something is."""
    from labctl.queue.book import verify as verified

    entries, head, problems = verified(find_lab(lab))
    if as_json:
        lines = [str(problem) for problem in problems]
        print_json(
            {"schema": "labctl.queue_verify/1", "ok": not problems, "entries": entries, "head": head, "problems": lines}
        )
    else:
        for problem in problems:
            click.echo(problem)
        click.echo(f"{count(entries, 'entry', 'entries')}: {len(problems) or 'none'} broken; head {head}")
    return 1 if problems else 0


for command in submissions.COMMANDS:
    queue.add_command(command)


def _print(found: Shown) -> None:
    from labctl.queue.lab_files import SHIFTS
    from labctl.queue.shown import open_submissions

    if found["entries"]:
        rows = [
            (str(number), *_row(entry, shifts=bool(found["shifts"])))
            for number, entry in enumerate(found["entries"], 1)
        ]
        print_table(("", "name", "kind", "priority", "trials", "hours", "expected end"), rows)
        for entry in found["entries"]:
            if entry["paused"]:
                click.echo(f"{entry['name']} is paused: {entry['paused']}")
        for source in dict.fromkeys(entry["times"] for entry in found["entries"]):
            click.echo(f"hours: {source}")
    else:
        click.echo("nothing waits for the rig; add a campaign or a protocol: labctl queue add CAMPAIGN|PROTOCOL.toml")
    for shift in found["shifts"]:
        click.echo(_shift(shift))
        for person in shift["not_blind"]:
            click.echo(f"  {person} has read whose a submission is: not blind to it")
    if not found["shifts"] and not any(SHIFTS in fault for fault in found["faults"]):
        click.echo("no shift to come is in shifts.toml, so that nothing has an expected end")
    for one in open_submissions(found["submissions"]):
        over = wall_ns(one["expires"]) <= wall_ns(found["at"])
        until = f"{'expired' if over else 'until'} {local(one['expires'])}"
        if one["ended"] and not over:
            until = one["ended"]
        word = submissions.ENDED if one["ended"] else submissions.NEXT[one["step"]]
        click.echo(
            f"submission {one['submission']} for {one['wished']}: {one['step']}; {until}; "
            f"next: labctl queue {word.format(one['submission'])}"
        )


def _row(entry: Waits, *, shifts: bool) -> tuple[str, ...]:
    """shifts: whether there are any to come."""
    hours = "?" if entry["hours"] is None else f"{entry['hours']:.1f}"
    ends = local(entry["ends"]) if entry["ends"] else "paused" if entry["paused"] else "-"
    if entry["hours"] == 0:
        ends = "nothing is left"
    if entry["left_over"] and shifts:
        ends = f"no time for {count(entry['left_over'], 'trial')}"
    return entry["name"], entry["kind"], str(entry["priority"]), str(entry["trials"]), hours, ends


def _shift(shift: OnShift) -> str:

    what = ", ".join(shift["entries"]) or "nothing"
    until = f"{local(shift['begins'])} to {local(shift['ends'])}"
    return f"{until}, {', '.join(shift['who'])}: {what}; {shift['free_h']:.1f} h left"
