"""`labctl demo`: the whole loop in a simulated cell, from an empty folder to a report.

May not: do anything a user could not do with the other verbs; it calls the same functions in the same order.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from labctl.cli.options import PATH, example, json_option, print_json, print_table, progress
from labctl.clock import SECOND, ManualClock
from labctl.errors import BrokenRecord, InputError
from labctl.extras import require
from labctl.store.lab_folder import as_seen
from labctl.store.locks import campaign_lock

EPILOG = example("labctl demo", "labctl demo /somewhere/else", "labctl demo --tasks   # two tasks, four axes, stages")
MARK = ".labctl-demo"
OPENED = ("demo-bin-to-bin", "demo-tasks")  # what it calls its campaigns, by their protocols
FILES = {
    "lab.toml": ("labctl", "templates/lab.toml"),
    "cells/demo.toml": ("labctl", "templates/demo_cell.toml"),
    "fixtures/two_totes.toml": ("labctl.fixtures", "two_totes.toml"),
    "fixtures/task_table.toml": ("labctl.fixtures", "task_table.toml"),
    "protocols/demo.toml": ("labctl.protocols", "demo.toml"),
    "protocols/demo_tasks.toml": ("labctl.protocols", "demo_tasks.toml"),
}


@click.command(epilog=EPILOG)
@click.argument("place", required=False, type=PATH, metavar="[DIR]")
@click.option("--dir", "folder", type=PATH, metavar="DIR", help="Lab folder to make, as DIR. [default: labctl-demo]")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed of the demo; a real campaign draws its own from the operating system.",
)
@click.option(
    "--tasks", is_flag=True, help="Two tasks instead: put one thing over among others, and a box opened and closed."
)
@json_option
def demo(place: Path | None, folder: Path | None, seed: int, tasks: bool, as_json: bool) -> None:
    """A paired, blinded campaign in the simulated cell: a person and three policies, four objects, recorded,
    verified, reported.

    Simulated time: a few minutes stand for an hour and a quarter of robot time. Everything it makes is in DIR, where it
    replaces an earlier demo, unless somebody has gone on there with a campaign or a file of their own.

    With --tasks two policies, of which one is weak somewhere: conditions along four axes of BridgeV2-★ beside their
    base, success and stages as a device reports them, a report, an episodes table and what `labctl analyze` says.
    """
    from labctl.reporting.campaign_report import report_campaign
    from labctl.runtime.campaign_run import run_campaign, seal_what_runs_left
    from labctl.store.campaign import close_campaign, freeze_campaign, open_campaign, unblind_campaign
    from labctl.store.verifying.verify import verify_campaign

    require("lab", "labctl demo")
    if place is not None and folder is not None:
        raise InputError(f"{place} and --dir {folder} are two folders; give one")
    lab = _fresh(place or folder or Path("labctl-demo"))
    entropy = hashlib.sha256(f"labctl-demo-{seed}".encode()).digest()
    clock = ManualClock(0)
    opened = open_campaign(
        lab / f"protocols/{'demo_tasks' if tasks else 'demo'}.toml",
        lab / "cells/demo.toml",
        lab,
        entropy=entropy,
        anchor=clock.anchor(),
        who="demo",
    )
    tell: Callable[[str], None] = (lambda line: None) if as_json else click.echo
    tell(f"opened  {opened.name}: schedule drawn and sealed; commitment {opened.commitment}")
    with progress("running trials", quiet=True) as say:
        if not run_campaign(opened.folder, say):
            raise KeyboardInterrupt
    anchor = ManualClock(last_ns(opened.folder) + SECOND).anchor()
    seal_what_runs_left(opened.folder, "close", anchor=anchor)
    unreviewed = partial(freeze_campaign, unreviewed=True)  # nobody sits by it: its report says so
    for finish in (close_campaign, unreviewed, unblind_campaign):
        for line in finish(opened.folder, who="demo", anchor=anchor):
            tell(line)
    checked = verify_campaign(opened.folder)
    if checked.problems:
        raise BrokenRecord(f"the demo's own record does not verify: {checked.problems[0]}")
    tell(f"verified: chain, commitment, traces and videos hold ({checked.counts})")
    page = report_campaign(opened.folder, lab / "report")
    if as_json:
        made = {"campaign": opened.name, "commitment": opened.commitment, "report": str(page)}
        print_json({"schema": "labctl.demo/1", "lab": str(lab), **made})
        return
    (_say_of_tasks if tasks else _say_what_next)(opened.folder, page)


def last_ns(folder: Path) -> int:
    """When the last event of a campaign was written, on its own clock."""
    from labctl.store.verifying.verified import in_passing

    with in_passing(folder) as campaign:
        return campaign.events()[-1].at_ns


def _say_of_tasks(campaign: Path, page: Path) -> None:
    """The episodes table, what its analysis says, and the commands that look deeper."""
    from labctl.analysis.episodes_table import reading
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.table import EpisodesTable
    from labctl.cli.statistics import analyze_episodes
    from labctl.exports.writing import Request, export_campaign

    table = page.parent.parent / "episodes.csv"
    export_campaign(campaign, Request("episodes", table), lambda line: None)
    read = reading.read_either(table)
    assert isinstance(read, EpisodesTable)
    analyze_episodes(read, Plan())
    look = f"labctl analyze {shlex.quote(str(as_seen(table)))}"
    _say_commands(campaign, {"report": as_seen(page), "table": as_seen(table), "analysis": look})


def _say_what_next(campaign: Path, page: Path) -> None:
    """The result in one table, and the commands that look deeper."""
    arms = json.loads((page.parent / "report.json").read_text("utf-8"))["result"]["arms"]
    rows = [
        [row["arm"], _number(row["rmst"], 1, " s"), _number(row["hrt"], 100, " %"), str(row["episodes"])]
        for row in arms
    ]
    print_table(("arm", "RMST", "HRT", "episodes"), rows)
    _say_commands(campaign, {"report": as_seen(page)})


def _say_commands(campaign: Path, made: Mapping[str, str | Path]) -> None:
    """What was made, and the commands that look at the record."""
    first, lab = next((as_seen(campaign) / "video").iterdir()), shlex.quote(str(as_seen(campaign.parent.parent)))
    for what, line in {
        **made,
        "all arms": f"labctl episodes {campaign.name} --lab {lab}",
        "an episode": f"labctl show {first.name} --lab {lab} --save {first.name}.rrd",
        "its video": first / "over_shoulder.mp4",
        "the record": f"labctl verify {campaign.name} --lab {lab}",
    }.items():
        click.echo(f"  {what:<11} {line}")


def _number(value: float | None, scale: float, unit: str) -> str:
    return "-" if value is None else f"{value * scale:.1f}{unit}"


def _fresh(folder: Path) -> Path:
    """An empty lab folder. An earlier demo there is replaced; anything else is refused, as is a demo that runs or in
    which somebody has gone on.
    """
    import importlib.resources

    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise InputError(f"{folder} is there already and is not a demo; choose another with --dir DIR")
        if own := _made_by_others(folder):
            raise InputError(f"{folder} holds what no demo made: {', '.join(own)}; choose another with --dir DIR")
        with ExitStack() as held:
            for name in OPENED:
                if (campaign := folder / "campaigns" / name).is_dir():
                    held.enter_context(campaign_lock(campaign, "demo"))
            shutil.rmtree(folder)
    for name, (package, resource) in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(importlib.resources.files(package).joinpath(resource).read_text("utf-8"), "utf-8")
    (folder / "campaigns").mkdir()
    (folder / MARK).write_text("made by labctl demo; the next demo replaces this folder\n", "utf-8")
    return folder.resolve()


def _made_by_others(folder: Path) -> list[str]:
    """Campaigns, cells, fixtures and protocols in the lab of a demo that no demo puts there."""
    made = {*FILES, *(f"campaigns/{name}" for name in OPENED)}
    held = (path for place in sorted({Path(name).parts[0] for name in made}) for path in (folder / place).glob("[!.]*"))
    return sorted(name for path in held if (name := path.relative_to(folder).as_posix()) not in made)
