"""Two cells and their seal host as real processes, joined by wires that can be cut: through a relay on loopback, or in
namespaces of their own with a pair of interfaces for each cell (root).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.joint.joint_labs import Labs
from support.joint.relay import Relay, relay
from support.machine.postgres import free_port
from support.machine.processes import end_with_parent
from support.machine.warm import FIRST, Forked, Warm

LABCTL = str(Path(sys.executable).with_name("labctl"))
PORT = 7441
SERVED = (*FIRST, "labctl.cli.keeping.joint", "labctl.joint.door")


@dataclass
class Wires:
    """within: words before a command of the host or a cell; relays: of each cell, on loopback; warm: what forks them
    where nothing stands before a command.
    """

    labs: Labs
    bind: str
    within: Mapping[str, Sequence[str]]
    relays: Mapping[str, Relay] = field(default_factory=dict[str, Relay])
    warm: Warm | None = None

    def cut(self, cell: str) -> None:
        """Nothing passes between a cell and its seal host any more."""
        if self.relays:
            self.relays[cell].say("cut")
        else:
            _ip("-n", _space("host"), "link", "set", f"to-{cell}", "down")

    def mend(self, cell: str) -> None:
        if self.relays:
            self.relays[cell].say("join")
        else:
            _ip("-n", _space("host"), "link", "set", f"to-{cell}", "up")

    def serve(self) -> subprocess.Popen[bytes] | Forked:
        """`labctl joint serve`, as its own process."""
        words = ["joint", "serve", self.labs.made.folder.name, "--bind", self.bind, "--lab", str(self.labs.host)]
        return self._start("host", words, self.labs.host / "serve.log")

    def run(self, cell: str, folder: Path, *, live: bool) -> subprocess.Popen[bytes] | Forked:
        """`labctl run --headless` of a cell's part, as its own process."""
        time = "--real-time" if live else "--simulated-time"
        return self._start(cell, ["run", str(folder), "--headless", time], self.labs.cells[cell] / "run.log")

    def labctl(self, cell: str, *words: str) -> str:
        """What a verb prints at a cell or the host; it has to succeed."""
        found = subprocess.run([*self.within[cell], LABCTL, *words], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def join(self, cell: str) -> Path:
        """The campaign folder of a cell, opened by the command."""
        lab = self.labs.cells[cell]
        files = (
            str(self.labs.invitation(cell)),
            str(lab / "protocols/two.toml"),
            "--cell",
            str(lab / "cells/cell.toml"),
        )
        self.labctl(cell, "joint", "join", *files, "--lab", str(lab))
        return lab / "campaigns" / f"two-{cell}"

    def _start(self, where: str, words: Sequence[str], log: Path) -> subprocess.Popen[bytes] | Forked:
        if self.warm is not None:
            return self.warm.start(words, log)
        typed = [*self.within[where], LABCTL, *words]
        with log.open("ab") as out:
            return subprocess.Popen(typed, stdout=out, stderr=out, start_new_session=True, preexec_fn=end_with_parent)


def kill(process: subprocess.Popen[bytes] | Forked) -> None:
    """kill -9 of a process and its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def by_relay(labs: Labs, warm: Warm | None = None) -> Iterator[Wires]:
    """On loopback; `labs` were made with any address."""
    port, relays = free_port(), dict[str, Relay]()
    with ExitStack() as stack:
        for seed, cell in enumerate(labs.cells):
            own = free_port()
            relays[cell] = stack.enter_context(relay(("127.0.0.1", own), ("127.0.0.1", port), seed=seed))
            _readdress(labs, cell, f"tcp://127.0.0.1:{own}")
        nowhere: dict[str, Sequence[str]] = dict.fromkeys(("host", *labs.cells), ())
        yield Wires(labs, f"tcp://127.0.0.1:{port}", nowhere, relays, warm)


@contextmanager
def by_namespaces(labs: Labs) -> Iterator[Wires]:
    """In network namespaces, taken away at the end. Needs root."""
    names = ("host", *labs.cells)
    try:
        for name in names:
            _ip("netns", "add", _space(name))
            _ip("-n", _space(name), "link", "set", "lo", "up")
        for number, cell in enumerate(labs.cells, 1):
            ends = ("type", "veth", "peer", "name", "to-host", "netns", _space(cell))
            _ip("-n", _space("host"), "link", "add", f"to-{cell}", *ends)
            for name, interface, last in (("host", f"to-{cell}", 1), (cell, "to-host", 2)):
                _ip("-n", _space(name), "addr", "add", f"10.77.{number}.{last}/24", "dev", interface)
                _ip("-n", _space(name), "link", "set", interface, "up")
            _readdress(labs, cell, f"tcp://10.77.{number}.1:{PORT}")
        within = {name: ("ip", "netns", "exec", _space(name)) for name in names}
        yield Wires(labs, f"tcp://0.0.0.0:{PORT}", within)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", _space(name)], check=False, stderr=subprocess.DEVNULL)


def _space(name: str) -> str:
    return f"labctl-{os.getpid()}-{name}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _readdress(labs: Labs, cell: str, address: str) -> None:
    path = labs.invitation(cell)
    lines = [f'address = "{address}"' if line.startswith("address") else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")
