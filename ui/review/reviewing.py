"""What the assessor's screens have in common: a form's keys come first, no key is silent, what confirms was meant, one
line answers.

May not: know what is reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from textual.app import App
from textual.events import Event, Key
from textual.screen import ModalScreen
from textual.widgets import Static

from labctl.clock import Clock, MonotonicClock
from labctl.errors import LabctlError
from labctl.ui.console.form import Answer, Form
from labctl.ui.console.presses import Presses
from labctl.ui.console.stopping import arrived_ns, with_stop_key
from labctl.ui.review.filmstrip import Filmstrip


class Reviewing(App[str]):
    """See the module. Whoever is one has a Static `said` and a Filmstrip; ENTER and the arrows belong to the form while
    one is open. hands: the clock by which presses are timed.
    """

    CSS_PATH = "../console/console.tcss"
    ENABLE_COMMAND_PALETTE = False  # all that can be done stands in the row of keys

    def __init__(self, hands: Clock | None = None) -> None:
        self.hands = hands or MonotonicClock()
        self._presses = Presses()
        arriving = with_stop_key(self.get_driver_class(), lambda key: False, lambda: None, self.hands)
        super().__init__(driver_class=arriving)

    async def on_event(self, event: Event) -> None:
        """As at the console: a press that nobody can have meant confirms nothing, a form's own keys come first, and no
        key is silent.
        """
        if isinstance(event, Key) and not event.is_forwarded and self._taken(event):
            return
        await super().on_event(event)

    def _taken(self, event: Key) -> bool:
        """Has this key been answered here? Otherwise it goes its way."""
        press = self._presses.take(event.key, arrived_ns(event) or self.hands.now_ns())
        form = self.screen if isinstance(self.screen, Form) else None
        if form is not None:
            form.key_came(pasted=press.pasted)
            if form.accepts(event.key) and (why := press.refusal(order=True)):
                (form.say_of_pasted if press.pasted else form.say)(why)
                return True
            return form.take(event)
        if event.key == "enter" and (why := press.refusal(order=True)):
            self._say(why, wrong=True)
            return True
        if not isinstance(self.screen, ModalScreen) and event.key not in self.screen.active_bindings:
            self._say(f"{event.key} does nothing; the keys stand below", wrong=True)
        return False

    def _shows(self, *offer: Hashable) -> None:
        """From now on a press confirms this."""
        self._presses.shown(offer, self.hands.now_ns())

    def _clicked(self) -> str:
        """Why a click on a form's button does nothing, "" when a person meant it."""
        return self._presses.take("click", self.hands.now_ns()).refusal(order=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not (action in ("confirm", "judge", "shift") and len(self.screen_stack) > 1)

    def action_shift(self, by: int) -> None:
        self.query_one(Filmstrip).shift(by)

    def action_camera(self) -> None:
        self.query_one(Filmstrip).turn()

    def _say(self, text: str, *, wrong: bool = False) -> None:
        label = self.query_one("#said", Static)
        label.update(text)
        label.set_class(wrong, "wrong")

    def _done(self, act: Callable[[], None]) -> bool:
        """Do something that may raise LabctlError, whose line is then shown; whether it was done."""
        try:
            act()
        except LabctlError as error:
            self._say(str(error), wrong=True)
            return False
        return True

    def _asked(self, form: Form, answered: Callable[[Answer], None]) -> None:
        """Open a form; nothing follows when it is left without an answer."""

        def left(answer: Answer | None) -> None:
            self._shows(form, "is closed")
            if answer is not None:
                answered(answer)

        form.clicked = self._clicked
        self.push_screen(form, left)
        self._shows(form)
