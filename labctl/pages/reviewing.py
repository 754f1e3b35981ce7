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
from labctl.core.reviewed import RESULTS, Item, seen, unsettled
from labctl.errors import InputError, LabctlError
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.server import Answer, PageRequest, Routes, as_json
from labctl.plain import Json

FILES = {"review.js": "text/javascript", "review.css": "text/css"}


class ReviewPage:
    """`load` gives the queue anew; `save(trial, operations)`, `correct(trial, outcome, why)` and `finish()`, which
    says what comes next, write. Each may raise
    LabctlError, whose line the page shows.
    """

    def __init__(
        self,
        campaign: str,
        recorded: RecordedVideos,
        load: Callable[[], Sequence[Item]],
        save: Callable[[str, list[OperationRecorded]], None],
        correct: Callable[[str, Mapping[str, Json], str], None],
        finish: Callable[[], str],
    ) -> None:
        self._campaign, self._recorded = campaign, recorded
        self._load, self._save, self._correct, self._finish = load, save, correct, finish

    def routes(self) -> Routes:
        """What the page asks for."""
        return {
            "GET /": lambda _: Answer(_template("review.html"), "text/html"),
            **{f"GET /{name}": _file(name, kind) for name, kind in FILES.items()},
            "GET /queue": lambda _: as_json(self.queue()),
            "GET /episode/{trial}": lambda asked: as_json(self.episode(self._item(asked.parts["trial"]))),
            "GET /video/{episode}/{camera}": self._video,
            "POST /differences": lambda asked: as_json(self.differences(asked.body)),
            "POST /review": lambda asked: as_json(self.review(asked.body)),
            "POST /finish": lambda _: as_json({"said": self._finish()}),
            "POST /correct": lambda asked: as_json(self.correct(asked.body)),
        }

    def queue(self) -> Json:
        """Every episode to review, in order: those not yet reviewed first."""
        items = self._load()
        return {
            "campaign": self._campaign,
            "results": list(RESULTS),
            "left": len(unsettled(items)),
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
        reels: list[Json] = []
        missing = ""
        try:
            for reel in self._recorded.reels(trial.episode or ""):
                frames = [round(float(at), 3) for at in reel.frames_s]
                reels.append({"camera": reel.camera, "zero_s": round(reel.zero_s, 6), "frames_s": frames})
        except LabctlError as error:
            missing = str(error)
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
            "reviewed": item.reviewed is not None,
            "differences": item.differences,
            "operations": _shown(item, item.operations),
            "witnesses": {
                "devices": _shown(item, item.device),
                "traces": _traced(item),
                "operator": [_tap(item, moved, t_ns) for moved, t_ns in item.taps],
                "review": _shown(item, item.reviewed or ()),
            },
            "reels": reels,
            "missing": missing or ("" if reels else "no camera filmed this episode"),
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
        self._save(item.trial.id, operations_of(item, body))
        return {"said": f"{item.trial.episode} reviewed"}

    def correct(self, body: Mapping[str, Json]) -> Json:
        """Have the outcome corrected, with a why; what else is known of it stays."""
        item = self._item(body.get("trial"))
        outcome = item.trial.outcome
        assert outcome is not None
        moved, lost, why = body.get("moved"), body.get("lost"), body.get("why")
        if not isinstance(moved, int) or not isinstance(lost, int):
            raise InputError("moved and lost are whole numbers, 0 or more")
        if not isinstance(why, str) or not why.strip():
            raise InputError("the reason for the correction is empty; say it in a few words")
        remaining = outcome.items_staged - moved - lost
        outcome_body: dict[str, Json] = {
            "items_staged": outcome.items_staged,
            "moved": moved,
            "lost": lost,
            "remaining": remaining,
            "notes": outcome.notes,
            "stage_reached": outcome.stage_reached,
            "tags": list(outcome.tags),
        }
        if item.trial.ended == EndReason.ALL_DONE and remaining > 0:
            outcome_body["wrong_end"] = True
        self._correct(item.trial.id, outcome_body, why.strip())
        return {"said": f"the outcome of {item.trial.episode} is corrected"}

    def _item(self, trial: Json) -> Item:
        for item in self._load():
            if item.trial.id == trial:
                return item
        raise InputError(f"no scored episode of a trial {trial!r} is to be reviewed; load the page again")

    def _video(self, asked: PageRequest) -> Answer:
        return Answer(self._recorded.video(asked.parts["episode"], asked.parts["camera"]), "video/mp4")


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


def _template(name: str) -> bytes:
    return importlib.resources.files("labctl.pages").joinpath("templates", name).read_bytes()


def _file(name: str, kind: str) -> Callable[[PageRequest], Answer]:
    return lambda _: Answer(_template(name), kind)
