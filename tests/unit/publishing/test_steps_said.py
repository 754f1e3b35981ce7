"""What a report, a publication and a site say while they work: nothing is called verified before it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from labctl.errors import LabctlError
from labctl.publishing.publish import Request, publish
from labctl.publishing.site import make_site
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.cells.report import report_cells

Say = Callable[[str], None]
BEGUN: dict[str, tuple[Callable[[Sequence[Path], Path, Say], object], list[str]]] = {
    "a report": (
        lambda broken, out, say: report_campaign(broken[0], out, say=say),
        ["1/4 verifying the record"],
    ),
    "a report of one cell": (
        lambda broken, out, say: report_cells(broken[:1], out, say=say),
        ["1/4 verifying 1 record"],
    ),
    "a report of two cells": (
        lambda broken, out, say: report_cells(broken, out, say=say),
        ["1/4 verifying 2 records"],
    ),
    "a publication": (
        lambda broken, out, say: publish(broken[0], out, Request("CC0-1.0"), say),
        ["1/5 verifying the record"],
    ),
    "a site": (
        lambda broken, out, say: make_site(broken[:1], out, say=say),
        ["1/3 one: verifying it and making its report anew"],
    ),
}


@pytest.mark.parametrize("what", BEGUN)
def test_a_record_that_does_not_hold_was_not_called_verified(what: str, tmp_path: Path) -> None:
    broken, said = [tmp_path / "one", tmp_path / "two"], list[str]()
    for folder in broken:
        folder.mkdir()
    make, begun = BEGUN[what]
    with pytest.raises(LabctlError):
        make(broken, tmp_path / "out", said.append)
    assert said == begun
