"""The first screen of the console, which follows the trial.

May not: decide what may be done (`acts`), or show an outcome, a latency or a rate while people are blind.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Button, Digits, Label, ProgressBar, Static

from labctl.core.published_state import PublishedState
from labctl.ui.console import acts
from labctl.ui.console.keyrow import KeyRow
from labctl.ui.console.tiles import Cameras, Joints
from labctl.ui.console.words import clock, short

TALL = 30  # rows from which the clock is drawn large
WIDE = 100  # columns from which cameras and curves stand beside the card


@dataclass(frozen=True, slots=True)
class Silence:
    """What the first screen says while the run process is not heard: in its top line, as its state and line, and what
    is wrong with what clears it. {}: the campaign.
    """

    top: str
    state: str
    line: str
    wrong: str
    clears: str


SILENT = Silence(
    "NO WORD FROM THE RUN PROCESS",
    "no word",
    "the run process is there and says nothing",
    "no word from the run process: this screen is old; the stop key still reaches the robot",
    "it goes on by itself; if it does not: labctl stop {0} says how to end it, then labctl run {0}",
)
_AGAIN = "start it again: labctl run {}; this console attaches to it by itself"
GONE = Silence(
    "THE RUN IS GONE",
    "run gone",
    "its process has ended: nothing goes on and nothing moves",
    "the run process is gone: its lease is over, so whatever moved has stopped",
    _AGAIN,
)
ENDED = Silence(
    "THE RUN HAS ENDED",
    "run ended",
    "the run was ended: nothing goes on and nothing moves",
    "it was ended in order: what was recorded is kept and no trial is lost",
    _AGAIN,
)


class Now(Screen[None]):
    """The first screen: what is going on, what is wrong, the one thing to do."""

    def compose(self) -> ComposeResult:
        yield Label("labctl", id="header", markup=False)
        with Horizontal(id="body"):
            with VerticalScroll(id="left"):
                yield Static("", id="state", markup=False)
                yield Static("", id="line", markup=False)
                yield Digits("", id="clock")
                yield ProgressBar(total=1.0, show_percentage=False, show_eta=False, id="time")
                yield Static("", id="holds", markup=False)
                yield Static("", id="details", markup=False)
            with Vertical(id="right"):
                yield Cameras()
                yield Joints()
        yield Static("", id="said", markup=False)
        yield Button("…", id="primary", disabled=True)
        yield KeyRow()

    def on_mount(self) -> None:
        """Have every row drawn once it is laid out. Textual paints what it found to have moved; where it was asked for
        a widget's place in between, it finds nothing, and rows of before, or none, stay on the terminal (8.2.8,
        `Compositor.full_map`).
        """
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self.refresh(), immediate=True)

    def on_resize(self) -> None:
        self.set_class(self.size.width < WIDE, "narrow")
        self.query_one(Cameras).refresh(layout=True)

    def draw(
        self,
        state: PublishedState | None,
        who: str,
        now_ns: int,
        *,
        fresh: bool,
        there: bool,
        ended: bool,
        read_only: bool,
    ) -> None:
        """Draw the state. fresh: the run process published lately; there: its process exists; ended: in order."""
        if state is not None and not there and acts.over(state):
            fresh = True  # it ended as it should: nothing is missing
        silence = None if fresh else SILENT if there else ENDED if ended else GONE
        page = acts.page(state, now_ns)
        if silence is not None and state is not None:  # what was, and no clock that goes on
            page = acts.Page(silence.state, silence.line, [f"it last said: {page.state}"])
        self._put("header", f"{'' if silence is None else f'{silence.top} · '}{acts.header(state)}")
        self._put("state", page.state.upper())
        for name in ("planned", "staging", "armed", "running", "scoring"):
            self.query_one("#state").set_class(
                fresh and state is not None and state["trial_state"] == name, f"is-{name}"
            )
        self._put("line", page.line)
        details = (*page.details, *(acts.awaited(state) if fresh else ()))
        self._put("details", "\n".join(f"• {line}" for line in details))
        bar = self.query_one("#time", ProgressBar)
        bar.display = page.bar is not None
        big = self.query_one("#clock", Digits)
        big.display = page.bar is not None and self.size.height >= TALL
        if page.bar is not None:
            bar.update(total=page.bar[1], progress=page.bar[0])
            left = clock(page.bar[1] - page.bar[0])
            if big.display and big.value != left:
                big.update(left)
        title, wrong = acts.against(state), acts.fixes(state)
        if silence is not None and state is not None:
            title, wrong = "this screen is old:", [(silence.wrong, silence.clears.format(state["campaign"]))]
        lines = [f"✖ {text}\n  to go on: {clears}" for text, clears in wrong]
        self.query_one("#holds").display = bool(lines)
        self._put("holds", "\n".join([title, *lines]) if lines else "")
        self._primary(acts.primary(state, who), fresh=fresh and there, read_only=read_only)

    def _primary(self, act: acts.Act | None, *, fresh: bool, read_only: bool) -> None:
        button = self.query_one("#primary", Button)
        button.display = act is not None and not read_only
        if act is not None:
            label = _not_yet(act, max(self.size.width - 8, 40)) if act.why_not else f"{act.label}  (enter)"
            if str(button.label) != label:
                button.label = Content(label)
            button.disabled = bool(act.why_not) or not fresh

    def _put(self, name: str, text: str) -> None:
        widget = self.query_one(f"#{name}", Static)
        before = str(widget.content)
        if before != text:
            widget.update(text, layout=name == "state" or not same_rows(before, text, widget.content_size.width))

    def say(self, text: str, *, wrong: bool = False) -> None:
        """One line above the button: the answer to the last key."""
        self._put("said", text)
        self.query_one("#said", Static).set_class(wrong, "wrong")


def _not_yet(act: acts.Act, room: int) -> str:
    """What stands against the one thing to do, in as many of the button's own words as there is room for."""
    label, why = act.label, act.why_not
    tried = (f"{label}: not yet; {why}", f"{label.partition(':')[0]}: not yet; {why}", f"not yet: {why}")
    return next((text for text in tried if cell_len(text) <= room), short(tried[-1], room))


def same_rows(before: str, after: str, width: int) -> bool:
    """Do two texts surely take the same room? A screen is laid out anew only when they do not: it takes long."""
    rows = [text.split("\n") for text in (before, after)]
    fit = all(cell_len(row) <= width for row in (*rows[0], *rows[1]))
    return fit and len(rows[0]) == len(rows[1]) and bool(before) == bool(after)
