"""What an app's updates leave on a terminal, which need not be what its screen has: an update paints only what the
library holds for changed.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.cells import cell_len
from textual._compositor import CompositorUpdate
from textual.app import App

MOVE = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[0-9;?]*[a-zA-Z]|(\n)|(.)", re.S)


class Painted:
    """A terminal of so many rows that takes what is painted of every app from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: int = 24) -> None:
        self._cells: list[dict[int, str]] = [{} for _ in range(rows)]
        self._row = self._column = 0
        show = App._display

        def display(app: App[Any], screen: Any, update: Any) -> None:
            if isinstance(update, CompositorUpdate):
                self._take(update.render_segments(app.console))
            show(app, screen, update)

        monkeypatch.setattr(App, "_display", display)

    def _take(self, sequence: str) -> None:
        for row, column, line, character in MOVE.findall(sequence):
            if row:
                self._row, self._column = int(row) - 1, int(column) - 1
            elif line:
                self._row, self._column = self._row + 1, 0
            elif character:
                self._cells[self._row][self._column] = character
                self._column += cell_len(character)

    def rows(self) -> list[str]:
        """Each row as text, without blanks at its end."""
        every = [(cells, max(cells, default=-1) + 1) for cells in self._cells]
        return ["".join(cells.get(at, " ") for at in range(width)).rstrip() for cells, width in every]
