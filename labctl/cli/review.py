"""`labctl review`: an assessor confirms or corrects when operations happened, blind to the arm.

May not: show an arm; the episode is opened masked.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    LABCTL,
    campaign_argument,
    example,
    json_option,
    lab_option,
    need_terminal,
    print_json,
    print_table,
    who_option,
)
from labctl.errors import InputError, MissingExtra
from labctl.people.acting import acting
from labctl.plain import Json, count
from labctl.store.lab_folder import campaign_folder

if TYPE_CHECKING:
    from labctl.core.event_bodies import OperationRecorded
    from labctl.core.published_state import Compare
    from labctl.core.reviewed import Item
    from labctl.messages.judgements import PreferenceStated
    from labctl.pages.server import Routes

EPILOG = example(
    "labctl review first --who p09",
    "labctl review first --who p09 --page",
    "labctl review first --who p09 --register",
    "labctl review first --who p10 --second",
    "labctl review first --who p10 --second --page",
    "labctl review first --who p09 --witness",
    "labctl review first --finish",
)


@click.command(epilog=EPILOG)
@campaign_argument(required=False)
@who_option
@click.option("--register", is_flag=True, help="Enter yourself as assessor first: once, outside of a session.")
@click.option("--list", "listing", is_flag=True, help="Print the queue and leave.")
@click.option(
    "--finish", is_flag=True, help="No more review of this closed campaign; every episode in dispute has been reviewed."
)
@click.option("--second", is_flag=True, help="Judge as a second assessor, by the videos alone, what others scored.")
@click.option("--witness", is_flag=True, help="Have the model of the protocol's [witness] asked, and leave.")
@click.option("--page", is_flag=True, help="Review in a browser on this machine, with the videos, until Ctrl-C.")
@click.option("--port", type=click.IntRange(1024, 65535), metavar="N", help="With --page: its port [default: free].")
@click.option("--web", is_flag=True, help="Open episodes in the browser instead of Rerun's window.")
@json_option
@lab_option
def review(
    campaign: str | None,
    who: str | None,
    register: bool,
    listing: bool,
    finish: bool,
    second: bool,
    witness: bool,
    page: bool,
    port: int | None,
    web: bool,
    as_json: bool,
    lab: Path | None,
) -> None:
    """Go through the scored episodes: disagreements between detector, operator and assessor come first.

    ENTER confirms what stands and goes on; O opens the episode in Rerun, masked; + adds an operation, D removes one, X
    turns a success into a loss, W corrects the outcome with a why, B says which of two episodes
    was better. Both streams of labels are kept. A strip of pictures
    shows what happened around the operation that is chosen.

    --second: a second assessor, who was not in the room and has not seen what was said, judges each episode by its
    video alone; where the two differ, the review shows both and comes to it first.

    --witness sends pictures of each scored episode to the model that the protocol's [witness] names, with the question
    that its measure puts, and records the answers beside the outcomes. The report says how far it agrees; nothing waits
    for it, and no outcome changes by it.

    --page does the same in a browser, with --second too: both cameras side by side, by keys, with a jump from candidate
    to candidate; 1 to 9 say that a stage was reached at the moment that is shown. It listens on 127.0.0.1 alone and its
    address opens once. docs/looking.md says more.
    """
    from labctl.core.campaign_state import pairs as pairs_of
    from labctl.core.reviewed import queue, unsettled
    from labctl.store.verifying.verified import JOURNAL_ALONE, in_passing, verified

    if witness and (second or page or finish or listing or as_json):
        raise InputError("--witness goes by itself: a model is asked, and nothing is reviewed")
    if second and (finish or listing or as_json):
        raise InputError("--second goes by itself: a second assessor judges episodes and sees nothing else")
    if port is not None and not page:
        raise InputError("--port is the port of the page; add --page")
    folder = campaign_folder(campaign, lab)
    result = ""
    from labctl.runtime import review_writer

    def load() -> list[Item]:
        with in_passing(folder) as opened:
            return queue(opened.record())

    if not (register or finish or listing or as_json):
        review_writer.check_may_review(folder, acting(who, folder))
    if page:
        _pages()
    elif not (witness or finish or listing or as_json):
        need_terminal(*_screen(folder.name, second=second))
    if register:  # only now: what is refused has entered nobody
        review_writer.register(folder, acting(who, folder))
    if finish:
        result = review_writer.finish(folder, who=acting(who, folder))
        if not as_json:
            click.echo(result)
            return
    if listing or as_json:
        with verified(folder, JOURNAL_ALONE) as shown:
            _print(folder.name, queue(shown.campaign.record()), as_json, result)
        return
    assessor = acting(who, folder)
    review_writer.check_may_review(folder, assessor)

    if witness:
        from labctl.checks.witness import ask

        click.echo(ask(folder, who=assessor, say=lambda line: click.echo(line, err=True)))
        return
    if second:
        _second(folder, assessor, page, port)
        return

    end = partial(review_writer.finish, folder, who=assessor)

    def save(trial: str, operations: list[OperationRecorded], seen: int) -> None:
        review_writer.review(folder, trial, operations, who=assessor, seen=seen)

    def correct(trial: str, outcome: Mapping[str, Json], why: str, seen: int) -> None:
        review_writer.correct(folder, trial, outcome, who=assessor, why=why, seen=seen)

    def pairs() -> list[tuple[Compare, PreferenceStated | None]]:
        with in_passing(folder) as opened:
            return pairs_of(opened.state)

    def prefer(stated: PreferenceStated, seen: str) -> None:
        review_writer.prefer(folder, **stated, who=assessor, seen=seen)

    from labctl.pages.recorded_videos import RecordedVideos

    if page:

        def routes() -> Routes:
            from labctl.pages.reviewing import ReviewPage

            recorded = RecordedVideos(folder)
            return ReviewPage(folder.name, recorded, load, save, correct, end, pairs, prefer).routes()

        _serve(routes, port)
        return
    from labctl.store.pictures import load_photo
    from labctl.ui.review.review import Review

    watch = partial(show_masked, folder, web=web)
    strip, photos = RecordedVideos(folder).strip, partial(load_photo, folder)
    stated = Review(load, save, correct, watch, strip, end, pairs, prefer, photos).run()
    left = len(unsettled(load()))
    whole = f"next: labctl review {folder.name} --finish (F in the review), once the campaign is closed"
    click.echo(stated or (f"in dispute and left to review: {count(left, 'episode')}" if left else whole))


def show_masked(folder: Path, episode: str, *, web: bool) -> None:
    """Open an episode of a campaign folder in a process of its own, which goes on when the review ends. Raises
    InputError where a window cannot open.
    """
    from labctl.logs import appended
    from labctl.ui.rerun.viewer_process import need_display

    if not web:
        need_display()
    command = [*LABCTL, "show", episode, "--masked", "--campaign", str(folder), *(["--web"] if web else [])]
    with appended(folder / "logs" / "show.log") as log:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _second(folder: Path, who: str, page: bool, port: int | None) -> None:
    """What is left for a second assessor, by its videos."""
    from labctl.core.reviewed import Unseen, unseen
    from labctl.pages.recorded_videos import RecordedVideos
    from labctl.runtime import review_writer
    from labctl.store.verifying.verified import in_passing

    def load() -> list[Unseen]:
        with in_passing(folder) as opened:
            return unseen(opened.record(), who)

    judge = partial(review_writer.judge, folder, who=who)
    if page:

        def routes() -> Routes:
            from labctl.pages.judging import SecondPage

            return SecondPage(folder.name, RecordedVideos(folder), load, judge).routes()

        _serve(routes, port)
    else:
        need_terminal(*_screen(folder.name, second=True))
        from labctl.store.pictures import load_photo
        from labctl.ui.review.second import SecondReview

        SecondReview(load, judge, RecordedVideos(folder).strip, partial(load_photo, folder)).run()
    click.echo(f"left for {who} to judge: {count(len(load()), 'episode')}")


def _screen(name: str, *, second: bool) -> tuple[str, str]:
    """What `need_terminal` says of the screen that is drawn."""
    if second:
        return "review --second", f"labctl review {name} --second --page in a browser"
    return "review", f"labctl review {name} --list, or --page in a browser"


def _pages() -> None:
    """Raises MissingExtra where no page can be served."""
    try:
        import_module("labctl.pages.server")
    except ModuleNotFoundError as error:
        raise MissingExtra("web", "the review in a browser") from error


def _serve(routes: Callable[[], Routes], port: int | None) -> None:
    """A page of an assessor until Ctrl-C; ENTER prints an address for another browser."""
    _pages()
    from labctl.pages.server import Site, served

    site = Site(routes())
    with served(site, port or 0):
        click.echo(f"open {site.invite()}")
        click.echo("it opens once, and whoever opens it reviews as you; ENTER prints another, Ctrl-C ends the page")
        try:
            while sys.stdin.readline():
                click.echo(f"open {site.invite()}")
            threading.Event().wait()  # nobody types here
        except KeyboardInterrupt:
            click.echo("the page is closed; what was recorded is in the journal")


def _print(name: str, items: list[Item], as_json: bool, finished: str) -> None:
    from labctl.core.reviewed import seen

    if as_json:
        episodes = [
            {
                "episode": item.trial.episode,
                "trial": item.trial.id,
                "condition": item.trial.condition,
                "reviewed": item.reviewed is not None,
                "differences": item.differences,
                "candidates": [{**one, "seen": seen(one)} for one in item.candidates],
            }
            for item in items
        ]
        found = {"schema": "labctl.review/1", "campaign": name, "episodes": episodes}
        print_json({**found, **({"finished": finished} if finished else {})})
        return
    rows = [
        (
            item.trial.episode or "",
            item.trial.condition,
            "to do" if item.reviewed is None else "to do again" if item.reopened else "reviewed",
            "; ".join(item.differences) or "all agree",
        )
        for item in items
    ]
    print_table(("episode", "condition", "review", "differences"), rows)
