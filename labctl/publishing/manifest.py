"""The manifest of a published folder (published.json, schema labctl.published/1): every file with its size and digest,
what is withheld, with which versions the report was made.

May not: believe what it reads. A manifest is anybody's text until `guard` has held the folder against it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from labctl.errors import BrokenRecord, InputError
from labctl.plain import Json
from labctl.store.atomic_files import file_errors
from labctl.store.database_backend import PUBLISHED
from labctl.store.verifying.withheld import Withheld

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SCHEMA = "labctl.published/1"
LARGEST = 32 << 20  # bytes of a manifest: some 200,000 files
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_DRAWS = 1_000_000  # of a published report, which whoever reads it makes again
What = Literal["video", "depth", "side file", "photo", "samples"]


@dataclass(frozen=True, slots=True)
class FileListed:
    """A file: its size in bytes and sha256 of its bytes."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something withheld. file: its path in the campaign's folder, "" of samples; salted: sha256 hex over 32 bytes that
    the lab keeps followed by the file's bytes, of samples by the canonical JSON of their streams' roots.
    """

    what: What
    episode: str
    file: str
    why: str
    salted: str


@dataclass(frozen=True, slots=True)
class ReportMade:
    """With what the report in report/ was made; labels: the stream that says when items were moved; withheld traces and
    pictures are left out of it.
    """

    boot: Annotated[int, Field(ge=1, le=MOST_DRAWS)]
    perm: Annotated[int, Field(ge=1, le=MOST_DRAWS)]
    seed: Annotated[int, Field(ge=0)]
    labels: str
    timezone: str


@dataclass(frozen=True, slots=True)
class Licence:
    """SPDX identifier, or "other" for the text that LICENSE.txt has alone; url: "" where there is none."""

    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Common:
    """What a manifest of any form holds beside its files. head, commitment: of the chain and of the schedule; frozen:
    wall time of freezing, of a joint campaign of unblinding, ISO 8601, UTC; versions: package -> version, of what the
    report's bytes depend on.
    """

    schema: str
    campaign: str
    title: str
    kind: str
    head: str
    commitment: str
    frozen: str
    licence: Licence
    creator: str
    versions: dict[str, str]
    report: ReportMade


@dataclass(frozen=True, slots=True)
class Manifest(Common):
    """Of a campaign. dataset: by which name results refer to it, such as its address; stated: rows of provenance on the
    lab's word.
    """

    schema: Literal["labctl.published/1"]
    dataset: str
    stated: dict[str, dict[str, str]]
    withheld: list[LeftOut]
    files: dict[str, FileListed]


_FORM: TypeAdapter[Manifest] = TypeAdapter(Manifest)
Form = TypeVar("Form", bound=Common)


def manifest_bytes(manifest: DataclassInstance) -> bytes:
    """The same manifest, the same bytes; rows that stand in an order keep it."""
    return json.dumps(asdict(manifest), indent=1, ensure_ascii=False).encode() + b"\n"


def is_published(folder: Path) -> bool:
    """Whether a folder has a manifest; nothing of it is read."""
    return (folder / PUBLISHED).is_file()


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of a published folder and sha256 hex of its bytes. Raises InputError when the folder has none,
    BrokenRecord for one that is none.
    """
    return read_form(folder, _FORM)


def read_form(folder: Path, form: TypeAdapter[Form]) -> tuple[Form, str]:
    """A manifest of this form, as `read_manifest` reads one of a campaign."""
    path = folder / PUBLISHED
    if path.is_symlink():
        raise BrokenRecord(f"{path} is a link; a manifest is a file of the folder itself")
    if not path.is_file():
        raise InputError(
            f"{folder} is no published folder: it has no {PUBLISHED}, which is written last; one whose publishing was "
            "broken off is made again by: labctl publish"
        )
    with file_errors(str(path)):
        if path.stat().st_size > LARGEST:
            raise BrokenRecord(f"{path}: {path.stat().st_size} bytes; a manifest has {LARGEST} at most")
        data = path.read_bytes()
    try:
        found = form.validate_python(plain_json(data))
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(f"{path}: no manifest of labctl: {_first(error)}") from None
    if PLAIN_NAME.fullmatch(found.campaign) is None:
        raise BrokenRecord(f"{path}: {found.campaign[:100]!r} is no name of a campaign")
    return found, hashlib.sha256(data).hexdigest()


def plain_json(data: bytes) -> Json:
    """A document in which each key stands once. Raises ValueError, RecursionError."""

    def once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("a key stands in it twice")
        return made

    return json.loads(data.decode("utf-8"), object_pairs_hook=once)


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        one = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, one['loc']))[:200]}: {one['msg']}"
    return "its brackets are too deep" if isinstance(error, RecursionError) else str(error)[:200]


def withheld_of(entries: Sequence[LeftOut]) -> Withheld:
    """What `verify_campaign` leaves out."""
    files = frozenset(entry.file for entry in entries if entry.file)
    return Withheld(files, frozenset(entry.episode for entry in entries if entry.what == "samples"))


def by_episode(entries: Sequence[LeftOut]) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Why the samples, and why the videos, of episodes are withheld."""
    samples = {entry.episode: entry.why for entry in entries if entry.what == "samples"}
    videos = {entry.episode: entry.why for entry in entries if entry.what in ("video", "depth")}
    return samples, videos
