"""States as a run publishes them, as far as a line about it reads them."""

from __future__ import annotations

from typing import Any, cast

from labctl.core.published_state import PublishedState


def state(number: int = 1, doing: str = "running", *, of: int = 6, pace_s: float | None = None, **more: Any) -> Any:
    """What a run publishes while trial `number` is at hand; two trials a block."""
    left: dict[str, Any] = {
        "trial": f"t-{number}" if number <= of else None,
        "trial_state": doing if number <= of else None,
        "block": (number - 1) // 2,
        "blocks": of // 2,
        "condition": "towels/left",
        "following": "pens/right" if number < of else None,
        "progress": [number - 1, of],
        "pace_s": pace_s,
        "holds": [],
        "by_role": {"assessor": []},
        "rules": {"budget_s": 120.0, "arming_s": 30.0},
        "times": {"go_ns": None},
    }
    return cast(PublishedState, {**left, **more})
