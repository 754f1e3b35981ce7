"""PolyScope X's Robot API, which took the dashboard's place: HTTP and JSON on port 80 of the controller.

May not: hold up the thread that asks for a change of power: a controller may answer only when the robot is there.
Paths, actions and answers are those that Universal Robots' client library uses (2.13, `DashboardClientImplX`): the API
is there from 10.11 on, the control mode from 10.12 on. **Unverified on hardware.**
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from labctl.errors import DeviceRefused
from labctl.plain import Json

BASE = "/universal-robots/robot-api"
QUESTION_S, CHANGE_S = 1.0, 60.0  # an answer may be waited for so long; powering on takes the longest
MOST_BYTES = 1 << 16
MOVED = (301, 302, 307, 308)  # paths have changed between versions
MOST_MOVES = 3


class RobotApi:
    """See `labctl.drivers.ur.dashboard.Switches`. One change at a time, on a thread of its own: asked for again
    meanwhile nothing happens, and what the last one was refused with is raised until one succeeds.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._change: threading.Thread | None = None
        self._action = self._refused = ""

    def in_remote_control(self) -> bool | None:
        try:
            status, reply = self._ask("GET", "/system/v1/controlmode", None, QUESTION_S)
        except DeviceRefused:
            return None
        mode = reply.get("mode")
        return mode == "REMOTE" if status == 200 and isinstance(mode, str) else None

    def serial(self) -> str | None:
        """It has no question for that, as far as is known."""
        return None

    def power_on(self) -> None:
        self._begin("power on", "POWER_ON")

    def release_brakes(self) -> None:
        self._begin("brake release", "BRAKE_RELEASE")

    def unlock(self) -> None:
        self._begin("unlock (a robot refuses it for 5 s)", "UNLOCK_PROTECTIVE_STOP")

    def end_program(self) -> None:
        """ur_rtde has no dashboard here to stop one; without an answer what it sends ends it all the same."""
        with contextlib.suppress(DeviceRefused):
            self._ask("PUT", "/program/v1/state", {"action": "stop"}, QUESTION_S)

    def close(self) -> None:
        """Nothing stays open between two questions."""

    def _begin(self, what: str, action: str) -> None:
        if action != self._action:
            self._action, self._refused = action, ""
        refused = self._refused
        if self._change is None or not self._change.is_alive():
            self._change = threading.Thread(target=self._do, args=(what, action), name="robot-api", daemon=True)
            self._change.start()
        if refused:
            raise DeviceRefused(refused)

    def _do(self, what: str, action: str) -> None:
        try:
            status, reply = self._ask("PUT", "/robotstate/v1/state", {"action": action}, CHANGE_S)
        except DeviceRefused as error:
            self._refused = f"{what}: {error}"
            return
        why = reply.get("details") or reply.get("message") or "without a reason"
        self._refused = "" if status == 200 else f"Robot API, {what}: refused ({status}, {why})"

    def _ask(
        self, method: str, path: str, body: Mapping[str, Json] | None, timeout_s: float
    ) -> tuple[int, Mapping[str, Json]]:
        """Status and answer. Raises DeviceRefused where nobody answers by HTTP."""
        target, text = BASE + path, None if body is None else json.dumps(body)
        head = {} if body is None else {"Content-Type": "application/json"}
        for _ in range(MOST_MOVES):
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
            try:
                connection.request(method, target, text, head)
                answer = connection.getresponse()
                status, place, data = answer.status, answer.getheader("Location"), answer.read(MOST_BYTES)
            except (OSError, ValueError, OverflowError, http.client.HTTPException) as error:
                why = f"the Robot API does not answer on port {self._port} ({' '.join(str(error).split())})"
                raise DeviceRefused(f"{why}: do it at the pendant, then acknowledge") from error
            finally:
                connection.close()
            if status not in MOVED or not place:
                return status, _table(data)
            with contextlib.suppress(ValueError):  # a place that is none: asked there again, until MOST_MOVES
                target = urlsplit(place)._replace(scheme="", netloc="").geturl()
        raise DeviceRefused(f"the Robot API sends on and on from {BASE + path}: do it at the pendant, then acknowledge")


def _table(data: bytes) -> Mapping[str, Json]:
    """A JSON object; empty for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
