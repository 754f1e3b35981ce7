"""The tables about a LeRobot dataset, v3.0 and v2.1: where files are, what a frame holds, tasks, episodes, statistics.

May not: read a recording, or touch a frame. Layouts as LeRobot's own loaders read them (0.4.4 for v3.0, 0.3.3 for
v2.1).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np

from labctl.exports import statistics
from labctl.exports.arrow import arrow
from labctl.exports.lerobot_episode import Feature
from labctl.exports.retime import CODEC, PIXELS, picture_size
from labctl.plain import Json

WRITING = "writing a LeRobot dataset"
CHUNK = 1000  # episodes a folder
PICTURES = "observation.images."
COUNTERS = ("frame_index", "episode_index", "index", "task_index")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a version keeps things; {key}, {chunk}, {file} and {episode} are filled in."""

    version: str
    data: str
    video: str
    info: Mapping[str, Json]

    def data_file(self, folder: Path, episode: int) -> Path:
        """Where an episode's frames go; its folder is made."""
        return self._place(folder, self.data, episode, "")

    def video_file(self, folder: Path, episode: int, key: str) -> Path:
        """Where an episode's video of a feature goes; its folder is made."""
        return self._place(folder, self.video, episode, key)

    def _place(self, folder: Path, template: str, episode: int, key: str) -> Path:
        name = template.format(key=key, chunk=episode // CHUNK, file=episode % CHUNK, episode=episode)
        return _place(folder, name)


V3 = Layout(
    "v3.0",
    "data/chunk-{chunk:03d}/file-{file:03d}.parquet",
    "videos/{key}/chunk-{chunk:03d}/file-{file:03d}.mp4",
    {
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
    },
)
V21 = Layout(
    "v2.1",
    "data/chunk-{chunk:03d}/episode_{episode:06d}.parquet",
    "videos/chunk-{chunk:03d}/{key}/episode_{episode:06d}.mp4",
    {
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    },
)
LAYOUTS: Mapping[str, Layout] = {"lerobot-v3": V3, "lerobot-v2.1": V21}


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """A feature in info.json: the shape of its values in a frame, and what each of them is. info: of a video."""

    dtype: str
    shape: tuple[int, ...] = (1,)
    names: tuple[str, ...] = ()
    info: Mapping[str, Json] | None = None

    def as_json(self) -> dict[str, Json]:
        """As JSON."""
        feature: dict[str, Json] = {"dtype": self.dtype, "shape": self.shape, "names": self.names or None}
        return feature if self.info is None else {**feature, "info": self.info}


@dataclass(frozen=True, slots=True)
class WrittenEpisode:
    """An episode that stands in a dataset: its tasks, how many frames it has, what else its row says, statistics of
    each feature.
    """

    number: int
    tasks: list[str]
    length: int
    about: Mapping[str, Json]
    stats: Mapping[str, statistics.Stats]

    def row(self) -> dict[str, Json]:
        """Of the tables of episodes, without statistics."""
        return {"episode_index": self.number, "tasks": self.tasks, "length": self.length, **self.about}


@dataclass(slots=True)
class Written:
    """What there is of a dataset so far: tasks, episodes, levels of each camera."""

    tasks: list[str] = field(default_factory=list)
    episodes: list[WrittenEpisode] = field(default_factory=list)
    levels: dict[str, statistics.Histogram] = field(default_factory=dict)
    frames: int = 0


def features_of(columns: Mapping[str, Feature], videos: Mapping[str, Path], fps: int) -> dict[str, FeatureEntry]:
    """The `features` of info.json: what every frame has."""
    found: dict[str, FeatureEntry] = {}
    for name, one in columns.items():
        width = 1 if one.values.ndim == 1 else one.values.shape[1]
        found[name] = FeatureEntry(str(one.values.dtype), (width,), one.names)
    for camera, path in videos.items():
        height, width = picture_size(path)
        info = {"height": height, "width": width, "codec": CODEC, "pix_fmt": PIXELS, "is_depth_map": False}
        info |= {"fps": fps, "channels": 3}
        about = {**{f"video.{key}": value for key, value in info.items()}, "has_audio": False}
        found[PICTURES + camera] = FeatureEntry("video", (height, width, 3), ("height", "width", "channels"), about)
    found["timestamp"] = FeatureEntry("float32")
    return found | {name: FeatureEntry("int64") for name in COUNTERS}


def write_meta(
    folder: Path,
    layout: Layout,
    made: Written,
    info: Mapping[str, FeatureEntry],
    parts: Sequence[str],
    *,
    fps: int,
    robot: Json,
) -> None:
    """Everything in meta/, once all episodes are written. info: the features, as `features_of`; parts: of the columns
    of state and action, as `lerobot_episode.parts_of`.
    """
    if layout is V3:
        _write_v3(folder, made, fps)
    else:
        _write_v21(folder, made)
    n = len(made.episodes)
    counts: dict[str, Json] = {"total_episodes": n, "total_frames": made.frames, "total_tasks": len(made.tasks)}
    if layout is V21:
        counts |= {"total_videos": n * len(made.levels), "total_chunks": -(-n // CHUNK)}
    head = {"codebase_version": layout.version, "robot_type": robot, **counts, "chunks_size": CHUNK, **layout.info}
    listed = {name: entry.as_json() for name, entry in info.items()}
    _json(_place(folder, "meta/info.json"), {**head, "fps": fps, "splits": {"train": f"0:{n}"}, "features": listed})
    _json(_place(folder, "meta/modality.json"), modality(info, parts))


def modality(info: Mapping[str, FeatureEntry], parts: Sequence[str]) -> dict[str, Json]:
    """GR00T's meta/modality.json: which part of the vectors is what. parts: of each of their columns, as
    `lerobot_episode.parts_of`. Where a part stands in several places, each but the first has its number behind its
    name.
    """
    found: dict[str, dict[str, Json]] = {}
    places, start = Counter[str](), 0
    for part, run in groupby(parts):
        places[part] += 1
        end = start + len(list(run))
        found[part if places[part] == 1 else f"{part}_{places[part]}"] = {"start": start, "end": end}
        start = end
    videos = {key.removeprefix(PICTURES): {"original_key": key} for key in info if key.startswith(PICTURES)}
    return {
        "state": {**found},
        "action": {**found},
        "video": videos,
        "annotation": {"human.task_description": {"original_key": "task_index"}},
    }


def _write_v3(folder: Path, made: Written, fps: int) -> None:
    pa, pq = arrow(WRITING)
    rows: list[dict[str, Json]] = []
    first = 0
    for number, episode in enumerate(made.episodes):
        place = {"chunk_index": number // CHUNK, "file_index": number % CHUNK}
        row = {**episode.row(), **{f"data/{key}": value for key, value in place.items()}}
        row |= {"dataset_from_index": first, "dataset_to_index": first + episode.length}
        row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        first += episode.length
        for key in made.levels:
            row |= {f"videos/{key}/{name}": value for name, value in place.items()}
            row |= {f"videos/{key}/from_timestamp": 0.0, f"videos/{key}/to_timestamp": episode.length / fps}
        row |= {f"stats/{key}/{name}": value for key, found in episode.stats.items() for name, value in found.items()}
        rows.append(row)
    pq.write_table(pa.Table.from_pylist(rows), _place(folder, "meta/episodes/chunk-000/file-000.parquet"))
    _tasks_parquet(folder, made.tasks)
    _json(_place(folder, "meta/stats.json"), _stats_of_all(folder, made))


def _tasks_parquet(folder: Path, tasks: Sequence[str]) -> None:
    """A table whose index is the task, as pandas writes one: its readers look tasks up by place in the index."""
    pa, pq = arrow(WRITING)
    kinds = {"task_index": ("int64", pa.int64()), "task": ("unicode", pa.string())}
    notes = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
            for name, (kind, _), numpy in zip(kinds, kinds.values(), ("int64", "object"), strict=True)
        ],
        "pandas_version": "2.0.0",
    }
    schema = pa.schema([(name, kind) for name, (_, kind) in kinds.items()], metadata={"pandas": json.dumps(notes)})
    table = pa.table({"task_index": list(range(len(tasks))), "task": list(tasks)}, schema=schema)
    pq.write_table(table, _place(folder, "meta/tasks.parquet"))


def _stats_of_all(folder: Path, made: Written) -> dict[str, statistics.Stats]:
    """Over all frames, feature by feature from the files just written: exact quantiles without holding them all."""
    pa, pq = arrow(WRITING)
    files = sorted((folder / "data").rglob("*.parquet"))
    found = {}
    for name in pq.read_schema(files[0]).names:
        parts = [pq.read_table(path, columns=[name])[name].combine_chunks() for path in files]
        width = parts[0].type.list_size if pa.types.is_fixed_size_list(parts[0].type) else 1
        flat = [(part.flatten() if width > 1 else part).to_numpy(zero_copy_only=False) for part in parts]
        found[name] = statistics.of_columns(np.concatenate(flat).reshape(-1, width))
    return found | {key: levels.stats() for key, levels in made.levels.items()}


def _write_v21(folder: Path, made: Written) -> None:
    _lines(_place(folder, "meta/episodes.jsonl"), (episode.row() for episode in made.episodes))
    _lines(_place(folder, "meta/tasks.jsonl"), ({"task_index": i, "task": task} for i, task in enumerate(made.tasks)))
    stats = ({"episode_index": i, "stats": episode.stats} for i, episode in enumerate(made.episodes))
    _lines(_place(folder, "meta/episodes_stats.jsonl"), stats)


def _place(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _json(path: Path, value: Mapping[str, Json]) -> None:
    path.write_text(json.dumps(value, indent=4, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")


def _lines(path: Path, values: Iterable[Mapping[str, Json]]) -> None:
    text = "".join(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in values)
    path.write_text(text, "utf-8")
