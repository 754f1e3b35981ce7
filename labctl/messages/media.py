"""The bodies of the two journal entries on a campaign's media, as typed forms.

May not: write or check anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict


class StoredFile(TypedDict):
    """A file in a media store, where it is called by its digest. version: the store's own id of this copy; until: to
    when the store refuses to delete it (ISO 8601), where it was asked to.
    """

    file: str
    sha256: str
    bytes: int
    version: NotRequired[str]
    until: NotRequired[str]


class MediaStored(TypedDict):
    """Files of which a media store holds a verified copy. place: the store, as lab.toml names it; checked: the bytes
    were read back, or the store's own checksum was compared.
    """

    place: str
    checked: Literal["read_back", "server_checksum"]
    files: Sequence[StoredFile]


class TrimmedFile(TypedDict):
    """A file that is no longer in the campaign's folder; its copy is where the entry says."""

    file: str
    sha256: str
    bytes: int
    version: NotRequired[str]


class MediaTrimmed(TypedDict):
    """Local copies that are removed, each after its copy in the store was verified once more. rule: why, in words."""

    place: str
    rule: str
    files: Sequence[TrimmedFile]
