"""`labctl static`: a pre-screen of policies on recorded human episodes; no robot is needed and none moves.

May not: ask or score by itself; `labctl.checks.offline_evaluation` and `keyframe_questions` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    campaign_argument,
    computed_here,
    example,
    json_option,
    lab_option,
    print_json,
    print_table,
)
from labctl.errors import InputError
from labctl.plain import count
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.analysis.episodes.offline import Agreed, AtObject, Part, Scaled, Screened

EPILOG = example(
    "labctl static first --policy policy-a --policy policy-b",
    "labctl static first --protocol protocols/next.toml --policy candidate --episodes 3",
    "labctl static first --planner qwen2.5-vl=http://127.0.0.1:8000/v1 --planner other=http://127.0.0.1:8001/v1",
)


@click.command(epilog=EPILOG)
@campaign_argument()
@click.option("--policy", "policies", multiple=True, metavar="ARM", help="An arm with a policy card.")
@click.option(
    "--planner",
    "planners",
    multiple=True,
    metavar="MODEL=URL",
    help="A planner behind an OpenAI-compatible endpoint, by its model's name: it is asked instead of a policy.",
)
@click.option(
    "--protocol",
    type=PATH,
    metavar="PROTOCOL.toml",
    help="Where those arms are described [default: the campaign's own protocol].",
)
@click.option(
    "--keyframes", default=50, show_default=True, type=click.IntRange(min=2), help="Of each episode, for policies."
)
@click.option(
    "--marks", is_flag=True, help="Instead of those: go, before each grasp and release, arrivals, the largest change."
)
@click.option(
    "--episodes",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Of each object; for planners of each condition.",
)
@json_option
@lab_option
def static(
    campaign: str,
    policies: tuple[str, ...],
    planners: tuple[str, ...],
    protocol: Path | None,
    keyframes: int,
    marks: bool,
    episodes: int,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Ask policies what they would have done at keyframes of human episodes of an unblinded campaign.

    Beside each score stand those of an arm that never moves and of a random answer, and where the policy stands from
    the one to the other; position, orientation and gripper each by themselves.

    It tells a policy that answers nonsense from one worth an evening on the robot, not which of two good ones is
    better. For arms that ran in the campaign the agreement with their real scores is printed, over objects.

    A planner is asked what comes next, what is seen and how far it is, at keyframes that the traces mark and of each
    camera by itself; the record says what is right. Its pictures go to the address that you give, and nowhere else.
    """
    from labctl.checks.offline_evaluation import screen

    folder = campaign_folder(campaign, lab)
    if bool(policies) == bool(planners):
        raise InputError("give --policy or --planner, once or several times, and not both: they answer other questions")
    if planners:
        _ask_planners(folder, planners, episodes, as_json)
        return
    found = screen(
        folder,
        policies,
        protocol=protocol,
        keyframes=None if marks else keyframes,
        episodes=episodes,
        say=lambda line: click.echo(line, err=True),
    )
    if as_json:
        print_json({**found, **computed_here()})
        return
    click.echo(f"against {found['reference']} in {', '.join(found['episodes'])}. {found['what']}")
    for policy in found["policies"]:
        click.echo(_headline(policy))
        rows = [row for one in policy["objects"] for row in _rows(_named(one), one)]
        if len(policy["objects"]) > 1:
            rows += _rows("all objects", policy)
        for one in policy.get("marks", ()):
            rows += _rows(f"at {one['mark']} ({one['keyframes']})", one)
        print_table(("object", "", "policy", "standing still", "random", "from random to still"), rows)


def _ask_planners(folder: Path, named: Sequence[str], episodes: int, as_json: bool) -> None:
    from labctl.checks.keyframe_questions import ask
    from labctl.checks.planner import planner_of

    planners = [planner_of(text) for text in named]
    found = ask(folder, planners, episodes=episodes, say=lambda line: click.echo(line, err=True))
    if as_json:
        print_json({**found, **computed_here()})
        return
    marks = ", ".join(f"{number} {mark}" for mark, number in found["keyframes"].items())
    click.echo(f"{count(len(found['episodes']), 'episode')}, keyframes: {marks}. {found['what']}")
    rows = [
        (
            *(str(one[key]) for key in ("who", "kind", "view", "asked")),
            *(f"{one[key]:.0%}" for key in ("share", "chance", "same")),
            "-" if one["above"] is None else f"{one['above']:.0%}",
            str(one["unread"]),
        )
        for one in found["planners"]
    ]
    heads = (
        "planner",
        "question",
        "view",
        "asked",
        "right",
        "chance",
        "same",
        "from the better floor to all",
        "unread",
    )
    print_table(heads, rows)


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
    text = f"standing still {floors['still']['score']:.1f}, random {floors['random']['score']:.1f}"
    if scaled is None:
        text += "; standing still is no better than random here, so nothing is scaled between them"
    else:
        text += f"; from random to standing still {100 * scaled:.0f} %"
        text += "" if scaled > 1 else ", so no better than not moving"
    return f"{policy['policy']}: static score {policy['score']:.1f} ({text}){_agreement(policy['agreement'])}"


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
