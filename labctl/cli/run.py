"""`labctl run`: run the trials of a campaign that are left.

May not: name an arm; everything printed is fit for a blind role.
"""

from __future__ import annotations

import click

from labctl.cli.options import CONTEXT, example, lab_option

EPILOG = example("labctl run first --headless", "labctl run first --headless --simulated-time")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.argument("campaign", required=False)
@click.option(
    "--headless", is_flag=True, help="Without the operator console; the cell file names who stages and scores."
)
@click.option(
    "--simulated-time/--real-time",
    default=None,
    help="Simulated cells only: one process under a manual clock, as fast as it computes [default: the cell's clock].",
)
@lab_option
def run(campaign: str | None, headless: bool, simulated_time: bool | None, lab: object) -> None:
    """Run the trials that are left, each staged, committed, revealed to the controller alone, run, recorded, sealed
    and scored.

    First says what it concluded from an interrupted run; nothing moves because of that. Ctrl-C stops the robot, seals
    what was
    recorded and ends; the next `labctl run` goes on with the right trial. labctl's holds and watchdogs are not a safety
    system: the e-stop and the robot's own safety controller are.
    """
    from pathlib import Path

    from labctl.cli.progress import progress
    from labctl.errors import InputError
    from labctl.lab import campaign_folder
    from labctl.running import run_campaign

    if not headless:
        raise InputError("this version has no operator console yet; run with --headless (simulated cells)")
    folder = campaign_folder(campaign, lab if isinstance(lab, Path) else None)
    with progress(f"trials of {folder.name}") as say:
        run_campaign(folder, say, manual=simulated_time)
