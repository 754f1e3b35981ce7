"""What of a cell loads, answers and is quick enough: one check each, in words, with the remedy.

May not: move a robot, change a setting, or import a driver except by the name in a cell file.
"""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from labctl.checks import contradictions
from labctl.checks.computer import Check, check_free_disk
from labctl.checks.encoding_cost import MOST_CORES, Measure, MeasureDepth, best_affordable, measure_cost, measure_depth
from labctl.checks.probing import Probed, probe, probe_camera, probe_hand, probe_sensor
from labctl.config.cell_schema import CameraTable, Cell, Fixture, Setup, Video
from labctl.config.options import Contradiction
from labctl.devices import load
from labctl.errors import LabctlError
from labctl.runtime.hosting.cell_nodes import (
    NodeSpec,
    build_node,
    camera_names,
    lacks_terminal,
    load_camera,
    stand_in,
)
from labctl.store.driver_options import check_cell_options, records_depth
from labctl.store.lab_folder import Plan, read_cell, read_text
from labctl.store.verifying.edited import edited_among
from labctl.store.verifying.open_secrets import secrets_in

SEALED = "it is sealed with the campaign and published as it is, and nothing takes it out of a sealed campaign"
INSTEAD = (
    "have source_env of a camera name an environment variable that holds its address (driver opencv_camera); "
    "a policy's key stands in the variable that api_key_env of its card names"
)
FEWEST_VALUES = 0.8  # of a sensor, within a second
FEWEST_PICTURES = 0.8  # of a camera's rate_hz
FEWEST_STATES = 0.95  # of what the cell asks for: fewer is a warning


def check_cell(path: Path, folder: Path) -> list[Check]:
    """The checks of one cell file: it parses, it does not contradict itself, its disk is free enough, its drivers
    load, its robot, sensors and cameras answer, its teleoperation device can be read. Nothing moves.
    """
    again = shlex.join(["labctl", "doctor", str(path)])
    try:
        cell = read_cell(path)
        check_cell_options(cell)
    except LabctlError as error:
        return [Check("cell", "fail", str(error), "correct the cell file")]
    checks = [Check("cell", "ok", f"{path}: {cell.cell.name}, kind {cell.cell.kind}, clock {cell.cell.clock}")]
    checks += [*contradicting(contradictions.of_cell(cell)), *secrets_of_cell(path)]
    checks.append(check_free_disk(folder, cell.storage.min_free_gb))
    checks += check_drivers(cell, folder, again)
    for name, side in _robots(cell):
        checks += _of(name, [*check_capture(side), *check_teleop(side, again)])
    return checks + check_encoders(cell)


def contradicting(found: Iterable[Contradiction]) -> list[Check]:
    """Keys that do not go together, each pair as one warning."""
    return [Check(one.about, "warn", one.text, one.remedy) for one in found]


def check_opened(paths: Collection[Path]) -> list[Check]:
    """A warning for each open campaign that was opened from one of these files, and does not go by them any more."""
    return [Check("opened", "warn", one.text, one.remedy) for one in edited_among(paths)]


def secrets_of_cell(path: Path) -> list[Check]:
    """A warning for each address with a password or a key in a cell file. Raises InputError."""
    return _secrets({str(path): read_text(path)})


def secrets_of_plan(plan: Plan) -> list[Check]:
    """The same of a protocol, its fixture and its policy cards."""
    texts = {str(plan.path): plan.protocol_text, str(plan.fixture_path): plan.fixture_text}
    return _secrets(texts | {str(plan.path.parent / name): text for name, text in plan.cards.items()})


def _secrets(texts: Mapping[str, str]) -> list[Check]:
    lines = [line for where, text in texts.items() for line in secrets_in(text, where)]
    return [Check("secrets", "warn", f"{line}; {SEALED}", INSTEAD) for line in lines]


def check_drivers(cell: Cell, folder: Path, again: str) -> list[Check]:
    """Do the drivers that a cell names load with its options, and do a real or emulated robot and what is beside it
    answer? again: the command that looks at them once more.
    """
    checks = loaded_drivers(cell, folder)
    if cell.cell.kind in ("real", "emulated") and checks[0].level == "ok":
        checks[:1] = [check for name, side in _robots(cell) for check in _of(name, _answers(_setup(side), again))]
        checks += check_sensors(_setup(cell), again)
        checks += check_cameras(_setup(cell), again)
    return checks


def check_scene(cell: Cell, fixture: Fixture) -> list[Check]:
    """Does each emulator that answers have this fixture? A check for one that has another, and for a robot that does
    not load with it; `check_drivers` says of one that it does not answer, or loads with no fixture at all.
    """
    checks: list[Check] = []
    for name, side in _robots(cell) if cell.kind == "emulated" else ():
        checks += _of(name, _scene_of(side, fixture))
    return checks


def _scene_of(cell: Cell, fixture: Fixture) -> list[Check]:
    try:
        robot = load(cell.robot.driver, cell.robot.options, cell=cell, fixture=fixture)
    except LabctlError as error:
        if not _loads_with_another(cell):
            return []
        text = f"not looked at, the robot does not load: {error}"
        return [Check("scene", "fail", text, "correct the cell file, or install what it needs")]
    said = ""
    with closing(robot), suppress(LabctlError):
        said = robot.other_scene() if hasattr(robot, "other_scene") else ""
    return [Check("scene", "fail", said)] if said else []


def _loads_with_another(cell: Cell) -> bool:
    """Whether a robot that does not load with the protocol's fixture does with the one that `check_drivers` takes."""
    try:
        load(cell.robot.driver, cell.robot.options, cell=cell, fixture=stand_in()).close()
    except LabctlError:
        return False
    return True


def _setup(cell: Cell) -> Setup:
    return Setup(cell=cell, fixture=stand_in())


def _robots(cell: Cell) -> list[tuple[str, Cell]]:
    """The cell as each of its robots has it, by what a check of it is named after: "" where there is one."""
    return list(zip(cell.names, cell.sides, strict=True))


def _of(name: str, checks: Sequence[Check]) -> list[Check]:
    """Checks of one of two robots, which say whose they are."""
    return [replace(check, name=f"{name}: {check.name}") if name else check for check in checks]


def check_sensors(setup: Setup, again: str) -> list[Check]:
    """Does each sensor give values, as many as the cell asks for? One that is made of the robot's own is not asked.
    again: as `check_drivers` has it.
    """
    checks: list[Check] = []
    for number, table in enumerate(setup.cell.sensor):
        found, name = probe_sensor(setup, number), f"sensor {table.name}"
        if "problem" in found:
            level = "fail" if table.required else "warn"
            checks.append(Check(name, level, found["problem"], _then(found.get("remedy", ""), again)))
        elif (rate_hz := found.get("values")) is not None:
            text = f"{rate_hz:.0f} values in a second, {table.rate_hz:g} asked for"
            few = rate_hz < FEWEST_VALUES * table.rate_hz
            checks.append(Check(name, "warn" if few else "ok", text, "lower its rate_hz" if few else ""))
    return checks


def check_cameras(setup: Setup, again: str) -> list[Check]:
    """Does each real camera give pictures, as many as the cell asks for? One after another, as a run opens them. One
    that is drawn, or plays a recording, is not asked; one whose driver does not load fails by that. again: as
    `check_drivers` has it.
    """
    checks: list[Check] = []
    for number, table in enumerate(setup.cell.camera):
        try:
            real = load_camera(table, setup).kind == "real"
        except LabctlError:
            continue
        if not real:
            continue
        found, name = probe_camera(setup, number), f"camera {table.name}"
        if "problem" in found:
            checks.append(Check(name, "fail", found["problem"], _then(found.get("remedy", ""), again)))
        elif (rate_hz := found.get("pictures")) is not None:
            text = f"{rate_hz:.0f} pictures in a second, {table.rate_hz:g} asked for"
            few = rate_hz < FEWEST_PICTURES * table.rate_hz
            remedy = "more light or a fixed exposure, a USB controller of its own, or a lower rate_hz"
            checks.append(Check(name, "warn" if few else "ok", text, remedy if few else ""))
    return checks


def loaded_drivers(cell: Cell, folder: Path) -> list[Check]:
    """Do the drivers that a cell names load with its options? The robot's first. Nothing is connected."""
    spec = NodeSpec(cell=cell, fixture=stand_in(), folder=folder)
    names = ["arm", *camera_names(cell), *(sensor.node for sensor in cell.sensor)]
    if cell.cell.operator != "console":
        names.append("operator")
    return [_loads(name, spec) for name in names]


def check_capture(cell: Cell) -> list[Check]:
    """May this user take an FR3's states from the network? Nothing for a cell that has none, or wants no such thing."""
    given, driver = cell.robot.options, cell.robot.driver
    if driver == "emulated":
        driver, inside = given.get("driver"), given.get("driver_options")
        given = inside if isinstance(inside, dict) else {}
    if driver != "franka" or given.get("states") == "client":
        return []
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except OSError:
        text = "an FR3 at rest may lose states: raw sockets are not allowed here (CAP_NET_RAW"
        text += ", which this root lacks)" if os.geteuid() == 0 else "; this user is not root)"
        return [Check("states", "warn", text, 'see docs/hardware.md, or say states = "client" in robot.options')]
    text = "raw sockets are allowed, to take an FR3's states from the network; if that fails, check robot says so"
    return [Check("states", "ok", text)]


def check_teleop(cell: Cell, again: str) -> list[Check]:
    """Is the device of [teleop] there, and can it be read? Nothing for a cell without one. again: as `check_drivers`
    has it.
    """
    if cell.teleop is None:
        return []
    if lacks_terminal(cell):
        text = "keyboard: labctl teleop reads its own terminal; a run is told a second one"
        return [Check("teleop", "ok", text, "labctl run CAMPAIGN --hand-terminal /dev/pts/N")]
    found = probe_hand(_setup(cell))
    if "problem" in found:
        text = f"{cell.teleop.device}: {found['problem']}"
        return [Check("teleop", "fail", text, _then(found.get("remedy", ""), again))]
    now = f"it would now wait: {waits}" if (waits := found.get("waits")) else "its clutch is held"
    return [Check("teleop", "ok", f"{cell.teleop.device} is there and can be read; {now}; nothing was moved")]


def _then(remedy: str, again: str) -> str:
    """What to do, and the command that looks whether it helped."""
    return f"{remedy}; then: {again}" if remedy else f"then: {again}"


def _answers(setup: Setup, again: str) -> list[Check]:
    """Does the robot answer, and what is to be known of the connection?"""
    found = probe(setup)
    about = [Check("robot", "warn", note, "see docs/hardware.md, wiring and network") for note in found["notes"]]
    return [_answered(setup, found, again), *about]


def _answered(setup: Setup, found: Probed, again: str) -> Check:
    """Is the robot ready, and does it send as many states as the cell asks for?"""
    if found["mode"] == "lost":
        return Check("robot", "fail", f"does not answer: {found['reason']}", _then("", again))
    if found["mode"] in ("safety_stop", "fault"):
        return Check(
            "robot", "warn", found["reason"], "a run asks an operator to acknowledge this before anything moves"
        )
    wanted = setup.cell.robot.state_hz
    text = f"connected and {found['mode']}; {found['states']:.0f} states in a second, {wanted:g} asked for"
    if found["states"] < FEWEST_STATES * wanted:
        return Check("robot", "warn", text, "this machine or the network is too slow for this state_hz")
    return Check("robot", "ok", f"{text}; nothing was moved")


def _loads(node: str, spec: NodeSpec) -> Check:
    name = "robot" if node == "arm" else node  # as journals spell it
    try:
        build_node(node, spec)
    except LabctlError as error:
        return Check(name, "fail", str(error), "correct the cell file, or install what it needs")
    return Check(name, "ok", "its driver loads (not connected: nothing moves)")


def video_table(camera: CameraTable) -> str:
    """The table of the cell file that sets how a camera's video is encoded, as people call it."""
    own = camera.video.preset is not None or camera.video.codec is not None
    return f"[camera.video] of {camera.name}" if own else "[video]"


def check_encoders(cell: Cell, measure: Measure = measure_cost, depth: MeasureDepth = measure_depth) -> list[Check]:
    """What encoding each camera's video and depth take on this machine, and the best setting that it affords."""
    checks: list[Check] = []
    known: dict[str, Check] = {}
    for camera in cell.camera:
        video, size = cell.video_of(camera), (camera.width, camera.height, camera.rate_hz)
        table = video_table(camera)
        key = repr((video, size, table))
        if key not in known:
            known[key] = _encoder(video, size, measure, table)
        found = known[key]
        checks.append(Check(f"video {camera.name}", found.level, found.text, found.remedy))
        if records_depth(camera):
            checks.append(_depth_encoder(camera.name, size, depth))
    return checks


def _depth_encoder(name: str, size: tuple[int, int, float], measure: MeasureDepth) -> Check:
    width, height, rate_hz = size
    cost = measure(*size)
    text = f"ffv1, without loss, at {width} x {height}, {rate_hz:g} Hz: {cost}"
    if cost.affordable(rate_hz):
        return Check(f"depth {name}", "ok", text)
    remedy = f"lower rate_hz, or depth = false in its options; depth should take {MOST_CORES:g} cores at most"
    return Check(f"depth {name}", "warn", text, remedy)


def _encoder(video: Video, size: tuple[int, int, float], measure: Measure, table: str) -> Check:
    width, height, rate_hz = size
    what = f"{video.codec} {video.preset} crf {video.crf} at {width} x {height}, {rate_hz:g} Hz"
    try:
        cost = measure(video, *size)
        best = best_affordable(video, *size, measure)
    except LabctlError as error:
        return Check("video", "fail", str(error), f"correct {table} in the cell file")
    text = f"{what}: {cost}"
    if cost.affordable(rate_hz):
        if best is not None and best[0].preset != video.preset:
            text += f'; preset = "{best[0].preset}" would be affordable too: {best[1]}'
        return Check("video", "ok", text)
    if best is None:
        remedy = f"lower rate_hz or the size; one camera should take {MOST_CORES:g} cores at most"
        return Check("video", "warn", text, remedy)
    return Check("video", "warn", text, f'preset = "{best[0].preset}" in {table}: {best[1]}')
