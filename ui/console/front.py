"""Where keys come in: the stop before all else, then what a key may not do now, in words, then the widgets.

May not: know a verb or a state of a trial; the console says what stands against a key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial

from textual.app import App
from textual.binding import Binding
from textual.command import CommandPalette
from textual.events import Event, Key, Paste
from textual.widgets import Input

from labctl.clock import Clock
from labctl.ui.console import keys as console_keys
from labctl.ui.console import refusals
from labctl.ui.console.form import Form, Line
from labctl.ui.console.named import KeysByName, Named
from labctl.ui.console.presses import PASTED, PASTED_NS, Press, Presses
from labctl.ui.console.stopping import arrived_ns, with_stop_key

NAMES = "Search for commands… (SPACE types a blank here, F12 stops)"
FIRST = ("keys", "stop")  # of the names, by the ids of their keys: an ENTER that nobody meant lists the keys


def _of(key: Binding) -> str:
    """The action of a key, without arguments."""
    return key.action.partition("(")[0]


class Front(App[str]):
    """See the module. `hands` is the clock by which presses are timed; a subclass answers the hooks at the end."""

    COMMANDS = {KeysByName}  # noqa: RUF012  (as Textual has it)

    def __init__(self, hands: Clock, rebound: Mapping[str, str]) -> None:
        self.hands = hands
        self._stop_keys = console_keys.stop_keys(rebound)
        self._actions = console_keys.actions(rebound)
        self._ordered: tuple[int, Callable[[], None]] | None = None
        self._rebound = {**rebound, **({"stop": ",".join(sorted(self._stop_keys))} if rebound else {})}
        self.presses, self.press = Presses(), Press()
        self._chosen = Press()  # by which a command was chosen by its name
        self.keys_pressed = 0  # since the last command was sent
        super().__init__(driver_class=with_stop_key(self.get_driver_class(), self.is_stop, self.stop_now, hands))

    # -- the stop

    @property
    def typing(self) -> bool:
        """Is a text being typed, in which SPACE is a blank?"""
        stack = self._screen_stack
        focused = stack[-1].focused if stack else None
        return focused.takes_words if isinstance(focused, Line) else isinstance(focused, Input)

    def is_stop(self, key: str) -> bool:
        """Does this key stop the robot now? While a text is typed, only a key that types nothing does."""
        types = len(key) == 1 or key == "space"
        return key in self._stop_keys and not (types and self.typing) and self.may_stop()

    # -- every key

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and not event.is_forwarded:
            if self._taken(event):
                return
            await super().on_event(event)
            self.press = Press()
            return
        if isinstance(event, Paste) and not event.is_forwarded and not isinstance(self.focused, Input):
            self.tell(refusals.PASTED, wrong=True)
            return
        await super().on_event(event)

    def _taken(self, event: Key) -> bool:
        """Has this key been answered here, by a stop or by words? Otherwise it goes its way."""
        self._without_shift(event)
        key = event.key
        if not self.is_stop(key) and self.take_back():
            self.tell(PASTED, wrong=True)
        if key in console_keys.STOP_KEYS and not self.may_stop():
            self.tell(refusals.READ_ONLY, wrong=True)
            return True
        if self.is_stop(key):
            self.stop_now()
            return True
        self.keys_pressed += 1
        self.press = self._pressed_now(key, arrived_ns(event) or self.hands.now_ns())
        if key == "ctrl+c":
            self.tell(refusals.CTRL_C, wrong=True)
            return True
        if isinstance(self.screen, Form):
            return self._taken_by_form(self.screen, event)
        if isinstance(self.screen, CommandPalette) or isinstance(self.focused, Input):
            self._chosen = self.press
            return False
        why = self._why_not(key)
        if why:
            self.tell(why, wrong=True)
        return bool(why)

    def _pressed_now(self, key: str, at_ns: int) -> Press:
        """A press, of what is on the screen by now: it may have come there since the last look."""
        self.presses.shown(self.offer(), self.hands.now_ns())
        return self.presses.take(key, at_ns)

    def clicked(self) -> Press:
        """A click on a button, which is a press as a key's is."""
        return self._pressed_now("click", self.hands.now_ns())

    def _without_shift(self, event: Key) -> None:
        """A capital that is bound to nothing is its small letter: guides print keys so, and a caps lock types them."""
        key, bound = event.key, self.screen.active_bindings
        if len(key) != 1 or not key.isupper() or self.typing or key in bound or key in self._actions:
            return
        if key.lower() in bound or isinstance(self.screen, Form):
            event.key = event.character = key.lower()

    def _why_not(self, key: str) -> str:
        """Why a key does nothing on a screen without a form, "" when it does something."""
        action = self._actions.get(key)
        if action is not None:
            return self.press.refusal() if self.press.pasted else self.stands_against(action)
        if key not in self.screen.active_bindings:
            if key == "escape":
                return refusals.NOTHING_OPEN
            return f"{key} does nothing here; ? lists the keys"
        return ""

    def _taken_by_form(self, form: Form, event: Key) -> bool:
        form.key_came(pasted=self.press.pasted)
        if why := self.press.refusal(order=True) if form.accepts(event.key) else "":
            (form.say_of_pasted if self.press.pasted else form.say)(why)
            return True
        return form.take(event)

    # -- orders

    def order(self, do: Callable[[], None]) -> None:
        """Do what orders motion once no other key has come with this one."""
        self._ordered = (self.hands.now_ns() + PASTED_NS, do)

    def carry_out(self) -> None:
        """Do what was ordered and is due."""
        ordered = self._ordered  # a stop may take it back meanwhile, from another thread
        if ordered is not None and self.hands.now_ns() >= ordered[0]:
            self._ordered = None
            ordered[1]()

    def take_back(self) -> bool:
        """Forget what was ordered and is not due yet. Was there anything?"""
        ordered, self._ordered = self._ordered, None
        return ordered is not None

    def action_command_palette(self) -> None:
        """Every key by its name: it has a text field, so not while the robot may move."""
        if self.words_wait():
            self.tell(refusals.MOVING, wrong=True)
        else:
            self.push_screen(CommandPalette(placeholder=NAMES, id="--command-palette"))

    def named(self) -> list[Named]:
        """Every key by its name: what does something now, then the rest."""
        found: list[Named] = []
        for key in sorted(console_keys.KEYS, key=lambda one: FIRST.index(one.id) if one.id in FIRST else len(FIRST)):
            action, does = _of(key), self.does(key)
            if action == "reach" and not self.may_act(action):
                continue
            stops = action == "stop"
            why = ("" if self.may_stop() else refusals.READ_ONLY) if stops else self.stands_against(action)
            typed = console_keys.typed(self._rebound.get(key.id or "", key.key))
            found.append(Named(does, typed, why, partial(self.by_name, key, does)))
        return sorted(found, key=lambda one: bool(one.why_not))

    async def by_name(self, key: Binding, meant: str) -> None:
        """What a key does, by the same rule and in the state of now. meant: what it did when it was offered."""
        action = _of(key)
        if action == "stop":
            self.stop_now() if self.may_stop() else self.tell(refusals.READ_ONLY, wrong=True)
            return
        changed = refusals.CHANGED if self.does(key) != meant else ""
        why = self.stands_against(action) or changed or self._chosen.refusal(order=action == "primary")
        if why:
            self.tell(why, wrong=True)
            return
        self.press = self._chosen
        await self.run_action(key.action)
        self.press = Press()

    # -- what the console answers

    def may_stop(self) -> bool:
        """May this console stop a robot at all?"""
        raise NotImplementedError

    def stop_now(self) -> None:
        """Stop the robot; may come from the driver's thread."""
        raise NotImplementedError

    def offer(self) -> Hashable:
        """What a press would do now: by this it is known since when the screen says so."""
        raise NotImplementedError

    def does(self, key: Binding) -> str:
        """What a key does now, in words."""
        return key.tooltip

    def may_act(self, action: str) -> bool:
        """Does an action do something now?"""
        raise NotImplementedError

    def stands_against(self, action: str) -> str:
        """Why an action does nothing now, "" when it does something."""
        raise NotImplementedError

    def words_wait(self) -> bool:
        """May no text field be open now?"""
        raise NotImplementedError

    def tell(self, text: str, *, wrong: bool = False) -> None:
        """Say a line where the person looks."""
        raise NotImplementedError
