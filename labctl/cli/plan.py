"""`labctl plan`: check a protocol and say what its size can resolve.

May not: draw a schedule, or name an arm beside a trial.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import CONTEXT, example, file_argument, json_option, print_json, print_table

if TYPE_CHECKING:
    from labctl.planning import Preview

SECONDS = click.FloatRange(min=0)
EPILOG = example("labctl plan protocols/first.toml", "labctl plan protocols/first.toml --staging-s 120 --json")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@file_argument("protocol", "PROTOCOL.toml")
@click.option("--staging-s", default=90.0, show_default=True, type=SECONDS, help="Seconds to stage a scene.")
@click.option("--scoring-s", default=30.0, show_default=True, type=SECONDS, help="Seconds to score an episode.")
@json_option
def plan(protocol: Path, staging_s: float, scoring_s: float, as_json: bool) -> None:
    """Check a protocol and its fixture; preview the schedule without arms, what its size can resolve, and the hours.

    Nothing is drawn: the schedule of a campaign exists from `labctl open` on, and stays sealed.
    """
    from labctl.lab import read_plan
    from labctl.planning import preview

    found = read_plan(protocol)
    seen = preview(found.protocol, found.fixture, staging_s=staging_s, scoring_s=scoring_s)
    if as_json:
        print_json(seen.as_json())
    else:
        _print(seen, protocol, staging_s, scoring_s)


def _print(seen: Preview, path: Path, staging_s: float, scoring_s: float) -> None:
    click.echo(f"{seen.name}: {seen.question}")
    rows = [(condition, str(blocks), str(trials)) for condition, blocks, trials in seen.conditions]
    print_table(("condition", "blocks", "trials"), [*rows, ("all", str(seen.blocks), str(seen.trials))])
    click.echo("Which arm stands where is drawn and sealed at opening.")
    facts = {
        "Each block": f"{seen.arms} trials, every arm once, in an order balanced for position and carry-over",
        "Each episode": f"at most {seen.budget_s:g} s; tau {seen.tau_s:g} s",
        "Deducible": f"{seen.deducible_share:.0%} of trials can be deduced by who sees the person and counts; "
        "a report never calls those blind",
        "Success rate": f"95 % interval about +-{seen.half_width_episodes:.0%} per arm, {seen.episodes_per_arm} trials",
        "Items moved": f"about +-{seen.half_width_items:.0%} per arm (items of an episode depend on each other)",
        "Smallest p": f"{seen.smallest_p:.2g} for one pair, {seen.smallest_holm_p:.2g} by Holm; alpha {seen.alpha:g}",
        "Hours": f"at most {seen.hours_at_most:.1f} with {staging_s:g} s to stage and {scoring_s:g} s to score a trial",
    }
    for name, text in facts.items():
        click.echo(f"{name + ':':<14}{text}")
    for warning in seen.warnings:
        click.echo(f"warning: {warning}")
    click.echo(f"next: labctl open {path} --cell CELL.toml")
