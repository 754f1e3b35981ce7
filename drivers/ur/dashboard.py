"""What switches a controller's power and brakes and unlocks it: its dashboard, or PolyScope X's Robot API.

May not: do any of it without being asked, or read states: RTDE gives them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Protocol

import dashboard_client

from labctl.drivers.ur.robot_api import RobotApi
from labctl.drivers.ur.vendor_errors import VENDOR
from labctl.drivers.ur.version import Version, asks_for_remote_control, has_dashboard, has_robot_api
from labctl.errors import DeviceRefused

CONNECT_MS = 2000
SAID = {  # ur_rtde's words, and what has happened
    "Operation canceled": "no answer",
    "Timeout connecting to UR dashboard server.": "it cannot be reached; from PolyScope 5.10 on it has to be "
    "enabled at the pendant (Settings, Security, Services)",
}


class Switches(Protocol):
    """Each raises DeviceRefused, in words, where it is refused or nobody answers."""

    def in_remote_control(self) -> bool | None:
        """None of a controller that does not say."""
        ...

    def serial(self) -> str | None:
        """The robot's serial number; None of a controller that does not say, or does not answer."""
        ...

    def power_on(self) -> None: ...
    def release_brakes(self) -> None: ...
    def unlock(self) -> None: ...
    def end_program(self) -> None:
        """End a program that runs, where ur_rtde does not itself before it sends its own."""
        ...

    def close(self) -> None: ...


def switches(host: str, version: Version | None, robot_api_port: int, *, e_series: bool) -> Switches:
    """Those of a controller with this software; connects to nothing yet."""
    if has_dashboard(version):
        return Dashboard(host, remote=e_series and asks_for_remote_control(version))
    return RobotApi(host, robot_api_port) if has_robot_api(version) else AtThePendant()


def check_remote(switches: Switches) -> None:
    """Raises DeviceRefused for a robot in local control, which obeys its pendant alone."""
    if switches.in_remote_control() is False:
        raise DeviceRefused("the robot is in local control: switch it to remote control at the pendant")


class Dashboard:
    """Port 29999; connected anew for each question: a connection that was made in local control goes on being refused
    after the switch to remote control, and one that was cut is not made again by its client. A CB3 does not know every
    question.
    """

    def __init__(self, host: str, *, remote: bool) -> None:
        self._client: Any = dashboard_client.DashboardClient(host)
        self._remote = remote

    def _ask(self, what: str, call: Callable[[], Any], default: Any = None) -> Any:
        try:
            self._client.connect(CONNECT_MS)
            return call()
        except VENDOR as error:
            if default is not None:
                return default
            why = " ".join(str(error).split())
            raise DeviceRefused(f"dashboard, {what}: {SAID.get(why, why)}") from error
        finally:
            self.close()

    def _command(self, line: str, done: str) -> None:
        """`done`: what the answer to a command that is obeyed begins with; the client hears no other of most."""

        def heard() -> str:
            self._client.send(f"{line}\n")
            return str(self._client.receive())

        answer = self._ask(line, heard)
        if not answer.strip().lower().startswith(done.lower()):
            raise DeviceRefused(f"dashboard, {line}: {' '.join(answer.split()) or 'no answer'}")

    def in_remote_control(self) -> bool | None:
        return bool(self._ask("remote control", lambda: self._client.isInRemoteControl())) if self._remote else None

    def serial(self) -> str | None:
        """Only letters and digits: what does not know the question answers with a sentence."""
        number = str(self._ask("serial number", lambda: self._client.getSerialNumber(), default="")).strip()
        return number if number.isalnum() else None

    def power_on(self) -> None:
        self._command("power on", "Powering on")

    def release_brakes(self) -> None:
        self._command("brake release", "Brake releasing")

    def unlock(self) -> None:
        def unlocked() -> None:
            self._client.closeSafetyPopup()  # raises only where nobody answers
            self._client.unlockProtectiveStop()

        self._ask("unlock (a robot refuses it for 5 s)", unlocked)

    def end_program(self) -> None:
        """ur_rtde stops it by its own connection."""

    def close(self) -> None:
        with contextlib.suppress(*VENDOR):  # closing: nobody is left to hear of it
            self._client.disconnect()


class AtThePendant:
    """PolyScope X before it had an interface for this."""

    def in_remote_control(self) -> bool | None:
        return None

    def serial(self) -> str | None:
        return None

    def power_on(self) -> None:
        self._by_hand("power on")

    def release_brakes(self) -> None:
        self._by_hand("brake release")

    def unlock(self) -> None:
        self._by_hand("unlock")

    def end_program(self) -> None:
        """What ur_rtde sends ends it."""

    def close(self) -> None:
        """Nothing is open."""

    def _by_hand(self, what: str) -> None:
        raise DeviceRefused(
            f"PolyScope X below 10.11 has no interface for it ({what}): do it at the pendant, then acknowledge"
        )
