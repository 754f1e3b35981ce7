"""A task that is not counted in items, on the screen and in the form that scores it: stages, yes or no, or a rubric.

May not: send anything, or decide what an outcome may be (`labctl.core.outcome` does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from labctl.ui.console.asking import AskScore, ToScore
from labctl.ui.console.form import Answer, Line, Options, Unfit
from labctl.ui.console.link import Json
from textual.widget import Widget
from textual.widgets import Label

from labctl.core.task import ITEMS, SCORE, SUCCESS
from labctl.plain import count


def form(about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> AskScore:
    """The form that scores an episode by the measure of its task."""
    made = {ITEMS: AskScore, SCORE: AskRubric}.get(about["measure"], AskStages)
    return made(about, given, why=why)


class AskStages(AskScore):
    """The furthest stage that was reached, or whether the task was done; the moments that were seen are kept."""

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> None:
        measured = about["measured"]
        seen: Json = list(measured["reached_s"] or ()) if measured else []
        super().__init__(about, given or {"reached_s": seen}, why=why)
        times = self._given.get("reached_s")
        self._seen: list[Json] = list(times) if isinstance(times, list | tuple) else []
        if not why:
            done = self._about["measure"] == SUCCESS
            self.title_text = "Score this episode: was it done?" if done else "Score this episode: how far did it get?"
        self.keys_text = "A: all of it was done"

    def outcome_fields(self) -> Iterator[Widget]:
        if self._about["measure"] == SUCCESS:
            yield Label("was the task done?")
            options = [("no", "0"), (f"yes{self._when(1)}", "1")]
        else:
            yield Label("furthest stage reached: each counts only after those before it")
            options = [("none of them", "0")]
            for number, step in enumerate(self._about["steps"], 1):
                words = f"{step['name']} ({count(step['points'], 'point')}): {step['definition']}"
                options.append((f"{words}{self._when(number)}", str(number)))
        yield Options(options, id="reached", taken=[str(len(self._seen))])

    def _when(self, number: int) -> str:
        seconds = self._seen[number - 1] if number <= len(self._seen) else None
        return f", seen at {seconds:.1f} s" if isinstance(seconds, int | float) else ""

    def key_of(self, key: str) -> str:
        """A: the last stage was reached."""
        if key != "a":
            return ""
        self.query_one("#reached", Options).put([str(len(self._about["steps"]))])
        return "all of it was done"

    def answer_outcome(self) -> Answer:
        reached = int(self.chosen("reached") or 0)
        return {"reached_s": [*self._seen[:reached], *[None] * (reached - len(self._seen))]}


class AskRubric(AskScore):
    """A number from 0 to 1, with what the rubric says of some of them."""

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> None:
        measured = about["measured"]
        proposed: Json = measured["score"] if measured else None
        super().__init__(about, given or {"score": proposed}, why=why)
        if not why:
            self.title_text = "Score this episode by the rubric"
        self.keys_text = ""

    def outcome_fields(self) -> Iterator[Widget]:
        for anchor in self._about["rubric"]:
            yield Label(f"{anchor['score']:g}: {anchor['text']}", markup=False)
        yield Label("score, from 0 to 1; between two of these where it lies between them")
        score = self._given.get("score")
        yield Line(f"{score:g}" if isinstance(score, int | float) else "", id="score", type="number")

    def key_of(self, key: str) -> str:
        return ""

    def answer_outcome(self) -> Answer:
        try:
            score = float(self.text("score"))
        except ValueError:
            raise Unfit("score", "give the score, a number from 0 to 1") from None
        if not 0 <= score <= 1:
            raise Unfit("score", f"the score is {score:g}; it must be from 0 to 1, as the rubric has it")
        return {"score": score}
