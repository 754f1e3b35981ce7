"""`labctl teleop`: drive a cell by hand, for practice.

May not: score or record anything, or name an arm of an experiment: it knows none.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import CONTEXT, PATH, example, lab_option

if TYPE_CHECKING:
    from labctl.nodes.practice import View

EPILOG = example("labctl teleop --cell cells/fr3.toml", "labctl teleop --cell cells/sim_fr3.toml --home")
REFRESH_NS = 200_000_000


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.option("--cell", type=PATH, required=True, metavar="CELL.toml", help="The cell to drive.")
@click.option(
    "--home",
    is_flag=True,
    help="First the arm goes by itself where episodes begin; a simulated cell sets out its items.",
)
@click.option("--recover", is_flag=True, help="You have looked at a robot that had stopped itself: it may go on.")
@lab_option
def teleop(cell: Path, home: bool, recover: bool, lab: Path | None) -> int:
    """Drive the cell by hand with the device of its [teleop] table. Practice: nothing is scored, nothing recorded.

    The same processes, limits, lease, clutch, alignment gate and ramp as in a trial stand between hand and arm. One
    line says how things stand; a terminal keeps it up to date. Ctrl-C stops the arm and ends, as does the device's
    button for "done". Exit code 1 when the device or the robot ended it. labctl's holds are not a safety system: the
    e-stop and the robot's own safety controller are.
    """
    from labctl.runtime.practice_run import practise

    line = Line(sys.stdout.isatty())
    ended = practise(cell, line.show, lab=lab, home=home, recover=recover)
    line.end()
    rest = "the arm is at rest" if ended.at_rest else "the arm was not seen to come to rest: look at it"
    after = f"after {ended.driven_s:.0f} s" if ended.driven_s else "before the hand drove"
    told = f"{ended.why}; {rest}" if ended.why else f"ended {after}; {rest}; nothing was recorded"
    if ended.failed:
        click.echo(f"error: {told}", err=True)
        return 1
    click.echo(told)
    return 0 if ended.at_rest else 1


class Line:
    """One line: kept up to date on a terminal, printed anew elsewhere when its words change."""

    def __init__(self, terminal: bool) -> None:
        from labctl.clock import MonotonicClock

        self._terminal, self._clock = terminal, MonotonicClock()
        self._words: tuple[str, ...] = ()
        self._drawn_ns = 0

    def show(self, view: View) -> None:
        """Take what there is to see: words at once, numbers five times a second and on a terminal alone."""
        words, now_ns = (view.state, view.hand, view.device, view.clipped, view.news), self._clock.now_ns()
        fresh = words != self._words
        if not self._terminal:
            if fresh:
                click.echo(text_of(view))
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
    """The line, such as "gamepad: hold the clutch | arm idle | gripper 80 mm | tool 0.45 0.00 0.40 m"."""
    named = view.device and not view.hand.startswith(view.device)
    parts = [f"{view.device}: {view.hand}" if named else view.hand, view.state]
    if view.gripper_m is not None:
        parts.append(f"gripper {1000 * view.gripper_m:.0f} mm")
    if view.clipped:
        parts.append(f"held back by {view.clipped}")
    if view.news:
        parts.append(view.news)
    if view.tcp_m is not None:
        parts.append("tool " + " ".join(f"{value:.2f}" for value in view.tcp_m) + " m")
    return " | ".join(part for part in parts if part)
