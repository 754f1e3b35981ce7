"""What the bytes of a report depend on is named, the processor too."""

from __future__ import annotations

import contextlib
import io

import numpy as np

from labctl.publishing.versions import differences, versions


def test_what_numpy_uses_of_the_processor_is_among_the_versions() -> None:
    # measured: without X86_V4, as on a processor without it, np.log of 100,000 numbers has other bytes
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        np.show_runtime()
    here = versions()["cpu"]
    found = said.getvalue().partition("'found': [")[2].partition("]")[0]
    assert here.split() == [name.strip(" '\n") for name in found.split(",") if name.strip()]


def test_another_processor_is_another_version() -> None:
    there = {**versions(), "cpu": "X86_V2"}
    assert differences(there, versions()) == [f"cpu X86_V2 then, {versions()['cpu'] or 'none'} here"]
