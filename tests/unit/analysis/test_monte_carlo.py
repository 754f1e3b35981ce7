"""How many replicates a table gets where nobody says."""

from __future__ import annotations

from labctl.analysis.monte_carlo import replicates_for


def test_large_tables_get_fewer_replicates_but_never_too_few_for_a_level() -> None:
    assert [replicates_for(n) for n in (1, 4731, 20_000)] == [9999] * 3
    assert replicates_for(100_000) == 1999
    assert [replicates_for(n) for n in (1_000_000, 10**9)] == [499] * 2
