"""Published parts of a joint campaign, typed together: `labctl verify A B …`, `labctl report A B …`, and `labctl joint
publish`, which publishes the seal host's record.

May not: verify or report by itself; `labctl.publishing.cells` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    PATH,
    example,
    json_option,
    lab_option,
    print_json,
    progress,
    replicates_options,
    seed_option,
)
from labctl.cli.publishing.publish import checked_json, licence_option, opened, say_again, say_checked
from labctl.errors import InputError
from labctl.plain import Json, count
from labctl.store.database_backend import PUBLISHED
from labctl.store.lab_folder import JOURNAL, find_lab, read_text

if TYPE_CHECKING:
    from labctl.publishing.cells.check import Together

PUBLISH = example(
    "labctl joint publish two published/two-a published/two-b --licence CC-BY-4.0 --out published/two",
    "labctl verify published/two published/two-a published/two-b      # by anybody, without the labs",
    "labctl report published/two published/two-a published/two-b --out again",
)


def are_of_cells(named: Sequence[str]) -> bool:
    """Whether published folders are to be taken together: one is a seal host's record, or several have a part among
    them.
    """
    from labctl.publishing.cells.seal_record import is_seal_record, says_part

    with ExitStack() as stack:
        folders = [stack.enter_context(opened(one)) for one in named]
        if any(is_seal_record(one) for one in folders):
            return True
        return len(folders) > 1 and any(map(says_part, folders))


def verify_together(
    named: Sequence[str], head: str | None, commitment: str | None, certificates: Path | None, *, as_json: bool
) -> int:
    """`labctl verify A B …` of published parts; 1 where something does not hold."""
    from labctl.publishing.cells.check import check_together
    from labctl.store.chain_heads import noted

    known = noted(head, commitment)
    trusted = None if certificates is None else read_text(certificates).encode()
    with ExitStack() as stack, progress("verifying", quiet=True) as say:
        folders = [stack.enter_context(opened(one)) for one in named]
        found = check_together(folders, known, say, trusted)
    if as_json:
        print_json(_as_json(found))
        return 0 if found.holds else 1
    for part in found.parts:
        say_checked(part.checked)
    name = found.name
    for what, lines in (("", found.problems), ("note: ", found.notes), ("missing: ", found.missing)):
        for line in lines:
            click.echo(f"{name}: {what}{line}")
    state = "the parts hold together" if found.holds else count(len(found.problems) or 1, "problem")
    cells = ", ".join(dict.fromkeys(part.joint["cell"] for part in found.parts)) or "none"
    seal = "" if found.seal is None else f"; {count(found.given, 'arm')} given by the seal host, head {found.head}"
    click.echo(f"{name}: {state} (cells read: {cells}{seal})")
    for line in found.unchecked:
        click.echo(f"{name}: unchecked: {line}")
    return 0 if found.holds else 1


def _as_json(found: Together) -> dict[str, Json]:
    seal = found.seal
    return {
        "schema": "labctl.verify_published_joint/1",
        "joint": found.name,
        "ok": found.holds,
        "commitment": found.commitment,
        "seal_host": None
        if seal is None
        else {"manifest_sha256": seal.digest, "head": found.head, "given": found.given},
        "cells": list(dict.fromkeys(part.joint["cell"] for part in found.parts)),
        "problems": [asdict(problem) for problem in found.problems],
        "notes": found.notes,
        "missing": found.missing,
        "unchecked": found.unchecked,
        "parts": [checked_json(part.checked) for part in found.parts],
    }


def report_cells_published(named: Sequence[str], out: Path, *, as_json: bool) -> int:
    """`labctl report A B …` of published parts; 1 where a number is another one than in the published report."""
    from labctl.publishing.cells.report import report_together

    with ExitStack() as stack, progress("report", quiet=as_json) as say:
        folders = [stack.enter_context(opened(one)) for one in named]
        made = report_together(folders, out, say, linked=all(Path(one).is_dir() for one in named))
    again = made.again
    if as_json:
        said = {"report": str(made.page), "joint": made.together.name, "same": None if again is None else again.same}
        more = {"why": made.why, "missing": made.together.missing, "notes": list(made.notes)}
        differ = {"files": [], "numbers": [], "texts": [], "versions": []}
        if again is not None:
            differ = {name: list(getattr(again, name)) for name in differ}
        print_json({"schema": "labctl.report_published_joint/1", **said, **more, **differ})
    else:
        click.echo(f"report: {made.page}")
        for line in made.together.missing:
            click.echo(f"missing: {line}")
        for line in made.notes:
            click.echo(f"note: {line}")
        if again is None:
            click.echo(made.why)
        else:
            say_again(again)
    return 1 if again is not None and again.numbers else 0


@click.command("publish", epilog=PUBLISH)
@click.argument("name", metavar="NAME")
@click.argument("parts", nargs=-1, required=True, metavar="PUBLISHED_PART...")
@click.option("--out", required=True, type=PATH, metavar="DIR", help="Folder to write.")
@licence_option
@click.option("--title", default="", help="Title [default: that of the first part].")
@click.option("--creator", default="", metavar="NAME", help="Who publishes it.")
@replicates_options
@seed_option
@click.option("--force", is_flag=True, help="Replace what was published at DIR before.")
@lab_option
@json_option
def joint_publish(
    name: str,
    parts: tuple[str, ...],
    out: Path,
    licence: str,
    title: str,
    creator: str,
    boot: int,
    perm: int,
    seed: int,
    force: bool,
    lab: Path | None,
    as_json: bool,
) -> None:
    """At the seal host: publish its record, with the one report of the cells' published parts.

    Each cell publishes its own part (labctl publish). With this beside them anybody verifies that they are one campaign
    under one seal, and makes its report anew. The joint campaign must be unblinded: all of its seal is open then.
    """
    from labctl.joint.seal_host import JOINT
    from labctl.publishing.cells.report import publish_joint
    from labctl.publishing.publish import UTC, Request
    from labctl.store.lab_folder import lab_settings

    host = find_lab(lab) / JOINT / name
    if not (host / JOURNAL).is_file():
        raise InputError(f"no joint campaign {name!r} in {host.parent}; `labctl joint publish` is for its seal host")
    request = Request(licence, title, creator, boot=boot, perm=perm, seed=seed, force=force)
    with ExitStack() as stack, progress("publish", quiet=as_json) as say:
        folders = [stack.enter_context(opened(one)) for one in parts]
        made = publish_joint(host, folders, out, request, lab_settings(host).timezone or UTC, say)
    manifest = made.manifest
    if as_json:
        said = {"joint": manifest.campaign, "out": str(out), "files": len(manifest.files), "head": manifest.head}
        more = {"manifest_sha256": made.digest, "commitment": manifest.commitment, "missing": list(made.missing)}
        print_json({"schema": "labctl.joint_published/1", **said, **more, "parts": [asdict(p) for p in manifest.parts]})
        return
    of = f"the seal host's record and the report of {count(len(manifest.parts), 'part')}"
    click.echo(f"published {manifest.campaign}: {of}, in {out}")
    for line in made.missing:
        click.echo(f"missing: {line}")
    click.echo(f"note elsewhere: head {manifest.head}")
    click.echo(f"note elsewhere: sha256 of {PUBLISHED} {made.digest}")
