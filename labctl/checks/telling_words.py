"""Words by which somebody could tell an arm: names, addresses, what policies are called; to keep them out of something.

May not: be asked by anything that shows, or say which trial has which arm.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labctl.plain import Json
from labctl.store.ledger import Ledger

_MODULE = re.compile(
    r"[\w.]+:[A-Za-z_]\w*"
)  # package.module:name, as a driver or a function of somebody else's is named


@dataclass(frozen=True, slots=True)
class Telling:
    """Words by which an arm may be recognised: names, controllers' addresses, what its policy is called. protocol: the
    text of the frozen protocol, which has them.
    """

    words: frozenset[str]
    protocol: str


def telling_words(folder: Path) -> Telling:
    """For whoever has to keep such words out of something. Raises BrokenRecord for a seal that cannot be read."""
    ledger = Ledger.open(folder)
    text = ledger.protocol_text()
    arms = tomllib.loads(text).get("arm", [])
    found = {str(arm["name"]) for arm in arms}
    found |= {word for arm in arms if _MODULE.fullmatch(word := str(arm.get("controller", "")))}
    cards = [tomllib.loads(card) for card in ledger.cards().values()]
    for settings in (*(arm.get("options", {}) for arm in arms), *(card.get("policy", {}) for card in cards)):
        found |= {word for word in _texts(settings) if len(word) > 2}
    for card in cards:
        found |= {word for word in _texts(card) if any(mark in word for mark in "/:@\\.") or word[-1:].isdigit()}
    found |= {word.partition(":")[0] for word in found if _MODULE.fullmatch(word)}
    return Telling(frozenset(found), text)


def _texts(value: Json) -> set[str]:
    if isinstance(value, Mapping):
        return {one for inside in value.values() for one in _texts(inside)}
    if isinstance(value, list):
        return {one for inside in value for one in _texts(inside)}
    return {value} if isinstance(value, str) else set()
