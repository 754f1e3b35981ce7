"""The simulated camera shows what the observations say, and says it the same way every time."""

import numpy as np
import pytest

from labctl import rotations
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Camera, load
from labctl.drivers.common import kinematics, robot_tables
from labctl.drivers.sim import draw, scenery
from labctl.drivers.sim.camera import joint_points
from labctl.drivers.sim.scenery import Tote
from labctl.errors import InputError
from labctl.testing.given import FIXTURE, SIMULATED

SIZE = {"width": 320, "height": 240, "rate_hz": 10.0}
KINDS = [entry.name for entry in FIXTURE.object]


def camera(view: str = "over_shoulder", **options) -> Camera:
    made = load("sim_camera", {**SIZE, "view": view, **options}, **SIMULATED)
    made.connect(0)
    return made


def observation(
    kind: str = "towels", *, tcp=(0.42, 0.0, 0.35), items=((0.48, 0.24),), held=None, opening=0.06, arm=robot_tables.FR3
):
    extent = FIXTURE.object[KINDS.index(kind)].item_size_m
    wanted = np.array([[*tcp, 1.0, 0.0, 0.0, 0.0]])
    q = arm.inverse(wanted, arm.home)[0]
    rows = np.array([[x, y, extent[2] / 2, 0.4, 1, 0, 0, 0] for x, y in items]).reshape(-1, 8)
    if held is not None:
        rows[held] = [*tcp, 0.0, 1, 0, 0, 1]
    tip = kinematics.poses(arm.chain, q[None])[0]
    return {"q": q, "tcp": tip, "gripper": np.array([opening]), "items": rows, "object": np.array([*extent, 0.02])}


def picture(view: str, seen) -> np.ndarray:
    made = camera(view)
    made.sense(seen)
    frame = made.grab(0)
    assert frame is not None
    return frame.image.astype(int)


def changed(a: np.ndarray, b: np.ndarray) -> float:
    """Share of pixels that differ visibly."""
    return float((np.abs(a - b).max(axis=2) > 8).mean())


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_the_same_observations_give_the_same_pixels(view):
    assert np.array_equal(picture(view, observation()), picture(view, observation()))


def test_items_are_drawn_where_they_lie_and_not_where_a_noisy_tracker_saw_them():
    """Else nobody could put a scene back as it was: it would look different each time one looks."""
    seen = observation()
    lying = seen["items"][:, :4]
    tracked = seen["items"] + np.array([0.004, -0.004, 0.0, 0.1, 0, 0, 0, 0])
    still = picture("over_shoulder", {**seen, "lying": lying})
    assert np.array_equal(still, picture("over_shoulder", {**seen, "items": tracked, "lying": lying}))
    assert not np.array_equal(still, picture("over_shoulder", {**seen, "items": tracked}))


def test_a_scene_without_items_is_drawn_as_an_emulator_tells_of_it():
    """Through JSON, in which a table without rows has no columns."""
    seen = observation(items=())
    assert np.array_equal(picture("over_shoulder", {**seen, "lying": np.array([])}), picture("over_shoulder", seen))


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_no_two_frames_are_the_same_and_they_differ_by_no_more_than_a_sensors_noise(view):
    made = camera(view)
    made.sense(observation())
    first, second = (made.grab(t).image.astype(int) for t in (0, SECOND))
    differ = np.abs(first - second).max(axis=2)
    assert 0 < (differ > 0).mean() <= 2 / 1000 and differ.max() == 1


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_a_robot_that_tells_of_no_scene_is_drawn_without_items(view):
    """As driver "replay", or a real one in front of an emulator that is not asked for its scene."""
    seen = observation(items=())
    told = {name: seen[name] for name in ("q", "tcp", "gripper")}
    assert np.array_equal(picture(view, told), picture(view, seen))


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_a_frame_does_not_change_when_the_next_is_drawn(view):
    made = camera(view)
    made.sense(observation())
    first = made.grab(0)
    before = first.image.copy()
    made.sense(observation(tcp=(0.5, 0.2, 0.2)))
    made.grab(SECOND)
    assert np.array_equal(first.image, before)


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
@pytest.mark.parametrize("size", [(320, 240), (160, 120)])
def test_frames_have_the_size_that_was_asked_for(view, size):
    made = camera(view, width=size[0], height=size[1])
    made.sense(observation())
    frame = made.grab(0)
    assert frame.image.shape == (size[1], size[0], 3)
    assert frame.image.dtype == np.uint8
    assert (made.width, made.height) == size


@pytest.mark.parametrize("arm", [robot_tables.FR3, robot_tables.UR5], ids=lambda arm: arm.name)
def test_moving_the_arm_moves_the_picture(arm):
    here = picture("over_shoulder", observation(arm=arm))
    there = picture("over_shoulder", observation(arm=arm, tcp=(0.5, 0.25, 0.25)))
    assert changed(here, there) > 0.05


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_fingers_open_and_close(view):
    seen = {"tcp": (0.48, 0.24, 0.25), "items": ()}
    assert (
        changed(picture(view, observation(**seen, opening=0.0)), picture(view, observation(**seen, opening=0.08)))
        > 0.0005
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_object_can_be_seen_from_both_views(kind):
    for view, least in (("over_shoulder", 0.0002), ("wrist", 0.002)):
        over = {"tcp": (0.48, 0.24, 0.25)}
        empty = picture(view, observation(kind, items=(), **over))
        assert changed(empty, picture(view, observation(kind, **over))) > least


def test_objects_look_different_from_each_other():
    pictures = [picture("wrist", observation(kind, tcp=(0.48, 0.24, 0.25))) for kind in KINDS]
    for i, a in enumerate(pictures):
        for b in pictures[:i]:
            assert changed(a, b) > 0.002


def test_an_invisible_item_is_not_drawn():
    seen = observation("towels")
    hidden = {**seen, "items": seen["items"] * np.array([1, 1, 1, 1, 0, 1, 1, 1])}
    assert np.array_equal(picture("over_shoulder", hidden), picture("over_shoulder", observation("towels", items=())))


def test_a_held_item_travels_with_the_hand():
    low = picture("wrist", observation("towels", held=0, tcp=(0.48, 0.24, 0.15)))
    high = picture("wrist", observation("towels", held=0, tcp=(0.48, -0.24, 0.35)))
    blue = (low[:, :, 2] > low[:, :, 0] + 60) & (high[:, :, 2] > high[:, :, 0] + 60)
    assert blue.mean() > 0.02


def test_before_any_observation_the_room_is_empty():
    empty = camera().grab(0).image.astype(int)
    assert 0.01 < changed(empty, picture("over_shoulder", observation(items=()))) < 0.5


def test_a_frame_comes_when_it_is_due_and_not_before():
    made = camera()
    times_ms = [0, 40, 99, 100, 150, 201, 202, 500]
    numbers = [frame.number if (frame := made.grab(t * MILLISECOND)) else None for t in times_ms]
    assert numbers == [0, None, None, 1, None, 2, None, 5]


def test_device_time_is_the_cameras_own_clock():
    made = load("sim_camera", SIZE, **SIMULATED)
    made.connect(7 * SECOND)
    frame = made.grab(17 * SECOND)
    assert frame.host_ns == 17 * SECOND
    assert frame.device_time == pytest.approx(10_000.2)  # 10 s at 20 ppm fast, in ms


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"view": "above"}, 'view must be one of "over_shoulder", "wrist", found'),
        ({"vew": "wrist"}, "no option 'vew'; did you mean 'view'"),
    ],
)
def test_a_wrong_option_is_one_clear_line(options, text):
    with pytest.raises(InputError, match=text):
        load("sim_camera", {**SIZE, **options}, **SIMULATED)


def test_an_unknown_object_is_a_plain_block():
    shape = scenery.item_shape("left-handed widget", (0.1, 0.06, 0.04))
    assert np.ptp(shape.points, axis=0) == pytest.approx([0.1, 0.06, 0.04])


def test_the_pin_hole_puts_points_where_geometry_says():
    made = draw.Pinhole.looking_at((0, 0, 1), (1, 0, 1), (0, 0, 1), field_of_view_deg=90, width=200, height=100)
    assert made.focal == pytest.approx(100)  # 90 degrees across 200 pixels: f = 100
    right, down, forward = made.to_camera(np.array([[2.0, -1.0, 0.5]]))[0]
    assert (right, down, forward) == pytest.approx((1.0, 0.5, 2.0))


@pytest.mark.parametrize("arm", [robot_tables.FR3, robot_tables.UR5], ids=lambda arm: arm.name)
def test_the_drawn_flange_is_one_hand_before_the_tcp(arm):
    pose = kinematics.poses(arm.chain, arm.home[None])[0]
    flange = joint_points(arm.chain, arm.home)[-1]
    assert np.linalg.norm(flange - pose[:3]) == pytest.approx(robot_tables.HAND_M)


def test_only_walls_that_face_the_eye_are_drawn():
    room = scenery.Room([Tote(np.array([0.48, 0.24, 0.0]), np.array([0.34, 0.30, 0.12]))])
    table = len(scenery.Room([]).layers(np.zeros(3))[0]) + 1  # and the tote's shadow
    behind, before = room.layers(np.array([0.48, 0.24, 0.4]))  # from right above: floor, four walls and four rims
    assert (len(behind) - table, len(before)) == (9, 0)
    behind, before = room.layers(np.array([-0.4, 0.24, 0.4]))  # from the front: its near wall hides some of the content
    assert (len(behind) - table, len(before)) == (7, 2)
    behind, before = room.layers(np.array([-0.4, 0.84, 1.1]))  # from a corner: two near walls with their rims
    assert (len(behind) - table, len(before)) == (5, 4)


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_what_it_says_of_its_lens_and_place_is_how_it_draws(view):
    """A towel is blue, and its middle is where the lens, put where it is said to stand, would show it."""
    seen = observation("towels", tcp=(0.44, 0.20, 0.30), items=((0.48, 0.24),))
    about = camera(view).about()
    lens = about["intrinsics"]
    ((frame, placed),) = about["extrinsics"].items()
    turn, shift = np.array(placed["rotation"]), np.array(placed["translation_m"])
    if frame == "tcp_from_camera":
        tip = rotations.matrix(seen["tcp"][None, 3:7])[0]
        turn, shift = tip @ turn, seen["tcp"][:3] + tip @ shift
    x, y, z = turn.T @ (seen["items"][0, :3] - shift)
    column, row = lens["fx"] * x / z + lens["cx"], lens["fy"] * y / z + lens["cy"]
    red, _, blue = picture(view, seen)[round(row), round(column)]
    assert z > 0 and blue > red + 60
    blues = np.argwhere(picture(view, seen)[:, :, 2] > picture(view, seen)[:, :, 0] + 60)
    assert np.abs(blues.mean(axis=0) - (row, column)).max() < 12, "in the middle of the towel, in pixels"


def test_the_layout_says_over_which_shoulder_the_camera_looks():
    """Seen from the other side, the same cell is another picture; the wrist camera does not care."""
    left, right = observation(), {**observation(), "camera_side": np.array([-1.0])}
    assert np.array_equal(picture("over_shoulder", left), picture("over_shoulder", {**left, "camera_side": np.ones(1)}))
    assert changed(picture("over_shoulder", left), picture("over_shoulder", right)) > 0.3
    assert np.array_equal(picture("wrist", left), picture("wrist", right))
    made, places = camera(), []
    for seen in (left, right):
        made.sense(seen)
        made.grab(len(places) * SECOND)
        places.append(made.about()["extrinsics"]["base_from_camera"]["translation_m"])
    assert places[0][1] > 0.5 and places[1][1] < -0.5, "and it says so"


def test_noise_in_a_height_does_not_turn_a_pile_over():
    seen = observation(items=((0.48, 0.24), (0.50, 0.25)))
    nudged = {**seen, "items": seen["items"] + np.array([[0, 0, 0.002, 0, 0, 0, 0, 0], [0] * 8])}
    assert changed(picture("wrist", seen), picture("wrist", nudged)) < 0.02


def test_a_camera_that_is_connected_anew_gives_pictures_at_once():
    made = camera()
    assert made.grab(5 * SECOND) is not None
    made.close()
    made.connect(6 * SECOND)
    frame = made.grab(6 * SECOND)
    assert frame is not None and frame.number == 0
