"""[cells]: several cells that share one campaign, each a level of a blocked factor, under one sealed allocation.

May not: know where a cell is or how it is reached: its invitation says that (`labctl.joint.invitation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from labctl.config.cell_schema import refuse_repeats
from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import FileName, Lax, Positive


class Cells(Table):
    """[cells]: names: of the cells, as tables and reports call them; every condition gets equally many blocks in each,
    so `[design] blocks_per_condition` is a multiple of their number. blocks_per_day: how many blocks a cell runs on a
    day, for an allocation that is balanced over days too; without it days are not a factor. clock_limit_s: how far a
    cell's wall clock may be from the seal host's, beyond the bound of the comparison, before it gets no arm.
    """

    names: Annotated[tuple[FileName, ...], Lax, Field(min_length=2)]
    blocks_per_day: Annotated[int, Field(ge=1)] | None = None
    clock_limit_s: Positive = 1.0


def check_cells(found: Document, cells: Cells, blocks_per_condition: int, elsewhere: Mapping[str, bool]) -> None:
    """Raises InputError for cells that cannot share a campaign: unequal blocks, or what one seal alone can decide.

    elsewhere: whether the protocol has each of "looks", "link" and "extra_blocks".
    """
    refuse_repeats(found, ("cells", "names"), cells.names)
    many = len(cells.names)
    if blocks_per_condition % many:
        message = f"blocks_per_condition is {blocks_per_condition}; {many} cells share them equally: take a multiple"
        raise found.refusal(("design", "blocks_per_condition"), f"{message} of {many}")
    for key, (at, why) in _ONE_SEAL.items():
        if elsewhere[key]:
            raise found.refusal(at, f"{why}; with [cells] take it out")


_ONE_SEAL: Mapping[str, tuple[Location, str]] = {
    "looks": (("analysis", "looks"), "an interim look reads the arms of one seal, and of one journal"),
    "link": (("link",), "a [[link]] keeps its anchors in one seal"),
    "extra_blocks": (("human", "extra_blocks"), "extra_blocks are not shared among cells yet"),
}
