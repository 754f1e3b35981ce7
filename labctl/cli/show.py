"""`labctl show`: an episode, or two side by side, in Rerun.

May not: show an arm or its timing before unblinding (`labctl.viewing.episode` decides), or listen beyond loopback.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli import completing
from labctl.cli.options import PATH, campaign_folders, example, json_option, lab_option, print_json, unverified_option
from labctl.errors import InputError
from labctl.plain import count
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.viewing.showing import Made

EPILOG = example(
    "labctl show e-07a3793968",
    "labctl show e-07a3793968 --web",
    "labctl show e-07a3793968 e-e94614cc64 --save two.rrd",
    "labctl show two.rrd --web",
    "labctl show --live first --web",
)


@click.command(epilog=EPILOG)
@click.argument("episodes", metavar="EPISODE [EPISODE] | F.rrd", nargs=-1, shell_complete=completing.episodes)
@click.option(
    "--campaign",
    metavar="NAME",
    shell_complete=completing.campaigns,
    help="Their campaign [default: found among the lab's].",
)
@click.option(
    "--save",
    type=PATH,
    metavar="F.rrd",
    help="Write the recording to this file; without --web, open nothing.",
)
@click.option("--web", is_flag=True, help="Serve it to a browser on this machine (127.0.0.1) until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(1024, 65534),
    metavar="N",
    help="Port of the page, the next one for its data [default: free ones].",
)
@click.option("--masked", is_flag=True, help="As a blind assessor may see it, even after unblinding.")
@unverified_option
@click.option(
    "--live",
    metavar="CAMPAIGN",
    shell_complete=completing.campaigns,
    help="Follow a running campaign, as a blind role may see it.",
)
@lab_option
@json_option
def show(
    episodes: tuple[str, ...],
    campaign: str | None,
    save: Path | None,
    web: bool,
    port: int | None,
    masked: bool,
    unverified: bool,
    live: str | None,
    lab: Path | None,
    as_json: bool,
) -> None:
    """Look at an episode in Rerun: the robot in its cell, both cameras at their measured times, joints, gripper,
    actions, the policy's answers, what happened when. Two episodes stand side by side on the time since each one's go.

    Before unblinding the view is masked: no arm, no policy timing, no actions. A recording written earlier is shown as
    it is. docs/looking.md says what is where.
    """
    from labctl.ui.rerun import viewer_process as viewer
    from labctl.viewing import showing

    if as_json and (save is None or web):
        raise InputError("--json says what --save wrote; add --save F.rrd, and leave --web out")
    if save is not None and save.suffix != ".rrd":
        raise InputError(f"--save {save}: a Rerun recording ends in .rrd; this version writes no other kind")
    if port is not None and not web:
        raise InputError("--port is the port of the page; add --web")
    if live is not None:
        if episodes or save or campaign:
            raise InputError("--live CAMPAIGN follows a run; it goes with --web and --port alone")
        _show_live(live, lab, web, port)
        return
    if not episodes:
        raise InputError(
            "which episode? list them with: labctl episodes CAMPAIGN; or follow a run with --live CAMPAIGN"
        )
    files = [Path(name) for name in episodes if name.endswith(".rrd")]
    if files and (len(files) < len(episodes) or save or masked):
        raise InputError(f"{files[0]} is a recording already and is shown as it is; name episodes, or recordings alone")
    if save is None and not web:
        viewer.need_display()
    with showing.workshop() as folder:
        if not files:
            made = _make(episodes, campaign, lab, save, folder, masked, unverified, quiet=as_json)
            if as_json:
                size = made.path.stat().st_size
                print_json({"schema": "labctl.page/1", "file": str(save), "bytes": size, "masked": made.masked})
                return
            files = [made.path]
            if save is None and not web and made.videos and not viewer.decodes_video():
                click.echo("there is no ffmpeg here, which the window needs to show videos; --web needs none")
        for file in files:
            if not file.is_file():
                raise InputError(
                    f"no recording {file}; write one with: labctl show EPISODE --save {shlex.quote(str(file))}"
                )
        if web:
            showing.show_page(files, folder, port, click.echo)
        elif save:
            click.echo(f"look at it with: labctl show {shlex.quote(str(save))}")
        else:
            showing.show_window(files, folder)


def _show_live(campaign: str, lab: Path | None, web: bool, port: int | None) -> None:
    from labctl.viewing import showing

    if not web:
        from labctl.ui.rerun import viewer_process

        viewer_process.need_display()
    with showing.workshop() as folder:
        showing.show_live(campaign_folder(campaign, lab), folder, web=web, port=port, say=click.echo)


def _make(
    episodes: tuple[str, ...],
    campaign: str | None,
    lab: Path | None,
    save: Path | None,
    folder: Path,
    masked: bool,
    unverified: bool,
    *,
    quiet: bool,
) -> Made:
    """Write the recording, to `save` or into a passing folder, and say what it is."""
    from labctl.viewing import showing

    if len(episodes) > 2:
        raise InputError(f"{len(episodes)} episodes given; one is shown alone, two side by side")
    folders = campaign_folders(campaign, lab)
    views = showing.views_of(episodes, folders, masked=masked, unverified=unverified)
    made = showing.write(views, save or folder / f"{'-'.join(episodes)}.rrd")
    if quiet:
        return made
    why = "as asked" if masked else "the campaign is not unblinded"
    note = f", masked: {why}" if made.masked else ""
    size = f"{made.size_mb:.1f} MB in {made.took_s:.1f} s"
    click.echo(
        f"{save or made.path.stem}: {count(made.streams, 'stream')}, {count(made.videos, 'video')}, {size}{note}"
    )
    return made
