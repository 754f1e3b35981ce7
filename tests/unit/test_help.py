"""docs/cli.md is generated from the commands: run this file to write it, run the test to see that it is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from labctl import cli
from labctl.cli import leaving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
WIDTH = 100
HEAD = """# Commands

What every `labctl` verb prints for `--help`. This page is generated (`make docs`), so it cannot be out of date.

The lab folder is `--lab DIR`, else `$LABCTL_LAB`, else the nearest parent holding `lab.toml`.

A shell completes verbs, campaigns, episodes, formats and, of an unblinded campaign, arms after
`eval "$(_LABCTL_COMPLETE=bash_source labctl)"` (`zsh_source` for zsh; fish:
`_LABCTL_COMPLETE=fish_source labctl | source`).
"""
EXITS = """## Exit codes

Errors are one line on stderr; with `--json` also a document on stdout (`labctl schema error`), whose `kind` this table
has. `labctl run --headless` ends with 0 also when it was asked to (`labctl stop`, Ctrl-C, a terminal that is gone), and
says what is left; with 75 when it was held: not every arm answers, episodes are void for the same reason one after
the other, or a hold is back after two acknowledgements without an episode. Somebody has to look, then the same command
goes on.
"""


def page() -> str:
    """The whole page as Markdown."""
    top = click.Context(cli.group, info_name="labctl", terminal_width=WIDTH, **cli.CONTEXT)
    parts = [HEAD, _exits(), _block("labctl", cli.group.get_help(top))]
    for verb in cli.VERBS:
        command = cli.group.get_command(top, verb)
        assert command is not None
        context = click.Context(command, parent=top, info_name=verb, terminal_width=WIDTH)
        parts.append(_block(f"labctl {verb}", command.get_help(context)))
        for name, below in sorted(command.commands.items()) if isinstance(command, click.Group) else ():
            under = click.Context(below, parent=context, info_name=name, terminal_width=WIDTH)
            parts.append(_block(f"labctl {verb} {name}", below.get_help(under)))
    return "\n".join(parts)


def _exits() -> str:
    rows = "\n".join(f"| {number} | {kind} | {when} |" for number, kind, when in leaving.table())
    return f"{EXITS}\n| code | kind | when |\n|---|---|---|\n{rows}\n"


def _block(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n```\n{lines}\n```\n"


def test_the_page_of_commands_is_what_the_commands_say():
    """Written as `make docs` does, in a process where no command was called without the group whose settings it has."""
    made = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    assert PAGE.read_text(encoding="utf-8") == made.stdout, "run: make docs"


def test_every_verb_has_its_section():
    text = PAGE.read_text(encoding="utf-8")
    assert [verb for verb in cli.VERBS if f"## labctl {verb}\n" not in text] == []


if __name__ == "__main__":
    sys.stdout.write(page())


def test_no_word_of_a_verb_is_cut_in_its_help():
    top = click.Context(cli.group, info_name="labctl", terminal_width=WIDTH, **cli.CONTEXT)
    groups = {verb: cli.group.get_command(top, verb) for verb in cli.VERBS}
    helps = {
        verb: command.get_help(click.Context(command, info_name=verb, parent=top, terminal_width=WIDTH))
        for verb, command in groups.items()
        if isinstance(command, click.Group)
    }
    assert len(helps) > 5
    cut = [line for text in helps.values() for line in text.splitlines()[1:] if line.endswith("...")]
    assert cut == []
