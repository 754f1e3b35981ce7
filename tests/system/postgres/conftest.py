"""One server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.machine.postgres import PASSWORD, Postgres, cluster, set_up


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A set-up database with the logins cell1, cell2 and viewer; stopped when the module is done."""
    with cluster() as found:
        found.start()
        set_up(found)
        yield found


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libpq finds it; every login of these tests has the same."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
