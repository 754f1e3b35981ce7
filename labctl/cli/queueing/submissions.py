"""The words of `labctl queue` for what comes from outside: keys, requests, dry runs, approval, and the arm it becomes.

May not: say on a screen whose a submission is but to whoever asks by `read`, which the queue keeps.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import FiniteRange, example, file_argument, json_option, lab_option, print_json, who_option
from labctl.cli.queueing.acting import named, place, reason_of, say
from labctl.clock import MonotonicClock
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.queue.dry_run import DryRun

TRY = "dry-run {} CAMPAIGN|DIR"
# step of a submission -> what is typed next
NEXT = {"received": TRY, "failed its dry run": TRY, "passed its dry run": "approve {} --reason TEXT"}
ENDED = "withdraw {} --reason TEXT"  # once it can become no arm any more
ARM = "arm {} PROTOCOL.toml, by whoever leads that campaign, before labctl open"


@click.command(epilog=example("labctl queue trust ours.toml", "labctl queue trust ours.toml --who p01 --json"))
@file_argument("table", "KEY.toml")
@lab_option
@who_option
@json_option
def trust(table: Path, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Add somebody's key (what `labctl submit key` wrote) to the lab's queue-keys.toml, which is made if need be.

    Compare its first digits with its owner by another way than the one the file came.
    """
    from labctl.queue.lab_files import KEYS
    from labctl.queue.lab_files import trust as trusted

    folder, _ = named(lab, who)
    key = trusted(folder, table)
    _say_key(key.public, key.who, f"is in {KEYS}", as_json=as_json)


@click.command(epilog=example("labctl queue revoke 5f1c22aa --reason 'it was stolen'"))
@click.argument("key", metavar="DIGITS")
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the file.")
@lab_option
@who_option
@json_option
def revoke(key: str, reason: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Take no request of a key any more, and approve none that waits; DIGITS are its first, 8 or more."""
    from labctl.queue.lab_files import revoke as revoked

    folder, _ = named(lab, who)
    found = revoked(folder, key, reason_of(reason), MonotonicClock().anchor().wall)
    _say_key(found.public, found.who, "is revoked", as_json=as_json)


@click.command("submit", epilog=example("labctl queue submit request.json"))
@file_argument("request", "REQUEST")
@lab_option
@who_option
@json_option
def submit_(request: Path, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Take a signed request in: known key, this lab, not expired, not here already; a card that starts nothing here and
    an endpoint that is none of the lab's own machines. Nothing is asked of it yet.
    """
    from labctl.queue.acts import take_in

    folder, person = place(lab, who)
    done = take_in(folder, request, MonotonicClock(), person)
    say(folder, done, "is taken in", as_json=as_json, alert=True, then=TRY)


@click.command(
    "dry-run",
    epilog=example(
        "labctl queue dry-run s-4fa2c1 published/first",
        "labctl queue dry-run s-4fa2c1 first --endpoint ws://127.0.0.1:8000   # of a container that you started",
    ),
)
@click.argument("submission")
@click.argument("observations", metavar="CAMPAIGN|DIR")
@click.option("--endpoint", metavar="ADDRESS", help="Where a container that the lab started answers.")
@click.option(
    "--questions", type=click.IntRange(1, 1000), default=50, show_default=True, help="Observations asked about."
)
@click.option("--within-s", type=FiniteRange(1, 3600), default=600.0, show_default=True, help="Seconds for all of it.")
@lab_option
@who_option
@json_option
def dry_run(
    submission: str,
    observations: str,
    endpoint: str | None,
    questions: int,
    within_s: float,
    lab: Path | None,
    who: str | None,
    as_json: bool,
) -> int:
    """Ask a submitted policy about recorded observations; nothing moves. Exit 1 where it failed.

    The observations are of an unblinded campaign of the lab, or of a published folder, and go to whoever submitted:
    best take what is public. It passes when it answers each question with actions of the right shape, at most one in
    twenty after its card's deadline, and at most one in twenty beyond the cell's box or speeds.
    """
    from labctl.queue.acts import try_dry
    from labctl.queue.telling import tell

    folder, person = named(lab, who)
    there = _observations(observations, folder)
    result, done = try_dry(
        folder,
        submission,
        there,
        MonotonicClock(),
        person,
        endpoint=endpoint,
        questions=questions,
        within_s=within_s,
    )
    passed = result["passed"]
    failed = tell(folder, done, "passed its dry run" if passed else "failed its dry run")
    if as_json:
        head = {"submission": submission, "head": done.head, "not_told": failed}
        print_json({"schema": "labctl.dry_run/1", **head, **result})
    else:
        _print_dry_run(submission, result)
        click.echo(f"head {done.head}")
        if passed:
            click.echo(f"next: labctl queue {NEXT['passed its dry run'].format(submission)}, or refuse it")
    for line in failed:
        click.echo(f"warning: {line}", err=True)
    return 0 if passed else 1


@click.command(epilog=example("labctl queue approve s-4fa2c1 --reason 'fits the question of second'"))
@click.argument("submission")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is sealed.")
@click.option("--priority", type=click.IntRange(1, 9), default=5, show_default=True, help="1 is first.")
@lab_option
@who_option
@json_option
def approve(submission: str, reason: str, priority: int, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Let a submission that passed its dry run wait for the rig, in your name."""
    from labctl.queue.acts import approve as approved

    folder, person = named(lab, who)
    done = approved(folder, submission, reason_of(reason), MonotonicClock(), person, priority)
    say(folder, done, "is approved and waits for the rig", as_json=as_json, alert=True, then=ARM)


@click.command(epilog=example("labctl queue refuse s-4fa2c1 --reason 'another task'"))
@click.argument("submission")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is sealed.")
@lab_option
@who_option
@json_option
def refuse(submission: str, reason: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Refuse a submission, in your name."""
    from labctl.queue.acts import refuse as refused

    folder, person = named(lab, who)
    done = refused(folder, submission, reason_of(reason), MonotonicClock(), person)
    say(folder, done, "is turned down", as_json=as_json, alert=True)


@click.command(epilog=example("labctl queue read s-4fa2c1 --who p01"))
@click.argument("submission")
@lab_option
@who_option
@json_option
def read(submission: str, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Show whose a submission is and what became of it. The queue keeps that you have read it, and says on your shifts
    that you are not blind; while it is an arm of a campaign that is not unblinded nobody reads it.
    """
    from labctl.queue.acts import read_seal

    folder, person = named(lab, who)
    sealed, parts, done = read_seal(folder, submission, MonotonicClock(), person)
    asked = sealed.asked
    about = {
        "submission": submission,
        "head": done.head,
        "alias": sealed.alias,
        "key": sealed.key,
        "who": asked.who,
        "contact": asked.contact,
        "policy": asked.policy,
        "campaign": asked.campaign,
        "endpoint": asked.endpoint,
        "container": asked.container,
        "note": asked.note,
        "expires": asked.expires,
        "card": asked.card,
    }
    reasons = {part: str(found["reason"]) for part, found in parts.items() if "reason" in found}
    newest = max((part for part in parts if part.startswith("dry-run")), default=None)
    tried: DryRun | None = None if newest is None else json.loads(str(parts[newest]["result"]))
    if as_json:
        print_json({"schema": "labctl.submission/1", **about, "reasons": reasons, "dry_run": tried})
        return
    for name, value in about.items():
        if value and name != "card":
            click.echo(f"{name}: {value}")
    for part, text in reasons.items():
        click.echo(f"{part}: {text}")
    if tried is not None:
        _print_dry_run(submission, tried)
    click.echo(asked.card.rstrip())


@click.command(epilog=example("labctl queue arm s-4fa2c1 protocols/second.toml"))
@click.argument("submission")
@file_argument("protocol", "PROTOCOL.toml")
@lab_option
@who_option
@json_option
def arm(submission: str, protocol: Path, lab: Path | None, who: str | None, as_json: bool) -> None:
    """Write an approved submission into a protocol that is not opened yet, as an arm under its sealed name, with its
    card beside it. Whoever leads the campaign does this; a campaign that is open takes no arm any more.
    """
    from labctl.queue.acts import enter

    folder, person = named(lab, who)
    _, done = enter(folder, submission, protocol, MonotonicClock(), person)
    say(folder, done, "is an arm of its protocol", as_json=as_json, alert=True)


COMMANDS = (trust, revoke, submit_, dry_run, approve, refuse, read, arm)


def _observations(given: str, lab: Path) -> Path:
    from labctl.store.database_backend import PUBLISHED

    return Path(given) if (Path(given) / PUBLISHED).is_file() else campaign_folder(given, lab)


def _say_key(public: str, whose: str, did: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"schema": "labctl.queue_key/1", "public": public, "who": whose, "did": did})
    else:
        click.echo(f"key {public[:16]}… of {whose} {did}")


def _print_dry_run(submission: str, found: DryRun) -> None:
    times, limits = found["latency"], found["bounds"]
    click.echo(f"{submission}: asked {found['asked']} times, observations of {found['campaign']}; nothing moved")
    if found["space"] is not None:
        click.echo(f"answers: {found['actions']} actions of {found['space']}, {found['execute']} followed")
    if times is not None:
        click.echo(
            f"latency: median {times['median_s']:.3f} s, 95 % {times['p95_s']:.3f} s, 99 % {times['p99_s']:.3f} s, "
            f"most {times['max_s']:.3f} s; {times['late']} of {times['n']} after {times['deadline_s']:g} s"
        )
    if limits is not None:
        click.echo(
            f"bounds: {limits['beyond_box']} of {limits['n']} lead out of the cell's box (by up to "
            f"{limits['furthest_m']:.3f} m), {limits['beyond_speed']} beyond its speeds (up to "
            f"{limits['fastest']:.2f} of the limit)"
        )
    for line in found["problems"]:
        click.echo(f"failed: {line}")
    click.echo("passed" if found["passed"] else "failed; the queue keeps that, and why is sealed")
