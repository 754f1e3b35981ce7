"""What the assessor's screens have in common: a form's keys come first, no key is silent, one line answers.

May not: know what is reviewed.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.app import App
from textual.events import Event, Key
from textual.screen import ModalScreen
from textual.widgets import Static

from labctl.errors import LabctlError
from labctl.ui.console.form import Answer, Form
from labctl.ui.review.filmstrip import Filmstrip


class Reviewing(App[str]):
    """See the module. Whoever is one has a Static `said` and a Filmstrip; ENTER and the arrows belong to the form while
    one is open.
    """

    CSS_PATH = "../console/console.tcss"

    async def on_event(self, event: Event) -> None:
        """As at the console: a form's own keys come first, and no key is silent."""
        if isinstance(event, Key) and not event.is_forwarded:
            if isinstance(self.screen, Form) and self.screen.take(event):
                return
            if not isinstance(self.screen, ModalScreen) and event.key not in self.screen.active_bindings:
                self._say(f"{event.key} does nothing; the keys stand below", wrong=True)
        await super().on_event(event)

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
            if answer is not None:
                answered(answer)

        self.push_screen(form, left)
