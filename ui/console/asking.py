"""Questions over the screen: people and roles, why, how many. Each answers with the arguments of a command, or None.

May not: send anything, or let an answer through that contradicts itself: the form says what is wrong and stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, TypedDict

from labctl.ui.console.acts import ROLES
from labctl.ui.console.link import Json
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Input, Label, Select, SelectionList

from labctl.core.events import STOP_BY_HAND
from labctl.core.published_state import Proposal, PublishedState

Answer = dict[str, Json]
LOW = 36  # rows below which a form leaves out its frames: all of it is on the screen


class ToScore(TypedDict):
    """What a form needs to score an episode: items staged, stages and tags of the protocol, the operator's own count,
    the items that the devices' events propose, the end reason.
    """

    items: int
    stages: Sequence[str]
    tags: Sequence[str]
    counted: int
    proposal: Proposal | None
    ended: str | None


def to_score(state: PublishedState) -> ToScore:
    """What is to be scored now."""
    rules = state["rules"]
    return {
        "items": rules["items"],
        "stages": rules["stages"],
        "tags": rules["tags"],
        "counted": state["counted"],
        "proposal": state["proposal"],
        "ended": state["ended"],
    }


class Line(Input):
    """A line of text whose corrections happen in the order they were typed: as bindings they would come after what was
    typed behind them while the screen was busy.
    """

    async def _on_key(self, event: Key) -> None:
        if event.key in ("backspace", "delete"):
            event.stop()
            event.prevent_default()
            self.action_delete_left() if event.key == "backspace" else self.action_delete_right()
            return
        await super()._on_key(event)


class Form(ModalScreen[Answer | None]):
    """A titled form with an OK and a way out. Subclasses give `fields` and `answer`, which raises ValueError with the
    line to show.
    """

    BINDINGS: ClassVar = [("escape", "leave", "back"), ("ctrl+s", "accept", "ok")]
    title_text = ""
    ok_text = "OK"

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="form"):
            yield Label(self.title_text, id="form-title", markup=False)
            yield from self.fields()
            yield Label("", id="wrong", markup=False)
            with Horizontal(id="form-buttons"):
                yield Button(f"{self.ok_text}  (ctrl+s)", id="ok", variant="primary")
                yield Button("Back  (esc)", id="back")

    def on_resize(self) -> None:
        self.set_class(self.app.size.height < LOW, "low")

    def fields(self) -> Iterator[Widget]:
        yield from ()

    def answer(self) -> Answer:
        return {}

    def on_mount(self) -> None:
        first = self.query("Input, Select, Checkbox, SelectionList")
        (first.first() if first else self.query_one("#ok")).focus()

    @on(Button.Pressed, "#back")
    def action_leave(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#ok")
    @on(Input.Submitted)
    def action_accept(self) -> None:
        try:
            answer = self.answer()
        except ValueError as error:
            self.query_one("#wrong", Label).update(str(error))
            return
        self.dismiss(answer)

    def text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value.strip()

    def needed(self, name: str, what: str) -> str:
        found = self.text(name)
        if not found:
            raise ValueError(f"{what} is empty; write a few words")
        return found

    def ticked(self, name: str) -> bool:
        return self.query_one(f"#{name}", Checkbox).value

    def chosen(self, name: str) -> str | None:
        value = self.query_one(f"#{name}", Select).value
        return value if isinstance(value, str) else None


class AskSession(Form):
    """Who is here in which role, and the checks of an evening's opening."""

    title_text = "Open the session: who is here, and is the cell as it should be?"
    ok_text = "Open"

    def __init__(self, state: PublishedState, who: str) -> None:
        super().__init__()
        self._checks: Sequence[str] = state["checks"]
        self._who = who

    def fields(self) -> Iterator[Widget]:
        for role in ROLES:
            yield Label(f"{role} (opaque ids, several with commas)")
            yield Line(self._who, id=f"role-{role}", placeholder="an id such as p07")
        for index, check in enumerate(self._checks):
            yield Checkbox(Content(check), id=f"check-{index}")

    def answer(self) -> Answer:
        roles: dict[str, list[str]] = {}
        for role in ROLES:
            for person in filter(None, (part.strip() for part in self.text(f"role-{role}").split(","))):
                roles.setdefault(person, []).append(role)
        if not any("operator" in taken for taken in roles.values()):
            raise ValueError("nobody is the operator; give at least one id")
        missing = [check for index, check in enumerate(self._checks) if not self.ticked(f"check-{index}")]
        if missing:
            raise ValueError(f"not yet answered: {', '.join(missing)}")
        people = [{"id": person, "roles": taken} for person, taken in roles.items()]
        return {"people": people, "checks": {check: True for check in self._checks}}


class AskTouch(Form):
    """What a hand did in a running episode."""

    title_text = "The hand is out again: what did it do?"
    _WORDS: ClassVar = {
        "hand_in_scene": "a hand in the scene",
        "reset": "put something back, or nudged it",
        "take_over": "took over the arm",
        "other": "something else",
    }

    def fields(self) -> Iterator[Widget]:
        yield Select([(words, kind) for kind, words in self._WORDS.items()], id="kind", value="hand_in_scene")
        yield Line("", id="note", placeholder="a note (may stay empty)")

    def answer(self) -> Answer:
        return {"kind": self.chosen("kind") or "other", "note": self.text("note")}


class AskText(Form):
    """One line of text, such as a reason or a note."""

    def __init__(self, title: str, name: str, *, ok: str = "OK", needed: bool = True) -> None:
        super().__init__()
        self.title_text, self.ok_text = title, ok
        self._name, self._needed = name, needed

    def fields(self) -> Iterator[Widget]:
        yield Line(id="line")

    def answer(self) -> Answer:
        return {self._name: self.needed("line", "the line") if self._needed else self.text("line")}


class AskVoid(Form):
    """Why this episode does not count. After go it takes a machine's event or a second person."""

    title_text = "Void this episode: it is run again with the same arm"
    ok_text = "Void"

    def __init__(self, state: PublishedState) -> None:
        super().__init__()
        self._reasons = state["rules"]["void_reasons"]
        self._after_go = state["trial_state"] == "scoring"
        self._evidence = state["evidence"]

    def fields(self) -> Iterator[Widget]:
        yield Label("reason (the protocol's)")
        yield Select([(reason, reason) for reason in self._reasons], id="reason")
        if self._after_go and self._evidence is None:
            yield Label("no machine event stands behind it: a second person confirms (id)")
            yield Line(id="second")

    def answer(self) -> Answer:
        reason = self.chosen("reason")
        if reason is None:
            raise ValueError("choose a reason")
        answer: Answer = {"reason": reason}
        if self._after_go and self._evidence is None:
            answer["confirmed_by"] = self.needed("second", "the second person's id")
        elif self._after_go:
            answer["evidence"] = self._evidence
        return answer


class AskStop(Form):
    """What stands behind a stop, before anything moves again. Of a stop by hand one cause is chosen; which of them
    count against an arm is not shown.
    """

    title_text = "The robot was stopped. Look at the cell first."
    ok_text = "Acknowledge"
    _CAUSES: ClassVar = {
        "danger": "danger: it would have hit something or somebody",
        "contact": "contact: it touched a person or a thing",
        "mistaken_key": "a mistaken key: nothing was wrong",
    }

    def __init__(self, code: str, text: str) -> None:
        super().__init__()
        self._code, self._text = code, text
        self._by_hand = code.endswith(STOP_BY_HAND)

    def fields(self) -> Iterator[Widget]:
        yield Label(self._text, markup=False)
        if self._by_hand:
            yield Label("what was the cause?")
            yield Select([(words, cause) for cause, words in self._CAUSES.items()], id="cause")
        yield Label("why was it stopped?")
        yield Line(id="why")
        if not self._by_hand:
            yield Checkbox("there was contact with a person or a thing", id="contact")

    def answer(self) -> Answer:
        if not self._by_hand:
            return {"code": self._code, "why": self.needed("why", "why"), "contact": self.ticked("contact")}
        cause = self.chosen("cause")
        if cause is None:
            raise ValueError("choose the cause")
        return {"code": self._code, "cause": cause, "why": self.needed("why", "why")}


WRONG_END = (
    "a device ended this episode as all done, which this contradicts: what remains is censored at that end, and a "
    "review looks at it first"
)


class AskScore(Form):
    """The outcome: items moved and lost; what remains follows. `given` fills the form (an undo or the tally)."""

    def __init__(self, about: ToScore, given: Mapping[str, Json] | None = None, *, why: bool = False) -> None:
        super().__init__()
        self._about, self._proposal = about, about["proposal"]
        lost = self._proposal["lost"] if self._proposal else 0
        self._given: Mapping[str, Json] = given or {"moved": about["counted"], "lost": lost}
        self._why = why
        self._done_by_device = about["ended"] == "all_done"
        self.title_text = "Correct the outcome" if why else "Score this episode: count what lies where"
        self.ok_text = "Correct" if why else "Record"

    def fields(self) -> Iterator[Widget]:
        found = self._proposal
        if found:
            yield Label(f"the detector proposes: moved {found['moved']}, lost {found['lost']}")
        for name, what in (("moved", "in the target tote"), ("lost", "lost outside both totes")):
            yield Label(f"items {what}, of {self._about['items']}")
            yield Line(str(self._given.get(name, 0)), id=name, type="integer")
        yield Label("", id="remaining")
        if self._about["stages"]:
            yield Label("furthest stage reached")
            stages = [(stage, stage) for stage in self._about["stages"]]
            yield Select(stages, id="stage")
        if self._about["tags"]:
            yield Label("what went wrong (space ticks)")
            yield SelectionList[str](*((tag, tag) for tag in self._about["tags"]), id="tags")
        yield Label("note (optional)")
        yield Line(id="notes")
        if self._why:
            yield Label("why is it corrected?")
            yield Line(id="why")

    @on(Input.Changed, "#moved, #lost")
    def tell_remaining(self) -> None:
        try:
            left = self.answer_counts()["remaining"]
        except ValueError as error:
            self.query_one("#remaining", Label).update(str(error))
        else:
            disputed = f"; {WRONG_END}" if left and self._done_by_device else ""
            self.query_one("#remaining", Label).update(f"so {left} remain in the source tote{disputed}")

    def answer_counts(self) -> dict[str, int]:
        items = self._about["items"]
        moved, lost = (int(self.text(name) or -1) for name in ("moved", "lost"))
        if moved < 0 or lost < 0:
            raise ValueError("moved and lost are whole numbers, 0 or more")
        if moved + lost > items:
            raise ValueError(f"moved {moved} + lost {lost} is more than the {items} items staged; count again")
        return {"items_staged": items, "moved": moved, "lost": lost, "remaining": items - moved - lost}

    def answer(self) -> Answer:
        answer: Answer = {**self.answer_counts(), "notes": self.text("notes")}
        if answer["remaining"] and self._done_by_device:
            answer["wrong_end"] = True
        if self._about["stages"]:
            answer["stage_reached"] = self.chosen("stage")
            if answer["stage_reached"] is None:
                raise ValueError("choose the furthest stage reached")
        if self._about["tags"]:
            answer["tags"] = list(self.query_one("#tags", SelectionList).selected)
        if self._why:
            answer["why"] = self.needed("why", "why")
        return answer


class AskGuess(Form):
    """Which arm was it? Asked when the protocol does; nobody tells whether the guess is right."""

    title_text = "Which of the candidates was this, do you think? (for the blinding index; nothing depends on it)"

    def __init__(self, candidates: Sequence[str]) -> None:
        super().__init__()
        self._candidates = candidates

    def fields(self) -> Iterator[Widget]:
        yield Select([("cannot tell", ""), *((name, name) for name in self._candidates)], id="guess", allow_blank=False)

    def answer(self) -> Answer:
        return {"guess": self.chosen("guess") or None}


class Confirm(Form):
    """Yes or back."""

    def __init__(self, title: str, ok: str) -> None:
        super().__init__()
        self.title_text, self.ok_text = title, ok

    def on_mount(self) -> None:
        self.query_one("#ok").focus()
