"""That a second person stands behind a void: at another console than the first, by a personal code, or by a name that
was typed at the same keyboard; and which of the three it was.

May not: write to the journal, keep a code, or take a person for another because a console says so: a console is whose
orders came from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from labctl.clock import SECOND
from labctl.core.published_state import Confirmed
from labctl.errors import InputError, StateError
from labctl.people.personal_codes import Kept

SAME_KEYBOARD = "the same keyboard"
ANOTHER_CONSOLE = "another console"
PERSONAL_CODE = "personal code"  # and when it was set
TRIES = 3  # wrong codes in a row before nobody may try for a while
WAIT_NS = 30 * SECOND  # after the last of them; twice as long after each further one


class WrongCode(StateError):
    """A code that is not the person's. `in_a_row`: how many there were; `wait_s`: for how long none is taken now."""

    def __init__(self, person: str, in_a_row: int) -> None:
        self.in_a_row, self.wait_s = in_a_row, _wait_ns(in_a_row) // SECOND
        then = f"; {in_a_row} wrong in a row, none is taken for {self.wait_s} s" if self.wait_s else ""
        super().__init__(f"that is not the personal code of {person}{then}")


@dataclass(frozen=True, slots=True)
class _Wrong:
    in_a_row: int
    until_ns: int


class SecondPerson:
    """See the module. `codes` reads the lab's personal codes; it may raise StateError."""

    def __init__(self, codes: Callable[[], Mapping[str, Kept]]) -> None:
        self._codes = codes
        self._ordered: dict[str, set[str]] = {}  # console -> who ordered something from it
        self._confirmed: dict[tuple[str, str], tuple[str, str]] = {}  # episode, person -> reason, console
        self._wrong: dict[str, _Wrong] = {}

    def heard(self, console: str, who: str) -> None:
        """An order came from a console in somebody's name."""
        self._ordered.setdefault(console, set()).add(who)

    def confirm(self, episode: str, reason: str, who: str, console: str) -> None:
        """A person says that this episode is to be void for this reason; a later word takes the place of an earlier.

        Raises StateError at a console from which somebody else ordered something: it would be no other console.
        """
        others = sorted(self._ordered.get(console, set()) - {who})
        if others:
            code = ", or type your code at the one that voids it" if self.with_code([who]) else ""
            raise StateError(
                f"this console was also {', '.join(others)}'s in this run, so it cannot stand for {who} alone: leave "
                f"it (Q) and open one of your own (labctl console --who {who}){code}"
            )
        self._confirmed[episode, who] = (reason, console)

    def shown(self, episode: str) -> list[Confirmed]:
        """Who confirmed a void of this episode, and for what reason."""
        return [
            {"by": who, "reason": confirmed[0]} for (of, who), confirmed in self._confirmed.items() if of == episode
        ]

    def with_code(self, people: Iterable[str]) -> list[str]:
        """Who of these has a personal code; nobody where the file cannot be read, which a void then says."""
        try:
            codes = self._codes()
        except StateError:
            return []
        return [person for person in people if person in codes]

    def how(self, second: str, code: str | None, *, episode: str, reason: str, console: str, now_ns: int) -> str:
        """How `second` confirms a void that is ordered at `console` now.

        Raises StateError for a code that is missing or not taken now, WrongCode, InputError for one that nobody set.
        """
        kept = self._codes().get(second)
        if code is not None:
            if kept is None:
                raise InputError(
                    f"{second} has no personal code; leave it out, or set one: labctl people code {second}"
                )
            self._check(second, kept, code, now_ns)
            return f"{PERSONAL_CODE} (set {kept.set[:16].replace('T', ' ')})"
        confirmed, there = self._confirmed.get((episode, second), ("", ""))
        if confirmed == reason and there != console and self._ordered.get(there) == {second}:
            return ANOTHER_CONSOLE
        if kept is not None:
            raise StateError(f"{second} has a personal code: it is typed here, or they confirm at another console (y)")
        return SAME_KEYBOARD

    def _check(self, person: str, kept: Kept, code: str, now_ns: int) -> None:
        before = self._wrong.get(person, _Wrong(0, now_ns))
        if now_ns < before.until_ns:
            left = -(-(before.until_ns - now_ns) // SECOND)
            raise StateError(f"{before.in_a_row} wrong codes of {person} in a row: none is taken for another {left} s")
        if kept.fits(code):
            self._wrong.pop(person, None)
            return
        wrong = before.in_a_row + 1
        self._wrong[person] = _Wrong(wrong, now_ns + _wait_ns(wrong))
        raise WrongCode(person, wrong)


def _wait_ns(in_a_row: int) -> int:
    return WAIT_NS * 2 ** min(in_a_row - TRIES, 10) if in_a_row >= TRIES else 0
