"""`labctl teleop` and `labctl practice`: drive a cell by hand, and write down what was practised beside a campaign.

May not: score, record or judge anything by itself, or name an arm of an experiment.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    campaign_argument,
    example,
    json_option,
    lab_option,
    print_json,
    who_option,
)
from labctl.clock import MonotonicClock
from labctl.errors import Exit, InputError
from labctl.people.acting import acting
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.nodes.practice import Ended, View

TELEOP = example("labctl teleop --cell cells/fr3.toml", "labctl teleop --cell cells/sim_fr3.toml --home")
PRACTICE = example(
    "labctl practice first --person p07 --object towels --moved 4 --staged 4 --seconds 62", "labctl practice first"
)
REFRESH_NS = 200_000_000


@click.command(epilog=TELEOP)
@click.option("--cell", type=PATH, required=True, metavar="CELL.toml", help="The cell to drive.")
@click.option(
    "--home",
    is_flag=True,
    help="First the hand opens and the robot goes where episodes begin; a simulated cell sets out its items.",
)
@click.option("--recover", is_flag=True, help="You have looked at a robot that had stopped itself: it may go on.")
@lab_option
@json_option
def teleop(cell: Path, home: bool, recover: bool, lab: Path | None, as_json: bool) -> int:
    """Drive the cell by hand with the device of its [teleop] table. Practice: nothing is scored, nothing recorded.

    The same processes, limits, lease, clutch, alignment gate and ramp as in a trial stand between hand and robot. One
    line says how things stand; a terminal keeps it up to date. Ctrl-C stops the robot and ends, as does the device's
    button for "done". Exit code 69 when the device or the robot ended it. labctl's holds are not a safety system: the
    e-stop and the robot's own safety controller are.
    """
    from labctl.runtime.practice_run import practise

    line = Line(sys.stdout.isatty() and not as_json, err=as_json)
    ended = practise(cell, line.show, lab=lab, home=home, recover=recover)
    line.end()
    if as_json:
        print_json({"schema": "labctl.teleop/1", **asdict(ended)})
        return _left(ended)
    rest = "the robot is at rest" if ended.at_rest else "the robot was not seen to come to rest: look at it"
    after = f"after {ended.driven_s:.0f} s" if ended.driven_s else "before the hand drove"
    text = f"{ended.why}; {rest}" if ended.why else f"ended {after}; {rest}; nothing was recorded"
    if ended.failed:
        click.echo(f"error: {text}", err=True)
    else:
        click.echo(text)
    return _left(ended)


def _left(ended: Ended) -> int:

    if ended.failed:
        return int(Exit.UNAVAILABLE)
    return int(Exit.DONE if ended.at_rest else Exit.REFUSED)


class Line:
    """One line: kept up to date on a terminal, printed anew elsewhere when its words change."""

    def __init__(self, terminal: bool, err: bool = False) -> None:

        self._terminal, self._clock, self._err = terminal, MonotonicClock(), err
        self._words: tuple[str, ...] = ()
        self._drawn_ns = 0

    def show(self, view: View) -> None:
        """Take what there is to see: words at once, numbers five times a second and on a terminal alone."""
        words, now_ns = (view.state, view.hand, view.device, view.clipped, view.news), self._clock.now_ns()
        fresh = words != self._words
        if not self._terminal:
            if fresh:
                click.echo(text_of(view), err=self._err)
                sys.stdout.flush()
        elif fresh or now_ns - self._drawn_ns >= REFRESH_NS:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write(f"\r\x1b[K{text_of(view)[:width]}")
            sys.stdout.flush()
            self._drawn_ns = now_ns
        self._words = words

    def end(self) -> None:
        """Leave the line standing and go on below it."""
        if self._terminal and self._words:
            click.echo()


def text_of(view: View) -> str:
    """The line, such as "gamepad: hold the clutch | robot idle | gripper 80 mm | tool 0.45 0.00 0.40 m"."""
    named = view.device and not view.hand.startswith(view.device)
    parts = [f"{view.device}: {view.hand}" if named else view.hand, view.state]
    if view.gripper_m is not None:
        parts.append(f"gripper {1000 * view.gripper_m:.0f} mm")
    parts += [f"{name} {value:.2f}" + ("" if unit == "1" else f" {unit}") for name, value, unit in view.axes]
    if view.clipped:
        parts.append(f"held back by {view.clipped}")
    if view.news:
        parts.append(view.news)
    if view.tcp_m is not None:
        parts.append("tool " + " ".join(f"{value:.2f}" for value in view.tcp_m) + " m")
    return " | ".join(part for part in parts if part)


@click.command(epilog=PRACTICE)
@campaign_argument(required=False)
@click.option("--person", metavar="ID", help="Who drove, an opaque id.")
@click.option("--object", "thing", metavar="NAME", help="An object of the protocol.")
@click.option("--moved", type=int, metavar="N", help="Items moved.")
@click.option("--staged", type=int, metavar="N", help="Items staged.")
@click.option("--seconds", type=float, metavar="S", help="How long it took.")
@who_option
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
    from labctl.reporting.campaign_report import practised
    from labctl.runtime.review_writer import record_practice

    folder = campaign_folder(campaign, lab)
    given = {"person": person, "object": thing, "moved": moved, "staged": staged, "duration_s": seconds}
    missing = [name for name, value in given.items() if value is None]
    if 0 < len(missing) < len(given):
        text = ", ".join("--" + name.replace("duration_s", "seconds") for name in missing)
        raise InputError(f"a practice episode needs {text} too; without any of them, what was practised is listed")
    if not missing:
        record_practice(folder, given, who=acting(who, folder))
    found = practised(folder)
    if as_json:
        print_json({"schema": "labctl.practice/1", "campaign": folder.name, **found})
        return
    for one in found["people"]:
        rates = ", ".join(f"{rate:.0f}" for rate in one["rates"])
        at = "not at the plateau yet" if one["plateau"] is None else f"at the plateau since episode {one['plateau']}"
        click.echo(f"{one['person']}: {rates} items per hour; {at}")
    if not found["people"]:
        click.echo("nothing practised yet; write an episode down with --person, --object, --moved, --staged, --seconds")
