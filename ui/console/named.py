"""Every key of the console by its name: what ctrl+p offers. What can be done now comes first, of the rest it says why
it cannot.

May not: do anything that its key would not do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher


@dataclass(frozen=True, slots=True)
class Named:
    """A key of the console: what it does in words, the key as a person types it, why it does nothing now ("" when it
    does something), and what does the same.
    """

    does: str
    key: str
    why_not: str
    do: Callable[[], Awaitable[None]]

    @property
    def about(self) -> str:
        """The line below its name."""
        return f"{self.key} · not now: {self.why_not}" if self.why_not else self.key


@runtime_checkable
class Offers(Protocol):
    """An app whose keys have names."""

    def named(self) -> list[Named]: ...


class KeysByName(Provider):
    """The commands that ctrl+p shows at a console."""

    @property
    def _keys(self) -> list[Named]:
        return self.app.named() if isinstance(self.app, Offers) else []

    async def discover(self) -> Hits:
        for one in self._keys:
            yield DiscoveryHit(Content(one.does), one.do, help=literal(one.about))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for one in self._keys:
            if (match := matcher.match(one.does)) > 0:
                yield Hit(match, highlighted(matcher, one.does), one.do, help=literal(one.about))


def highlighted(matcher: Matcher, text: str) -> Content:
    """What matches stands out. `Matcher.highlight` takes the text for markup."""
    found = Content(text)
    for at in matcher.fuzzy_search.match(matcher.query, text)[1]:
        if not text[at].isspace():
            found = found.stylize(matcher.match_style, at, at + 1)
    return found


def literal(text: str) -> str:
    """Markup that shows this text: what people wrote is none. (Textual's own `escape` leaves a bracket that no other
    closes, and doubles a backslash at the end.)
    """
    return text.replace("[", r"\[")
