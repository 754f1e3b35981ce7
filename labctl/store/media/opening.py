"""Which media store lab.toml names.

May not: be imported by a run process, or import what speaks to a server before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labctl.store.media.places import MediaStore

if TYPE_CHECKING:
    from labctl.config.media import MediaTable


def open_store(table: MediaTable) -> MediaStore:
    """The store that lab.toml names. Raises StorageError when it is away or refuses, MissingExtra."""
    from labctl.config.media import FOLDER

    if table.url.startswith(FOLDER):
        from labctl.store.media.folder_store import FolderStore

        return FolderStore(table)
    from labctl.store.media.s3_store import S3Store

    return S3Store(table)
