"""What differs between what a version said and what this one says of the same record."""

from __future__ import annotations

from typing import Any

import pytest

# What the day of closing and unblinding changes in a report, and nothing else.
OF_THE_DAY = ("head", "closed_wall")


def differences(then: Any, now: Any, at: str = "") -> list[str]:
    """Where two JSON values differ; numbers to 1e-9, as machines add up in different orders."""
    if isinstance(then, dict) and isinstance(now, dict):
        names = [*then, *(name for name in now if name not in then)]
        return [d for n in names if n not in OF_THE_DAY for d in differences(then.get(n), now.get(n), f"{at}/{n}")]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [d for i, (a, b) in enumerate(zip(then, now, strict=True)) for d in differences(a, b, f"{at}[{i}]")]
    numbers = isinstance(then, (int, float)) and isinstance(now, (int, float))
    same = now == pytest.approx(then, rel=1e-9, abs=1e-12) if numbers else then == now
    return [] if same else [f"{at}: {then!r} then, {now!r} now"]
