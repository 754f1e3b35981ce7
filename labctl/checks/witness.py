"""`labctl review --witness`: a vision-language model says of each scored episode how it went, from pictures of its
cameras and the measure's own words. A witness, never the judge.

May not: change an outcome, keep a review waiting, tell the model an arm or anything that a person or a device said of
an episode, or write its key anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from labctl.checks.keyframe_questions import oldest_ns, pictures_at
from labctl.checks.keyframes import APART_S, BESIDE_S, Hold, Keyframe
from labctl.checks.marked import detected_holds
from labctl.checks.planner import Planner
from labctl.checks.questions import lettered
from labctl.clock import SECOND
from labctl.core.task import ITEMS, SCORE, STAGES, Task, task_of
from labctl.errors import InputError, StateError
from labctl.exports.recordings import Recording, Recordings
from labctl.exports.selection import select
from labctl.messages.judgements import WitnessEntry, WitnessStated
from labctl.plain import count
from labctl.runtime import review_writer
from labctl.store.campaign import Campaign
from labctl.store.verifying.verified import verified

UNKNOWN = "it cannot be told from these pictures"
WIDEST = 512  # pixels of a picture that is sent
LETTERS = 26


def ask(folder: Path, *, who: str, say: Callable[[str], None] = lambda line: None) -> str:
    """Have the model of the campaign's protocol asked about every scored episode of which it has said nothing yet, each
    answer journalled as it comes; what was done, in a line.

    Raises BrokenRecord for a record that does not hold, StateError for a campaign without [witness], without pictures
    or whose review is over, InputError for a key that is not in the environment, DeviceLost for an endpoint that does
    not answer: what it said until then is kept, and the review goes on without the rest.
    """
    with verified(folder) as shown:
        campaign = shown.campaign
        review_writer.check_assessor(campaign, who)
        entry = campaign.opened.get("witness")
        if entry is None:
            raise StateError(
                f"the protocol of {folder.name} has no [witness]; a model is asked only where it names one"
            )
        model = _model(entry)
        record, selection = campaign.record(), select(campaign)
        waiting = [
            one
            for one in selection.episodes
            if one.trial.go_ns is not None
            and all(said["model"] != model.model for said, _ in record.episodes[one.episode].witnessed)
        ]
        unknown = asked = 0
        with Recordings(campaign, selection) as recordings:
            for number, chosen in enumerate(waiting, 1):
                recording = recordings.of(chosen)
                task = task_of(campaign.opened, chosen.trial.condition)
                said = _stated(model, task, selection.hide(task.instruction), recording, entry["pictures"], campaign)
                if said is None:
                    continue
                review_writer.hear(folder, chosen.trial.id, said, who=who)
                asked, unknown = asked + 1, unknown + (said["value"] is None)
                say(f"{model.model}: episode {number} of {len(waiting)}")
    filmed = "" if asked == len(waiting) else f"; {count(len(waiting) - asked, 'episode')} without a picture of the end"
    return f"{model.model} was asked about {count(asked, 'episode')} and could not tell of {unknown}{filmed}"


def _model(entry: WitnessEntry) -> Planner:
    name = entry["key_env"]
    key = os.environ.get(name, "") if name else ""
    if name and not key:
        raise InputError(f"{name} is not set; it holds the key of {entry['model']}: export {name}=…")
    return Planner(entry["model"], entry["url"], key)


def _stated(
    model: Planner, task: Task, instruction: str, recording: Recording, most: int, campaign: Campaign
) -> WitnessStated | None:
    """What the model says of an episode; None where no camera has its end."""
    at = moments(recording.go_ns, recording.end_ns, detected_holds(campaign, recording), most)
    sent, images, ended = _shown(recording, at, oldest_ns(campaign.cell.camera))
    if not ended:
        return None
    text, options, values = question(task, instruction)
    put = "\n".join([_seen({view: len(times) for view, times in sent.items()}, ended), text])
    said = model.choose(f"{put}\n{lettered(options)}\nAnswer with one letter.", len(options), images)
    value = None if said is None else values[said]
    return {"model": model.model, "question": text, "options": options, "said": said, "value": value, "pictures": sent}


def _shown(
    recording: Recording, at: Sequence[Keyframe], oldest: Mapping[str, int]
) -> tuple[dict[str, list[int]], list[np.ndarray], set[str]]:
    """By camera when each picture that the model is sent was taken, ns, none of them twice; the pictures, in that
    order; and which cameras have the last moment, the end.
    """
    from PIL import Image

    sent: dict[str, list[int]] = {}
    images: list[np.ndarray] = []
    ended: set[str] = set()
    for view in recording.pictures:
        found = pictures_at(recording, view, at, oldest[view])
        for taken_ns, image in sorted(dict(found.values()).items()):
            small = Image.fromarray(image)
            small.thumbnail((WIDEST, WIDEST))
            images.append(np.asarray(small))
            sent.setdefault(view, []).append(taken_ns)
        if at[-1].t_ns in found:
            ended.add(view)
    return sent, images, ended


def _seen(counts: Mapping[str, int], ended: Collection[str]) -> str:
    """What the model is told that it sees: by camera how many pictures, and which of them have the end."""
    shown = [(view, f"{count(n, 'picture')} of camera {number}") for number, (view, n) in enumerate(counts.items(), 1)]
    if all(view in ended for view in counts):
        words = "; ".join(one for _, one in shown)
        return f"You see {words}, each in the order of time, to the end of the attempt."
    words = "; ".join(f"{one}, {'to the end' if view in ended else 'not to the end'}" for view, one in shown)
    return f"You see {words} of the attempt, each in the order of time."


def moments(go_ns: int, end_ns: int, holds: Sequence[Hold], most: int) -> list[Keyframe]:
    """So many moments of an episode at most, in order: its end, half a second after go, before each grasp and release
    that the detector found, and evenly between where there is room.
    """
    beside, apart = round(BESIDE_S * SECOND), round(APART_S * SECOND)
    marks = [
        Keyframe(at - beside, "grasp" if n == 0 else "release")
        for h in holds
        for n, at in enumerate((h.from_ns, h.to_ns))
    ]
    even = [Keyframe(int(t), "even") for t in np.linspace(go_ns + beside, end_ns, most + 1)[1:-1]]
    kept = [Keyframe(end_ns, "end")]
    for one in [Keyframe(go_ns + beside, "go"), *marks, *even]:
        if len(kept) < most and go_ns < one.t_ns < end_ns and all(abs(one.t_ns - k.t_ns) >= apart for k in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.t_ns)


def question(task: Task, instruction: str) -> tuple[str, list[str], list[float | None]]:
    """What is asked of an episode by the measure of its task, the options, and what each comes to; the last is that it
    cannot be told. Raises StateError for a task with more items than letters.
    """
    about = f'A robot was told: "{instruction}"'
    values: list[float]
    if task.measure == ITEMS:
        if task.items + 2 > LETTERS:
            raise StateError(
                f"a task of {task.items} items is too long a list for a model; it is asked up to {LETTERS - 2}"
            )
        text = f"{about} How many of the {count(task.items, 'item')} lie in the target tote at the end?"
        options, values = [str(n) for n in range(task.items + 1)], [float(n) for n in range(task.items + 1)]
    elif task.measure == SCORE:
        text = f"{about} Which of these is nearest to how it went?"
        options, values = [one["text"] for one in task.rubric], [one["score"] for one in task.rubric]
    elif task.measure == STAGES:
        steps = [f"{one['name']}: {one['definition']}" for one in task.stages]
        text = f"{about} What is the furthest step that was reached? A step counts only after all those before it."
        options, values = ["none of them", *steps], [float(n) for n in range(len(steps) + 1)]
    else:
        text = f"{about} Was it done by the end?"
        options, values = ["no", f"yes, {task.stages[0]['definition']}"], [0.0, 1.0]
    return text, [*options, UNKNOWN], [*values, None]
