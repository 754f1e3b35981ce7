"""`labctl site`: a static site of several published campaigns.

May not: rank by itself; `labctl.publishing.leaderboard` does, through anchors only.
"""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from labctl.cli.options import PATH, example, json_option, print_json, progress
from labctl.errors import one_line
from labctl.plain import count

MOST_MB = 500  # of recordings: a site then fits where sites are given a gigabyte
EPILOG = example(
    "labctl site published/first published/second --out site",
    "labctl site published/* --out site --address https://lab.example/results --force",
)


@click.command(epilog=EPILOG)
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option("--out", required=True, type=PATH, metavar="SITE", help="Folder to write.")
@click.option("--title", default="Published campaigns", show_default=True, help="Title of the site.")
@click.option("--address", default="", metavar="URL", help="Where it will be read, for the links of its feed.")
@click.option(
    "--rerun-mb",
    metavar="MB",
    type=click.IntRange(min=0),
    help=f"Size of all recordings for Rerun's viewer; 0 for none [default: {MOST_MB}, where rerun-sdk is installed].",
)
@click.option("--force", is_flag=True, help="Replace a site that is there already.")
@json_option
def site(
    folders: tuple[str, ...],
    out: Path,
    title: str,
    address: str,
    rerun_mb: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a static site of what `labctl publish` wrote: leaderboards, every episode, reports, a feed.

    Each DIR is verified first, and its report made anew. Arms of different campaigns are ranked through anchors only,
    where campaigns were opened linked (labctl extend); what cannot be compared is listed with the reason. The parts of
    a joint campaign, and what `labctl joint publish` wrote of it, are one entry with one report. Every episode can be
    looked at in Rerun's viewer. The site needs no server but a plain file host and asks nobody for anything.
    """
    from labctl.cli.publishing.publish import opened
    from labctl.publishing.site import make_site

    there = find_spec("rerun") is not None
    most = MOST_MB * there if rerun_mb is None else rerun_mb
    with ExitStack() as stack, progress("site", quiet=as_json) as say:
        places = [stack.enter_context(opened(name)) for name in folders]
        made = make_site(places, out, title=title, address=address, force=force, rerun=most * 1_000_000, say=say)
    boards = made.boards
    if as_json:
        names = [list(board.campaigns) for board in boards.boards]
        said = {"index": str(made.index), "campaigns": made.names, "episodes": made.episodes}
        said["rerun"] = len(made.views.links) if made.views else 0
        print_json({"schema": "labctl.site_made/1", **said, "boards": names, "not_ranked": boards.apart})
        return
    held = f"{count(len(made.names), 'campaign')}, {count(made.episodes, 'scored episode')}"
    click.echo(f"site of {held}, {count(len(boards.boards), 'leaderboard')}: {made.index}")
    if made.views:
        drawn = f"{count(len(made.views.links), 'episode')} in Rerun's viewer, {made.views.size / 1e6:.1f} MB"
        left = f"; {made.views.left} more do not fit into {most} MB (--rerun-mb)" if made.views.left else ""
        click.echo(f"{drawn}{left}")
    elif not there:
        click.echo("without Rerun's viewer: pip install 'labctl[rerun]', and make the site again with --force")
    for name, why in boards.apart.items():
        click.echo(one_line(f"not ranked: {name}: {why}"))
