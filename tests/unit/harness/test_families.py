"""What a quick run is made of, as it was collected here."""

from __future__ import annotations

from collections import Counter

import pytest

MOST = 200


def test_no_quick_test_has_hundreds_of_cases(request: pytest.FixtureRequest) -> None:
    """Each case is collected by four workers, reported and put away: some 10 ms beside what it asks. One test that goes
    through them and names what it finds asks the same.
    """
    quick = (item.nodeid for item in request.session.items if item.get_closest_marker("thorough") is None)
    cases = Counter(nodeid.partition("[")[0] for nodeid in quick)
    assert {name: count for name, count in cases.items() if count > MOST} == {}
