"""`labctl static`: asks policies what they would have done at keyframes of recorded human episodes. Nothing moves.

May not: drive a robot, run before unblinding (which episodes are the human's is sealed), or write into a campaign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labctl.analysis.episodes import offline
from labctl.checks.keyframes import Keyframe
from labctl.checks.marked import marked
from labctl.checks.offline_frames import Path as Way
from labctl.checks.offline_frames import compared, first_of_each, keyframe_times, observations, path_of
from labctl.config.cell_schema import Cell
from labctl.config.protocol_schema import Arm
from labctl.core.task import ITEMS, task_of
from labctl.core.trial import Phase, Trial
from labctl.devices import Controller, Robot, load
from labctl.errors import DeviceError, InputError, StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import Chosen, Selection, select
from labctl.nodes.playing import chunk_problem
from labctl.plain import count
from labctl.store.campaign import Campaign
from labctl.store.frozen_cards import with_cards
from labctl.store.lab_folder import read_plan
from labctl.store.verifying.verified import arms_of, protocol_of, verified

SCHEMA = "labctl.static/1"
KEYFRAMES = 50
MODEL_M = 0.005  # how far the arm's model may lie from the recorded tool
WHAT = (
    "The last action of each answer that would have been executed, if followed exactly and at once, against where the "
    "human's tool was when it is due. Score 100 at 1 mm or less, 0 at 1 m or more, by the logarithm. "
    "Two floors are scored in the same way: a robot that stays where it is, and a random answer (the mean over where "
    "the human's arm was at all keyframes). From random to still: 0 % is as good as random, 100 % as standing still."
)


def screen(
    folder: Path,
    policies: Sequence[str],
    *,
    protocol: Path | None = None,
    keyframes: int | None = KEYFRAMES,
    episodes: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """The static scores of policies, arms of the campaign's protocol or of another one, as `labctl static --json`
    prints them. keyframes: so many, evenly spaced; None: those that the traces mark, with the scores at each kind of
    them as `marks`. episodes: how many of the human's are taken for each object, of a campaign of tasks for each
    condition, the first in which anything was achieved; each is asked about in its own condition's words.

    Raises BrokenRecord for a record that does not hold, StateError before unblinding or without a human episode,
    InputError for an arm without a policy card or one that does not fit the cell, DeviceError when a policy cannot be
    asked.
    """
    with verified(folder) as opened:
        campaign = opened.campaign
        if campaign.state.phase != Phase.UNBLINDED:
            raise StateError(
                f"campaign {folder.name} is {campaign.state.phase}; which episodes are the human's is sealed until it "
                "is unblinded: take an earlier campaign"
            )
        own = protocol_of(campaign)
        arms = _arms(campaign, protocol)
        wanted = [_policy(arms, name) for name in policies]
        human = next((arm.name for arm in own.arm if arm.kind == "human"), None)
        selection = select(campaign)
        reference = _reference(campaign, selection, human, episodes)
        cell = campaign.cell
        built = {"cell": cell, "fixture": campaign.fixture}
        arm: Robot = load(*cell.driver, **built)  # never connected: only its kinematics
        real = _moved(campaign, selection)
        found = []
        with Recordings(campaign, selection) as recordings:
            questions = [_question(campaign, recordings.of(one), keyframes) for one in reference]
            for one in questions:
                _check_model(arm, one.way, one.recording.chosen.episode)
            total = sum(len(one.moments) for one in questions)
            for one in wanted:
                say(f"{one.name}: {count(total, 'keyframe')} of {count(len(questions), 'episode')}")
                policy: Controller = load(one.controller, one.options, **built)
                frames = _ask(policy, one.name, questions, cell, arm)
                ran = real.get(one.name) if protocol is None else None
                summary = offline.summary(one.name, frames, ran)
                if keyframes is None:
                    summary["marks"] = offline.by_mark(frames)
                found.append(summary)
    return {
        "schema": SCHEMA,
        "campaign": folder.name,
        "reference": human,
        "episodes": [one.episode for one in reference],
        "keyframes": keyframes or total,
        "what": WHAT,
        "policies": found,
    }


def _arms(campaign: Campaign, protocol: Path | None) -> dict[str, Arm]:
    if protocol is not None:
        plan = read_plan(protocol)
        return with_cards(plan.protocol, plan.cards)
    return arms_of(campaign)


def _policy(arms: Mapping[str, Arm], name: str) -> Arm:
    arm = arms.get(name)
    if arm is None:
        raise InputError(f"no arm {name!r} in that protocol; there: {', '.join(arms)}")
    if not isinstance(arm.options.get("card"), Mapping):
        raise InputError(f"arm {name} has no policy card; a keyframe holds what a card can read, and nothing else")
    return arm


def _group(campaign: Campaign, chosen: Chosen) -> str:
    """What an episode is grouped by: its object; of a campaign of tasks its condition, as objects are in several."""
    return chosen.trial.condition if "tasks" in campaign.opened else chosen.object


def _reference(campaign: Campaign, chosen: Selection, human: str | None, episodes: int) -> list[Chosen]:
    """The first episodes of each object, or condition, that the human drove and in which something was achieved."""
    done = [
        one
        for one in chosen.episodes
        if one.arm == human and one.trial.go_ns is not None and _share(campaign, one.trial) > 0
    ]
    found = first_of_each(done, lambda one: _group(campaign, one), episodes)
    if not found:
        raise StateError(
            "no scored episode of a human in which anything was achieved; there is nothing to hold against"
        )
    return found


def _share(campaign: Campaign, trial: Trial) -> float:
    """How much of its task an episode achieved, 0 to 1, by the measure of the task."""
    outcome, task = trial.outcome, task_of(campaign.opened, trial.condition)
    if outcome is None:
        return 0.0
    if task.measure == ITEMS:
        return outcome.moved / outcome.items_staged
    return outcome.score if outcome.score is not None else task.points(len(outcome.reached_s or ()))


def _moved(campaign: Campaign, chosen: Selection) -> dict[str, dict[str, float]]:
    """{arm: {object, or condition: share of the task that was achieved, of items those moved}} over scored episodes."""
    shares: dict[tuple[str, str], list[float]] = {}
    for one in chosen.episodes:
        if one.arm is not None and one.trial.outcome is not None:
            shares.setdefault((one.arm, _group(campaign, one)), []).append(_share(campaign, one.trial))
    found: dict[str, dict[str, float]] = {}
    for (arm, thing), all_of in shares.items():
        found.setdefault(arm, {})[thing] = sum(all_of) / len(all_of)
    return found


def _check_model(arm: Robot, way: Way, episode: str) -> None:
    """The arm's kinematics have to give the tool that was recorded, or distances would be of two robots."""
    at = np.linspace(0, len(way.t_ns) - 1, 5).astype(int)
    off = max(float(np.linalg.norm(arm.to_pose(way.q[i])[:3] - way.tcp[i, :3])) for i in at)
    if off > MODEL_M:
        raise StateError(f"the cell's arm puts the tool of {episode} {1000 * off:.0f} mm from where it was recorded")


@dataclass(frozen=True, slots=True)
class _Question:
    """A recorded episode, the way of its tool, the moments a policy is asked about, its instruction, and the object or
    condition that it is grouped by.
    """

    recording: Recording
    way: Way
    moments: Sequence[Keyframe]
    instruction: str
    group: str

    @property
    def times_ns(self) -> np.ndarray:
        return np.array([one.t_ns for one in self.moments], dtype=np.int64)


def _question(campaign: Campaign, recording: Recording, keyframes: int | None) -> _Question:
    way, chosen = path_of(recording), recording.chosen
    instruction = task_of(campaign.opened, chosen.trial.condition).instruction
    return _Question(
        recording, way, _moments(campaign, recording, way, keyframes), instruction, _group(campaign, chosen)
    )


def _moments(campaign: Campaign, recording: Recording, way: Way, keyframes: int | None) -> Sequence[Keyframe]:
    if keyframes is None:
        return marked(campaign, recording, way).keyframes
    times = keyframe_times(recording.go_ns, recording.end_ns, keyframes)
    return [Keyframe(t_ns, "even") for t_ns in times.tolist()]


def _anywhere(questions: Sequence[_Question]) -> np.ndarray:
    """Where the human's arm was at every keyframe of every episode (n, 8): what a random answer is drawn from."""
    found = []
    for one in questions:
        there = one.way.at(one.times_ns)
        found.append(one.way.poses(there[there >= 0]))
    return np.concatenate(found)


def _ask(
    policy: Controller,
    name: str,
    questions: Sequence[_Question],
    cell: Cell,
    arm: Robot,
) -> list[dict[str, Any]]:
    """One entry a keyframe that could be seen and compared."""
    found, anywhere, asked = [], _anywhere(questions), 0
    try:
        policy.load()
        pace = policy.pace
        for number, about in enumerate(questions):
            recording, way = about.recording, about.way
            looked = observations(recording, way, about.times_ns, instruction=about.instruction, pace=pace)
            seen = [(at.mark, one) for at, one in zip(about.moments, looked, strict=True) if one is not None]
            if number == 0 and seen:
                policy.warm(seen[0][1])
            policy.reset(0)
            for mark, one in seen:
                chunk, asked = policy.infer(one), asked + 1
                problem = chunk_problem(chunk, cell.joints, cell.hand, len(cell.robots))
                if problem:
                    raise DeviceError(f"{name}: {problem}")
                pair = compared(chunk, one, way, arm, recording.end_ns)
                if pair is not None:
                    found.append(
                        {
                            "object": about.group,
                            "mark": mark,
                            "episode": recording.chosen.episode,
                            "policy": offline.apart(pair["policy"], pair["human"]),
                            "still": offline.apart(pair["still"], pair["human"]),
                            "random": offline.apart(anywhere, pair["human"]),
                        }
                    )
    finally:
        policy.close()
    if not asked:
        raise StateError(
            f"{name}: no keyframe could be compared; is a camera that it reads missing from the recording, or slower "
            "than its max_age_s?"
        )
    if not found:
        raise StateError(
            f"{name}: no keyframe could be compared; of {count(asked, 'answer')} none has an action that is due after "
            "its question and before the end of the episode (of an answer that counts from the capture, the first is "
            "past when it comes)"
        )
    return found
