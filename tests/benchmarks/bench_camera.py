"""What a simulated picture and its encoding cost: python -m pytest -m benchmark -s tests/benchmarks/bench_camera.py"""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from labctl.drivers.common import arms, kinematics

from labctl.clock import SECOND, cpu_ns
from labctl.devices import load
from labctl.video import VideoWriter

FIXTURE = tomllib.loads((Path(__file__).parents[2] / "fixtures" / "two_totes.toml").read_text())
FRAMES = 300

pytestmark = pytest.mark.benchmark


def observations() -> list[dict[str, np.ndarray]]:
    """An arm that swings from tote to tote over four towels."""
    y = 0.24 * np.cos(np.linspace(0.0, 6.28, FRAMES))
    wanted = np.column_stack([np.full(FRAMES, 0.46), y, np.full(FRAMES, 0.2), np.ones(FRAMES), np.zeros((FRAMES, 3))])
    q = arms.FR3.inverse(wanted, arms.FR3.home)
    tcp = kinematics.poses(arms.FR3.chain, q)
    items = np.array([[0.4 + 0.05 * i, 0.24, 0.015, 0.4 * i, 1, 0, 0, 0] for i in range(4)])
    thing = np.array([0.12, 0.10, 0.03, 0.025])
    return [
        {"q": q[i], "tcp": tcp[i], "gripper": np.array([0.04]), "items": items, "object": thing} for i in range(FRAMES)
    ]


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_print_the_cost_of_a_picture_and_its_encoding(view, tmp_path):
    camera = load("sim_camera", {"view": view}, cell={}, fixture=FIXTURE)
    camera.connect(0)
    writer = VideoWriter(tmp_path / "v.mp4", camera.width, camera.height)
    drawn = encoded = 0
    for number, seen in enumerate(observations()):
        start = cpu_ns()
        camera.sense(seen)
        frame = camera.grab(number * SECOND)
        drawn += cpu_ns() - start
        start = cpu_ns()
        writer.write(frame.image, number * 100_000)
        encoded += cpu_ns() - start
    writer.close()
    size = (tmp_path / "v.mp4").stat().st_size / FRAMES / 1e3
    draw_ms, encode_ms = drawn / FRAMES / 1e6, encoded / FRAMES / 1e6
    print(f"\n{view}: draw {draw_ms:.2f} ms, encode {encode_ms:.2f} ms, {size:.1f} kB a frame")
