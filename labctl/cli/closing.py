"""`labctl close`, `freeze` and `unblind`: the end of a campaign, in that order.

May not: reveal anything by its own hand (`labctl.store.campaign` journals what it does), or unblind early
without a reason.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, json_option, lab_option, print_json, who_option


@click.command(epilog=example("labctl close first --reason 'all trials run'"), context_settings=CONTEXT)
@campaign_argument()
@click.option("--reason", default="", metavar="TEXT", help="Why; needed while trials are left to run.")
@who_option
@lab_option
def close(campaign: str, reason: str, who: str, lab: Path | None) -> None:
    """No more trials: what was not run stays not run, and every later report counts it. Not reversible."""
    from labctl.store.campaign import close_campaign
    from labctl.store.lab_folder import campaign_folder

    folder = campaign_folder(campaign, lab)
    for line in close_campaign(folder, who=who, reason=reason):
        click.echo(line)
    click.echo(f"next: labctl freeze {campaign}")


@click.command(epilog=example("labctl freeze first"), context_settings=CONTEXT)
@campaign_argument()
@who_option
@lab_option
def freeze(campaign: str, who: str, lab: Path | None) -> None:
    """No more review: outcomes stand as they are, and the head of the chain is what others can hold you to."""
    from labctl.store.campaign import freeze_campaign
    from labctl.store.lab_folder import campaign_folder

    folder = campaign_folder(campaign, lab)
    for line in freeze_campaign(folder, who=who):
        click.echo(line)
    click.echo(f"next: labctl unblind {campaign}")


@click.command(epilog=example("labctl unblind first"), context_settings=CONTEXT)
@campaign_argument()
@click.option("--reason", default="", metavar="TEXT", help="Why; needed before the campaign is frozen.")
@who_option
@lab_option
@json_option
def unblind(campaign: str, reason: str, who: str, lab: Path | None, as_json: bool) -> None:
    """Reveal which arm was which, for good. Before freezing it needs a reason, which every report will print."""
    from labctl.store.campaign import unblind_campaign
    from labctl.store.lab_folder import campaign_folder

    folder = campaign_folder(campaign, lab)
    lines = unblind_campaign(folder, who=who, reason=reason)
    if as_json:
        print_json({"campaign": campaign, "said": list(lines)})
        return
    for line in lines:
        click.echo(line)
    click.echo(f"next: labctl report {campaign} --out report")
