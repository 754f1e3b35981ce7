"""A run process to sit in front of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from textual._compositor import Compositor
from textual._context import visible_screen_stack

from labctl.store.campaign import Campaign


@pytest.fixture(autouse=True)
def nothing_is_drawn_for_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual makes every update of the screen, and without a terminal throws it away: a quarter of these tests' time.
    What is read (`Desk.text`, a picture) is drawn when it is read.
    """
    draw = Compositor.render_update

    def undrawn(self: Compositor, full: bool = False, screen_stack: Any = None, simplify: bool = False) -> Any:
        if full or simplify:
            return draw(self, full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", undrawn)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2, budget=20.0).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)
