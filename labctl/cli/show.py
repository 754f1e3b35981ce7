"""`labctl show`: one episode as a Rerun recording.

May not: show an arm or its timing before unblinding (`labctl.viewing` decides), or open a port.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import CONTEXT, example, lab_option

EPILOG = example(
    "labctl show e-07a3793968 --save episode.rrd", "labctl show e-07a3793968 --campaign first --save episode.rrd"
)


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.argument("episode", metavar="EPISODE")
@click.option("--campaign", default=None, metavar="NAME", help="Its campaign [default: found among the lab's].")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    default=None,
    metavar="F.rrd",
    help="File to write [default: EPISODE.rrd].",
)
@lab_option
def show(episode: str, campaign: str | None, save: Path | None, lab: Path | None) -> None:
    """Write an episode as a Rerun recording: the arm in 3D, both cameras at their measured times, joints, gripper,
    actions, events.

    Before unblinding the view is masked: no arm, no policy timing, no action shapes. Open the file with: rerun FILE
    """
    from labctl import entry
    from labctl.errors import InputError
    from labctl.lab import campaign_folder, campaigns, find_lab
    from labctl.viewing import find_episode, look_at

    target = save or Path(f"{episode}.rrd")
    if target.suffix != ".rrd":
        raise InputError(f"--save {target}: a Rerun recording ends in .rrd; this version writes no other kind")
    folders = [campaign_folder(campaign, lab)] if campaign else campaigns(find_lab(lab))
    seen = look_at(find_episode(folders, episode), episode)
    views = entry.ui("rerun_episode")
    streams = {name: views.Stream(**stream) for name, stream in seen.pop("streams").items()}
    videos = {name: views.Video(**video) for name, video in seen.pop("videos").items()}
    joints = (
        tuple(c.removeprefix("q.") for c in streams["arm/state"].columns if c.startswith("q."))
        if "arm/state" in streams
        else ()
    )
    view = views.EpisodeView(streams=streams, videos=videos, joint_names=joints, **seen)
    views.save_episode(target, view)
    masked = ", masked: the campaign is not unblinded" if view.masked else ""
    click.echo(f"{target}: {len(streams)} streams, {len(videos)} videos{masked}; open it with: rerun {target}")
