"""A console on its link: it hears what the run process publishes and draws it, sends commands, and opens forms only
while nothing may move.

May not: keep any state that matters, or know what a key does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from textual.command import CommandPalette

from labctl.clock import SECOND, Clock
from labctl.core.published_state import PublishedState, published
from labctl.errors import LabctlError
from labctl.ui.console import acts, pages, refusals, screens
from labctl.ui.console.form import Answer, Form, Given
from labctl.ui.console.front import Front
from labctl.ui.console.keys import ACTS
from labctl.ui.console.link import Json, Link
from labctl.ui.console.picture import Photos
from labctl.ui.console.tiles import Cameras, Joints

Reply = Mapping[str, Json]

PUMP_S = 1 / 25
SOON_S = (0.007, 0.014, 0.021, 0.028, 0.035)
CALM_NS = SECOND // 5  # after a key nothing that merely moves is drawn: the answer comes first
SILENT_NS = 3 * SECOND  # without a word for so long, nothing on the screen may be trusted
KEPT = "; what you wrote is kept for later"
LOOK_WHETHER = "look whether it was done before you repeat it"
DRAW_NS = SECOND // 5  # what only grows older, such as the time left, is drawn no more often


class Draft(NamedTuple):
    """What was typed in a form that was put aside, by field, and what it was about."""

    of: Callable[[PublishedState], Hashable]
    about: Hashable
    typed: Mapping[str, Given]


class Asked(NamedTuple):
    """An order on its way: its verb, what is done with the answer, when it is missed, the form that gave it."""

    verb: str
    done: Callable[[Reply], None]
    missed_ns: int | None  # None: that was said
    title: str
    draft: Draft | None


@dataclass(frozen=True)
class Seat:
    """Who sits at a console, and what differs from seat to seat."""

    who: str  # who acts here until somebody else says so
    keys: Mapping[str, str] = field(default_factory=dict)  # rebound, by id: {"moved": "g"}
    pump: bool = True  # draw by itself
    hands: Clock | None = None  # what presses are timed by; None: the console's clock
    photos: Photos | None = None  # the pictures that the campaign keeps


class Attached(Front):
    """See the module."""

    def __init__(self, link: Link, clock: Clock, seat: Seat) -> None:
        self._link = link
        super().__init__(seat.hands or clock, seat.keys)
        self._clock = clock
        self._who = seat.who
        self._pump = seat.pump
        self._state: PublishedState | None = None
        self._heard_ns = self._renew_ns = clock.now_ns()
        self._drawn_ns = self._calm_ns = 0
        self._asked: dict[str, Asked] = {}
        self._giving: tuple[str, Draft | None] = ("", None)  # the form whose answer is being sent
        self._there = True  # the run's process, as it was looked up last
        self._stopping = ""  # what to say of a stop that was pressed
        self._offered: tuple[bool, ...] = ()
        self._lines_shown = 0  # how many lines were shown
        self._refused = False  # is the last of them why a key did nothing?
        self._line = ""  # the last of them
        self._drafts: dict[str, Draft] = {}  # by the form's title
        self.now = screens.Now()

    def may_stop(self) -> bool:
        return not self._link.read_only

    def stop_now(self) -> None:
        """Tell the robot at once, and the run process with the next drawing."""
        self.keys_pressed += 1
        reached, taken_back = self._link.stop_robot(), self.take_back()
        said = "the robot was told to stop" if reached else "no process of the robot is there to be stopped"
        self._stopping = f"{said}; what ENTER ordered just before is taken back" if taken_back else said

    def on_mount(self) -> None:
        if self._rebound:
            self.set_keymap(self._rebound)
        self.push_screen(self.now)
        if self._pump:
            self.set_interval(PUMP_S, self.pump)

    # -- hearing and drawing

    def pump(self) -> None:
        """Take what has arrived and draw it."""
        now_ns = self._clock.now_ns()
        self._there = self._link.alive()
        self.carry_out()
        if self._stopping:
            text, self._stopping = self._stopping, ""
            self.tell(text)
            self.send("stop", any_state=True, done=lambda reply: self.tell(text))
        if not self._fresh(now_ns) and now_ns >= self._renew_ns:
            self._renew_ns = now_ns + SECOND
            if self._link.renew():
                if verbs := [asked.verb for asked in self._asked.values()]:
                    self.tell(f"the run process gave no answer to {', '.join(verbs)}: {LOOK_WHETHER}", wrong=True)
                self._asked.clear()
                self._there = self._link.alive()
        for message in self._link.poll():
            if message.kind == "state":
                before, self._state, self._heard_ns = self._state, published(message.body), now_ns
                if self._refused and before is not None and before["trial"] != self._state["trial"]:
                    self.tell("")  # what a key was refused in the trial before
                self._drop_drafts(self._state)
            elif message.kind == "obs" and self.now.is_mounted:
                joints, axes = self.now.query_one(Joints), message.body.get("axes")
                joints.put(message.arrays, now_ns, axes, draw=now_ns >= self._calm_ns)
            elif message.kind == "preview" and self.now.is_mounted and now_ns >= self._calm_ns:
                self.now.query_one(Cameras).put(message.body["camera"], message.arrays["image"], now_ns)
            elif message.kind == "ghost" and self.now.is_mounted:
                score = (message.body.get("scene") or {}).get("score")
                self.now.query_one(Cameras).ghost(message.body["camera"], message.arrays["image"], score, now_ns)
            elif message.kind == "reply":
                self._replied(message.body)
        self._miss_answers(now_ns)
        news = self._heard_ns == now_ns or now_ns - self._drawn_ns >= DRAW_NS
        if self.now.is_mounted and news:
            self._drawn_ns = now_ns
            self.now.query_one(Cameras).ages(now_ns)
            offered = tuple(self.may_act(action) for action in ACTS)
            if offered != self._offered:  # asked of every key and shown on every screen: not for each new version
                self._offered = offered
                self.refresh_bindings()
            fresh, there = self._fresh(now_ns), self._there
            self.now.draw(
                self._state,
                self._who,
                now_ns,
                fresh=fresh,
                there=there,
                ended=not there and self._link.ended(),
                read_only=self._link.read_only,
            )
        if isinstance(self.screen, pages.Page) and self.screen.is_mounted:
            self.screen.draw(self._state)
        if self._line.startswith(refusals.NOT_YET) and not self.stands_against("primary"):
            self.tell("")
        if not self._close_overtaken() and self.words_wait():
            self._put_aside()
        self.presses.shown(self.offer(), self.hands.now_ns())

    def _fresh(self, now_ns: int) -> bool:
        """May the screen be trusted? What a process said that is gone may not."""
        return self._state is not None and now_ns - self._heard_ns < SILENT_NS and self._there

    def offer(self) -> tuple[Hashable, ...]:
        act, state = acts.primary(self._state, self._who), self._state
        what = (act.verb, act.label, bool(act.why_not)) if act else ()
        where = (state["trial"], state["trial_state"], state["episode"]) if state else ()
        return (self.screen, self._fresh(self._clock.now_ns()), *where, *what)

    def tell(self, text: str, *, wrong: bool = False) -> None:
        self._lines_shown += 1
        self._refused, self._line = wrong and bool(text), text
        if self.now.is_mounted:
            self.now.say(text, wrong=wrong)
        if isinstance(self.screen, (Form, pages.Page)) and self.screen.is_mounted:
            self.screen.say(text, wrong=wrong)

    def words_wait(self) -> bool:
        """May the robot move now, as far as is known? A run process that is gone moves nothing: its lease is over."""
        old = self._state is not None and not self._fresh(self._clock.now_ns())
        return self._link.alive() if old else refusals.may_move(self._state)

    def _replied(self, reply: Reply) -> None:
        asked = self._asked.pop(str(reply["id"]), None)
        if not reply["ok"]:
            kept = KEPT if asked is not None and self._keep(asked.title, asked.draft) else ""
            self.tell(f"{reply['error']}{kept}", wrong=True)
        elif asked is not None:
            if self._drafts.get(asked.title) is asked.draft:
                self._drafts.pop(asked.title, None)
            asked.done(reply)

    def _miss_answers(self, now_ns: int) -> None:
        """An order that is not answered is said once; one that waits for photos is not missed."""
        if self._state is not None and self._state["scene"]["photographing"]:
            return
        for sent, asked in self._asked.items():
            if asked.missed_ns is not None and now_ns >= asked.missed_ns:
                self._asked[sent] = asked._replace(missed_ns=None)
                self.tell(f"no answer yet to {asked.verb}: {LOOK_WHETHER}", wrong=True)

    # -- sending

    def send(
        self,
        verb: str,
        role: str = "operator",
        args: Mapping[str, Json] | None = None,
        *,
        done: Callable[[Reply], None] | None = None,
        any_state: bool = False,
        seen: int | None = None,
    ) -> None:
        """Send a command with the version that the screen showed (seen; None: that it shows). any_state: it is right
        whatever has happened since.
        """
        version = None if any_state or self._state is None else self._state["version"] if seen is None else seen
        try:
            sent = self._link.command(
                verb, who=self._who, role=role, version=version, args=args, keys=self.keys_pressed
            )
        except LabctlError as error:
            self.tell(str(error), wrong=True)
            return
        self.keys_pressed = 0
        answered = self._lines_shown

        def wiped(reply: Reply) -> None:
            """The last line goes, unless a later key was answered by it."""
            if answered == self._lines_shown:
                self.tell("")

        title, draft = self._giving
        self._asked[sent] = Asked(verb, done or wiped, self._clock.now_ns() + SILENT_NS, title, draft)
        self._look_soon()

    def _look_soon(self) -> None:
        """Look for what a key has brought about before the next drawing is due."""
        self._calm_ns = self._clock.now_ns() + CALM_NS
        for delay_s in SOON_S if self._pump else ():
            self.set_timer(delay_s, self.pump)

    def _open(
        self, form: Form, answered: Callable[[Answer], None], *, closed: Callable[[], None] = lambda: None
    ) -> None:
        """Ask, unless words are wanted while the robot may move. closed: what comes after, answered or not, once a
        person has closed it.
        """
        if form.words and self.words_wait():
            self.tell(refusals.MOVING, wrong=True)
            return
        if form.of_episode:
            form.of, form.overtaken = refusals.at_hand, refusals.gone_on
        form.about = () if self._state is None else form.of(self._state)
        kept = self._drafts.pop(form.title_text, None)
        form.draft = kept.typed if kept is not None and kept.about == form.about else {}
        form.stops = self.may_stop()
        form.clicked = lambda: self.clicked().refusal(order=True)

        def left(answer: Answer | None) -> None:
            if answer is not None:
                draft = Draft(form.of, form.about, form.given)
                self._keep(form.title_text, draft)  # until it is known to have been done
                self._giving = (form.title_text, draft)
                answered(answer)
                self._giving = ("", None)
            if not form.taken_away:
                closed()

        self.push_screen(form, left)

    def _close_overtaken(self) -> bool:
        """A form about what has gone on without it is closed, and says what happened."""
        form, state = self.screen, self._state
        if not isinstance(form, Form) or form.overtaken is None or not form.is_mounted or state is None:
            return False
        if form.of(state) == form.about:
            return False
        form.take_away()
        self.now.say(f"the form was closed: {form.overtaken(state, form.about)}", wrong=True)
        return True

    def _keep(self, title: str, draft: Draft | None) -> bool:
        """Is what was given in a form kept for the next of that title? Not where it is empty or of what is over."""
        if draft is None or not draft.typed or self._state is None or draft.of(self._state) != draft.about:
            return False
        self._drafts[title] = draft
        return True

    def _drop_drafts(self, state: PublishedState) -> None:
        """What was typed about something that is over is not for what comes after it."""
        self._drafts = {title: kept for title, kept in self._drafts.items() if kept.of(state) == kept.about}

    def _put_aside(self) -> None:
        """The robot may move from now on: what has a text field is closed, and what was typed kept."""
        screen = self.screen
        if isinstance(screen, Form) and screen.words and screen.is_mounted:
            kept = KEPT if self._keep(screen.title_text, Draft(screen.of, screen.about, screen.typed)) else ""
            screen.take_away()
            self.now.say(f"the form was closed: the robot may move now{kept}", wrong=True)
        elif isinstance(screen, CommandPalette) and screen.is_mounted:
            screen.dismiss(None)

    def _ask(self, form: Form, verb: str, role: str = "operator", *, any_state: bool = False, **fixed: Json) -> None:
        """Send what a form answers, with what is fixed of it."""
        self._open(form, lambda answer: self.send(verb, role, {**fixed, **answer}, any_state=any_state))
