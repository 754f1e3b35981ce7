"""Keys of a cell file that do not go together, though each may be as it is alone; with a protocol, its scene and cards
too.

May not: connect to anything, or know a driver: what a driver's options say of themselves comes from their table.
What no fact decides is not judged here: thresholds of force and torque (docs/hardware.md has where ours come from).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from labctl.config.cell_schema import CameraTable, Cell, Fixture
from labctl.config.options import Contradiction, Options
from labctl.config.policy_card import Card, Image
from labctl.devices import options_type
from labctl.plain import Json

INSIDE_M = 0.001  # a driver keeps the tool this far inside the box
NONE = 1e-9  # what sums of decimal numbers are off by
ANEW_S = 0.004  # from the last action of an answer to the next question, at a policy's best: 2 to 4 ms were measured
LEAST_S = 10 * ANEW_S  # that an answer should last
SAME_ASPECT = 0.02  # 640 x 360 and 1280 x 720 are alike; 848 x 480 is 16:9 but for 0.6 %


def of_cell(cell: Cell) -> list[Contradiction]:
    """What contradicts itself in one cell file whose options are right: `labctl.store.driver_options` looks there."""
    found = list[Contradiction]()
    for name, side in zip(cell.names, cell.sides, strict=True):
        own = [*_of_rates(side), *_of_the_hand(side), *_of_driver(side, side.robot.driver, side.robot.options)]
        found += [Contradiction(f"{name}: {one.about}", one.text, one.remedy) if name else one for one in own]
    found += _of_devices(cell)
    for camera in cell.camera:
        inside = _of_driver(cell, camera.driver, camera.given)
        found += [Contradiction(f"camera {camera.name}: {one.about}", one.text, one.remedy) for one in inside]
    return found


def of_scene(cell: Cell, fixture: Fixture) -> list[Contradiction]:
    """Where a fixture's items lie beyond what the cell's box lets the tool reach; of two robots that share the totes
    nothing is said, since either may reach them, and of two with totes of their own each is looked at. A rail carries
    the box along, whichever way it runs, and a base anywhere.
    """
    if cell.second_robot is not None and cell.second_robot.scene == "shared":
        return []
    found = list[Contradiction]()
    for key, name, side in zip(("robot", "second_robot"), cell.names, cell.sides, strict=False):
        about = f"{name}: box" if name else "box"
        found += [Contradiction(about, text, remedy) for text, remedy in _beyond(key, side, fixture)]
    return found


def _beyond(key: str, cell: Cell, fixture: Fixture) -> Iterator[tuple[str, str]]:
    """What of one robot's box, under `key` in its file, is too small for the totes before it, and the remedy."""
    limits = cell.robot.limits
    floor = limits.box_min_m[2] + INSIDE_M
    lowest = min(tote.centre_m[2] for tote in fixture.tote)
    flat = min(fixture.object, key=lambda each: each.item_size_m[2])
    middle = lowest + flat.item_size_m[2] / 2
    if floor > middle + NONE:
        keys = f"{key}.limits.box_min_m z = {limits.box_min_m[2]:g} m and item_size_m of {flat.name!r}"
        text = f"{keys}: the fingertips stay {1e3 * (floor - lowest):.0f} mm above the tote's floor"
        text += f", and an item lying there is {1e3 * flat.item_size_m[2]:.0f} mm high"
        yield text, f"box_min_m z = {middle - INSIDE_M:.3f} or less, or higher items"
    carried = _carried(cell)
    if carried is None:
        return
    back, ahead = carried
    more = f", {back:g} to {ahead:g} m more by its rail," if (back, ahead) != (0.0, 0.0) else ""
    for tote in fixture.tote:
        for axis, low, high, at, size in zip(
            "xy", limits.box_min_m, limits.box_max_m, tote.centre_m, tote.size_m, strict=False
        ):
            if at - size / 2 < low + back - NONE or at + size / 2 > high + ahead + NONE:
                ends = f"{at - size / 2:g} to {at + size / 2:g} m"
                text = f"{key}.limits box {axis} = {low:g} to {high:g} m{more} and tote {tote.name!r}, {axis} = {ends}"
                remedy = "widen the box where the cell allows it, or move the tote"
                yield f"{text}: items there cannot be reached", remedy


def _carried(cell: Cell) -> tuple[float, float] | None:
    """How far the rails of a robot carry its arm, back and ahead in m, within the limits of its cell; None where a base
    carries it anywhere.
    """
    options = _options(cell.robot.driver, cell.robot.options)
    axes = [] if options is None else options.axes() or []
    if any(axis.kind == "twist" for axis in axes):
        return None
    limits = {table.name: table for table in cell.robot.axis}
    own = [limits[axis.name].narrowed(axis) if axis.name in limits else axis for axis in axes]
    rails = [axis for axis in own if axis.kind == "prismatic" and not axis.hand]
    return sum(min(rail.lower, 0.0) for rail in rails), sum(max(rail.upper, 0.0) for rail in rails)


def of_cards(cell: Cell, cards: Mapping[str, Card]) -> list[Contradiction]:
    """Cameras whose pictures have another shape than what a card says its policy was trained on, or are too old for it
    in a part of each period, and cards whose rate cannot be kept; cards by arm.
    """
    cameras = {camera.name: camera for camera in cell.camera}
    read = [(arm, card.image, cameras.get(one)) for arm, card in cards.items() for one in sorted(card.cameras)]
    known = [(arm, image, camera) for arm, image, camera in read if camera is not None]
    wrong = [look(*each) for each in known for look in (_other_shape, _too_old)]
    wrong += [_too_quick(arm, card) for arm, card in cards.items()] if cell.cell.clock != "manual" else []
    return [one for one in wrong if one is not None]


def _too_quick(arm: str, card: Card) -> Contradiction | None:
    """An answer that is over so soon that asking anew is a good part of the time."""
    many = card.action.execute or card.action.horizon
    if not many or card.timing.ask_ahead_s or many / card.timing.rate_hz >= LEAST_S - NONE:
        return None
    lasts_s = many / card.timing.rate_hz
    keys = f"the card of arm {arm}: timing.rate_hz = {card.timing.rate_hz:g} and {many} of its actions from each answer"
    took = f"asking anew takes some {1e3 * ANEW_S:.0f} more, and the policy's own time"
    text = f"{keys} last {1e3 * lasts_s:.0f} ms, and {took}: it is followed at some {many / (lasts_s + ANEW_S):.0f} Hz"
    remedy = 'a larger execute, or starts = "capture" with ask_ahead_s'
    return Contradiction("timing", f"{text} at most", remedy)


def _too_old(arm: str, image: Image, camera: CameraTable) -> Contradiction | None:
    """One that is too old whenever it comes is refused before (`labctl.store.frozen_cards`)."""
    oldest_s = camera.latency_s + 1 / camera.rate_hz
    if oldest_s <= image.max_age_s + NONE:
        return None
    keys = f"camera {camera.name}: latency_s = {camera.latency_s:g}, rate_hz = {camera.rate_hz:g}, and the card of arm"
    text = f"{keys} {arm}: image.max_age_s = {image.max_age_s:g}; its newest picture may be {oldest_s:.3g} s old, and"
    remedy = f"a higher rate_hz, or max_age_s = {math.ceil(100 * oldest_s) / 100:g} or more"
    return Contradiction("pictures", f"{text} the robot stands until another one comes", remedy)


def _other_shape(arm: str, image: Image, camera: CameraTable) -> Contradiction | None:
    if image.aspect is None:
        return None
    wide, high = image.aspect
    if abs(camera.width / camera.height * high / wide - 1) <= SAME_ASPECT:
        return None
    keys = f"camera {camera.name}: width = {camera.width}, height = {camera.height}, and the card of arm {arm}"
    text = f"{keys}: image.aspect = [{wide:g}, {high:g}]; its policy sees another part of the scene than in training"
    return Contradiction("pictures", text, f"width = {camera.width} and height = {round(camera.width * high / wide)}")


def _of_rates(cell: Cell) -> Iterator[Contradiction]:
    robot = cell.robot
    if robot.observe_hz > robot.state_hz:
        keys = f"robot.observe_hz = {robot.observe_hz:g} and robot.state_hz = {robot.state_hz:g}"
        remedy = f"observe_hz = {robot.state_hz:g} or less"
        yield Contradiction("states", f"{keys}: the same state would be published again and again", remedy)


def _of_the_hand(cell: Cell) -> Iterator[Contradiction]:
    hand, limits = cell.teleop, cell.robot.limits
    if hand is None:
        return
    fastest = max(limits.velocity_rad_s)
    if hand.joint_rad_s > fastest:
        keys = f"teleop.joint_rad_s = {hand.joint_rad_s:g} and robot.limits.velocity_rad_s, at most {fastest:g}"
        yield Contradiction("teleop", f"{keys}: the robot lags behind the hand", f"joint_rad_s = {fastest:g} or less")
    most = limits.tool_speed_m_s
    if most is not None and hand.linear_m_s > most:
        keys = f"teleop.linear_m_s = {hand.linear_m_s:g} and robot.limits.tool_speed_m_s = {most:g}"
        yield Contradiction("teleop", f"{keys}: the robot lags behind the hand", f"linear_m_s = {most:g} or less")
    if hand.closed_m >= hand.open_m:
        keys = f"teleop.closed_m = {hand.closed_m:g} and teleop.open_m = {hand.open_m:g}"
        yield Contradiction("teleop", f"{keys}: the hand would close by opening", "closed_m below open_m")


def _of_devices(cell: Cell) -> Iterator[Contradiction]:
    """Two tables that name one device, as a copied table does."""
    of = zip(cell.names, cell.robots, strict=True)
    tables = [(name or "robot", robot.driver, robot.options) for name, robot in of]
    tables += [(f"camera {camera.name}", camera.driver, camera.given) for camera in cell.camera]
    tables += [(f"sensor {sensor.name}", sensor.driver, sensor.given) for sensor in cell.sensor]
    hands = [("teleop", cell.teleop), ("second_teleop", cell.second_teleop)]
    tables += [(key, hand.driver, hand.options) for key, hand in hands if hand is not None]
    first: dict[str, str] = {}
    for about, driver, given in tables:
        for device in _devices(driver, given):
            if (before := first.setdefault(device, about)) != about:
                text = f"{device} of {before} and of {about}: only one of them can have it"
                yield Contradiction("devices", text, f"the other's own {device.split(' = ')[0]} in one of them")


def _devices(driver: str, given: Mapping[str, Json]) -> Iterator[str]:
    options = _options(driver, given)
    if options is not None:
        for inside in options.wrapped():
            yield from _devices(inside.driver, inside.options)
        if (device := options.device()) is not None:
            yield device


def _options(driver: str, given: Mapping[str, Json]) -> Options | None:
    table = options_type(driver)
    options = None if table is None else table.read(given, driver)
    return options if isinstance(options, Options) else None


def _of_driver(cell: Cell, driver: str, given: Mapping[str, Json]) -> Iterable[Contradiction]:
    """What the options of a driver, and of those that it names inside, say of themselves in this cell."""
    options = _options(driver, given)
    if options is None:
        return []
    inside = [one for other in options.wrapped() for one in _of_driver(cell, other.driver, other.options)]
    return [*options.contradictions(cell), *inside]
