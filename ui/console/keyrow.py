"""The row of keys at the foot of a screen.

May not: be a widget for each key, as Textual's own Footer is: to make those anew takes longer than all else that a key
press brings about.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

GAP = Content("  ")


class KeyRow(Static):
    """The keys that can do something now, each with what it does; a click on one is the key."""

    def __init__(self) -> None:
        super().__init__("", id="keys")

    def on_mount(self) -> None:
        self._row: list[Content] = []
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def on_resize(self, event: Resize) -> None:
        self.update(fitting(self._row, event.size.width), layout=False)

    def _changed(self, screen: Screen[object]) -> None:
        if not self.is_attached or screen is not self.screen:
            return
        row: dict[str, Content] = {}
        for _, binding, enabled, _ in screen.active_bindings.values():
            if binding.show and enabled and binding.action not in row:
                key, does = self.app.get_key_display(binding), binding.description
                text = Content.from_markup("[b $footer-key-foreground]$key[/] $does", key=key, does=does)
                row[binding.action] = text.stylize(Style.from_meta({"@click": f"app.simulate_key({binding.key!r})"}))
        self._row = list(row.values())
        self.update(fitting(self._row, self.size.width), layout=False)


def fitting(row: Sequence[Content], width: int) -> Content:
    """As many whole keys as there is room for, from the left (0: no room is known yet); all of them stand on the page
    of keys, which is the second.
    """
    shown = list(row)
    while len(shown) > 1 and 0 < width < GAP.join(shown).cell_length:
        shown.pop()
    return GAP.join(shown)
