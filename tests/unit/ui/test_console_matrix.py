"""The written rule for keys, tried: every state of a trial, every focusable widget of every screen that may be open in
it, every key that people reach for. A stop stops; a text takes its blank; nothing else moves the robot unordered; and
no key is silent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks
from support.screens.console_bench import NARROW, Desk, at_console, evening
from textual.widget import Widget
from textual.widgets import Input

from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.store.campaign import Campaign
from labctl.ui.console.form import Line, Options

STOPS = ("space", "f12")
ORDERS = {
    "planned": Kind.TRIAL_STAGING,
    "scored": Kind.TRIAL_STAGING,
    "staged": Kind.SCENE_COMMITTED,
}  # what ENTER on the first screen writes
EVENTS = (Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED, Kind.ARM_REVEALED, Kind.EPISODE_STARTED)
PATIENCE = 20  # looks at a screen that has not changed before a key counts as silent
MAY_MOVE = ("on its way", "armed", "ready", "running")
RULES = {"arming_s": 'ask_guess = true\nstages = ["reached", "placed"]\nfailure_tags = ["missed", "dropped"]\narming_s'}


async def closed(desk: Desk) -> None: ...


async def planned(desk: Desk) -> None:
    await desk.press("enter", "enter")


async def on_its_way(desk: Desk) -> None:
    await planned(desk)
    await desk.press("enter")


async def staged(desk: Desk) -> None:
    await on_its_way(desk)
    await desk.home()


async def armed(desk: Desk) -> None:
    await desk.armed()


async def ready(desk: Desk) -> None:
    await desk.armed()
    await desk.press("enter")


async def running(desk: Desk) -> None:
    await desk.running()


async def sealing(desk: Desk) -> None:
    await desk.running()
    await desk.press("i", "n", "e", "e")


async def scoring(desk: Desk) -> None:
    episode = await desk.running()
    await desk.press("i", "n", "e", "e")
    await desk.sealed(episode)


async def stopped(desk: Desk) -> None:
    episode = await desk.running()
    await desk.press("space")
    await desk.sealed(episode)


async def scored(desk: Desk) -> None:
    await scoring(desk)
    await desk.press("enter", "tab", "tab", "1", "ctrl+s", "escape")


async def of_task(desk: Desk) -> None:
    """An episode of a task that is not counted in items, to be scored by its own form."""
    episode = await desk.running()
    await desk.press("i", "n")
    await desk.wait(31.0)
    await desk.sealed(episode)


async def pair(desk: Desk) -> None:
    """Two episodes were scored, and nobody has said which was better."""
    for _ in range(2):
        episode = await desk.running()
        await desk.wait(31.0)
        await desk.sealed(episode)
        await desk.press("enter")
        await desk.type("0.5")
        await desk.press("ctrl+s")


async def silent(desk: Desk) -> None:
    await planned(desk)
    desk.bench.clock.sleep_until(desk.bench.now_ns + 5 * SECOND)
    await desk.draw()


# state -> how it is reached, and the keys that open a form or a page in it
STATES: dict[str, tuple[Callable[[Desk], Awaitable[None]], tuple[str, ...]]] = {
    "no session": (closed, ("enter", "ctrl+p", "s")),
    "planned": (planned, ("n", "h", "x", "k", "j", "ctrl+p", "t", "c")),
    "on its way": (on_its_way, ("n", "h", "x", "r", "j", "ctrl+p", "c")),
    "staged": (staged, ("n", "r", "R", "j", "w")),
    "armed": (armed, ("n", "v", "j", "d")),
    "ready": (ready, ("v", "question_mark")),
    "running": (running, ("n", "i", "h", "ctrl+p", "c", "t")),
    "sealing": (sealing, ("v", "n")),
    "scoring": (scoring, ("enter", "i", "v", "j", "n")),
    "stopped": (stopped, ("enter", "v")),
    "scored": (scored, ("u", "n")),
    "silent": (silent, ("n", "p")),
    "scoring stages": (of_task, ("enter",)),
    "scoring success": (of_task, ("enter",)),
    "scoring by a rubric": (of_task, ("enter",)),
    "which was better": (pair, ("enter", "b")),
}
TASKS: Mapping[str, tuple[str, Mapping[str, str]]] = {  # state -> its condition, and what its protocol has
    "scoring stages": ("stages", {}),
    "scoring success": ("over-base", {}),
    "scoring by a rubric": ("score", {}),
    "which was better": ("score", {"[analysis]": "[preference]\n[analysis]", "condition = 1": "condition = 2"}),
}


@contextmanager
def bench_of(state: str, folder: Path) -> Iterator[Bench]:
    """A run to sit in front of, of the protocol in which this state comes."""
    if state not in TASKS:
        with evening(folder, protocol=RULES) as bench:
            yield bench
        return
    condition, changes = TASKS[state]
    with Campaign.open(open_tasks(folder, conditions=[condition], protocol=changes).folder, writer=True) as campaign:
        yield Bench(campaign)


@dataclass
class Seen:
    """What there is to see before or after a key."""

    screen: str
    stops: int
    events: int
    value: str | list[str] | None
    kinds: list[str] = field(default_factory=list)


def seen(desk: Desk) -> Seen:
    focused = desk.app.focused
    value = focused.value if isinstance(focused, Input) else focused.values if isinstance(focused, Options) else None
    events = desk.bench.events()
    return Seen(
        desk.drawn(),
        desk.link.stops,
        len(events),
        value,
        kinds=[event.kind for event in events if event.kind in EVENTS],
    )


async def tried(desk: Desk, state: str, opener: str, key: str, *, held: bool = False) -> list[str]:
    """Press a key on a widget; what was wrong with what came of it. held: what it orders does not reach the run."""
    where = f"{state} / {opener or 'first screen'} / {desk.app.focused!r} / {key}"
    focused, first = desk.app.focused, desk.app.screen is desk.app.now
    text = types_words(focused)
    desk.app.tell("")  # so that a line that is said again is seen
    await desk.still()
    before, sent = seen(desk), len(desk.link.commands)
    desk.link.delivers = not held
    await (desk.type(" ") if key == "space" and text else desk.press(key))
    await desk.draw()
    await desk.still()
    for _ in range(PATIENCE):  # beside other work an answer may come after a moment in which nothing changed
        if desk.drawn() != before.screen or len(desk.bench.events()) != before.events:
            break
        await desk.settle()
    await desk.still()
    desk.link.delivers = True
    after, wrong = seen(desk), []
    stops = key in STOPS and not (key == "space" and text)
    if stops != (after.stops == before.stops + 1) or (not stops and after.stops != before.stops):
        wrong.append(f"{where}: the robot was told to stop {after.stops - before.stops} times")
    if held and (verbs := [body["verb"] for body in desk.link.commands[sent:]]) != (["stop"] if stops else []):
        wrong.append(f"{where}: {verbs} was ordered")
    if stops and isinstance(focused, Options) and focused.is_attached and focused.values != before.value:
        wrong.append(f"{where}: a stop ticked something")
    if after.screen == before.screen and after.events == before.events:
        wrong.append(f"{where}: silence")
    ordered = [str(ORDERS[state])] if key == "enter" and first and state in ORDERS else []
    moved = after.kinds[len(before.kinds) :]
    if [kind for kind in moved if kind not in (*ordered, Kind.ARM_REVEALED if ordered else "")]:
        wrong.append(f"{where}: {moved} though nobody ordered it")
    if state in MAY_MOVE and desk.app.screen.query(Input) and not stops:
        wrong.append(f"{where}: a text field while the robot may move")
    return wrong


def types_words(widget: Widget | None) -> bool:
    return isinstance(widget, Input) and (not isinstance(widget, Line) or widget.takes_words)


async def focus(desk: Desk, opener: str, at: int) -> int:
    """Focus the widget of a screen that has this place in its order; how many may have the focus (one where none has:
    the screen itself). The screen is opened unless it is still open.
    """
    first = desk.app.screen is desk.app.now
    if opener and first:
        await desk.press(opener)
        await desk.still()
    chain = desk.app.screen.focus_chain
    if at < len(chain) and desk.app.focused is not chain[at]:
        desk.app.screen.set_focus(chain[at])  # type: ignore[arg-type]
        await desk.still()
    return max(len(chain), 1)


# One after the other on each widget. Stops come first, and what they order does not reach the run process: the next key
# finds the state as it was. What comes of a stop in the run process does not depend on what had the focus.
TOGETHER = (*STOPS, "v", "u", "o", "ctrl+c", "escape", "enter")


def on_every_widget(folder: Path, state: str, opener: str) -> list[str]:
    """Try every key on every widget of a screen, and last a stop that reaches the run process; what was wrong. A
    console that has changed what it acts on is followed by a new one, in that state again.
    """
    wrong: list[str] = []
    todo = [(0, key) for key in TOGETHER]
    found = 1

    async def play(desk: Desk) -> None:
        nonlocal found
        await STATES[state][0](desk)
        events, tries = len(desk.bench.events()), 0
        while todo:
            at, key = todo[0]
            of = await focus(desk, opener, at)
            if tries and at >= of:
                return  # what a key left on the screen has one widget less
            tries += 1
            todo.extend((place, key) for place in range(found, of) for key in TOGETHER)
            found, opened = max(found, of), desk.app.screen
            wrong.extend(await tried(desk, state, opener, key, held=key in STOPS))
            todo.pop(0)
            last = not todo or todo[0][0] != at
            while len(desk.app.screen_stack) > 2 and (last or desk.app.screen is not opened):
                await desk.press("escape")
            if len(desk.bench.events()) != events:
                return
        await focus(desk, opener, 0)
        wrong.extend(await tried(desk, state, opener, "f12" if types_words(desk.app.focused) else "space"))

    boots = 0
    while todo:
        with bench_of(state, folder / str(boots)) as bench:
            at_console(bench, play, size=NARROW)
        boots += 1
    return wrong


@pytest.mark.parametrize("state", ["planned", "armed", "running", "scoring"])
def test_on_the_first_screen_of_every_state_no_key_is_silent_or_moves_the_robot_unordered(tmp_path, state):
    assert on_every_widget(tmp_path, state, "") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("state", "opener"), [(state, opener) for state, (_, openers) in STATES.items() for opener in ("", *openers)]
)
def test_nor_on_any_widget_of_any_screen_that_may_be_open_in_it(tmp_path, state, opener):
    assert on_every_widget(tmp_path, state, opener) == []
