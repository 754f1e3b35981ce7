"""`labctl open`: freeze a protocol, draw and seal its schedule.

May not: print anything of the schedule but its commitment.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, file_argument, json_option, lab_option, print_json, who_option

EPILOG = example("labctl open protocols/first.toml --cell cells/sim_fr3.toml")


@click.command("open", epilog=EPILOG, context_settings=CONTEXT)
@file_argument("protocol", "PROTOCOL.toml")
@click.option("--cell", required=True, type=click.Path(path_type=Path), metavar="CELL.toml", help="The cell to run in.")
@who_option
@lab_option
@json_option
def open_(protocol: Path, cell: Path, who: str, lab: Path | None, as_json: bool) -> None:
    """Freeze a protocol, draw its schedule once and seal it; print the commitment.

    The schedule comes from the operating system's entropy and is opened one trial at a time, to the controller only.
    """
    import os

    from labctl.campaign import open_campaign
    from labctl.clock import MonotonicClock
    from labctl.lab import find_lab

    anchor = MonotonicClock().anchor()
    opened = open_campaign(protocol, cell, find_lab(lab), entropy=os.urandom(32), anchor=anchor, who=who)
    if as_json:
        print_json({"campaign": opened.name, "folder": str(opened.folder), "commitment": opened.commitment})
        return
    click.echo(f"opened {opened.name}")
    click.echo(f"commitment {opened.commitment}")
    click.echo(
        "It binds the sealed schedule: publish it or note it down, and `labctl verify` will hold the campaign to it."
    )
    click.echo(f"next: labctl run {opened.name} --headless")
