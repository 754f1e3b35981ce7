"""The console app on a bench: keys are pressed, the run node answers, the screen is read as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.errors import StateError
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings
from labctl.ui.console.app import Console
from labctl.ui.console.attached import Seat
from labctl.ui.console.form import Form
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.unhurried import READ_NS

NARROW, WIDE = (80, 24), (200, 60)
both_sizes = pytest.mark.parametrize(
    "size", [pytest.param(NARROW, id="80x24"), pytest.param(WIDE, id="200x60", marks=pytest.mark.thorough)]
)
DUE_NS = 50 * MILLISECOND  # after a press: what was ordered is carried out
HEARD = ("state", "reply", "preview", "ghost", "obs")
ROUNDS = 3  # of mail: what was sent, what came of it, its place
# The key of every page beside the first screen, and what stands on it.
PAGES = {
    "w": "what stands against",
    "s": "the session",
    "d": "driven by hand",
    "c": "the cell",
    "t": "what was done",
    "p": "from here to the report",
    "question_mark": "the keys",
    "ctrl+p": "Search for commands… (SPACE types a blank here, F12 stops)",
}


class BenchLink:
    """A link to a run node on a bench. `stops` counts what went straight to the arm; what is sent while it does not
    deliver is kept in `commands` and never arrives.
    """

    def __init__(self, bench: Bench, *, read_only: bool = False) -> None:
        self.bench, self.read_only = bench, read_only
        self.folder = bench.campaign.folder
        self.stops = 0
        self.there = self.delivers = True
        self.in_order = False  # did a run that is gone end by itself?
        self.next: Bench | None = None
        self.commands: list[dict[str, Any]] = []
        self._seen = 0
        self._ids = 0

    def poll(self) -> list[Message]:
        new, self._seen = self.bench.sent[self._seen :], len(self.bench.sent)
        return [message for message in new if message.kind in HEARD]

    def command(
        self,
        verb: str,
        *,
        who: str,
        role: str,
        version: int | None = None,
        args: Mapping[str, Any] | None = None,
        keys: int | None = None,
    ) -> str:
        if self.read_only:
            raise StateError("this console is read-only; open one without --read-only to act")
        self._ids += 1
        body = {"id": f"k{self._ids}", "verb": verb, "who": who, "role": role, "args": dict(args or {})}
        if version is not None:
            body["version"] = version
        if keys is not None:
            body["keys"] = keys
        self.commands.append(body)
        if self.there and self.delivers:
            self.bench.hear(Message("run", "command", body, sender="console"))
        return body["id"]

    def stop_robot(self) -> bool:
        self.stops += 1
        return True

    def alive(self) -> bool:
        return self.there

    def ended(self) -> bool:
        return not self.there and self.in_order

    def renew(self) -> bool:
        """Attach to the bench that has taken the place of a killed one (`next`)."""
        if self.next is None:
            return False
        self.bench, self.next = self.next, None
        self.there, self._seen = True, 0
        return True

    def close(self) -> None: ...


class Desk:
    """A person at the console: presses keys, lets time pass, reads."""

    def __init__(self, bench: Bench, link: BenchLink, app: Console, pilot: Pilot[Any]) -> None:
        self.bench, self.link, self.app, self.pilot = bench, link, app, pilot
        self.hands = app.hands

    async def press(self, *keys: str, after_ns: int = READ_NS) -> None:
        """Keys by their names, drawn after each; after_ns: so long after what was there before."""
        for key in keys:
            self.let(after_ns)
            self.app.post_message(Key(key, key if len(key) == 1 else None))
            await self.settle()
            self.let(DUE_NS)
            await self.draw()

    def let(self, ns: int) -> None:
        """Time passes for the person's hands; the cell's stands still, so that a test says what happens there."""
        assert isinstance(self.hands, ManualClock)
        self.hands.sleep_until(self.hands.now_ns() + ns)

    async def type(self, text: str) -> None:
        for char in text:
            self.let(DUE_NS)
            self.app.post_message(Key(_character_to_key(char), char))
        await self.settle()

    async def draw(self) -> None:
        self.app.pump()
        await self.settle()

    async def settle(self) -> None:
        """Until every widget has had its mail and the screen does not change any more. No waiting for an idle
        processor, as `pilot.press` does: on a busy machine that takes a second for a key.
        """
        before = ""
        while not before or before != self.text():
            before = self.text()
            for _ in range(ROUNDS):
                await self.pilot.pause(0)

    async def wait(self, seconds: float, **given: Any) -> None:
        self.bench.wait(round(seconds * SECOND), **given)
        await self.draw()

    def hear(self, *messages: Message) -> None:
        self.bench.hear(*messages)

    def asked(self) -> bool:
        """Is a form open?"""
        return isinstance(self.app.screen, Form)

    def text(self) -> str:
        """Everything on the screen, line by line."""
        height = self.app.size.height
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in lines[:height])

    def drawn(self) -> str:
        """The screen with its colours: the same bytes only for the same picture."""
        strips = self.app.screen._compositor.render_strips()[: self.app.size.height]
        return "\n".join("".join(f"{part.text}<{part.style}>" for part in strip) for strip in strips)

    async def still(self) -> None:
        """Until nothing on the screen changes any more: some parts are laid out after the next drawing. Cursors stop
        blinking: on a busy machine half a second passes between two looks at one screen.
        """
        for field in self.app.screen.query("Input, TextArea"):
            field.cursor_blink = False  # type: ignore[attr-defined]
        before = ""
        while before != (before := self.drawn()):
            for _ in range(ROUNDS):
                await self.pilot.pause(0)

    async def everywhere(self, *forms: str, pages: bool = True) -> dict[str, tuple[str, str]]:
        """This screen, every page beside it and the forms that these keys open: (text, picture) by key. Comes back."""
        await self.still()
        seen = {"": (self.text(), self.drawn())}
        for key in (*(PAGES if pages else ()), *forms):
            await self.press(key)
            assert len(self.app.screen_stack) > 2, f"{key} opens nothing"
            assert PAGES.get(key, "(ctrl+s)") in self.text(), f"{key}: a form that does not say how it is accepted"
            await self.still()
            seen[key] = (self.text(), self.drawn())
            await self.press("escape")
        return seen

    async def home(self) -> None:
        """The arm reaches where episodes begin."""
        trial = [m.body["trial"] for m in self.bench.sent if m.kind == "stage"][-1]
        self.hear(Message("run", "staged", {"trial": trial}, sender="arm"))
        await self.wait(0.2)

    async def ready(self) -> str:
        """Recorder and controller are ready; returns the episode."""
        episode = next(m.body["episode"] for m in self.bench.sent[::-1] if m.to == "recorder" and m.kind == "open")
        self.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
        self.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
        await self.wait(0.2)
        return episode

    async def go(self, episode: str) -> None:
        self.hear(Message("run", "go", {"episode": episode, "go_ns": self.bench.now_ns}, sender="controller"))
        await self.wait(0.2)

    async def sealed(self, episode: str) -> None:
        self.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        for node in self.bench.cameras:
            name = node.removeprefix("camera:")
            video = {"episode": episode, "camera": name, "file": f"video/{episode}/{name}.mp4", "frames": 0}
            self.hear(Message("run", "video", video, sender=node))
        self.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
        await self.wait(0.2)

    async def running(self) -> str:
        """From a fresh bench to an episode that has gone, by keys."""
        episode = await self.armed()
        await self.press("enter")
        await self.wait(4.0)
        await self.go(episode)
        return episode

    async def armed(self) -> str:
        """From a fresh bench, or the trial before, to an episode that waits for its start, by keys."""
        if self.app._state["session"] is None:
            await self.press("enter")
            await self.press("enter")  # the form is filled with who sits here
        await self.press("enter")
        await self.home()
        await self.press("enter")
        return await self.ready()

    async def event(self, kind: str, episode: str, **body: Any) -> None:
        """The cell's detector says what happened."""
        told = {"kind": kind, "t_ns": self.bench.now_ns, "body": body, "episode": episode}
        self.hear(Message("run", "event", told, sender="arm"))
        await self.wait(0.2)

    async def hand(self, episode: str, **told: Any) -> None:
        """What the device of a person's trial says."""
        still = {"waits": "", "engaged": True, "fresh": True, "ramp": 0.0, "gap_rad": None, "limit_rad": 0.6}
        body = {"device": "gello", **still, **told}
        self.hear(Message("run", "hand", {"episode": episode, "hand": body}, sender="controller"))
        await self.draw()


def at_console(
    bench: Bench,
    play: Callable[[Desk], Awaitable[None]],
    *,
    size: tuple[int, int] = NARROW,
    read_only: bool = False,
    everyone: bool = True,
    **given: Any,
) -> BenchLink:
    """Run the app on a bench while `play` presses keys; returns its link. everyone: the cell's processes are there."""
    link = BenchLink(bench, read_only=read_only)

    async def session() -> None:
        app = Console(link, bench.clock, Seat("ann", pump=False, hands=ManualClock(SECOND), **given))
        async with app.run_test(size=size) as pilot:
            desk = Desk(bench, link, app, pilot)
            if everyone:
                bench.hear(*(Message("run", "hello", sender=name) for name in ("arm", "recorder", *bench.cameras)))
                for name in bench.cameras:
                    bench.camera(name, "")
                await desk.wait(1.5)
            await play(desk)

    asyncio.run(session())
    return link


def picture(seed: int = 0) -> np.ndarray:
    """A small picture (90, 120, 3)."""
    return np.random.default_rng(seed).integers(0, 255, (90, 120, 3), dtype=np.uint8)


@contextmanager
def evening(folder: Path, **given: Any) -> Iterator[Bench]:
    """A bench of two trials; `given` is the campaign's."""
    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    campaign_folder = make_campaign(folder, arms, items=2, budget=20.0, **given).folder
    with Campaign.open(campaign_folder, writer=True) as campaign:
        yield Bench(campaign)


def flat(text: str) -> str:
    """Without line breaks and what stands beside the card: a long line may be wrapped anywhere."""
    return " ".join(text.split())
