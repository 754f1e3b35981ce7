"""Textual's style sheets, parsed once a process: each app would parse its own and those of every widget anew.

May not: change what a rule says. Whoever is given rules only reads them.
"""

from __future__ import annotations

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

PARSE = Stylesheet._parse_rules
_PARSED: dict[tuple[Any, ...], list[RuleSet]] = {}


def parsed_once(sheet: Stylesheet, css: str, *where: Any, **given: Any) -> list[RuleSet]:
    """As `Stylesheet._parse_rules`, for the same text, place and colours from what was parsed before."""
    key = (css, where, tuple(given.items()), tuple(sheet._variables.items()))
    if key not in _PARSED:
        _PARSED[key] = PARSE(sheet, css, *where, **given)
    return _PARSED[key]
