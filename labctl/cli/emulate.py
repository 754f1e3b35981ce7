"""`labctl emulate`: a robot's controller on loopback, and the faults one can give it.

May not: bind anything but loopback (the emulator refuses).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.completing import among
from labctl.cli.options import PATH, example, json_option, print_json
from labctl.errors import DeviceRefused, InputError
from labctl.store.lab_folder import packaged_fixture

if TYPE_CHECKING:
    from labctl.checks.emulator_run import Emulator, Link

Value = float | int | str
EPILOG = example(
    "labctl emulate fr3 --host 127.0.0.2",
    "labctl emulate fr3 --host 127.0.0.2 --inject reflex --arg name=joint_reflex",
    "labctl emulate fr3 --host 127.0.0.2 --clear",
)

NAMES = ("fr3", "ros2", "ur5", "ur3e", "ur5e", "ur7e", "ur10e", "ur15", "ur20")


@click.command(epilog=EPILOG)
@click.argument("name", metavar="|".join(NAMES), shell_complete=among(NAMES))
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Loopback address to serve.")
@click.option("--fixture", type=PATH, help="Fixture file [default: two totes].")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the emulator.")
@click.option("--inject", metavar="FAULT", help="Give a running emulator a fault, and leave.")
@click.option("--arg", "arguments", multiple=True, metavar="KEY=VALUE", help="An argument of the fault.")
@click.option("--clear", is_flag=True, help="End every standing fault of a running emulator, and leave.")
@click.option("--stats", is_flag=True, help="Print what a running emulator has counted, and leave.")
@json_option
def emulate(
    name: str,
    host: str,
    fixture: Path | None,
    options: tuple[str, ...],
    inject: str | None,
    arguments: tuple[str, ...],
    clear: bool,
    stats: bool,
    as_json: bool,
) -> None:
    """Serve a controller that the real client libraries connect to, in front of a simulated arm and scene.

    To a client it looks exactly like a robot; it is bound to loopback only. It proves nothing about hardware.
    """
    from labctl.checks import emulator_run
    from labctl.cli.lifecycle import CELLS

    if as_json and not (inject or clear or stats):
        raise click.UsageError(
            "--json goes with --stats, --inject or --clear; an emulator that serves prints no result"
        )
    if arguments and not inject:
        raise click.UsageError("--arg is an argument of a fault; add --inject FAULT")
    if inject or clear or stats:
        _talk(emulator_run.control_link(host), inject, _pairs(arguments), clear, stats, as_json)
        return

    def ready(emulator: Emulator) -> None:
        ports = ", ".join(f"{port} {what}" for what, port in emulator.ports.items())
        click.echo(f"emulated {name} on {host}: {ports}. Not a robot; it proves nothing about hardware.")
        cell = own if (own := f"emulated_{name}") in CELLS else "emulated_ur5e  # change its model, host and name"
        keys = emulator_run.named_by(emulator, host)
        click.echo(f'a cell reaches it with driver = "emulated" and {keys}; labctl new . --robot {cell}')
        click.echo(f"faults: {', '.join(emulator.faults)}; inject one from another terminal:")
        click.echo(f"  labctl emulate {name} --host {host} --inject {next(iter(emulator.faults))}")

    last = emulator_run.serve(name, host, fixture or packaged_fixture(), _pairs(options), ready)
    click.echo(f"ended after {last['robot_time_s']:.1f} s of robot time, {last['states_sent']} states sent")


def _talk(link: Link, inject: str | None, arguments: dict[str, Value], clear: bool, stats: bool, as_json: bool) -> None:
    lines = []
    if inject:
        known = link.ask({"do": "faults"})["faults"]
        if isinstance(known, Mapping) and inject not in known:
            raise InputError(f"no fault {inject!r}; known: {', '.join(known)}")
        try:
            link.ask({"do": "fault", "name": inject, "args": arguments})
        except DeviceRefused as error:  # what was typed is wrong, and no device
            raise InputError(str(error)) from error
        lines.append(f"{inject}: injected")
    if clear:
        link.ask({"do": "clear"})
        lines.append("standing faults cleared")
    if as_json:
        print_json({"schema": "labctl.emulator/1", "did": "; ".join(lines), "stats": link.ask({"do": "stats"})})
    else:
        for line in lines:
            click.echo(line)
    if stats and not as_json:
        found = link.ask({"do": "stats"})
        for key, value in found.items():
            if not isinstance(value, list):
                click.echo(f"{key}: {value}")
    link.close()


def _pairs(given: tuple[str, ...]) -> dict[str, Value]:
    """KEY=VALUE texts as a dict; a value that reads as a number or true/false is one."""
    found: dict[str, Value] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{text!r} is not KEY=VALUE")
        found[key] = {"true": True, "false": False}.get(value, _number(value))
    return found


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
