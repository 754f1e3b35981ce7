"""What a manifest may list lies in the folder, and of records only the one campaign's that it names."""

from __future__ import annotations

import pytest

from labctl.errors import BrokenRecord
from labctl.publishing.guard import _check_name


def test_a_campaign_whose_name_begins_alike_is_another_one() -> None:
    _check_name("campaigns/first/journal.db", "first")
    with pytest.raises(BrokenRecord, match="campaigns/first"):
        _check_name("campaigns/first-again/journal.db", "first")
