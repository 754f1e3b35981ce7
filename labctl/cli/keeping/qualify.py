"""`labctl qualify`: is a second site fit to share a campaign: its objects, its cell, its person, its assessors.

May not: judge by itself (`labctl.checks.site.judging` does), or move a robot.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.doctor import print_checks
from labctl.cli.options import PATH, Words, computed_here, example, json_option, lab_option, print_json, who_option
from labctl.errors import InputError
from labctl.people.acting import acting, check_person_name
from labctl.plain import count
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.lab_folder import find_lab, read_text
from labctl.times import local

if TYPE_CHECKING:
    from labctl.checks.site.kit import SiteKit

EPILOG = example(
    "labctl qualify new kit.toml                       # at the first site: fill it in, send it with the objects",
    "labctl qualify site kit.toml --cell cells/fr3.toml --objects measured.csv --first north.csv --own south.csv",
    "labctl qualify assessor kit.toml reference.csv labels-p9.csv --person p9",
    "labctl qualify list",
)


@click.group(cls=Words, epilog=EPILOG)
def qualify() -> None:
    """Hold a second site against the first's kit, and its assessors against common videos.

    Every result, passed or not, stands in LAB/qualifications, a journal that is only added to. The report of a joint
    campaign names each assessor who scored before passing, and is provisional as long as there is one.
    """


@qualify.command(epilog=example("labctl qualify new kit.toml"))
@click.argument("kit", type=PATH, metavar="KIT.toml")
@json_option
def new(kit: Path, as_json: bool) -> None:
    """Write a kit to fill in: anchor objects, the band of the human reference, what assessors have to reach."""
    from labctl.checks.site.kit import TEMPLATE

    if kit.exists():
        raise InputError(f"{kit} is there already; choose another name, nothing was written")
    with file_errors(str(kit)):
        kit.parent.mkdir(parents=True, exist_ok=True)
    replace_file(kit, TEMPLATE.encode())
    if as_json:
        print_json({"schema": "labctl.kit_made/1", "kit": str(kit)})
        return
    click.echo(f"kit: {kit}")


@qualify.command(
    epilog=example(
        "labctl qualify site kit.toml --cell cells/fr3.toml --objects measured.csv --first north.csv --own south.csv"
    )
)
@click.argument("kit", type=PATH, metavar="KIT.toml")
@click.option("--cell", type=PATH, required=True, metavar="CELL.toml", help="The site's cell.")
@click.option("--objects", type=PATH, required=True, metavar="CSV", help="Its measurements: id, sizes, mass.")
@click.option("--first", type=PATH, required=True, metavar="CSV", help="Operations of the first site's reference.")
@click.option("--own", type=PATH, required=True, metavar="CSV", help="Operations of this site's reference.")
@who_option
@lab_option
@json_option
def site(
    kit: Path, cell: Path, objects: Path, first: Path, own: Path, who: str | None, lab: Path | None, as_json: bool
) -> int:
    """Check a site: each anchor object, the cell as `labctl doctor` does, its person within the kit's band.

    The tables are those of `labctl export CAMPAIGN --to table`. Exit code 1 unless every check passes. Nothing moves.
    """
    from labctl.checks.computer import runnable
    from labctl.checks.doctor import check_cell
    from labctl.checks.site.judging import check_objects, check_reference
    from labctl.people.qualifications import Kind, write_down

    read, digest = _kit(kit)
    folder = find_lab(lab)
    person = acting(who, folder)
    checks = [*check_objects(read, objects), *check_cell(cell, folder), check_reference(read, first, own)]
    passed = runnable(checks)
    files = {"cell": cell, "objects": objects, "first": first, "own": own}
    body = {
        "kit": read.kit.name,
        "kit_sha256": digest,
        "cell": cell.name,
        "passed": passed,
        "failed": [check.name for check in checks if check.level == "fail"],
        "files": {f"{role}: {path.name}": _digest(path) for role, path in files.items()},  # tables are named alike
    }
    write_down(folder, Kind.SITE, body, who=person)
    if as_json:
        print_json({"schema": "labctl.qualify/1", "passed": passed, "checks": [asdict(check) for check in checks]})
    else:
        print_checks(checks)
        click.echo("the site passes" if passed else "the site does not pass: see FAIL above")
    return 0 if passed else 1


@qualify.command(epilog=example("labctl qualify assessor kit.toml reference.csv labels-p9.csv --person p9"))
@click.argument("kit", type=PATH, metavar="KIT.toml")
@click.argument("reference", type=PATH, metavar="REFERENCE.csv")
@click.argument("labels", type=PATH, metavar="LABELS.csv")
@click.option("--person", required=True, metavar="ID", help="The assessor's opaque id.")
@who_option
@lab_option
@json_option
def assessor(
    kit: Path, reference: Path, labels: Path, person: str, who: str | None, lab: Path | None, as_json: bool
) -> int:
    """Hold an assessor's labels of the common videos against the reference labels: kappa, with its 95 % interval.

    Both files have the columns episode and label (a count, a stage, a word). It passes where the lower end of the
    interval reaches the kit's. Exit code 1 where it does not.
    """
    from labctl.checks.site.judging import judge_assessor
    from labctl.people.qualifications import Kind, write_down

    check_person_name(person)
    read, digest = _kit(kit)
    folder = find_lab(lab)
    by = acting(who, folder)
    found = judge_assessor(read, reference, labels)
    about = {"person": person, "kit": read.kit.name, "kit_sha256": digest}
    files = {"reference_sha256": _digest(reference), "labels_sha256": _digest(labels)}
    write_down(folder, Kind.ASSESSOR, {**about, **files, **found}, who=by)
    if as_json:
        judged = {"passed": found["passed"], "person": person, "assessor": found}
        print_json({"schema": "labctl.qualify/1", **judged, **computed_here()})
        return 0 if found["passed"] else 1
    kind = "kappa with quadratic weights" if found["weighted"] else "kappa"
    value = "not to be had" if found["kappa"] is None else f"{found['kappa']:.2f}"
    span = "" if found["interval"] is None else " [{:.2f}, {:.2f}]".format(*found["interval"])
    click.echo(f"{person}: {found['same']} of {count(found['episodes'], 'episode')} alike, {kind} {value}{span}")
    if found["disagreements"]:
        click.echo(f"otherwise than the reference: {', '.join(found['disagreements'])}")
    click.echo(f"{person} passes" if found["passed"] else f"{person} does not pass: {found['why']}")
    return 0 if found["passed"] else 1


@qualify.command("list", epilog=example("labctl qualify list"))
@lab_option
@json_option
def list_(lab: Path | None, as_json: bool) -> None:
    """Which assessors have passed, since when, and how the site did."""
    from labctl.people.qualifications import calibrated, qualifications, site_checks

    events = qualifications(find_lab(lab))
    people = list(calibrated(events).values())
    sites = site_checks(events)
    if as_json:
        states = [{"cell": str(e.body["cell"]), "passed": bool(e.body["passed"]), "wall": e.wall} for e in sites]
        print_json({"schema": "labctl.qualifications/1", "assessors": people, "sites": states})
        return
    for one in sites:
        verdict = "passes" if one.body["passed"] else f"does not pass: {', '.join(one.body['failed'])}"
        click.echo(f"{local(one.wall)}  {one.body['cell']} by kit {one.body['kit']} {verdict}")
    for person in people:
        verdict = f"passed, since {local(person['since'])}" if person["passed"] else "has not passed"
        click.echo(f"{person['person']}: {verdict} ({count(person['tries'], 'try', 'tries')})")
    if not events:
        click.echo("nothing was qualified here yet: labctl qualify new KIT.toml")


def _kit(path: Path) -> tuple[SiteKit, str]:
    from labctl.checks.site.kit import parse_kit

    text = read_text(path)
    return parse_kit(text, str(path)), hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    with file_errors(str(path)):
        return hashlib.sha256(path.read_bytes()).hexdigest()
