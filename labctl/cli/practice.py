"""`labctl practice`: teleoperation outside of trials, kept beside a campaign until the plateau is reached.

May not: judge or write by itself; `labctl.runtime.practice_writer` does.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, json_option, lab_option, print_json

EPILOG = example(
    "labctl practice first --person p07 --object towels --moved 4 --staged 4 --seconds 62", "labctl practice first"
)


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument(required=False)
@click.option("--person", default=None, metavar="ID", help="Who drove, an opaque id.")
@click.option("--object", "thing", default=None, metavar="NAME", help="An object of the protocol.")
@click.option("--moved", default=None, type=int, metavar="N", help="Items moved.")
@click.option("--staged", default=None, type=int, metavar="N", help="Items staged.")
@click.option("--seconds", default=None, type=float, metavar="S", help="How long it took.")
@click.option("--who", default=None, metavar="ID", help="Who writes this down [default: the login name].")
@json_option
@lab_option
def practice(
    campaign: str | None,
    person: str | None,
    thing: str | None,
    moved: int | None,
    staged: int | None,
    seconds: float | None,
    who: str | None,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Write down one practice episode of a teleoperator, or list what was practised and who is at the plateau.

    `labctl teleop` is how a person practises; it records nothing. This keeps how a practice went, beside a campaign.

    Practice stands in a table of its own in the report and enters no other number. The protocol may state the plateau:
    [human] plateau_last, plateau_change.
    """
    from labctl.cli.console import login
    from labctl.errors import InputError
    from labctl.reporting.campaign_report import practised
    from labctl.runtime.practice_writer import record
    from labctl.store.lab_folder import campaign_folder

    folder = campaign_folder(campaign, lab)
    given = {"person": person, "object": thing, "moved": moved, "staged": staged, "duration_s": seconds}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < len(given):
        said = ", ".join("--" + name.replace("duration_s", "seconds") for name in missing)
        raise InputError(f"a practice episode needs {said} too; without any of them, what was practised is listed")
    if not missing:
        record(folder, given, who=who or login())
    found = practised(folder)
    if as_json:
        print_json(found)
        return
    for one in found["people"]:
        rates = ", ".join(f"{rate:.0f}" for rate in one["rates"])
        at = "not at the plateau yet" if one["plateau"] is None else f"at the plateau since episode {one['plateau']}"
        click.echo(f"{one['person']}: {rates} items per hour; {at}")
    if not found["people"]:
        click.echo("nothing practised yet; write an episode down with --person, --object, --moved, --staged, --seconds")
