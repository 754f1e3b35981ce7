"""The rows of a page of episodes, of one campaign or of several, and the page that they make.

May not: read a record, or show what is by arm or outcome of a campaign that is masked.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from labctl.messages.joint import JointPart

Value = str | int | float | None
# label, and whether it is a number: the columns of a page, in order; those that no campaign fills are left out
COLUMNS: Mapping[str, tuple[str, bool]] = {
    "campaign": ("Campaign", False),
    "cell": ("Cell", False),
    "block": ("Block", True),
    "arm": ("Arm", False),
    "condition": ("Condition", False),
    "object": ("Object", False),
    "axis": ("Axis", False),
    "outcome": ("Outcome", False),
    "moved": ("Moved", True),
    "lost": ("Lost", True),
    "duration_s": ("Seconds", True),
    "state": ("State", False),
    "ended": ("Ended by", False),
    "void": ("Void", False),
    "reviewed": ("Reviewed", False),
    "gaps": ("Gaps", True),
    "episode": ("Episode", False),
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table that is shown as it is given, text by text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeVideo:
    """A video of a row: its source as the page names it, and the time in it at which go was, s; below 0 where its
    first picture is of later than go.
    """

    camera: str
    source: str
    go_s: float


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode. seen: what a blind role may know of it; told: what is by arm or outcome, nothing where it is masked;
    why: there is no video, where more than that is said.
    """

    seen: Mapping[str, Value]
    told: Mapping[str, Value]
    films: Sequence[EpisodeVideo]
    why: str = ""


@dataclass(slots=True)
class ShownCampaign:
    """What a page shows of one campaign. part: which one it is of a joint campaign, None for a campaign by itself."""

    name: str
    masked: bool
    part: JointPart | None = None
    notes: list[str] = field(default_factory=list)
    rows: list[EpisodeRow] = field(default_factory=list)

    def note(self, line: str) -> None:
        """Say it once."""
        if line not in self.notes:
            self.notes.append(line)

    def place(self) -> str:
        """Where the videos of a cell lie below those of a page that has several."""
        if self.part is None:
            return ""
        further = f"{self.part['part']}/" if self.part["part"] > 1 else ""
        return f"{self.part['cell']}/{further}"


def mask_together(shown: Sequence[ShownCampaign]) -> None:
    """Where blocks of a joint campaign went from one cell to another, and one of its parts is masked, all are: arms are
    drawn for each cell by itself, and a block that was given away is one of the cell that it was drawn for.
    """
    parts = [(one, one.part) for one in shown if one.part is not None]
    for commitment in {part["commitment"] for _, part in parts}:
        own = [(one, part) for one, part in parts if part["commitment"] == commitment]
        if any(one.masked for one, _ in own) and any(part["part"] > 1 for _, part in own):
            for one, _ in own:
                one.masked = True


def cells_away(shown: Sequence[ShownCampaign]) -> list[str]:
    """A line for each cell of a joint campaign that the page has nothing of."""
    parts = [one.part for one in shown if one.part is not None]
    there = {(part["commitment"], part["cell"]) for part in parts}
    every = {(part["commitment"], cell): part["name"] for part in parts for cell in part["cells"]}
    return [
        f"cell {key[1]} of {name} is not on this page: its folder was not given"
        for key, name in every.items()
        if key not in there
    ]


def render(
    campaigns: Sequence[ShownCampaign], notes: Sequence[str], beside: Sequence[Grid], up: tuple[str, str] | None = None
) -> bytes:
    """The page: one file but for its videos, which plays without a server and asks nobody for anything; one of a site
    (up: its index, and what that is called) asks its own host for its videos.
    """
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    texts = {name: _text(name) for name in ("episodes.html.j2", "episodes.css", "episodes.js")}
    rows = [({**row.seen, **({} if one.masked else row.told)}, row) for one in campaigns for row in one.rows]
    several = not _by_cell(campaigns)
    filled = {key for cells, _ in rows for key, value in cells.items() if value is not None}
    known = {key: _choices(rows, key) for key in COLUMNS if key in filled and (several or key != "campaign")}
    same = {key: options[0] for key, options in known.items() if len(rows) > 1 and _everywhere(rows, key)}
    columns = {key: COLUMNS[key] for key in known if key not in same}
    told = [f"{COLUMNS[key][0].lower()} {text}" for key, text in same.items()]
    if unseen := _unseen(rows):
        told.append(f"no video: {unseen}")
    environment = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = texts["episodes.js"] + (_text("hosted.js") if up else "")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    masked, names = [one.name for one in campaigns if one.masked], _names(campaigns)
    return (
        environment.get_template("episodes.html.j2")
        .render(
            title=f"{len(names)} campaigns" if up and len(names) > 1 else " · ".join(names),
            columns=columns,
            rows=[([_cell(cells.get(key)) for key in columns], cells, row) for cells, row in rows],
            choices={key: known[key] for key, (_, number) in columns.items() if not number and key != "episode"},
            same=" · ".join(told),
            unseen=unseen,
            masked=masked,
            of_masked="" if len(masked) == len(campaigns) else f" of {'it' if len(masked) == 1 else 'them'}",
            notes=[*notes, *(note for one in campaigns for note in one.notes)],
            beside=beside,
            up=up,
            seen=any(cells.get("view") for cells, _ in rows),
            css=Markup(texts["episodes.css"]),
            script=Markup(script),
            digest=digest,
        )
        .encode()
    )


def _by_cell(campaigns: Sequence[ShownCampaign]) -> bool:
    """Whether there is no telling campaigns apart but by their cells: one by itself, or parts of one joint campaign."""
    parts = [one.part for one in campaigns if one.part is not None]
    cells = {part["cell"] for part in parts}
    one_joint = len(parts) == len(campaigns) and len({part["commitment"] for part in parts}) == 1
    return len(campaigns) == 1 or (one_joint and len(cells) == len(parts))


def _names(campaigns: Sequence[ShownCampaign]) -> list[str]:
    """Of the campaigns, each once; parts of a joint one that has several here go by its name."""
    parts = Counter(one.part["commitment"] for one in campaigns if one.part is not None)
    joint = {one.name: one.part["name"] for one in campaigns if one.part and parts[one.part["commitment"]] > 1}
    return list(dict.fromkeys(joint.get(one.name, one.name) for one in campaigns))


def _choices(rows: Sequence[tuple[Mapping[str, Value], EpisodeRow]], key: str) -> list[str]:
    return sorted({_cell(cells.get(key))[0] for cells, _ in rows} - {""})


def _everywhere(rows: Sequence[tuple[Mapping[str, Value], EpisodeRow]], key: str) -> bool:
    """Whether a column says the same in every row, so that one line says it."""
    return len({_cell(cells.get(key)) for cells, _ in rows}) == 1


def _unseen(rows: Sequence[tuple[Mapping[str, Value], EpisodeRow]]) -> str:
    """Why no row of several has a video, where that is the same in all of them; "" otherwise."""
    why = {"" if row.films else row.why for _, row in rows}
    return why.pop() if len(rows) > 1 and len(why) == 1 else ""


def _cell(value: Value) -> tuple[str, str]:
    """What stands in a cell, and what it is sorted by."""
    if value is None:
        return "", ""
    return (f"{value:.1f}" if isinstance(value, float) else str(value)), str(value)


def _text(name: str) -> str:
    return importlib.resources.files("labctl.pages").joinpath("templates", name).read_text("utf-8")
