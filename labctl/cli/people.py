"""`labctl people`: personal codes, by which a second person confirms at somebody else's keyboard.

May not: show a code, take one from the command line (the shell keeps those), or write into a campaign.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from labctl.cli.options import Words, example, json_option, lab_option, print_json
from labctl.clock import MonotonicClock
from labctl.errors import InputError
from labctl.people.acting import check_person_name
from labctl.store.lab_folder import find_lab
from labctl.times import local

EPILOG = example("labctl people code p07  # asks twice, shows nothing", "labctl people list")


@click.group(cls=Words, epilog=EPILOG)
def people() -> None:
    """Personal codes of the lab's people.

    A void after go that no machine's report stands behind takes a second person. Without a code the record can only say
    that an id was typed at the same keyboard; with one it says "personal code", and asks for it each time. The lab
    keeps a salted hash, in a file that its owner alone reads.
    """


@people.command(epilog=example("labctl people code p07", "labctl people code p07 --remove"))
@click.argument("name")
@click.option("--remove", is_flag=True, help="Take the code away; it is asked for.")
@lab_option
@json_option
def code(name: str, remove: bool, lab: Path | None, as_json: bool) -> None:
    """Set NAME's personal code: 4 to 64 characters, asked twice without an echo.

    Where there is one already it is asked for first. From a pipe: a line with the code that stands, if one does, then a
    line with the new one.
    """
    from labctl.people.personal_codes import check_code, codes_of, set_code

    folder = find_lab(lab)
    check_person_name(name)
    old = _ask(f"the code of {name} that stands") if name in codes_of(folder) else None
    new = None
    if not remove:
        new = _ask(f"the new code of {name}", twice=True)
        check_code(new)
    set_code(folder, name, new, MonotonicClock(), old=old)
    if as_json:
        print_json({"schema": "labctl.person_code/1", "person": name, "did": "removed" if remove else "set"})
        return
    click.echo(f"the personal code of {name} is {'taken away' if remove else 'set'}")


@people.command("list", epilog=example("labctl people list"))
@lab_option
@json_option
def list_(lab: Path | None, as_json: bool) -> None:
    """Who has a personal code, and since when."""
    from labctl.people.personal_codes import codes_of

    codes = codes_of(find_lab(lab))
    if as_json:
        found = [{"person": name, "set": kept.set} for name, kept in sorted(codes.items())]
        print_json({"schema": "labctl.people/1", "people": found})
        return
    for name, kept in sorted(codes.items()):
        click.echo(f"{name}  set {local(kept.set)}")
    if not codes:
        click.echo("nobody has a personal code; set one with: labctl people code NAME")


def _ask(what: str, *, twice: bool = False) -> str:
    """One line that is not shown. Raises InputError when a pipe has none."""
    if sys.stdin.isatty():
        return click.prompt(what, hide_input=True, confirmation_prompt=twice, err=True)
    line = sys.stdin.readline()
    if not line:
        raise InputError(f"no line for {what}; give it on a terminal or by a pipe")
    return line.rstrip("\r\n")
