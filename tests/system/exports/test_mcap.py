"""MCAP files hold what was recorded at its measured times, as mcap's own reader and a decoder see them."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from mcap.reader import make_reader
from support.cameras.coded_camera import mark_of
from support.runs.coded_campaign import QUAGGA, ZEBRA

from labctl.cli import call
from labctl.core.events import Event
from labctl.core.timeline import attempt, event_lines
from labctl.exports.foxglove import SCHEMAS
from labctl.store.traces import TraceStore
from labctl.store.video import read_frames
from labctl.streams import POSE

Topics = dict[str, list[tuple[int, Any]]]


@pytest.fixture(scope="module")
def exported(unblinded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mcap") / "out"
    assert call(["export", str(unblinded), "--to", "mcap", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def read_back(exported: Path) -> dict[str, Topics]:
    """{episode: {topic: [(log time, content)]}} through the index, as a viewer reads."""
    found: dict[str, Topics] = {}
    for path in exported.glob("*.mcap"):
        topics: Topics = defaultdict(list)
        with path.open("rb") as file:
            for _, channel, message in make_reader(file).iter_messages():
                assert message.publish_time == message.log_time
                topics[channel.topic].append((message.log_time, json.loads(message.data)))
        found[path.stem] = topics
    return found


def test_there_is_one_file_for_each_episode(exported: Path, store: TraceStore) -> None:
    assert sorted(path.stem for path in exported.glob("*.mcap")) == store.episodes() and len(store.episodes()) == 6


def test_every_sample_is_a_message_at_its_measured_time(
    read_back: dict[str, Topics], store: TraceStore, shift: dict[str, int]
) -> None:
    looked = 0
    for episode, topics in read_back.items():
        for spec in store.streams(episode):
            t_ns, values = store.read(episode, spec.name)
            wanted = (t_ns + shift[episode]).tolist()
            if spec.name == "arm/state":
                for topic in ("/joint_states", "/tcp", "/tf"):
                    assert [log_ns for log_ns, _ in topics[topic]] == wanted
                continue
            got = topics[f"/stream/{spec.name}"]
            assert [log_ns for log_ns, _ in got] == wanted
            for (_, content), row in zip(got, values.tolist(), strict=True):
                assert {**_flat(content)} == dict(zip(spec.columns, row, strict=True))
            looked += len(got)
    assert looked > 10_000


def _flat(content: dict[str, Any]) -> dict[str, float]:
    flat = {}
    for key, value in content.items():
        if key != "timestamp":
            flat |= {f"{key}.{inner}": v for inner, v in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def test_joints_and_tool_are_those_of_the_state(read_back: dict[str, Topics], store: TraceStore) -> None:
    for episode, topics in read_back.items():
        spec = next(spec for spec in store.streams(episode) if spec.name == "arm/state")
        _, values = store.read(episode, spec.name)
        rows = [dict(zip(spec.columns, row, strict=True)) for row in values.tolist()]
        for row, (_, joints), (_, pose), (_, turn) in zip(
            rows, topics["/joint_states"], topics["/tcp"], topics["/tf"], strict=True
        ):
            for joint in joints["joints"][:-1]:
                name = joint["name"]
                assert (joint["position"], joint["velocity"], joint["effort"]) == (
                    row[f"q.{name}"],
                    row[f"dq.{name}"],
                    row[f"tau.{name}"],
                )
            assert joints["joints"][-1] == {"name": "gripper", "position": row["gripper"]}
            at = [*pose["pose"]["position"].values(), *pose["pose"]["orientation"].values()]
            assert at == [row[column] for column in POSE]
            assert at == [*turn["translation"].values(), *turn["rotation"].values()]
            assert (turn["parent_frame_id"], turn["child_frame_id"]) == ("base", "tcp")


def test_pictures_decode_to_the_ones_that_were_taken_at_their_times(
    unblinded: Path, read_back: dict[str, Topics], shift: dict[str, int]
) -> None:
    """The mark in a picture holds the time its source gave it: the message's log time must be that time."""
    looked = 0
    for episode, topics in read_back.items():
        for camera in ("over_shoulder", "wrist"):
            decoder = av.CodecContext.create("h264", "r")
            images = []
            for _, content in topics[f"/camera/{camera}"]:
                assert content["format"] == "h264" and content["frame_id"] == camera
                images += decoder.decode(av.Packet(base64.b64decode(content["data"])))
            images += decoder.decode(None)
            frames = list(read_frames(unblinded / "video" / episode / f"{camera}.mp4"))
            assert len(images) == len(frames) == len(topics[f"/camera/{camera}"])
            for (log_ns, _), image, (_, original) in zip(topics[f"/camera/{camera}"], images, frames, strict=True):
                picture = image.to_ndarray(format="rgb24")
                np.testing.assert_array_equal(picture, original)
                mark = mark_of(picture)
                assert mark is not None and mark.t_ns + shift[episode] == log_ns
                looked += 1
    assert looked > 1000


def test_a_keyframe_carries_its_parameter_sets_so_that_a_viewer_may_begin_there(read_back: dict[str, Topics]) -> None:
    """Foxglove's page on CompressedVideo: each message with an IDR must also hold an SPS."""
    keyframes = 0
    for topics in read_back.values():
        for _, content in topics["/camera/wrist"]:
            data = base64.b64decode(content["data"])
            kinds = [unit[0] & 31 for unit in data.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]]
            if 5 in kinds:
                assert kinds.index(7) < kinds.index(8) < kinds.index(5)
                keyframes += 1
                decoder = av.CodecContext.create("h264", "r")
                images = [*decoder.decode(av.Packet(data)), *decoder.decode(None)]
                assert mark_of(images[0].to_ndarray(format="rgb24")) is not None
    assert keyframes > 6 * 17, "one a second"


def test_the_journal_and_its_lines_are_there(
    events: list[Event], read_back: dict[str, Topics], shift: dict[str, int]
) -> None:
    for episode, topics in read_back.items():
        told = [event for event in events if event.episode == episode]
        assert [(t, c["seq"], c["kind"], c["body"]) for t, c in topics["/journal"]] == [
            (event.at_ns + shift[episode], event.seq, event.kind, event.body) for event in told
        ]
        lines = [(t, c["level"], c["message"]) for t, c in topics["/events"]]
        levels = {"INFO": 2, "WARN": 3, "ERROR": 4}
        wanted = event_lines(attempt(events, episode))
        assert lines == [(t_ns + shift[episode], levels[level], text) for t_ns, level, text in wanted]
        assert len(lines) > len(told), "what staged it is there too"


def test_channels_are_json_with_the_schemas_foxglove_knows_and_messages_that_fit(exported: Path) -> None:
    known = set()
    for path in exported.glob("*.mcap"):
        with path.open("rb") as file:
            for schema, channel, message in make_reader(file).iter_messages():
                assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
                form = json.loads(schema.data)
                assert form["title"] == schema.name and form["type"] == "object"
                fits(json.loads(message.data), form)
                known.add(schema.name)
    assert known >= set(SCHEMAS)


def fits(value: Any, form: dict[str, Any]) -> None:
    """A value against the part of JSON Schema that is used here; unlike it, nothing may be there undeclared."""
    if "oneOf" in form:
        assert value in [one["const"] for one in form["oneOf"]]
        return
    kinds = form["type"] if isinstance(form["type"], list) else [form["type"]]
    python = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    assert any(isinstance(value, python[kind]) for kind in kinds), (value, form)
    if isinstance(value, dict):
        if form["title" if "title" in form else "type"] != "labctl.Event":
            assert set(value) <= set(form["properties"])
        assert set(form.get("required", ())) <= set(value)
        for key, inner in form["properties"].items():
            if key in value:
                fits(value[key], inner)
    if isinstance(value, list):
        for entry in value:
            fits(entry, form["items"])


def test_a_file_is_indexed_in_order_and_says_where_it_comes_from(unblinded: Path, exported: Path) -> None:
    for path in exported.glob("*.mcap"):
        with path.open("rb") as file:
            reader = make_reader(file)
            summary = reader.get_summary()
            assert summary is not None and summary.chunk_indexes and summary.statistics is not None
            told = {record.name: record.metadata for record in reader.iter_metadata()}
            last = 0
            chunks = sorted(summary.chunk_indexes, key=lambda chunk: chunk.chunk_start_offset)
            for chunk in chunks:
                assert chunk.message_start_time >= last
                last = chunk.message_end_time
            times = [message.log_time for _, _, message in reader.iter_messages(log_time_order=False)]
            assert times == sorted(times)
        assert told["labctl"]["campaign"] == unblinded.name and len(told["labctl"]["commitment"]) == 64
        assert told["episode"]["episode"] == path.stem and told["episode"]["arm"] in (ZEBRA, QUAGGA, "human")


@pytest.mark.thorough
def test_one_that_was_broken_off_goes_on_and_gives_the_same_bytes(
    unblinded: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Episodes that were written whole are not written again; what comes out is what one go gives."""
    from labctl.exports import mcap

    written: list[str] = []
    whole = mcap.write_mcap

    def two_then_stop(path: Path, *rest: Any) -> dict[str, int]:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(path.name)
        return whole(path, *rest)

    command = ["export", str(unblinded), "--to", "mcap", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(mcap, "write_mcap", two_then_stop)
    assert call(command) == 130
    assert "2 finished files are kept" in capsys.readouterr().out and not (tmp_path / "out").exists()

    def another(path: Path, *rest: Any) -> dict[str, int]:
        assert path.name not in written
        return whole(path, *rest)

    monkeypatch.setattr(mcap, "write_mcap", another)
    assert call(command) == 0
    files = sorted(path.name for path in exported.iterdir())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == files
    assert all((exported / name).read_bytes() == (tmp_path / "out" / name).read_bytes() for name in files)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
