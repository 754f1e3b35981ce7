"""[media] of lab.toml: where videos go once their recording is sealed, and for how long they stay here as well.

May not: hold a key or a password, or read the file or the environment that does.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from labctl.config.toml_text import Table
from labctl.config.values import Text

FOLDER, BUCKET = "file://", "s3://"
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._-]+)*/?")
_ENDPOINT = re.compile(r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/?")
_USUAL = "file:///FOLDER or s3://BUCKET/PREFIX"


def check_media_url(url: str) -> str:
    """The URL of a media store as it was given. Raises ValueError, never with the URL in it: it may hold a key."""
    if url.startswith(FOLDER + "/") and len(url) > len(FOLDER) + 1 and not re.search(r"[\x00-\x1f?#%]", url):
        return url
    if _BUCKET.fullmatch(url):
        return url
    secret = " without a key or password (those are found as AWS's own tools find them)" if "@" in url else ""
    raise ValueError(f"the media store is {_USUAL}{secret}")


def check_endpoint(url: str) -> str:
    """The address of an S3 server as it was given. Raises ValueError, never with the address in it."""
    if "@" in url:
        raise ValueError("the endpoint holds a login; it is http://HOST:PORT or https://HOST alone")
    if not _ENDPOINT.fullmatch(url):
        raise ValueError("the endpoint of a media store is http://HOST:PORT or https://HOST, without a path")
    return url


def in_the_clear(endpoint: str | None) -> bool:
    """Whether what goes to an S3 server may be read on its way: http to another computer than this one."""
    found = _ENDPOINT.fullmatch(endpoint or "")
    if found is None or found[0].startswith("https"):
        return False
    host = found[1].strip("[]")
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() != "localhost"


class MediaTable(Table):
    """[media]: url: a folder elsewhere or a bucket. endpoint, certificates, region, profile: of a bucket. check: how an
    upload is verified. after: what is waited for. lock_days, lock: object lock. keep_days: how long `labctl media trim`
    leaves a copy here. cache_gb: of videos that were fetched to be looked at. timeout_s: how long an answer is waited
    for.
    """

    url: Annotated[str, AfterValidator(check_media_url)]
    endpoint: Annotated[str, AfterValidator(check_endpoint)] | None = None
    certificates: Text | None = None
    region: Text | None = None
    profile: Text | None = None
    check: Literal["read_back", "server_checksum"] = "read_back"
    after: Literal["recording", "closing", "unblinding"] = "recording"
    lock_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    lock: Literal["governance", "compliance"] = "governance"
    keep_days: Annotated[float, Field(ge=0, le=36500)] | None = None
    cache_gb: Annotated[float, Field(gt=0, le=100000)] = 20.0
    timeout_s: Annotated[float, Field(ge=1, le=600)] = 30.0
