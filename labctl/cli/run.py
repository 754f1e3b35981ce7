"""`labctl run`: run the trials of a campaign that are left.

May not: name an arm; everything printed is fit for a blind role.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, lab_option

EPILOG = example("labctl run first", "labctl run first --headless", "labctl run first --headless --simulated-time")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.argument("campaign", required=False)
@click.option("--headless", is_flag=True, help="Without opening a console; the cell file names who stages and scores.")
@click.option("--attended", is_flag=True, help="With --headless: people stage and score at consoles.")
@click.option("--who", default=None, metavar="ID", help="Your opaque id at the console [default: the login name].")
@click.option(
    "--simulated-time/--real-time",
    default=None,
    help="Simulated cells only: one process under a manual clock, as fast as it computes [default: the cell's clock].",
)
@click.option(
    "--unready", is_flag=True, help="Do not ask first whether every arm answers; a deviation that every report prints."
)
@click.option(
    "--hand-terminal",
    default=None,
    metavar="/dev/pts/N",
    help="Where a person drives with a keyboard: the second terminal that they type in, as `tty` prints it there.",
)
@lab_option
def run(
    campaign: str | None,
    headless: bool,
    attended: bool,
    who: str | None,
    simulated_time: bool | None,
    unready: bool,
    hand_terminal: str | None,
    lab: Path | None,
) -> None:
    """Run the trials that are left and open the operator console.

    Each is staged, committed, revealed to the controller alone, run, recorded, sealed and scored.

    First every arm is asked whether it answers; one number says how many do, and nothing moves before all do.

    Without a console it prints how far it is: which trial of how many, for how long, until when, and what comes next.

    First says what it concluded from an interrupted run; nothing moves because of that. Ctrl-C stops the robot, seals
    what was recorded and ends, and so does a terminal that is gone; the next `labctl run` goes on with the right trial.
    labctl's holds and watchdogs are not a safety system: the e-stop and the robot's own safety controller are.
    """
    from labctl.store.lab_folder import campaign_folder

    if campaign is None and not headless:
        from labctl.cli.console import choose, login

        if choose(lab, who or login()):
            return
    folder = campaign_folder(campaign, lab)
    if not headless:
        from labctl.cli.console import login, run_with_console

        if simulated_time:
            raise click.UsageError("a person cannot keep up with simulated time; add --headless, or leave it out")
        run_with_console(folder, who or login(), unready=unready, hand_terminal=hand_terminal)
        return
    from labctl.cli.run_display import displayed
    from labctl.runtime.campaign_run import run_campaign

    with displayed() as (say, watch):
        manual = False if attended else simulated_time
        given = {"unready": unready, "hand_terminal": hand_terminal}
        run_campaign(folder, say, manual=manual, attended=attended, watch=watch, **given)
