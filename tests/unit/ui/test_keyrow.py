"""Claims about the row of keys: it says what can be done now, and a click on a key is the key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.screens.console_bench import NARROW, WIDE, Desk, at_console
from textual.content import Content

from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.ui.console.keyrow import KeyRow
from labctl.ui.console.screens import same_rows

WORDS = st.text(st.sampled_from("ab \n界"), max_size=30)


def test_it_follows_the_trial_and_leaves_out_what_cannot_be_done(bench):
    def row(desk: Desk) -> str:
        return str(desk.app.screen.query_one(KeyRow).content)

    async def play(desk: Desk) -> None:
        assert "STOP" in row(desk) and "item or stage" not in row(desk)
        await desk.running()
        assert "item or stage" in row(desk)

    at_console(bench, play, size=WIDE)


def test_no_key_is_cut_in_two_where_not_all_have_room(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("i", "n", "e", "e")
        await desk.sealed(episode)
        row = desk.app.screen.query_one(KeyRow)
        assert len(str(row.content)) <= row.size.width and "keys" in str(row.content)
        shown = str(row.content).split("  ")
        assert set(shown) <= {f"{key} {does}" for key, does in offered(desk)} and len(shown) > 3

    at_console(bench, play, size=NARROW)


def offered(desk: Desk) -> list[tuple[str, str]]:
    """Every key of the screen, and what it does."""
    bindings = [entry.binding for entry in desk.app.screen.active_bindings.values()]
    return [(desk.app.get_key_display(binding), binding.description) for binding in bindings]


def test_a_click_on_a_key_is_the_key(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        row = desk.app.screen.query_one(KeyRow)
        await desk.pilot.click(row, offset=(1 + str(row.content).index("cell"), 0))
        await desk.draw()
        assert "the cell" in desk.text()
        row = desk.app.screen.query_one(KeyRow)
        await desk.pilot.click(row, offset=(1 + str(row.content).index("back"), 0))
        await desk.draw()
        assert desk.app.screen is desk.app.now
        await desk.pilot.click(desk.app.now.query_one(KeyRow), offset=(2, 0))
        await desk.draw()

    assert at_console(bench, play, size=WIDE).stops >= 1, "the first key is the stop"


def test_a_click_on_a_key_is_refused_as_the_key_is(bench):
    async def play(desk: Desk) -> None:
        async def click(words: str) -> None:
            row = desk.app.screen.query_one(KeyRow)
            await desk.pilot.click(row, offset=(1 + str(row.content).index(words), 0))
            await desk.settle()
            await desk.draw()

        await desk.running()
        desk.let(SECOND)
        for _ in range(2):  # one press that bounced
            await click("e end")
            desk.let(120 * MILLISECOND)
        assert "twice within 300 ms" in desk.text() and not bench.events(Kind.EPISODE_ENDED)
        await desk.press("c")
        desk.let(SECOND)
        await click("e end")
        assert "that is done on the first screen; ESC goes back to it" in desk.text()
        assert not bench.events(Kind.EPISODE_ENDED)
        await desk.press("escape")
        desk.let(SECOND)
        await click("e end")
        assert bench.events(Kind.EPISODE_ENDED), "the second that was meant"

    at_console(bench, play, size=WIDE)


@given(WORDS, WORDS, st.integers(1, 12))
def test_texts_said_to_take_the_same_room_do_so_when_textual_lays_them_out(before: str, after: str, width: int):
    if same_rows(before, after, width):
        assert Content(before).get_height({}, width) == Content(after).get_height({}, width)


def test_a_count_that_changes_takes_the_same_room_and_one_more_line_does_not():
    assert same_rows("counted 9 of 10", "counted 10 of 10", 40)
    assert not same_rows("counted 9 of 10", "counted 10 of 10", 15), "the second is wrapped"
    assert not same_rows("one", "one\ntwo", 40) and not same_rows("", "one", 40)
