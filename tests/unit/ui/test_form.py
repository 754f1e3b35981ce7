"""Claims about forms: what is ticked cannot be misread, every field is reached in a small terminal, and what is wrong
is said beside the field that it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Label

from labctl.ui.console import app, asking, measures, people, stops_and_voids
from labctl.ui.console.form import Form, Line, Options
from labctl.ui.review.review import AskOperation

CHECKS = ["the e-stop was tried", "both totes are empty", "the cameras are clean", "nobody stands in the cell"]
STATE: Any = {
    "people": [{"id": "ann", "roles": ["operator", "setter", "assessor"]}],
    "checks": CHECKS,
    "rules": {"void_reasons": ["dropped frame", "operator error", "power", "network", "wrong scene"]},
    "trial_state": "scoring",
    "evidence": None,
    "needs_second": True,
    "episode": "e-1",
    "with_code": ["bob"],
    "confirmed": [{"by": "dora", "reason": "power"}],
    "last_void": False,
}
ABOUT: asking.ToScore = {
    "items": 8,
    "stages": ["reached", "grasped", "lifted", "placed"],
    "tags": ["missed", "dropped", "collided", "froze", "wrong item", "too slow"],
    "counted": 3,
    "proposal": {"items_staged": 8, "moved": 3, "lost": 1, "remaining": 4},
    "ended": "all_done",
    "marks": ["0:12 after go", "0:31 after go"],
    "unsaid": [0, 1],
}
LONG = "the robot stopped on its way home: the run process was not heard in time; look at the cell. " * 4
STEPS: Any = [
    {"name": name, "points": points, "definition": f"{name}: {LONG[:60]}"}
    for name, points in (("reached", 1.0), ("grasped", 1.0), ("lifted", 2.0), ("placed", 3.0))
]
RUBRIC: Any = [{"score": score, "text": f"{LONG[:90]}"} for score in (0.0, 0.25, 0.5, 0.75, 1.0)]
OF_TASK: asking.ToScore = {**ABOUT, "measure": "stages", "steps": STEPS, "rubric": RUBRIC, "measured": None}
PAIR: Any = {
    "block": 0,
    "question": "Which of the two episodes did the task better?",
    "first": "e-1",
    "second": "e-2",
    "places": [1, 3],
    "trials": ["trial 1 of 8", "trial 3 of 8"],
}
FORMS: dict[str, Callable[[], Form]] = {
    "session": lambda: people.AskSession(STATE, "ann"),
    "people": lambda: people.AskPeople(STATE, "ann"),
    "touch": lambda: asking.AskIntervention(0),
    "text": lambda: asking.AskText("A note for the record", "text"),
    "void after go": lambda: stops_and_voids.AskVoid(STATE),
    "second person": lambda: stops_and_voids.AskConfirm(STATE, "dora"),
    "void before go": lambda: stops_and_voids.AskVoid({**STATE, "trial_state": "armed", "needs_second": False}),
    "stop by hand": lambda: stops_and_voids.AskStop("operator_stop", LONG),
    "stop": lambda: stops_and_voids.AskStop("safety_stop", LONG),
    "score": lambda: asking.AskScore(ABOUT),
    "correction": lambda: asking.AskScore(ABOUT, {"moved": 3, "lost": 0}, why=True),
    "guess": lambda: asking.AskGuess(["a", "b", "c", "d"], "t-1", "2 of 48"),
    "confirm": lambda: asking.Confirm(LONG, "Acknowledge"),
    "hold": lambda: stops_and_voids.ConfirmHold("arm_lost", LONG, "Acknowledge"),
    "operation": lambda: AskOperation(),
    "stages": lambda: measures.form(OF_TASK),
    "success": lambda: measures.form({**OF_TASK, "measure": "success", "steps": STEPS[:1]}),
    "rubric": lambda: measures.form({**OF_TASK, "measure": "score"}),
    "stages corrected": lambda: measures.form(OF_TASK, {"reached_s": [1.5, None]}, why=True),
    "rubric corrected": lambda: measures.form({**OF_TASK, "measure": "score"}, {"score": 0.5}, why=True),
    "preference": lambda: measures.AskPreference(PAIR),
    "preference again": lambda: measures.AskPreference(PAIR, {**PAIR, "preferred": "first", "why": "it lay flat"}),
}
ROUNDS = 500  # of mail
SIZES = [
    pytest.param((80, 24), id="80x24"),
    *(pytest.param(size, id=f"{size[0]}x{size[1]}", marks=pytest.mark.thorough) for size in ((120, 36), (200, 50))),
]
each_form = pytest.mark.parametrize("name", FORMS)
SOME = ("session", "void after go", "stop", "score", "correction", "guess", "stages", "preference")  # one of each make
and_each_thoroughly = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOME else pytest.mark.thorough) for name in FORMS]
)


class Host(App[None]):
    CSS_PATH = Path(app.__file__).with_name("console.tcss")

    def on_mount(self) -> None:
        self.animation_level = "none"  # a scroll that takes its time is judged before its end


def shown(
    form: Form, play: Callable[[Pilot[Any], Form], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> list[object]:
    """Play with a form on its own; what it answered."""
    answers: list[object] = []

    async def session() -> None:
        host = Host()
        async with host.run_test(size=size) as pilot:
            form.stops = True
            host.push_screen(form, answers.append)
            await pilot.pause()
            await play(pilot, form)

    asyncio.run(session())
    return answers


def text(form: Form) -> str:
    return "\n".join("".join(part.text for part in strip) for strip in form._compositor.render_strips())


async def brought_inside(pilot: Pilot[Any], form: Form) -> bool:
    """Does what has the focus come to be seen? A screen is laid out and scrolled some messages after a key."""
    for _ in range(ROUNDS):
        if form.focused is not None and inside(form, form.focused):
            return True
        await pilot.pause(0)
    return False


async def settled(pilot: Pilot[Any], form: Form) -> str:
    before = ""
    while before != (before := text(form)):
        for _ in range(3):
            await pilot.pause(0)
    return before


def inside(form: Form, widget: Widget) -> bool:
    """Is a row of this widget in the part of the form that is seen? A list that is higher than it is scrolled."""
    seen = form.query_one("#fields").region if widget.parent is form.query_one("#fields") else form.region
    return seen.overlaps(widget.region) and seen.bottom >= min(widget.region.bottom, widget.region.y + 1)


@pytest.mark.parametrize("size", SIZES)
@each_form
def test_every_field_is_reached_by_tab_and_seen_then_and_the_foot_is_always_there(name, size):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        reached = []
        for _ in form.focus_chain:
            screen = await settled(pilot, form)
            assert await brought_inside(pilot, form), form.focused
            screen = await settled(pilot, form)
            assert "(ctrl+s)" in screen and "(esc)" in screen, "how it is accepted and left"
            assert ("SPACE types a blank here, F12 stops" if form.typing else "SPACE or F12 stops") in screen
            reached.append(form.focused)
            await pilot.press("tab")
        fields = [*form.query("Line, Options, Button")]
        assert {field.id for field in reached} == {field.id for field in fields}

    shown(FORMS[name](), play, size)


@and_each_thoroughly
def test_a_form_that_says_that_it_has_no_text_field_has_none(name):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        assert form.words == any(line.takes_words for line in form.query(Line))

    shown(FORMS[name](), play)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "keys", "field", "words"),
    [
        ("session", (), "checks", "not yet answered: the e-stop was tried, both totes are empty"),
        ("session", ("end", "ctrl+u", "ctrl+s"), "role-operator", "nobody is the operator"),
        ("text", (), "line", "the line is empty"),
        ("void after go", (), "reason", "choose a reason"),
        ("void after go", ("1",), "second", "the second person's id is empty"),
        ("void before go", (), "reason", "choose a reason"),
        ("stop by hand", (), "cause", "choose the cause"),
        ("stop by hand", ("3",), "why", "why is empty"),
        ("stop", (), "why", "why is empty"),
        ("score", ("tab", "tab"), "stage", "choose the furthest stage reached, or none of them"),
        ("score", ("9",), "moved", "moved 9 + lost 1 is more than the 8 items staged; count again"),
        ("score", ("backspace",), "moved", "moved is a whole number, 0 or more"),
        ("correction", ("tab", "tab", "2"), "why", "why is empty"),
        ("operation", (), "at", "the time is empty"),
        ("operation", ("minus",), "at", "the time is a number of seconds"),
        ("stages", (), "reached", "nothing was seen: choose how far it got, by its number"),
        ("success", (), "reached", "nothing was seen: choose how far it got"),
        ("stages corrected", (), "why", "why is empty"),
        ("rubric", (), "score", "give the score, a number from 0 to 1"),
        ("rubric", ("2",), "score", "the score is 2; it must be from 0 to 1"),
        ("rubric corrected", (), "why", "why is empty"),
        ("preference", (), "preferred", "choose the earlier, the later or neither"),
        ("preference", ("3",), "why", "why is empty"),
    ],
)
def test_what_is_wrong_is_said_and_its_field_is_scrolled_to_and_has_the_cursor(name, keys, field, words, size):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.press(*keys, "ctrl+s")
        screen = await settled(pilot, form)
        assert words in screen
        assert form.focused is not None and form.focused.id == field and await brought_inside(pilot, form)

    assert shown(FORMS[name](), play, size) == []


def test_what_was_wrong_is_not_said_any_more_once_something_else_is_given():
    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.press("ctrl+s")
        assert "choose a reason" in await settled(pilot, form)
        await pilot.press("2")
        assert "choose a reason" not in await settled(pilot, form)

    shown(FORMS["void after go"](), play)


def test_each_kind_of_form_is_among_those_that_are_tried() -> None:
    """Those with two faces, and any that is added."""
    kinds: set[type[Form]] = {Form}
    while kinds != (kinds := kinds | {found for kind in kinds for found in kind.__subclasses__()}):
        pass
    asked = {kind for kind in kinds if kind.__module__.startswith("labctl.ui.")} - {Form}
    assert {type(make()) for make in FORMS.values()} == asked


def test_a_mark_reads_as_what_it_is_without_any_colour():
    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.press("tab", "tab", "tab", "2")
        rows = [line.strip("▊▎ ›") for line in (await settled(pilot, form)).splitlines() if "] " in line]
        assert rows == [f"[{'x' if n == 2 else ' '}] {n} {check}" for n, check in enumerate(CHECKS, 1)]
        await pilot.press("2", "down", "x", "down", "enter")
        assert form.ticked("checks") == CHECKS[2:]

    shown(FORMS["session"](), play)


def test_no_form_has_the_marks_of_textual_in_which_an_unticked_box_has_a_cross():
    """Its box is the same cross in either state, and only its colour says which."""
    for name, form in FORMS.items():

        async def play(pilot: Pilot[Any], form: Form, name: str = name) -> None:
            assert not form.query("Checkbox, SelectionList, RadioSet, Select"), name
            assert "▐" not in await settled(pilot, form), name

        shown(form(), play)


@pytest.mark.parametrize(("key", "reached"), [("1", None), ("3", "grasped")])
def test_that_no_stage_was_reached_is_an_answer(key, reached):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.press("tab", "tab", key, "ctrl+s")

    (answer,) = shown(FORMS["score"](), play)
    assert isinstance(answer, dict) and answer["stage_reached"] == reached


def test_an_undo_begins_with_what_was_scored():
    given = {"moved": 5, "lost": 0, "stage_reached": None, "tags": ["froze"], "notes": "lamp"}

    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.press("ctrl+s")

    (answer,) = shown(asking.AskScore({**ABOUT, "ended": "budget", "unsaid": ()}, given), play)
    assert isinstance(answer, dict)
    assert {key: answer[key] for key in given} == given


@pytest.mark.parametrize("row", [0, 2])
def test_a_click_on_a_choice_takes_it(row):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.click("#reason", offset=(6, row))
        assert form.query_one(Options).value == STATE["rules"]["void_reasons"][row]

    shown(FORMS["void before go"](), play)


@pytest.mark.parametrize("choice", [2, 3, 5])
def test_so_does_one_where_a_choice_above_it_takes_two_lines(choice):
    async def play(pilot: Pilot[Any], form: Form) -> None:
        rows = (await settled(pilot, form)).splitlines()
        options = form.query_one(Options)
        row = next(n for n, line in enumerate(rows) if f") {choice} " in line)
        assert row - options.region.y > choice - 1, "one above it is wrapped"
        for below in (0, 1) if choice < 5 else (0,):
            options.put([])
            await pilot.click("#reached", offset=(8, row + below - options.region.y))
            assert options.value == str(choice % 5)

    shown(FORMS["stages"](), play, (80, 40))


def test_the_choice_at_hand_is_brought_into_sight_where_those_above_it_take_two_lines_each():
    steps = [{"name": f"stage {n}", "points": 1.0, "definition": LONG[:85]} for n in range(8)]
    form = measures.form({**OF_TASK, "steps": steps})

    async def play(pilot: Pilot[Any], form: Form) -> None:
        for _ in range(8):
            await pilot.press("down")
            assert "›" in await settled(pilot, form)
        await pilot.press("x")
        assert form.query_one(Options).value == "0" and "none of them" in await settled(pilot, form)
        await pilot.press("1")
        assert "(x) 1 " in await settled(pilot, form)

    shown(form, play)


@and_each_thoroughly
def test_a_click_that_accepts_a_form_is_asked_whether_a_person_meant_it(name):
    """For every form, also one that will be: what orders motion or reveals is accepted by nothing else."""
    form, why = FORMS[name](), ["click came twice"]
    form.clicked = lambda: why[0]

    async def play(pilot: Pilot[Any], form: Form) -> None:
        await pilot.click("#ok")
        assert why[0] in await settled(pilot, form)
        assert form.is_current, "it stays open"
        why[0] = ""
        await pilot.click("#ok")
        await pilot.pause()
        assert not form.is_current or "click came twice" not in await settled(pilot, form)

    shown(form, play)


def test_why_a_key_did_nothing_outlives_a_change_that_was_made_before_it() -> None:
    form = stops_and_voids.AskVoid({**STATE, "trial_state": "armed", "needs_second": False})

    async def play(pilot: Pilot[Any], form: Form) -> None:
        earlier = Options.Changed()
        form.say("the screen has just changed: CTRL+S did nothing")
        form.forget_wrong(earlier)
        assert str(form.query_one("#wrong", Label).content).startswith("the screen has just changed")
        form.forget_wrong(Options.Changed())
        assert not str(form.query_one("#wrong", Label).content)

    shown(form, play)
