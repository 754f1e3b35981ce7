"""`labctl static`: a pre-screen of policies on recorded human episodes; no robot is needed and none moves.

May not: ask or score by itself; `labctl.checks.offline_evaluation` does.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    CONTEXT,
    PATH,
    campaign_argument,
    example,
    json_option,
    lab_option,
    print_json,
    print_table,
)
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.analysis.episodes.offline import Agreed, AtObject, Part, Scaled, Screened

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

    Beside each score stand those of an arm that never moves and of a random answer, and where the policy stands from
    the one to the other; position, orientation and gripper each by themselves.

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
        click.echo(_headline(policy))
        rows = [row for one in policy["objects"] for row in _rows(_named(one), one)]
        if len(policy["objects"]) > 1:
            rows += _rows("all objects", policy)
        print_table(("object", "", "policy", "standing still", "random", "from random to still"), rows)


# what is printed of a keyframe's comparison: its key, its words, its factor and its unit
PARTS: tuple[tuple[Part, str, float, str], ...] = (
    ("score", "score", 1.0, "{:.1f}"),
    ("position_m", "position", 1000.0, "{:.0f} mm"),
    ("orientation_rad", "orientation", 1.0, "{:.2f} rad"),
    ("gripper_m", "gripper", 1000.0, "{:.0f} mm"),
)


def _headline(policy: Screened) -> str:
    """The formula's score never stands without its floors."""
    floors, scaled = policy["floors"], policy["between"]["score"]
    said = f"standing still {floors['still']['score']:.1f}, random {floors['random']['score']:.1f}"
    if scaled is None:
        said += "; standing still is no better than random here, so nothing is scaled between them"
    else:
        said += f"; from random to standing still {100 * scaled:.0f} %"
        said += "" if scaled > 1 else ", so no better than not moving"
    return f"{policy['policy']}: static score {policy['score']:.1f} ({said}){_agreement(policy['agreement'])}"


def _named(one: AtObject) -> str:
    real = "" if one["moved"] is None else f", really moved {100 * one['moved']:.0f} %"
    return f"{one['object']} ({count(one['keyframes'], 'keyframe')}{real})"


def _rows(name: str, entry: Scaled) -> list[tuple[str, ...]]:
    rows = []
    for key, words, factor, shape in PARTS:
        values = [entry[key], *(entry["floors"][who][key] for who in ("still", "random"))]
        scaled = entry["between"][key]
        printed = [shape.format(factor * value) for value in values]
        rows.append((name if not rows else "", words, *printed, "-" if scaled is None else f"{100 * scaled:.0f} %"))
    return rows


def _agreement(found: Agreed | None) -> str:
    if found is None:
        return ""
    if found["pearson"] is None:
        return f"; no agreement with the robot can be said over {count(found['tasks'], 'object')}"
    span = "" if found["interval"] is None else " [{:.2f}, {:.2f}]".format(*found["interval"])
    return f"; Pearson's r with the robot over {count(found['tasks'], 'object')} {found['pearson']:.2f}{span}"
