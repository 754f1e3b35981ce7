"""What the record of an episode marks: holds of the gripper, stages or arrivals, and the keyframes they make.

May not: ask about a keyframe, or look at a picture.
"""

from __future__ import annotations

from dataclasses import dataclass

from labctl.checks.keyframes import Hold, Keyframe, holds_of, keyframes
from labctl.checks.offline_frames import Path as Way
from labctl.core.task import ITEMS, condition_of, task_of
from labctl.exports.recordings import Recording
from labctl.store.campaign import Campaign


@dataclass(frozen=True, slots=True)
class Marked:
    """stages: of its task, none for one that is not in stages; reached_ns: when each was; moved_ns: when items arrived
    in the target tote, by devices or else by the detector.
    """

    holds: tuple[Hold, ...]
    stages: tuple[str, ...]
    reached_ns: tuple[int, ...]
    moved_ns: tuple[int, ...]
    keyframes: tuple[Keyframe, ...]


def marked(campaign: Campaign, recording: Recording, way: Way) -> Marked:
    """The marks of an episode of a campaign. way: of its tool."""
    trial, episode = recording.chosen.trial, recording.episode
    task, holds = task_of(campaign.opened, trial.condition), detected_holds(campaign, recording)
    staged = task.measure != ITEMS and len(task.stages) > 1
    reached = episode.reached_ns if staged else ()
    moved = tuple(op["t_ns"] for op in (episode.operations or episode.detected or ()) if op["result"] == "success")
    found = keyframes(recording.go_ns, recording.end_ns, holds, reached or moved, way.t_ns, way.tcp[:, :3])
    stages = tuple(stage["name"] for stage in task.stages) if staged else ()
    return Marked(tuple(holds), stages, reached, moved, tuple(found))


def detected_holds(campaign: Campaign, recording: Recording) -> list[Hold]:
    """The holds that the detector found in an episode of a campaign."""
    layout = condition_of(campaign.opened, recording.chosen.trial.condition)["layout"]
    target = next(one for one in campaign.fixture.layout if one.name == layout).tote_side
    return holds_of((recording.episode.sealed or {}).get("detected") or (), target)
