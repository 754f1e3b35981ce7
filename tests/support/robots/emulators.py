"""Emulated controllers for tests: separate processes, each on a loopback address of its own."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import os
import socket
import subprocess
import sys
from functools import cache
from types import TracebackType
from typing import Any

import numpy as np
import pytest

from labctl.drivers.sim.control_link import ControlLink
from labctl.errors import DeviceLost
from support.machine.processes import end_with_parent
from support.robots.cells import cell_named
from support.runs.live_campaign import wait_for

NAMES = {"emulated_fr3": "fr3", "emulated_ur5": "ur5", "emulated_ur5e": "ur5e", "emulated_ros2": "ros2"}
HOSTS = {  # as their cells say
    "emulated_fr3": "127.0.0.2",
    "emulated_ur5": "127.0.0.4",
    "emulated_ur5e": "127.0.0.3",
    "emulated_ros2": "127.0.0.5",
}
PATIENCE_S = 60.0  # for an answer of an emulator's process, which this machine may have no time for
DOMAINS = 100  # of ROS 2, whose ports are below those that systems hand out
_numbers = itertools.cycle(range(1, 255))  # a process that asked for more would have been given no address
NO_UR = "ur_rtde is not installed (PyPI has it for Python 3.11 and 3.12): tests on a UR are left out"


def network_is_read() -> bool:
    """May this user open raw sockets, where an FR3's driver reads? Who may not has the states of its client."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except OSError:
        return False
    return True


def leave_out_without_client(name: str) -> None:
    """Skip the test if `name` (of an emulator, or of a cell that names no simulated robot) needs a client that is not
    installed, which is UR's alone."""
    if name.removeprefix("emulated_").startswith("ur") and importlib.util.find_spec("rtde_control") is None:
        pytest.skip(NO_UR)


def busy(name: str) -> list[pytest.MarkDecorator]:
    """The marker of tests on what emulates a controller at 1 kHz, by the name of a cell or of a robot in it."""
    return [pytest.mark.busy] if "fr3" in name else []


@cache
def own_domain(of: str = "emulators") -> int:
    """A domain of ROS 2 that no other tests on this machine have: this process holds a name for it to its end."""
    for k in range(DOMAINS):
        domain = 1 + (os.getpid() + k) % DOMAINS
        with socket.socket(socket.AF_UNIX) as named:
            try:
                named.bind(f"\0labctl-tests-ros2-{domain}")  # an abstract name: no file, gone with the process
            except OSError:
                continue
            named.detach()
            return domain
    raise OSError(f"tests have all {DOMAINS} domains of ROS 2 that they may use; none is left for {of}")


def address() -> str:
    """A loopback address nobody else uses: ports are fixed by the protocols, so addresses differ."""
    return f"127.{10 + os.getpid() // 250 % 200}.{os.getpid() % 250}.{next(_numbers)}"


class Emulator:
    """`labctl emulate` in a process; `link` is its control port."""

    def __init__(self, name: str, *options: str) -> None:
        leave_out_without_client(name)
        self.name, self.host = name, address()
        self.domain = own_domain() if name == "ros2" else 0
        options = (*options, f"domain={self.domain}") if name == "ros2" else options
        given = [part for option in options for part in ("--option", option)]
        command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()"]
        command += ["emulate", name, "--host", self.host, *given]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # as much weight as one that computes: a controller has a computer of its own
            preexec_fn=end_with_parent,
        )
        self.link = ControlLink(self.host, PATIENCE_S)
        wait_for("the emulator", self._answers)

    def _answers(self) -> bool:
        try:
            self.link.ask({"do": "stats"})
        except DeviceLost:
            assert self.process.poll() is None, self.process.communicate()[0]
            return False
        return True

    def placed(self, cell_name: str) -> dict[str, str]:
        """What a shipped cell file says of where its robot is, and what it has to say instead."""
        domain = {"domain = 42": f"domain = {self.domain}"} if self.name == "ros2" else {}
        return {HOSTS[cell_name]: self.host, **domain}

    def inject(self, fault: str, **args: Any) -> None:
        """Returns when the robot has the fault, and not only whoever is to give it to it."""
        self._obeyed({"do": "fault", "name": fault, "args": args})

    def clear(self) -> None:
        """Returns when what stood has ended."""
        self._obeyed({"do": "clear"})

    def _obeyed(self, order: dict[str, Any]) -> None:
        before = self.stats()["obeyed"]
        self.link.ask(order)
        wait_for(f"what {order} does", lambda: self.stats()["obeyed"] > before)

    def stats(self) -> dict[str, Any]:
        return self.link.ask({"do": "stats"})

    def until_moving(self) -> None:
        """Wait until a joint has turned by more than 0.02 rad."""
        start = np.array(self.stats()["q"])
        wait_for("motion", lambda: np.abs(np.array(self.stats()["q"]) - start).max() > 0.02)

    def still(self) -> bool:
        """Are the joints where they were 50 ms of robot time ago?"""
        before = self.stats()
        wait_for("a later state", lambda: self.stats()["robot_time_s"] > before["robot_time_s"] + 0.05)
        return self.stats()["q"] == before["q"]

    def end(self) -> str:
        """Ask it to end; returns what it printed."""
        self.link.close()
        self.process.terminate()
        try:
            return self.process.communicate(timeout=300)[0]
        finally:
            self.process.kill()


class Emulators:
    """Emulators by the name of a shipped cell, started when first asked for."""

    def __init__(self, *, ahead: bool = False) -> None:
        """ahead: an FR3 goes before other programs, where allowed: its time is then this machine's."""
        self._ahead = ahead
        self.running: dict[str, Emulator] = {}

    def options(self, cell_name: str) -> dict[str, Any]:
        """The cell's robot options with the address of its emulator."""
        emulator = self[cell_name]
        options = copy.deepcopy(cell_named(cell_name).robot.options)
        options["driver_options"]["host"] = emulator.host
        if emulator.name == "ros2":
            options["driver_options"]["domain"] = emulator.domain
        return options

    def __getitem__(self, cell_name: str) -> Emulator:
        if cell_name not in self.running:
            first = self._ahead and cell_name == "emulated_fr3"
            self.running[cell_name] = Emulator(NAMES[cell_name], *(["ahead=true"] if first else []))
        return self.running[cell_name]

    def end_all_but(self, cell_name: str) -> None:
        for name in [name for name in self.running if name != cell_name]:
            self.running.pop(name).end()

    def __enter__(self) -> Emulators:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for emulator in self.running.values():
            emulator.end()
