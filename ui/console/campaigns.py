"""The campaigns of a lab: where each stands, what happened last, which one to go on with; the making of a report.

May not: run, attach or report by itself; it answers with what was chosen, and has the report made by who opened it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import DataTable, Label, ProgressBar, Static

from labctl.errors import LabctlError
from labctl.ui.console.keyrow import KeyRow

Make = Callable[[str, Callable[[str], None]], Path]


@dataclass(frozen=True, slots=True)
class Entry:
    """One campaign: trials finished and planned, whether a run is going, what its journal says last."""

    name: str
    phase: str
    finished: int
    trials: int
    running: bool
    last: str
    broken: bool = False  # its record does not hold

    @property
    def stands(self) -> str:
        """Its phase, and whether its record holds."""
        return f"{self.phase}, does not hold" if self.broken else self.phase

    @property
    def next(self) -> str:
        """What ENTER does with it."""
        if self.running:
            return "attach"
        if self.broken:
            return ""
        if self.phase == "open":
            return "resume" if self.finished else "begin"
        return "report" if self.phase == "unblinded" else ""


class Report(Screen[None]):
    """A report while it is made: its steps, then where it lies, or why there is none."""

    BINDINGS: ClassVar = [("escape", "app.pop_screen", "back")]

    def __init__(self, name: str, make: Make) -> None:
        super().__init__()
        self._name, self._make = name, make
        self._lines: list[str] = []
        self.failed = False

    def compose(self) -> ComposeResult:
        yield Label(f"the report of {self._name}", id="header", markup=False)
        yield ProgressBar(total=None, show_percentage=False, show_eta=False, id="time")
        with VerticalScroll(id="page"):
            yield Static("", id="lines", markup=False)
        yield KeyRow()

    def on_mount(self) -> None:
        self.made()

    @work(thread=True)
    def made(self) -> None:
        """Make it, in a thread of its own; leaving this page does not end it."""
        try:
            path = self._make(self._name, lambda line: self.app.call_from_thread(self._say, line))
        except LabctlError as error:
            self.failed = True
            self.app.call_from_thread(self._say, f"✖ no report: {error}", 1.0)
        else:
            self.app.call_from_thread(self._say, f"the report lies in\n{path}", 1.0)

    def _say(self, line: str, share: float | None = None) -> None:
        done, _, of = line.partition(" ")[0].partition("/")
        if of.isdigit():
            share = (int(done) - 1) / int(of)
        self._lines.append(line)
        if self.is_attached:
            self.query_one("#lines", Static).update("\n".join(self._lines))
            if share is not None:
                self.query_one("#time", ProgressBar).update(total=1.0, progress=share)


class Campaigns(App[tuple[str, str]]):
    """Ends with (campaign's name, "attach" | "begin" | "resume"), or None. `make(name, say)` makes a report and returns
    where it lies; it may raise LabctlError.
    """

    CSS_PATH = "console.tcss"
    TITLE = "labctl"
    BINDINGS: ClassVar = [
        Binding("enter", "choose", "go on with it", priority=True),
        Binding("q,escape", "quit", "leave"),
    ]

    def __init__(self, entries: Sequence[Entry], make: Make) -> None:
        super().__init__()
        self._entries, self._make = entries, make

    def compose(self) -> ComposeResult:
        yield Label("the campaigns of this lab", id="header")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Label("", id="said", markup=False)
        yield KeyRow()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("campaign", "stands", "trials", "ENTER", "last")
        for entry in self._entries:
            state = "running" if entry.running else entry.stands
            row = (entry.name, state, f"{entry.finished}/{entry.trials}", entry.next, entry.last)
            table.add_row(*(Text(cell) for cell in row))
        table.focus()

    def action_choose(self) -> None:
        if len(self.screen_stack) > 1:
            return
        entry = self._entries[self.query_one(DataTable).cursor_row]
        if not entry.next:
            steps = {"closed": "review and freeze", "reviewed": "freeze", "frozen": "unblind"}
            what = f"labctl verify {entry.name}" if entry.broken else steps.get(entry.phase, "nothing")
            self.query_one("#said", Label).update(f"{entry.name} is {entry.stands}; next: {what}")
            return
        if entry.next == "report":
            if self._failed(entry.name):
                self.uninstall_screen(entry.name)  # it is tried anew
            if not self.is_screen_installed(entry.name):  # made once, also while its page is left and opened again
                self.install_screen(Report(entry.name, self._make), entry.name)
            self.push_screen(entry.name)
            return
        self.exit((entry.name, entry.next))

    def _failed(self, name: str) -> bool:
        """Whether there is a page of this report, and no report."""
        page = self.get_screen(name) if self.is_screen_installed(name) else None
        return isinstance(page, Report) and page.failed
