"""`labctl stop`: end a run from another shell, once the trial that runs is scored, or now.

May not: end anything by force, or act on a process that is not the run of that campaign.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, lab_option

EPILOG = example("labctl stop first", "labctl stop first --now")
ANSWER_S = 5
NOW_S = 60  # a video's last frames and its digest
STANDS = "Ctrl-C leaves this request standing; --now ends the run at once"


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument(required=False)
@click.option("--now", is_flag=True, help="At once: the robot stops, what was recorded is sealed and scored later.")
@click.option("--who", default=None, metavar="ID", help="Your opaque id, for the journal [default: the login name].")
@lab_option
def stop(campaign: str | None, now: bool, who: str | None, lab: Path | None) -> None:
    """End the run of a campaign from another shell, and wait until it has ended.

    A trial that runs is finished and scored first; one that has not begun is planned again, which costs it nothing.
    The robot's own way home stops. No trial is lost: the next `labctl run` goes on. This is no safety stop.
    """
    from labctl.cli.console import login
    from labctl.store.lab_folder import campaign_folder

    for line in ended(campaign_folder(campaign, lab), who or login(), now=now):
        click.echo(line)


def ended(folder: Path, who: str, *, now: bool) -> Iterator[str]:
    """End the run of a campaign folder; lines to print meanwhile. Raises StateError for a run that does not answer, or
    that does not end although it should at once.
    """
    from labctl.clock import SECOND, MonotonicClock, began
    from labctl.core.trial import tally
    from labctl.errors import StateError
    from labctl.runtime.attach import is_there, run_of
    from labctl.store.verified import in_passing

    going, clock = run_of(folder), MonotonicClock()
    if going is None:
        yield f"no run of {folder.name} is going"
        return
    pid = int(going["pid"])
    since = began(pid)
    if "sockets" in going:
        yield _ask(folder, who, now=now)
    else:
        from labctl.runtime.ending import LEAVE

        os.kill(pid, signal.SIGTERM if now else LEAVE)
    until = clock.now_ns() + NOW_S * SECOND if now else None
    while is_there(pid) and began(pid) == since:
        if until is not None and clock.now_ns() > until:
            raise StateError(
                f"the run of {folder.name} (process {pid}) has not ended; kill -KILL {pid} is what is left"
            )
        clock.sleep_until(clock.now_ns() + SECOND // 5)
    with in_passing(folder) as campaign:
        yield f"the run of {folder.name} has ended: {tally(campaign.state)}; go on with: labctl run {folder.name}"


def _ask(folder: Path, who: str, *, now: bool) -> str:
    """What the run answers."""
    from labctl.clock import SECOND, MonotonicClock
    from labctl.errors import StateError
    from labctl.runtime.attach import Attachment

    link, clock = Attachment(folder), MonotonicClock()
    try:
        asked = link.end_run(who=who, now=now)
        until = clock.now_ns() + ANSWER_S * SECOND
        while clock.now_ns() < until:
            for message in link.poll():
                if message.kind == "reply" and message.body["id"] == asked:
                    note = str(message.body["note"])
                    return note if "at once" in note else f"{note}; {STANDS}"
            clock.sleep_until(clock.now_ns() + SECOND // 50)
    finally:
        link.close()
    raise StateError(
        f"the run of {folder.name} (process {link.pid}) does not answer; if it hangs: kill -KILL {link.pid}"
    )
