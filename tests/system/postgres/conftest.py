"""One server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.machine.postgres import PASSWORD, Postgres, set_up


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A set-up database with the logins cell1, cell2 and viewer; stopped when the module is done."""
    found = Postgres(tmp_path_factory.mktemp("server"))
    found.make()
    found.start()
    try:
        set_up(found)
        yield found
    finally:
        found.stop()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where libpq finds it; every login of these tests has the same."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
