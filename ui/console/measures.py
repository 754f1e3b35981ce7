"""A task that is not counted in items, on the screen and in the form that scores it: stages, yes or no, or a rubric;
and which of two episodes was better.

May not: send anything, or decide what an outcome may be (`labctl.core.outcome` does).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Label

from labctl.core.published_state import Compare
from labctl.core.task import ITEMS, SCORE, SUCCESS
from labctl.errors import LabctlError
from labctl.messages.judgements import PreferenceStated
from labctl.plain import count
from labctl.ui.console.asking import AskScore, ToScore
from labctl.ui.console.form import Answer, Form, Line, Options, Unfit
from labctl.ui.console.link import Json
from labctl.ui.console.picture import Photos, Picture

BESIDE = 3  # pictures of a rubric in a row


def form(
    about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False, photos: Photos | None = None
) -> AskScore:
    """The form that scores an episode by the measure of its task. photos: the pictures of a rubric's anchors."""
    if about["measure"] == SCORE:
        return AskRubric(about, given, why=why, photos=photos)
    return (AskScore if about["measure"] == ITEMS else AskStages)(about, given, why=why)


class AskStages(AskScore):
    """The furthest stage that was reached, or whether the task was done; the moments that were seen are kept."""

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> None:
        measured = about["measured"]
        seen: Json = list(measured["reached_s"] or ()) if measured else []
        super().__init__(about, given or {"reached_s": seen}, why=why)
        times = self._given.get("reached_s")
        self._answered = given is not None and isinstance(times, list | tuple)  # an answer stands already
        self._seen: list[Json] = list(times) if isinstance(times, list | tuple) else []
        if not why:
            done = self._about["measure"] == SUCCESS
            self.title_text = "Score this episode: was it done?" if done else "Score this episode: how far did it get?"
        self.keys_text = "A: all of it was done"

    def outcome_fields(self) -> Iterator[Widget]:
        if self._about["measure"] == SUCCESS:
            yield Label("was the task done?")
            options = [(f"yes{self._when(1)}", "1")]
        else:
            yield Label("furthest stage reached: each counts only after those before it")
            options = []
            for number, step in enumerate(self._about["steps"], 1):
                words = f"{step['name']} ({count(step['points'], 'point')}): {step['definition']}"
                options.append((f"{words}{self._when(number)}", str(number)))
        options.append(("no" if self._about["measure"] == SUCCESS else "none of them", "0"))  # a number is its key
        yield Options(options, id="reached", taken=[str(len(self._seen))] if self._seen or self._answered else [])

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
        reached = int(self.choice("reached", "nothing was seen: choose how far it got, by its number"))
        return {"reached_s": [*self._seen[:reached], *[None] * (reached - len(self._seen))]}


class AskRubric(AskScore):
    """A number from 0 to 1, with what the rubric says of some of them, and its pictures."""

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None, *, why: bool, photos: Photos | None) -> None:
        self._photos = photos
        measured = about["measured"]
        proposed: Json = measured["score"] if measured else None
        super().__init__(about, given or {"score": proposed}, why=why)
        if not why:
            self.title_text = "Score this episode by the rubric"
        self.keys_text = ""

    def outcome_fields(self) -> Iterator[Widget]:
        for anchor in self._about["rubric"]:
            yield Label(f"{anchor['score']:g}: {anchor['text']}", markup=False)
        shown = list(self._pictures())
        for row in range(0, len(shown), BESIDE):
            yield Horizontal(*shown[row : row + BESIDE], classes="anchors")
        yield Label("score, from 0 to 1; between two of these where it lies between them")
        score = self._given.get("score")
        yield Line(f"{score:g}" if isinstance(score, int | float) else "", id="score", type="number")

    def _pictures(self) -> Iterator[Widget]:
        """Each under its score; in place of one that is not as it was kept, why."""
        for anchor in self._about["rubric"]:
            if "picture" not in anchor or self._photos is None:
                continue
            picture, score = Picture(), f"{anchor['score']:g}"
            try:
                picture.put(self._photos(anchor["picture"]))
            except LabctlError as error:
                yield Vertical(Label(f"{score}: {error}", markup=False))
            else:
                yield Vertical(Label(score, markup=False), picture)

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


class AskPreference(Form):
    """Which of two episodes of a block was better, or neither, with a sentence."""

    ok_text = "Record"

    def __init__(self, pair: Compare, given: PreferenceStated | None = None) -> None:
        super().__init__()
        self._pair, self._given = pair, given
        self.of = lambda state: str(state["compare"])
        self.overtaken = lambda state, about: "which of the two was better was said meanwhile, at another console"
        self.title_text = f"Block {pair['block'] + 1}: {pair['question']}"

    def fields(self) -> Iterator[Widget]:
        (first, second), trials = self._pair["places"], self._pair["trials"]
        options = [
            (f"the earlier one: {trials[0]}, episode {first} of the block", "first"),
            (f"the later one: {trials[1]}, episode {second} of the block", "second"),
            ("neither: they were alike", "neither"),
        ]
        yield Options(options, id="preferred", taken=[self._given["preferred"]] if self._given else [])
        yield Label("why? a sentence on what made the difference, or why there is none")
        yield Line(self._given["why"] if self._given else "", id="why")

    def answer(self) -> Answer:
        missing = "choose the earlier, the later or neither: its number, or x on its line"
        preferred = self.choice("preferred", missing)
        pair = {"first": self._pair["first"], "second": self._pair["second"]}
        return {**pair, "preferred": preferred, "why": self.reason()}
