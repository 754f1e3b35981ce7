"""A second assessor's screen: episode by episode, from the video alone, judged by the measure of its task.

May not: show what was scored, proposed or counted, why an episode ended, an arm or another assessor, or write itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Label, Static

from labctl.clock import Clock
from labctl.core.reviewed import Unseen
from labctl.plain import count
from labctl.ui.console import measures
from labctl.ui.console.form import Answer
from labctl.ui.console.keyrow import KeyRow
from labctl.ui.console.link import Json
from labctl.ui.console.picture import Photos
from labctl.ui.review.filmstrip import Filmstrip, Look
from labctl.ui.review.measured import about, rows
from labctl.ui.review.reviewing import Reviewing


class SecondReview(Reviewing):
    """See the module. `load` gives what is left anew, `judge(trial, outcome)` writes and may raise LabctlError, `look`
    gives the strip's pictures, `photos` a rubric's.
    """

    TITLE = "labctl review --second"
    BINDINGS: ClassVar = [
        Binding("enter", "judge", "judge", priority=True),
        Binding("n", "skip", "next"),
        Binding("left", "shift(-1)", "back", priority=True),
        Binding("right", "shift(1)", "on", priority=True),
        Binding("pageup", "shift(-10)", show=False, priority=True),
        Binding("pagedown", "shift(10)", show=False, priority=True),
        Binding("c", "camera", "camera"),
        Binding("q", "quit", "leave"),
    ]

    def __init__(
        self,
        load: Callable[[], Sequence[Unseen]],
        judge: Callable[[str, Mapping[str, Json]], None],
        look: Look | None,
        photos: Photos | None = None,
        *,
        hands: Clock | None = None,
    ) -> None:
        super().__init__(hands)
        self._photos = photos
        self._load, self._judge, self._look = load, judge, look
        self._left: Sequence[Unseen] = ()
        self._at = 0

    def compose(self) -> ComposeResult:
        yield Label("", id="header", markup=False)
        yield Static("", id="line", markup=False)
        yield Static("", id="details", markup=False)
        yield DataTable(cursor_type="none", zebra_stripes=True, id="operations")
        yield Filmstrip(self._look)
        yield Static("", id="said", markup=False)
        yield KeyRow()

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns("#", "", "", "in words")
        self._reload()

    @property
    def unseen(self) -> Unseen | None:
        """The episode at hand."""
        return self._left[self._at % len(self._left)] if self._left else None

    def _reload(self) -> None:
        self._left = self._load()
        self._draw()

    def _draw(self) -> None:
        one = self.unseen
        self.query_one("#header", Label).update(f"second assessor · {count(len(self._left), 'episode')} left to judge")
        table = self.query_one(DataTable)
        table.clear()
        self._shows(one.trial if one else None)
        if one is None:
            self.query_one("#line", Static).update("nothing is left for you to judge; q leaves")
            self.query_one("#details", Static).update("")
            return
        self.query_one("#line", Static).update(f"{one.episode} · {one.task.name or 'items'}")
        lines = [f"• the task: {one.task.instruction}"] if one.task.instruction else []
        self.query_one("#details", Static).update(
            "\n".join([*lines, "• by the pictures alone: left, right and the page keys go through them"])
        )
        for row in rows(one.task, None):
            table.add_row(*(Text(cell) for cell in row))
        self.query_one(Filmstrip).show(one.episode, 0.0)

    def action_skip(self) -> None:
        self._at += 1
        self._draw()

    def action_judge(self) -> None:
        """Say how the episode went."""
        one = self.unseen
        if one is None:
            return

        def answered(answer: Answer) -> None:
            if self._done(lambda: self._judge(one.trial, answer)):
                self._reload()
                self._say(f"{one.episode} is judged")

        asked = about(one.task, one.task.items)
        self._asked(measures.form(asked, {"moved": "", "lost": ""}, photos=self._photos), answered)
