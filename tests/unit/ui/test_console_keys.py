"""Claims about what a key may do: SPACE stops, words wait until the robot rests, and what moves a robot was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs.run_bench import Bench
from support.screens.console_bench import Desk, at_console, evening, flat
from textual.command import CommandPalette
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import Input

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.core.events import Kind
from labctl.errors import InputError
from labctl.ui.console import refusals
from labctl.ui.console.form import Form, Line, Options
from labctl.ui.console.keys import KEYS, fault
from labctl.ui.console.presses import PASTED_NS, SEEN_NS, Presses
from labctl.ui.console.stopping import arrived_ns, with_stop_key

QUICK_NS = 120 * MILLISECOND


def ended(bench: Bench) -> list[str]:
    return [event.body["reason"] for event in bench.events(Kind.EPISODE_ENDED)]


# -- SPACE, and where words are typed


@pytest.mark.parametrize("key", ["n", "h", "H", "x", "ctrl+p", "w", "c"])
def test_no_key_opens_a_text_field_while_the_robot_may_move(bench, key):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press(key)
        assert not desk.app.screen.query(Input) and not isinstance(desk.app.screen, CommandPalette)
        await desk.press("space")
        assert ended(bench) == ["safety_stop"]

    assert at_console(bench, play).stops == 1


@pytest.mark.parametrize("state", ["on the way home", "armed"])
def test_nor_on_the_way_home_nor_before_the_start(bench, state):
    async def play(desk: Desk) -> None:
        if state == "armed":
            await desk.armed()
        else:
            await desk.press("enter", "enter", "enter")
        for key in ("n", "h", "x", "r", "ctrl+p"):
            await desk.press(key)
            assert not desk.app.screen.query(Input), key
        await desk.press("space")
        assert bench.events(Kind.HOLD_RAISED)[-1].body["code"] == "operator_stop"

    at_console(bench, play)


def test_a_note_in_a_running_episode_is_a_mark_and_its_words_come_with_the_score(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.wait(7.0)
        await desk.press("n")
        assert "marked 0:07 after go; the words for it come with the score" in desk.text()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter")
        assert "note: you marked 0:07 after go" in desk.text()
        await desk.press("tab", "tab")
        await desk.type("lamp flickered")
        await desk.press("ctrl+s")
        assert bench.events(Kind.NOTE)[0].body["text"] == "marked 0:07 after go"
        assert bench.events(Kind.OUTCOME_RECORDED)[0].body["outcome"]["notes"] == "lamp flickered"

    at_console(bench, play)


def test_a_text_that_is_open_when_the_robot_may_move_is_put_aside_and_kept(bench):
    """A second console commits while this one writes a note: SPACE must stop from then on."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        await desk.home()
        await desk.press("n")
        await desk.type("lamp flick")
        assert bench.command("commit")["ok"]
        await desk.draw()
        assert not desk.asked() and "what you wrote is kept" in desk.text()
        await desk.press("space")
        assert bench.events(Kind.EPISODE_VOIDED)
        await desk.press("n")
        await desk.type("ers")
        await desk.press("ctrl+s")
        assert bench.events(Kind.NOTE)[-1].body["text"] == "lamp flickers"

    assert at_console(bench, play).stops == 1


def test_no_text_field_opens_for_a_run_process_that_is_silent_or_gone(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        bench.clock.sleep_until(bench.now_ns + 5 * SECOND)
        await desk.draw()
        await desk.press("n")
        assert not desk.asked() and flat(refusals.UNHEARD) in flat(desk.text())
        desk.link.there = False
        await desk.press("n")
        assert not desk.asked() and flat(refusals.UNHEARD) in flat(desk.text())

    at_console(bench, play)


def test_in_a_form_space_stops_but_in_a_text(bench):
    """Also in the number fields of the score, and it neither ticks nor opens anything."""

    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter")
        stops = 0
        for _ in desk.app.screen.focus_chain:
            focused = desk.app.focused
            text = isinstance(focused, Line) and focused.takes_words
            before = focused.values if isinstance(focused, Options) else None
            await desk.press("space")
            stops += not text
            assert desk.link.stops == stops, focused
            assert not isinstance(focused, Options) or focused.values == before
            await desk.press("tab")
        assert stops >= 4, "numbers, tags, buttons"

    at_console(bench, play)


@pytest.mark.parametrize("key", ["enter", "x", "1"])
def test_enter_x_and_a_number_tick(bench, key):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press("space")
        await desk.press("a", key, "tab")
        await desk.type("it went for the lamp")
        await desk.press("ctrl+s")
        assert bench.events(Kind.HOLD_CLEARED)[-1].body["cause"] == "danger"

    at_console(bench, play)


def test_no_other_act_can_be_bound_to_a_key_that_stops_and_those_of_the_house_always_stop(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        assert all(desk.app.is_stop(key) for key in ("space", "f12", "z")) and not desk.app.is_stop("m")

    at_console(bench, play, keys={"stop": "z"})
    with pytest.raises(InputError, match=r"\[console.keys\] moved has space: that key stops the robot"):
        at_console(bench, play, keys={"moved": "m,space"})


@pytest.mark.parametrize("name", [key.id for key in KEYS])
def test_a_key_that_does_something_already_is_taken_by_no_other_act(name):
    others = {key.id: key.key for key in KEYS if key.id not in (name, "stop")}
    assert all((fault({name: taken}) or ("",))[0] == name for taken in others.values())
    assert fault({name: "z,f5"}) is None
    assert fault({**others, name: "z"}) is None, "what is bound to what it was"


@pytest.mark.parametrize(("key", "does"), [("escape", "goes back"), ("ctrl+s", "form's OK"), ("ctrl+p", "by its name")])
def test_keys_of_the_screens_themselves_are_taken_by_no_act(key, does):
    found = fault({"note": f"z,{key}"})
    assert found is not None and found[0] == "note" and f"note has {key}: that key " in found[1] and does in found[1]
    assert fault({"stop": key}) is None, "a stop more does no harm"


def test_a_key_that_stops_is_taken_where_keys_arrive_and_goes_no_further():
    class Terminals:
        def __init__(self) -> None:
            self.passed: list[Message] = []

        def process_message(self, message: Message) -> None:
            self.passed.append(message)

    stopped: list[str] = []
    clock = ManualClock(SECOND)
    driver = with_stop_key(Terminals, lambda key: key == "space", lambda: stopped.append("stop"), clock)()  # type: ignore[arg-type]
    other = Key("m", "m")
    driver.process_message(Key("space", " "))
    driver.process_message(other)
    clock.sleep_until(2 * SECOND)
    assert stopped == ["stop"] and driver.passed == [other]  # type: ignore[attr-defined]
    assert arrived_ns(other) == SECOND, "however late it is looked at"


# -- presses that were meant


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2 * SEEN_NS)), max_size=20))
def test_a_press_is_refused_exactly_when_its_key_came_less_than_300_ms_before(presses):
    kept, now_ns, last = Presses(), 0, {}
    for key, after_ns in presses:
        now_ns += after_ns
        press = kept.take(key, now_ns)
        assert press.again == (key in last and now_ns - last[key] < SEEN_NS)
        assert press.pasted == bool(last and now_ns - max(last.values()) < PASTED_NS)
        last[key] = now_ns


@given(st.integers(0, SECOND), st.integers(0, SECOND))
def test_an_order_is_refused_while_what_is_offered_was_on_the_screen_for_less_than_300_ms(first_ns, later_ns):
    kept = Presses()
    kept.shown("stage", 10 * SECOND)
    kept.shown("stage", 10 * SECOND + first_ns)
    press = kept.take("enter", 10 * SECOND + first_ns + later_ns)
    assert bool(press.refusal(order=True)) == (first_ns + later_ns < SEEN_NS)


def test_enter_twice_within_120_ms_stages_and_does_not_commit(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        await desk.press("enter")
        await desk.home()
        await desk.press("enter", after_ns=QUICK_NS)
        assert "did nothing" in desk.text()
        assert bench.events(Kind.TRIAL_STAGING) and not bench.events(Kind.SCENE_COMMITTED)
        await desk.press("enter", after_ns=QUICK_NS)
        assert not bench.events(Kind.SCENE_COMMITTED), "a key that is held down never acts"
        await desk.press("enter")
        assert bench.events(Kind.SCENE_COMMITTED)

    at_console(bench, play)


def test_a_screen_that_changed_under_the_finger_is_read_before_enter_does_what_it_says_now(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "enter")
        desk.let(SECOND)
        await desk.home()
        await desk.press("enter", after_ns=QUICK_NS)
        assert "the screen has just changed" in desk.text() and not bench.events(Kind.SCENE_COMMITTED)

    at_console(bench, play)


def test_a_click_on_the_button_is_as_deliberate(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        for _ in range(2):
            desk.let(QUICK_NS if bench.events(Kind.TRIAL_STAGING) else SECOND)
            await desk.pilot.click("#primary")
            desk.let(QUICK_NS)
            await desk.draw()
            await desk.home()
        assert bench.events(Kind.TRIAL_STAGING) and not bench.events(Kind.SCENE_COMMITTED)

    at_console(bench, play)


def test_a_form_is_not_accepted_by_the_key_that_opened_it_or_before_it_was_read(tmp_path):
    async def play(desk: Desk) -> None:
        await desk.press("enter")
        await desk.press("enter", after_ns=QUICK_NS)
        assert desk.asked() and not desk.bench.events(Kind.SESSION_OPENED) and "twice within 300 ms" in desk.text()
        await desk.press("enter")
        assert desk.bench.events(Kind.SESSION_OPENED)

    with evening(tmp_path) as bench:
        at_console(bench, play)


OK_BUTTONS = {  # keys that open a form which ends an episode or takes away what stands against motion
    "a void": ("v", ("shift+tab", "1"), Kind.EPISODE_VOIDED),
    "an acknowledgement": ("a", ("shift+tab", "shift+tab", "1", "tab", "o", "k"), Kind.HOLD_CLEARED),
    "a trial given back": ("r", ("shift+tab", "o", "k"), Kind.TRIAL_RELEASED),
}


@pytest.mark.parametrize("what", OK_BUTTONS)
def test_nor_by_a_click_on_its_button_before_it_was_read_nor_by_a_second_one_at_once(bench, what):
    """A click takes the focus to the button, from which the fields are filled."""
    opener, filled, written = OK_BUTTONS[what]

    async def play(desk: Desk) -> None:
        async def click() -> None:
            await desk.pilot.click("#ok")
            await desk.settle()
            await desk.draw()

        await desk.press("enter", "enter", "enter")
        await desk.home()
        if what == "a void":
            await desk.press("enter")
            await desk.ready()
        if what == "an acknowledgement":
            await desk.press("space")
        desk.let(SECOND)
        desk.app.post_message(Key(opener, opener))  # and nothing is drawn behind it
        await desk.settle()
        before = len(bench.events(written))
        desk.let(QUICK_NS)
        await click()
        assert desk.asked() and "the screen has just changed: CLICK did nothing" in flat(desk.text())
        desk.let(QUICK_NS)
        await click()
        assert desk.asked() and "twice within 300 ms" in desk.text()
        await desk.press(*filled)
        assert desk.asked() and len(bench.events(written)) == before
        desk.let(SECOND)
        await click()
        assert not desk.asked() and len(bench.events(written)) == before + 1

    at_console(bench, play)


def test_pasted_text_never_acts_marked_as_such_or_not(bench):
    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter")
        desk.let(SECOND)
        desk.app.post_message(Paste("\nee\n"))
        await desk.settle()
        assert "pasted text does nothing" in desk.text()
        for key in ("enter", "e", "v", "m", "enter"):
            desk.app.post_message(Key(key, None))
        await desk.settle()
        desk.let(SECOND)
        await desk.draw()
        assert "pasted text never acts" in desk.text() and not bench.events(Kind.TRIAL_STAGING)
        episode = await desk.running()
        assert episode
        for _ in range(2):
            desk.app.post_message(Key("e", "e"))
        await desk.settle()
        await desk.draw()
        assert ended(bench) == []

    at_console(bench, play)


def test_a_form_says_what_became_of_keys_that_came_all_at_once_until_one_comes_by_itself(bench):
    """What was typed behind the ENTER that did nothing took the words away at once: nobody saw why half was missing."""

    async def play(desk: Desk) -> None:
        await desk.press("enter", "enter", "n")
        desk.let(SECOND)
        for key in ("l", "a", "enter", "m", "p"):
            desk.app.post_message(Key(key, key if len(key) == 1 else None))
        await desk.settle()
        await desk.draw()
        assert desk.asked() and "lamp" in desk.text() and not bench.events(Kind.NOTE)
        assert "pasted text never acts" in desk.text()
        await desk.press("s")
        assert "lamps" in desk.text() and "pasted" not in desk.text()
        desk.app.post_message(Paste(" out\nreplaced\n"))
        await desk.settle()
        await desk.draw()
        assert "lamps out" in desk.text() and "replaced" not in desk.text()
        assert "of pasted text the first line is here, and no more" in desk.text()
        await desk.press("enter")
        assert [event.body["text"] for event in bench.events(Kind.NOTE)] == ["lamps out"]

    at_console(bench, play)


def test_the_second_e_that_ends_an_episode_is_a_press_of_its_own(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press("e")
        await desk.press("e", "e", after_ns=QUICK_NS)
        assert ended(bench) == []
        await desk.press("e")
        assert ended(bench) == ["operator"]

    at_console(bench, play)


def test_a_hand_that_is_marked_is_not_marked_twice_by_a_key_that_repeats(bench):
    async def play(desk: Desk) -> None:
        await desk.running()
        await desk.press("i")
        await desk.press("i", after_ns=QUICK_NS)
        assert "a hand is in it" in desk.text() and not bench.events(Kind.INTERVENTION_ENDED)

    at_console(bench, play)


def test_a_capital_that_is_bound_to_nothing_is_its_small_letter_and_a_text_keeps_it(bench):
    async def play(desk: Desk) -> None:
        episode = await desk.running()
        await desk.press("E", "e")
        await desk.sealed(episode)
        await desk.press("N", "C", "a", "m")
        assert desk.app.screen.query_one(Line).value == "Cam"
        await desk.press("escape", "H")
        assert "block" in flat(desk.text()) and isinstance(desk.app.screen, Form)
        await desk.press("escape", "enter", "A")
        assert "all moved" in flat(desk.text())

    at_console(bench, play)
