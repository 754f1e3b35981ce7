"""What `labctl plan` says of a protocol in several cells: each cell's blocks, hours and days, and how far they differ.

May not: draw an allocation, or name an arm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from labctl.cli.options import print_table
from labctl.cli.planning.printed import cost_words
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.analysis.planning.cells_design import EachCell, PlannedCells
    from labctl.analysis.planning.interim_design import Effects
    from labctl.checks.protocol_size import Effort, Hours, Preview
    from labctl.config.cells import Cells


def planned_cells(
    cells: Cells, seen: Preview, effort: Effort, arming_s: float, effects: Effects, blocks: int
) -> PlannedCells:
    """blocks: that the effects are of, over all cells."""
    from labctl.analysis.planning.cells_design import cells_resolved
    from labctl.checks.protocol_size import hours

    many = len(cells.names)
    own = seen.blocks // many

    def of(number: int) -> Hours:
        return hours(number * seen.arms, arming_s, seen.mean_budget_s, effort)

    whole, days, day = of(own), None, None
    if cells.blocks_per_day is not None:
        days, day = math.ceil(own / cells.blocks_per_day), of(min(own, cells.blocks_per_day)).at_robot
    each: EachCell = {
        "blocks": own,
        "trials": own * seen.arms,
        "hours": whole.at_robot,
        "evenings": whole.sessions,
        "days": days,
        "day_hours": day,
    }
    reached = effects["rmst_ratio"] is not None
    found = cells_resolved(many, blocks, effects["spread"], effects["power"], effects["alpha"], reached=reached)
    return {"names": list(cells.names), "each": each, "resolvable": found}


def print_cells(found: PlannedCells, seen: Preview, effort: Effort, arming_s: float) -> None:
    """The share of each cell, and what a spread between cells does."""
    from labctl.checks.protocol_size import hours

    each, names = found["each"], found["names"]
    cost = cost_words(hours(each["trials"], arming_s, seen.mean_budget_s, effort))
    size = f"{count(each['blocks'], 'block')} of {', '.join(names)}, {count(each['trials'], 'trial')}"
    click.echo(f"Each cell:    {size}: {cost}")
    if each["days"] is not None:
        click.echo(f"Each day:     {each['day_hours']:.1f} h at the robot; {count(each['days'], 'day')} in each cell")
    few = len(names) < 5
    click.echo(
        f"Cells:        a report is of these {len(names)}{'; of further ones from 5 cells on' if few else ''}. What is "
        f"found with {found['resolvable']['power']:.0%} power where a pair's log time ratio varies between cells by:"
    )
    rows = [
        (
            f"{row['between']:g}",
            "none" if row["of_these"] is None else f"{row['of_these']:.2f}",
            "-" if row["like_these"] is None else f"{row['like_these']:.2f}",
            "-" if row["turned"] is None else f"{row['turned']:.0%}",
        )
        for row in found["resolvable"]["by_spread"]
    ]
    heads = ("SD", "ratio, these cells", "ratio, cells like these", "further cells that turn such a ratio round")
    print_table(heads, rows)
