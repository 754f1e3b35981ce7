"""What pictures cost, drawn, encoded, thinned out: python -m pytest -m benchmark -s tests/benchmarks/bench_camera.py"""

from types import SimpleNamespace

import numpy as np
import pytest

from labctl.bus import encode
from labctl.checks.encoding_cost import scene
from labctl.clock import SECOND, cpu_ns
from labctl.config.cell_schema import Video
from labctl.devices import Frame, load
from labctl.drivers.common import kinematics, robot_tables
from labctl.nodes.preview import Preview
from labctl.nodes.video_recorder import Terms, VideoRecorder
from labctl.runtime.hosting.simulated_host import finish_work
from labctl.store.video import VideoWriter
from labctl.testing.given import SIMULATED

FRAMES = 300

pytestmark = pytest.mark.benchmark


def observations() -> list[dict[str, np.ndarray]]:
    """An arm that swings from tote to tote over four towels."""
    y = 0.24 * np.cos(np.linspace(0.0, 6.28, FRAMES))
    wanted = np.column_stack([np.full(FRAMES, 0.46), y, np.full(FRAMES, 0.2), np.ones(FRAMES), np.zeros((FRAMES, 3))])
    q = robot_tables.FR3.inverse(wanted, robot_tables.FR3.home)
    tcp = kinematics.poses(robot_tables.FR3.chain, q)
    items = np.array([[0.4 + 0.05 * i, 0.24, 0.015, 0.4 * i, 1, 0, 0, 0] for i in range(4)])
    thing = np.array([0.12, 0.10, 0.03, 0.025])
    return [
        {"q": q[i], "tcp": tcp[i], "gripper": np.array([0.04]), "items": items, "object": thing} for i in range(FRAMES)
    ]


@pytest.mark.parametrize("view", ["over_shoulder", "wrist"])
def test_print_the_cost_of_a_picture_and_its_encoding(view, tmp_path):
    camera = load("sim_camera", {"view": view}, **SIMULATED)
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


@pytest.mark.parametrize("size", [(640, 480), (1280, 720)])
def test_print_the_cost_of_a_preview(size):
    """Ten a second, each sent to one who looks on: a share of one core."""
    width, height = size
    preview = Preview("wrist", real_time=True)
    frames = [Frame(picture, 0, 0.0, number) for number, picture in enumerate(scene(width, height))]
    start, sent, bytes_ = cpu_ns(), 0, 0
    for number in range(FRAMES):
        for message in preview.of(frames[number % len(frames)], number * preview.every_ns):
            bytes_ += sum(len(part) for part in encode(message))
            sent += 1
    each_ms = (cpu_ns() - start) / sent / 1e6
    share, each_kb = each_ms * SECOND / preview.every_ns / 10, bytes_ / sent / 1e3
    print(f"\npreview of {width} x {height}: {each_ms:.3f} ms and {each_kb:.0f} kB each, {share:.2f} % of a core")


@pytest.mark.parametrize("preset", ["ultrafast", "veryfast"])
@pytest.mark.parametrize("size", [(640, 480), (1280, 720)])
def test_print_the_cost_of_a_film(size, preset, tmp_path):
    """What a camera process does with a frame beside getting it: queue, encode, index; and depth."""
    width, height = size
    frames = scene(width, height)
    noise = np.random.default_rng(0).normal(0, 4, (height, width))  # mm, as at some 1.5 m
    depth = (np.linspace(500, 2000, width)[None, :] + np.linspace(0, 300, height)[:, None] + noise).astype(np.uint16)
    for name, given in (("colour", None), ("colour and depth", depth)):
        camera = SimpleNamespace(width=width, height=height, rate_hz=30.0, kind="sim")
        video = Video(codec="libx264", preset=preset, crf=23, keyframe_s=1.0)
        film = VideoRecorder(
            Terms(tmp_path, "wrist", video, durable=False), name.replace(" ", "-"), camera, None, ["device"]
        )
        start = cpu_ns()
        for number in range(FRAMES):
            now_ns = number * SECOND // 30
            assert film.put(Frame(frames[number % len(frames)], now_ns, 0.0, number, given))
            for work in film.work(now_ns):
                film.take(finish_work(work)[0].body["result"])
        each_ms = (cpu_ns() - start) / FRAMES / 1e6
        film.close()
        for work in film.work(now_ns):
            film.take(finish_work(work)[0].body["result"])
        mb = sum(path.stat().st_size for path in (tmp_path / "video" / film.episode).iterdir()) / FRAMES * 1800 / 1e6
        cost = f"{each_ms:.2f} ms a frame, {3 * each_ms:.1f} % of a core, {mb:.1f} MB/min"
        print(f"\n{width} x {height} {preset}, {name}: {cost}")
