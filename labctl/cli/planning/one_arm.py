"""What `labctl plan` says of a protocol whose only arm is a person: how well its own numbers will be known.

May not: speak of a comparison; there is none.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import computed_here, print_json, print_table
from labctl.cli.planning.printed import print_facts, print_hours
from labctl.cli.planning.resolved import sets_fact, trials_in_sets
from labctl.store.lab_folder import Plan, find_lab

if TYPE_CHECKING:
    from labctl.checks.protocol_size import Preview


def historical(found: Plan, lab: Path | None) -> dict[str, str]:
    """The line on a person of another time; nothing where the protocol names none. Raises InputError."""
    from labctl.reporting.historical import line_of, looked_up

    if not (found.protocol.human and found.protocol.human.reference):
        return {}
    then = looked_up(found, find_lab(lab, start=found.path.parent))
    return {"Historical": line_of(then)} if then else {}


def tell(found: Plan, seen: Preview, source: str, path: Path, then: dict[str, str], *, as_json: bool) -> None:
    """Print it, or the same object as JSON; there `resolution` has the widths alone. then: a person of another time."""
    from labctl.analysis.planning.interim_design import DESIGN_EFFECT, half_widths

    widths = half_widths(seen.sets, seen.items_staged)
    if as_json:
        sets = {"sets": seen.sets} if seen.sets != seen.blocks else {}
        resolution = {**widths, "design_effect": DESIGN_EFFECT, "warnings": [], "blocks": seen.blocks, **sets}
        answer = {"times": source, "evenings": None, "resolution": resolution}
        print_json({"schema": "labctl.plan/2", **seen.as_json(), **answer, **computed_here()})
        return
    click.echo(f"{seen.name}: {seen.question}")
    rows = [(condition, str(blocks), str(trials)) for condition, blocks, trials in seen.conditions]
    print_table(("condition", "blocks", "trials"), [*rows, ("all", str(seen.blocks), str(seen.trials))])
    facts = {
        "One arm": f"{found.protocol.arm[0].name}, a person: a reference that is collected; nothing is compared",
        "Each episode": f"at most {seen.budget_s:g} s; tau {seen.tau_s:g} s",
        **then,
        **sets_fact(seen, seen.blocks),
        "Success rate": f"95 % interval about +-{widths['half_width_success']:.0%}, "
        f"{trials_in_sets(seen, seen.blocks)}",
        "Items moved": f"about +-{widths['half_width_items']:.0%} "
        f"(design effect {DESIGN_EFFECT:g}: items of an episode depend on each other)",
    }
    print_facts(facts)
    print_hours(seen, source)
    click.echo(f"next: labctl open {shlex.quote(str(path))} --cell CELL.toml")
