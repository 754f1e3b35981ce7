"""A card that leaves a policy's meaning open is refused, at its line, in words that say what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.policies.cards import CAMERA, card, card_toml

from labctl.config import policy_card
from labctl.config.policy_card import Card, parse_card
from labctl.drivers import BY_NAME
from labctl.drivers.policy import actions
from labctl.errors import InputError
from labctl.store.lab_folder import read_plan

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "protocols" / "cards").glob("*.toml"))
WRIST, WRIST_INPUT = 'camera = "wrist"', '[[input]]\nkey = "observation/wrist'
JOINTS, TWICE = 'state = ["joint_position"]', 'key = "observation/joint_position" #'
DROID = (ROOT / "protocols" / "cards" / "pi05_droid.toml").read_text()


def refused(text: str, at: str) -> str:
    """The refusal of a card, after asserting that it names the first line that holds `at`."""
    with pytest.raises(InputError) as caught:
        parse_card(text, "card.toml")
    message = str(caught.value)
    line = text[: text.index(at)].count("\n") + 1
    assert message.startswith(f"card.toml:{line}: ") and "\n" not in message, message
    return message


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_card_is_a_card(path: Path):
    assert parse_card(path.read_text(), path.name).policy.name


def test_there_is_an_example_for_every_dialect():
    shipped = {name.removeprefix("policy_") for name in BY_NAME if name.startswith("policy_")}
    assert {parse_card(path.read_text(), path.name).policy.dialect for path in EXAMPLES} == shipped


def test_the_words_of_cards_are_the_ones_the_table_of_meanings_knows():
    assert tuple(actions.ROTATION_WIDTH) == policy_card.ROTATIONS


@pytest.mark.parametrize("space", ["unknown", "velocity", "joint-velocity", "droid"])
def test_an_action_space_that_is_not_known_is_never_guessed(space: str):
    text = DROID.replace('"droid_joint_velocity"', f'"{space}"')
    message = refused(text, "space =")
    assert "a policy whose action space is not known is never run" in message
    assert all(known in message for known in policy_card.SPACES)


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("rate_hz = 15.0", "rate_hz = 10.0", "rate_hz", "units per step of 15 Hz"),
        ("execute = 8", "execute = 16", "execute", "more than the 15"),
        ('late = "hold"', 'late = "ignore"', "late", "'hold' or 'end'"),
        ("give_up_s = 10.0", "give_up_s = 0.5", "give_up_s", "before the deadline"),
        ('binarise_at = 0.5', 'binarise = 0.5', "binarise", "did you mean 'binarise_at'"),
        ('action = "0_open_1_closed"', 'action = "closed"', 'action = "closed"', "known: 0_open_1_closed"),
        ("open_m = 0.085", "open_m = 0.085\nclosed_m = 0.1", "closed_m", "not below open_m"),
        ('resize = "pad" ', "# ", "[[input]]", "say how pictures are resized"),
        ("width = 224\n", "", "[[input]]", "pad needs a width and a height"),
        ('resize = "pad" ', 'resize = "none" ', "[[input]]", "resize is none"),
        (WRIST, "", WRIST_INPUT, "needs one source"),
        (WRIST, WRIST + '\nprompt = true', WRIST_INPUT, "camera and prompt"),
        ('key = "prompt"', TWICE, TWICE, "given twice"),
        (JOINTS, 'state = ["joints"]', 'state = ["joints"]', "known: joint_position"),
        (JOINTS, JOINTS + '\nsteps = [-1, 0]', '[[input]]\nkey = "observation/joint', "no picture"),
        (WRIST, WRIST + '\nsteps = [0, -15]', "steps", "count up to now"),
        ("horizon = 15", 'rotation = "rotvec"', "rotation", "drop it"),
        ("horizon = 15", 'relative_to = "measured"', "relative_to", "drop it"),
        ("horizon = 15", "scale = [1.0]", "[action]", "says how it is clipped"),
        ("warm_calls = 2", 'starts = "capture"', "starts", "measured at each step"),
        ("warm_calls = 2", "ask_ahead_s = 0.2", "ask_ahead_s", 'needs starts = "capture"'),
        ("ready_s = 180.0", 'gpu = "0"', "[server]", "a server that `start` starts"),
        ('dialect = "openpi"', 'dialect = "Open-Pi"', "dialect", "Open-Pi"),
        ('dialect = "openpi"', 'dialect = "roboarena"', "execute", "followed to its end"),
        ('dialect = "openpi"', 'dialect = "gr00t"', 'key = "observation/exterior', "begin with video."),
    ],
    ids=lambda value: value.replace("\n", " ")[:34],
)  # fmt: skip
def test_what_is_wrong_is_refused_at_its_line(old: str, new: str, at: str, says: str):
    assert old in DROID
    text = DROID.replace(old, new, 1)
    whole = text
    if at in ("[[input]]", "execute", "[action]", "[server]", "binarise", "late", "rotation", "relative_to"):
        at = next(line for line in text.splitlines() if line.startswith(at))
    assert says in refused(whole, at)


@pytest.mark.parametrize(
    ("action", "at", "says"),
    [
        (
            "0_open_1_closed",
            "127.0",
            "is 127, and by 0_open_1_closed open is 0 and closed 1; give one between",
        ),
        ("0_open_1_closed", "1.0", "open is 0 and closed 1"),
        ("1_open_0_closed", "0.0", "open is 1 and closed 0"),
        ("-1_open_1_closed", "5.0", "open is -1 and closed 1"),
        ("width_m", "0.5", "by width_m open is 0.085 and closed 0;"),
    ],
)
def test_a_hand_that_would_never_move_is_refused_in_a_new_card_and_read_in_a_sealed_one(
    action: str, at: str, says: str
):
    text = DROID.replace('action = "0_open_1_closed"', f'action = "{action}"')
    text = text.replace("binarise_at = 0.5", f"binarise_at = {at}")
    assert says in refused(text, "binarise_at")
    assert parse_card(text, "card.toml", frozen=True).fingers.binarise_at == float(at)


def test_a_hand_closes_by_whatever_lies_between_open_and_closed():
    for action, at in (("0_open_255_closed", "127.0"), ("1_open_-1_closed", "0.0"), ("width_m", "0.04")):
        text = DROID.replace('action = "0_open_1_closed"', f'action = "{action}"')
        text = text.replace("binarise_at = 0.5", f"binarise_at = {at}")
        assert parse_card(text, "card.toml").fingers.action == action


def test_a_delta_has_to_say_from_what_and_a_pose_how_it_is_turned():
    delta = card_toml().replace('"joint_position"\nexecute', '"joint_delta"\nexecute')
    assert "say from what" in refused(delta, "[action]")
    pose = card_toml().replace('"joint_position"\nexecute', '"tcp_pose"\nexecute')
    assert "quaternion_xyzw, quaternion_wxyz, euler_xyz" in refused(pose, "[action]")


def test_a_shifted_tool_is_refused_where_velocities_would_be_those_of_another_point():
    text = card_toml().replace('"joint_position"\nexecute', '"tcp_velocity"\nexecute') + '[tool]\nframe = "tcp"\n'
    assert parse_card(text, "card.toml").action.space == "tcp_velocity"
    assert "moves otherwise" in refused(text + "shift_m = [0.0, 0.0, 0.1]\n", "shift_m")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("shift_m = [0.0, 0.0, 163.0]", "shift_m is [0.0, 0.0, 163.0], and no tool is longer than 1 m; give it in m"),
        ("turn_xyzw = [0.0, 0.0, 0.0, 0.0]", "of length 0, and a quaternion's is 1; [0.0, 0.0, 0.0, 1.0] turns"),
        ("turn_xyzw = [0.0, 0.0, 1.0, 1.0]", "of length 1.41"),
    ],
)
def test_a_tool_in_millimetres_or_turned_by_no_turn_is_refused_in_a_new_card_and_read_in_a_sealed_one(
    line: str, says: str
):
    """Its policy was told of a hand 163 m away; a turn of 0 was refused while it was asked, as one of its answer."""
    text = card_toml() + f'[tool]\nframe = "flange"\n{line}\n'
    assert says in refused(text, line)
    assert parse_card(text, "card.toml", frozen=True).tool.frame == "flange"


@pytest.mark.parametrize("line", ["shift_m = [0.0, 0.1, -1.0]", "turn_xyzw = [0.71, 0.0, 0.0, 0.71]"])
def test_a_long_tool_and_a_turn_of_two_digits_are_taken(line: str):
    assert parse_card(card_toml() + f'[tool]\nframe = "flange"\n{line}\n', "card.toml").tool.frame == "flange"


def test_a_scale_of_nothing_but_0_is_refused_in_a_new_card_and_read_in_a_sealed_one():
    text = card_toml(action="scale = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]")
    assert "no action moves the arm" in refused(text, "scale =")
    assert parse_card(text, "card.toml", frozen=True).action.scale == (0.0,) * 7
    assert parse_card(text.replace("[0.0,", "[1.0,"), "card.toml").action.scale


FRAMES = 'say frame = "tcp" (the cell\'s tool centre point) or "flange" (panda_link8 of DROID\'s robots) in [tool]'


@pytest.mark.parametrize("state", [name for name in policy_card.STATES if name.startswith("tcp_")])
def test_a_card_that_reads_where_the_tool_is_has_to_name_the_frame(state: str):
    text = card_toml().replace('state = ["joint_position"]', f'state = ["gripper", "{state}"]')
    assert f"{state} of which frame? {FRAMES}" in refused(text, 'state = ["gripper"')
    for frame in ("tcp", "flange"):
        assert parse_card(f'{text}[tool]\nframe = "{frame}"\n', "card.toml").tool.frame == frame
    assert "'tcp' or 'flange'" in refused(text + '[tool]\nframe = "hand"\n', 'frame = "hand"')


@pytest.mark.parametrize("space", [space for space in policy_card.SPACES if space.startswith(("tcp", "droid_c"))])
def test_a_card_that_moves_the_tool_has_to_name_the_frame(space: str):
    words = {"tcp_pose": 'rotation = "rotvec"', "tcp_delta": 'rotation = "rotvec"\nrelative_to = "measured"'}
    text = card_toml(rate=15.0, action=words.get(space, ""))
    text = text.replace('space = "joint_position"', f'space = "{space}"')
    assert f"{space} of which frame? {FRAMES}" in refused(text, "space =")
    assert parse_card(text + '[tool]\nframe = "flange"\n', "card.toml").tool.frame == "flange"


def test_a_card_of_joints_needs_no_frame_and_a_frozen_one_is_read_as_it_was():
    assert parse_card(card_toml(), "card.toml").tool.frame is None
    old = card_toml(action='rotation = "rotvec"').replace('space = "joint_position"', 'space = "tcp_pose"')
    assert parse_card(old, "card.toml", frozen=True).tool.frame is None


@pytest.mark.parametrize(("base", "first", "fits"), [(1, 1, True), (0, 0, True), (1, 0, False), (0, 1, False)])
def test_exterior_cameras_are_numbered_from_the_base_the_card_states(base: int, first: int, fits: bool):
    inputs = "".join(
        CAMERA.format(key=f"observation/exterior_image_{first + i}_left", camera=f"c{i}") for i in range(2)
    )
    text = card_toml("roboarena", inputs=inputs) + f"[roboarena]\ncamera_index_base = {base}\n"
    if fits:
        assert parse_card(text, "card.toml").roboarena.camera_index_base == base
    else:
        assert f"with camera_index_base = {base} the first is {base}" in refused(text, 'key = "observation/ext')


def test_the_cameras_of_a_card_come_once_each():
    inputs = "".join(CAMERA.format(key=key, camera="wrist") for key in ("a", "b"))
    for given, cameras in ((card(inputs=inputs), ("wrist",)), (card(), ())):
        found = Card.among({"card": given})
        assert found is not None and found.cameras == cameras
    assert Card.among({}) is None


PROTOCOL = """
[protocol]
name = "p"
question = "q"
fixture = "two_totes.toml"
[trial]
items_staged = 1
budget_s_per_item = 10.0
arming_s = 6.0
instruction = "Move."
[design]
objects = ["towels"]
layouts = ["layout-1"]
blocks_per_condition = 1
[analysis]
tau_s = 10.0
[[arm]]
name = "a"
kind = "policy"
controller = "sim_policy"
[[arm]]
name = "b"
kind = "policy"
controller = "policy_openpi"
[arm.options]
card = "cards/b.toml"
endpoint = "ws://127.0.0.1:1"
"""


def lab(tmp_path: Path, protocol: str = PROTOCOL, text: str | None = None) -> Path:
    (tmp_path / "cards").mkdir()
    (tmp_path / "two_totes.toml").write_bytes((ROOT / "fixtures/two_totes.toml").read_bytes())
    (tmp_path / "cards/b.toml").write_text(card_toml() if text is None else text)
    (tmp_path / "p.toml").write_text(protocol)
    return tmp_path / "p.toml"


def test_a_plan_holds_the_cards_it_names_as_they_are_written(tmp_path: Path):
    assert read_plan(lab(tmp_path)).cards == {"cards/b.toml": card_toml()}


def line_of(path: Path, at: str) -> str:
    text = path.read_text()
    return f"{path}:{text[: text.index(at)].count(chr(10)) + 1}: "


def test_what_a_card_says_wrong_is_named_with_the_cards_own_line(tmp_path: Path):
    path = lab(tmp_path, text=card_toml().replace('space = "joint_position"', 'space = "unknown"'))
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(line_of(tmp_path / "cards/b.toml", "space ="))


@pytest.mark.parametrize(
    ("old", "new", "at", "says"),
    [
        ("cards/b.toml", "cards/c.toml", "card =", "is no file; "),
        ('card = "cards/b.toml"', "card = 3", "card =", "name a file"),
        ('card = "cards/b.toml"', "", 'controller = "policy_openpi"', "needs a policy card"),
        ("policy_openpi", "policy_gr00t", "card =", "speaks gr00t, its card says 'openpi'; use policy_openpi"),
    ],
)
def test_a_protocol_that_names_no_fitting_card_is_refused_at_its_line(
    tmp_path: Path, old: str, new: str, at: str, says: str
):
    path = lab(tmp_path, PROTOCOL.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(line_of(path, at)) and says in str(caught.value)


CARD_OF_AXES = """
[policy]
name = "rail"
dialect = "callable"
[[input]]
key = "state"
state = ["axes"]
[timing]
rate_hz = 20.0
deadline_s = 2.0
late = "hold"
[action]
execute = 1
space = "axes"
[[action.axis]]
name = "rail"
unit = "m"
"""


def test_a_card_of_named_axes_needs_no_gripper_and_any_other_does() -> None:
    """Each axis has its unit there; what opens and closes is one of them."""
    assert parse_card(CARD_OF_AXES, "card.toml").gripper is None
    reads = CARD_OF_AXES.replace('"axes"]', '"gripper"]')
    for text, why in (
        (reads, "the state gripper is read"),
        (CARD_OF_AXES.replace('space = "axes"', 'space = "joint_position"').partition("[[action.axis]]")[0], "joint"),
    ):
        with pytest.raises(InputError, match=r"\[gripper\] is missing") as caught:
            parse_card(text, "card.toml")
        assert why in str(caught.value) and "\n" not in str(caught.value)
