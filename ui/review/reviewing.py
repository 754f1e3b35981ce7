"""What the assessor's screens have in common: a form's keys come first, no key is silent, one line answers.

May not: know what is reviewed.
"""

from __future__ import annotations

from textual.app import App
from textual.events import Event, Key
from textual.screen import ModalScreen
from textual.widgets import Static

from labctl.ui.console.form import Form


class Reviewing(App[str]):
    """See the module. Whoever is one has a Static `said`; ENTER and the arrows belong to the form while one is open."""

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

    def _say(self, text: str, *, wrong: bool = False) -> None:
        label = self.query_one("#said", Static)
        label.update(text)
        label.set_class(wrong, "wrong")
