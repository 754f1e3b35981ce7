"""`labctl site` as a use case: a static site of several published campaigns, for any plain file host or from a disk.

May not: ask anybody for anything when it is read (its pages say so to the browser), or copy a page that a publisher
made: every report is made anew from a record that was verified.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.errors import InputError
from labctl.pages.episodes import page_files
from labctl.publishing.cells.on_site import APART, JointShown, joint_shown
from labctl.publishing.cells.seal_record import is_seal_record
from labctl.publishing.feed import feed
from labctl.publishing.leaderboard import Boards, boards_of
from labctl.publishing.rerun_views import Views, write_views
from labctl.publishing.shown import Shown, shown
from labctl.store.atomic_files import file_errors, folder_in_one_step, replace_file

INDEX, RUNS, VIDEOS, REPORTS, FEED = "index.html", "runs.html", "videos", "reports", "feed.xml"
MARK = "labctl-site.json"  # in the root of a site: that it may be replaced
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Site:
    """A site that was made. campaigns: each published one, parts of joint ones too; joint: those in several cells;
    views: Rerun's, None where none were asked for.
    """

    index: Path
    campaigns: Sequence[Shown]
    joint: Sequence[JointShown]
    boards: Boards
    episodes: int
    views: Views | None = None

    @property
    def names(self) -> list[str]:
        """Of its campaigns, a joint one once."""
        return [one.name for one in (*alone(self.campaigns), *self.joint)]


def alone(campaigns: Sequence[Shown]) -> list[Shown]:
    """Those that are no part of a joint one."""
    return [one for one in campaigns if "joint" not in one.record.state.opened]


def make_site(
    folders: Sequence[Path],
    out: Path,
    *,
    title: str = "Published campaigns",
    address: str = "",
    force: bool = False,
    rerun: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> Site:
    """Write a site of these published folders into `out`, whole or not at all. address: where it will be read, for the
    feed's links; rerun: bytes that recordings for Rerun's viewer may take, 0 for none; say: called with each step
    ("2/5 …") as it begins, of a joint report and of each recording with the step that it is of.

    Raises BrokenRecord for a folder that does not hold, MissingExtra where Rerun is asked for and not there,
    InputError, StorageError.
    """
    _check_out(out, force=force)
    with folder_in_one_step(out, replacing=True) as building:
        (building / REPORTS).mkdir()
        seals = [folder for folder in folders if is_seal_record(folder)]
        records = [folder for folder in folders if folder not in seals]
        together = len(records) + 1  # the step that holds campaigns together; after it come Rerun's and the pages'
        steps = together + (rerun > 0) + 1
        made: dict[Path, Shown] = {}
        for number, folder in enumerate(records, 1):
            say(f"{number}/{steps} {folder.name}: verifying it and making its report anew")
            made[folder] = shown(folder, building / REPORTS, lambda line: None)
        _refuse_copies(made)
        campaigns = sorted(made.values(), key=lambda one: (one.manifest.frozen, one.name))
        say(f"{together}/{steps} holding together what is linked, or of one joint campaign")
        joint = joint_shown(made, seals, building / REPORTS, lambda line: say(f"{together}/{steps} {line}"))
        boards = boards_of(alone(campaigns))
        boards.apart |= {one.name: APART for one in joint}
        _write(building / INDEX, _index(title, alone(campaigns), joint, boards).encode())
        views = None
        if rerun:
            views = write_views(campaigns, building, title, rerun, lambda line: say(f"{together + 1}/{steps} {line}"))
        say(f"{steps}/{steps} writing pages")
        pages = page_files(
            [one.folder for one in campaigns],
            RUNS,
            VIDEOS,
            building,
            sure=True,
            without={one.folder: one.unseen for one in campaigns},
            cameras=1,
            explore=True,
            up=(INDEX, title),
            views=views.links if views else {},
            put=lambda name, data: _write(building / name, data),
        )
        for name, data in pages.items():
            _write(building / name, data)
        _write(building / FEED, feed(title, address, alone(campaigns), joint).encode())
        _write(building / MARK, b'{"schema": "labctl.site/1"}\n')
        episodes = sum(len(one.record.scored) for one in campaigns)
    return Site(out / INDEX, campaigns, joint, boards, episodes, views)


def _refuse_copies(made: Mapping[Path, Shown]) -> None:
    """Raises InputError for one campaign in two folders: a commitment is over 32 secret bytes, and never twice."""
    first: dict[str, Path] = {}
    for folder, one in made.items():
        other = first.setdefault(one.manifest.commitment, folder)
        if other is not folder:
            names = f"{made[other].name} and {one.name}"
            raise InputError(
                f"{other} and {folder} are one campaign under two names, {names}: they have the same commitment; "
                "leave the copy out"
            )


def _index(title: str, campaigns: Sequence[Shown], joint: Sequence[JointShown], boards: Boards) -> str:
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    texts = {name: _text(name) for name in ("site.html.j2", "site.css")}
    environment = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["ratio"] = _ratio
    return environment.get_template("site.html.j2").render(
        title=title,
        policy=Markup(POLICY),
        css=Markup(texts["site.css"]),
        boards=boards.boards,
        apart=boards.apart,
        campaigns=campaigns,
        joint=joint,
        reports=REPORTS,
        runs=RUNS,
        feed=FEED,
    )


def _ratio(value: float | None) -> str:
    return "not estimated" if value is None else f"{value:.2f}"


def _text(name: str) -> str:
    return importlib.resources.files("labctl.publishing").joinpath("templates", name).read_text("utf-8")


def _write(path: Path, data: bytes) -> None:
    with file_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data, durable=False)


def _check_out(out: Path, *, force: bool) -> None:
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir() or (any(out.iterdir()) and not (out / MARK).is_file()):
        raise InputError(f"--out {out} is there and is no site of labctl's; choose another place")
    if any(out.iterdir()) and not force:
        raise InputError(f"--out {out} is there already; choose another place, or replace it with --force")
