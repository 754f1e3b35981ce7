"""Doctor says what encoding takes and what else would do: the slowest preset that the machine affords."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.checks.doctor import check_encoders
from labctl.checks.encoding_cost import MOST_CORES, SCENES, Cost, best_affordable, measure_cost, measure_depth, scene
from labctl.config.cell_schema import OwnVideo, Video, parse_cell
from labctl.errors import InputError

ROOT = Path(__file__).parents[3]
VIDEO = Video(codec="libx264", preset="veryfast", crf=23, keyframe_s=1.0)
# Shares of the fact sheet's shape: each preset costs half as much again as the one before.
PRICES = {"ultrafast": 0.08, "superfast": 0.10, "veryfast": 0.12, "faster": 0.2, "fast": 0.26, "medium": 0.30}


def machine(times: float = 1.0, tried: list[str] | None = None):
    """A machine on which everything costs so many times as much."""

    def measure(video, width, height, rate_hz):
        if tried is not None:
            tried.append(video.preset)
        if video.codec == "nonsense":
            raise InputError("this build of ffmpeg has no video encoder 'nonsense'; libx264 is the usual one")
        cores = times * PRICES[video.preset] * width * height / (640 * 480) * rate_hz / 30
        return Cost(cores, rate_hz / cores, 3.0)

    return measure


def cell(**changes: str):
    text = (ROOT / "hw_configs/sim_fr3.toml").read_text()
    text = text.replace("width = 320", "width = 640").replace("height = 240", "height = 480")
    text = text.replace("rate_hz = 10.0", "rate_hz = 30.0")
    for old, new in changes.items():
        text = text.replace(f'{old} = "', f'{old} = "{new}" # "')
    return parse_cell(text, "c.toml")


def test_a_real_encoder_has_a_price_and_makes_a_file():
    cost = measure_cost(VIDEO, 160, 120, 30.0)
    assert cost.cores > 0 and cost.most_hz > 0 and cost.mb_min > 0  # how dear is for the machine to say


def test_depth_has_a_price_of_its_own():
    cost = measure_depth(160, 120, 30.0)
    assert cost.cores > 0 and cost.most_hz > 0 and cost.mb_min > 0  # how dear is for the machine to say


def test_depth_is_priced_where_it_is_recorded_and_nowhere_else():
    """A RealSense gives depth unless its table forbids it; a camera of somebody else when its table sets it."""
    made = cell()
    over, wrist = made.camera
    cameras = [
        over.model_copy(update={"driver": "realsense", "options": {}}),
        wrist.model_copy(update={"driver": "support.cameras.coded_camera:build", "options": {"depth": True}}),
        wrist.model_copy(update={"name": "third", "driver": "realsense", "options": {"depth": False}}),
    ]
    made = made.model_copy(update={"camera": tuple(cameras)})

    def dear(times):
        return lambda width, height, rate_hz: Cost(times * 0.2, rate_hz / (times * 0.2), 223.0)

    found = [check for check in check_encoders(made, machine(), dear(1)) if check.name.startswith("depth")]
    assert [check.name for check in found] == ["depth over_shoulder", "depth wrist"]
    assert {check.level for check in found} == {"ok"} and "0.20 cores" in found[0].text and "640 x 480" in found[0].text
    dearer = next(check for check in check_encoders(made, machine(), dear(2)) if check.name == "depth wrist")
    assert dearer.level == "warn" and "depth = false" in dearer.remedy


def test_a_larger_picture_costs_more():
    small, large = (measure_cost(VIDEO, width, width * 3 // 4, 30.0) for width in (160, 640))
    assert large.cores > 2 * small.cores


def test_the_made_up_scene_is_always_the_same_and_moves():
    one, other = scene(160, 120), scene(160, 120)
    assert len(one) == SCENES and all((a == b).all() for a, b in zip(one, other, strict=True))
    assert (one[0] != one[1]).mean() > 0.5


def test_the_slowest_preset_that_fits_is_the_best_and_dearer_ones_are_not_tried_further():
    tried: list[str] = []
    best = best_affordable(VIDEO, 640, 480, 30.0, machine(tried=tried))
    assert best is not None and best[0] == VIDEO.model_copy(update={"preset": "faster"})
    assert tried == ["ultrafast", "superfast", "veryfast", "faster", "fast"]


def test_a_machine_that_affords_nothing_and_a_codec_without_presets_have_no_best():
    assert best_affordable(VIDEO, 640, 480, 30.0, machine(10)) is None
    assert best_affordable(VIDEO.model_copy(update={"codec": "mjpeg"}), 640, 480, 30.0, machine()) is None


@pytest.mark.parametrize(("cores", "most_hz", "fits"), [(0.25, 60, True), (0.26, 60, False), (0.1, 59, False)])
def test_affordable_at_its_limits(cores, most_hz, fits):
    assert Cost(cores, most_hz, 1.0).affordable(30.0) is fits and MOST_CORES == 0.25


def test_doctor_says_what_it_costs_and_what_better_would_fit():
    checks = check_encoders(cell(), machine())
    assert [(check.name, check.level) for check in checks] == [("video over_shoulder", "ok"), ("video wrist", "ok")]
    assert checks[0].text.startswith("libx264 ultrafast crf 23 at 640 x 480, 30 Hz: 0.08 cores, 375 frames/s at most")
    assert 'preset = "faster" would be affordable too' in checks[0].text


def test_doctor_warns_of_what_two_cameras_cannot_afford_and_names_what_they_can():
    check = check_encoders(cell(preset="medium"), machine())[0]
    assert check.level == "warn" and 'preset = "faster" in [video]: 0.20 cores' in check.remedy
    assert check_encoders(cell(), machine(0.9))[0].level == "ok"
    check = check_encoders(cell(), machine(4))[0]
    assert check.level == "warn" and "lower rate_hz" in check.remedy


def test_the_preset_to_change_is_named_in_the_table_where_it_stands():
    """`preset = … in [video]` was said of a camera with one of its own: doing so changed nothing."""
    made = cell(preset="medium")
    shoulder, wrist = made.camera
    wrist = wrist.model_copy(update={"video": OwnVideo(preset="medium")})
    shared, own = check_encoders(made.model_copy(update={"camera": (shoulder, wrist)}), machine())
    assert 'preset = "faster" in [video]: ' in shared.remedy
    assert 'preset = "faster" in [camera.video] of wrist: ' in own.remedy


def test_an_encoder_that_is_not_there_fails():
    check = check_encoders(cell(codec="nonsense"), machine())[0]
    assert check.level == "fail" and "no video encoder 'nonsense'" in check.text
