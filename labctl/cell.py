"""Builds the nodes of a cell from its TOML: the same nodes for one loop under a manual clock and for one process each.

May not: import a driver (they are loaded by the name in the TOML), run anything, or know which arm of the experiment
is next.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labctl.bus import Node
from labctl.clock import SECOND, MonotonicClock
from labctl.devices import load
from labctl.errors import LabctlError

CAMERA_NICE = 5  # a picture can wait for an encoder; a setpoint for the arm cannot


def node_names(cell: Mapping[str, Any]) -> list[str]:
    """The nodes that live as long as the campaign runs, in the order they are started; controllers come and go."""
    return ["recorder", "arm", *camera_names(cell)]


def camera_names(cell: Mapping[str, Any]) -> list[str]:
    """Node names of the cell's cameras."""
    return [f"camera:{camera['name']}" for camera in cell.get("camera", [])]


def build_node(name: str, spec: Mapping[str, Any]) -> Node:
    """Make a node. spec: folder, campaign, cell and fixture (plain TOML dicts), durable, real_time.

    Raises InputError for an unknown driver or option, DeviceError when a device refuses, StorageError for the trace
    store.
    """
    cell, fixture, folder = spec["cell"], spec["fixture"], Path(spec["folder"])
    if name == "recorder":
        from labctl.nodes.recorder import RecorderNode
        from labctl.traces import TraceStore

        return RecorderNode(TraceStore.open(spec["traces_url"], spec["campaign"], durable=spec["durable"]))
    if name == "arm":
        from labctl.nodes.arm import ArmNode, tick_ns

        robot = cell["robot"]
        made = load(robot["driver"], robot.get("options", {}), cell=cell, fixture=fixture)
        tick = tick_ns(robot["observe_hz"], real_time=spec["real_time"])
        stale = round(cell["lease"]["stale_target_s"] * SECOND)
        return ArmNode(made, tick_ns=tick, stale_ns=stale, chunk_ns=chunk_ns(cell))
    if name == "controller":
        from labctl.nodes.controller import ControllerNode

        return ControllerNode(cell, fixture, chunk_ns=chunk_ns(cell))
    if name == "operator":
        from labctl.nodes.operator import OperatorNode

        return OperatorNode(load(cell["cell"]["operator"], {}))
    return _camera_node(name, cell, fixture, folder)


def chunk_ns(cell: Mapping[str, Any]) -> int:
    """How much of a stream one trace chunk holds."""
    return round(cell.get("storage", {}).get("chunk_s", 1.0) * SECOND)


def _camera_node(name: str, cell: Mapping[str, Any], fixture: Mapping[str, Any], folder: Path) -> Node:
    from labctl.nodes.camera import CameraNode

    entry = next(camera for camera in cell["camera"] if f"camera:{camera['name']}" == name)
    given = {**entry.get("options", {}), **{key: entry[key] for key in ("width", "height", "rate_hz")}}
    device = load(entry["driver"], given, cell=cell, fixture=fixture)
    return CameraNode(entry["name"], device, cell["video"], folder)


def child_main() -> None:
    """Entry of a child process: reads its spec from standard input, builds its node and runs it until told to end.

    A device that refuses or vanishes ends it with exit code 1, a line in its log and the reason told to run.
    """
    from labctl.locks import Lock
    from labctl.wire import ProcessHost, last_words

    spec = json.loads(sys.stdin.buffer.read())
    name = spec["name"]
    if name.startswith("camera:"):
        os.nice(CAMERA_NICE)
    clock = MonotonicClock()
    path = Path(spec["locks"]) / f"{name.replace(':', '-')}.lock"
    sockets = Path(spec["sockets"])
    with Lock(path, name, clock=clock, patience_ns=5 * SECOND):
        try:
            node = build_node(name, spec)
            cameras = tuple(camera_names(spec["cell"]))
            ProcessHost([node], sockets, clock, cameras=cameras, parent=spec["parent"]).run()
        except LabctlError as error:
            if name != "controller":  # its words may name the arm of the experiment
                last_words(sockets, name, str(error))
            sys.stderr.write(f"{name}: {error}\n")
            sys.stderr.flush()
            os._exit(1)  # not sys.exit: a vendor's thread that hangs in its call would hold the interpreter's end
