"""Progress of a run on a terminal, and plain lines elsewhere.

May not: print what the run itself did not say; everything said is fit for a blind role.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_DONE = re.compile(r"^\s*(\d+)/(\d+)\s")


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A function that takes the run's lines: a bar for the trials on a terminal, every line elsewhere, only warnings
    when quiet.
    """
    if not sys.stderr.isatty():
        yield (lambda line: None) if quiet else _plain
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    from rich.console import Console

    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)

        def take(line: str) -> None:
            counted = _DONE.match(line)
            if counted:
                bar.update(task, completed=int(counted[1]), total=int(counted[2]))
            if not counted or not quiet:
                bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

        yield take


def _plain(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()
