"""`labctl scene`: how well a staged scene was put back, as one picture and its scores.

May not: write into a campaign, or name an arm; a scene's photo is older than its reveal.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import campaign_argument, example, json_option, lab_option, print_json
from labctl.store.atomic_files import replace_file
from labctl.store.lab_folder import campaign_folder
from labctl.times import local

EPILOG = example("labctl scene first", "labctl scene first --trial t-7k2m4q --out pictures")


@click.command(epilog=EPILOG)
@campaign_argument()
@click.option("--trial", metavar="TRIAL", help="The trial whose scene it is [default: the last one committed].")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="DIR",
    help="Folder for the picture [default: the current one].",
)
@lab_option
@json_option
def scene(campaign: str, trial: str | None, out: Path, lab: Path | None, as_json: bool) -> None:
    """Show how well the scene of a trial was put back: reference, photo, both over each other and their difference side
    by side, as one PNG, with the score of every camera.

    100 means as the reference, to within what noise and light do; docs/scene-reset.md says what costs how much.
    """
    from labctl.scene.sheet import scene_of, sheet, words
    from labctl.store.verifying.verified import WITH_PHOTOS, refuse_unless_it_holds

    folder = campaign_folder(campaign, lab)
    refuse_unless_it_holds(folder, WITH_PHOTOS)
    found = scene_of(folder, trial)
    path = out / f"scene-{found.trial}-{found.commit}.png"
    out.mkdir(parents=True, exist_ok=True)
    replace_file(path, sheet(found))
    if as_json:
        print_json({"schema": "labctl.scene/1", "picture": str(path), **found.facts()})
        return
    click.echo(f"{found.trial}  {found.condition}  committed {local(found.wall, seconds=True)}")
    for row in found.rows:
        for line in words(found, row):
            click.echo(f"  {line}")
    click.echo(f"picture: {path}")
