"""`labctl bugreport`: one archive for the report of a bug, without arms and people.

May not: decide what may be in it (`labctl.checks.bugreport` does), or send it anywhere.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import PATH, campaign_argument, example, json_option, lab_option, print_json
from labctl.clock import MonotonicClock
from labctl.store.lab_folder import campaign_folder

EPILOG = example("labctl bugreport first", "labctl bugreport first --out hang-at-staging.zip")


@click.command(epilog=EPILOG)
@campaign_argument(required=False)
@click.option("--out", type=PATH, metavar="FILE", help="The archive to write [default: bugreport-CAMPAIGN.zip].")
@lab_option
@json_option
def bugreport(campaign: str | None, out: Path | None, lab: Path | None, as_json: bool) -> None:
    """Write versions, checks of this machine, cell, protocol, logs and what kinds of entries the journal has.

    Arms, people, addresses and this computer's name are replaced, before unblinding and after; nothing of the seal is
    in it. It is sent nowhere: look into it, then attach it to your report. docs/logs.md says what is in a log.
    """
    from labctl.checks.bugreport import write_bugreport
    from labctl.cli.leaving import issues

    folder = campaign_folder(campaign, lab)
    made = write_bugreport(folder, out or Path(f"bugreport-{folder.name}.zip"), MonotonicClock())
    if as_json:
        found = {"archive": str(made.path), "held": made.held, "left_out": made.left_out}
        print_json({"schema": "labctl.bugreport/1", **found})
        return
    click.echo(f"wrote {made.path}: {', '.join(made.held)}")
    for line in made.left_out:
        click.echo(f"left out: {line}" if not line.startswith("replaced") else line)
    click.echo(f"look into it, then report it to {issues()}")
