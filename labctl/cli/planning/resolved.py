"""What a size can resolve, as `labctl plan` prints it: the smallest p, widths, effects and looks.

May not: work any of it out (`labctl.analysis.planning.interim_design` does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from labctl.cli.options import print_table
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.analysis.planning.interim_design import Difference, PlannedLook, Resolution
    from labctl.checks.protocol_size import Preview


def resolution_facts(seen: Preview, resolved: Resolution, blocks: int) -> dict[str, str]:
    """The lines on what so many blocks resolve."""
    least, holm = resolved["smallest_p"], resolved["smallest_holm_p"]
    effects = resolved["resolvable"]
    pairs = f"{resolved['family_pairs']} pair{'s' * (resolved['family_pairs'] > 1)}"
    return {
        "Smallest p": f"{least:.2g} for one pair of arms, {holm:.2g} by Holm over {pairs}; alpha {seen.alpha:g}",
        "Success rate": f"95 % interval about +-{resolved['half_width_success']:.0%} per arm, "
        f"{trials_in_sets(seen, blocks)}",
        "Items moved": f"about +-{resolved['half_width_items']:.0%} per arm "
        f"(design effect {resolved['design_effect']:g}: items of an episode depend on each other)",
        "Resolvable": f"with {effects['power']:.0%} power at Holm's strictest step, level {effects['alpha']:.2g}:",
        " success": _differences(effects["success"]),
        " time": _ratio(effects["rmst_ratio"], effects["spread"]),
    }


def _ratio(ratio: float | None, spread: float) -> str:
    """The ratio of RMSTs that is found; by the normal formula, so that near the least size it is too good."""
    if ratio is None:
        return "no ratio of RMSTs, whatever it is: no p can be as small as that level"
    varies = f"(log RMST varies by {spread:g} from episode to episode)"
    return f"RMSTs that differ by a factor of {ratio:.2f} or more {varies}"


def sets_fact(seen: Preview, blocks: int) -> dict[str, str]:
    """How many sets so many blocks are in; nothing where each block is by itself."""
    if seen.sets == seen.blocks:
        return {}
    sets = count(seen.sets_in(blocks), "set")
    return {
        "Sets": f"{count(blocks, 'block')} in {sets}, those of a base and what perturbs it; a set is one unit of tests "
        "and intervals, so that what follows counts it once, as where its trials go alike"
    }


def trials_in_sets(seen: Preview, blocks: int) -> str:
    """An arm's trials in so many blocks, and in how many sets where those hold several."""
    return f"{blocks} trials" + (f" in {count(seen.sets_in(blocks), 'set')}" if seen.sets < seen.blocks else "")


def _differences(rows: list[Difference]) -> str:
    found = [
        f"{100 * r['difference']:.0f} points if {r['discordant']:.0%} of pairs disagree"
        for r in rows
        if r["difference"] is not None
    ]
    none = [f"{r['discordant']:.0%}" for r in rows if r["difference"] is None]
    return "; ".join([*found, *([f"no difference if only {' or '.join(none)} disagree"] if none else [])])


def print_looks(looks: list[PlannedLook], alpha: float) -> None:
    """The table of planned looks."""
    click.echo(f"Looks, alpha {alpha:g} spent as O'Brien and Fleming's boundaries would; no other look is planned:")
    rows = [
        (
            str(look["number"]),
            str(look["blocks"]),
            f"{look['z']:.3f}",
            f"{look['level']:.3g}",
            f"{look['spent']:.3g}",
            "yes" if look["can_stop"] else "no",
        )
        for look in looks
    ]
    heads = ("look", "blocks", "boundary |z|", "stop at p (Holm) <=", "alpha spent", "can stop")
    print_table(heads, rows)
