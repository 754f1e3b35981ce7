"""Options and printing that several verbs share, so that each reads the same everywhere.

May not: know a verb, or import anything heavy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

F = Callable[..., Any]

WIDE = 160

# Click would only say that a file "is not readable"; whoever reads it says why.
PATH = click.Path(path_type=Path, readable=False)

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def example(*lines: str) -> str:
    """An epilog that click leaves unwrapped."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def lab_option(command: F) -> F:
    """--lab DIR: the lab folder; without it $LABCTL_LAB, else the nearest parent holding lab.toml."""
    return click.option(
        "--lab",
        type=PATH,
        default=None,
        metavar="DIR",
        help="Lab folder [default: $LABCTL_LAB, else the nearest parent holding lab.toml].",
    )(command)


def json_option(command: F) -> F:
    """--json: print the result as one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)


def who_option(command: F) -> F:
    """--who ID: the opaque id of the person acting, for the journal."""
    return click.option(
        "--who",
        default="operator",
        show_default=True,
        metavar="ID",
        help="Opaque id of who does this; the journal keeps it.",
    )(command)


def file_argument(name: str, metavar: str, *, required: bool = True) -> Callable[[F], F]:
    """A path of a file; whether it is there is checked by whoever reads it, with a better message than click's."""
    return click.argument(name, type=PATH, metavar=metavar, required=required)


def print_json(value: Any) -> None:
    """One JSON document on stdout. Raises ValueError for NaN or infinity, which JSON does not have."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A plain table on stdout, as wide as the terminal, or wide enough for everything when there is none."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*headings, box=box.SIMPLE)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False, width=None if sys.stdout.isatty() else WIDE).print(table)


def campaign_argument(*, required: bool = True) -> Callable[[F], F]:
    """CAMPAIGN: a name in the lab or a path."""
    return click.argument("campaign", metavar="CAMPAIGN" if required else "[CAMPAIGN]", required=required)
