"""Questions over the screen: why, how many. Each answers with the arguments of a command, or None.

May not: send anything, or let an answer through that contradicts itself: the form says what is wrong and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypedDict

from textual import on
from textual.widget import Widget
from textual.widgets import Input, Label

from labctl.core.published_state import Measured, Proposal, PublishedState
from labctl.messages.body_parts import AnchorEntry, StageEntry
from labctl.plain import count
from labctl.ui.console.form import Answer, Form, Line, Options, Unfit
from labctl.ui.console.link import Json

TOUCHES = {
    "hand_in_scene": "a hand in the scene",
    "reset": "put something back, or nudged it",
    "take_over": "took over the robot",
    "other": "something else",
}


def this_trial(state: PublishedState) -> Hashable:
    return state["trial"]


def this_session(state: PublishedState) -> Hashable:
    return state["session"]


def _another(of: Callable[[PublishedState], Hashable], state: PublishedState) -> str:
    """Why a form about a trial or a session is closed once another one has its turn."""
    if of is this_session:
        return f"another session is open meanwhile: {state['session']}" if state["session"] else "the session is closed"
    return "it was about the trial before; another one has its turn"


class ToScore(TypedDict):
    """What a form needs to score an episode: items staged, stages and tags of the protocol, the operator's own count,
    the items that the devices' events propose, the end reason; `marks` are the moments that the operator marked,
    `unsaid` the interventions of which nobody has said what they were; `measure` and what follows are of its task.
    """

    items: int
    stages: Sequence[str]
    tags: Sequence[str]
    counted: int
    proposal: Proposal | None
    ended: str | None
    marks: Sequence[str]
    unsaid: Sequence[int]
    measure: str
    steps: Sequence[StageEntry]
    rubric: Sequence[AnchorEntry]
    measured: Measured | None


def to_score(state: PublishedState, marks: Sequence[str]) -> ToScore:
    """What is to be scored now."""
    rules = state["rules"]
    return {
        "items": rules["items"],
        "stages": rules["stages"],
        "tags": rules["tags"],
        "counted": state["counted"],
        "proposal": state["proposal"],
        "ended": state["ended"],
        "marks": marks,
        "unsaid": state["unsaid"],
        "measure": rules["measure"],
        "steps": rules["steps"],
        "rubric": rules["rubric"],
        "measured": state["measured"],
    }


def touch_fields(number: int) -> Iterator[Widget]:
    """What a hand did in an episode; the answer is `touch_answer`."""
    yield Options([(words, kind) for kind, words in TOUCHES.items()], id=f"kind-{number}", taken=["hand_in_scene"])
    yield Line("", id=f"said-{number}", placeholder="a few words (may stay empty)")


def touch_answer(form: Form, number: int) -> Answer:
    """The arguments of a touch whose times are known already."""
    kind, note = form.chosen(f"kind-{number}") or "other", form.text(f"said-{number}")
    return {"phase": "end", "number": number, "kind": kind, "note": note}


class AskIntervention(Form):
    """What a hand did in an episode that is over."""

    of_episode = True

    def __init__(self, number: int) -> None:
        super().__init__()
        self.title_text = f"What did the hand do? (touch {number + 1} of this episode)"
        self._number = number

    def fields(self) -> Iterator[Widget]:
        yield from touch_fields(self._number)

    def answer(self) -> Answer:
        return touch_answer(self, self._number)


class AskText(Form):
    """One line of text, such as a reason or a note."""

    def __init__(
        self,
        title: str,
        name: str,
        *,
        ok: str = "OK",
        needed: bool = True,
        of: Callable[[PublishedState], Hashable] = this_trial,
    ) -> None:
        super().__init__()
        self.title_text, self.ok_text, self.of = title, ok, of
        self.overtaken = lambda state, about: _another(of, state)
        self._name, self._needed = name, needed

    def fields(self) -> Iterator[Widget]:
        yield Line(id="line")

    def answer(self) -> Answer:
        return {self._name: self.needed("line", "the line") if self._needed else self.text("line")}


WRONG_END = (
    "a device ended this episode as all done, which this contradicts: what remains is censored at that end, and a "
    "review looks at it first"
)


class AskScore(Form):
    """The outcome: items moved and lost; what remains follows. `given` fills the form (an undo or the tally)."""

    of = staticmethod(this_trial)

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> None:
        super().__init__()
        self._about, self._proposal = about, about["proposal"]
        lost = self._proposal["lost"] if self._proposal else 0
        self._given: Mapping[str, Json] = given or {"moved": about["counted"], "lost": lost}
        self._why = why
        self._done_by_device = about["ended"] == "all_done"
        self.title_text = "Correct the outcome" if why else "Score this episode: count what lies where"
        self.ok_text = "Correct" if why else "Record"
        self.keys_text = "A: all moved"

    def fields(self) -> Iterator[Widget]:
        yield from self.outcome_fields()
        if self._about["tags"]:
            yield Label("what went wrong")
            given = self._given.get("tags", ())
            known = [tag for tag in self._about["tags"] if isinstance(given, Sequence) and tag in given]
            yield Options([(tag, tag) for tag in self._about["tags"]], id="tags", many=True, taken=known)
        for number in self._about["unsaid"]:
            yield Label(f"a hand was in it (touch {number + 1}): what did it do?")
            yield from touch_fields(number)
        marked = f": you marked {', '.join(self._about['marks'])}" if self._about["marks"] else " (optional)"
        yield Label(f"note{marked}")
        yield Line(str(self._given.get("notes", "")), id="notes")
        if self._why:
            yield Label("why is it corrected?")
            yield Line(id="why")

    def outcome_fields(self) -> Iterator[Widget]:
        """What is asked by the measure of the task: here, items."""
        found = self._proposal
        if found:
            yield Label(f"the detector proposes: moved {found['moved']}, lost {found['lost']}")
        for name, what in (("moved", "in the target tote"), ("lost", "lost outside both totes")):
            yield Label(f"items {what}, of {self._about['items']}")
            yield Line(str(self._given.get(name, 0)), id=name, type="integer")
        yield Label("", id="remaining")
        if self._about["stages"]:
            yield Label("furthest stage reached")
            stages = [("none of them", ""), *((stage, stage) for stage in self._about["stages"])]
            known = [str(self._given["stage_reached"] or "")] if "stage_reached" in self._given else []
            yield Options(stages, id="stage", taken=known)

    def key_of(self, key: str) -> str:
        """A: every item was moved, and with that the last stage was reached."""
        if key != "a":
            return ""
        self.query_one("#moved", Line).value, self.query_one("#lost", Line).value = str(self._about["items"]), "0"
        if self._about["stages"]:
            self.query_one("#stage", Options).put([self._about["stages"][-1]])
        return f"all moved: {count(self._about['items'], 'item')}"

    @on(Input.Changed, "#moved, #lost")
    def tell_remaining(self) -> None:
        try:
            left = self.answer_counts()["remaining"]
        except ValueError as error:
            self.query_one("#remaining", Label).update(str(error))
        else:
            disputed = f"; {WRONG_END}" if left and self._done_by_device else ""
            self.query_one("#remaining", Label).update(
                f"so {left} {'remains' if left == 1 else 'remain'} in the source tote{disputed}"
            )

    def answer_counts(self) -> dict[str, int]:
        items = self._about["items"]
        moved, lost = (self._count(name) for name in ("moved", "lost"))
        if moved + lost > items:
            raise Unfit(
                "moved", f"moved {moved} + lost {lost} is more than the {count(items, 'item')} staged; count again"
            )
        return {"items_staged": items, "moved": moved, "lost": lost, "remaining": items - moved - lost}

    def answer_outcome(self) -> Answer:
        """What `outcome_fields` gave."""
        answer: Answer = {**self.answer_counts()}
        if answer["remaining"] and self._done_by_device:
            answer["wrong_end"] = True
        if self._about["stages"]:
            stage = self.choice("stage", "choose the furthest stage reached, or none of them")
            answer["stage_reached"] = stage or None
        return answer

    def _count(self, name: str) -> int:
        try:
            count = int(self.text(name))
        except ValueError:
            count = -1
        if count < 0:
            raise Unfit(name, f"{name} is a whole number, 0 or more")
        return count

    def answer(self) -> Answer:
        """The outcome, and as `touches` what the hands did of which nobody had said it."""
        answer: Answer = {**self.answer_outcome(), "notes": self.text("notes")}
        if self._about["tags"]:
            answer["tags"] = self.ticked("tags")
        if self._about["unsaid"]:
            answer["touches"] = [touch_answer(self, number) for number in self._about["unsaid"]]
        if self._why:
            answer["why"] = self.reason()
        return answer


def touches(outcome: Answer) -> list[Answer]:
    """What the hands did, taken out of the answer of a form: each is a command of its own."""
    given = outcome.pop("touches", [])
    return [dict(one) for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []


class AskGuess(Form):
    """Which arm was it? Asked when the protocol does; nobody tells whether the guess is right."""

    words = False

    def __init__(self, candidates: Sequence[str], trial: str | None, place: str) -> None:
        """trial: the one that was scored; place: what people call it ("2 of 48")."""
        super().__init__()
        self._candidates = candidates
        about = f"Trial {place}: which of the candidates was this, do you think?"
        self.title_text = f"{about} (for the blinding index; nothing depends on it)"
        self.of = lambda state: state["trial"] == trial or state["trial_state"] in ("planned", None)
        self.overtaken = lambda state, about: (
            "the next trial is under way; no guess is recorded, and a correction of the score is made in the review"
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.say("recorded; once this form is closed, u undoes it for ten seconds", wrong=False)

    def fields(self) -> Iterator[Widget]:
        names = [(name, name) for name in self._candidates]
        yield Options([("cannot tell", ""), *names], id="guess", taken=[""])

    def answer(self) -> Answer:
        return {"guess": self.chosen("guess") or None}


class Confirm(Form):
    """Yes or back."""

    words = False

    def __init__(self, title: str, ok: str) -> None:
        super().__init__()
        self.title_text, self.ok_text = title, ok
