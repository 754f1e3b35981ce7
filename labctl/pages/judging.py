"""A second assessor's page: episode by episode the videos and the task, and what they say of it.

May not: show what was scored, proposed or counted, why or when an episode ended, an arm or another assessor, or write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from labctl.core.reviewed import Unseen
from labctl.errors import InputError
from labctl.pages.measured import measure_shown, posted
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.reviewing import films, template, templates
from labctl.pages.server import Answer, PageRequest, Routes, as_json
from labctl.plain import Json

FILES = ("common.js", "measured.js", "second.js", "review.css")


class SecondPage:
    """`load` gives what is left anew; `judge(trial, outcome)` writes and may raise LabctlError, whose line the page
    shows.
    """

    def __init__(
        self,
        campaign: str,
        recorded: RecordedVideos,
        load: Callable[[], Sequence[Unseen]],
        judge: Callable[[str, Mapping[str, Json]], None],
    ) -> None:
        self._campaign, self._recorded, self._load, self._judge = campaign, recorded, load, judge

    def routes(self) -> Routes:
        """What the page asks for."""
        return {
            "GET /": lambda _: Answer(template("second.html"), "text/html"),
            **templates(FILES),
            "GET /queue": lambda _: as_json(self.queue()),
            "GET /episode/{trial}": lambda asked: as_json(self.episode(self._unseen(asked.parts["trial"]))),
            "GET /video/{episode}/{camera}": self._video,
            "GET /anchor/{trial}/{place}": self._anchor,
            "POST /judge": lambda asked: as_json(self.judge(asked.body)),
        }

    def queue(self) -> Json:
        """Every episode that waits for this assessor."""
        return {"campaign": self._campaign, "episodes": [{"trial": one.trial} for one in self._load()]}

    def episode(self, one: Unseen) -> Json:
        """One episode; the times of its pictures in s since go."""
        reels, last_s, missing = films(self._recorded, one.episode)
        return {
            "trial": one.trial,
            "episode": one.episode,
            "staged": one.task.items,
            "instruction": one.task.instruction,
            "task": measure_shown(one.task, None),
            "length_s": last_s,
            "reels": reels,
            "missing": missing,
        }

    def judge(self, body: Mapping[str, Json]) -> Json:
        """Have what the assessor says of an episode journalled."""
        one = self._unseen(body.get("trial"))
        self._judge(one.trial, posted(one.task, body))
        return {"said": f"{one.episode} is judged"}

    def _unseen(self, trial: Json) -> Unseen:
        for one in self._load():
            if one.trial == trial:
                return one
        raise InputError(f"no episode of a trial {trial!r} waits for you; load the page again")

    def _video(self, asked: PageRequest) -> Answer:
        return Answer(self._recorded.video(asked.parts["episode"], asked.parts["camera"]), "video/mp4")

    def _anchor(self, asked: PageRequest) -> Answer:
        task = self._unseen(asked.parts["trial"]).task
        return Answer(self._recorded.anchor(task, asked.parts["place"]), "image/png")
