"""Rerun recordings of a site's episodes and the page that shows them in a browser.

May not: take a recording that a publisher drew, or let the page speak to another host than its
own: the viewer, left to itself, reports its usage and asks for its newest version.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from urllib.parse import quote

from labctl.publishing.drawing import RECORDINGS, draw
from labctl.publishing.manifest import withheld_of
from labctl.publishing.shown import Shown
from labctl.store.atomic_files import file_errors, replace_file
from labctl.ui.rerun.viewer_files import NOTICES, PACKED, PROGRAM, version, viewer_files

PAGE, VIEWER = "rerun.html", "viewer"
MOST_BYTES = 500_000_000  # of all recordings of a site, unless another limit is given


@dataclass(frozen=True, slots=True)
class Views:
    """What was drawn. links: (campaign, episode) -> address below the site; left: how many episodes have none since
    `MOST_BYTES`, or the limit given, was reached.
    """

    links: dict[tuple[str, str], str]
    size: int
    left: int


def write_views(
    campaigns: Sequence[Shown], site: Path, title: str, most: int, say: Callable[[str], None] = lambda line: None
) -> Views:
    """Fill a site's folder with recordings, the viewer and its page. Campaigns take turns, so that each has some where
    not all fit into `most` bytes. say: called with each recording as it begins.

    Raises MissingExtra without rerun-sdk, LabctlError, StorageError.
    """
    version()
    links: dict[tuple[str, str], str] = {}
    waiting, size, left = list(_in_turn(campaigns)), 0, 0
    for number, (one, episode) in enumerate(waiting, 1):
        say(f"{one.name}: drawing {episode} for Rerun ({number} of {len(waiting)})")
        path = site / RECORDINGS / one.name / f"{episode}.rrd"
        made = draw(one.folder, episode, withheld_of(one.manifest.withheld), path)
        if size + made > most:
            path.unlink()
            left = len(waiting) - number + 1
            break
        size += made
        links[one.name, episode] = f"{PAGE}?of={quote(one.name)}/{quote(episode)}"
    if links:
        with file_errors(str(site / VIEWER)):
            (site / VIEWER).mkdir()
        files = viewer_files()
        for name, data in files.items():
            replace_file(site / VIEWER / name, data, durable=False)
        replace_file(site / PAGE, page(title, files[PROGRAM]), durable=False)
    return Views(links, size, left)


def _in_turn(campaigns: Sequence[Shown]) -> Iterator[tuple[Shown, str]]:
    """The first episode of each campaign whose samples are there, then the second of each."""
    of_each = [
        [(one, episode) for episode in one.sealed if episode not in withheld_of(one.manifest.withheld).traces]
        for one in campaigns
    ]
    for row in zip_longest(*of_each):
        yield from (entry for entry in row if entry is not None)


def page(title: str, program: bytes) -> bytes:
    """The page of the viewer, with a rule (Content-Security-Policy) that lets it load from and speak to its own place
    alone.
    """
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    names = ("rerun.html.j2", "site.css", "rerun.css", "rerun.js")
    at = importlib.resources.files("labctl.publishing").joinpath("templates")
    texts = {name: at.joinpath(name).read_text("utf-8") for name in names}
    script = texts["rerun.js"].replace("@CODE@", f"{VIEWER}/{PACKED}").replace("@RECORDINGS@", RECORDINGS)
    environment = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return (
        environment.get_template("rerun.html.j2")
        .render(
            title=title,
            rule=Markup(_rule(script)),
            css=Markup(texts["site.css"] + texts["rerun.css"]),
            script=Markup(script),
            program=f"{VIEWER}/{PROGRAM}",
            notices=f"{VIEWER}/{NOTICES}",
            version=version(),
            digest=base64.b64encode(hashlib.sha384(program).digest()).decode(),
        )
        .encode()
    )


def _rule(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; script-src 'self' 'sha256-{digest}' "
        "'wasm-unsafe-eval'; connect-src 'self' data: blob:; img-src 'self' data: blob:; media-src 'self' blob:; "
        "worker-src 'self' blob:; style-src 'unsafe-inline'"
    )
