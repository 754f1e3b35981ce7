"""`labctl demo`: the whole loop in a simulated cell, from an empty folder to a report.

May not: do anything a user could not do with the other verbs; it calls the same functions in the same order.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example

EPILOG = example("labctl demo", "labctl demo --dir /somewhere/else")
MARK = ".labctl-demo"
FILES = {
    "lab.toml": ("labctl", "templates/lab.toml"),
    "cells/demo.toml": ("labctl", "templates/demo_cell.toml"),
    "fixtures/two_totes.toml": ("labctl.fixtures", "two_totes.toml"),
    "protocols/demo.toml": ("labctl.protocols", "demo.toml"),
}


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.option("--dir", "folder", default="labctl-demo", show_default=True, type=click.Path(path_type=Path), metavar="DIR", help="Lab folder to make.")
@click.option("--seed", default=0, show_default=True, help="Seed of the demo; a real campaign draws its own from the operating system.")
def demo(folder: Path, seed: int) -> None:
    """A paired, blinded campaign in the simulated cell: a person and three policies, four objects, recorded, verified, reported.

    Simulated time: a few minutes stand for an hour and a half of robot time. Everything it makes is in DIR.
    """
    from labctl.campaign import close_campaign, freeze_campaign, open_campaign, unblind_campaign
    from labctl.cli.progress import progress
    from labctl.clock import ManualClock
    from labctl.running import run_campaign
    from labctl.verify import verify_campaign

    lab = _fresh(folder)
    entropy = hashlib.sha256(f"labctl-demo-{seed}".encode()).digest()
    clock = ManualClock(0)
    opened = open_campaign(
        lab / "protocols/demo.toml", lab / "cells/demo.toml", lab, entropy=entropy, anchor=clock.anchor(), who="demo"
    )
    click.echo(f"opened  {opened.name}: schedule drawn and sealed; commitment {opened.commitment}")
    with progress("running trials", quiet=True) as say:
        run_campaign(opened.folder, say)
    anchor = _after(opened.folder)
    close_campaign(opened.folder, who="demo", anchor=anchor, reason="the demo has run all its trials")
    freeze_campaign(opened.folder, who="demo", anchor=anchor)
    verified = verify_campaign(opened.folder)
    if verified.problems:
        raise SystemExit(f"error: the demo's own record does not verify: {verified.problems[0]}")
    click.echo(f"verified {verified.counts}: chain, commitment, traces and videos hold; head {verified.head}")
    unblind_campaign(opened.folder, who="demo", anchor=anchor)
    _report(opened.folder, lab / "report")


def _fresh(folder: Path) -> Path:
    """An empty lab folder. An earlier demo there is replaced; anything else is refused."""
    import importlib.resources

    from labctl.errors import InputError

    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).is_file():
            raise InputError(f"{folder} is there already and is not a demo; choose another with --dir DIR")
        shutil.rmtree(folder)
    for name, (package, resource) in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(importlib.resources.files(package).joinpath(resource).read_text("utf-8"), "utf-8")
    (folder / "campaigns").mkdir()
    (folder / MARK).write_text("made by labctl demo; the next demo replaces this folder\n", "utf-8")
    return folder.resolve()
