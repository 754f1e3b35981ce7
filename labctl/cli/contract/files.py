"""The kinds of TOML file of a lab whose schema can be printed: those of `labctl.config`, and the two of a shared rig.

May not: state anything of a key by itself; the types that check the files do.
"""

from __future__ import annotations

from collections.abc import Mapping

from labctl.config import reference
from labctl.config.reference import Schema
from labctl.config.toml_text import Document
from labctl.queue.lab_files import Keys, Shifts

FILES: Mapping[str, type[Document]] = {**reference.FILES, "queue-keys": Keys, "shifts": Shifts}


def schema_of_file(kind: str) -> Schema:
    """The JSON Schema (draft 2020-12) of a kind of file, one of FILES."""
    return reference.schema_of(kind, FILES[kind])


def schema_text(kind: str) -> str:
    """The same as the text of a file."""
    return reference.text_of(schema_of_file(kind))
