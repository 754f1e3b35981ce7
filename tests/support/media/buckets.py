"""Buckets on a test's S3 server, asked without labctl's own code.

May not: stand for what labctl asks.
"""

from __future__ import annotations

import hashlib
from itertools import count
from pathlib import Path
from typing import Any

from labctl.config.media import MediaTable
from support.media.ceph import REGION, SECRET, Ceph

_NUMBERS = count(1)


class Bucket:
    """A new bucket of the user "lab"."""

    def __init__(self, ceph: Ceph, *, lock: bool = False, versions: bool = False) -> None:
        import s3fs

        self.name, self.ceph = f"videos-{next(_NUMBERS)}", ceph
        settings = {"request_checksum_calculation": "when_required"}
        self._fs = s3fs.S3FileSystem(key="lab", secret=SECRET, endpoint_url=ceph.endpoint, skip_instance_cache=True,
                                     client_kwargs={"region_name": REGION}, config_kwargs=settings)  # fmt: skip
        self._fs.call_s3("create_bucket", Bucket=self.name, **({"ObjectLockEnabledForBucket": True} if lock else {}))
        if versions:
            self.ask("put_bucket_versioning", VersioningConfiguration={"Status": "Enabled"})

    def ask(self, verb: str, **given: Any) -> Any:
        """What the server says to a call of S3's own, about this bucket."""
        return self._fs.call_s3(verb, Bucket=self.name, **given)

    def table(self, **more: Any) -> MediaTable:
        """The [media] that names it."""
        given = {"endpoint": self.ceph.endpoint, "region": REGION, "timeout_s": 20.0, **more}
        return MediaTable(url=f"s3://{self.name}/lab", **given)

    def lines(self, **more: Any) -> list[str]:
        """The same in lab.toml, after its url."""
        given = {"endpoint": self.ceph.endpoint, "region": REGION, "timeout_s": 20.0, **more}
        return [f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in given.items()]

    @property
    def url(self) -> str:
        return f"s3://{self.name}/lab"

    def keys(self) -> list[str]:
        """Names of the objects."""
        return [one["Key"] for one in self.ask("list_objects_v2").get("Contents", ())]

    def unfinished(self) -> int:
        """How many uploads were begun and not ended."""
        return len(self.ask("list_multipart_uploads").get("Uploads", ()))


def a_file(path: Path, size: int, seed: int = 1) -> tuple[Path, str]:
    """A file of so many bytes that compress badly, and its digest."""
    data = b"".join(hashlib.sha256(f"{seed} {n}".encode()).digest() for n in range(size // 32 + 1))[:size]
    path.write_bytes(data)
    return path, hashlib.sha256(data).hexdigest()
