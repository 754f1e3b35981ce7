"""[[condition.inputs]]: declared edits of what a policy sees, the same for every arm; a person's view is never edited.

May not: open files, or touch a picture (`labctl.nodes.edited_pictures` does).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from labctl.config.cell_schema import Cell, refuse_repeats, refuse_unknown
from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import FileName, Lax
from labctl.plain import Json
from labctl.streams import SEEN

EditName = Literal["recolour", "blur", "brightness", "contrast", "occlude", "drop", "latency"]


@dataclass(frozen=True, slots=True)
class Number:
    """The one number of an edit: its key, and between which values it lies, both left out."""

    key: str
    above: float
    below: float


NUMBERS: dict[EditName, Number] = {
    "recolour": Number("hue_deg", 0, 360),
    "blur": Number("sigma_px", 0, 100),
    "brightness": Number("add", -1, 1),
    "contrast": Number("factor", 0, 10),
    "occlude": Number("share", 0, 1),
    "drop": Number("share", 0, 1),
    "latency": Number("delay_s", 0, 2),
}
"""add and share: of the full range, and of a picture's area or of the frames."""
OF_ALL = "latency"  # of the edits the one that is of everything that a policy sees, the robot's state too


class Edit(Table):
    """[[condition.inputs]]: one edit, in the order in which they are made. cameras: whose pictures, all without. Each
    edit has one number, under the key that `NUMBERS` names.
    """

    edit: EditName
    cameras: Annotated[tuple[FileName, ...], Lax] = ()
    hue_deg: float | None = None
    sigma_px: float | None = None
    add: float | None = None
    factor: float | None = None
    share: float | None = None
    delay_s: float | None = None

    def entry(self) -> dict[str, Json]:
        """As a campaign's first entry has it: edit, cameras (none: all of them), amount. Needs `check_edits`."""
        amount = float(getattr(self, NUMBERS[self.edit].key))
        return {"edit": self.edit, "cameras": list(self.cameras), "amount": amount}


Edits = Annotated[tuple[Edit, ...], Lax, Field(max_length=9)]


def check_edits(found: Document, at: Location, edits: Sequence[Edit]) -> None:
    """Raises InputError at the first edit without its number, with another's, out of range, or of a kind twice."""
    for index, one in enumerate(edits):
        here, own = (*at, index), NUMBERS[one.edit]
        for key in dict.fromkeys(number.key for number in NUMBERS.values()):
            if key != own.key and getattr(one, key) is not None:
                raise found.refusal((*here, key), f"{key} is not of {one.edit!r}; that one has {own.key}, take it out")
        value = getattr(one, own.key)
        if value is None:
            raise found.refusal((*here, "edit"), f"{one.edit!r} has no {own.key}; say how much of it")
        if not own.above < value < own.below or (one.edit == "brightness" and not value):
            allowed = f"more than {own.above:g} and less than {own.below:g}"
            allowed += ", and not 0" if one.edit == "brightness" else ""
            raise found.refusal((*here, own.key), f"{own.key} of {one.edit!r} is {value:g}; allowed: {allowed}")
        refuse_repeats(found, (*here, "cameras"), one.cameras)
        for other in edits[:index]:
            if other.edit == one.edit and (not one.cameras or not other.cameras or {*one.cameras} & {*other.cameras}):
                raise found.refusal((*here, "edit"), f"{one.edit!r} twice of the same pictures; say it once")
        if one.edit == OF_ALL and one.cameras:
            message = f"{OF_ALL!r} is of all that a policy sees, the robot's state too; take the cameras out"
            raise found.refusal((*here, "cameras"), message)


def check_cameras(found: Document, placed: Iterable[tuple[Location, Sequence[Edit]]], cell: Cell, where: str) -> None:
    """Raises InputError for an edit of pictures that this cell does not have. placed: the edits of each condition, with
    the table that says them; where: the protocol's file.
    """
    names = [camera.name for camera in cell.camera]
    for at, edits in placed:
        for index, one in enumerate(edits):
            here = (*at, "inputs", index)
            refuse_unknown(
                found, (*here, "cameras"), "camera", one.cameras, f"cell {cell.cell.name!r} has", names, where
            )
            if one.edit != OF_ALL and not names:
                message = f"{one.edit!r} is of pictures, and cell {cell.cell.name!r} has no camera"
                raise found.refusal((*here, "edit"), f"{message}; give it one, or take the edit out", where)
        if edits and (taken := [name for name in names if name.endswith(SEEN)]):
            message = f"the name of camera {taken[0]!r} is that of pictures as a policy got them"
            raise found.refusal((*at, "inputs"), f"{message}; give it one that does not end in {SEEN!r}", where)
