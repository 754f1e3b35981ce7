"""Options, tables and progress that several verbs share, so that each reads the same everywhere.

May not: import a verb, or anything heavy before it is printed.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from labctl.analysis.family import STATISTICS
from labctl.cli.completing import campaigns
from labctl.errors import InputError
from labctl.store.lab_folder import campaign_folder, find_lab
from labctl.store.lab_folder import campaigns as lab_campaigns

if TYPE_CHECKING:
    from labctl.analysis.survival.result import Margin
    from labctl.pieces import Place

F = TypeVar("F", bound=Callable[..., object])
_DONE = re.compile(r"^\s*(\d+)/(\d+)\s")

WIDE = 160

# Click would only say that a file "is not readable"; whoever reads it says why.
PATH = click.Path(path_type=Path, readable=False)

STANDARD = "-"

LABCTL = (sys.executable, "-P", "-c", "from labctl.cli import main; main()")
"""How a process of labctl's own is started, whatever is on the PATH."""


class FiniteRange(click.FloatRange):
    """A number in a range. Click's own lets "nan" through, which no comparison refuses, and "inf" where no end is."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is no number.", param, ctx)
        return found


class Words(click.Group):
    """A verb of several words: its help says of each the whole first sentence, which click cuts at the line's end."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(1000)) for name in self.list_commands(ctx)]
            )


def example(*lines: str) -> str:
    """An epilog that click leaves unwrapped."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
lab_option = click.option(
    "--lab",
    type=PATH,
    metavar="DIR",
    help="Lab folder [default: $LABCTL_LAB, else the nearest parent holding lab.toml].",
)
who_option = click.option(
    "--who",
    metavar="ID",
    help="Your opaque id, which the journal keeps [default: $LABCTL_WHO, else the one of `people` in lab.toml].",
)
unverified_option = click.option(
    "--unverified", is_flag=True, help="Also of a record that does not hold; what comes out says so."
)
head_option = click.option(
    "--head",
    metavar="N:HASH",
    help="A head of the chain noted elsewhere, as it was printed (16 digits or more); it must be entry N.",
)
commitment_option = click.option(
    "--commitment",
    metavar="HASH",
    help="The commitment noted at opening (16 digits or more); the campaign must have been opened with it.",
)
times_of_option = click.option(
    "--times-of",
    multiple=True,
    metavar="CAMPAIGN",
    help="Say hours by the times measured in it, repeatable [default: the lab's campaigns in real cells].",
)

ALPHA = FiniteRange(0, 1, min_open=True, max_open=True)
FAMILY = ",".join(STATISTICS)
alpha_option = click.option(
    "--alpha", type=ALPHA, default=0.05, show_default=True, help="Level of verdicts, letters, adjusted intervals."
)
family_option = click.option(
    "--family",
    default=FAMILY,
    show_default=True,
    metavar="NAMES",
    help="Statistics whose smallest p says whether a pair differs.",
)
estimator_option = click.option(
    "--estimator",
    type=click.Choice(["kaplan_meier", "wang_chang"]),
    help="For a table: what RMSTs are made of, all operations alike, or every episode [default: kaplan_meier].",
)
random_option = click.option(
    "--random",
    default="",
    metavar="FACTORS",
    help="For a table: session, operator; the interval of a ratio beyond those met, chosen before.",
)
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same bytes out."
)


def replicates_options(command: F) -> F:
    """--boot N and --perm N, of a report."""
    boot = click.option(
        "--boot", default=9999, show_default=True, type=click.IntRange(min=1), help="Bootstrap replicates."
    )
    perm = click.option(
        "--perm", default=9999, show_default=True, type=click.IntRange(min=1), help="Label swaps tried."
    )
    return boot(perm(command))


def place_options(command: F) -> F:
    """--workers N and --cluster ADDRESS: where heavy work is done."""
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes here [default: by its size].",
    )
    cluster = click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Have the workers of a Dask scheduler do it, such as tcp://10.0.0.5:8786; docs/exports.md.",
    )
    return workers(cluster(command))


def place_of(workers: int | None, cluster: str | None) -> Place:
    """The place of --workers and --cluster. Raises InputError for both."""
    from labctl.pieces import Place

    if workers is not None and cluster is not None:
        raise InputError("--workers are processes here, and --cluster is elsewhere; give one of them")
    return Place(workers, cluster)


def listed(names: str) -> tuple[str, ...]:
    """The names of a list such as ks_macro,uph."""
    return tuple(name.strip() for name in names.split(",") if name.strip())


def factors_of(names: str) -> tuple[str, ...]:
    """The factors of --random. Raises InputError."""
    found = listed(names)
    if not {*found} <= {"session", "operator"} or len(set(found)) < len(found):
        raise InputError(f"--random is {names!r}; allowed are session, operator or session,operator")
    return found


def refuse_of_operations(*, asked: bool) -> None:
    """Of an episodes table: raises InputError where what only an operations table has was asked for."""
    if asked:
        names = "--family, --estimator, --margin, --non-inferior-to and --random"
        raise InputError(f"{names} are for an operations table; leave them out for a table of episodes")


def margin_options(command: F) -> F:
    """--margin RATIO and --non-inferior-to ARM: what a protocol has in [analysis.margin]."""
    to = click.option(
        "--non-inferior-to",
        metavar="ARM",
        help="With --margin: hold every other arm of a table against this one, at the worse side alone.",
    )
    margin = click.option(
        "--margin",
        type=float,
        metavar="RATIO",
        help="For a table: say which arms are equivalent, their RMSTs apart by less than this ratio, chosen before.",
    )
    return margin(to(command))


def margin_of(ratio: float | None, non_inferior_to: str | None) -> Margin | None:
    """The margin of --margin and --non-inferior-to, None without. Raises InputError."""
    if ratio is None and non_inferior_to is not None:
        raise InputError("--non-inferior-to needs a margin, such as --margin 1.25")
    return None if ratio is None else {"rmst_ratio": ratio, "non_inferior_to": non_inferior_to}


def campaign_folders(named: str | None, lab: Path | None) -> list[Path]:
    """The campaign that was named, or all of the lab, of which there may be none. Raises InputError."""
    return lab_campaigns(find_lab(lab)) if named is None else [campaign_folder(named, lab)]


def file_argument(name: str, metavar: str, *, required: bool = True) -> Callable[[F], F]:
    """A path of a file; whether it is there is checked by whoever reads it, with a better message than click's."""
    return click.argument(name, type=PATH, metavar=metavar, required=required)


def is_standard(path: Path | None) -> bool:
    """Whether a file to write is standard output: "-", or none given where that is the default."""
    return path is None or str(path) == STANDARD


def numbers(text: str | None, option: str, largest: int = 1_000_000) -> list[int]:
    """The sorted whole numbers of a list such as 10,20. Raises InputError."""
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 and 1 <= int(part) <= largest for part in parts):
        raise InputError(f"{option} is {text!r}; allowed are whole numbers from 1 on, such as 10,20,40")
    return sorted({int(part) for part in parts})


def print_json(value: Mapping[str, object] | Sequence[object]) -> None:
    """One JSON document on stdout. Raises ValueError for NaN or infinity, which JSON does not have."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def computed_here() -> dict[str, str]:
    """What every document of computed numbers says too: the labctl that computed them."""
    from labctl.software import analysed_by

    return {"analysed_by": analysed_by()}


def print_analysis(value: object) -> None:
    """What `labctl.analysis` computed, as its canonical JSON on stdout."""
    from labctl.analysis.operations_table.analyze import dumps

    click.echo(dumps(value), nl=False)


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


def has_terminal() -> bool:
    """Whether a screen can be drawn and keys can be read: on a terminal, or by a server that has put itself in its
    place (textual-serve hands a screen on by pipes).
    """
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    return all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__))


def need_terminal(verb: str, otherwise: str) -> None:
    """Raises InputError where the screen of `labctl {verb}` would wait for keys that nobody can press. otherwise: what
    does without.
    """
    if not has_terminal():
        where = "standard input and standard error must be a terminal"
        raise InputError(f"labctl {verb} draws a screen and waits for keys: {where}; without one: {otherwise}")


def campaign_argument(*, required: bool = True) -> Callable[[F], F]:
    """CAMPAIGN: a name in the lab or a path."""
    metavar = "CAMPAIGN" if required else "[CAMPAIGN]"
    return click.argument("campaign", metavar=metavar, required=required, shell_complete=campaigns)


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
