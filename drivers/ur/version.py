"""Which software a controller runs, asked over RTDE before any client is; what to ask of it depends on that.

May not: do more than ask. Messages: Universal Robots' RTDE guide, protocol version 2.
"""

from __future__ import annotations

import socket
import struct

RTDE_PORT = 30004
HEAD = struct.Struct(">HB")
ASKED = struct.Struct(">IIII")
VERSION_2, VERSION = (ord(kind) for kind in "Vv")
REMOTE_FROM, POLYSCOPE_X, UPLOAD_FROM, ROBOT_API_FROM = (5, 6), 10, (10, 10), (10, 11)
LOWER_FROM_MINOR, UPPER_BELOW = 4, (5, 23)  # which registers ur_rtde 1.6.5 reads, whatever it was asked for

Version = tuple[int, int, int, int]


def controller_version(host: str, timeout_s: float) -> Version | None:
    """Major, minor, bugfix and build; None if the controller does not say. Raises OSError where nobody listens."""
    with socket.create_connection((host, RTDE_PORT), timeout_s) as sock:
        try:
            for kind, body in ((VERSION_2, b"\0\2"), (VERSION, b"")):
                sock.sendall(HEAD.pack(HEAD.size + len(body), kind) + body)
                size, code = HEAD.unpack(_exactly(sock, HEAD.size))
                answer = _exactly(sock, size - HEAD.size)
                if code != kind:
                    return None
        except (OSError, EOFError, struct.error):
            return None
    return ASKED.unpack(answer) if len(answer) == ASKED.size else None


def asks_for_remote_control(version: Version | None) -> bool:
    """Has it a remote control that a robot has to be in? An e-Series from PolyScope 5.6 on, as ur_rtde has it."""
    return version is None or (version[0] == REMOTE_FROM[0] and version[:2] >= REMOTE_FROM)


def has_dashboard(version: Version | None) -> bool:
    """Does it serve the dashboard? PolyScope X does not."""
    return version is None or version[0] < POLYSCOPE_X


def has_robot_api(version: Version | None) -> bool:
    """Does it serve the Robot API? PolyScope X does from 10.11 on, as Universal Robots' client library has it."""
    return version is not None and version[:2] >= ROBOT_API_FROM


def what_is_missing(version: Version | None, *, upper: bool) -> str:
    """Why ur_rtde cannot drive it, "" where it can: it sends programs to PolyScope X from 10.10 on, and waits without
    an end where its program answers in other registers than it reads. upper: those that the cell asks for.
    """
    if version is None:
        return ""
    major, minor = version[:2]
    if major >= POLYSCOPE_X and version[:2] < UPLOAD_FROM:
        return f"PolyScope X {major}.{minor} takes no program from ur_rtde: update it to 10.10 or later"
    if major < POLYSCOPE_X and minor < LOWER_FROM_MINOR and not upper:
        remedy = f'update it to {major}.{LOWER_FROM_MINOR} or later, or set register_offset = "upper"'
        return f"PolyScope {major}.{minor} has no lower registers for ur_rtde: {remedy}"
    if version[:2] >= (UPPER_BELOW if major < POLYSCOPE_X else UPLOAD_FROM) and upper:
        return f'ur_rtde has no upper registers with PolyScope {major}.{minor}: set register_offset = "lower"'
    return ""


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
