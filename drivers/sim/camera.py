"""A simulated camera: draws the cell from the robot's observations, from the wrist or over the shoulder at which the
layout has it.

May not: read a clock, use a graphics library, or know more than an observation and the fixture say.

The picture is a pin-hole projection of the scene, drawn at twice its size and reduced, so edges are smooth. As of any
sensor no two pictures are the same: one pixel in a thousand is a level brighter. Which ones follows from the frame's
number: the same observations give the same frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageChops

from labctl import rotations
from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Frame, Kind
from labctl.drivers.common import robot_tables
from labctl.drivers.common.kinematics import Chain
from labctl.drivers.common.sides import Sides
from labctl.drivers.sim import draw, scenery
from labctl.drivers.sim.draw import Canvas, Face, Pinhole, Shape
from labctl.drivers.sim.options import SimCameraOptions
from labctl.drivers.sim.scenery import Tote
from labctl.plain import CameraAbout, Placed

Thing = tuple[str, tuple[float, ...]]  # an object's name and the size of one item, m
Looks = tuple[Shape, tuple[float, ...]]  # how an item is drawn, and its size, m

CLOCK_DRIFT = 20e-6  # the camera's own clock runs this much fast, as crystals do
SCALE = 2
LID_M = 0.01  # thick
NOISY = 1000  # of so many pixels one is a level brighter
LAYER_M = 0.05  # items at heights closer than this keep their order
WRIST = ((0.075, 0.0, -0.15), (0.0, 0.0, 0.10), (1.0, 0.0, 0.0))  # eye, target and up in the TCP's frame, m
WRIST_DEG = 72

_DARK = (52, 55, 62)
_WHITE = ((128, 134, 146), (206, 211, 219), (246, 248, 251))
_LID = (118, 126, 140)
_HANDLE = (70, 74, 82)
_JOINT = ((96, 104, 118), (148, 156, 170))
_CHAINS: Mapping[int, Chain] = {
    robot_model.dof: robot_model.chain for robot_model in (robot_tables.FR3, robot_tables.UR5)
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an observation: middle (3,) in the base frame, yaw, whether the gripper holds it, and which object of
    the fixture it is, None where the scene has items of one kind.
    """

    at: np.ndarray
    yaw: float
    held: bool
    kind: int | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """An observation made ready to draw.

    q: joint angles of the arm; stands: x, y (m) and yaw (rad) of what it is mounted on; tip and turn: the TCP's place
    and its axes as columns; extent: an item's size (m); side: 1 for the left shoulder, -1 for the right; lid: middle
    (3,) and size (3,) of the target tote's lid, and where its handle is (3,), None where it has none.
    """

    q: np.ndarray
    tip: np.ndarray
    turn: np.ndarray
    opening_m: float
    items: tuple[Item, ...]
    extent: np.ndarray
    side: float = 1.0
    lid: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    stands: tuple[float, float, float] = (0.0, 0.0, 0.0)


def build(options: SimCameraOptions, *, cell: Cell, fixture: Fixture) -> SimCamera:
    """A simulated camera of a cell, at one of its robots."""
    totes = [Tote(np.array(t.centre_m, dtype=float), np.array(t.size_m, dtype=float)) for t in fixture.tote]
    things = [(o.name, tuple(o.item_size_m)) for o in fixture.object]
    made = SimCamera(options.view, (options.width, options.height), options.rate_hz, totes, things)
    if cell.second_robot is not None:
        sides, number = Sides(cell), int(options.robot == "second")
        made.part = lambda seen: sides.arrays(seen, number)
    return made


class SimCamera:
    """See the module. `grab` gives a frame when one is due; frames not asked for in time are skipped, but counted."""

    kind: Kind = "sim"

    def __init__(
        self, view: str, size: tuple[int, int], rate_hz: float, totes: list[Tote], things: list[Thing]
    ) -> None:
        self.width, self.height = size
        self.rate_hz = rate_hz
        self._period_ns = round(SECOND / rate_hz)
        self._painter = _Painter(view, size, totes, things)
        self._observation: Mapping[str, np.ndarray] = {}
        self._start_ns: int | None = None
        self._number = -1
        self.part: Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]] | None = None  # of two robots

    def connect(self, now_ns: int) -> None:
        """Start the camera's clock; connecting twice changes nothing."""
        if self._start_ns is None:
            self._start_ns = now_ns

    def sense(self, observation: Mapping[str, np.ndarray]) -> None:
        """The robot's latest observation: q, tcp, gripper, items (n, 8), lying (n, 4), object (4,), as simulated arms
        publish it; without lying, items are drawn where the tracker saw them. One of other axes says what is drawn of
        it besides: links (6,) or (7,), the arm's joints; fingers (1,), m; stands (3,), where the arm is mounted: x, y
        in m, yaw in rad.
        """
        self._observation = observation if self.part is None or not observation else self.part(observation)

    def grab(self, now_ns: int) -> Frame | None:
        """The frame that is due, or None. Device time is the camera's own clock in ms since it was connected."""
        if self._start_ns is None:
            raise RuntimeError("the camera is not connected")
        since = now_ns - self._start_ns
        number = since // self._period_ns
        if number <= self._number:
            return None
        self._number = number
        image = self._painter.paint(_scene(self._observation) if self._observation else None)
        _add_noise(image, number)
        return Frame(image, now_ns, since * (1.0 + CLOCK_DRIFT) / 1e6, int(number))

    def about(self) -> CameraAbout:
        """What is to be known beside the pictures. extrinsics: rotation (rows), translation_m of x_base or x_tcp =
        rotation x_camera + translation, the camera's axes right, down and forward.
        """
        lens, frame = self._painter.lens()
        focal, (cx, cy) = lens.focal / SCALE, (lens.centre[0] / SCALE - 0.5, lens.centre[1] / SCALE - 0.5)
        placed: Placed = {"rotation": lens.axes.T.tolist(), "translation_m": lens.position.tolist()}
        return {
            "model": "sim_camera",
            "serial": None,
            "settings": {"view": self._painter.view, "clock_drift": CLOCK_DRIFT},
            "intrinsics": {
                "width": self.width,
                "height": self.height,
                "fx": focal,
                "fy": focal,
                "cx": cx,
                "cy": cy,
                "distortion": "none",
                "coefficients": [],
            },
            "extrinsics": {f"{frame}_from_camera": placed},
            "depth_scale_m": None,
        }

    def close(self) -> None:
        """Nothing to let go of; whoever connects it anew starts its clock anew."""
        self._start_ns, self._number = None, -1


def _add_noise(image: np.ndarray, number: int) -> None:
    """What a sensor adds of its own to the frame of that number, in place."""
    values = image.reshape(-1, 3)
    some = np.random.default_rng(number).integers(len(values), size=len(values) // NOISY)
    values[some] += values[some] < 255


def joint_points(chain: Chain, q: np.ndarray) -> np.ndarray:
    """Where the joints and the flange of a chain are, from the base up: (n, 3) m, points closer than 2 cm merged."""
    points, turn = [np.zeros(3)], np.eye(3)
    for (a, alpha, d), angle in zip(chain.rows, q, strict=True):
        ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(angle), np.sin(angle)
        start = points[-1] + a * turn[:, 0]
        turn = turn @ np.array([[1, 0, 0], [0, ca, -sa], [0, sa, ca]])
        points += [start, start + d * turn[:, 2]]
        turn = turn @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    points.append(points[-1] + (chain.tool_z - robot_tables.HAND_M) * turn[:, 2])
    kept = points[:1]
    for point in points[1:]:
        if float(np.abs(point - kept[-1]).max()) > 0.02:
            kept.append(point)
    return np.array(kept)


def _stood(points: np.ndarray, stands: tuple[float, float, float]) -> np.ndarray:
    """Points (n, 3) of an arm in the frame that it is drawn in."""
    if not any(stands):
        return points
    (x, y, yaw), turn = stands, np.eye(3)
    turn[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    return points @ turn.T + (x, y, 0.0)


def _scene(seen: Mapping[str, np.ndarray]) -> Scene:
    tcp = np.asarray(seen["tcp"], dtype=float)
    turn = rotations.matrix(tcp[None, 3:7])[0]
    rows = np.array(seen.get("items", np.empty((0, 8))), dtype=float)
    if "lying" in seen:
        rows[:, :4] = np.reshape(seen["lying"], (-1, 4))  # of no items JSON keeps no columns
    kinds = [int(kind) for kind in seen["kinds"]] if "kinds" in seen else [None] * len(rows)
    items = tuple(
        Item(row[:3], float(row[3]), bool(row[7]), kind) for row, kind in zip(rows, kinds, strict=True) if row[4]
    )
    side = float(seen["camera_side"][0]) if "camera_side" in seen else 1.0
    opening = float(seen.get("fingers", seen["gripper"])[0])
    extent = np.asarray(seen.get("object", np.zeros(3))[:3])  # a robot that tells of no scene is drawn without items
    lid = _lid(np.asarray(seen["target_tote"]), np.asarray(seen["lid"])) if "lid" in seen else None
    x, y, yaw = (float(value) for value in seen.get("stands", np.zeros(3)))
    q = np.asarray(seen.get("links", seen["q"]))
    return Scene(q, tcp[:3], turn, opening, items, extent, side, lid, (x, y, yaw))


def _lid(tote: np.ndarray, lid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slid = lid[6] * lid[3:6]
    middle = tote[:3] + slid + (0.0, 0.0, tote[5] + LID_M / 2)
    return middle, np.array([tote[3], tote[4], LID_M]), lid[:3] + slid


@dataclass(frozen=True, slots=True)
class _Mount:
    """A camera that stands still: its background, the faces before the totes' content, all points as it sees them."""

    camera: Pinhole
    background: Image.Image
    before: list[Face]
    seen: draw.Corners


class _Painter:
    """Draws scenes for one view. What never changes over a shoulder is drawn once."""

    def __init__(self, view: str, size: tuple[int, int], totes: list[Tote], things: list[Thing]) -> None:
        self.view = view
        self._size = (SCALE * size[0], SCALE * size[1])
        self._totes = totes
        self._things = [(scenery.item_shape(name, extent), extent) for name, extent in things]
        self._room = scenery.Room(totes)
        self._middle = np.mean([tote.centre for tote in totes], axis=0)
        self._image = Image.new("RGB", self._size)  # one image for all pictures: making one costs more than filling it
        self._nothing = Image.new("RGB", self._size, _DARK)
        self._mounts: dict[float, _Mount] = {}
        self._side = 1.0

    def _mount(self) -> _Mount:
        """The camera's place over the shoulder it is at, and what is always seen from there."""
        side = self._side
        if side not in self._mounts:
            target = self._middle + np.array([-0.11, -0.03 * side, 0.18])
            camera = self._camera((-0.40, 0.84 * side, 1.12), target, (0, 0, 1), 53)
            empty, before = self._draw_room(camera)
            light = Image.fromarray((255 * draw.vignette(*self._size)).astype(np.uint8))
            background = ImageChops.multiply(empty.image, Image.merge("RGB", [light] * 3))
            seen = camera.to_camera(self._room.points).tolist()
            self._mounts[side] = _Mount(camera, background, before, seen)
        return self._mounts[side]

    def paint(self, scene: Scene | None) -> np.ndarray:
        """One picture (height, width, 3) uint8; without a scene yet, the empty room from over the shoulder."""
        if scene is None:
            mount = self._mount()
            canvas = self._canvas(mount)
            draw.draw_seen(canvas, mount.camera, mount.seen, mount.before)
        elif self.view == "wrist":
            canvas = self._paint_wrist(scene)
        else:
            canvas = self._paint_shoulder(scene)
        return np.array(canvas.image.reduce(SCALE))

    def _paint_shoulder(self, scene: Scene) -> Canvas:
        self._side = scene.side
        mount = self._mount()
        canvas, camera = self._canvas(mount), mount.camera
        self._draw_items(canvas, camera, scene, held=False)
        inside = any(t.holds(scene.tip) and scene.tip[2] < t.centre[2] + t.size[2] for t in self._totes)
        if inside:  # the walls nearer to the camera hide the hand
            self._draw_hand(canvas, camera, scene)
        draw.draw_seen(canvas, camera, mount.seen, mount.before)
        self._draw_lid(canvas, camera, scene)
        points = _stood(joint_points(_CHAINS[len(scene.q)], scene.q), scene.stands)
        draw.draw_tube(canvas, camera, points, np.linspace(0.066, 0.042, len(points)).tolist(), _WHITE)
        draw.draw_joints(canvas, camera, points[1:-1], 0.030, _JOINT)
        if not inside:
            self._draw_hand(canvas, camera, scene)
        return canvas

    def _paint_wrist(self, scene: Scene) -> Canvas:
        eye, target, up = (scene.turn @ np.array(point) for point in WRIST)
        camera = self._camera(scene.tip + eye, scene.tip + target, up, WRIST_DEG)
        canvas, before = self._draw_room(camera)
        self._draw_items(canvas, camera, scene, held=False)
        draw.draw_parts(canvas, camera, self._room.points, before)
        self._draw_lid(canvas, camera, scene)
        self._draw_items(canvas, camera, scene, held=True)
        self._draw_fingers(canvas, camera, scene)
        return canvas

    def lens(self) -> tuple[Pinhole, str]:
        """The camera at SCALE times its size, where it stood last, and the frame it stands in: "base", or "tcp" for the
        wrist's.
        """
        return (self._camera(*WRIST, WRIST_DEG), "tcp") if self.view == "wrist" else (self._mount().camera, "base")

    def _canvas(self, mount: _Mount) -> Canvas:
        self._image.paste(mount.background)
        return Canvas(self._image)

    def _camera(self, eye: Any, target: Any, up: Any, field_of_view_deg: float) -> Pinhole:
        width, height = self._size
        return Pinhole.looking_at(eye, target, up, field_of_view_deg=field_of_view_deg, width=width, height=height)

    def _draw_room(self, camera: Pinhole) -> tuple[Canvas, list[Face]]:
        """What lies behind the totes' content, and the faces to draw once the content is drawn."""
        self._image.paste(self._nothing)  # four times faster than filling a rectangle
        canvas = Canvas(self._image)
        behind, before = self._room.layers(camera.position)
        draw.draw_parts(canvas, camera, self._room.points, behind)
        return canvas, before

    def _draw_items(self, canvas: Canvas, camera: Pinhole, scene: Scene, *, held: bool) -> None:
        one_kind = min(self._things, key=lambda thing: float(np.abs(scene.extent - thing[1]).sum()))
        items = [item for item in scene.items if item.held == held]
        if not held:
            items.sort(key=lambda item: round(float(item.at[2]) / LAYER_M))  # noise does not turn a pile over
            things = [scenery.shadow(i.at, i.yaw, self._looks(i, one_kind)[1], self._totes) for i in items]
            if self.view != "wrist":
                things.append(scenery.shadow(scene.tip, 0.0, (0.07, 0.10, 0.06), self._totes))
            for thing in things:
                draw.draw_parts(canvas, camera, thing.points, thing.parts)
        for item in items:
            shape, _ = self._looks(item, one_kind)
            draw.draw_parts(canvas, camera, draw.posed(shape.points, item.at, item.yaw), shape.parts)

    def _looks(self, item: Item, one_kind: Looks) -> Looks:
        return one_kind if item.kind is None else self._things[item.kind]

    def _draw_lid(self, canvas: Canvas, camera: Pinhole, scene: Scene) -> None:
        if scene.lid is not None:
            middle, size, handle = scene.lid
            draw.draw_box(canvas, camera, middle, np.eye(3), tuple(size.tolist()), _LID)
            draw.draw_box(canvas, camera, handle - (0, 0, 0.01), np.eye(3), (0.06, 0.02, 0.03), _HANDLE)

    def _draw_hand(self, canvas: Canvas, camera: Pinhole, scene: Scene) -> None:
        self._draw_items(canvas, camera, scene, held=True)
        self._draw_fingers(canvas, camera, scene)
        centre = scene.tip - 0.078 * scene.turn[:, 2]
        draw.draw_box(canvas, camera, centre, scene.turn, (0.055, 0.185, 0.050), (216, 220, 226))

    def _draw_fingers(self, canvas: Canvas, camera: Pinhole, scene: Scene) -> None:
        offset = scene.opening_m / 2 + 0.008
        for side in (-1.0, 1.0):
            centre = scene.tip + side * offset * scene.turn[:, 1] - 0.018 * scene.turn[:, 2]
            draw.draw_box(canvas, camera, centre, scene.turn, (0.020, 0.014, 0.060), (60, 64, 72))
