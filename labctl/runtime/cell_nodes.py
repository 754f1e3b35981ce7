"""Builds the nodes of a cell from its TOML: the same nodes for one loop under a manual clock and for one process each.

May not: import a driver (they are loaded by the name in the TOML), run anything, or know which arm of the experiment
is next.
"""

from __future__ import annotations

import gc
import importlib.resources
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labctl.bus import Node
from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Camera, load, no_stand_in
from labctl.errors import InputError, LabctlError
from labctl.nodes.allocator import keep_freed_memory
from labctl.store.locks import Lock

if TYPE_CHECKING:
    from labctl.config.cell_schema import Cell

TURN = "camera-opening.lock"
TURN_NS = 30 * SECOND  # how long a camera waits for another one that is being opened
CAMERA_NICE = 5  # a picture can wait for an encoder; a setpoint for the arm cannot
GATHER_S = 0.2  # frames are encoded some at a time; a process that dies takes so much more of its video with it


def node_names(cell: Mapping[str, Any]) -> list[str]:
    """The nodes that live as long as the campaign runs, in the order they are started; controllers come and go."""
    return ["recorder", "arm", *camera_names(cell)]


def camera_names(cell: Mapping[str, Any]) -> list[str]:
    """Node names of the cell's cameras."""
    return [f"camera:{camera['name']}" for camera in cell.get("camera", [])]


def build_node(name: str, spec: Mapping[str, Any]) -> Node:
    """Make a node. spec: folder, campaign, cell and fixture (plain TOML dicts), durable, real_time, chunk_ns.

    Raises InputError for an unknown driver or option, DeviceError when a device refuses, StorageError for the trace
    store.
    """
    if name == "recorder":
        from labctl.nodes.recorder import RecorderNode
        from labctl.store.traces import TraceStore

        return RecorderNode(TraceStore.open(spec["traces_url"], spec["campaign"], durable=spec["durable"]))
    if name == "arm":
        from labctl.config.cell_schema import Cell
        from labctl.nodes.arm import ArmNode, tick_ns

        cell = Cell.model_validate(spec["cell"])
        made = load(cell.robot.driver, cell.robot.options, cell=spec["cell"], fixture=spec["fixture"])
        tick = tick_ns(cell.robot.observe_hz, real_time=spec["real_time"])
        stale = round(cell.lease.stale_target_s * SECOND)
        return ArmNode(made, tick_ns=tick, stale_ns=stale, chunk_ns=spec["chunk_ns"])
    if name == "controller":
        from labctl.nodes.controller import ControllerNode

        return ControllerNode(spec["cell"], spec["fixture"], chunk_ns=spec["chunk_ns"])
    if name == "operator":
        operator = spec["cell"]["cell"]["operator"]
        from labctl.nodes.operator import OperatorNode

        return OperatorNode(no_stand_in(load(operator, {}), operator, spec["cell"]["cell"]["kind"]))
    return _camera_node(name, spec)


def lacks_terminal(cell: Cell) -> bool:
    """Is the cell driven by the keyboard of a terminal that its file does not name?"""
    return cell.teleop is not None and cell.teleop.device == "keyboard" and "terminal" not in cell.teleop.options


def with_terminal(cell: Mapping[str, Any], terminal: str | None) -> dict[str, Any]:
    """A cell as a plain dict, whose keyboard is that of a terminal (None: as it is)."""
    if terminal is None or cell.get("teleop") is None:
        return dict(cell)
    options = {**cell["teleop"].get("options", {}), "terminal": terminal}
    return {**cell, "teleop": {**cell["teleop"], "options": options}}


def chunk_ns(cell: Cell) -> int:
    """How much of a stream one trace chunk holds."""
    return round(cell.storage.chunk_s * SECOND)


def _camera_node(name: str, spec: Mapping[str, Any]) -> Node:
    from labctl.nodes.camera import CameraNode
    from labctl.nodes.photos import ScenePhotos
    from labctl.nodes.video_recorder import Terms

    cell = spec["cell"]
    entry = next(camera for camera in cell["camera"] if f"camera:{camera['name']}" == name)
    terms = Terms(
        Path(spec["folder"]),
        entry["name"],
        video_settings(cell, entry),
        driver=entry["driver"],
        latency_s=entry.get("latency_s", 0.0),
        gather_s=GATHER_S if spec["real_time"] else 0.0,
        durable=spec.get("durable", True),
    )
    device = load_camera(entry, cell, spec["fixture"])
    connect = _in_turn(device, name, Path(spec["locks"])) if "locks" in spec else None
    scene = {key: entry[key] for key in ("ignore", "tolerance_px") if key in entry}
    photos = ScenePhotos(terms.camera, terms.folder, durable=terms.durable, real_time=spec["real_time"], **scene)
    return CameraNode(device, terms, real_time=spec["real_time"], connect=connect, photos=photos)


def load_camera(entry: Mapping[str, Any], cell: Mapping[str, Any], fixture: Mapping[str, Any]) -> Camera:
    """The device of a [[camera]] table, not connected. Raises InputError, MissingExtra."""
    given = {**entry.get("options", {}), **{key: entry[key] for key in ("width", "height", "rate_hz")}}
    try:
        return load(entry["driver"], given, cell=cell, fixture=fixture)
    except InputError as error:
        raise InputError(f"camera {entry['name']!r}: {error}") from None


def stand_in() -> dict[str, Any]:
    """A fixture of two totes, in place of the protocol's where a driver is only tried."""
    return tomllib.loads(importlib.resources.files("labctl.fixtures").joinpath("two_totes.toml").read_text("utf-8"))


def video_settings(cell: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """How a camera encodes: the cell's [video], and what its own [camera.video] says instead."""
    own = {key: value for key, value in (entry.get("video") or {}).items() if value is not None}
    return {**cell.get("video", {}), **own}


def _in_turn(device: Camera, name: str, locks: Path) -> Callable[[int], None]:
    """Cameras are opened one after another: several at once on one USB controller fail in ways that look like others.

    The turn is a lock on a file; a process that dies gives it back.
    """
    clock = MonotonicClock()

    def connect(now_ns: int) -> None:
        turn = Lock(locks / TURN, name, what="the opening of cameras", clock=clock, patience_ns=TURN_NS)
        with turn:
            device.connect(clock.now_ns())

    return connect


def child_main() -> None:
    """Entry of a child process: reads its spec from standard input, builds its node and runs it until told to end.

    A device that refuses or vanishes ends it with exit code 1, a line in its log and the reason told to run.
    """
    from labctl.runtime.transport import ProcessHost, last_words

    spec = json.loads(sys.stdin.buffer.read())
    name = spec["name"]
    if name.startswith("camera:"):
        os.nice(CAMERA_NICE)
        keep_freed_memory()
    clock = MonotonicClock()
    path = Path(spec["locks"]) / f"{name.replace(':', '-')}.lock"
    sockets = Path(spec["sockets"])
    with Lock(path, name, clock=clock, patience_ns=5 * SECOND):
        try:
            node = build_node(name, spec)
            cameras = tuple(camera_names(spec["cell"]))
            gc.collect()
            gc.freeze()  # what was imported stays: the collector need not hold up a robot's loop to see so
            ProcessHost([node], sockets, clock, cameras=cameras, parent=spec["parent"]).run()
        except LabctlError as error:
            if name != "controller":  # its words may name the arm of the experiment
                last_words(sockets, name, str(error))
            sys.stderr.write(f"{name}: {error}\n")
            sys.stderr.flush()
            os._exit(1)  # not sys.exit: a vendor's thread that hangs in its call would hold the interpreter's end
    sys.stderr.flush()
    os._exit(0)  # for the same reason
