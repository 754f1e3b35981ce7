"""Connects to a cell's robot, a sensor or a camera, or opens its teleoperation device, for a second, in a process of
its own. Nothing moves.

May not: follow, stage, stop or recover a robot, hand a person's wish to one, or trust a vendor's library not to crash
the process it runs in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TypedDict, TypeVar

import numpy as np

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Setup
from labctl.devices import Camera, Sensor, load
from labctl.errors import InputError, LabctlError, MissingExtra
from labctl.nodes.asking import useless
from labctl.processes import json_answer, leave_with

PATIENCE_S = 20.0
CAMERA_S = 15.0  # more of it for a camera: until its first picture is there, and to let it go
LISTEN_NS = SECOND
HAND_NS = SECOND // 2
SAYS_NS = 2 * SECOND  # until a device that was opened has said something anew: this computer may be busy with others


class Probed(TypedDict):
    """What a robot says within a second: `mode` and `reason` of devices.RobotStatus, states per second, and what a
    person ought to know of the connection.
    """

    mode: str
    reason: str
    states: float
    notes: list[str]


class Felt(TypedDict, total=False):
    """How a device beside the robot is. Of a teleoperation device `waits`, what a person has to do before it may drive,
    and whether it is `engaged`; of a sensor `values` per second, nothing where it is made of what the robot observes;
    of a camera `pictures` per second. Or `problem`, with what to do about it as `remedy`.
    """

    waits: str
    engaged: bool
    values: float
    pictures: float
    problem: str
    remedy: str


F = TypeVar("F", Probed, Felt)


def probe(setup: Setup) -> Probed:
    """What the cell's robot says. A process that dies or hangs is mode "lost" with the reason in words."""
    line, why = _in_a_process("probe_main", setup, "robot")
    return json.loads(line) if line else _lost(why, "")


def probe_hand(setup: Setup) -> Felt:
    """How the cell's teleoperation device is. A process that dies or hangs is a problem, in words."""
    line, why = _in_a_process("probe_hand_main", setup, "teleoperation device")
    return json.loads(line) if line else _problem(why, "try the device without labctl")


def probe_sensor(setup: Setup, number: int) -> Felt:
    """What one of the cell's sensors gives. A process that dies or hangs is a problem, in words."""
    cell = setup.cell.model_copy(update={"sensor": (setup.cell.sensor[number],)})
    line, why = _in_a_process("probe_sensor_main", setup.model_copy(update={"cell": cell}), "sensor")
    return json.loads(line) if line else _problem(why, "try the device without labctl")


def probe_camera(setup: Setup, number: int) -> Felt:
    """What one of the cell's cameras gives. A process that dies or hangs is a problem, in words."""
    cell = setup.cell.model_copy(update={"camera": (setup.cell.camera[number],)})
    own = setup.model_copy(update={"cell": cell})
    line, why = _in_a_process("probe_camera_main", own, "camera", PATIENCE_S + CAMERA_S)
    return json.loads(line) if line else _problem(why, "try the camera without labctl")


def _lost(reason: str, remedy: str) -> Probed:
    return {"mode": "lost", "reason": reason, "states": 0.0, "notes": []}


def _problem(reason: str, remedy: str) -> Felt:
    return {"problem": reason, "remedy": remedy}


def _in_a_process(entry: str, setup: Setup, what: str, within_s: float | None = None) -> tuple[str, str]:
    """The one JSON line that an entry below prints in a process of its own, or "" and why there is none."""
    within_s = PATIENCE_S if within_s is None else within_s
    answer, ended = json_answer(f"labctl.checks.probing:{entry}", setup.model_dump_json(), within_s)
    if answer:
        return answer, ""
    if ended is None:
        return "", f"the {what}'s client library did not return within {within_s:g} s"
    return "", f"the {what}'s client library ended its process ({ended})"


def probe_main() -> None:
    """Entry of the probing process: its spec on standard input, one JSON line on standard output."""
    _answer(_listen, _lost, "[robot]")


def probe_hand_main() -> None:
    """The same for a teleoperation device."""
    _answer(feel, _problem, "[teleop]")


def probe_sensor_main() -> None:
    """The same for the first sensor of the cell."""
    _answer(measure, _problem, "[[sensor]]")


def probe_camera_main() -> None:
    """The same for the first camera of the cell."""
    _answer(film, _problem, "[[camera]]")


def film(setup: Setup) -> Felt:
    """Connect to the first camera of a cell and count its pictures for a second, or for three of its periods. Raises
    InputError, MissingExtra, DeviceLost, DeviceRefused.
    """
    clock, table = MonotonicClock(), setup.cell.camera[0]
    camera: Camera = load(table.driver, table.given, cell=setup.cell, fixture=setup.fixture)
    first_ns, pictures = 0, 0
    try:
        camera.connect(clock.now_ns())
        over_ns = clock.now_ns() + max(LISTEN_NS, round(3 * SECOND / table.rate_hz))
        while clock.now_ns() < over_ns:
            frame = camera.grab(clock.now_ns())
            if frame is None:
                clock.sleep_until(clock.now_ns() + 2 * MILLISECOND)
                continue
            if frame.image.shape != (table.height, table.width, 3):
                height, width = frame.image.shape[:2]
                text = f"its pictures are {width} x {height}, the cell asks for {table.width} x {table.height}"
                return _problem(text, "correct [[camera]] of the cell file")
            first_ns, pictures = first_ns or frame.host_ns, pictures + 1
        if not pictures:
            return _problem("it gives no pictures", "check its cable and power")
        return {"pictures": pictures * SECOND / (clock.now_ns() - first_ns)}
    finally:
        camera.close()


def measure(setup: Setup) -> Felt:
    """Connect to the first sensor of a cell and listen for a second. Raises InputError, MissingExtra, DeviceLost."""
    clock, table = MonotonicClock(), setup.cell.sensor[0]
    sensor: Sensor = load(table.driver, table.given, cell=setup.cell, fixture=setup.fixture)
    if sensor.observes:
        return {}
    try:
        sensor.connect(clock.now_ns())
        began_ns, values = clock.now_ns(), 0
        while clock.now_ns() < began_ns + LISTEN_NS:
            clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
            values += len(sensor.drain(clock.now_ns()).t_ns)
        return {"values": values * SECOND / (clock.now_ns() - began_ns)}
    finally:
        sensor.close()


def _answer(ask: Callable[[Setup], F], lost: Callable[[str, str], F], table: str) -> None:
    """table: of the cell file, by which the device is described."""
    setup = Setup.model_validate_json(sys.stdin.read())
    try:
        answer = ask(setup)
    except LabctlError as error:
        answer = lost(str(error), _remedy(error, table))
    except Exception as error:  # a bug in a driver must not look like a device that is well
        answer = lost(f"{type(error).__name__}: {error}", "look at its driver")
    leave_with(json.dumps(answer))


def _remedy(error: LabctlError, table: str) -> str:
    if isinstance(error, InputError):
        return f"correct {table} of the cell file"
    return "install it" if isinstance(error, MissingExtra) else ""


def _listen(setup: Setup) -> Probed:
    clock, table = MonotonicClock(), setup.cell.robot
    robot = load(table.driver, table.options, cell=setup.cell, fixture=setup.fixture)
    robot.connect(clock.now_ns())
    began, states = clock.now_ns(), 0
    while clock.now_ns() < began + LISTEN_NS:
        clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
        states += sum(len(batch.t_ns) for batch in robot.drain(clock.now_ns()) if batch.stream == "arm/state")
    seconds = (clock.now_ns() - began) / SECOND
    status, notes = robot.status(), [str(event.body["reason"]) for event in robot.events() if event.kind == "note"]
    robot.close()
    return {"mode": status.mode, "reason": status.reason, "states": states / seconds, "notes": notes}


def feel(setup: Setup) -> Felt:
    """Open a cell's teleoperation device through its driver, read it for half a second, or for longer until it has
    said something anew, and let it go; no robot is asked for.

    Raises InputError, MissingExtra, DeviceLost as the drivers do.
    """
    clock, joints = MonotonicClock(), np.zeros(setup.cell.joints)
    person = load("teleop", {}, cell=setup.cell, fixture=setup.fixture)
    try:
        person.load()
        opened_ns = clock.now_ns()
        clock.sleep_until(opened_ns + HAND_NS)
        hand = person.hand(joints)
        while not (hand["fresh"] or useless(hand) or clock.now_ns() > opened_ns + SAYS_NS):
            clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
            hand = person.hand(joints)
    finally:
        person.close()
    if (why := useless(hand)) and hand["fresh"]:
        return {"problem": why, "remedy": "correct [teleop.options] of the cell file"}
    if not hand["fresh"]:
        text = why or "it was opened, and then said nothing more"
        return {"problem": text, "remedy": "move it, or plug it again"}
    return {"waits": hand["waits"], "engaged": hand["engaged"]}
