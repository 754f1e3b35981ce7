"""The pages beside the first screen: what is wrong, the session, the cell, a person's device, what was done, the way to
the report, the keys. They follow the run like the first screen does.

May not: offer an act, keep a state of their own, or show an outcome, a latency or a policy's rate to blind people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Label, Static

from labctl.core.published_state import PublishedState
from labctl.ui.console import words
from labctl.ui.console.keyrow import KeyRow

Rows = Sequence[Sequence[str]]
State = PublishedState | None  # None: nothing was published yet


class Page(Screen[None]):
    """A page with a title. Escape goes back."""

    BINDINGS: ClassVar = [("escape", "app.pop_screen", "back")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        yield Label(self._title, id="header", markup=False)
        yield from self.body()
        yield Static("", id="said", markup=False)
        yield KeyRow()

    def body(self) -> ComposeResult:
        yield from ()

    def draw(self, state: State) -> None:
        """Draw what the run published last."""

    def say(self, text: str, *, wrong: bool = False) -> None:
        """One line: the answer to the last key."""
        label = self.query_one("#said", Static)
        label.update(text)
        label.set_class(wrong, "wrong")


class Table(Page):
    """A page that is a table; its rows come from the state."""

    def __init__(self, title: str, columns: Sequence[str], rows: Callable[[State], Rows]) -> None:
        super().__init__(title)
        self._columns, self._rows = columns, rows
        self._drawn: Rows | None = None

    def body(self) -> ComposeResult:
        yield DataTable(cursor_type="row", zebra_stripes=True)

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns(*self._columns)

    def draw(self, state: State) -> None:
        rows = self._rows(state)
        if rows == self._drawn:
            return
        table, self._drawn = self.query_one(DataTable), rows
        at = table.cursor_row
        table.clear()
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        table.move_cursor(row=at)


class Lines(Page):
    """A page of plain lines, wrapped; they come from the state."""

    def __init__(self, title: str, lines: Callable[[State], Sequence[str]]) -> None:
        super().__init__(title)
        self._lines = lines

    def body(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static("", id="lines", markup=False)

    def draw(self, state: State) -> None:
        lines, text = self.query_one("#lines", Static), "\n".join(self._lines(state))
        if str(lines.content) != text:
            lines.update(text)


def page(name: str, keys: Rows = ()) -> Page:
    """A page by name: holds, session, cell, hand, history, report, or keys with the rows given."""
    match name:
        case "holds":
            return Lines("what stands against going on", words.holds)
        case "session":
            return Lines("the session", words.session)
        case "hand":
            return Lines("driven by hand", words.hand)
        case "report":
            return Lines("from here to the report", words.path)
        case "cell":
            return Table("the cell", ("device", "what it says", "last recording", "state"), words.cell)
        case "history":
            columns = ("trial", "block", "condition", "state", "voids")
            return Table("what was done (no outcomes: they would be a running score)", columns, words.history)
    return Table("the keys", ("key", "does"), lambda state: keys)
