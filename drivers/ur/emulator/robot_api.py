"""The Robot API of an emulated UR with PolyScope X: HTTP in front of what its dashboard would do.

May not: touch sockets or hold a state of its own. Paths, actions and answers are those that Universal Robots' client
library asks for and reads (`DashboardClientImplX`, 2.13); the status of a refusal is an assumption, and so is the
API's own number, of which the library says only that what it calls 3.1.4 came with PolyScope 10.12.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from labctl.drivers.ur.emulator.dashboard import Dashboard
from labctl.drivers.ur.robot_api import BASE
from labctl.plain import Json

ACTIONS = {
    "POWER_ON": "power on",
    "POWER_OFF": "power off",
    "BRAKE_RELEASE": "brake release",
    "UNLOCK_PROTECTIVE_STOP": "unlock protective stop",
    "RESTART_SAFETY": "restart safety",
}
PROGRAM = {"play": "play", "pause": "pause", "resume": "play", "stop": "stop"}
ASKS_FROM = (10, 12)  # of these an older API knows none
ASKED = {
    "/robotstate/v1/robotmode": "robotmode",
    "/robotstate/v1/safetymode": "safetymode",
    "/system/v1/operationalmode": "get operational mode",
}
REFUSALS = ("Cannot", "Failed", "could not")
Answer = tuple[HTTPStatus, Mapping[str, Json]]


class RobotApiServer:
    """Answers one HTTP request at a time."""

    def __init__(self, dashboard: Dashboard, version: tuple[int, int, int, int]) -> None:
        self._dashboard, self._asks = dashboard, version[:2] >= ASKS_FROM

    def answer(self, request: str) -> str:
        head, _, body = request.partition("\r\n\r\n")
        method, _, target = head.partition("\r\n")[0].partition(" ")
        path = target.partition(" ")[0].partition("?")[0].rstrip("/")
        if not path.startswith(BASE):
            status, reply = HTTPStatus.NOT_FOUND, _why(f"no {path}")
        elif method == "PUT":
            status, reply = self._put(path.removeprefix(BASE), body)
        else:
            status, reply = self._get(path.removeprefix(BASE))
        text = json.dumps(reply)
        size = len(text.encode())
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {size}"
        return f"{head}\r\n\r\n{text}"

    def _get(self, path: str) -> Answer:
        if path == "/openapi.json":
            number = "3.1.4" if self._asks else "3.0.0"
            return HTTPStatus.OK, {"openapi": "3.1.0", "info": {"title": "Robot API", "version": number}}
        if path == "/program/v1/state":
            return HTTPStatus.OK, {"state": self._program()}
        if self._asks and path == "/system/v1/controlmode":
            remote = self._dashboard.answer("is in remote control") == "true"
            return HTTPStatus.OK, {"mode": "REMOTE" if remote else "LOCAL"}
        if self._asks and path in ASKED:
            return HTTPStatus.OK, {"mode": self._dashboard.answer(ASKED[path]).rpartition(": ")[2]}
        return HTTPStatus.NOT_FOUND, _why(f"no {path}")

    def _put(self, path: str, body: str) -> Answer:
        known = {"/robotstate/v1/state": ACTIONS, "/program/v1/state": PROGRAM}.get(path)
        if known is None:
            return HTTPStatus.NOT_FOUND, _why(f"no {path}")
        try:
            verb = known[json.loads(body)["action"]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return HTTPStatus.BAD_REQUEST, _why(f"action: one of {', '.join(known)}")
        if self._dashboard.answer("is in remote control") != "true":
            return HTTPStatus.FORBIDDEN, _why("the robot is in local control")
        reply = self._dashboard.answer(verb)
        if reply.startswith(REFUSALS):
            return HTTPStatus.CONFLICT, _why(reply)
        return HTTPStatus.OK, {"state": self._program(), "message": reply, "details": reply}

    def _program(self) -> str:
        return self._dashboard.answer("programstate").partition(" ")[0]


def request_end(text: str) -> int:
    """Where the first HTTP request ends; 0 for one that is not whole yet."""
    head, found, _ = text.partition("\r\n\r\n")
    if not found:
        return 0
    lines = [line.partition(":") for line in head.lower().split("\r\n")]
    size = next((value.strip() for name, _, value in lines if name == "content-length"), "0")
    end = len(head) + len(found) + (int(size) if size.isascii() and size.isdigit() and len(size) < 10 else 0)
    return end if len(text) >= end else 0


def _why(text: str) -> Mapping[str, Json]:
    return {"message": text, "details": text}
