"""The static pre-screen's numbers: how far a policy's answer lies from what the human did, and whether that predicts.

May not: query a policy, read a recording, or be taken for a result: nothing moved.

After StaticEmbodiedBench: score 100 · clip(-log10(d) / 3, 0, 1) with d in metres, so 1 mm or less is 100 and 1 m or
more is 0; agreement with the robot is Pearson's correlation over tasks. The floors and the scale between them are
labctl's: by the formula alone an arm that never moves scores high wherever keyframes lie close to each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np

from labctl.analysis.results import Bounds, bounds
from labctl.analysis.survival.curves import Floats
from labctl.analysis.survival.intervals import percentile

LEAST_TASKS = 3
BOOT = 2000


def score(distance_m: Floats) -> Floats:
    """100 · clip(-log10(d) / 3, 0, 1), of distances (n,) in m; a distance of 0 is 100."""
    with np.errstate(divide="ignore"):
        return 100.0 * np.clip(-np.log10(np.asarray(distance_m, dtype=float)) / 3.0, 0.0, 1.0)


def distances_m(first: Floats, second: Floats) -> Floats:
    """Euclidean distances (n,) between positions (n, 3) in m."""
    return np.linalg.norm(np.asarray(first)[:, :3] - np.asarray(second)[:, :3], axis=1)


def turns_rad(first: Floats, second: Floats) -> Floats:
    """The angles (n,) in rad, 0 to pi, by which orientations (n, 4; x y z w) differ."""
    unit = [q / np.linalg.norm(q, axis=1, keepdims=True) for q in (np.asarray(first), np.asarray(second))]
    return 2.0 * np.arccos(np.clip(np.abs((unit[0] * unit[1]).sum(axis=1)), 0.0, 1.0))


class Agreed(TypedDict):
    """Pearson's r between static and real scores over `tasks` tasks; None below three, or where one of them is flat.

    interval: percentile bootstrap over tasks, None where too many draws are flat; with few tasks it is wide.
    """

    tasks: int
    pearson: float | None
    interval: Bounds


def agreement(static: Mapping[str, float], real: Mapping[str, float]) -> Agreed:
    """Over the tasks that both have, by name."""
    shared = sorted(set(static) & set(real))
    x, y = (np.array([scores[task] for task in shared], dtype=float) for scores in (static, real))
    found = _pearson(x, y) if len(shared) >= LEAST_TASKS else None
    if found is None:
        return {"tasks": len(shared), "pearson": None, "interval": None}
    rng = np.random.default_rng(0)
    drawn = [_pearson(x[at], y[at]) for at in rng.integers(len(shared), size=(BOOT, len(shared)))]
    known = np.array([r for r in drawn if r is not None])
    interval = percentile(known) if len(known) > 0.9 * BOOT else None
    return {"tasks": len(shared), "pearson": found, "interval": bounds(interval)}


def _pearson(x: Floats, y: Floats) -> float | None:
    dx, dy = x - x.mean(), y - y.mean()
    spread = math.sqrt(float((dx**2).sum()) * float((dy**2).sum()))
    return float((dx * dy).sum()) / spread if spread > 1e-12 else None


Part = Literal["score", "position_m", "orientation_rad", "gripper_m"]
Frame = Mapping[str, Any]  # a keyframe that was compared
FLOORS = ("still", "random")


class Scores(TypedDict):
    """A mean score, 0 to 100, and mean errors by part."""

    score: float
    position_m: float
    orientation_rad: float
    gripper_m: float


class Between(TypedDict):
    """Where each of them stands, as `between` has it."""

    score: float | None
    position_m: float | None
    orientation_rad: float | None
    gripper_m: float | None


class Scaled(Scores):
    """With the same of both floors."""

    floors: dict[str, Scores]
    between: Between


class AtObject(Scaled):
    """Of one object: so many episodes and keyframes; moved: items moved / staged, where the policy really ran."""

    object: str
    episodes: int
    keyframes: int
    moved: float | None


class AtMark(Scaled):
    """Of one kind of moment."""

    mark: str
    keyframes: int


class Screened(Scaled):
    """What a policy's answers come to. agreement: None where it did not run in the campaign; marks: by kind of moment,
    where keyframes are those that the traces mark.
    """

    policy: str
    objects: list[AtObject]
    agreement: Agreed | None
    marks: NotRequired[list[AtMark]]


def apart(first: Floats, second: Floats) -> dict[str, Floats]:
    """How far `first` (n, 8: position m, quaternion x y z w, opening m) lies from `second` (n or 1, 8), by part."""
    first, second = np.broadcast_arrays(np.asarray(first, dtype=float), np.asarray(second, dtype=float))
    return {
        "position_m": distances_m(first, second),
        "orientation_rad": turns_rad(first[:, 3:7], second[:, 3:7]),
        "gripper_m": np.abs(first[:, 7] - second[:, 7]),
    }


def between(own: float, still: float, random: float) -> float | None:
    """Where a value stands from that of a random answer (0) to that of standing still (1); above 1 it is better than
    standing still. None where standing still is not better than a random answer, so that there is no such scale.
    Of errors give the negatives.
    """
    return (own - random) / (still - random) if still - random > 1e-12 else None


def summary(policy: str, frames: Sequence[Frame], real: Mapping[str, float] | None) -> Screened:
    """What a policy's answers come to: per object the means over its keyframes, over all the mean over objects.

    frames: {object, episode, policy, still, random}, one per keyframe that could be compared; the last three as `apart`
    has them: of the answer, of an arm that stays where it is, of answers that could as well be of any other moment.
    real: {object: items moved / staged} where the policy ran in the campaign. No interval: keyframes of an episode are
    not independent of each other.
    """
    objects: list[AtObject] = []
    for name in dict.fromkeys(frame["object"] for frame in frames):
        own = [frame for frame in frames if frame["object"] == name]
        objects.append(
            {
                "object": name,
                "episodes": len({frame["episode"] for frame in own}),
                "keyframes": len(own),
                **_scaled({who: _means([frame[who] for frame in own]) for who in ("policy", *FLOORS)}),
                "moved": None if real is None else real.get(name),
            }
        )
    agreed = None if real is None else agreement({entry["object"]: entry["score"] for entry in objects}, real)
    return {"policy": policy, **_over(objects), "objects": objects, "agreement": agreed}


def by_mark(frames: Sequence[Frame]) -> list[AtMark]:
    """The means at each kind of moment, which a frame's `mark` names, each keyframe alike."""
    found: list[AtMark] = []
    for mark in dict.fromkeys(frame["mark"] for frame in frames):
        own = [frame for frame in frames if frame["mark"] == mark]
        means = {who: _means([frame[who] for frame in own]) for who in ("policy", *FLOORS)}
        found.append({"mark": mark, "keyframes": len(own), **_scaled(means)})
    return found


def _means(frames: Sequence[Mapping[str, Floats]]) -> Scores:
    """The mean over keyframes, of a floor first over what it stands for at each."""
    return {
        "score": float(np.mean([score(frame["position_m"]).mean() for frame in frames])),
        "position_m": float(np.mean([frame["position_m"].mean() for frame in frames])),
        "orientation_rad": float(np.mean([frame["orientation_rad"].mean() for frame in frames])),
        "gripper_m": float(np.mean([frame["gripper_m"].mean() for frame in frames])),
    }


def _scaled(means: Mapping[str, Scores]) -> Scaled:
    """A policy's values with those of both floors beside each, and where it stands between them."""
    own, still, random = (means[who] for who in ("policy", *FLOORS))

    def error(part: Part) -> float | None:
        return between(-own[part], -still[part], -random[part])

    scaled: Between = {
        "score": between(own["score"], still["score"], random["score"]),
        "position_m": error("position_m"),
        "orientation_rad": error("orientation_rad"),
        "gripper_m": error("gripper_m"),
    }
    return {**own, "floors": {"still": still, "random": random}, "between": scaled}


def _over(objects: Sequence[AtObject]) -> Scaled:
    """The means over objects, scaled as one object's are."""
    return _scaled(
        {
            "policy": _mean(objects),
            "still": _mean([entry["floors"]["still"] for entry in objects]),
            "random": _mean([entry["floors"]["random"] for entry in objects]),
        }
    )


def _mean(scores: Sequence[Scores]) -> Scores:
    return {
        "score": float(np.mean([one["score"] for one in scores])),
        "position_m": float(np.mean([one["position_m"] for one in scores])),
        "orientation_rad": float(np.mean([one["orientation_rad"] for one in scores])),
        "gripper_m": float(np.mean([one["gripper_m"] for one in scores])),
    }
