"""`labctl doctor`: what is installed, what answers, what is too slow.

May not: decide what is too slow (`labctl.checks.computer` and `labctl.checks.doctor` do), or move anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import PATH, example, file_argument, json_option, lab_option, print_json
from labctl.clock import MonotonicClock
from labctl.errors import InputError
from labctl.store.lab_folder import MARK, find_lab, read_cell, settings_of

if TYPE_CHECKING:
    from labctl.checks.computer import Check
    from labctl.store.lab_folder import Plan

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
EPILOG = example(
    "labctl doctor",
    "labctl doctor cells/sim_fr3.toml",
    "labctl doctor cells/fr3.toml --latency",
    "labctl doctor cells/fr3.toml --protocol protocols/first.toml",
    "labctl doctor --alerts",
)


@click.command(epilog=EPILOG)
@file_argument("cell", "[CELL.toml]", required=False)
@click.option("--latency", is_flag=True, help="Measure how late the cell's cameras are: they film a page on a screen.")
@click.option("--camera", metavar="NAME", help="With --latency: this camera alone.")
@click.option(
    "--port",
    type=click.IntRange(1024, 65535),
    metavar="N",
    help="With --latency: the page's port on 127.0.0.1 [default: a free one].",
)
@click.option(
    "--protocol",
    type=PATH,
    metavar="PROTOCOL.toml",
    help="Also ask each of its policies for an answer; servers start as their cards say. Do this before `open`.",
)
@click.option("--alerts", is_flag=True, help="Send a test by each way that [alerts] of lab.toml names.")
@lab_option
@json_option
def doctor(
    cell: Path | None,
    latency: bool,
    camera: str | None,
    port: int | None,
    protocol: Path | None,
    alerts: bool,
    lab: Path | None,
    as_json: bool,
) -> int:
    """Look at this machine: packages, disk, clock, realtime limits; with a cell file, also the drivers it names,
    whether its teleoperation device can be read and what its cameras' encoding costs, and of a real or emulated one
    whether robot, sensors and cameras answer; with a protocol, also whether its policies answer, and how fast. The disk
    is the lab's; the current folder's where there is no lab.

    Exit code 1 if the cell could not run. Nothing moves.
    """
    if alerts and (latency or cell is not None):
        raise click.UsageError("--alerts sends its tests and checks nothing else; leave the cell and --latency out")
    if alerts:
        return _alerts(lab, as_json)
    if latency and protocol is not None:
        raise click.UsageError("--latency measures cameras and asks no policy; leave --protocol out")
    if latency:
        return _latency(cell, camera, port or 0, as_json)
    if camera is not None or port is not None:
        raise click.UsageError("--camera and --port go with --latency")
    if protocol is not None and cell is None:
        raise click.UsageError("--protocol needs a cell file: labctl doctor CELL.toml --protocol PROTOCOL.toml")
    from labctl.checks.computer import FREE_DISK, runnable, software
    from labctl.checks.doctor import check_cell, check_opened
    from labctl.checks.store_server import check_store, lab_here

    folder = lab_here(lab) or Path.cwd()  # whose disk it is that a campaign would be recorded on
    of_cell = check_cell(cell, folder) if cell else []
    free = all(check.name != FREE_DISK for check in of_cell)  # else the cell's own number counts
    checks = [*software(folder, free=free), *check_store(lab), *of_cell]
    if cell is not None and protocol is not None:
        from labctl.checks.policy_check import check_protocol

        checks += check_protocol(protocol, cell)
    checks += check_opened([path for path in (cell, protocol) if path is not None])
    if as_json:
        print_json({"schema": "labctl.doctor/1", "runnable": runnable(checks), "checks": [asdict(c) for c in checks]})
    else:
        print_checks(checks)
        could = (
            "the cell could run here" if cell else "one could run here; no cell was looked at: labctl doctor CELL.toml"
        )
        click.echo(could if runnable(checks) else "a cell could not run here: see FAIL above")
    return 0 if runnable(checks) else 1


def print_checks(checks: Sequence[Check], *, err: bool = False) -> None:
    """A line for each, with what to do where it is not as it should be."""
    for check in checks:
        remedy = f" -> {check.remedy}" if check.remedy else ""
        click.echo(f"{MARKS[check.level]}  {check.name}: {check.text}{remedy}", err=err)


def warn_of_secrets(plan: Plan, cell: Path) -> None:
    """Before a campaign is sealed: what addresses of its files hold a password, on standard error."""
    from labctl.checks.doctor import secrets_of_cell, secrets_of_plan

    print_checks([*secrets_of_cell(cell), *secrets_of_plan(plan)], err=True)


def _alerts(lab: Path | None, as_json: bool) -> int:
    """Send a test by every way. Exit code 1 if one did not arrive at its server."""
    import os

    from labctl.alerts.courier import try_all

    folder = find_lab(lab)
    table = settings_of(folder).alerts
    if table is None:
        raise InputError(f"{folder / MARK} has no [alerts]; name a way there, such as [alerts.ntfy]")
    found = try_all(table, os.environ, folder.name)
    if as_json:
        print_json({"schema": "labctl.alerts/1", "ways": {name: {"error": why or None} for name, why in found.items()}})
    else:
        for name, why in found.items():
            click.echo(f"{MARKS['fail' if why else 'ok']}  {name}: {why or 'the server took a test'}")
    return 1 if any(found.values()) else 0


def _latency(cell_path: Path | None, only: str | None, port: int, as_json: bool) -> int:
    """Film the clock page with the cell's cameras. Exit code 1 if one could not be measured."""
    from labctl.checks.clock_page import ClockPage
    from labctl.checks.latency import measure_all, wait_for_page
    from labctl.config.cell_schema import Setup
    from labctl.runtime.hosting.cell_nodes import stand_in

    if cell_path is None:
        raise click.UsageError("--latency needs a cell file: labctl doctor CELL.toml --latency")
    cell, clock = read_cell(cell_path), MonotonicClock()
    with ClockPage(clock, port) as page:
        click.echo(f"open this on a screen that the camera sees, full screen (F11): {page.url}", err=True)
        wait_for_page(page, clock)
        found, failed = measure_all(Setup(cell=cell, fixture=stand_in()), only, page, clock)
    if as_json:
        print_json({"schema": "labctl.latency/1", "cameras": [one.body() for one in found], "failed": failed})
        return 1 if failed else 0
    for one in found:
        spread = f"p95 {1e3 * one.p95_s:.0f} ms, n {one.n}, the page's clock within {one.error_ms:.1f} ms"
        click.echo(f"camera {one.camera}: {1e3 * one.median_s:.0f} ms from screen to receipt (median; {spread})")
        click.echo(f"    {one.line()}")
    for text in failed:
        click.echo(text, err=True)
    return 1 if failed else 0
