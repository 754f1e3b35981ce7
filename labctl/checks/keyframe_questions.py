"""`labctl static --planner`: asks planners about keyframes of recorded episodes, and holds their answers against the
record. Nothing moves.

May not: write into a campaign, run before unblinding, or ask about what was recorded after a keyframe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np

from labctl.analysis.episodes.answers import Answer, Cell, table
from labctl.checks.keyframes import Keyframe
from labctl.checks.marked import marked
from labctl.checks.offline_frames import first_of_each, path_of
from labctl.checks.planner import Planner
from labctl.checks.questions import RecordedTask, questions
from labctl.clock import SECOND
from labctl.config.cell_schema import CameraTable
from labctl.core.recorded.projection import previous_index
from labctl.core.task import task_of
from labctl.core.trial import Phase
from labctl.errors import StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Chosen, Selection, select
from labctl.plain import count
from labctl.store.campaign import Campaign
from labctl.store.verifying.verified import protocol_of, verified
from labctl.store.video import read_frames
from labctl.streams import of_both_pictures


class Asked(TypedDict):
    """What `labctl static --planner --json` prints. keyframes: how many by mark; analysed_by: the labctl that held them
    against the record, of whoever prints it.
    """

    schema: str
    campaign: str
    episodes: list[str]
    keyframes: dict[str, int]
    what: str
    planners: list[Cell]
    analysed_by: NotRequired[str]


SCHEMA = "labctl.keyframe_questions/1"
WHAT = (
    "Questions with a few options about keyframes that the traces mark (go, before a grasp and a release, after a "
    "stage, the largest change of motion), each camera by itself; the record says what is right. chance: a guess; "
    "same: always the option that is right most often. A planner is a witness: its word enters no record."
)


def ask(
    folder: Path, planners: Sequence[Planner], *, episodes: int = 1, say: Callable[[str], None] = lambda line: None
) -> Asked:
    """What planners know of episodes of an unblinded campaign. episodes: how many of each condition are taken, the
    first in which something was achieved, of the person where one ran.

    Raises BrokenRecord for a record that does not hold, StateError before unblinding or without such an episode or
    pictures of it, DeviceLost for an endpoint that does not answer.
    """
    with verified(folder) as shown:
        campaign = shown.campaign
        if campaign.state.phase != Phase.UNBLINDED:
            raise StateError(
                f"campaign {folder.name} is {campaign.state.phase}; its pictures go to nobody before it is unblinded"
            )
        selection = select(campaign)
        chosen = _chosen(campaign, selection, episodes)
        answers: list[Answer] = []
        marks: dict[str, int] = {}
        oldest = oldest_ns(campaign.cell.camera)
        with Recordings(campaign, selection) as recordings:
            for recording in (recordings.of(one) for one in chosen):
                recorded, at = _recorded_task(campaign, recording)
                for one in at:
                    marks[one.mark] = marks.get(one.mark, 0) + 1
                seen = {view: pictures_at(recording, view, at, oldest[view]) for view in recording.pictures}
                for planner in planners:
                    say(f"{planner.model}: {count(len(at), 'keyframe')} of {recording.chosen.episode}")
                    answers += _answers(planner, recording.chosen.episode, recorded, at, seen)
    if not answers:
        raise StateError(f"campaign {folder.name} has no pictures of its keyframes; there is nothing to ask about")
    return {
        "schema": SCHEMA,
        "campaign": folder.name,
        "episodes": [one.episode for one in chosen],
        "keyframes": marks,
        "what": WHAT,
        "planners": table(answers),
    }


def _chosen(campaign: Campaign, selection: Selection, episodes: int) -> list[Chosen]:
    """The first episodes of each condition in which something was achieved, the person's where one ran."""
    person = {arm.name for arm in protocol_of(campaign).arm if arm.kind == "human"}
    done = [
        one
        for one in selection.episodes
        if one.trial.outcome is not None
        and one.trial.outcome.extent not in ("nothing moved", "nothing done")
        and one.trial.go_ns is not None
        and (one.arm in person or not person)
    ]
    found = first_of_each(done, lambda one: one.trial.condition, episodes)
    if not found:
        raise StateError("no scored episode in which anything was achieved; there is nothing to ask about")
    return found


def _recorded_task(campaign: Campaign, recording: Recording) -> tuple[RecordedTask, Sequence[Keyframe]]:
    """What the record tells of an episode, and the keyframes that its traces mark."""
    task = task_of(campaign.opened, recording.chosen.trial.condition)
    found = marked(campaign, recording, path_of(recording))
    recorded = RecordedTask(
        instruction=task.instruction,
        items=task.items,
        stages=found.stages,
        reached_ns=found.reached_ns,
        moved_ns=found.moved_ns,
        holds=found.holds,
        objects=tuple(thing.name for thing in campaign.fixture.object),
        object=recording.chosen.object,
    )
    return recorded, found.keyframes


def oldest_ns(cameras: Sequence[CameraTable]) -> dict[str, int]:
    """By camera how old a picture may be to show a moment, ns: a second, or three pictures of a slow camera."""
    return of_both_pictures({one.name: max(SECOND, round(3 * SECOND / one.rate_hz)) for one in cameras})


def pictures_at(
    recording: Recording, view: str, at: Sequence[Keyframe], oldest: int
) -> dict[int, tuple[int, np.ndarray]]:
    """By keyframe (ns) the last picture of a camera that was taken at or before it, and when that was (ns); left out
    where there is none that is at most `oldest` ns older.
    """
    filmed = recording.pictures[view]
    taken = filmed.taken_ns
    last = previous_index(taken, np.array([one.t_ns for one in at], dtype=np.int64), max_gap_ns=oldest)
    wanted = {one.t_ns: i for one, i in zip(at, last.tolist(), strict=True) if i >= 0}
    images = dict(read_frames(filmed.path, {int(filmed.pts_us[i]) for i in wanted.values()}))
    return {
        t_ns: (int(taken[i]), images[pts_us])
        for t_ns, i in wanted.items()
        if (pts_us := int(filmed.pts_us[i])) in images
    }


def _answers(
    planner: Planner,
    episode: str,
    recorded: RecordedTask,
    at: Sequence[Keyframe],
    seen: Mapping[str, Mapping[int, tuple[int, np.ndarray]]],
) -> list[Answer]:
    found = []
    for one in at:
        for question in questions(recorded, one):
            for view, pictures in seen.items():
                if one.t_ns in pictures:
                    answer = planner.answer(question, pictures[one.t_ns][1])
                    who, options = planner.model, question.options
                    found.append(Answer(who, question.kind, view, one.mark, episode, options, question.right, answer))
    return found
