"""Keys of a cell that do not go together are each named with their numbers and the remedy (issue 20.16)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.policies.cards import card_toml
from support.robots.cells import cell_named
from support.robots.cells import changed as cell_changed
from support.runs.campaigns import ROOT

from labctl.checks import contradictions, doctor
from labctl.config.cell_schema import Cell, Fixture, parse_cell
from labctl.config.policy_card import Card, Image, parse_card
from labctl.store.driver_options import check_cell_options
from labctl.store.lab_folder import read_cell, read_fixture

CELLS = sorted((ROOT / "hw_configs").glob("*.toml"))
TELEOP = '\n[teleop]\ndevice = "keyboard"\n'
LEADER = """[teleop]
device = "gello"
[teleop.options]
port = "/dev/ttyUSB0"
signs = [1, 1, 1, 1, 1, 1, 1]
offsets_rad = [0, 0, 0, 0, 0, 0, 0]

"""
# What has to be named: cell, text of the shipped file, what it is replaced by, the line.
WRONG = {
    "acceleration": (
        *("fr3_droid_cell", "[2.2, 2.2, 2.2, 2.2, 2.2, 2.2, 2.2]", "[2.5, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5]"),
        r"limits: .*acceleration_rad_s2 = 2\.5 of joint 2 and dynamics_factor = 0\.3: .* 2\.25 rad/s2.* -> .*0\.33",
    ),
    "emulated": (
        *("emulated_fr3", "dynamics_factor = 0.5", "dynamics_factor = 0.2"),
        r"limits: .*acceleration_rad_s2 = 3 of joint 2 and dynamics_factor = 0\.2: .* 1\.5 rad/s2",
    ),
    "velocity": (
        *("fr3_droid_cell", "[0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0]", "[0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 3.0]"),
        r"limits: .*velocity_rad_s = 3 of joint 7: .* 2\.61 rad/s -> velocity_rad_s = 2\.61 or less for joint 7",
    ),
    "home speed": (
        *("ur5e_cell", "home_speed_rad_s = 0.2", "home_speed_rad_s = 0.9"),
        r"speeds: home_speed_rad_s = 0\.9 and robot\.limits\.velocity_rad_s = 0\.8: .* -> home_speed_rad_s = 0\.8",
    ),
    "silence": (
        *("fr3_droid_cell", "state_hz = 1000.0", "state_hz = 8.0"),
        r"states: silence_s = 0\.5 and robot\.state_hz = 8: .*after 4\.0 states.* -> silence_s = 0\.625 or more",
    ),
    "observations": (
        *("ur5e_cell", "state_hz = 500.0", "state_hz = 20.0"),
        r"states: robot\.observe_hz = 30 and robot\.state_hz = 20: .* -> observe_hz = 20 or less",
    ),
    "exposure of a USB camera": (
        *("fr3_droid_cell", "exposure_s = 0.01", "exposure_s = 0.05"),
        r"camera wrist: exposure: exposure_s = 0\.05 \(50 ms\) and rate_hz = 30 \(33\.3 ms .* exposure_s below 0\.0333",
    ),
    "exposure of a RealSense": (
        *("fr3_droid_cell", "exposure = 100", "exposure = 500"),
        r"camera over_shoulder: exposure: color_sensor\.exposure = 500 \(50 ms\) and rate_hz = 30 .* below 333",
    ),
    "a watchdog of a UR": (
        *("ur5e_cell", "control_hz = 125.0", "control_hz = 7.0"),
        r"watchdog: watchdog_hz = 4 and robot\.control_hz = 7: .* 142\.857 .* within 250 ms -> control_hz = 8 or more",
    ),
    "one port twice": (
        *("fr3_droid_cell", "[video]", f"{LEADER}[video]"),
        r"devices: port = /dev/ttyUSB0 of robot and of teleop: only one of them can have it -> the other's own port ",
    ),
    "a hand's joints": (
        *("sim_fr3", "[video]", f"{TELEOP}joint_rad_s = 3.0\n[video]"),
        r"teleop: teleop\.joint_rad_s = 3 and robot\.limits\.velocity_rad_s, at most .* -> joint_rad_s = ",
    ),
    "a hand's tool": (
        *("fr3_droid_cell", "[video]", f"{TELEOP}linear_m_s = 0.5\n[video]"),
        r"teleop: teleop\.linear_m_s = 0\.5 and robot\.limits\.tool_speed_m_s = 0\.4: .* -> linear_m_s = 0\.4 or less",
    ),
    "a hand's opening": (
        *("sim_fr3", "[video]", f"{TELEOP}closed_m = 0.08\n[video]"),
        r"teleop: teleop\.closed_m = 0\.08 and teleop\.open_m = 0\.08: .* -> closed_m below open_m",
    ),
}


def changed(name: str, old: str, new: str) -> Cell:
    text = (ROOT / "hw_configs" / f"{name}.toml").read_text()
    assert old in text
    return parse_cell(text.replace(old, new), f"{name}.toml")


def fixture() -> Fixture:
    return read_fixture(ROOT / "fixtures" / "two_totes.toml")


def cards() -> dict[str, Card]:
    paths = sorted((ROOT / "protocols" / "cards").glob("*droid*.toml"))
    return {path.stem: parse_card(path.read_text(), path.name) for path in paths}


def lines(found: list[contradictions.Contradiction]) -> list[str]:
    return [f"{one.about}: {one.text} -> {one.remedy}" for one in found]


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_no_cell_that_labctl_ships_contradicts_itself(path: Path) -> None:
    cell = read_cell(path)
    check_cell_options(cell)
    assert lines(contradictions.of_cell(cell)) == []
    assert lines(contradictions.of_scene(cell, fixture())) == []


def test_the_droid_cell_has_pictures_as_the_policies_of_droid_were_trained_on() -> None:
    cell = read_cell(ROOT / "hw_configs" / "fr3_droid_cell.toml")
    assert len(cards()) == 3 and all(card.image.aspect == (16, 9) for card in cards().values())
    assert lines(contradictions.of_cards(cell, cards())) == []


@pytest.mark.parametrize("kind", WRONG)
def test_what_does_not_go_together_is_one_line_with_keys_numbers_and_remedy(kind: str) -> None:
    name, old, new, said = WRONG[kind]
    found = lines(contradictions.of_cell(changed(name, old, new)))
    assert [bool(re.match(said, line)) for line in found].count(True) == 1, found
    assert not any("\n" in line for line in found)


def test_a_camera_that_two_tables_name_is_named() -> None:
    """As in a table that was copied and given another name alone."""
    text = (ROOT / "hw_configs" / "fr3_droid_cell.toml").read_text()
    first, last = text.index("[[camera]]"), text.index("[[camera]]", text.index("[[camera]]") + 1)
    copied = text[first:last].replace('"over_shoulder"', '"front"')
    found = lines(contradictions.of_cell(parse_cell(text[:last] + copied + text[last:], "c.toml")))
    assert found == [
        "devices: serial = 000000000000 of camera over_shoulder and of camera front: only one of them can have it -> "
        "the other's own serial in one of them"
    ]


@pytest.mark.parametrize(
    ("driver", "first", "second", "named", "of"),
    [
        ("scale_serial", "/dev/ttyUSB3", "/dev/ttyUSB3", "/dev/ttyUSB3", "sensor a"),
        ("scale_serial", "/dev/ttyUSB3", "/dev/ttyUSB0", "/dev/ttyUSB0", "robot"),
        ("lines", "/dev/ttyUSB3", "/dev/ttyUSB3", "/dev/ttyUSB3", "sensor a"),
        ("lines", "socket://lab-box:4001", "socket://Lab-Box:4001/?logging=debug", "socket://lab-box:4001", "sensor a"),
    ],
)
def test_a_port_of_two_sensors_or_of_a_sensor_and_the_gripper_is_named(
    driver: str, first: str, second: str, named: str, of: str
) -> None:
    """Two who read one line each have half of what it says."""
    more = 'columns = ["x"]\nunits = ["kg"]\n' if driver == "lines" else ""
    text = (ROOT / "hw_configs" / "fr3_droid_cell.toml").read_text()
    for name, port in (("a", first), ("b", second)):
        text += f'\n[[sensor]]\nname = "{name}"\ndriver = "{driver}"\nrate_hz = 10.0\nrequired = false\n'
        text += f'[sensor.options]\nport = "{port}"\n{more}'
    assert lines(contradictions.of_cell(parse_cell(text, "c.toml"))) == [
        f"devices: port = {named} of {of} and of sensor b: only one of them can have it -> "
        "the other's own port in one of them"
    ]


def test_a_leader_whose_elbow_would_not_be_followed_is_named() -> None:
    """On the emulator its elbow led the robot 0.15 rad off in two seconds, and a stop followed."""
    text = (ROOT / "hw_configs" / "emulated_fr3.toml").read_text().replace("[lease]", f"{LEADER}[lease]")
    led = parse_cell(text.replace('servo = "velocity"', 'servo = "cartesian"'), "emulated_fr3.toml")
    (line,) = lines(contradictions.of_cell(led))
    assert 'servo = "cartesian" and teleop.device = "gello"' in line and line.endswith('-> servo = "velocity"')
    assert not contradictions.of_cell(parse_cell(text, "emulated_fr3.toml"))


def test_a_box_above_the_middle_of_the_flattest_item_is_named() -> None:
    """The shipped FR3 cell of before: a floor of 20 mm over scissors of 10 mm."""
    (line,) = lines(contradictions.of_scene(changed("fr3_droid_cell", "-0.45, 0.003]", "-0.45, 0.02]"), fixture()))
    assert "box_min_m z = 0.02 m and item_size_m of 'scissors'" in line
    assert "stay 21 mm above" in line and "10 mm high" in line and "z = 0.004 or less" in line


def test_a_tote_outside_of_the_box_is_named() -> None:
    (line,) = lines(contradictions.of_scene(changed("fr3_droid_cell", "[0.25, -0.45,", "[0.25, -0.30,"), fixture()))
    assert "tote 'right', y = -0.39 to -0.09 m" in line and "y = -0.3 to 0.45 m" in line


@pytest.mark.parametrize(("centre", "size", "edge"), [(0.1, 0.4, 0.3), (0.1, 0.4, -0.1)])
def test_a_tote_that_ends_where_the_box_does_is_not_named(centre: float, size: float, edge: float) -> None:
    """0.1 + 0.4 / 2 is more than 0.3 by the last bit: "box y = -0.1 to 0.3 m and tote 'left', y = -0.1 to 0.3 m"."""
    cell, of = read_cell(ROOT / "hw_configs" / "sim_fr3.toml"), fixture()
    limits, tote = cell.robot.limits, of.tote[0]
    low, high = [*limits.box_min_m], [*limits.box_max_m]
    (high if edge > 0 else low)[1] = edge
    box = limits.model_copy(update={"box_min_m": tuple(low), "box_max_m": tuple(high)})
    cell = cell.model_copy(update={"robot": cell.robot.model_copy(update={"limits": box})})
    x, _, z = tote.centre_m
    placed = tote.model_copy(update={"centre_m": (x, centre, z), "size_m": (tote.size_m[0], size, tote.size_m[2])})
    assert lines(contradictions.of_scene(cell, of.model_copy(update={"tote": (placed,)}))) == []


@pytest.mark.parametrize("name", ["sim_rail", "sim_base"])
def test_a_tote_outside_of_the_box_is_not_named_where_a_rail_or_a_base_brings_the_arm_to_it(name: str) -> None:
    """The box is the carriage's: `labctl doctor --protocol` told a lab with a rail of two metres to widen it."""
    cell = changed(name, "box_min_m = [0.15, -0.60,", "box_min_m = [0.15, -0.30,")
    assert lines(contradictions.of_scene(cell, fixture())) == []


def test_a_tote_that_the_rail_does_not_bring_near_is_named_with_what_the_rail_adds() -> None:
    cell = changed("sim_rail", "box_min_m = [0.15, -0.60,", "box_min_m = [0.15, -0.30,")
    (rail, cup) = cell.robot.axis
    near = cell.robot.model_copy(update={"axis": [rail.model_copy(update={"lower": -0.05}), cup]})
    (line,) = lines(contradictions.of_scene(cell.model_copy(update={"robot": near}), fixture()))
    assert "box y = -0.3 to 0.6 m, -0.05 to 0.4 m more by its rail, and tote 'right', y = -0.39 to -0.09 m" in line


def test_pictures_of_another_shape_than_a_policy_was_trained_on_are_named() -> None:
    cell = changed("fr3_droid_cell", "height = 360", "height = 480")
    found = lines(contradictions.of_cards(cell, {"pi": cards()["pi05_droid"]}))
    assert len(found) == 2  # both cameras
    assert "camera over_shoulder: width = 640, height = 480, and the card of arm pi: image.aspect = [16, 9]" in found[0]
    assert "-> width = 640 and height = 360" in found[0]
    assert not contradictions.of_cards(cell, {"pi": cards()["pi05_droid"].model_copy(update={"image": Image()})})


def test_a_picture_that_is_too_old_before_the_next_one_comes_is_named() -> None:
    """At 2 Hz and 0.3 s the robot stood in a part of each period: 89 questions where 10 Hz had 109."""
    cell = changed("fr3_droid_cell", "rate_hz = 30.0", "rate_hz = 2.0")
    found = lines(contradictions.of_cards(cell, {"pi": cards()["pi05_droid"]}))
    assert len(found) == 2  # both cameras
    said = (
        "camera over_shoulder: latency_s = 0, rate_hz = 2, and the card of arm pi: image.max_age_s = 0.3; its newest "
    )
    assert found[0].startswith(f"pictures: {said}picture may be 0.5 s old, and the robot stands")
    assert found[0].endswith("-> a higher rate_hz, or max_age_s = 0.5 or more")


@pytest.mark.parametrize(
    ("clock", "rate_hz", "execute", "warned"),
    [
        ("monotonic", 50.0, 1, True),
        ("manual", 50.0, 1, False),
        ("monotonic", 50.0, 2, False),
        ("monotonic", 10.0, 1, False),
    ],
)
def test_a_rate_that_asking_anew_leaves_no_time_for_is_named(
    clock: str, rate_hz: float, execute: int, warned: bool
) -> None:
    """One of 50 Hz with one action from each answer was followed at 24 Hz, without a word; now at 40."""
    cell = cell_changed(cell_named("sim_fr3"), {"cell": {"clock": clock}})
    card = parse_card(card_toml(rate=rate_hz, execute=execute), "c.toml")
    found = lines(contradictions.of_cards(cell, {"mine": card}))
    assert len(found) == warned, found
    said = "last 20 ms, and asking anew takes some 4 more, and the policy's own time: it is followed at some 42 Hz"
    assert not warned or said in found[0]


@pytest.mark.parametrize(("key", "side", "whose"), [("robot", 0, "left"), ("second_robot", 1, "right")])
def test_of_two_robots_with_totes_of_their_own_the_box_of_each_is_looked_at(key: str, side: int, whose: str) -> None:
    """The second's was not, and its arm stopped short of every item."""
    text = (ROOT / "hw_configs" / "sim_pair.toml").read_text()
    before, box, after = text.partition("box_max_m = [0.80, 0.60, 0.80]")
    second, again, end = after.partition(box)
    small = "box_max_m = [0.80, 0.05, 0.80]"
    changed = [before, small if side == 0 else box, second, small if side == 1 else again, end]
    (line,) = lines(contradictions.of_scene(parse_cell("".join(changed), "c.toml"), fixture()))
    assert line.startswith(f"{whose}: box: {key}.limits box y = -0.6 to 0.05 m and tote 'left', y = "), line


def test_doctor_says_it_as_a_warning(tmp_path: Path) -> None:
    name, old, new, _ = WRONG["home speed"]
    path = tmp_path / "c.toml"
    text = (ROOT / "hw_configs" / f"{name}.toml").read_text()
    path.write_text(text.replace(old, new))
    (check,) = doctor.contradicting(contradictions.of_cell(read_cell(path)))
    assert (check.name, check.level) == ("speeds", "warn") and check.remedy
