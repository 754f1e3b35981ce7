"""How far a run is, in one line: which trial of how many, its block, what goes on, for how long, until when, what next.

May not: show more than a console is shown, or promise an end that nothing has been learnt of: before a trial has been
timed it is what the protocol allows at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from labctl.clock import SECOND, Clock
from labctl.core.published_state import PublishedState
from labctl.times import minutes, time_of_day

BREAK_NS = 1800 * SECOND  # a trial that took longer was a break, not the pace
QUIET = ("next", "armed", "sealing")  # no news for whoever reads plain lines


class Headway:
    """Hears the published states of one run. `clock` is this process's own: with it a run in simulated time (not
    `live`) has a pace too.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ns = clock.now_ns()
        self._since_ns: int | None = None  # when the trial at hand was begun
        self._took: list[float] = []  # ns of each trial that was finished
        self._state: PublishedState | None = None
        self._live = True

    def hear(self, state: PublishedState, *, live: bool) -> None:
        now, before, self._state, self._live = self._clock.now_ns(), self._state, state, live
        begun = state["trial_state"] not in (None, "planned")
        finished = state["progress"][0] - (before or state)["progress"][0]
        if finished:
            took = (now - self._since_ns) / finished if self._since_ns is not None else BREAK_NS
            self._took += [took] * finished if took < BREAK_NS else []
            self._since_ns = now
        elif begun and self._since_ns is None:
            self._since_ns = now

    @property
    def news(self) -> tuple[str | None, str] | None:
        """What makes a new line worth printing when it changes; None while nothing does."""
        word = self._word(clock=False)
        return None if self._state is None or word in QUIET else (self._state["trial"], word)

    def line(self, width: int | None = None) -> str:
        """The line, cut at its least important ends to `width` columns; "" before a state was heard."""
        state = self._state
        if state is None:
            return ""
        done, of = state["progress"]
        elapsed = f"{minutes((self._clock.now_ns() - self._began_ns) / SECOND)} elapsed"
        if state["trial"] is None:
            return f"all {of} trials are finished; {elapsed}"
        place = f"trial {done + 1} of {of}, block {(state['block'] or 0) + 1} of {state['blocks']}"
        condition = f" ({state['condition']})"
        following = f"then {state['following']}" if state["following"] else "then none: it is the last"
        until = self._until(of - done)
        forms = (
            (f"{place}{condition}: {self._word()}", elapsed, until, following),
            (f"{place}{condition}: {self._word()}", elapsed, until),
            (f"{place}: {self._word()}", elapsed, until),
            (f"{place}: {self._word()}", until),
        )
        lines = ["; ".join(filter(None, form)) for form in forms]
        return next((line for line in lines if width is None or len(line) <= width), lines[-1][:width])

    def _word(self, *, clock: bool = True) -> str:
        state = self._state
        if state is None or state["trial"] is None:
            return "finished"
        match state["trial_state"]:
            case "planned":
                return f"waits, {state['holds'][0]['text']}" if state["holds"] else "next"
            case "staging":
                return "being staged"
            case "running":
                go_ns, of_ns = state["times"]["go_ns"], round(state["rules"]["budget_s"] * SECOND)
                if go_ns is None or not (clock and self._live):
                    return "running"
                return f"running {minutes((self._clock.now_ns() - go_ns) / SECOND)} of {minutes(of_ns / SECOND)}"
            case "scoring":
                return "to be scored" if "score" in state["by_role"].get("assessor", ()) else "sealing"
        return "armed"

    def _until(self, trials: int) -> str:
        """When the trials that are left will be over."""
        state, now = self._state, self._clock.now_ns()
        assert state is not None
        if self._took or (self._live and state["pace_s"]):
            pace_ns = median(self._took) if self._took else (state["pace_s"] or 0.0) * SECOND
            spent = now - self._since_ns if self._since_ns is not None else 0
            left = pace_ns * (trials - 1) + max(0, pace_ns - spent)
            return f"about {_span(left)} to go, until {time_of_day(self._clock.anchor(), left)}"
        if not self._live:
            return ""
        most = trials * (state["rules"]["budget_s"] + state["rules"]["arming_s"]) * SECOND
        return f"at most {_span(most)} of trials to go"


class Lines:
    """Which lines a reader without a terminal gets: one for every news, not more than one a second, and one when
    nothing was said for five minutes.
    """

    EVERY_NS, QUIET_NS = SECOND, 300 * SECOND

    def __init__(self, headway: Headway, clock: Clock) -> None:
        self._headway, self._clock = headway, clock
        self._reported = None
        self._last_ns = self._spoke_ns = clock.now_ns()

    def spoke(self) -> None:
        """Something else was said."""
        self._spoke_ns = self._clock.now_ns()

    def due(self) -> Sequence[str]:
        """What is to be printed now: a line or none."""
        now, news = self._clock.now_ns(), self._headway.news
        fresh = news is not None and news != self._reported and now - self._last_ns >= self.EVERY_NS
        stale = now - max(self._spoke_ns, self._last_ns) >= self.QUIET_NS
        line = self._headway.line() if fresh or stale else ""
        if not line:
            return ()
        self._reported, self._last_ns = news, now
        return (line,)

    def last(self) -> Sequence[str]:
        """What is to be printed when the run is over, though a line may have been printed a moment ago: that all trials
        are finished, where that was not.
        """
        news = self._headway.news
        if news is None or news[0] is not None or news == self._reported:
            return ()
        self._reported = news
        return (self._headway.line(),)


def _span(ns: float) -> str:
    """5 s, 12 min or 2 h 10 min."""
    if ns < 90 * SECOND:
        return f"{max(1, round(ns / SECOND))} s"
    hours, rest = divmod(round(ns / SECOND / 60), 60)
    return f"{hours} h {rest:02} min" if hours else f"{rest} min"
