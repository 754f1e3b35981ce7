"""The review as a page: the queue, an episode with its witnesses and videos, and what an assessor decides about it.

May not: judge or write (the same functions do that the console's review is given), or show an arm or any stream but the
cameras'.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from labctl.core.event_bodies import OperationRecorded, Result
from labctl.core.events import EndReason
from labctl.core.outcome import Outcome
from labctl.core.published_state import Compare
from labctl.core.reviewed import RESULTS, Item, in_words, seen, unsettled
from labctl.core.task import ITEMS, Task
from labctl.errors import InputError, LabctlError
from labctl.messages.judgements import PreferenceStated
from labctl.pages.measured import measure_shown, pair, posted, preference
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.server import Answer, PageRequest, Routes, as_json
from labctl.plain import Json

FILES = ("common.js", "measured.js", "review.js", "review.css")


class ReviewPage:
    """`load` gives the queue anew; `save(trial, operations, seen)`, `correct(trial, outcome, why, seen)` and
    `finish()`, which says what comes next, write; `pairs` and `prefer(stated, seen)` are of [preference]. seen: what
    the page had shown. Each may raise LabctlError, whose line the page shows.
    """

    def __init__(
        self,
        campaign: str,
        recorded: RecordedVideos,
        load: Callable[[], Sequence[Item]],
        save: Callable[[str, list[OperationRecorded], int], None],
        correct: Callable[[str, Mapping[str, Json], str, int], None],
        finish: Callable[[], str],
        pairs: Callable[[], Sequence[tuple[Compare, PreferenceStated | None]]] = tuple,
        prefer: Callable[[PreferenceStated, str], None] | None = None,
    ) -> None:
        self._pairs, self._prefer = pairs, prefer
        self._campaign, self._recorded = campaign, recorded
        self._load, self._save, self._correct, self._finish = load, save, correct, finish

    def routes(self) -> Routes:
        """What the page asks for."""
        return {
            "GET /": lambda _: Answer(template("review.html"), "text/html"),
            **templates(FILES),
            "GET /queue": lambda _: as_json(self.queue()),
            "GET /episode/{trial}": lambda asked: as_json(self.episode(self._item(asked.parts["trial"]))),
            **pictures(self._recorded, lambda trial: self._item(trial).task),
            "POST /differences": lambda asked: as_json(self.differences(asked.body)),
            "POST /review": lambda asked: as_json(self.review(asked.body)),
            "POST /finish": lambda _: as_json({"said": self._finish()}),
            "POST /correct": lambda asked: as_json(self.correct(asked.body)),
            "POST /prefer": lambda asked: as_json(self.prefer(asked.body)),
        }

    def queue(self) -> Json:
        """Every episode to review, in order: those not yet reviewed first."""
        items = self._load()
        return {
            "campaign": self._campaign,
            "results": list(RESULTS),
            "left": len(unsettled(items)),
            "pairs": [pair(*one) for one in self._pairs()],
            "episodes": [
                {
                    "trial": item.trial.id,
                    "episode": item.trial.episode,
                    "condition": item.trial.condition,
                    "reviewed": item.reviewed is not None,
                    "differences": item.differences,
                }
                for item in items
            ],
        }

    def episode(self, item: Item) -> Json:
        """One episode; times in ns since go. What its recording does not hold is said in place of its videos."""
        trial, outcome = item.trial, item.trial.outcome
        assert outcome is not None
        reels, _, missing = films(self._recorded, trial.episode or "")
        return {
            "trial": trial.id,
            "episode": trial.episode,
            "condition": trial.condition,
            "staged": outcome.items_staged,
            "moved": outcome.moved,
            "lost": outcome.lost,
            "notes": outcome.notes,
            "ended": str(trial.ended).replace("_", " "),
            "length_s": item.since_go_s(trial.end_ns or 0),
            "counted": item.counted,
            "models": list(item.models),
            "reviewed": item.reviewed is not None,
            "progress": item.progress,
            "seen": item.seen,
            "differences": item.differences,
            "operations": _shown(item, item.operations),
            "witnesses": {
                "devices": _shown(item, item.device),
                "traces": _traced(item),
                "operator": [_tap(item, moved, t_ns) for moved, t_ns in item.taps],
                "review": _shown(item, item.reviewed or ()),
            },
            "task": measure_shown(item.task, outcome),
            "outcome": in_words(item.task, outcome) if item.task else _counted(outcome),
            "reels": reels,
            "missing": missing,
        }

    def differences(self, body: Mapping[str, Json]) -> Json:
        """Where these operations and the other witnesses would disagree."""
        item = self._item(body.get("trial"))
        operations = operations_of(item, body)
        if [_key(op) for op in operations] == [_key(op) for op in item.operations]:
            return {"differences": item.differences}
        return {"differences": replace(item, reviewed=operations, whose="these events").differences}

    def review(self, body: Mapping[str, Json]) -> Json:
        """What stands is what happened: have it journalled."""
        item = self._item(body.get("trial"))
        operations = operations_of(item, body)
        self._save(item.trial.id, operations, _seen(body))
        return {"said": f"{item.trial.episode} reviewed"}

    def correct(self, body: Mapping[str, Json]) -> Json:
        """Have the outcome corrected, with a why; what else is known of it stays."""
        item = self._item(body.get("trial"))
        outcome = item.trial.outcome
        assert outcome is not None
        why = body.get("why")
        kept: dict[str, Json] = {"notes": outcome.notes, "tags": list(outcome.tags)}
        if item.task is None:
            counted = posted(Task("", ITEMS, outcome.items_staged, 0.0, ""), body)
            kept |= {**counted, "stage_reached": outcome.stage_reached}
            left = counted["remaining"]
            if item.trial.ended == EndReason.ALL_DONE and isinstance(left, int) and left > 0:
                kept["wrong_end"] = True
        else:
            kept |= posted(item.task, body)
        if not isinstance(why, str) or not why.strip():
            raise InputError("the reason for the correction is empty; say it in a few words")
        self._correct(item.trial.id, kept, why.strip(), _seen(body))
        return {"said": f"the outcome of {item.trial.episode} is corrected"}

    def prefer(self, body: Mapping[str, Json]) -> Json:
        """Have it journalled which of two episodes was better."""
        stated = preference(body)
        if self._prefer is None:
            raise InputError("no pair of episodes waits for a word on which was better")
        seen = body.get("seen")
        if not isinstance(seen, str):
            raise InputError(f"seen is {seen!r}, not what the page had shown of the pair; load the page again")
        self._prefer(stated, seen)
        return {"said": f"recorded: {stated['preferred']} of {stated['first']} and {stated['second']}"}

    def _item(self, trial: Json) -> Item:
        for item in self._load():
            if item.trial.id == trial:
                return item
        raise InputError(f"no scored episode of a trial {trial!r} is to be reviewed; load the page again")


def operations_of(item: Item, body: Mapping[str, Json]) -> list[OperationRecorded]:
    """The operations that a page posted, [{at_ns since go, result}]; one that a witness reported keeps its cause.

    Raises InputError for another form; whether they can be is `reviewed.checked`'s to say.
    """
    posted = body.get("operations")
    if not isinstance(posted, list):
        raise InputError("operations is missing, the list of what happened")
    known = {(op["t_ns"], op["result"]): op["cause"] for op in (*item.device, *item.detected, *(item.reviewed or ()))}
    found: list[OperationRecorded] = []
    for op in posted:
        at_ns, named = (op.get("at_ns"), op.get("result")) if isinstance(op, dict) else (None, None)
        result: Result | None = next((one for one in RESULTS if one == named), None)
        if not isinstance(at_ns, int) or isinstance(at_ns, bool):
            raise InputError("an operation has no at_ns, whole nanoseconds since go")
        if result is None:
            raise InputError(f"unknown result {named!r}; results are {', '.join(RESULTS)}")
        t_ns = (item.trial.go_ns or 0) + at_ns
        cause = known.get((t_ns, result), None if result == "success" else "reviewed")
        found.append({"op_index": len(found), "result": result, "t_ns": t_ns, "cause": cause})
    return found


def _seen(body: Mapping[str, Json]) -> int:
    """What of an episode a page says it had shown, `Item.seen`. Raises InputError where it does not say."""
    seen = body.get("seen")
    if not isinstance(seen, int) or isinstance(seen, bool):
        raise InputError(f"seen is {seen!r}, not what the page had shown of the episode; load the page again")
    return seen


def _key(op: OperationRecorded) -> tuple[int, str]:
    return op["t_ns"], op["result"]


def _shown(item: Item, operations: Iterable[OperationRecorded]) -> list[Json]:
    go_ns = item.trial.go_ns or 0
    ordered = sorted(operations, key=lambda op: op["t_ns"])
    return [{"at_ns": op["t_ns"] - go_ns, "result": op["result"], "cause": op["cause"] or ""} for op in ordered]


def _traced(item: Item) -> list[Json]:
    """Every candidate of the traces, what is no operation too, with where, how long it was held and the verdict."""
    go_ns = item.trial.go_ns or 0
    if not item.candidates:
        return _shown(item, item.detected)
    causes = {op["t_ns"]: op["cause"] or "" for op in item.detected}
    return [
        {"at_ns": one["t_ns"] - go_ns, "result": one["result"], "cause": causes.get(one["t_ns"], ""), "seen": seen(one)}
        for one in item.candidates
    ]


def _tap(item: Item, moved: int, t_ns: int) -> Json:
    return {"at_ns": t_ns - (item.trial.go_ns or 0), "moved": moved}


def _counted(outcome: Outcome) -> str:
    return f"moved {outcome.moved}, lost {outcome.lost}, of {outcome.items_staged} staged"


def films(recorded: RecordedVideos, episode: str) -> tuple[list[Json], float, str]:
    """The cameras of an episode as a page gets them (when each picture was taken, s since go, and what the
    video's own zero is then), when the last picture was taken, and what to say where there is none or the recording
    does not hold.
    """
    try:
        reels = recorded.reels(episode)
    except LabctlError as error:
        return [], 0.0, str(error)
    last_s = max((round(float(reel.frames_s[-1]), 3) for reel in reels), default=0.0)
    shown: list[Json] = [
        {
            "camera": reel.camera,
            "zero_s": round(reel.zero_s, 6),
            "frames_s": [round(float(at), 3) for at in reel.frames_s],
        }
        for reel in reels
    ]
    return shown, last_s, "" if shown else "no camera filmed this episode"


def pictures(recorded: RecordedVideos, task_of: Callable[[str], Task | None]) -> Routes:
    """The videos of an episode, and the pictures of the rubric of a trial's task."""
    return {
        "GET /video/{episode}/{camera}": lambda asked: Answer(
            recorded.video(asked.parts["episode"], asked.parts["camera"]), "video/mp4"
        ),
        "GET /anchor/{trial}/{place}": lambda asked: Answer(
            recorded.anchor(task_of(asked.parts["trial"]), asked.parts["place"]), "image/png"
        ),
    }


def template(name: str) -> bytes:
    """A file that a page consists of."""
    return importlib.resources.files("labctl.pages").joinpath("templates", name).read_bytes()


def templates(names: Sequence[str]) -> Routes:
    """Scripts and styles by their names."""
    return {f"GET /{name}": _file(name) for name in names}


def _file(name: str) -> Callable[[PageRequest], Answer]:
    return lambda _: Answer(template(name), "text/css" if name.endswith(".css") else "text/javascript")
