"""[analysis.margin]: how far apart two arms may be and still count as equivalent, registered before the first trial.

May not: test anything (`labctl.analysis.survival` does), or have a default: without the table nothing is asked.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labctl.config.toml_text import Table
from labctl.config.values import Text


class Margin(Table):
    """[analysis.margin]: of time per item, one arm's RMST over another's, from 1 / rmst_ratio to rmst_ratio.

    non_inferior_to: an arm against which every other is held, at the worse side alone; without it every pair is, at
    both sides.
    """

    rmst_ratio: Annotated[float, Field(gt=1)]
    non_inferior_to: Text | None = None
