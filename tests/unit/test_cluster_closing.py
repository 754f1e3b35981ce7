"""Taking leave of a Dask cluster changes nothing of what came out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labctl import pieces
from labctl.errors import WorkersLost

distributed = pytest.importorskip("distributed")


class Away:
    """A client whose scheduler does not hear that it closes, as on a busy machine."""

    def __init__(self, *given: Any, **more: Any) -> None:
        pass

    def close(self, timeout: float) -> None:
        raise TimeoutError(f"timed out after {timeout} s.")


def test_a_scheduler_that_does_not_hear_the_end_hides_neither_result_nor_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "Client", Away)
    monkeypatch.setattr(pieces, "_look_at", lambda client, address, folder: None)
    with pieces.cluster("tcp://127.0.0.1:9", tmp_path):
        pass
    with pytest.raises(WorkersLost, match="gone"), pieces.cluster("tcp://127.0.0.1:9", tmp_path):
        raise WorkersLost("gone")
