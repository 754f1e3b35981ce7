"""A console that scores: the form of an outcome, the guess that may follow it, and ten seconds in which it is undone.

May not: decide what an outcome may be (`labctl.core.outcome` does), or know which key asks for it.
"""

from __future__ import annotations

from labctl.clock import SECOND, Clock
from labctl.core.published_state import PublishedState
from labctl.ui.console import acts, asking, measures
from labctl.ui.console.attached import Attached, Reply, Seat
from labctl.ui.console.form import Answer
from labctl.ui.console.link import Link

UNDO_NS = 10 * SECOND
UNDO = "Undo: score the episode before this trial anew"


class Scoring(Attached):
    """See the module."""

    def __init__(self, link: Link, clock: Clock, seat: Seat) -> None:
        super().__init__(link, clock, seat)
        self._photos = seat.photos
        self._scored: tuple[str, int, Answer, asking.ToScore] | None = None  # trial, until, outcome, what it was of
        self._said = 0  # entries on how that went, by this console alone: what an undo has seen
        self._marks: tuple[str | None, list[str]] = (None, [])  # an episode, when in it something was to be noted

    def may_undo(self) -> bool:
        """Within ten seconds of a score, or as long as an undo that was put aside is kept."""
        if self._scored is None:
            return False
        return self._clock.now_ns() <= self._scored[1] or UNDO in self._drafts

    def _score(self, state: PublishedState, role: str, *, begins_with: str = "") -> None:
        trial, place = str(state["trial"]), acts.number(state)

        def answered(outcome: Answer) -> None:
            def recorded(reply: Reply) -> None:
                candidates = state["rules"]["candidates"]
                if candidates:
                    self._open(asking.AskGuess(candidates, trial, place), guessed, closed=may_undo)
                else:
                    may_undo()

            def may_undo() -> None:
                """The ten seconds begin when nothing is asked any more."""
                self._scored, self._said = (trial, self._clock.now_ns() + UNDO_NS, outcome, about), 1
                self.tell("recorded; u undoes it for ten seconds")

            def guessed(guess: Answer) -> None:
                self.send("guess", role, {"trial": trial, **guess}, any_state=True, done=lambda reply: None)

            for touch in asking.touches(outcome):
                self.send("touch", role, touch, any_state=True)
            self.send("score", role, outcome, done=recorded)

        episode, marks = self._marks
        about = asking.to_score(state, marks if episode == state["episode"] else ())
        form = measures.form(about, photos=self._photos)
        form.of_episode, form.begins_with = True, begins_with
        self._open(form, answered)

    def action_undo(self) -> None:
        """Correct what was just scored."""
        if self._state is None or self._scored is None:
            return
        (trial, _, outcome, of), said = self._scored, self._said
        role = acts.role_among(self._state, self._who, ("operator", "assessor")) or "operator"

        def answered(new: Answer) -> None:
            def corrected(reply: Reply) -> None:
                """What stands now is what another undo begins with."""
                if self._scored is not None and self._scored[0] == trial:
                    self._scored, self._said = (*self._scored[:2], new, of), said + 1
                self.tell("corrected")

            what = {"trial": trial, "why": "undo", "seen": said, **new}
            self.send("correct", role, what, any_state=True, done=corrected)

        about: asking.ToScore = {**of, "proposal": None, "measured": None, "unsaid": (), "marks": ()}
        form = measures.form(about, outcome, photos=self._photos)
        form.title_text = UNDO
        self._open(form, answered)
