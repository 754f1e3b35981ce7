"""The process that sends a run's alerts, and the run's end of the pipe to it.

The run writes what changed and goes on; it never waits. A pipe that is full, a process that is gone and a queue that is
full cost the alert, and the log in the campaign's logs/alerts.log says so.

May not: hold up a run, or keep one from ending.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from labctl.alerts.sending import Send, ways
from labctl.alerts.watch import Alert, Watch, brief_of
from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.config.alerts import AlertKind, AlertsTable
from labctl.core.published_state import PublishedState
from labctl.errors import InputError, StateError
from labctl.logs import appended, begin, printed_beside
from labctl.plain import count
from labctl.store.lab_folder import lab_settings

LOG = "logs/alerts.log"
MAIN = "from labctl.alerts.courier import main; main()"
WAITING = 32  # alerts that wait for a slow network; more are dropped
LINE = 4096  # bytes that a pipe takes whole or not at all
NICER = 10
OVER = {"over": True}
SIMULATED = "[alerts] of lab.toml: nobody is told of this run, which is in simulated time; "
SIMULATED += "labctl doctor --alerts sends a test"


def wanted(folder: Path) -> bool:
    """Whether the lab of a campaign folder has [alerts]. Raises InputError for a lab.toml that is wrong."""
    return lab_settings(folder).alerts is not None


class Alerts:
    """A run's side. `hear` gets every published state; without [alerts] in lab.toml it does nothing."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError for a lab.toml that is wrong; a variable that is not set is said in the log alone."""
        self._last: bytes | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._missed = 0
        if not wanted(folder):
            return
        with suppress(OSError):
            with appended(printed_beside(folder / LOG)) as out:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", MAIN, str(folder)],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)

    def hear(self, state: PublishedState) -> None:
        """Pass on what is watched of a state, if it changed. Comes back at once, whatever the network does."""
        if self._process is None:
            return
        line = json.dumps(brief_of(state), separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
        if line != self._last:
            self._last = line
            self._write(line)

    def close(self) -> None:
        """The run ends; what is on its way is sent by the other process, which nobody waits for."""
        if self._process is not None and self._process.stdin is not None:
            self._write(json.dumps(OVER).encode())
            with suppress(OSError):
                self._process.stdin.close()
            self._process = None

    def _write(self, line: bytes) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        whole = line + b"\n"
        if self._missed:
            whole = json.dumps({"missed": self._missed}).encode() + b"\n" + whole
        try:
            sent = len(whole) <= LINE and os.write(process.stdin.fileno(), whole) == len(whole)
        except OSError:  # full, or nobody reads any more
            sent = False
        self._missed = 0 if sent else self._missed + 1


def main() -> None:
    """The process: the campaign's folder is its argument, briefs come on standard input until it closes."""
    folder = Path(sys.argv[1])
    with suppress(OSError):
        os.nice(NICER)
    kept, log = begin(folder / LOG), logging.getLogger("alerts")
    try:
        table = lab_settings(folder).alerts
        if table is not None:
            serve(sys.stdin.buffer, table, ways(table, os.environ), log.info, MonotonicClock())
    except InputError as error:
        log.error("no alert is sent: %s", error)
    finally:
        kept.end()


def serve(
    lines: Iterable[bytes], table: AlertsTable, by: Mapping[str, Send], log: Callable[[str], None], clock: Clock
) -> None:
    """Send alerts of the briefs in `lines` by every way, each from a thread and a queue of its own, until they end."""
    heard: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read, args=(lines, heard), daemon=True).start()
    ways = {name: Way(name, send, log) for name, send in by.items()}
    watch, end_seen, on = Watch(table.hold_s), False, frozenset[AlertKind](table.on)

    def tell(alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            if alert.kind in on:
                for way in ways.values():
                    way.put(alert)

    while True:
        due_s = watch.next_due_s
        try:
            line = heard.get(timeout=None if due_s is None else max(0.0, due_s - clock.now_ns() / SECOND))
        except queue.Empty:
            tell(watch.ripe(clock.now_ns() / SECOND))
            continue
        if line is None:
            break
        try:
            entry = json.loads(line)
        except ValueError:
            log("a change that cannot be read was left out")
            continue
        if entry == OVER:
            end_seen = True
        elif "missed" in entry:
            log(f"{count(entry['missed'], 'change')} not told: this process did not keep up with the run")
        else:
            tell(watch.hear(entry, clock.now_ns() / SECOND))
    tell(watch.over(end_seen))
    for way in ways.values():
        way.close()


def _read(lines: Iterable[bytes], heard: queue.Queue[bytes | None]) -> None:
    try:
        for line in lines:
            heard.put(line)
    finally:
        heard.put(None)


class Way:
    """One way out: a thread of its own, so that a dead server of one way keeps none of another."""

    def __init__(self, name: str, send: Send, log: Callable[[str], None]) -> None:
        self._name, self._send, self._log = name, send, log
        self._queue: queue.Queue[Alert | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, name=name)
        self._thread.start()

    def put(self, alert: Alert) -> None:
        """Queue an alert; where too many wait already it is dropped, and the log says so."""
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            self._log(f"{self._name}: dropped, {WAITING} wait already: {alert.kind}")

    def close(self) -> None:
        """Send what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (alert := self._queue.get()) is not None:
            try:
                self._send(alert)
                self._log(f"{self._name}: sent: {alert.kind}")
            except StateError as error:
                self._log(f"{self._name}: not sent: {alert.kind}: {error}")
            except Exception as error:  # a bug in a way must not end it; its text may hold an address
                self._log(f"{self._name}: not sent: {alert.kind}: {type(error).__name__}, a bug in labctl")


def try_all(table: AlertsTable, environment: Mapping[str, str], lab: str) -> dict[str, str]:
    """Send a test by every way; what went wrong by name, "" for what arrived. Raises InputError as `ways` does."""
    found = {}
    for name, send in ways(table, environment).items():
        try:
            send(Alert("night", f"labctl {lab}: a test", "This is a test of labctl doctor --alerts; nothing happened."))
            found[name] = ""
        except StateError as error:
            found[name] = str(error)
    return found
