"""`labctl console`: the screens of a running campaign, in a terminal or a browser. `labctl run` opens the same on a run
that it starts.

May not: print what a blind role must not see, end a run that nobody asked to end, or listen beyond loopback without TLS
and a pairing code.
"""

from __future__ import annotations

import errno
import ipaddress
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.leaving import failure
from labctl.cli.options import LABCTL, campaign_argument, example, has_terminal, lab_option, need_terminal, who_option
from labctl.clock import SECOND, MonotonicClock
from labctl.errors import InputError, LabctlError, MissingExtra, StateError
from labctl.loopback import LOOPBACK
from labctl.people.acting import acting
from labctl.store.lab_folder import campaign_folder, campaigns, find_lab, lab_settings
from labctl.times import local

if TYPE_CHECKING:
    from labctl.config.cell_schema import ConsoleTable

EPILOG = example("labctl console first --who p07", "labctl console first --read-only", "labctl console first --web")
START_S = 60


@click.command(epilog=EPILOG)
@campaign_argument(required=False)
@who_option
@click.option("--read-only", is_flag=True, help="Look, and touch nothing.")
@click.option("--web", is_flag=True, help="The same in a browser, on this machine, behind a token.")
@click.option(
    "--port", type=click.IntRange(1024, 65535), metavar="PORT", help="With --web: the port [default: a free one]."
)
@click.option(
    "--host",
    default=LOOPBACK,
    show_default=True,
    metavar="ADDRESS",
    help="With --web: where to listen; off loopback by TLS, and a code pairs the browser.",
)
@lab_option
def console(
    campaign: str | None, who: str | None, read_only: bool, web: bool, port: int | None, host: str, lab: Path | None
) -> None:
    """Attach a console to a running campaign.

    It owns nothing: close it, open another, open two; the run goes on. ENTER does the one next thing, SPACE or F12
    stops the robot, ? lists the keys. Keys are rebound in lab.toml ([console.keys]); a pedal that types a key is a key.
    """
    if not web and (port is not None or host != LOOPBACK):
        raise InputError("--port and --host are of the page in a browser; add --web")
    if campaign is None and not web and choose(lab, who, read_only=read_only):
        return
    folder = campaign_folder(campaign, lab)
    if web:
        serve(folder, acting(who, folder), read_only=read_only, host=host, port=port or 0)
        return
    open_console(folder, acting(who, folder), read_only=read_only)


def choose(
    lab: Path | None,
    who: str | None,
    *,
    read_only: bool = False,
    unready: bool = False,
    hand_terminal: str | None = None,
) -> bool:
    """Let a person choose among the campaigns of a lab; False when there is only one, or none. One that cannot be
    opened is said, and is not among them. unready, hand_terminal: of a run that is begun, as `run_with_console` has it.
    """
    from labctl.reporting.campaign_report import report_campaign
    from labctl.runtime.attach import is_running
    from labctl.store.verifying.verified import JOURNAL_ALONE, verified
    from labctl.ui.console import campaigns as module
    from labctl.viewing.status import standing

    folders = campaigns(find_lab(lab))
    if len(folders) < 2 or not (sys.stdout.isatty() and has_terminal()):
        return False
    entries, last_error = [], None
    for folder in folders:
        try:
            with verified(folder, JOURNAL_ALONE, unverified=True) as shown:
                found, last = standing(shown.campaign.state), shown.campaign.events()[-1]
        except LabctlError as error:
            click.echo(f"{folder.name}: {error}", err=True)
            last_error = error
            continue
        happened = f"{last.kind} {local(last.wall)}"
        counts = (found["finished"], found["trials"])
        stands = (*counts, is_running(folder), happened, bool(shown.broken))
        entries.append(module.Entry(folder.name, found["phase"], *stands))
    if not entries and last_error is not None:
        raise last_error
    by_name = {folder.name: folder for folder in folders}
    reports = find_lab(lab) / "reports"

    def make(name: str, say: Callable[[str], None]) -> Path:
        return in_words(lambda: report_campaign(by_name[name], reports / name, say=say))

    chosen = module.Campaigns(entries, make).run()
    if chosen is None:
        return True
    folder = by_name[chosen[0]]
    if chosen[1] == "attach" or read_only:
        open_console(folder, acting(who, folder), read_only=read_only)
    else:
        run_with_console(folder, acting(who, folder), unready=unready, hand_terminal=hand_terminal)
    return True


def in_words(make: Callable[[], Path]) -> Path:
    """What is made in front of a screen that stays: what this machine says against it ends no screen. Raises StateError
    in the words of a command line.
    """
    try:
        return make()
    except OSError as error:
        if (failed := failure(error)) is None:
            raise
        raise StateError(failed.message) from error


def open_console(folder: Path, who: str, *, read_only: bool = False) -> None:
    """Draw the console of a running campaign until it is left. Raises StateError when none is running."""
    from labctl.runtime.attach import Attachment
    from labctl.store.pictures import load_photo

    link = Attachment(folder, read_only=read_only)
    try:
        need_terminal("console", f"labctl console {folder.name} --web in a browser, or labctl status {folder.name}")
        from labctl.ui.console.app import Console
        from labctl.ui.console.attached import Seat

        settings = _settings(folder)
        seat = Seat(who, settings.keys, photos=partial(load_photo, folder))
        app = Console(link, MonotonicClock(), seat)
        if settings.theme:
            app.theme = settings.theme
        app.run()
    finally:
        link.close()


def _settings(folder: Path) -> ConsoleTable:
    """[console] of lab.toml. Raises InputError for a name, a key or a theme that cannot be."""
    from textual.theme import BUILTIN_THEMES

    from labctl.ui.console.keys import KEYS, fault

    lab = lab_settings(folder)
    found = lab.console
    known = [key.id for key in KEYS if key.id]
    for name in found.keys:
        if name not in known:
            raise lab.refusal(("console", "keys", name), f"[console.keys] has {name!r}; known: {', '.join(known)}")
    if wrong := fault(found.keys):
        raise lab.refusal(("console", "keys", wrong[0]), wrong[1])
    if found.theme and found.theme not in BUILTIN_THEMES:
        raise lab.refusal(("console", "theme"), f"no theme {found.theme!r}; known: {', '.join(BUILTIN_THEMES)}")
    return found


def run_with_console(folder: Path, who: str, *, unready: bool = False, hand_terminal: str | None = None) -> None:
    """Start a run of a campaign in a process of its own and open a console on it. Leaving the console leaves the run,
    unless the person says otherwise. To a run that goes on already the console attaches; with nothing left to run that
    is said.
    """
    from labctl.runtime.attach import is_running, run_of, wait_for_run
    from labctl.runtime.campaign_run import nothing_left
    from labctl.runtime.lab_modules import edited_lines
    from labctl.store.verifying.verified import in_passing

    otherwise = f"labctl run {folder.name} --headless, with --attended where people score"
    if is_running(folder):
        need_terminal("run", otherwise)
        _join(folder, who)
        return
    with in_passing(folder) as campaign:
        over = nothing_left(campaign, attended=True)
        edited = [] if over else edited_lines(campaign)
    if over:
        click.echo(over)
        return
    need_terminal("run", otherwise)  # this and the settings before a run begins that nobody would see
    _settings(folder)
    for line in edited:
        click.echo(line, err=True)
    click.echo(f"starting the run of {folder.name}: its console opens once it answers", err=True)
    log = folder / "logs" / "run.out"  # what it prints, kept until the next one; logs/run.log has it with times
    log.parent.mkdir(exist_ok=True)
    command = [*LABCTL, "run", str(folder), "--headless", "--attended", *(["--unready"] if unready else [])]
    command += ["--hand-terminal", hand_terminal] if hand_terminal else []
    with log.open("wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    clock = MonotonicClock()
    until = clock.now_ns() + START_S * SECOND
    try:
        while True:
            if child.poll() is not None:
                raise StateError(said_at_the_end(log) or f"the run ended at once; see {log}")
            try:
                wait_for_run(folder, clock, patience_ns=SECOND // 5)
                break
            except StateError:
                if clock.now_ns() > until:
                    raise
    except BaseException:  # Ctrl-C too: nobody would see the run
        child.send_signal(signal.SIGTERM)
        raise
    going = run_of(folder)
    if going is not None and going["pid"] != child.pid:
        child.wait()  # refused: another was quicker
        _join(folder, who)
        return
    open_console(folder, who)
    driven = f" --hand-terminal {hand_terminal}" if hand_terminal else ""
    _leave(child, folder.name, f"labctl run {folder.name}{driven}")


def said_at_the_end(log: Path) -> str:
    """The last line of a log, without "error: "; "" for none."""
    words = log.read_bytes().decode("utf-8", "replace").strip().splitlines()
    return words[-1].removeprefix("error: ") if words else ""


def _join(folder: Path, who: str) -> None:
    """A console on a run that somebody else started."""
    from labctl.runtime.attach import is_running

    click.echo(f"{folder.name} is being run already; this console attaches to it")
    open_console(folder, who)
    if is_running(folder):
        click.echo(
            f"the run goes on; look at it with: labctl console {folder.name}; end it with: labctl stop {folder.name}"
        )


def _leave(child: subprocess.Popen[bytes], name: str, again: str) -> None:
    try:
        code = child.wait(timeout=2)
    except subprocess.TimeoutExpired:
        if click.confirm("The run goes on. End it now (whatever moves stops, what was recorded is sealed)?"):
            child.send_signal(signal.SIGTERM)
            child.wait()
            click.echo(f"ended; go on another time with: {again}")
            return
        if (ended := child.poll()) is None:
            click.echo(f"the run goes on; look at it with: labctl console {name}")
            return
        code = ended
    lost = f"the run {_how(code)}; see the campaign's logs/run.log; it goes on with: {again}"
    click.echo("the run is over" if code == 0 else lost)


def _how(code: int) -> str:
    return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"


def serve(folder: Path, who: str, *, read_only: bool, host: str, port: int) -> None:
    """Serve the console of a running campaign until Ctrl-C. Raises StateError when none is running, MissingExtra."""
    from labctl.runtime.attach import Attachment

    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise InputError(f"--host is {host!r}; give an address such as 127.0.0.1") from None
    if address.is_unspecified:
        raise InputError(
            f"--host {host} is every network of this computer; name the one address that the browser will ask for"
        )
    Attachment(folder, read_only=True).close()  # refuse at once what every tab would refuse
    try:
        from labctl.ui.console import web as module
    except ModuleNotFoundError as error:
        raise MissingExtra("web", "the console in a browser") from error
    command = [*LABCTL, "console", str(folder), "--who", who, *(["--read-only"] if read_only else [])]
    kind = module.TokenServer if address.is_loopback else module.PairedServer
    kind(shlex.join(command), host, free_port(host, port), folder.name, click.echo).serve()


def free_port(host: str, wanted: int = 0) -> int:
    """A port that is free on an address now. Raises InputError where there is none."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted))
        except OSError as error:
            where = f"--host {host}" + (f" --port {wanted}" if wanted else "")
            remedy = f"give another {'--port' if error.errno == errno.EADDRINUSE else '--host'}"
            raise InputError(f"{where} cannot be served on ({error.strerror}); {remedy}") from None
        return probe.getsockname()[1]
