"""`labctl new`: a lab folder to start from.

May not: write over anything.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, file_argument


@click.command(
    epilog=example("labctl new my-lab", "cd my-lab", "labctl plan protocols/first.toml"), context_settings=CONTEXT
)
@file_argument("folder", "DIR")
def new(folder: Path) -> None:
    """Make a lab folder to start from: a simulated cell, a fixture and a protocol, all commented."""
    from labctl.store.lab_folder import new_lab

    written = new_lab(folder)
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"next: cd {folder} && labctl plan protocols/first.toml")
