"""Builds the nodes of a cell: the same nodes for one loop under a manual clock and for one process each.

May not: import a driver (they are loaded by the name in the TOML), run anything, or know which arm of the experiment
is next.
"""

from __future__ import annotations

import gc
import importlib.resources
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.bus import Node
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import CameraTable, Cell, Fixture, Setup, parse_fixture
from labctl.config.sensors import SensorTable
from labctl.devices import Camera, Sensor, load, no_stand_in
from labctl.errors import InputError, LabctlError
from labctl.logs import begin_child
from labctl.nodes.allocator import keep_freed_memory
from labctl.store.locks import Lock

if TYPE_CHECKING:
    from labctl.store.campaign import Campaign  # which the processes of devices need not load

TURN = "camera-opening.lock"
TURN_NS = 30 * SECOND  # how long a camera waits for another one that is being opened
CAMERA_NICE = 5  # a picture can wait for an encoder; a setpoint for the robot cannot
GATHER_S = 0.2  # frames are encoded some at a time; a process that dies takes so much more of its video with it


class NodeSpec(Setup):
    """What the nodes of a run are built from; nothing in it depends on an arm of the experiment. folder: the
    campaign's. locks: where cameras wait for their turn; None where they are never connected side by side.
    """

    folder: Path
    campaign: str = ""
    traces_url: str = ""
    durable: bool = True
    real_time: bool = True
    locks: Path | None = None

    @property
    def chunk_ns(self) -> int:
        """How much of a stream one trace chunk holds."""
        return round(self.cell.storage.chunk_s * SECOND)


class ProcessSpec(NodeSpec):
    """The same for the process of one node: its name, where its sockets are, the process that started it, its log."""

    name: str
    sockets: Path
    parent: int
    log: Path


def node_names(cell: Cell) -> list[str]:
    """The nodes that live as long as the campaign runs, in the order they are started; controllers come and go."""
    return ["recorder", "arm", *camera_names(cell), *(sensor.node for sensor in cell.sensor)]


def camera_names(cell: Cell) -> list[str]:
    """Node names of the cell's cameras."""
    return [f"camera:{camera.name}" for camera in cell.camera]


def build_node(name: str, spec: NodeSpec) -> Node:
    """Make a node.

    Raises InputError for an unknown driver or option, DeviceError when a device refuses, StorageError for the trace
    store.
    """
    cell = spec.cell
    if name == "recorder":
        from labctl.nodes.recorder import RecorderNode
        from labctl.store.traces import TraceStore

        return RecorderNode(TraceStore.open(spec.traces_url, spec.campaign, durable=spec.durable))
    if name == "arm":
        from labctl.nodes.robot import RobotNode
        from labctl.realtime import tick_ns

        made = load(*cell.driver, cell=cell, fixture=spec.fixture)
        tick = tick_ns(cell.robot.observe_hz, real_time=spec.real_time)
        stale = round(cell.lease.stale_target_s * SECOND)
        return RobotNode(made, tick_ns=tick, stale_ns=stale, chunk_ns=spec.chunk_ns, ends=spec.real_time)
    if name == "controller":
        from labctl.nodes.controller import ControllerNode

        return ControllerNode(cell, spec.fixture, chunk_ns=spec.chunk_ns)
    if name == "operator":
        from labctl.nodes.operator import OperatorNode

        operator = cell.cell.operator
        return OperatorNode(no_stand_in(load(operator, {}), operator, cell.kind))
    if name.startswith("sensor:"):
        from labctl.nodes.sensor import SensorNode

        table = next(sensor for sensor in cell.sensor if sensor.node == name)
        return SensorNode(load_sensor(table, spec), table, real_time=spec.real_time, chunk_ns=spec.chunk_ns)
    return _camera_node(name, spec)


def lacks_terminal(cell: Cell) -> bool:
    """Is the cell driven by the keyboard of a terminal that its file does not name?"""
    return cell.teleop is not None and cell.teleop.device == "keyboard" and "terminal" not in cell.teleop.options


def goes_on_with(campaign: Campaign) -> str:
    """The command by which a campaign is run further: with the terminal whose keyboard drives, where one is needed."""
    opened, named = campaign.opened, f"labctl run {campaign.folder.name}"
    by_hand = opened["has_human"] or opened.get("takeover") == "allowed"
    return f"{named} --hand-terminal /dev/pts/N" if by_hand and lacks_terminal(campaign.cell) else named


def with_terminal(cell: Cell, terminal: str | None) -> Cell:
    """A cell whose keyboard is that of a terminal (None: as it is)."""
    if terminal is None or cell.teleop is None:
        return cell
    teleop = cell.teleop.model_copy(update={"options": {**cell.teleop.options, "terminal": terminal}})
    return cell.model_copy(update={"teleop": teleop})


def _camera_node(name: str, spec: NodeSpec) -> Node:
    from labctl.nodes.camera import CameraNode
    from labctl.nodes.photos import ScenePhotos
    from labctl.nodes.video_recorder import Terms

    table = next(camera for camera in spec.cell.camera if f"camera:{camera.name}" == name)
    terms = Terms(
        spec.folder,
        table.name,
        spec.cell.video_of(table),
        driver=table.driver,
        latency_s=table.latency_s,
        gather_s=GATHER_S if spec.real_time else 0.0,
        durable=spec.durable,
    )
    device = load_camera(table, spec)
    connect = None if spec.locks is None else _in_turn(device, name, spec.locks)
    photos = ScenePhotos(
        table.name,
        spec.folder,
        ignore=table.ignore,
        tolerance_px=table.tolerance_px,
        durable=spec.durable,
        real_time=spec.real_time,
    )
    return CameraNode(device, terms, real_time=spec.real_time, connect=connect, photos=photos)


def load_sensor(table: SensorTable, setup: Setup) -> Sensor:
    """The device of a [[sensor]] table, not connected. Raises InputError, MissingExtra."""
    with _naming(f"sensor {table.name!r}"):
        return load(table.driver, table.given, cell=setup.cell, fixture=setup.fixture)


def load_camera(table: CameraTable, setup: Setup) -> Camera:
    """The device of a [[camera]] table, not connected. Raises InputError, MissingExtra."""
    with _naming(f"camera {table.name!r}"):
        return load(table.driver, table.given, cell=setup.cell, fixture=setup.fixture)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Errors of this device say which it is."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def stand_in() -> Fixture:
    """A fixture of two totes, in place of the protocol's where a driver is only tried."""
    name = "two_totes.toml"
    return parse_fixture(importlib.resources.files("labctl.fixtures").joinpath(name).read_text("utf-8"), name)


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
    """Entry of a child process: reads its spec from standard input, builds its node and runs it until it is ended.

    A device that refuses or vanishes ends it with exit code 1, a line in its log and the reason sent to run.
    """
    from labctl.runtime.hosting.transport import ProcessHost, last_words

    spec = ProcessSpec.model_validate_json(sys.stdin.buffer.read())
    name, sockets = spec.name, spec.sockets
    log = begin_child(name, spec.log)
    if name.startswith("camera:"):
        os.nice(CAMERA_NICE)
        keep_freed_memory()
    clock = MonotonicClock()
    assert spec.locks is not None  # a process holds the lock of its name
    path = spec.locks / f"{name.replace(':', '-')}.lock"
    with Lock(path, name, clock=clock, patience_ns=5 * SECOND):
        try:
            node = build_node(name, spec)
            cameras = tuple(camera_names(spec.cell))
            gc.collect()
            gc.freeze()  # what was imported stays: the collector need not hold up a robot's loop to see so
            ProcessHost([node], sockets, clock, cameras=cameras, parent=spec.parent).run()
        except LabctlError as error:
            if name != "controller":  # its words may name the arm of the experiment
                last_words(sockets, name, str(error))
            logging.getLogger(name).error("%s", error)
            log.end()
            os._exit(1)  # not sys.exit: a vendor's thread that hangs in its call would hold the interpreter's end
    logging.getLogger(name).info("ended")
    log.end()
    os._exit(0)  # for the same reason
