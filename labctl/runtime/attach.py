"""A console's link to a running campaign: it receives the state, the robot's observations and pictures, sends commands,
and stops the robot without asking anyone.

May not: own any state, journal anything, or command when it is read-only. It may be cut at any moment.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from pathlib import Path
from typing import NotRequired, TypedDict

import zmq

from labctl.bus import Body, Message, decode, encode
from labctl.clock import MILLISECOND, SECOND, Clock, began, began_before
from labctl.errors import StateError
from labctl.messages.motion import Stop
from labctl.messages.processes import CommandSent, EndRun
from labctl.plain import Json
from labctl.runtime.hosting.cell_nodes import camera_names, goes_on_with
from labctl.runtime.hosting.transport import PREVIEWS, endpoint
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import read_cell
from labctl.store.locks import CONTACT

TOPICS = ("@state", "@obs")
WAIT_NS = 3 * SECOND
CONNECT_MS = 50  # a stop right after a console was opened may come before its connection
_MOST = 1000  # messages read in one poll: a flood must not freeze a screen


class Attachment:
    """One console's sockets. `poll`, `command`, `renew` and `close` belong to one thread; `stop_robot` to any."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        """Connect to the run of a campaign folder. Raises StateError when none is going."""
        self.folder = folder
        self.read_only = read_only
        self._sent = 0
        self._name = f"console-{os.getpid()}-{secrets.token_hex(6)}"  # no other console ever has it: ids begin with it
        self._stop_lock = threading.Lock()
        self._join(_contact(folder))

    def _join(self, found: Contact) -> None:
        self.pid = int(found["pid"])
        self._began = began(self.pid)
        self._sockets = found.get("sockets", "")  # `_contact` gives none without
        sockets = Path(self._sockets)
        cell = read_cell(self.folder / "cell.toml", frozen=True)
        self._context = zmq.Context()
        self._hub = self._socket(zmq.DEALER)
        self._hub.identity = self._name.encode()
        self._hub.connect(endpoint(sockets, "run.in"))
        self._ear = self._socket(zmq.SUB)
        for topic in TOPICS:
            self._ear.subscribe(topic.encode())
        for publisher in ("run", "arm"):
            self._ear.connect(endpoint(sockets, f"{publisher}.pub"))
        self._eye = self._socket(zmq.SUB)
        self._eye.rcvhwm = PREVIEWS  # pictures are large: a console that hangs must not gather them
        self._eye.subscribe(b"@preview")
        for camera in camera_names(cell):
            self._eye.connect(endpoint(sockets, f"{camera}.pub"))
        self._stop = self._socket(zmq.PUSH)
        self._stop.immediate = 1  # nothing waits for a robot that is not there: a later one would be stopped by it
        self._stop.connect(endpoint(sockets, "arm.stop"))
        if not self.read_only:
            self.command("look", who="console", role="operator")

    def renew(self) -> bool:
        """Attach to the run that has taken the place of the one attached to; False while there is no other."""
        try:
            found = _contact(self.folder)
        except StateError:
            return False
        if found.get("sockets") == self._sockets:
            return False
        with self._stop_lock:
            self._context.destroy(linger=0)
            self._join(found)
        return True

    def _socket(self, kind: int) -> zmq.Socket:
        made = self._context.socket(kind)
        made.linger = 0
        return made

    def poll(self) -> list[Message]:
        """What has arrived: every reply, and of each published thing only the latest. Never waits."""
        replies: list[Message] = []
        latest: dict[tuple[str, Json], Message] = {}
        for source in (self._hub, self._ear, self._eye):
            for _ in range(_MOST):
                try:
                    frames = source.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if source is self._hub:
                    replies.append(decode(frames))
                else:
                    message = decode(frames[1:])
                    latest[(message.kind, message.body.get("camera"))] = message
        return [*replies, *latest.values()]

    def command(
        self,
        verb: str,
        *,
        who: str,
        role: str,
        version: int | None = None,
        args: Body | None = None,
        keys: int | None = None,
    ) -> str:
        """Send a command; returns its id. The reply comes by `poll` (kind "reply", the same id). keys: pressed since
        the last command, where a person presses some.

        Raises StateError on a read-only console.
        """
        if self.read_only:
            raise StateError("this console is read-only; open one without --read-only to act")
        command = CommandSent(verb, who, role, self._next_id(), version, dict(args or {}), keys)
        return self._ask(command.to("run", sender=self._name))

    def _next_id(self) -> str:
        self._sent += 1
        return f"{self._name}-{self._sent}"

    def _ask(self, message: Message) -> str:
        try:
            self._hub.send_multipart(encode(message), zmq.NOBLOCK)
        except zmq.Again:
            raise StateError(
                "the run takes no more commands: it has read none for a long time; labctl stop ends it"
            ) from None
        return message.body["id"]

    def end_run(self, *, who: str, now: bool = False) -> str:
        """Ask that the run ends: after a trial that runs and its score, or (now) at once. Returns the request's id; the
        reply comes by `poll`, and its note says what the run does. Raises StateError as `command` does.
        """
        return self._ask(EndRun(who, self._next_id(), now).to("run", sender=self._name))

    def stop_robot(self) -> bool:
        """Send a stop to the robot's process, past the run process; False when there is no process to take it, and then
        none takes it later.
        """
        message = encode(Stop().to("arm", sender=self._name))
        with self._stop_lock:
            if not self._stop.poll(CONNECT_MS, zmq.POLLOUT):
                return False
            try:
                self._stop.send_multipart(message, zmq.NOBLOCK)
            except zmq.Again:
                return False
        return True

    def alive(self) -> bool:
        """Is the run process still there?"""
        return is_there(self.pid) and began(self.pid) == self._began

    def ended(self) -> bool:
        """Has the run process ended in order? One that was killed leaves behind where it could be reached."""
        return not self.alive() and not (self.folder / CONTACT).exists()

    def close(self) -> None:
        self._context.destroy(linger=200)


def is_running(folder: Path) -> bool:
    """Is a run of this campaign going that can be attached to?"""
    found = run_of(folder)
    return found is not None and "sockets" in found


class Contact(TypedDict):
    """What a run says of itself in its campaign's folder. began: when its process did; sockets: the folder of its
    sockets, unless it is in simulated time.
    """

    pid: int
    began: NotRequired[str | None]
    sockets: NotRequired[str]


def run_of(folder: Path) -> Contact | None:
    """What the run of a campaign that is going says of itself: pid, and the folder of its sockets unless it is in
    simulated time. None when none is going, or one that is cut off.
    """
    found, cut = _told_of(folder)
    return None if cut else found


def cut_off(folder: Path) -> Contact | None:
    """The same of a run that is going although the folder of its sockets is gone: nobody attaches to it any more."""
    found, cut = _told_of(folder)
    return found if cut else None


def left_by_a_killed_run(campaign: Campaign) -> str:
    """Of a campaign that says of itself that it is run: a line where nobody does, as its run ended without a word, and
    what the journal says of the trial at hand is as that left it.
    """
    found, _ = _told_of(campaign.folder)
    again = goes_on_with(campaign)
    return "" if found else f"its run has ended without a word, and none goes on; start it again with: {again}"


def _told_of(folder: Path) -> tuple[Contact | None, bool]:
    """A run that is going, and whether the folder of its sockets is gone."""
    try:
        found = json.loads((folder / CONTACT).read_text("utf-8"))
        pid, written_s = int(found["pid"]), (folder / CONTACT).stat().st_mtime
        gone = "sockets" in found and not Path(found["sockets"]).is_dir()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None, False
    if not 0 < pid < 2**31:  # no process; a signal to 0 or below goes to many
        return None, False
    if found.get("began") is not None:
        another = found["began"] != began(pid)  # which has the id of a run that was killed
    else:  # of before November 2026
        another = not began_before(pid, written_s)
    return (None, False) if another or not is_there(pid) else (found, gone)


def wait_for_run(folder: Path, clock: Clock, *, patience_ns: int = WAIT_NS) -> None:
    """Wait until a run of this campaign can be attached to. Raises StateError when none comes."""
    until = clock.now_ns() + patience_ns
    while True:
        try:
            _contact(folder)
            return
        except StateError:
            if clock.now_ns() >= until:
                raise
        clock.sleep_until(clock.now_ns() + 50 * MILLISECOND)


def _contact(folder: Path) -> Contact:
    name, (found, cut) = folder.name, _told_of(folder)
    if found is not None and cut:
        raise StateError(
            f"the run of {name} goes on (process {found['pid']}) and cannot be reached: the folder of its sockets, "
            f"{found.get('sockets')}, is gone; end it with: labctl stop {name}"
        )
    if found is None and (folder / CONTACT).exists():
        raise StateError(f"the run of {name} has ended without a word; start it again with: labctl run {name}")
    if found is None:
        raise StateError(f"no run of {name} is going; start one with: labctl run {name}")
    if "sockets" not in found:
        raise StateError(f"the run of {name} is in simulated time (process {found['pid']}): no person keeps up with it")
    return found


def is_there(pid: int) -> bool:
    """Is there a process with this id that has not ended?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:  # one that has ended is listed until its parent, such as this console, has asked how
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True
