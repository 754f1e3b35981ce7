"""`labctl stamp`: have the newest head of a campaign stamped by the lab's time-stamping authority.

May not: change a record; a timestamp lies beside it.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, lab_option

EPILOG = example("labctl stamp first", "labctl verify first  # says what the timestamps bind")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument(required=False)
@lab_option
def stamp(campaign: str | None, lab: Path | None) -> None:
    """Ask the authority that lab.toml names under [timestamps] to stamp the newest head (RFC 3161).

    A run asks by itself after each head, in a process of its own, and so do open, close, freeze and unblind; this is
    for later, when there was no network. The answer is kept in the campaign's timestamps/ and checked by verify.
    """
    from labctl.clock import MonotonicClock
    from labctl.store.lab_folder import campaign_folder
    from labctl.store.timestamps import stamp as ask

    click.echo(ask(campaign_folder(campaign, lab), MonotonicClock()))


def stamp_if_asked(folder: Path) -> None:
    """After a verb wrote: a timestamp where the lab names an authority; one that does not come is said, no more."""
    from labctl.clock import MonotonicClock
    from labctl.errors import LabctlError
    from labctl.store.timestamps import authority_of
    from labctl.store.timestamps import stamp as ask

    try:
        if authority_of(folder) is not None:
            click.echo(ask(folder, MonotonicClock()), err=True)
    except LabctlError as error:
        click.echo(f"warning: {error}", err=True)
