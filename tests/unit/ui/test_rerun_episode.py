"""An .rrd holds what was measured, at its measured time."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labctl.core.timeline import Mark
from labctl.errors import MissingExtra, StorageError
from labctl.store.video import VideoWriter
from labctl.ui.rerun.episode import save_episode, save_side_by_side
from labctl.ui.rerun.episode_view import (
    STAGES,
    EpisodeView,
    Second,
    Stream,
    Video,
    asked,
    hand_curves,
    hand_of,
    joint_curves,
    short_names,
)
from labctl.ui.rerun.robots import robots_of

pytest.importorskip("rerun")

GO = 7_000_000_000_000
JOINTS = tuple(f"fr3_joint{i}" for i in range(1, 8))
N = 50


def cli() -> Path:
    """The Rerun binary itself: its Python wrapper would leave an orphan behind."""
    import rerun_cli

    return Path(rerun_cli.__file__).parent / "rerun"


@pytest.fixture(autouse=True)
def strict():
    """What the SDK would only warn of is an error here."""
    import rerun as rr

    rr.set_strict_mode(True)
    yield
    rr.set_strict_mode(False)


def batches(path: Path):
    """(entity, record batch) of everything in a recording."""
    from rerun.chunk import RrdReader

    return [(chunk.entity_path, chunk.to_record_batch()) for chunk in RrdReader(path).stream()]


def contents(path: Path) -> str:
    """Every entity, component and value of a recording, in words."""
    return "\n".join(f"{entity} {batch.to_pydict()}" for entity, batch in batches(path))


def times(path: Path, timeline: str = "since_go") -> dict[str, list[int]]:
    """When each entity says something, ns, in order."""
    found: dict[str, list[int]] = {}
    for entity, batch in batches(path):
        if timeline in batch.schema.names:
            found.setdefault(entity, []).extend(batch.column(timeline).cast("int64").to_pylist())
    return {entity: sorted(values) for entity, values in found.items()}


@pytest.fixture
def episode(tmp_path) -> EpisodeView:
    t_ns = GO + np.arange(N) * 10_000_000
    poses = tuple(f"tcp.{axis}" for axis in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    ramp = np.linspace(0.0, 0.05, N)[:, None].repeat(15, axis=1)
    moving = np.concatenate([ramp, ramp[:, :7] + 1.0], axis=1)
    state = Stream((*(f"q.{name}" for name in JOINTS), *poses, "gripper", *(f"dq.{n}" for n in JOINTS)), t_ns, moving)
    columns = tuple(f"{stage}.{part}" for stage in STAGES for part in (*JOINTS, "gripper"))
    action = Stream(columns, t_ns, np.full((N, 24), 0.5))
    asked = t_ns[:5]
    replies = np.stack([asked - 5_000_000, asked, asked + 80_000_000], axis=1)
    policy = Stream(("capture_ns", "request_ns", "reply_ns"), asked, replies)
    tracked = ("item", "x", "y", "z", "yaw", "in_target", "lost", "held")
    tracker = Stream(tracked, t_ns[:10].repeat(2), np.zeros((20, 8)))
    writer = VideoWriter(tmp_path / "wrist.mp4", 64, 48)
    pts_us = np.arange(5) * 100_000
    for pts in pts_us:
        writer.write(np.full((48, 64, 3), 90, dtype=np.uint8), int(pts))
    writer.close()
    return EpisodeView(
        title="e-7k2m4q",
        start_ns=GO,
        streams={"arm/state": state, "arm/action": action, "policy": policy, "tracker": tracker},
        videos={"wrist": Video(tmp_path / "wrist.mp4", GO + pts_us * 1000 + 333, pts_us)},
        events=[(GO, "INFO", "go"), (GO + 300_000_000, "WARN", "item lost")],
        wall=("2026-01-01T00:01:14.600000+00:00", 50_000_000),
        timelines={
            "phase": [Mark(GO - 500_000_000, "armed", "ready"), Mark(GO, "running", "go")],
            "operations": [Mark(GO, "1 moved 0.3 s", "good"), Mark(GO + 300_000_000, "")],
            "gaps arm/state": [Mark(GO + 100_000_000, "40 ms", "bad"), Mark(GO + 140_000_000, "")],
        },
        facts={"arm": "zebra-policy", "outcome": "success", "moved": 4, "duration_s": 12.5, "sealed": True},
        robot="fr3",
        totes={"left": ((0.48, 0.24, 0.0), (0.34, 0.30, 0.12), True)},
        item_size_m=(0.2, 0.03, 0.01),
        masked=False,
    )


def test_the_file_is_whole_by_reruns_own_check(episode, tmp_path):
    save_episode(tmp_path / "out" / "e.rrd", episode)
    done = subprocess.run(
        [cli(), "rrd", "verify", tmp_path / "out" / "e.rrd"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_everything_of_an_episode_is_in_it(episode, tmp_path):
    save_episode(tmp_path / "e.rrd", episode)
    text = contents(tmp_path / "e.rrd")
    world = [
        f"/world/{thing}" for thing in ("tcp", "path", "items", "totes/left", "fr3/visual_geometries/link6/visual_0")
    ]
    timelines = [f"/lanes/{timeline}" for timeline in ("1_phase", "2_operations", "3_gaps_arm_state")]
    for entity in ("/joints/q", "/joints/dq", "/gripper", "/cameras/wrist", "/policy", *world, *timelines):
        assert f"{entity} " in text
    assert "/joints/tau" not in text, "what was not recorded is not drawn"
    assert all(f"/actions/joint{n} " in text for n in range(1, 8)) and all(stage in text for stage in STAGES)
    assert "item lost" in text and "1 moved 0.3 s" in text


def test_an_episode_can_be_searched_by_its_facts(episode, tmp_path):
    save_episode(tmp_path / "e.rrd", episode)
    ((_, found),) = [pair for pair in batches(tmp_path / "e.rrd") if pair[0] == "/__properties/episode"]
    values = {
        name.split(":")[-1]: column.to_pylist()[0][0]
        for name, column in zip(found.schema.names, found.columns, strict=True)
        if name in episode.facts
    }
    assert values == dict(episode.facts)


def test_samples_and_frames_stand_at_their_measured_time(episode, tmp_path):
    save_episode(tmp_path / "e.rrd", episode)
    since, utc = times(tmp_path / "e.rrd"), times(tmp_path / "e.rrd", "utc")
    assert since["/world/tcp"] == [n * 20_000_000 for n in range(N // 2)], "the drawn robot moves at 50 Hz"
    assert since["/cameras/wrist"] == [n * 100_000_000 + 333 for n in range(5)]
    assert since["/lanes/1_phase"] == [-500_000_000, 0]
    zero_ns = np.datetime64("2026-01-01T00:01:14.550", "ns").astype(int)
    assert {entity: [t - zero_ns for t in found] for entity, found in utc.items()} == since


def test_every_sample_is_drawn_and_a_gap_breaks_the_line_without_adding_one(episode, tmp_path):
    save_episode(tmp_path / "e.rrd", episode)
    shown = times(tmp_path / "e.rrd")["/joints/q"]
    hole = [t for t in shown if t % 10_000_000]
    assert [t for t in shown if t not in hole] == [n * 10_000_000 for n in range(N)] and hole == [100_000_001]
    (broken,) = [
        b for entity, b in batches(tmp_path / "e.rrd") if entity == "/joints/q" and "since_go" in b.schema.names
    ]
    at = broken.column("since_go").cast("int64").to_pylist().index(100_000_001)
    assert np.isnan(broken.column("Scalars:scalars").to_pylist()[at]).all()


def test_a_question_that_got_no_answer_has_no_time_to_it(episode, tmp_path):
    """Its row says -1 where the answer's time stands."""
    policy = episode.streams["policy"]
    values = policy.values.copy()
    values[2, 2] = -1
    streams = {**episode.streams, "policy": dataclasses.replace(policy, values=values)}
    save_episode(tmp_path / "e.rrd", dataclasses.replace(episode, streams=streams))
    assert times(tmp_path / "e.rrd")["/policy"] == [n * 10_000_000 for n in (0, 1, 3, 4)]
    (drawn,) = [b for entity, b in batches(tmp_path / "e.rrd") if entity == "/policy" and "since_go" in b.schema.names]
    assert np.array(drawn.column("Scalars:scalars").to_pylist()).reshape(-1, 2) == pytest.approx(
        np.tile([85.0, 80.0], (4, 1))
    )


def test_a_line_of_each_of_two_robots_breaks_where_its_own_record_has_a_hole(tmp_path):
    t_ns = GO + np.arange(N) * 10_000_000

    def of(name: str) -> Stream:
        return Stream((f"q.{name}.j1", f"{name}.gripper"), t_ns, np.zeros((N, 2)))

    gaps = {
        "gaps arm/state": [Mark(GO + 100_000_000, "40 ms", "bad"), Mark(GO + 140_000_000, "")],
        "gaps right/state": [Mark(GO + 300_000_000, "40 ms", "bad"), Mark(GO + 340_000_000, "")],
    }
    streams = {"arm/state": of("left"), "right/state": of("right")}
    second = Second("right", "left", "fr3", (0.0, 0.0, 0.0), 0.0, own_scene=False)
    save_episode(tmp_path / "e.rrd", EpisodeView("e-1", GO, streams, timelines=gaps, second=second))
    found = times(tmp_path / "e.rrd")
    holes = {entity: [t for t in found[entity] if t % 10_000_000] for entity in ("/joints/q", "/right/joints/q")}
    assert holes == {"/joints/q": [100_000_001], "/right/joints/q": [300_000_001]}


def test_side_by_side_holds_both_on_one_timeline(episode, tmp_path):
    later = dataclasses.replace(episode, title="e-other", start_ns=GO + 100_000_000)
    save_side_by_side(tmp_path / "two.rrd", episode, later)
    found = times(tmp_path / "two.rrd")
    assert [t - 100_000_000 for t in found["/a/gripper"]] == found["/b/gripper"], "each counts from its own go"
    assert {entity[3:] for entity in found if entity[1] == "a"} == {entity[3:] for entity in found if entity[1] == "b"}
    text = contents(tmp_path / "two.rrd")
    assert "a/link0" in text and "b/link0" in text, "each arm has frames of its own"


def test_an_episode_of_an_unknown_arm_without_cameras_can_still_be_shown(episode, tmp_path):
    state = episode.streams["arm/state"]
    unknown = dataclasses.replace(state, columns=tuple(c.replace("fr3_joint", "axis") for c in state.columns))
    save_episode(tmp_path / "e.rrd", EpisodeView("e-1", GO, {"arm/state": unknown}))
    text = contents(tmp_path / "e.rrd")
    assert "/world/path " in text and "visual_geometries" not in text


@pytest.mark.parametrize(("robot", "drawn"), [("fr3", True), ("hand", True), ("their_robot:build", False)])
def test_a_robot_is_drawn_by_the_description_of_its_own_model_alone(episode, tmp_path, robot, drawn):
    save_episode(tmp_path / "e.rrd", dataclasses.replace(episode, robot=robot))
    assert ("visual_geometries" in contents(tmp_path / "e.rrd")) is drawn


def test_an_episode_without_samples_can_still_be_shown(tmp_path):
    save_episode(tmp_path / "e.rrd", EpisodeView("e-1", GO, {}, timelines={"phase": [Mark(GO, "armed", "ready")]}))
    assert "/lanes/1_phase " in contents(tmp_path / "e.rrd")


def test_a_missing_video_is_one_clear_line(episode, tmp_path):
    (tmp_path / "wrist.mp4").unlink()
    with pytest.raises(StorageError, match=r"wrist\.mp4 is missing"):
        save_episode(tmp_path / "e.rrd", episode)
    assert not (tmp_path / "e.rrd").exists()


def test_without_rerun_the_remedy_is_named(episode, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingExtra, match=r"labctl\[rerun\]"):
        save_episode(tmp_path / "e.rrd", episode)


def test_importing_the_module_does_not_import_rerun():
    code = "import sys, labctl.ui.rerun.episode; sys.exit('rerun' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("frame", "entity"), [("base", "/world/cameras/wrist"), ("tcp", "/world/tcp/wrist")])
def test_a_camera_that_says_where_it_stands_is_drawn_there(episode, tmp_path, frame, entity):
    """Its lens, its place and its video are one entity, in the cell or moving with the tool."""
    lens = {"width": 64, "height": 48, "fx": 60.0, "fy": 60.0, "cx": 31.5, "cy": 23.5}
    placed = {f"{frame}_from_camera": {"rotation": np.eye(3).tolist(), "translation_m": [0.1, 0.0, 0.5]}}
    video = dataclasses.replace(episode.videos["wrist"], about={"intrinsics": lens, "extrinsics": placed})
    save_episode(tmp_path / "e.rrd", dataclasses.replace(episode, videos={"wrist": video}))
    text = contents(tmp_path / "e.rrd")
    said = "\n".join(line for line in text.splitlines() if line.startswith(f"{entity} "))
    assert all(word in said for word in ("Pinhole:image_from_camera", "Transform3D:translation", "AssetVideo:blob"))
    assert "\n/cameras/wrist " not in text
    assert times(tmp_path / "e.rrd")[entity] == [n * 100_000_000 + 333 for n in range(5)]


@pytest.mark.parametrize("masked", [True, False])
def test_a_hand_that_is_no_gripper_is_drawn_masked_too(masked, tmp_path):
    """Its columns are public, but its names were taken from the actions, which a masked view has not."""
    t_ns = GO + np.arange(N) * 10_000_000
    state = ("q.a", "q.b", "tcp.x", "device_s", "suction", "thumb")
    sent = tuple(f"{stage}.{axis}" for stage in STAGES for axis in ("a", "b", "suction", "thumb"))
    streams = {"arm/state": Stream(state, t_ns, np.full((N, 6), 0.25))}
    if not masked:
        streams["arm/action"] = Stream((*sent, "delay_s"), t_ns, np.zeros((N, 13)))
    view = EpisodeView("e-1", GO, streams, masked=masked)
    assert hand_of(view) == ("suction", "thumb")
    save_episode(tmp_path / "e.rrd", view)
    assert "suction" in contents(tmp_path / "e.rrd")


def of_axes(axes: dict[str, str], *, prefix: str = "") -> EpisodeView:
    """An episode of a robot whose axes have these units, all at a quarter."""
    t_ns = GO + np.arange(N) * 10_000_000
    arm = {name: unit for name, unit in axes.items() if name not in ("suction", "thumb", "gripper")}
    hand = {f"{prefix}{name}": unit for name, unit in axes.items() if name not in arm}
    state = {f"q.{prefix}{name}": unit for name, unit in arm.items()}
    state |= {f"tau.{prefix}{name}": "N" if unit == "m" else "N.m" for name, unit in arm.items()}
    state |= {"tcp.x": "m", **hand}
    asked_of = {f"{prefix}{name}": unit for name, unit in arm.items()} | hand
    action = {f"{stage}.{name}": unit for stage in STAGES for name, unit in asked_of.items()} | {"delay_s": "s"}
    streams = {
        name: Stream(tuple(units), t_ns, np.full((N, len(units)), 0.25), " ".join(units.values()))
        for name, units in (("arm/state", state), ("arm/action", action))
    }
    return EpisodeView("e-1", GO, streams, masked=False)


def test_an_axis_that_is_none_of_a_joint_that_turns_has_its_unit_in_its_name(tmp_path):
    """The metres of a rail were a curve of "joints, rad", and what was asked of it had no unit."""
    view = of_axes({"rail": "m", "joint1": "rad", "suction": "1", "thumb": "rad"})
    assert joint_curves(view, "q") == ["rail, m", "joint1"] and joint_curves(view, "tau") == ["rail, N", "joint1"]
    assert hand_curves(view) == ["suction", "thumb, rad"]
    titles = ["rail, m", "joint1, rad", "suction", "thumb, rad"]
    assert asked(view) == list(zip(("rail", "joint1", "suction", "thumb"), titles, strict=True))
    save_episode(tmp_path / "e.rrd", view)
    said = contents(tmp_path / "e.rrd")
    assert "rail, m" in said and "rail, N" in said and "thumb, rad" in said


def test_what_is_asked_of_an_opening_is_drawn_in_mm_and_says_so(episode):
    """Also where a stream states no unit of each column, as before axes had units of their own."""
    assert asked(of_axes({"joint1": "rad", "gripper": "m"})) == [("joint1", "joint1, rad"), ("gripper", "gripper, mm")]
    assert asked(episode)[-2:] == [("joint7", "joint7, rad"), ("gripper", "gripper, mm")]


def test_each_of_two_robots_keeps_the_units_of_its_own_axes():
    left = of_axes({"rail": "m", "joint1": "rad", "gripper": "m"}, prefix="left.")
    right = of_axes({"joint1": "rad", "thumb": "rad"}, prefix="right.")
    states = {"arm/state": left.streams["arm/state"], "right/state": right.streams["arm/state"]}
    both = [one.streams["arm/action"] for one in (left, right)]
    columns = tuple(column for one in both for column in one.columns if column != "delay_s")
    unit = " ".join(one.unit.rsplit(" ", 1)[0] for one in both)
    action = Stream(columns, both[0].t_ns, np.zeros((N, len(columns))), unit)
    second = Second("right", "left", "", (0.0, 0.0, 0.0), 0.0, own_scene=False)
    view = dataclasses.replace(left, streams={**states, "arm/action": action}, second=second)
    (_, first), (_, other) = robots_of(view, "")
    assert joint_curves(first, "q") == ["rail, m", "joint1"] and hand_curves(other) == ["thumb, rad"]
    assert [title for _, title in asked(first)] == ["rail, m", "joint1, rad", "gripper, mm"]
    assert [title for _, title in asked(other)] == ["joint1, rad", "thumb, rad"]


def test_no_two_joints_have_one_name():
    """The actions of two joints were drawn as one curve."""
    assert short_names(["fr3_joint1", "fr3_joint2"]) == ["joint1", "joint2"]
    assert short_names(["shoulder_pan_joint", "wrist_1_joint"]) == ["shoulder_pan", "wrist_1"]
    for names in (["left_joint1", "right_joint1"], ["shoulder_1", "elbow_1", "wrist_1"]):
        assert short_names(names) == names
