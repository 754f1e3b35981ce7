"""The row of keys at the foot of a screen.

May not: be a widget for each key, as Textual's own Footer is: to make those anew takes longer than all else that a key
press brings about.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.css.scalar import Scalar
from textual.events import Resize
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

GAP = Content("  ")


class KeyRow(Static):
    """The keys that can do something now, each with what it does; a click on one is the key."""

    def __init__(self, rows: int = 1) -> None:
        """rows: on how many the keys may stand where one has no room for them."""
        super().__init__("", id="keys")
        self._rows = rows

    def on_mount(self) -> None:
        self._row: list[Content] = []
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def on_resize(self, event: Resize) -> None:
        self._put(event.size.width)

    def _put(self, width: int) -> None:
        found = lines(self._row, width, self._rows)
        self.update(Content("\n").join(found), layout=False)
        if self._rows > 1 and self.styles.height != Scalar.from_number(len(found)):
            self.styles.height = len(found)

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
        self._put(self.size.width)


def lines(row: Sequence[Content], width: int, rows: int) -> list[Content]:
    """The keys on at most so many lines, each as full as whole keys make it; at least one line."""
    found, left = [fitting(row, width)], list(row)
    while len(found) < rows and 0 < width < GAP.join(left).cell_length:
        left = left[len(found[-1].plain.split(GAP.plain)) :]
        found.append(fitting(left, width))
    return found


def fitting(row: Sequence[Content], width: int) -> Content:
    """As many whole keys as there is room for, from the left (0: no room is known yet); all of them stand on the page
    of keys, which is the second.
    """
    shown = list(row)
    while len(shown) > 1 and 0 < width < GAP.join(shown).cell_length:
        shown.pop()
    return GAP.join(shown)
