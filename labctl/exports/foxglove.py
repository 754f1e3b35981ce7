"""Messages and schemas by the names Foxglove knows, as JSON; and JSON schemas for streams that it has no name for.

May not: write a file, or know an episode. Times are ns since 1970-01-01 UTC.

The fields are those of Foxglove's published schemas, as far as they are filled here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence

from labctl.clock import SECOND
from labctl.plain import Json

Fields = dict[str, Json]  # a message, a schema, or a part of one
LEVELS = {"INFO": 2, "WARN": 3, "ERROR": 4}


def _object(title: str, **fields: Fields) -> Fields:
    return {"title": title, "type": "object", "properties": fields, "required": list(fields)}


_NUMBER: Fields = {"type": "number"}
_TEXT: Fields = {"type": "string"}
_SECONDS: Fields = {"type": "integer", "minimum": 0}
_TIME = _object("time", sec=_SECONDS, nsec={**_SECONDS, "maximum": 999_999_999})
_VECTOR = _object("foxglove.Vector3", x=_NUMBER, y=_NUMBER, z=_NUMBER)
_TURN = _object("foxglove.Quaternion", x=_NUMBER, y=_NUMBER, z=_NUMBER, w=_NUMBER)
_JOINT = _object("foxglove.JointState", name=_TEXT, position=_NUMBER, velocity=_NUMBER, effort=_NUMBER)
_JOINT["required"] = ["name"]
_NAMES = ("UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL")
_LEVEL: Fields = {
    "title": "foxglove.LogLevel",
    "oneOf": [{"title": name, "const": value} for value, name in enumerate(_NAMES)],
}

# By the exact names that Foxglove recognises in a channel with JSON messages.
SCHEMAS: Mapping[str, Fields] = {
    str(schema["title"]): schema
    for schema in (
        _object("foxglove.JointStates", timestamp=_TIME, joints={"type": "array", "items": _JOINT}),
        _object(
            "foxglove.PoseInFrame",
            timestamp=_TIME,
            frame_id=_TEXT,
            pose=_object("foxglove.Pose", position=_VECTOR, orientation=_TURN),
        ),
        _object(
            "foxglove.FrameTransform",
            timestamp=_TIME,
            parent_frame_id=_TEXT,
            child_frame_id=_TEXT,
            translation=_VECTOR,
            rotation=_TURN,
        ),
        _object(
            "foxglove.CompressedVideo",
            timestamp=_TIME,
            frame_id=_TEXT,
            data={**_TEXT, "contentEncoding": "base64"},
            format=_TEXT,
        ),
        _object(
            "foxglove.Log",
            timestamp=_TIME,
            level=_LEVEL,
            message=_TEXT,
            name=_TEXT,
            file=_TEXT,
            line=_SECONDS,
        ),
    )
}


def time(wall_ns: int) -> Fields:
    """A time as Foxglove writes it."""
    return {"sec": wall_ns // SECOND, "nsec": wall_ns % SECOND}


def joint_states(wall_ns: int, joints: Sequence[Fields]) -> Fields:
    return {"timestamp": time(wall_ns), "joints": list(joints)}


def pose_in_frame(wall_ns: int, pose: Sequence[float], base: str) -> Fields:
    """pose (7,) in the frame `base`: x y z in m, qx qy qz qw."""
    return {
        "timestamp": time(wall_ns),
        "frame_id": base,
        "pose": {"position": _place(pose), "orientation": _turn(pose)},
    }


def frame_transform(wall_ns: int, pose: Sequence[float], base: str, tool: str) -> Fields:
    """The frame `tool` in the frame `base`; pose as above."""
    return {
        "timestamp": time(wall_ns),
        "parent_frame_id": base,
        "child_frame_id": tool,
        "translation": _place(pose),
        "rotation": _turn(pose),
    }


def _place(pose: Sequence[float]) -> Fields:
    return {"x": pose[0], "y": pose[1], "z": pose[2]}


def _turn(pose: Sequence[float]) -> Fields:
    return {"x": pose[3], "y": pose[4], "z": pose[5], "w": pose[6]}


def compressed_video(wall_ns: int, camera: str, data: bytes, form: str) -> Fields:
    """data: one picture as coded, Annex B."""
    return {
        "timestamp": time(wall_ns),
        "frame_id": camera,
        "data": base64.b64encode(data).decode(),
        "format": form,
    }


def log(wall_ns: int, level: str, text: str) -> Fields:
    """level: INFO, WARN or ERROR."""
    return {
        "timestamp": time(wall_ns),
        "level": LEVELS.get(level, 0),
        "message": text,
        "name": "labctl",
        "file": "",
        "line": 0,
    }


def nesting(columns: Sequence[str], at: Sequence[int]) -> Callable[[Sequence[float | None]], Fields]:
    """What makes a sample, a row of values of which those `at` some places count, JSON: "sent.joint" stands in an
    object "sent", as a dot leads into an object where values are picked.
    """
    groups: dict[str, tuple[list[str], list[int]]] = {}
    for column, i in zip(columns, at, strict=True):
        group, dot, rest = column.partition(".")
        names, places = groups.setdefault(group if dot else "", ([], []))
        names.append(rest if dot else column)
        places.append(i)
    plain = list(zip(*groups.pop("", ([], [])), strict=True))
    inner = [(group, list(zip(names, places, strict=True))) for group, (names, places) in groups.items()]

    def nest(row: Sequence[float | None]) -> Fields:
        found: Fields = {name: row[i] for name, i in plain}
        for group, parts in inner:
            found[group] = {name: row[i] for name, i in parts}
        return found

    return nest


def sample_schema(title: str, columns: Sequence[str], units: Sequence[str], *, whole: bool) -> Fields:
    """The schema of samples as `nesting` makes them, with their time; whole: values are integers."""
    kind: Fields = {"type": "integer"} if whole else {"type": ["number", "null"]}
    fields: Fields = {"timestamp": _TIME}
    groups: dict[str, Fields] = {}
    for column, unit in zip(columns, units, strict=True):
        group, dot, rest = column.partition(".")
        if dot and group not in groups:
            groups[group] = {}
            fields[group] = {"type": "object", "properties": groups[group]}
        place = groups[group] if dot else fields
        place[rest if dot else column] = {**kind, "description": unit}
    return {"title": title, "type": "object", "properties": fields}
