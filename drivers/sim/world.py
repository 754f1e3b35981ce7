"""The simulated scene: totes, items, distractors beside them, a lid and a parallel gripper, moved by kinematics alone.

May not: know joints, controllers or the outcome of a trial. It reports what a cell's sensors would: items that
reached the target, items that left both totes, contact with a wall, and in a trial of a task what was "sensed" of it:
opened, grasped, lifted, placed, closed.

An item is taken when the fingers close to its grasp width within 15 mm (and 0.5 rad) of its grasp point. The further
off the grasp, the likelier it slips on the way. What is let go falls freely; it counts when and where it lands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labctl.config.cell_schema import Fixture
from labctl.devices import DeviceEvent
from labctl.drivers.common.simulated_axes import OPEN_M
from labctl.drivers.common.sweep import Sweep
from labctl.drivers.sim.lid import SlidingLid
from labctl.errors import InputError

GRIPPER_SPEED_M_S = 0.1
GRASP_TOLERANCE_M = 0.015
GRASP_TOLERANCE_RAD = 0.5
RELEASE_M = 0.002  # an item falls once the fingers are this much wider than it
SLIP_AT_TOLERANCE = 0.5  # chance that a grasp at the edge of the tolerance slips; it grows with the offset's 4th power
WALL_M = 0.005
LIFTED_M = 0.05  # so far above where it was taken an item is lifted
FLOOR_M = 0.002  # the floor gives this much before it counts as a contact
GRAVITY_M_S2 = 9.81
TRACKER_NOISE_M, TRACKER_NOISE_RAD = 0.001, 0.02
_TRACKER_NOISE = np.array([TRACKER_NOISE_M] * 3 + [TRACKER_NOISE_RAD] + [0.0] * 4)

IN_TOTE, HELD, FALLING, MOVED, LOST = range(5)


@dataclass(frozen=True, slots=True)
class Tote:
    """An open box: inner centre on its floor and inner size, m, base frame."""

    name: str
    centre: tuple[float, float, float]
    size: tuple[float, float, float]

    def beyond(self, x: float, y: float) -> float:
        """How far a point is outside the inner edge, m; negative inside. Along the axes, not around corners."""
        return max(abs(x - self.centre[0]) - self.size[0] / 2, abs(y - self.centre[1]) - self.size[1] / 2)


@dataclass(frozen=True, slots=True)
class Thing:
    """One kind of object: item size (x y z, length along its own x) and the width between fingers that hold it, m."""

    name: str
    index: int
    size: tuple[float, float, float]
    grasp_width: float


class World:
    """One scene. State: items and where they are, finger opening, what is in the air, events not yet asked for."""

    def __init__(self, fixture: Fixture) -> None:
        """Raises InputError for a fixture that has not two totes."""
        self._lids = {tote.name: tote.lid for tote in fixture.tote if tote.lid is not None}
        self._totes = {tote.name: Tote(tote.name, tote.centre_m, tote.size_m) for tote in fixture.tote}
        if len(self._totes) != 2:
            raise InputError(f"a simulated cell needs a fixture with two totes, found {len(self._totes)}")
        self._things = {
            thing.name: Thing(thing.name, index, thing.item_size_m, float(thing.grasp_width_m))
            for index, thing in enumerate(fixture.object)
        }
        self._layouts = {layout.name: layout for layout in fixture.layout}
        self._wall_top = max(tote.centre[2] + tote.size[2] for tote in self._totes.values())
        self._floor = min(tote.centre[2] for tote in self._totes.values())
        self.events: list[DeviceEvent] = []
        self._open_m = self.opening = OPEN_M
        self._of_task = False
        self._place(0, next(iter(self._things.values())), next(iter(self._layouts)), np.random.default_rng(0))

    def fit_fingers(self, stroke_m: float) -> None:
        """Another gripper, whose fingers open that wide; they are open."""
        self._open_m = self.opening = stroke_m

    def stage(self, condition: Mapping[str, Any], seed: int) -> None:
        """Fill the source tote by the seed. condition: object, layout, items; task, where the trial is of one.

        Raises InputError for a name the fixture lacks.
        """
        thing = _named(self._things, condition["object"], "object")
        _named(self._layouts, condition["layout"], "layout")
        self._of_task = condition.get("task") is not None
        self._place(int(condition["items"]), thing, condition["layout"], np.random.Generator(np.random.PCG64(seed)))

    def _place(self, n: int, thing: Thing, layout: str, rng: np.random.Generator) -> None:
        self._rng, self._tracker = rng.spawn(2)
        self.thing, wanted = thing, self._layouts[layout]
        beside = [self._things[name] for name in wanted.distractors if name != thing.name] if n else []
        self._kinds = [thing] * n + beside
        n = len(self._kinds)
        self.target = _named(self._totes, wanted.tote_side, "tote")
        lid = self._lids.get(wanted.tote_side)
        self.lid = None if lid is None else SlidingLid(lid)
        self.camera_side = -1.0 if wanted.camera_side == "right" else 1.0
        self.source = next(tote for tote in self._totes.values() if tote is not self.target)
        self.where = [IN_TOTE] * n
        self._flags = np.repeat([[1.0, 0.0, 0.0, 0.0]], n, axis=0)
        self.pose = np.zeros((n, 4))  # x y z yaw
        cells = math.ceil(math.sqrt(max(n, 1)))
        chosen = rng.permutation(cells * cells)[:n]
        margin = 0.045
        for axis, index in ((0, chosen % cells), (1, chosen // cells)):
            room = self.source.size[axis] - 2 * margin
            jitter = rng.uniform(0.2, 0.8, n)
            self.pose[:, axis] = self.source.centre[axis] + room * ((index + jitter) / cells - 0.5)
        self.pose[:, 2] = [self._rest(index) for index in range(n)]
        self.pose[:, 3] = rng.uniform(*(wanted.yaw_rad or (-math.pi / 2, math.pi / 2)), n)
        self.opening = self._open_m
        self.held: int | None = None
        self._lift_m = math.inf  # height from which on the item in the fingers is lifted
        self._offset = np.zeros(4)
        self._slip_after = math.inf  # metres the grasp still lasts
        self._falling: list[tuple[int, int, float, float, str]] = []
        self.events = []

    def contact(self, sweep: Sweep) -> tuple[int, str] | None:
        """The first setpoint at which the tool is inside a wall or below the floor, as (index, what was hit)."""
        x, y, z = sweep.end[:3]
        travel = sweep.travel
        if z - travel > self._wall_top:
            return None
        edges = [tote.beyond(x, y) for tote in self._totes.values()]
        if z - travel > self._floor and all(not -travel <= edge <= WALL_M + travel for edge in edges):
            return None
        at = sweep.positions
        height = at[2]
        lowest = float(height.min())
        if lowest > self._wall_top:
            return None
        if lowest < self._floor - FLOOR_M:
            return int(np.argmax(height < self._floor - FLOOR_M)), "the tool hit the floor"
        for tote in self._totes.values():
            across = np.abs(at[0] - tote.centre[0]) - tote.size[0] / 2
            along = np.abs(at[1] - tote.centre[1]) - tote.size[1] / 2
            beyond = np.maximum(across, along)
            hit = (beyond > 0) & (beyond < WALL_M) & (height < tote.centre[2] + tote.size[2])
            if hit.any():
                return int(np.argmax(hit)), f"the tool hit the wall of tote {tote.name!r}"
        return None

    def advance(self, t_ns: np.ndarray, sweep: Sweep, wanted: np.ndarray, period_s: float) -> np.ndarray:
        """Move the scene along n servo cycles: times (n,), the way of the tool, finger openings asked for (n,) in m.

        Returns the openings reached (n,).
        """
        openings = self._grip(wanted.tolist(), t_ns, sweep, GRIPPER_SPEED_M_S * period_s)
        if self.held is not None:
            self._carry(t_ns, sweep)
        elif self.lid is not None and self.lid.held and sweep.travel:
            self._sensed(int(t_ns[-1]), self.lid.follow(sweep))
        if self._falling:
            self._land(int(t_ns[-1]))
        return openings

    def _grip(self, targets: list[float], t_ns: np.ndarray, sweep: Sweep, stroke: float) -> np.ndarray:
        n = len(targets)
        now = self.opening
        low, high = min(targets), max(targets)
        least = self._gripped or 0.0
        if (low >= self._open_m and now == self._open_m) or (high <= least and now == least) or low == high == now:
            return np.full(n, now)
        openings = np.empty(n)
        for i, target in enumerate(targets):
            if not math.isfinite(target):
                target = now
            target = min(max(target, 0.0), self._open_m)
            step = min(max(target - now, -stroke), stroke)
            if step < 0:
                gripped = self._gripped
                if gripped is None and self._grasp(sweep, i, int(t_ns[i]), now, now + step):
                    gripped = self._gripped
                if gripped is not None:
                    step = max(step, gripped - now)
            now = target if abs(target - now) <= abs(step) else now + step
            gripped = self._gripped
            if gripped is not None and now < gripped:
                now = gripped
            if gripped is not None and now > gripped + RELEASE_M:
                self._let_go(sweep.positions[:, i], int(t_ns[i]))
            openings[i] = now
        self.opening = now
        return openings

    @property
    def _gripped(self) -> float | None:
        """How far apart what the fingers hold keeps them, m; None where they hold nothing."""
        if self.held is not None:
            return self._kinds[self.held].grasp_width
        return self.lid.grasp_width if self.lid is not None and self.lid.held else None

    def _grasp(self, sweep: Sweep, i: int, t_ns: int, now: float, to: float) -> bool:
        """Fingers close from `now` to `to`, m: do they come upon anything?"""
        widths = {kind.grasp_width for kind in self._kinds if now > kind.grasp_width >= to}
        lid = self.lid if self.lid is not None and now > self.lid.grasp_width >= to else None
        if not widths and lid is None:
            return False
        x, y, z = sweep.positions[:, i].tolist()
        if lid is not None and lid.take((x, y, z)):
            return True
        yaw = sweep.yaw(i)
        best, found = GRASP_TOLERANCE_M, None
        for index, (at_x, at_y, at_z, at_yaw) in enumerate(self.pose.tolist()):
            within = self._kinds[index].grasp_width in widths
            if within and self.where[index] == IN_TOTE and abs(z - at_z) <= GRASP_TOLERANCE_M:
                off = math.hypot(x - at_x, y - at_y)
                turn = abs((yaw - at_yaw + math.pi / 2) % math.pi - math.pi / 2)
                if off <= best and turn <= GRASP_TOLERANCE_RAD:
                    best, found = off, index
        if found is None:
            return False
        self.held = found
        self._put(found, HELD)
        if self._kinds[found] is self.thing:
            self._lift_m = float(self.pose[found, 2]) + LIFTED_M
            self._sensed(t_ns, "grasped")
        self._last = np.array([x, y, z])
        self._offset = self.pose[found] - [x, y, z, yaw]
        slips = self._rng.random() < SLIP_AT_TOLERANCE * (best / GRASP_TOLERANCE_M) ** 4
        self._slip_after = float(self._rng.uniform(0.05, 0.6)) if slips else math.inf
        return True

    def _carry(self, t_ns: np.ndarray, sweep: Sweep) -> None:
        index = self.held
        assert index is not None
        if self._slip_after < math.inf and sweep.travel:
            at = sweep.positions
            steps = np.diff(at, axis=1, prepend=self._last[:, None])
            gone = np.cumsum(np.sqrt((steps * steps).sum(axis=0)))
            if gone[-1] >= self._slip_after:
                i = int(np.argmax(gone >= self._slip_after))
                self._drop(at[:, i], int(t_ns[i]), "slipped_outside")
                return
            self._slip_after -= float(gone[-1])
            self._last = at[:, -1]
        self.pose[index, :3] = self._offset[:3] + sweep.end[:3]
        if self.pose[index, 2] >= self._lift_m:
            self._lift_m = math.inf
            self._sensed(int(t_ns[-1]), "lifted")

    def _let_go(self, tip: np.ndarray, t_ns: int) -> None:
        if self.held is not None:
            self._drop(tip, t_ns, "dropped_outside")
        elif self.lid is not None:
            self.lid.held = False

    def _sensed(self, t_ns: int, what: str | None) -> None:
        """What a cell's sensors tell of a task, as it happens; nothing in a trial that is of none."""
        if what is not None and self._of_task:
            self.events.append(DeviceEvent("sensed", t_ns, {"what": what}))

    def _rest(self, index: int) -> float:
        """The height of an item's middle where it lies in a tote, m."""
        return self.source.centre[2] + self._kinds[index].size[2] / 2

    def _drop(self, tip: np.ndarray, t_ns: int, cause: str) -> None:
        index = self.held
        assert index is not None
        self.held = None
        self._slip_after = self._lift_m = math.inf
        self._put(index, FALLING)
        x, y = float(tip[0] + self._offset[0]), float(tip[1] + self._offset[1])
        height = max(float(tip[2] + self._offset[2]) - self._rest(index), 0.0)
        self.pose[index, :2] = x, y
        self._falling.append((t_ns + round(1e9 * math.sqrt(2 * height / GRAVITY_M_S2)), index, x, y, cause))

    def _land(self, now_ns: int) -> None:
        for fall in [fall for fall in self._falling if fall[0] <= now_ns]:
            self._falling.remove(fall)
            t_ns, index, x, y, cause = fall
            self.pose[index, 2] = self._rest(index)
            wanted = self._kinds[index] is self.thing
            if self.target.beyond(x, y) <= 0:
                if self.lid is not None and not self.lid.open:
                    self.pose[index, 2] += self.target.size[2]
                    self._put(index, IN_TOTE)
                    continue
                self._put(index, MOVED)
                if wanted:
                    self._sensed(t_ns, "placed")
                    self.events.append(DeviceEvent("success", t_ns, {"item": index}))
            elif self.source.beyond(x, y) <= 0:
                self._put(index, IN_TOTE)
            else:
                self._put(index, LOST)
                if wanted:
                    self.events.append(DeviceEvent("lost", t_ns, {"item": index, "cause": cause}))

    def tracked(self, yaw: float) -> np.ndarray:
        """What the simulated marker tracker sees: (n, 8) x y z yaw visible in_target lost held.

        Its noise has an sd of 1 mm and 0.02 rad.
        yaw: of the tool, for the item it holds. Lost and falling items are not visible and are reported about their
        last place.
        """
        if self.held is not None:
            self.pose[self.held, 3] = yaw + self._offset[3]
        seen = self._tracker.standard_normal((len(self.where), 8))
        seen *= _TRACKER_NOISE
        seen[:, :4] += self.pose
        seen[:, 4:] += self._flags
        return seen

    def scene(self) -> dict[str, Sequence[float]]:
        """What is known of the scene by the fixture. source_tote, target_tote (6,): centre on the floor and inner size,
        m. object (4,): item size and grasp width, m; object_index (1,): which object of the fixture it is. camera_side
        (1,): the layout's, 1 left, -1 right.
        """
        return {
            "source_tote": (*self.source.centre, *self.source.size),
            "target_tote": (*self.target.centre, *self.target.size),
            "object": (*self.thing.size, self.thing.grasp_width),
            "object_index": (float(self.thing.index),),
            "camera_side": (self.camera_side,),
        }

    def beside(self) -> dict[str, np.ndarray]:
        """What else a camera sees of the scene. lying (n, 4): where each item is, x y z (m) and yaw (rad), without the
        tracker's noise; kinds (n,): which object of the fixture each item is; lid (8,): as `SlidingLid.row`. The last
        two are there only where the scene has them.
        """
        found = {"lying": self.pose.copy()}
        if any(kind is not self.thing for kind in self._kinds):
            found["kinds"] = np.array([float(kind.index) for kind in self._kinds])
        if self.lid is not None:
            found["lid"] = np.array(self.lid.row())
        return found

    def _put(self, index: int, state: int) -> None:
        self.where[index] = state
        self._flags[index] = (state not in (FALLING, LOST), state == MOVED, state == LOST, state == HELD)


def _named(known: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in known:
        raise InputError(f"the fixture has no {what} {name!r}; known: {', '.join(known)}")
    return known[name]
