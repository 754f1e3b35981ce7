"""The operator console: draws what the run process publishes, and sends what keys ask for.

May not: keep any state that matters: it can be killed at any moment, and another one started.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from labctl.ui.console import acts, asking, pages, screens
from labctl.ui.console.link import Json, Link
from labctl.ui.console.stopping import with_stop_key
from labctl.ui.console.tiles import Cameras, Joints
from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from labctl.clock import SECOND, Clock
from labctl.core.published_state import PublishedState, published
from labctl.errors import LabctlError

Reply = Mapping[str, Json]

PUMP_S = 1 / 25
SOON_S = (0.007, 0.014, 0.021, 0.028, 0.035)
CALM_NS = SECOND // 5  # after a key nothing that merely moves is drawn: the answer comes first
SILENT_NS = 3 * SECOND  # without a word for so long, nothing on the screen may be trusted
DRAW_NS = SECOND // 5  # what only grows older, such as the time left, is drawn no more often
TWICE_NS = 2 * SECOND
UNDO_NS = 10 * SECOND
STOP_KEYS = ("space", "f12")

KEYS = [
    Binding("enter", "primary", "go on", id="primary", show=False),
    Binding("space,f12", "stop", "STOP", id="stop"),
    Binding("question_mark", "page('keys')", "keys", id="keys"),
    Binding("plus,m", "count(1)", "item moved", id="moved"),
    Binding("minus,backspace", "count(-1)", "take back", id="taken_back"),
    Binding("i", "touch", "a hand in it", id="touch"),
    Binding("e", "end", "end", id="end"),
    Binding("f", "futility", "no progress", id="futility"),
    Binding("v", "void", "void", id="void"),
    Binding("u", "undo", "undo", id="undo"),
    Binding("r", "release", "give back", id="release"),
    Binding("k", "skip", "skip", id="skip", show=False),
    Binding("h", "wait('trial')", "hold after trial", id="hold_trial"),
    Binding("H", "wait('block')", "hold after block", id="hold_block"),
    Binding("a", "acknowledge", "acknowledge", id="acknowledge"),
    Binding("o", "override", "commit all the same", id="override"),
    Binding("R", "reference", "new reference", id="reference", show=False),
    Binding("n", "note", "note", id="note"),
    Binding("x", "leave_session", "close the session", id="close_session", show=False),
    Binding("w", "page('holds')", "what is wrong", id="holds", show=False),
    Binding("s", "page('session')", "session", id="session", show=False),
    Binding("d", "page('hand')", "driven by hand", id="hand", show=False),
    Binding("c", "page('cell')", "cell", id="cell"),
    Binding("t", "page('history')", "trials", id="history"),
    Binding("p", "page('report')", "path to the report", id="report", show=False),
    Binding("q", "quit", "leave", id="leave"),
]
ACTS = frozenset(key.action.partition("(")[0] for key in KEYS if key.id != "stop")


class Console(App[str]):
    """See the module. `who` acts; `keys` rebinds by id (`{"moved": "p"}`)."""

    CSS_PATH = "console.tcss"
    TITLE = "labctl"
    # taken before any widget is asked: on its way through all of them a key waits for whatever is being drawn
    BINDINGS: ClassVar[list[BindingType]] = [replace(key, priority=key.id != "stop") for key in KEYS]
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        link: Link,
        clock: Clock,
        *,
        who: str,
        keys: Mapping[str, str] | None = None,
        pump: bool = True,
    ) -> None:
        stop_keys = (keys or {}).get("stop", ",".join(STOP_KEYS)).split(",")
        self.typing = False
        self._stop_keys = frozenset(stop_keys)
        self._link = link
        base = self.get_driver_class()
        super().__init__(driver_class=with_stop_key(base, self._is_stop, self._stop_now))
        self._clock = clock
        self._who = who
        self._pump = pump
        self._state: PublishedState | None = None
        self._heard_ns = self._renew_ns = clock.now_ns()
        self._drawn_ns = self._calm_ns = 0
        self._asked: dict[str, Callable[[Reply], None]] = {}
        self._stopping = ""  # what to say of a stop that was pressed
        self._offered: tuple[object, ...] = ()
        self._pressed: tuple[str, int] = ("", 0)
        self._scored: tuple[str, int, asking.Answer, str | None] | None = None  # trial, until, outcome, end reason
        self._rebound = dict(keys or {})
        self.now = screens.Now()

    def _is_stop(self, key: str) -> bool:
        """Does this key stop the robot now? While a text is typed, only a key that types nothing does."""
        types = len(key) == 1 or key == "space"
        return key in self._stop_keys and not (types and self.typing) and not self._link.read_only

    def _stop_now(self) -> None:
        """Tell the arm at once, and the run process with the next drawing. Comes from the driver's thread."""
        reached = self._link.stop_arm()
        self._stopping = "the robot was told to stop" if reached else "no process of the robot is there to be stopped"

    def on_mount(self) -> None:
        if self._rebound:
            self.set_keymap(self._rebound)
        self.push_screen(self.now)
        if self._pump:
            self.set_interval(PUMP_S, self.pump)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing now are not offered; the stop is always."""
        if action in ACTS and (isinstance(self.screen, ModalScreen) or isinstance(self.focused, Input)):
            return False  # a form has the keys
        return self._may_act(action)

    def _may_act(self, action: str) -> bool:
        may_undo = self._scored is not None and self._clock.now_ns() <= self._scored[1]
        return acts.offers(action, self._state, self._who, read_only=self._link.read_only, may_undo=may_undo)

    # -- hearing and drawing

    def pump(self) -> None:
        """Take what has arrived and draw it."""
        now_ns = self._clock.now_ns()
        self.typing = isinstance(self.focused, Input)
        if self._stopping:
            told, self._stopping = self._stopping, ""
            self.send("stop", any_state=True, done=lambda reply: self.now.say(told))
        if not self._fresh(now_ns) and now_ns >= self._renew_ns:
            self._renew_ns = now_ns + SECOND
            if self._link.renew():
                self._asked.clear()
        for message in self._link.poll():
            if message.kind == "state":
                self._state, self._heard_ns = published(message.body), now_ns
            elif message.kind == "obs" and self.now.is_mounted:
                self.now.query_one(Joints).put(message.arrays, now_ns, draw=now_ns >= self._calm_ns)
            elif message.kind == "preview" and self.now.is_mounted and now_ns >= self._calm_ns:
                self.now.query_one(Cameras).put(message.body["camera"], message.arrays["image"], now_ns)
            elif message.kind == "ghost" and self.now.is_mounted:
                score = (message.body.get("scene") or {}).get("score")
                self.now.query_one(Cameras).ghost(message.body["camera"], message.arrays["image"], score, now_ns)
            elif message.kind == "reply":
                self._replied(message.body)
        news = self._heard_ns == now_ns or now_ns - self._drawn_ns >= DRAW_NS
        if self.now.is_mounted and news:
            self._drawn_ns = now_ns
            self.now.query_one(Cameras).ages(now_ns)
            offered = tuple(self._may_act(action) for action in ACTS)
            if offered != self._offered:  # asked of every key and told to every screen: not for each new version
                self._offered = offered
                self.refresh_bindings()
            fresh, there = self._fresh(now_ns), self._link.alive()
            self.now.draw(self._state, self._who, now_ns, fresh=fresh, there=there, read_only=self._link.read_only)
        if isinstance(self.screen, pages.Page) and self.screen.is_mounted:
            self.screen.draw(self._state)

    def _fresh(self, now_ns: int) -> bool:
        return self._state is not None and now_ns - self._heard_ns < SILENT_NS

    def _replied(self, reply: Reply) -> None:
        done = self._asked.pop(str(reply["id"]), None)
        if not reply["ok"]:
            self.now.say(str(reply["error"]), wrong=True)
        elif done is not None:
            done(reply)

    # -- sending

    def send(
        self,
        verb: str,
        role: str = "operator",
        args: Mapping[str, Json] | None = None,
        *,
        done: Callable[[Reply], None] | None = None,
        any_state: bool = False,
    ) -> None:
        """Send a command with the version this screen shows. any_state: it is right whatever has happened since."""
        version = None if any_state or self._state is None else self._state["version"]
        try:
            sent = self._link.command(verb, who=self._who, role=role, version=version, args=args)
        except LabctlError as error:
            self.now.say(str(error), wrong=True)
            return
        self._asked[sent] = done or (lambda reply: self.now.say(""))
        self._look_soon()

    def _look_soon(self) -> None:
        """Look for what a key has brought about before the next drawing is due."""
        self._calm_ns = self._clock.now_ns() + CALM_NS
        for delay_s in SOON_S if self._pump else ():
            self.set_timer(delay_s, self.pump)

    def _ask(self, form: asking.Form, verb: str, role: str = "operator", *, any_state: bool = False) -> None:
        def answered(answer: asking.Answer | None) -> None:
            if answer is not None:
                self.send(verb, role, answer, any_state=any_state)

        self.push_screen(form, answered)

    @on(Button.Pressed, "#primary")
    def action_primary(self) -> None:
        """The one thing to do now."""
        state = self._state
        act = acts.primary(state, self._who)
        if (
            state is None
            or act is None
            or act.why_not
            or not self._fresh(self._clock.now_ns())
            or self.screen is not self.now
        ):
            return
        if act.verb == "session":
            self._ask(asking.AskSession(state, self._who), "session")
        elif act.verb == "session_close":
            self.action_leave_session()
        elif act.verb == "acknowledge":
            self.action_acknowledge()
        elif act.verb == "score":
            self._score(state, act.role)
        elif act.verb == "skip":
            self.send("skip", act.role, {"reason": "max_voids"})
        else:
            self.send(act.verb, act.role, act.args)

    def _score(self, state: PublishedState, role: str) -> None:
        trial = str(state["trial"])

        def answered(outcome: asking.Answer | None) -> None:
            if outcome is None:
                return

            def recorded(reply: Reply) -> None:
                self._scored = (trial, self._clock.now_ns() + UNDO_NS, outcome, state["ended"])
                self.now.say("recorded; u undoes it for ten seconds")
                candidates = state["rules"]["candidates"]
                if candidates:
                    self.push_screen(asking.AskGuess(candidates), guessed)

            def guessed(guess: asking.Answer | None) -> None:
                if guess is not None:
                    self.send("guess", role, {"trial": trial, **guess}, any_state=True)

            self.send("score", role, outcome, done=recorded)

        self.push_screen(asking.AskScore(asking.to_score(state)), answered)

    def action_undo(self) -> None:
        """Correct what was just scored."""
        if self._state is None or self._scored is None or self._clock.now_ns() > self._scored[1]:
            self.now.say(
                "nothing was scored here in the last ten seconds; a later correction is made in the review", wrong=True
            )
            return
        trial, _, outcome, ended = self._scored
        roles = acts.roles_of(self._state, self._who)
        role = next((role for role in ("operator", "assessor") if role in roles), "operator")

        def answered(new: asking.Answer | None) -> None:
            if new is not None:
                self.send("correct", role, {"trial": trial, "why": "undo", **new}, any_state=True)

        about: asking.ToScore = {**asking.to_score(self._state), "proposal": None, "ended": ended}
        self.push_screen(asking.AskScore(about, outcome), answered)

    def action_stop(self) -> None:
        """Stop the robot: the driver has told the arm already; the run process journals who did."""
        if not self._link.read_only:
            self._stop_now()

    def action_count(self, by: int) -> None:
        self.send("count", "operator", {"by": by}, any_state=True)

    def action_touch(self) -> None:
        """Somebody's hand is in the scene from now on; or it is out again, and what it did."""
        if self._state and self._state["touching"]:
            self._ask_always(asking.AskTouch, "touch", phase="end")
        else:
            self.send("touch", "operator", {"phase": "begin"}, any_state=True)

    def _twice(self, key: str, what: str) -> bool:
        """True at the second press within two seconds."""
        last, at_ns = self._pressed
        now_ns = self._clock.now_ns()
        self._pressed = (key, now_ns)
        if last == key and now_ns - at_ns < TWICE_NS:
            self._pressed = ("", 0)
            return True
        self.now.say(f"press {key} again to {what}")
        return False

    def action_end(self) -> None:
        if self._may("end") and self._twice("e", "end this episode; it is scored as it stands"):
            self.send("end", "operator", {"reason": "operator"})

    def action_futility(self) -> None:
        if self._may("end") and self._twice("f", "end this episode for lack of progress"):
            self.send("end", "operator", {"reason": "futility"})

    def action_void(self) -> None:
        if self._state and (role := self._may("void")):
            self._ask(asking.AskVoid(self._state), "void", role)

    def action_release(self) -> None:
        if role := self._may("release"):
            self._ask(asking.AskText("Give this trial back: why?", "reason", ok="Give back"), "release", role)

    def action_skip(self) -> None:
        if role := self._may("skip"):
            self._ask(asking.AskText("Never run this trial: why?", "reason", ok="Skip"), "skip", role)

    def action_wait(self, after: str) -> None:
        title = f"Hold after this {after}: why? (may stay empty)"
        self._ask_always(lambda: asking.AskText(title, "why", ok="Hold", needed=False), "wait", after=after)

    def _ask_always(self, form: Callable[[], asking.Form], verb: str, **fixed: Json) -> None:
        def answered(answer: asking.Answer | None) -> None:
            if answer is not None:
                self.send(verb, "operator", {**fixed, **answer}, any_state=True)

        if self.screen is self.now:
            self.push_screen(form(), answered)

    def action_override(self) -> None:
        """Commit a scene that only its pictures stand against, with a reason that every report will print."""
        role = acts.may_override(self._state, self._who)
        if role is not None:
            form = asking.AskText(
                "Commit although the pictures differ: why is the scene right?", "override", ok="Commit"
            )
            self._ask(form, "commit", role)

    def action_reference(self) -> None:
        """Take what the cameras see now as what this scene is held against from here on."""
        roles = acts.roles_of(self._state, self._who) if self._state else ()
        role = next((role for role in ("operator", "setter") if role in roles), "operator")
        self._ask(
            asking.AskText("Take the view as it is for the reference: why?", "reason", ok="Take"), "reference", role
        )

    def action_note(self) -> None:
        self._ask_always(lambda: asking.AskText("A note for the record", "text", ok="Keep"), "note")

    def action_acknowledge(self) -> None:
        state = self._state
        holds = [(hold["code"], hold["text"]) for hold in (state["holds"] if state else ()) if hold["needs_person"]]
        holds += [(code, "a hold asked for") for code in (state["waiting"] if state else ())]
        if not holds:
            self.now.say("nothing waits for an acknowledgement")
            return
        code, text = holds[0]
        if "stop" in code:
            self._ask(asking.AskStop(code, text), "acknowledge", any_state=True)
        else:
            title = f"{text}\n\nHave you looked, and is the cause gone?"
            self._ask_always(lambda: asking.Confirm(title, "Acknowledge"), "acknowledge", code=code)

    def action_leave_session(self) -> None:
        form = asking.AskText("Close the session: what must the next ones know?", "handover", ok="Close", needed=False)
        self._ask_always(lambda: form, "session_close")

    def _may(self, verb: str) -> str | None:
        """A role that allows this verb now; says so when there is none."""
        if self.screen is not self.now or self._state is None:
            return None
        role = acts.role_for(self._state, self._who, verb)
        if role is None:
            self.now.say(f"{verb} is not possible now", wrong=True)
        return role

    # -- other pages

    def action_page(self, name: str) -> None:
        """Open a page beside the first screen; escape comes back."""
        if self.screen is self.now:
            if not self.is_screen_installed(name):  # made once: to open it again takes a moment only
                keys = [(self._rebound.get(key.id or "", key.key), key.description) for key in KEYS]
                self.install_screen(pages.page(name, [*keys, ("ctrl+p", "every command by name")]), name)
            self.push_screen(name)
            self._look_soon()
