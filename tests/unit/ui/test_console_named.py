"""Every key by its name: what ctrl+p offers an operator obeys the rule and the state of its key."""

from __future__ import annotations

from support.screens.console_bench import Desk, at_console, flat
from support.screens.unhurried import READ_NS
from textual.command import CommandList, CommandPalette

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.ui.console import refusals
from labctl.ui.console.keys import KEYS


async def by_name(desk: Desk, words: str, *, after_ns: int = READ_NS) -> None:
    """ctrl+p, these words, which name one key, and ENTER so long after the last of them."""
    await desk.press("ctrl+p")
    palette = desk.app.screen
    assert isinstance(palette, CommandPalette)
    await desk.type(words)
    while palette.query_one(CommandList).option_count != 1:  # they are gathered beside the screen
        await desk.pilot.pause(0.01)
    await desk.press("enter", after_ns=after_ns)
    while isinstance(desk.app.screen, CommandPalette):
        await desk.pilot.pause(0.01)
    await desk.settle()
    await desk.draw()


def test_every_key_has_a_name_and_the_stop_comes_first(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        offered = desk.app.named()
        assert offered[0].does == "stop the robot now" and offered[0].key == "space, f12"
        stages = [key for key in KEYS if key.action.startswith("reach")]
        assert len(offered) == len(KEYS) - len(stages), "this task has no stages"
        assert all(one.does for one in offered)
        now = [one.does for one in offered if not one.why_not]
        assert "Stage towels, layout-1" in now and "note something" in now, "ENTER is named after what it does now"
        against = {one.does: one.why_not for one in offered if one.why_not}
        assert against["void this episode"] == "there is no episode to void: nothing has begun"
        assert [bool(one.why_not) for one in offered] == sorted(bool(one.why_not) for one in offered)

    at_console(bench, play)


def test_a_name_does_what_its_key_does(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await by_name(desk, "hold after this trial")
        assert desk.asked() and "Hold after this trial: why?" in desk.text()
        await desk.press("escape")
        await by_name(desk, "void this episode")
        assert "there is no episode to void: nothing has begun" in desk.text()
        await by_name(desk, "stop the robot now")
        assert desk.link.stops == 1
        assert bench.events(Kind.HOLD_RAISED)[-1].body["code"] == "operator_stop"

    at_console(bench, play)


def test_what_moves_the_robot_does_so_by_name_and_only_as_it_was_offered(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        stages = next(one for one in desk.app.named() if one.does == "Stage towels, layout-1")
        await desk.press("space")
        await stages.do()
        await desk.draw()
        assert flat(refusals.CHANGED) in flat(desk.text()) and not bench.events(Kind.TRIAL_STAGING)
        await desk.press("enter", "3", "tab")
        await desk.type("tried")
        await desk.press("ctrl+s")
        await by_name(desk, "Stage towels")
        desk.let(50 * MILLISECOND)
        await desk.draw()
        assert len(bench.events(Kind.TRIAL_STAGING)) == 1

    at_console(bench, play)


def test_a_name_and_its_enter_that_come_all_at_once_order_nothing(bench):
    """As pasted text: what is chosen by its name asks when ENTER was pressed, as ENTER itself does."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await by_name(desk, "Stage towels", after_ns=0)
        desk.let(SECOND)
        await desk.draw()
        assert not bench.events(Kind.TRIAL_STAGING) and "pasted text never acts" in desk.text()

    at_console(bench, play)


def test_nothing_of_textuals_own_is_offered(bench):
    """Its Quit leaves at once, its Screenshot writes a file where the run was started."""

    async def play(desk: Desk) -> None:
        assert {one.__name__ for one in desk.app.COMMANDS} == {"KeysByName"}

    at_console(bench, play)
