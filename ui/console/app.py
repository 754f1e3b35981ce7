"""The operator console: draws what the run process publishes, and sends what keys ask for.

May not: keep any state that matters: it can be killed at any moment, and another one started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from labctl.clock import SECOND, Clock
from labctl.core.campaign_state import said_of
from labctl.core.task import ITEMS, SCORE
from labctl.ui.console import acts, asking, measures, pages, people, refusals, stops_and_voids
from labctl.ui.console.attached import Reply, Seat
from labctl.ui.console.form import Answer
from labctl.ui.console.keys import ACTS, KEYS, rows
from labctl.ui.console.link import Link
from labctl.ui.console.presses import Press
from labctl.ui.console.scoring import Scoring
from labctl.ui.console.words import clock as minutes

TWICE_NS = 2 * SECOND


class Console(Scoring):
    """See the module."""

    CSS_PATH = "console.tcss"
    TITLE = "labctl"
    # taken before any widget is asked: on its way through all of them a key waits for whatever is being drawn
    BINDINGS: ClassVar[list[BindingType]] = [replace(key, priority=key.id != "stop") for key in KEYS]

    def __init__(self, link: Link, clock: Clock, seat: Seat) -> None:
        super().__init__(link, clock, seat)
        self._pressed: tuple[str, int] = ("", 0)
        self._whole: str | None = None  # the episode that was ended here with the word that all of it was done

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing now are not offered; the stop is always."""
        if action in ACTS and (isinstance(self.screen, ModalScreen) or isinstance(self.focused, Input)):
            return False  # a form has the keys
        return self.may_act(action)

    def may_act(self, action: str) -> bool:
        if self._unheard(action):
            return False
        if action == "acknowledge" and self._ends_whole():
            return True
        read_only, may_undo = self._link.read_only, self.may_undo()
        return refusals.offers(action, self._state, self._who, read_only=read_only, may_undo=may_undo)

    def _unheard(self, action: str) -> bool:
        """Does an action take a run process that is heard, and it is not?"""
        needs = action in ACTS - refusals.WITHOUT_WORD and not self._link.read_only
        return needs and self._state is not None and not self._fresh(self._clock.now_ns())

    def does(self, key: Binding) -> str:
        act = acts.primary(self._state, self._who) if key.id == "primary" else None
        return act.label if act is not None else key.tooltip

    def stands_against(self, action: str) -> str:
        """Why a key does nothing now, "" when it does something."""
        below = self.screen_stack[-2] if isinstance(self.screen, CommandPalette) else self.screen
        if below is not self.now and action not in refusals.ANYWHERE:
            return "that is done on the first screen; ESC goes back to it"
        if action == "primary" and not self._link.read_only:
            return refusals.no_primary(self._state, self._who, fresh=self._fresh(self._clock.now_ns()))
        if self._unheard(action):
            return refusals.UNHEARD
        if self.may_act(action):
            return ""
        return refusals.refusal(action, self._state, self._who, read_only=self._link.read_only)

    @on(Button.Pressed, "#primary")
    def click_primary(self) -> None:
        """A click on the button is ENTER, and as deliberate."""
        self.press = self.clicked()
        self.action_primary()
        self.press = Press()

    def action_primary(self) -> None:
        """The one thing to do now."""
        state = self._state
        act = acts.primary(state, self._who)
        why = self.stands_against("primary") or self.press.refusal(order=True)
        if why or state is None or act is None:
            self.tell(why, wrong=True)
            return
        seen = state["version"]
        if act.verb == "session":
            self._ask(people.AskSession(state, self._who), "session")
        elif act.verb == "session_close":
            self.action_leave_session()
        elif act.verb == "acknowledge":
            self.action_acknowledge()
        elif act.verb == "score":
            self._score(state, act.role)
        elif act.verb == "prefer":
            self.action_prefer()
        elif act.verb == "skip":
            self.order(lambda: self.send("skip", act.role, {"reason": "max_voids"}, seen=seen))
        else:
            self.order(lambda: self.send(act.verb, act.role, seen=seen))

    def action_prefer(self) -> None:
        """Say which of the two episodes that were drawn of a block was better."""
        state = self._state
        if state is None or (pair := state["compare"]) is None:
            return

        def answered(answer: Answer) -> None:
            self.send("prefer", "assessor", {**answer, "seen": said_of(None)}, any_state=True)

        self._open(measures.AskPreference(pair), answered)

    def action_stop(self) -> None:
        """Stop the robot: the driver has told the robot already; the run process journals who did."""
        if self.may_stop():
            self.stop_now()

    def action_count(self, by: int) -> None:
        """One more item, or one less; of a task in stages the next one, or the last taken back."""
        state = self._state
        if state is not None and state["rules"]["measure"] != ITEMS:
            stage = state["reached"] + 1 if by > 0 else None
            self.send("reach", "operator", {"stage": stage}, any_state=True)
        else:
            self.send("count", "operator", {"by": by}, any_state=True)

    def action_reach(self, stage: int) -> None:
        self.send("reach", "operator", {"stage": stage}, any_state=True)

    def action_touch(self) -> None:
        """Somebody's hand is in the scene from now on, or is out again; what it did is said while scoring."""
        state = self._state
        if state is None or self._again():
            return
        if state["unsaid"]:
            self._ask(asking.AskIntervention(state["unsaid"][0]), "touch", any_state=True)
        else:
            phase = "end" if state["touching"] else "begin"
            self.send("touch", "operator", {"phase": phase}, any_state=True)

    def _again(self) -> bool:
        """Was this key pressed just now already? Then it is said, and nothing is done."""
        why = self.press.refusal()
        if why:
            self.tell(why, wrong=True)
        return bool(why)

    def _twice(self, key: str, what: str) -> bool:
        """True at the second press within two seconds."""
        last, at_ns = self._pressed
        now_ns = self._clock.now_ns()
        if self._again():
            return False
        self._pressed = (key, now_ns)
        if last == key and now_ns - at_ns < TWICE_NS:
            self._pressed = ("", 0)
            return True
        self.tell(f"press {key} again within {TWICE_NS // SECOND} s to {what}")
        return False

    def action_end(self) -> None:
        state = self._state
        whole = state is not None and state["rules"]["measure"] != SCORE
        what = f"end this episode; it is scored as it stands{'. A instead: all of it was done' if whole else ''}"
        if self._may("end") and self._twice("e", what):
            self._whole = None
            self.send("end", "operator", {"reason": "operator"})

    def _ends_whole(self) -> bool:
        """Was E pressed just now, so that A ends the episode with the word that all of it was done?"""
        state, (last, at_ns) = self._state, self._pressed
        asked = last == "e" and self._clock.now_ns() - at_ns < TWICE_NS
        running = state is not None and state["trial_state"] == "running" and self._may("end") is not None
        return asked and running and state is not None and state["rules"]["measure"] != SCORE

    def pump(self) -> None:
        super().pump()
        state, act = self._state, acts.primary(self._state, self._who)
        if state is None or self._whole is None:
            return
        of_it = state["episode"] == self._whole and state["trial_state"] in ("running", "scoring")
        if not of_it or state["ended"] not in (None, "operator"):
            self._whole = None
        elif act is not None and act.verb == "score" and not act.why_not and self.screen is self.now:
            self._whole = None
            self._score(state, act.role, begins_with="a")
            self.presses.shown(self.offer(), self.hands.now_ns())

    def action_futility(self) -> None:
        if self._may("end") and self._twice("f", "end this episode for lack of progress"):
            self.send("end", "operator", {"reason": "futility"})

    def action_void(self) -> None:
        state = self._state
        if state is None or not (role := self._may("void")):
            return
        form = stops_and_voids.AskVoid(state, lambda: self._state["confirmed"] if self._state else ())
        self._open(form, lambda answer: self.send("void", role, answer))

    def action_confirm(self) -> None:
        """As the second person: the console that voids the episode names who confirmed it here."""
        state = self._state
        if state is None or not self.may_act("confirm"):
            return
        role = acts.roles_of(state, self._who)[0]
        text = "confirmed; now the other console voids it and names you"

        def answered(answer: Answer) -> None:
            self.send("confirm", role, answer, any_state=True, done=lambda reply: self.tell(text))

        self._open(stops_and_voids.AskConfirm(state, self._who), answered)

    def action_release(self) -> None:
        if role := self._may("release"):
            self._ask(asking.AskText("Give this trial back: why?", "reason", ok="Give back"), "release", role)

    def action_skip(self) -> None:
        if role := self._may("skip"):
            self._ask(asking.AskText("Never run this trial: why?", "reason", ok="Skip"), "skip", role)

    def action_wait(self, after: str) -> None:
        """Hold after this trial or block; why is asked only while nothing may move."""
        if self._again():
            return
        if refusals.may_move(self._state):
            self.send("wait", "operator", {"after": after, "why": ""}, any_state=True)
            return
        title = f"Hold after this {after}: why? (may stay empty)"
        self._ask(asking.AskText(title, "why", ok="Hold", needed=False), "wait", any_state=True, after=after)

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
        if self._state is not None:
            role = acts.role_among(self._state, self._who, ("operator", "setter")) or "operator"
            form = asking.AskText("Take the view as it is for the reference: why?", "reason", ok="Take")
            self._ask(form, "reference", role)

    def action_note(self) -> None:
        """A note; while the robot may move, only when there is something to note: the words come while scoring."""
        state = self._state
        if state is None or self._again():
            return
        if not refusals.may_move(state):
            form = asking.AskText("A note for the record", "text", ok="Keep", of=asking.this_session)
            self._ask(form, "note", any_state=True)
            return
        go_ns, episode = state["times"]["go_ns"], state["episode"]
        at = f"{minutes((self._clock.now_ns() - go_ns) / SECOND)} after go" if go_ns else "before go"
        if self._marks[0] != episode:
            self._marks = (episode, [])
        self._marks[1].append(at)
        text, words = f"marked {at}", f"marked {at}; the words for it come with the score"
        self.send("note", "operator", {"text": text}, any_state=True, done=lambda reply: self.tell(words))

    def action_acknowledge(self) -> None:
        state = self._state
        if state is not None and self._ends_whole():
            if not self._again():
                self._pressed, self._whole = ("", 0), state["episode"]
                self.send("end", "operator", {"reason": "operator"})
            return
        meant = None if state is None else stops_and_voids.to_acknowledge(state)
        if meant is None:
            return

        def answered(answer: Answer) -> None:
            args, done = {**meant.args, **answer}, meant.done
            self.send("acknowledge", "operator", args, any_state=True, done=lambda reply: self.tell(done))

        if not meant.asked_for or not refusals.may_move(state):
            self._open(meant.form(), answered)
        elif self._twice("a", f"go on without it: {meant.text}"):
            answered({})

    def action_people(self) -> None:
        """Somebody comes, leaves or changes role; the session goes on."""
        state = self._state
        if state is None:
            return

        def answered(answer: Answer) -> None:
            who = str(answer.pop("who"))

            def changed(reply: Reply) -> None:
                self._who = who
                self.tell(f"changed; {who} sits at this console")

            if answer["people"] == [dict(person) for person in state["people"]]:
                changed({})
            else:
                self.send("people", roles[0], answer, any_state=True, done=changed)

        roles = acts.roles_of(state, self._who) or ("operator",)
        self._open(people.AskPeople(state, self._who), answered)

    def action_leave_session(self) -> None:
        title, of = "Close the session: what must the next ones know?", asking.this_session
        form = asking.AskText(title, "handover", ok="Close", needed=False, of=of)
        self._ask(form, "session_close", any_state=True, session=self._state["session"] if self._state else None)

    def _may(self, verb: str) -> str | None:
        """A role that allows this verb now."""
        return None if self._state is None else acts.role_for(self._state, self._who, verb)

    # -- other pages

    def action_page(self, name: str) -> None:
        """Open a page beside the first screen; escape comes back."""
        if self.screen is self.now:
            if not self.is_screen_installed(name):  # made once: to open it again takes a moment only
                self.install_screen(pages.page(name, rows(self._rebound)), name)
            self.push_screen(name)
            self._look_soon()
