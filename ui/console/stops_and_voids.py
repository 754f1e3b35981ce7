"""Questions about what went wrong: why an episode does not count, who stands behind that, what was behind a stop.

May not: send anything, or say which cause of a stop counts against an arm.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual.widget import Widget
from textual.widgets import Label

from labctl.core.events import STOP_BY_HAND, STOP_CODES
from labctl.core.published_state import Confirmed, PublishedState
from labctl.ui.console.asking import Confirm
from labctl.ui.console.form import Answer, Form, Line, Options, Unfit
from labctl.ui.console.words import trial_or_block, words_of

NO_REASON = "choose a reason: its number, or x on its line"


class AskVoid(Form):
    """Why this episode does not count. After go it takes a machine's event or a second person."""

    ok_text = "Void"
    of_episode = True

    def __init__(self, state: PublishedState, confirmed: Callable[[], Sequence[Confirmed]] | None = None) -> None:
        """confirmed: who has confirmed it by now (None: who had when it opened)."""
        super().__init__()
        last = "the protocol allows no further attempt, its trial is skipped"
        self.title_text = f"Void this episode: {last if state['last_void'] else 'it is run again with the same arm'}"
        self._reasons = state["rules"]["void_reasons"]
        self._evidence, self.words = state["evidence"], state["needs_second"]
        self._with_code, self._confirmed = state["with_code"], confirmed or (lambda: state["confirmed"])

    def fields(self) -> Iterator[Widget]:
        yield Label("reason (the protocol's)")
        yield Options([(words_of(reason), reason) for reason in self._reasons], id="reason")
        if self.words:
            yield Label("no machine event stands behind it: a second person confirms (id)")
            yield Line(id="second")
            for confirmed in self._confirmed():
                reason = words_of(confirmed["reason"])
                yield Label(f"{confirmed['by']} confirmed at a console: {reason}", markup=False)
            if self._with_code:
                yield Label(f"personal code, typed by that person ({', '.join(self._with_code)})", markup=False)
                yield Line(id="code", password=True)

    def answer(self) -> Answer:
        reason = self.choice("reason", NO_REASON)
        answer: Answer = {"reason": reason}
        if self.words:
            second = self.needed("second", "the second person's id")
            answer["confirmed_by"] = second
            if second in self._with_code:
                answer |= self._code(second, reason)
        elif self._evidence is not None:
            answer["evidence"] = self._evidence
        return answer

    def _code(self, second: str, reason: str) -> Answer:
        """The code of whoever has one; none where that person confirmed this reason at a console."""
        code = self.text("code")
        if code:
            return {"personal_code": code}
        if {"by": second, "reason": reason} not in self._confirmed():
            raise Unfit("code", f"{second} types the personal code here, or confirms at another console (y)")
        return {}


class AskConfirm(Form):
    """A second person's word, at a console of their own, that an episode is to be void."""

    ok_text = "Confirm"
    words = False
    of_episode = True

    def __init__(self, state: PublishedState, who: str) -> None:
        super().__init__()
        self.title_text = f"{who} confirms, as the second person, that this episode is void"
        self._reasons, self._episode = state["rules"]["void_reasons"], state["episode"]

    def fields(self) -> Iterator[Widget]:
        yield Label("reason (the protocol's; the same as at the console that voids it)")
        yield Options([(words_of(reason), reason) for reason in self._reasons], id="reason")

    def answer(self) -> Answer:
        return {"episode": self._episode, "reason": self.choice("reason", NO_REASON)}


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
        self.of, self.overtaken = partial(standing, code), partial(_otherwise, code)

    def fields(self) -> Iterator[Widget]:
        yield Label(self._text, markup=False)
        if self._by_hand:
            yield Label("what was the cause?")
            yield Options([(words, cause) for cause, words in self._CAUSES.items()], id="cause")
        yield Label("why was it stopped?")
        yield Line(id="why")
        if not self._by_hand:
            yield Label("was there contact?")
            yield Options([("there was contact with a person or a thing", "contact")], id="contact", many=True)

    def answer(self) -> Answer:
        if not self._by_hand:
            return {"code": self._code, "why": self.reason(), "contact": bool(self.ticked("contact"))}
        cause = self.choice("cause", "choose the cause: its number, or x on its line")
        return {"code": self._code, "cause": cause, "why": self.reason()}


class ConfirmHold(Confirm):
    """Is the cause of a hold gone, or is one that was asked for not wanted any more? Yes or back."""

    def __init__(self, code: str, title: str, ok: str) -> None:
        super().__init__(title, ok)
        self.of, self.overtaken = partial(standing, code), partial(_otherwise, code)


def standing(code: str, state: PublishedState) -> Hashable:
    """The hold that stands by this code, if one does: what it says and the entry that raised it."""
    if code in state["waiting"]:
        return code
    return next(((hold["text"], hold["raised"]) for hold in state["holds"] if hold["code"] == code), None)


def _otherwise(code: str, state: PublishedState, about: Hashable) -> str:
    """Why a form about a hold is closed once that does not stand as it did."""
    now = next((hold["text"] for hold in state["holds"] if hold["code"].endswith(code)), None)
    return "that was acknowledged or let go meanwhile" if now is None else f"this stands now: {now}"


class ToAcknowledge(NamedTuple):
    """A hold that waits for a person. asked_for: by one, to begin later; raised: the entry that raised it."""

    code: str
    text: str
    raised: int | None = None
    asked_for: bool = False

    @property
    def args(self) -> Answer:
        """What names it in an order."""
        return {"code": self.code} if self.raised is None else {"code": self.code, "raised": self.raised}

    @property
    def done(self) -> str:
        """What is said once it is acknowledged."""
        return "let go of" if self.asked_for else "acknowledged; if its cause is still there, it comes back"

    def form(self) -> Form:
        """What is asked before."""
        if self.asked_for:
            return ConfirmHold(self.code, f"{self.text}\n\nIs it not wanted any more?", "Let go")
        if self.code.endswith(STOP_CODES):
            return AskStop(self.code, self.text)
        return ConfirmHold(self.code, f"{self.text}\n\nHave you looked, and is the cause gone?", "Acknowledge")


def to_acknowledge(state: PublishedState) -> ToAcknowledge | None:
    """What A is about now: what happened before what was asked for."""
    found = [
        ToAcknowledge(hold["code"], hold["text"], hold["raised"]) for hold in state["holds"] if hold["needs_person"]
    ]
    found += [
        ToAcknowledge(code, f"a hold after this {trial_or_block(code)} was asked for", asked_for=True)
        for code in state["waiting"]
    ]
    return found[0] if found else None
