"""`labctl doctor`: what is installed, what answers, what is too slow.

May not: decide what is too slow (`labctl.doctor` does), or move anything.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, file_argument, json_option, print_json

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
EPILOG = example("labctl doctor", "labctl doctor cells/sim_fr3.toml")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@file_argument("cell", "[CELL.toml]", required=False)
@json_option
def doctor(cell: Path | None, as_json: bool) -> int:
    """Look at this machine: packages, disk, clock, realtime limits; with a cell file, also the drivers it names.

    Exit code 1 if the cell could not run. Nothing moves.
    """
    from labctl.doctor import check_cell, runnable, software

    checks = software(Path.cwd()) + (check_cell(cell, Path.cwd()) if cell else [])
    if as_json:
        print_json({"schema": "labctl.doctor/1", "runnable": runnable(checks), "checks": [asdict(c) for c in checks]})
    else:
        for check in checks:
            remedy = f" -> {check.remedy}" if check.remedy else ""
            click.echo(f"{MARKS[check.level]}  {check.name}: {check.text}{remedy}")
        click.echo("a cell could run here" if runnable(checks) else "a cell could not run here: see FAIL above")
    return 0 if runnable(checks) else 1
