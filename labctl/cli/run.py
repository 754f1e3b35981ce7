"""`labctl run`: run the trials of a campaign that are left. `labctl stop`: end that from another shell.

May not: name an arm (everything printed is fit for a blind role), end anything by force, or act on a process that is
not the run of that campaign.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click

from labctl.cli.options import campaign_argument, example, json_option, lab_option, print_json, who_option
from labctl.clock import SECOND, MonotonicClock, began
from labctl.errors import StateError
from labctl.people.acting import acting
from labctl.store.lab_folder import campaign_folder
from labctl.store.locks import OF_CAMPAIGN, held_by, holder

RUN = example("labctl run first", "labctl run first --headless", "labctl run first --headless --simulated-time")
STOP = example("labctl stop first", "labctl stop first --now")
ANSWER_S = 5
UNKNOWN_S = 20  # as long as a run may take to begin, or to let go
NOW_S = 60  # a video's last frames and its digest
STANDS = "Ctrl-C leaves this request standing; --now ends the run at once"


@click.command(epilog=RUN)
@campaign_argument(required=False)
@click.option("--headless", is_flag=True, help="Without opening a console; the cell file names who stages and scores.")
@click.option("--attended", is_flag=True, help="With --headless: people stage and score at consoles.")
@who_option
@click.option(
    "--simulated-time/--real-time",
    default=None,
    help="Simulated cells only: one process under a manual clock, as fast as it computes [default: the cell's clock].",
)
@click.option(
    "--unready", is_flag=True, help="Do not ask first whether every arm answers; a deviation that every report prints."
)
@click.option(
    "--hand-terminal",
    metavar="/dev/pts/N",
    help="Where a person drives with a keyboard: the second terminal that they type in, as `tty` prints it there.",
)
@lab_option
@json_option
def run(
    campaign: str | None,
    headless: bool,
    attended: bool,
    who: str | None,
    simulated_time: bool | None,
    unready: bool,
    hand_terminal: str | None,
    lab: Path | None,
    as_json: bool,
) -> None:
    """Run the trials that are left and open the operator console.

    Each is staged, committed, revealed to the controller alone, run, recorded, sealed and scored.

    First every arm is asked whether it answers; one number says how many do, and nothing moves before all do.

    Without a console it prints how far it is: which trial of how many, for how long, until when, and what comes next.

    First says what it concluded from an interrupted run; nothing moves because of that. Ctrl-C stops the robot, seals
    what was recorded and ends, and so does a terminal that is gone; the next `labctl run` goes on with the right trial.
    labctl's holds and watchdogs are not a safety system: the e-stop and the robot's own safety controller are.
    """
    if as_json and not headless:
        raise click.UsageError("--json is what a run without a console prints at its end; add --headless")
    if simulated_time and attended:
        raise click.UsageError("a person cannot keep up with simulated time; leave out --attended or --simulated-time")
    if campaign is None and not headless:
        from labctl.cli.console import choose

        if choose(lab, who, unready=unready, hand_terminal=hand_terminal):
            return
    folder = campaign_folder(campaign, lab)
    if not headless:
        from labctl.cli.console import run_with_console

        if simulated_time:
            raise click.UsageError("a person cannot keep up with simulated time; add --headless, or leave it out")
        run_with_console(folder, acting(who, folder), unready=unready, hand_terminal=hand_terminal)
        return
    from labctl.cli.run_display import displayed
    from labctl.runtime.campaign_run import run_campaign

    with displayed(beside=as_json) as (say, watch):
        complete = run_campaign(
            folder,
            say,
            manual=False if attended else simulated_time,
            attended=attended,
            watch=watch,
            unready=unready,
            hand_terminal=hand_terminal,
        )
    if as_json:
        from labctl.store.verifying.verified import in_passing
        from labctl.viewing.status import standing

        with in_passing(folder) as opened:
            print_json({"schema": "labctl.run/1", "complete": complete, "campaign": standing(opened.state)})


@click.command(epilog=STOP)
@campaign_argument(required=False)
@click.option("--now", is_flag=True, help="At once: the robot stops, what was recorded is sealed and scored later.")
@who_option
@lab_option
@json_option
def stop(campaign: str | None, now: bool, who: str | None, lab: Path | None, as_json: bool) -> None:
    """End the run of a campaign from another shell, and wait until it has ended.

    A trial that runs is finished and scored first; one that has not begun is planned again, which costs it nothing.
    The robot's own way home stops. No trial is lost: the next `labctl run` goes on. This is no safety stop.
    """
    folder = campaign_folder(campaign, lab)
    lines = []
    for line in ended(folder, acting(who, folder), now=now):
        lines.append(line)
        click.echo(line, err=as_json)
    if as_json:
        print_json({"schema": "labctl.said/1", "campaign": folder.name, "said": lines})


def ended(folder: Path, who: str, *, now: bool) -> Iterator[str]:
    """End the run of a campaign folder; lines to print meanwhile. Raises StateError for a run that does not answer, or
    that does not end although it should at once.
    """
    from labctl.core.trial import tally
    from labctl.runtime.attach import cut_off, is_there, run_of
    from labctl.runtime.hosting.cell_nodes import goes_on_with
    from labctl.store.verifying.verified import in_passing

    clock = MonotonicClock()
    until, going, cut = clock.now_ns() + UNKNOWN_S * SECOND, run_of(folder), cut_off(folder)
    while going is None and cut is None and (unknown := _unknown(folder)):
        if clock.now_ns() > until:
            raise StateError(
                f"a run has {folder.name} (process {unknown}) and does not say how it can be reached: it still begins "
                f"or ends, or its run.json is gone; kill {unknown} ends it in order"
            )
        clock.sleep_until(clock.now_ns() + SECOND // 5)
        going, cut = run_of(folder), cut_off(folder)
    going = going or cut
    if going is None:
        yield f"no run of {folder.name} is going"
        return
    pid = int(going["pid"])
    since = began(pid)
    if cut is not None:
        yield _signal_cut_off(folder, pid, now=now)
    elif "sockets" in going:
        yield _ask(folder, who, now=now)
    else:
        _signal(pid, now=now)
    until = clock.now_ns() + NOW_S * SECOND if now else None
    while is_there(pid) and began(pid) == since:
        if until is not None and clock.now_ns() > until:
            raise StateError(
                f"the run of {folder.name} (process {pid}) has not ended; kill -KILL {pid} is what is left"
            )
        clock.sleep_until(clock.now_ns() + SECOND // 5)
    with in_passing(folder) as campaign:
        yield f"the run of {folder.name} has ended: {tally(campaign.state)}; go on with: {goes_on_with(campaign)}"
        if campaign.state.session is not None:
            yield f"session {campaign.state.session.id} stays open for those in it; X at the console closes it"


def _signal(pid: int, *, now: bool) -> None:
    from labctl.runtime.hosting.ending import LEAVE

    with suppress(ProcessLookupError):  # it ended in this moment
        os.kill(pid, signal.SIGTERM if now else LEAVE)


def _signal_cut_off(folder: Path, pid: int, *, now: bool) -> str:
    """End a run that no message reaches, if it is the process that has the campaign. Raises StateError."""
    if held_by(folder / OF_CAMPAIGN) != pid:
        raise StateError(
            f"the run of {folder.name} (process {pid}) cannot be reached, the folder of its sockets is gone, and it "
            f"cannot be told whether that process still has the campaign; if it is the run, kill {pid} ends it in order"
        )
    _signal(pid, now=now)
    cut = f"the folder of the sockets of {folder.name}'s run is gone: it was sent a signal (process {pid})"
    return f"{cut}, and ends at once" if now else f"{cut}, and ends after the trial that runs and its score; {STANDS}"


def _unknown(folder: Path) -> int | None:
    """The process of a run that has the campaign and says nothing of itself: one that begins, or that ends."""
    pid = held_by(folder / OF_CAMPAIGN)
    return pid if pid is not None and holder(folder / OF_CAMPAIGN).startswith("run ") else None


def _ask(folder: Path, who: str, *, now: bool) -> str:
    """What the run answers."""
    from labctl.runtime.attach import Attachment

    link, clock = Attachment(folder), MonotonicClock()
    try:
        reply = link.end_run(who=who, now=now)
        until = clock.now_ns() + ANSWER_S * SECOND
        while clock.now_ns() < until:
            for message in link.poll():
                if message.kind == "reply" and message.body["id"] == reply:
                    note = str(message.body["note"])
                    return note if "at once" in note else f"{note}; {STANDS}"
            clock.sleep_until(clock.now_ns() + SECOND // 50)
    finally:
        link.close()
    raise StateError(
        f"the run of {folder.name} (process {link.pid}) does not answer; if it hangs: kill -KILL {link.pid}"
    )
