"""Driver "emulated": a real driver in front of an emulated controller, with what a simulated cell's sensors know.

May not: reach anything but loopback. The robot is moved by the wrapped driver alone, over the real protocol; the scene,
its items and their fate come through the emulator's control port.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from labctl import devices
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Batch, DeviceEvent, Kind
from labctl.drivers.common.thread_faults import fault_of
from labctl.drivers.sim.control_link import ControlLink, loopback
from labctl.drivers.sim.options import Emulated
from labctl.drivers.sim.tracker import TRACKED, tracker_batch, tracker_spec
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError

JOIN_S = 3.0


class EmulatedCell:
    """A robot of kind "emulated": the wrapped one, its scene staged and sensed through the control port."""

    kind: Kind = "emulated"

    def __init__(self, inner: Any, link: ControlLink, observe_hz: float, fixture: Fixture) -> None:
        self._inner, self._link, self._fixture = inner, link, fixture
        # plain attributes, not __getattr__: a runtime check against a Protocol looks only at what is really there
        verbs = ("to_joints", "to_pose", "follow", "status", "about", "recover")
        for name in ("dof", "joint_names", "control_hz", *verbs):
            setattr(self, name, getattr(inner, name))
        for name in ("axes", "takes_steps"):  # what a robot may have
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        self.streams = (*inner.streams, tracker_spec(observe_hz))
        self._period_ns = round(SECOND / observe_hz)
        self._clock = MonotonicClock()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._sensed: dict[str, np.ndarray] = {}
        self._seen: list[tuple[int, np.ndarray]] = []
        self._events: list[DeviceEvent] = []
        self._to_stage: dict[str, Any] | None = None
        self._lost = self._other = ""

    @property
    def clipped(self) -> str:
        """The wrapped robot's own, as it is now."""
        return self._inner.clipped

    def connect(self, now_ns: int) -> None:
        """Connect the wrapped driver and the control port. Raises DeviceLost or DeviceRefused."""
        self._other = self.other_scene()  # told when it is staged: who only connects may have no fixture of their own
        self._sense()
        try:
            self._inner.connect(now_ns)
        except DeviceError:
            self._link.close()
            raise
        self._thread = threading.Thread(target=self._watch, name="scene", daemon=True)
        self._thread.start()

    def other_scene(self) -> str:
        """What is wrong with the emulator's fixture, which it had when it was started; "" where its scene is this
        cell's. Not beside a connected robot. Raises DeviceLost, DeviceRefused.
        """
        told = self._link.ask({"do": "fixture"})
        theirs = _parts(Fixture.model_validate(told["fixture"]))
        apart = [what for what, part in _parts(self._fixture).items() if theirs.get(what) != part]
        if not apart:
            return ""
        start = f"labctl emulate {str(told['name']).split()[0]} --host {self._link.host} --fixture FILE"
        return (
            f"the emulator on {self._link.host} has another fixture ({', '.join(apart)}); end it, and start it with "
            f"that of the protocol, {self._fixture.fixture.name!r}: {start}"
        )

    def _watch(self) -> None:
        due = self._clock.now_ns()
        while not self._end.wait(max(0, due - self._clock.now_ns()) / SECOND):
            due = max(due + self._period_ns, self._clock.now_ns() - SECOND)
            try:
                self._stage_if_home()
                self._sense()
            except DeviceError as error:
                self._lost = str(error)
                return
            except Exception as error:  # a bug: whoever waits for the scene must hear of it
                self._lost = f"the scene's thread failed ({fault_of('the scene', error)})"
                return

    def _sense(self) -> None:
        sensed = self._link.ask({"do": "sense"})
        items = np.array(sensed["items"], dtype=float).reshape(-1, len(TRACKED))
        events = [DeviceEvent(e["kind"], int(e["t_ns"]), e["body"]) for e in sensed["events"]]
        scene = {name: np.array(values, dtype=float) for name, values in sensed["scene"].items()}
        with self._lock:
            self._sensed = {"items": items, **scene}
            self._seen.append((int(sensed["t_ns"]), items))
            self._events += events

    def _stage_if_home(self) -> None:
        wanted = self._to_stage
        if wanted is not None and self._inner.staged():
            self._link.ask({"do": "stage", **wanted})
            self._sense()
            with self._lock:
                self._events.clear()  # of the scene that is gone
                if self._to_stage is wanted:  # and not another one that was asked for meanwhile
                    self._to_stage = None

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        """Send the robot home, then fill the source tote by the seed. Raises DeviceRefused where the emulator has
        another scene.
        """
        self._raise_if_lost()
        if self._other:
            raise DeviceRefused(self._other)
        self._inner.stage(condition, seed, now_ns)
        with self._lock:
            self._to_stage = {"condition": dict(condition), "seed": seed}

    def staged(self) -> bool:
        """Is the robot home and the scene set?"""
        self._raise_if_lost()
        return self._to_stage is None and self._inner.staged()

    def stop(self) -> None:
        """Stop the wrapped robot; no scene waits any more for it to come home. Any thread; any number of times."""
        wanted = self._to_stage
        self._inner.stop()  # first: a robot at home whose scene is wanted no more would be taken for staged
        with self._lock:
            if self._to_stage is wanted:  # and not another one that was asked for after the stop
                self._to_stage = None

    def observe(self) -> dict[str, np.ndarray]:
        """The wrapped robot's state, the items as the simulated tracker saw them last, and the scene."""
        self._raise_if_lost()
        with self._lock:
            return {**self._inner.observe(), **self._sensed}

    def drain(self, now_ns: int) -> list[Batch]:
        """The wrapped robot's batches, and what the tracker saw since the last drain, each sighting once."""
        self._raise_if_lost()
        with self._lock:
            seen, self._seen = self._seen, self._seen[-1:]
        fresh = [pair for i, pair in enumerate(seen[1:], 1) if pair[0] > seen[i - 1][0]]
        batches = self._inner.drain(now_ns)
        if any(len(items) for _, items in fresh):
            batches.append(tracker_batch(fresh))
        return batches

    def events(self) -> list[DeviceEvent]:
        """What happened to arm and items since the last call, in order."""
        with self._lock:
            found, self._events = self._events, []
        return sorted(self._inner.events() + found, key=lambda event: event.t_ns)

    def close(self) -> None:
        """Close the wrapped robot and the control port. Any number of times."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None
        self._inner.close()
        self._link.close()

    def _raise_if_lost(self) -> None:
        if self._lost:
            raise DeviceLost(self._lost)


def _parts(fixture: Fixture) -> dict[str, str]:
    """What a scene is made of, by what it is called; a place in the fixture's list is how an observation names an
    object.
    """
    totes = {f"tote {one.name!r}": repr(one) for one in fixture.tote}
    things = {
        f"object {one.name!r}": repr((at, one.item_size_m, one.grasp_width_m)) for at, one in enumerate(fixture.object)
    }
    layouts = {
        f"layout {one.name!r}": repr((one.tote_side, one.camera_side, one.distractors, one.yaw_rad))
        for one in fixture.layout
    }
    return totes | things | layouts


def build(options: Emulated, *, cell: Cell, fixture: Fixture) -> EmulatedCell:
    """The wrapped driver in front of an emulator. Raises InputError for another cell kind or host."""
    if cell.kind != "emulated":
        raise InputError(f'driver "emulated" needs a cell of kind "emulated", found {cell.kind!r}')
    host = loopback(str(options.driver_options.get("host")))
    robot = devices.load(options.driver, options.driver_options, cell=cell, fixture=fixture)
    return EmulatedCell(robot, ControlLink(host), float(cell.robot.observe_hz), fixture)
