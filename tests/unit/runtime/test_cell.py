"""Nodes are built from a cell's text: what a camera is told, and that cameras are opened one after another."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.cameras import slow_camera
from support.robots.cells import FIXTURE, cell_named

import labctl.runtime.hosting.cell_nodes
from labctl.bus import Message
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import parse_cell
from labctl.runtime.hosting.cell_nodes import NodeSpec, build_node
from labctl.runtime.hosting.simulated_host import finish_work

ROOT = Path(__file__).parents[3]
CLOCK = MonotonicClock()


def spec(folder: Path) -> NodeSpec:
    """A cell of two slow cameras, as a child process gets it."""
    cell, slow = cell_named("sim_fr3"), "support.cameras.slow_camera:build"
    cameras = [camera.model_copy(update={"driver": slow, "options": {"serial": camera.name}}) for camera in cell.camera]
    locks = folder / "locks"
    locks.mkdir(exist_ok=True)
    cell = cell.model_copy(update={"camera": tuple(cameras)})
    return NodeSpec(cell=cell, fixture=FIXTURE, folder=folder, locks=locks)


def connection(name: str, folder: Path) -> threading.Thread:
    """A thread that connects a camera as its process does; what came of it is its `answer`."""
    node = build_node(name, spec(folder))
    (work,) = node.step(CLOCK.now_ns(), []).work

    def connect() -> None:
        thread.answer = finish_work(work)[0]

    thread: Any = threading.Thread(target=connect)
    return thread


@pytest.fixture(autouse=True)
def closed_doors() -> None:
    slow_camera.LOG.clear()
    slow_camera.INSIDE.clear()
    slow_camera.GO_ON.clear()


def test_cameras_are_opened_one_after_another(tmp_path: Path) -> None:
    first, second = (connection(f"camera:{name}", tmp_path) for name in ("wrist", "over_shoulder"))
    first.start()
    assert slow_camera.INSIDE.wait(60)
    second.start()
    CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 5)
    assert slow_camera.LOG == [("begins", "wrist")], "the other one waits"
    slow_camera.GO_ON.set()
    first.join()
    second.join()
    assert [(what, name) for name in ("wrist", "over_shoulder") for what in ("begins", "ends")] == slow_camera.LOG


def test_a_camera_that_is_opened_for_ever_is_named_to_the_others(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(labctl.runtime.hosting.cell_nodes, "TURN_NS", SECOND // 5)
    first, second = (connection(f"camera:{name}", tmp_path) for name in ("wrist", "over_shoulder"))
    first.start()
    assert slow_camera.INSIDE.wait(60)
    second.start()
    second.join()
    assert "the opening of cameras is in use by `camera:wrist`" in second.answer.body["error"]
    slow_camera.GO_ON.set()
    first.join()
    assert isinstance(first.answer, Message) and "error" not in first.answer.body


def test_a_camera_may_have_video_settings_of_its_own() -> None:
    text = (ROOT / "hw_configs/sim_fr3.toml").read_text()
    text = text.replace(
        '[camera.options]\nview = "wrist"', '[camera.video]\ncrf = 30\n[camera.options]\nview = "wrist"'
    )
    cell = parse_cell(text, "c.toml")
    found = {camera.name: cell.video_of(camera).model_dump() for camera in cell.camera}
    assert found["over_shoulder"] == {"codec": "libx264", "preset": "ultrafast", "crf": 23, "keyframe_s": 1.0}
    assert found["wrist"] == {**found["over_shoulder"], "crf": 30}
