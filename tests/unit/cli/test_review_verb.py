"""`labctl review` opens an episode beside itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from labctl.cli import review


def test_an_episode_is_found_wherever_the_review_was_called_and_whatever_lab_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A --lab that was typed as seen from another folder is no use to the process that shows the episode."""
    begun: list[list[str]] = []
    monkeypatch.setattr(review.subprocess, "Popen", lambda command, **_: begun.append(command))
    (tmp_path / "logs").mkdir()
    review.show_masked(tmp_path, "e-1", web=True)
    words = begun[0][begun[0].index("show") :]
    assert words == ["show", "e-1", "--masked", "--campaign", str(tmp_path), "--web"]
    assert begun[0][0] == sys.executable
