"""Keyframes of a recorded human episode: what a policy would have seen then, and where the arm was soon after.

May not: ask a policy, resample a picture, or show a keyframe anything that came after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.clock import SECOND
from labctl.core.recorded.projection import previous_index
from labctl.devices import ActionChunk, Observation, Pace, Picture, Robot
from labctl.errors import StateError
from labctl.exports.recordings import Recording
from labctl.exports.selection import Chosen
from labctl.nodes.observation_buffer import MARGIN_NS
from labctl.nodes.playing import stepped
from labctl.nodes.targets import integrated_joints, integrated_poses
from labctl.store.video import read_frames
from labctl.streams import STATE

POSE = ("tcp.x", "tcp.y", "tcp.z", "tcp.qx", "tcp.qy", "tcp.qz", "tcp.qw")
OLDEST_NS = SECOND // 4  # a state older than this at a keyframe is none


@dataclass(frozen=True)
class Path:
    """The arm's measured way through an episode: t_ns (n,), q and dq (n, dof), tcp (n, 7), gripper (n,)."""

    t_ns: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    tcp: np.ndarray
    gripper: np.ndarray

    def at(self, t_ns: np.ndarray) -> np.ndarray:
        """The index of the last sample at or before each instant, -1 where there is none within a quarter second."""
        return previous_index(self.t_ns, t_ns, max_gap_ns=OLDEST_NS)

    def poses(self, index: np.ndarray) -> np.ndarray:
        """(n, 8): position m, quaternion and opening m of the samples of an index."""
        return np.column_stack([self.tcp[index], self.gripper[index]])


def path_of(recording: Recording) -> Path:
    """Raises StateError for a recording without the arm's tool, or without one opening of a gripper."""
    spec = next((spec for spec in recording.specs if spec.name == STATE), None)
    columns = list(spec.columns) if spec else []
    missing = [name for name in (*POSE, "gripper") if name not in columns]
    if missing:
        raise StateError(
            f"episode {recording.chosen.episode} cannot be a reference: its stream {STATE} has no {', '.join(missing)}"
            + (", the opening of a gripper that is the only axis of its robot's hand" if "gripper" in missing else "")
        )
    t_ns, values = recording.read(STATE)

    def of(wanted: Sequence[str]) -> np.ndarray:
        return values[:, [columns.index(name) for name in wanted]]

    joints = [name for name in columns if name.startswith("q.")]
    speeds = [name for name in columns if name.startswith("dq.")]
    return Path(t_ns, of(joints), of(speeds), of(POSE), values[:, columns.index("gripper")])


def first_of_each(episodes: Iterable[Chosen], group_of: Callable[[Chosen], str], most: int) -> list[Chosen]:
    """The first so many of each group, in their order."""
    counts: Counter[str] = Counter()
    found = []
    for one in episodes:
        counts[group_of(one)] += 1
        if counts[group_of(one)] <= most:
            found.append(one)
    return found


def keyframe_times(go_ns: int, end_ns: int, count: int) -> np.ndarray:
    """`count` evenly spaced times within an episode, ns: none at go or at the end, where nothing is done."""
    return np.linspace(go_ns, end_ns, count + 2).astype(np.int64)[1:-1]


def observations(
    recording: Recording,
    path: Path,
    times_ns: np.ndarray,
    *,
    instruction: str,
    pace: Pace,
) -> list[Observation | None]:
    """What could be seen at each time: a state taken, and pictures received, at or before it. None where something is
    missing, or too old for the policy to be asked on (`Pace.max_age_s`).
    """
    states = path.at(times_ns)
    pictures = {camera: _pictures(recording, camera, times_ns, pace) for camera in pace.cameras}
    found: list[Observation | None] = []
    for number, (t_ns, i) in enumerate(zip(times_ns.tolist(), states.tolist(), strict=True)):
        images = {camera: taken[number] for camera, taken in pictures.items()}
        if i < 0 or not all(images.values()):
            found.append(None)
            continue
        arrays = {"q": path.q[i], "dq": path.dq[i], "tcp": path.tcp[i], "gripper": path.gripper[i : i + 1]}
        found.append(Observation(t_ns, arrays, instruction, images))
    return found


def _pictures(recording: Recording, camera: str, times_ns: np.ndarray, pace: Pace) -> list[tuple[Picture, ...]]:
    """For each time what an `ObservationBuffer` would hold of a camera, the newest picture last: of what was received
    by then the pictures of the history before the newest, of before go one at most. None where the newest is too old.
    """
    filmed = recording.pictures.get(camera)
    if filmed is None:
        return [()] * len(times_ns)
    taken = filmed.taken_ns
    last = np.searchsorted(filmed.t_ns, times_ns, side="right")
    newest = np.maximum(last - 1, 0)
    last[times_ns - taken[newest] > pace.max_age_s * SECOND] = 0
    first = newest
    if pace.history_s:
        from_ns = taken[newest] - round(pace.history_s * SECOND) - MARGIN_NS
        at_go = int(np.searchsorted(filmed.t_ns, recording.go_ns, side="right")) - 1
        first = np.minimum(np.maximum(np.searchsorted(taken, from_ns), at_go), newest)
    places = [filmed.pts_us[a:b].astype(np.int64).tolist() for a, b in zip(first, last, strict=True)]
    images = dict(read_frames(filmed.path, {place for some in places for place in some}))
    return [
        tuple(
            Picture(images[place], int(t_ns))
            for place, t_ns in zip(some, taken[a : a + len(some)], strict=True)
            if place in images
        )
        if some and some[-1] in images
        else ()
        for a, some in zip(first, places, strict=True)
    ]


def executed(chunk: ActionChunk) -> slice:
    """Which actions of an answer that comes at once a robot executes: of one that counts from the capture the first is
    due then, and is past (`Play`).
    """
    first = 1 if chunk.starts == "capture" else 0
    return slice(first, first + chunk.execute)


def reached(chunk: ActionChunk, q: np.ndarray, tcp: np.ndarray, arm: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Where the executed actions of an answer lead from joints q (dof,) and tool pose tcp (7,) if they are followed
    exactly: poses (n, 7), and how long after the keyframe each is due, ns (n,). arm: has `to_pose`.
    """
    dt_ns = round(chunk.dt_s * SECOND)
    values = np.asarray(chunk.values, dtype=float)[executed(chunk)]
    due_ns = (1 + np.arange(len(values), dtype=np.int64)) * dt_ns
    if not len(values):
        return np.empty((0, len(POSE))), due_ns
    if chunk.space == "tcp_pose":
        return values, due_ns
    if chunk.space == "tcp_velocity":
        return integrated_poses(due_ns, values, dt_ns, tcp), due_ns
    if chunk.space == "tcp_step":
        return _stepped(values, tcp, np.array(chunk.about_m)), due_ns
    joints = {
        "joint_position": lambda: values,
        "joint_velocity": lambda: integrated_joints(due_ns, values, dt_ns, q),
        "joint_step": lambda: q + np.cumsum(values, axis=0),
    }[chunk.space]()
    return np.array([arm.to_pose(one) for one in joints]), due_ns


def _stepped(steps: np.ndarray, tcp: np.ndarray, about: np.ndarray) -> np.ndarray:
    """Poses (n, 7) after each of the steps (n, 7), every one on the one before; see `stepped`."""
    found, at = [], tcp
    for step in steps:
        at = stepped(at, step, about)
        found.append(at)
    return np.array(found)


def compared(
    chunk: ActionChunk, seen: Observation, path: Path, arm: Robot, end_ns: int
) -> Mapping[str, np.ndarray] | None:
    """The last executed action that is due before the episode's end, and where the human's arm was then: `policy` and
    `human`, each (1, 8): position m, quaternion, opening m; `still`: where the arm was at the keyframe. None where no
    action is due in time.
    """
    poses, due_ns = reached(chunk, np.asarray(seen.arrays["q"]), np.asarray(seen.arrays["tcp"]), arm)
    at_ns = seen.t_ns + due_ns
    there = np.flatnonzero((at_ns <= end_ns) & (path.at(at_ns) >= 0))
    if not len(there):
        return None
    i = int(there[-1])
    human = int(path.at(at_ns[i : i + 1])[0])
    begun = path.at(np.array([seen.t_ns]))
    return {
        "policy": np.array([[*poses[i], np.asarray(chunk.gripper, dtype=float)[executed(chunk)][i]]]),
        "human": path.poses(np.array([human])),
        "still": path.poses(begun),
    }
