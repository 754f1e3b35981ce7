"""What a form is made of: lines of text, numbers, choices, and a foot that is always on the screen.

May not: know what is asked, send anything, or give SPACE a meaning outside a text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Blur, Click, Focus, Key, Paste
from textual.geometry import Region
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Label, Static

from labctl.core.published_state import PublishedState
from labctl.ui.console.link import Json

Answer = dict[str, Json]
Given = str | tuple[str, ...]  # what stands in a line, what is taken of choices
LOW = 36  # rows below which a form leaves out its frames: all of it is on the screen
NUMBERS = 9  # choices that have a key of their own
FIRST_LINE = "of pasted text the first line is here, and no more"


class Unfit(ValueError):
    """What is wrong with one field of a form, and which."""

    def __init__(self, field: str, line: str) -> None:
        super().__init__(line)
        self.field = field


class Line(Input):
    """A line of text or a number, in which what moves or deletes happens in the order it was typed: as bindings those
    keys would come after what was typed behind them while the screen was busy.
    """

    _EDITS: ClassVar = {
        key: binding.action
        for binding in Input.BINDINGS
        if isinstance(binding, Binding) and binding.action != "submit"
        for key in binding.key.split(",")
    }

    @property
    def takes_words(self) -> bool:
        """Is SPACE a blank here? In a number it is not."""
        return self.type == "text"

    def _on_paste(self, event: Paste) -> None:  # beside Input's own, which textual calls too
        if len(event.text.splitlines()) > 1 and isinstance(self.screen, Form):
            self.screen.say_of_pasted(FIRST_LINE)

    async def _on_key(self, event: Key) -> None:
        if event.key in self._EDITS:
            event.stop()
            event.prevent_default()
            await self.run_action(self._EDITS[event.key])
            return
        await super()._on_key(event)


class Options(Static, can_focus=True):
    """Choices, all of them seen, each with a mark and a number: ENTER, x or the number takes one, a click too. many:
    each is ticked and unticked by itself; otherwise one at a time is taken.
    """

    BINDINGS: ClassVar = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("enter,x", "take", show=False),
        *(Binding(str(n), f"number({n})", show=False) for n in range(1, NUMBERS + 1)),
    ]

    def __init__(
        self, options: Sequence[tuple[str, str]], *, id: str, many: bool = False, taken: Sequence[str] = ()
    ) -> None:
        """options: (words, value); taken: the values that are taken to begin with."""
        super().__init__("", id=id, classes="options", markup=False)
        self._options, self._many, self._at = options, many, 0
        self._rows: list[Content] = []  # as they are drawn, each of one line or more
        self._taken = [value for _, value in options if value in taken]
        if self._taken and not many:  # what stands is what ENTER takes
            self._at = [value for _, value in options].index(self._taken[0])

    class Changed(Message):
        """Something else is taken now."""

    @property
    def value(self) -> str | None:
        """The one that is taken, if any."""
        return self._taken[0] if self._taken else None

    @property
    def values(self) -> list[str]:
        """What is taken, in the order of the choices."""
        return [value for _, value in self._options if value in self._taken]

    def put(self, values: Sequence[str]) -> None:
        """Take these of the choices and no others."""
        self._taken = [value for _, value in self._options if value in values]
        self._draw()

    def on_mount(self) -> None:
        self._draw()

    def on_focus(self, event: Focus) -> None:
        self._draw()

    def on_blur(self, event: Blur) -> None:
        self._draw()

    def _draw(self) -> None:
        self._rows = []
        for at, (words, value) in enumerate(self._options):
            taken, here = value in self._taken, at == self._at and self.has_focus
            number = f"{at + 1} " if len(self._options) > 1 and at < NUMBERS else ""
            mark = ("[x]" if taken else "[ ]") if self._many else ("(x)" if taken else "( )")
            style = " ".join(["bold $text-success" if taken else "", "reverse" if here else ""]).strip()
            self._rows.append(Content.styled(f"{'›' if here else ' '} {mark} {number}{words}", style))
        self.update(Content("\n").join(self._rows))

    def _heights(self) -> list[int]:
        """How many lines of the screen each choice takes: a long one is wrapped."""
        return [row.get_height({}, self.content_size.width) for row in self._rows]

    def action_move(self, by: int) -> None:
        self._at = min(max(self._at + by, 0), len(self._options) - 1)
        self._draw()
        self._bring_into_sight()

    def _bring_into_sight(self) -> None:
        """The choice at hand, all of its lines."""
        if isinstance(self.parent, VerticalScroll):
            heights = self._heights()
            top, height = self.virtual_region.y + sum(heights[: self._at]), heights[self._at]
            self.parent.scroll_to_region(Region(0, top, self.size.width, height), animate=False, force=True)

    def action_take(self) -> None:
        value = self._options[self._at][1]
        if self._many:
            self._taken.remove(value) if value in self._taken else self._taken.append(value)
        elif self._taken == [value]:
            if isinstance(self.screen, Form):
                self.screen.say("this one is taken already", wrong=False)
            return
        else:
            self._taken = [value]
        self._draw()
        self.post_message(self.Changed())

    def action_number(self, number: int) -> None:
        if number <= len(self._options):
            self._at = number - 1
            self.action_take()
            self._bring_into_sight()

    def on_click(self, event: Click) -> None:
        lines = [at for at, height in enumerate(self._heights()) for _ in range(height)]
        if 0 <= event.y < len(lines):
            self._at = lines[event.y]
            self.action_take()


class Accept(Button):
    """The button that accepts its form: a click is as deliberate as the key."""

    def on_click(self, event: Click) -> None:
        form = self.screen
        if isinstance(form, Form) and (why := form.clicked()):
            event.stop()
            event.prevent_default()
            form.say(why)


class Form(ModalScreen[Answer | None]):
    """A titled form with an OK and a way out. Subclasses give `fields` and `answer`, which raises Unfit with the field
    that is wrong and the line to show. `words`: it has a text field, so that it may not be open while a robot may move.
    `stops`: SPACE stops a robot. `draft`: what was given when it had to be put aside, by field; `given`: when it was
    accepted. `clicked`: takes a click on OK as a press, and says why it does nothing, "" when a person meant it.
    `begins_with`: a key of its own that was pressed before it opened. `of`: what of the published state it is about;
    once that is not what it was (`about`) when the form opened, a draft is gone, and so is the form itself if it has
    words for that (`overtaken`, by the state of now and `about`). `of_episode`: it is about the episode at hand.
    `taken_away`: nobody at it closed it.
    """

    BINDINGS: ClassVar = [("escape", "leave", "back"), ("ctrl+s", "accept", "ok")]
    title_text = ""
    ok_text = "OK"
    keys_text = ""  # its own keys
    words = True
    stops = False
    of_episode = False
    clicked: Callable[[], str] = staticmethod(lambda: "")
    draft: Mapping[str, Given] = {}
    given: Mapping[str, Given] = {}
    of: Callable[[PublishedState], Hashable] = staticmethod(lambda state: ())
    about: Hashable = ()
    overtaken: Callable[[PublishedState, Hashable], str] | None = None
    taken_away = False
    _filled: Mapping[str, Given] = {}  # what stood there before anything was given
    begins_with = ""
    _said = Message()  # of the moment in which the foot was written last
    _of_pasted = False  # it says what became of pasted text, until a key comes by itself

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            with VerticalScroll(id="fields", can_focus=False):
                yield Label(self.title_text, id="form-title", markup=False)
                yield from self.fields()
            yield Label("", id="wrong", markup=False)
            yield Label("", id="form-keys", markup=False)
            with Horizontal(id="form-buttons"):
                yield Accept(f"{self.ok_text}  (ctrl+s)", id="ok", variant="primary")
                yield Button("Back  (esc)", id="back")

    def on_resize(self) -> None:
        low = self.app.size.height < LOW
        self.set_class(low, "low")
        foot = 2 + 1 + (1 if low else 3)  # what is wrong, the keys, the buttons
        frame = 2 + (0 if low else 2)
        self.query_one("#fields").styles.max_height = max(self.app.size.height - foot - frame - 1, 3)

    def fields(self) -> Iterator[Widget]:
        yield from ()

    def answer(self) -> Answer:
        return {}

    def on_mount(self) -> None:
        self._filled = self._stands()
        for field in self.draft.keys() & self._filled.keys():  # what is asked now may be less than it was
            given, found = self.draft[field], self.query_one(f"#{field}")
            if isinstance(found, Line) and isinstance(given, str):
                found.value = given
            elif isinstance(found, Options):
                found.put(given)
        first = self.query("Line, Options")
        (first.first() if first else self.query_one("#ok")).focus()
        self.tell_keys()
        if self.begins_with:
            self.say(self.key_of(self.begins_with), wrong=False)

    def key_of(self, key: str) -> str:
        """Do what a key of this form's own does where no text is typed, and say what; "" for a key that is none."""
        return ""

    def accepts(self, key: str) -> bool:
        """Does this key accept the form as it is?"""
        return key == "ctrl+s" or (key == "enter" and isinstance(self.focused, (Line, Button)))

    def take(self, event: Key) -> bool:
        """Has this key been answered here, by what the form does with it or by why it does nothing? Otherwise it goes
        its way to the widgets.
        """
        key, focused, why = event.key, self.focused, ""
        if not event.is_printable or self.typing:
            return False
        if done := self.key_of(key):
            self.say(done, wrong=False)
            return True
        if isinstance(focused, Line):
            why = "" if event.character and event.character in "0123456789+-." else "this field takes a number"
        elif key not in self.active_bindings:
            number = isinstance(focused, Options) and key.isdigit()
            why = f"there is no choice {key}" if number else f"{key} does nothing in a form; ESC leaves it"
        if why:
            self.say(why)
        return bool(why)

    @property
    def typing(self) -> bool:
        """Is a text being typed, in which SPACE is a blank?"""
        return isinstance(self.focused, Line) and self.focused.takes_words

    @property
    def typed(self) -> dict[str, Given]:
        """What a person has given, by field; a secret is not kept."""
        return {field: given for field, given in self._stands().items() if given != self._filled.get(field)}

    def _stands(self) -> dict[str, Given]:
        """What stands in each field now."""
        lines: dict[str, Given] = {line.id or "": line.value for line in self.query(Line) if not line.password}
        return {**lines, **{choices.id or "": tuple(choices.values) for choices in self.query(Options)}}

    def take_away(self) -> None:
        """Close it over the head of whoever sits at it."""
        self.taken_away = True
        self.dismiss(None)

    def on_descendant_focus(self) -> None:
        self.tell_keys()

    def tell_keys(self) -> None:
        """What SPACE and ENTER do in the field at hand, in words."""
        parts = []
        if self.stops:
            parts.append("SPACE types a blank here, F12 stops" if self.typing else "SPACE or F12 stops the robot")
        if isinstance(self.focused, Options):
            parts.append("ENTER, x or a number ticks")
        if self.keys_text and not self.typing:
            parts.append(self.keys_text)
        self.query_one("#form-keys", Label).update(" · ".join(parts))

    @on(Input.Changed)
    @on(Options.Changed)
    def forget_wrong(self, event: Message) -> None:
        """What was wrong may be right now; but not what was said after this change had been made."""
        if (
            event.time >= self._said.time
            and not self._of_pasted
            and not self.query_one("#wrong", Label).has_class("told")
        ):
            self.say("")

    def say(self, text: str, *, wrong: bool = True) -> None:
        """One line at the foot, which is always seen."""
        self._said = Message()
        label = self.query_one("#wrong", Label)
        label.update(text)
        label.set_class(not wrong, "told")

    def say_of_pasted(self, text: str) -> None:
        """Say what became of pasted text: the rest of it, which is typed behind, does not take that away."""
        self.say(text)
        self._of_pasted = True

    def key_came(self, *, pasted: bool) -> None:
        """A key, by itself or among others that came all at once."""
        self._of_pasted = self._of_pasted and pasted

    @on(Button.Pressed, "#back")
    def action_leave(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#ok")
    @on(Input.Submitted)
    def action_accept(self) -> None:
        try:
            answer = self.answer()
        except Unfit as error:
            self.say(str(error))
            self.query_one(f"#{error.field}").focus()
            return
        self.given = self.typed
        self.dismiss(answer)

    def text(self, name: str) -> str:
        return self.query_one(f"#{name}", Line).value.strip()

    def needed(self, name: str, what: str) -> str:
        """What stands in a line. Raises Unfit, with what to write, where nothing does."""
        found = self.text(name)
        if not found:
            raise Unfit(name, f"{what} is empty; type it here")
        return found

    def reason(self) -> str:
        """What stands in the line `why`; nobody may leave it empty."""
        return self.needed("why", "the reason why")

    def ticked(self, name: str) -> list[str]:
        return self.query_one(f"#{name}", Options).values

    def chosen(self, name: str) -> str | None:
        return self.query_one(f"#{name}", Options).value

    def choice(self, name: str, missing: str) -> str:
        """What is taken of some choices. Raises Unfit with the line `missing` where nothing is."""
        found = self.chosen(name)
        if found is None:
            raise Unfit(name, missing)
        return found
