"""One S3 server for the tests of a module, and a cache of each test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.media.ceph import SECRET, Ceph, cluster

from labctl.store.media import reading


@pytest.fixture(scope="module")
def ceph() -> Iterator[Ceph]:
    """A server with the user "lab"; stopped when the module is done."""
    with cluster() as found:
        yield found


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where fetched videos are kept, and what keys are found: none of this machine's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reading, "_away", {})
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-configuration"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "lab")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return tmp_path / "cache" / "labctl" / "media"
