"""Reviews by somebody who has just looked: what is written, or posted by a page, names what stands now.

May not: assert anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labctl.pages.server import PageRequest, Routes
from labctl.runtime import review_writer
from labctl.store.campaign import Campaign


def seen(folder: Path, trial: str) -> int:
    """What a screen that shows this trial now has shown."""
    with Campaign.open(folder) as campaign:
        return len(campaign.state.trials[trial].said)


def review(folder: Path, trial: str, operations: Sequence[Any], *, who: str) -> None:
    review_writer.review(folder, trial, operations, who=who, seen=seen(folder, trial))


def correct(folder: Path, trial: str, outcome: Mapping[str, Any], *, who: str, why: str) -> None:
    review_writer.correct(folder, trial, outcome, who=who, why=why, seen=seen(folder, trial))


def ask(routes: Routes, route: str, body: Mapping[str, Any] | None = None, **parts: str) -> dict[str, Any]:
    """What a page is answered that has just asked for what it shows, unless the body says what it had shown."""
    body = dict(body or {})

    def told(path: str, **parts: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(routes[path](PageRequest(parts)).data)
        return found

    if route in ("POST /review", "POST /correct", "POST /prefer"):
        queue = told("GET /queue")
        if route == "POST /prefer":
            body.setdefault(
                "seen", next((one["seen"] for one in queue["pairs"] if one["second"] == body["second"]), "")
            )
        elif body.get("trial") in [one["trial"] for one in queue["episodes"]]:
            body.setdefault("seen", told("GET /episode/{trial}", trial=body["trial"])["seen"])
    answer: dict[str, Any] = json.loads(routes[route](PageRequest(parts, body)).data)
    return answer
