"""`labctl static`: a pre-screen of policies on recorded human episodes; no robot is needed and none moves.

May not: ask or score by itself; `labctl.checks.offline_evaluation` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from labctl.cli.options import CONTEXT, PATH, campaign_argument, example, json_option, lab_option, print_json

EPILOG = example(
    "labctl static first --policy policy-a --policy policy-b",
    "labctl static first --protocol protocols/next.toml --policy candidate --episodes 3",
)


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument()
@click.option("--policy", "policies", required=True, multiple=True, metavar="ARM", help="An arm with a policy card.")
@click.option(
    "--protocol",
    type=PATH,
    metavar="PROTOCOL.toml",
    help="Where those arms are described [default: the campaign's own protocol].",
)
@click.option("--keyframes", default=50, show_default=True, type=click.IntRange(min=2), help="Of each episode.")
@click.option("--episodes", default=1, show_default=True, type=click.IntRange(min=1), help="Of each object.")
@json_option
@lab_option
def static(
    campaign: str,
    policies: tuple[str, ...],
    protocol: Path | None,
    keyframes: int,
    episodes: int,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Ask policies what they would have done at keyframes of human episodes of an unblinded campaign.

    It tells a policy that answers nonsense from one worth an evening on the robot, not which of two good ones is
    better. For arms that ran in the campaign the agreement with their real scores is printed, over objects.
    """
    from labctl.checks.offline_evaluation import screen
    from labctl.store.lab_folder import campaign_folder

    folder = campaign_folder(campaign, lab)
    found = screen(
        folder,
        policies,
        protocol=protocol,
        keyframes=keyframes,
        episodes=episodes,
        say=lambda line: click.echo(line, err=True),
    )
    if as_json:
        print_json(found)
        return
    click.echo(f"against {found['reference']} in {', '.join(found['episodes'])}. {found['what']}")
    for policy in found["policies"]:
        click.echo(f"{policy['policy']}: static score {policy['score']:.1f}{_agreement(policy['agreement'])}")
        for one in policy["objects"]:
            real = "" if one["moved"] is None else f"; really moved {100 * one['moved']:.0f} %"
            apart = f"{1000 * one['position_m']:.0f} mm, {one['orientation_rad']:.2f} rad"
            apart += f", gripper {1000 * one['gripper_m']:.0f} mm{real}"
            click.echo(f"  {one['object']}: {one['score']:.1f} over {one['keyframes']} keyframes, {apart}")


def _agreement(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    if found["pearson"] is None:
        return f"; no agreement with the robot can be said over {found['tasks']} objects"
    span = "" if found["interval"] is None else " [{:.2f}, {:.2f}]".format(*found["interval"])
    return f"; Pearson's r with the robot over {found['tasks']} objects {found['pearson']:.2f}{span}"
