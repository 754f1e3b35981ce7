"""Until an app has nothing left to do: its event loop would wait, and its screen is drawn as it stands.

What is asked is the loop itself, not the processor: a busy machine makes it later, never otherwise. What a timer or
a thread will bring is not waited for, but for drawing that the app itself has put off.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
import textual.app
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

T = TypeVar("T")
POLL_S = 0.005
DRAWINGS = 100  # far more than any screen takes to find its places
PARSED: dict[Any, Any] = {}


class IdleSelector(selectors.DefaultSelector):
    """Says when the loop would wait: whatever was ready has run, no timer is due and nothing has come in."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[asyncio.Future[None]] = []

    def idle(self) -> asyncio.Future[None]:
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._waiting or (timeout is not None and timeout <= 0):
            return super().select(timeout)
        if not (came := super().select(0)):
            for future in self._waiting:
                if not future.done():
                    future.set_result(None)
            self._waiting.clear()
        return came


class QuietLoop(asyncio.SelectorEventLoop):
    """An event loop that can be asked whether it has anything to do."""

    def __init__(self) -> None:
        self._idle = IdleSelector()
        super().__init__(self._idle)

    def idle(self) -> asyncio.Future[None]:
        """Done once nothing is left to run but who waits for it."""
        return self._idle.idle()


def run(session: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, on a loop that can be asked."""
    with asyncio.Runner(loop_factory=QuietLoop) as runner:
        return runner.run(session)


async def settled(app: App[Any]) -> None:
    """Every message is handled and every change is drawn."""
    loop = _quiet_loop()
    for _ in range(DRAWINGS):
        await loop.idle()
        while _put_off(app):
            await asyncio.sleep(POLL_S)
            await loop.idle()
        if not _undrawn(app):
            return
        app.screen._on_timer_update()  # what its timer does sixty times a second
    raise AssertionError(f"{app.screen!r} was drawn {DRAWINGS} times and still changes")


def _quiet_loop() -> QuietLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, QuietLoop), "run it by support.screens.quiet.run"
    return loop


def _put_off(app: App[Any]) -> bool:
    """Will more come by itself? A scroll is done with the next picture at the soonest, and App.delay_update draws
    nothing for 50 ms, such as when a command was chosen by its name.
    """
    return _runs(app) and (app._batch_count > 0 or bool(app.animator._animations))


def _runs(app: App[Any]) -> bool:
    return app.is_running and app._exception is None


def _undrawn(app: App[Any]) -> bool:
    """Has the screen in front anything to draw, or to do after it is drawn?"""
    if not _runs(app):
        return False
    screen = app.screen
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


def parse_once(patch: pytest.MonkeyPatch) -> None:
    """The style sheets of Textual and of labctl are parsed once in this process, and not anew for each app of a test:
    what Textual keeps for one app (and clears when colours change) is kept for all of the same colours.
    """
    parse = Stylesheet._parse_rules

    def parsed(sheet: Stylesheet, *what: Any, **named: Any) -> Any:
        asked = (tuple(sorted(sheet._variables.items())), what, tuple(sorted(named.items())))
        if asked not in PARSED:
            PARSED[asked] = parse(sheet, *what, **named)
        return PARSED[asked]

    patch.setattr(Stylesheet, "_parse_rules", parsed)


def pause_until_settled(patch: pytest.MonkeyPatch) -> None:
    """Textual's own pilot asks every widget in turn, and then whether the processor is idle; here it asks as above."""

    async def pause(pilot: Pilot[Any], delay: float | None = None) -> None:
        await asyncio.sleep(delay or 0.0)
        await settled(pilot.app)

    async def for_screen(pilot: Pilot[Any], timeout: float = 0.0) -> bool:
        await settled(pilot.app)
        return pilot.app._exception is None

    async def idle(*of: float) -> None:
        await _quiet_loop().idle()

    patch.setattr(Pilot, "pause", pause)
    patch.setattr(Pilot, "_wait_for_screen", for_screen)
    patch.setattr(textual.app, "wait_for_idle", idle)
