"""Amounts in words and in characters: times, bars, texts cut to fit. Pure.

May not: know what they are amounts of.
"""

from __future__ import annotations

BAR = 24  # characters of a bar


def clock(seconds: float, *, coarse: bool = False) -> str:
    """1:05 for 65 s; coarse: minutes or hours in words."""
    if coarse:
        minutes = round(seconds / 60)
        return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    whole = int(seconds + 0.5)
    return f"{whole // 60}:{whole % 60:02d}"


def short(text: str, most: int = 48) -> str:
    """A text cut to fit a button."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def bar(share: float) -> str:
    """A bar of fixed length, filled by a share from 0 to 1."""
    filled = round(BAR * min(1.0, max(0.0, share)))
    return "█" * filled + "·" * (BAR - filled)
