"""Amounts in words and in characters: times, bars, texts cut to fit. Pure.

May not: know what they are amounts of.
"""

from __future__ import annotations

from labctl.times import minutes

BAR = 24  # characters of a bar


def clock(seconds: float, *, coarse: bool = False) -> str:
    """1:05 for 65 s; coarse: minutes or hours in words."""
    if coarse:
        whole = round(seconds / 60)
        return f"{whole} min" if whole < 90 else f"{whole / 60:.1f} h"
    return minutes(seconds + 0.5)


def short(text: str, most: int = 48) -> str:
    """A text cut to fit a button."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def bar(share: float) -> str:
    """A bar of fixed length, filled by a share from 0 to 1."""
    filled = round(BAR * min(1.0, max(0.0, share)))
    return "█" * filled + "·" * (BAR - filled)
