"""The command line: which verbs there are, and the one place where an error becomes a line and an exit code.

May not: import a verb's module, or anything heavy, before that verb is invoked; `labctl --help` must answer at once.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from labctl.cli import leaving
from labctl.errors import Exit

# verb -> (where its command lives, its one line in `labctl --help`); the order is the order of an evening's work.
VERBS: dict[str, tuple[str, str]] = {
    "demo": ("labctl.cli.demo:demo", "One command to see everything, in a simulated cell."),
    "new": ("labctl.cli.lifecycle:new", "Make a lab folder to start from."),
    "schema": ("labctl.cli.contract.schema:schema", "What a file may say, and what --json prints."),
    "doctor": ("labctl.cli.doctor:doctor", "What is installed, what answers, what is too slow."),
    "emulate": ("labctl.cli.emulate:emulate", "A robot's controller on loopback, to practise and test with."),
    "teleop": ("labctl.cli.teleop:teleop", "Drive a cell by hand, for practice."),
    "people": ("labctl.cli.people:people", "Personal codes, which tell two people apart."),
    "plan": ("labctl.cli.planning.plan:plan", "Check a protocol and say what its size can resolve."),
    "power": ("labctl.cli.planning.power:power", "How many trials a question needs."),
    "queue": ("labctl.cli.queueing.queue:queue", "What waits for a shared rig, and what fits into which shift."),
    "submit": ("labctl.cli.queueing.submit:submit", "Ask a lab to try a policy: a key, a signed request."),
    "open": ("labctl.cli.lifecycle:open_", "Freeze a protocol, draw and seal its schedule."),
    "extend": ("labctl.cli.lifecycle:extend", "A linked campaign: new arms against an earlier one's, through anchors."),
    "qualify": ("labctl.cli.keeping.qualify:qualify", "Hold a second site and its assessors against a kit."),
    "joint": ("labctl.cli.keeping.joint:joint", "Several cells that share one campaign, under one seal."),
    "practice": ("labctl.cli.teleop:practice", "Write down what teleoperators practised."),
    "run": ("labctl.cli.run:run", "Run the trials of a campaign."),
    "stop": ("labctl.cli.run:stop", "End a run from another shell, at the next safe point."),
    "console": ("labctl.cli.console:console", "Attach the operator console to a running campaign."),
    "status": ("labctl.cli.look:status", "Where a campaign stands."),
    "episodes": ("labctl.cli.look:episodes", "List what was recorded."),
    "show": ("labctl.cli.show:show", "Look at one episode in Rerun."),
    "review": ("labctl.cli.review:review", "Assessor: confirm or correct operations, blind to the arm."),
    "scene": ("labctl.cli.scene:scene", "How well a staged scene was put back, as a picture."),
    "look": ("labctl.cli.lifecycle:look", "A planned interim look, blind: stop, or go on."),
    "close": ("labctl.cli.lifecycle:close", "No more trials."),
    "freeze": ("labctl.cli.lifecycle:freeze", "No more review."),
    "unblind": ("labctl.cli.lifecycle:unblind", "Reveal which arm was which."),
    "verify": ("labctl.cli.verify:verify", "Re-hash everything recorded and name what is broken."),
    "stamp": ("labctl.cli.verify:stamp", "Have the newest head dated by a time-stamping authority."),
    "backup": ("labctl.cli.keeping.backup:backup", "A snapshot of the whole lab, also while it runs."),
    "restore": ("labctl.cli.keeping.backup:restore", "A lab made from a snapshot, and verified."),
    "lab": ("labctl.cli.keeping.lab:lab", "Move the lab to another disk or computer, with proof."),
    "database": (
        "labctl.cli.keeping.database:database",
        "A verified copy on the lab's PostgreSQL server.",
    ),
    "media": ("labctl.cli.keeping.media:media", "Videos in the lab's media store, and what is kept of them here."),
    "bugreport": ("labctl.cli.bugreport:bugreport", "An archive for a bug's report, without arms and people."),
    "export": ("labctl.cli.export:export", "Write a campaign as a table other tools read."),
    "import": ("labctl.cli.export:import_", "Other people's results as a table of episodes."),
    "report": ("labctl.cli.report:report", "Write the report of a campaign or a table."),
    "publish": (
        "labctl.cli.publishing.publish:publish",
        "A campaign as a folder that anybody verifies.",
    ),
    "site": ("labctl.cli.publishing.site:site", "A static site of several published campaigns."),
    "static": ("labctl.cli.static:static", "Ask policies about keyframes of recorded human episodes."),
    "analyze": ("labctl.cli.statistics:analyze", "The statistics alone, from a table of operations or episodes."),
    "experiment": (
        "labctl.cli.experiment:experiment",
        "The paper's experiments on a table: detection rate, null rate.",
    ),
    "rates": ("labctl.cli.statistics:rates", "Exact intervals for k-of-n tables."),
    "compare": ("labctl.cli.compare:compare", "Whether two success counts can be told apart."),
}

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}  # every verb inherits it


class LazyGroup(click.Group):
    """A group whose commands are imported when they are invoked, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no verb {args[0]!r}{meant}; this version has: {', '.join(VERBS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(number, when) for number, _, when in leaving.table()])


def say_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Not click's own: a checkout asks git, which no other verb waits for."""
    if asked and not ctx.resilient_parsing:
        from labctl.version import version

        click.echo(f"labctl, version {version()}")
        ctx.exit()


@click.command(cls=LazyGroup, context_settings=CONTEXT)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=say_version,
    help="Show the version and exit.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Print what is logged too, from debug on; $LABCTL_LOG names a level."
)
def group(verbose: bool) -> None:
    """Run blinded, paired robot trials, record them, and say honestly which policy is better.

    Start with `labctl demo`, or with `labctl new my-lab`. Every verb has --help with an example.
    """
    if verbose:
        from labctl import logs

        os.environ.setdefault(logs.LEVEL, "debug")
        logs.on_screen(sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if verb_of(given).rpartition(" ")[2] in leaving.IN_ORDER:
        leaving.end_in_order()
    sys.exit(call(arguments))


def call(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (`labctl.errors.Exit`). A user's mistake is one line on stderr, a bug a
    traceback and one; with --json both are a document on stdout too.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return _called(given)
    except BrokenPipeError:
        # The reader of our output left (`labctl episodes | head`). Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.UNREAD)


def _called(given: Sequence[str]) -> int:
    try:
        result = group.main(given, prog_name="labctl", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, Exception) as error:
        failed = leaving.failure(error, verb_of(given))
        if failed is None:
            traceback.print_exception(error)
            failed = leaving.bug(error)
        return leaving.leave(failed, as_json=leaving.wants_json(given))
    return result if isinstance(result, int) else 0


def verb_of(arguments: Sequence[str]) -> str:
    """What was typed, as far as the verb: "labctl demo"."""
    return " ".join(["labctl", *[word for word in arguments if word in VERBS][:1]])
