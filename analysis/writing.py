"""Rows as the text of a CSV that `reading.py` reads again.

May not: write a file, or know a column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows as the text of a CSV. A carriage return in a value is within quotation marks as a line feed is: else it
    would end the row for whoever reads it.
    """
    found: list[str] = []
    for row in rows:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\r\n").writerow(row)  # it quotes what holds one of the two
        found.append(text.getvalue().removesuffix("\r\n") + "\n")
    return "".join(found)
