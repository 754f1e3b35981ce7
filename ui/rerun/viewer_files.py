"""The web viewer's own program and licences out of the installed rerun-sdk, to lie beside a static page.

May not: import rerun, fetch anything from elsewhere, or hand out the viewer's own page, which asks other hosts.
"""

from __future__ import annotations

import gzip
import http.client
import importlib.metadata
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from labctl.errors import LabctlError, MissingExtra
from labctl.ui.rerun import viewer_process
from labctl.ui.rerun.viewer_page import LOOPBACK, PATIENCE_S

PROGRAM, CODE = "re_viewer.js", "re_viewer_bg.wasm"
PACKED = f"{CODE}.gz"
"""The code of the viewer, a third of its size; a page unpacks it."""
NOTICES = "THIRD_PARTY_NOTICES.md"


def viewer_files() -> Mapping[str, bytes]:
    """Name -> bytes: PROGRAM, PACKED and the licences under which they may be handed on. The same package gives the
    same bytes.

    The viewer hands them out itself, on loopback, for the moment that this takes. Raises MissingExtra without
    rerun-sdk, LabctlError where it does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="labctl-viewer-") as name, viewer_process.program(Path(name)) as port:
        found = {one: _asked(port, one) for one in (PROGRAM, CODE)}
    return {PROGRAM: found[PROGRAM], PACKED: gzip.compress(found[CODE], 9, mtime=0), **dict(_licences())}


def version() -> str:
    """Of the viewer. Raises MissingExtra without rerun-sdk."""
    try:
        return importlib.metadata.version("rerun-sdk")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtra("rerun", "looking at an episode") from error


def _asked(port: int, name: str) -> bytes:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", f"/{name}")
        answer = connection.getresponse()
        data = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise LabctlError(f"the web viewer did not hand out its {name}: {error}") from error
    finally:
        connection.close()
    if answer.status != 200 or not data:
        raise LabctlError(f"the web viewer did not hand out its {name}: status {answer.status}, {len(data)} bytes")
    return data


def _licences() -> Iterator[tuple[str, bytes]]:
    with suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("rerun-sdk") or ():
            if file.name.startswith("LICENSE"):
                yield file.name, Path(str(file.locate())).read_bytes()
    beside = viewer_process.binary().with_name(NOTICES)
    if beside.is_file():
        yield NOTICES, beside.read_bytes()
