"""[media] of lab.toml: which addresses it takes, and that no key or password is taken or repeated."""

from __future__ import annotations

import pytest

from labctl.config.cell_schema import parse_lab
from labctl.errors import InputError

GOOD = ("file:///mnt/nas/videos", "s3://our-videos", "s3://our-videos/lab-1/cell.2", "s3://our-videos/")
BAD = (
    "/mnt/nas",
    "file://mnt/nas",
    "file:///",
    "s3://key:hush-99@our-videos",
    "s3://hush-99@our-videos/x",
    "s3://our-videos?secret=hush-99",
    "s3://our-videos/a b",
    "s3://our-videos//x",
    "https://hush-99:x@host/bucket",
    "file:///mnt/%61",
    "memory://x",
)
ENDPOINTS = ("http://127.0.0.1:9000", "https://s3.example", "https://[::1]:443/")
BAD_ENDPOINTS = (
    "s3.example",
    "https://a:hush-99@s3.example",
    "https://s3.example/path",
    "https://s3.example?k=hush-99",
)


@pytest.mark.parametrize("url", GOOD)
def test_folders_and_buckets_are_taken(url: str) -> None:
    found = parse_lab(f'[media]\nurl = "{url}"\n', "lab.toml").media
    assert found is not None and found.url == url and found.check == "read_back" and found.after == "recording"


@pytest.mark.parametrize("url", BAD)
def test_any_other_address_is_refused_and_never_repeated(url: str) -> None:
    with pytest.raises(InputError, match=r"lab\.toml:2: media\.url: the media store is file") as told:
        parse_lab(f'[media]\nurl = "{url}"\n', "lab.toml")
    assert "hush-99" not in str(told.value)


def test_an_endpoint_is_a_host_and_holds_no_login() -> None:
    for endpoint in ENDPOINTS:
        table = parse_lab(f'[media]\nurl = "s3://abc"\nendpoint = "{endpoint}"\n', "lab.toml").media
        assert table is not None and table.endpoint == endpoint
    for endpoint in BAD_ENDPOINTS:
        with pytest.raises(InputError, match=r"lab\.toml:3: media\.endpoint: the endpoint") as told:
            parse_lab(f'[media]\nurl = "s3://abc"\nendpoint = "{endpoint}"\n', "lab.toml")
        assert "hush-99" not in str(told.value)


def test_a_key_that_stands_there_is_unknown() -> None:
    with pytest.raises(InputError, match="secret_key"):
        parse_lab('[media]\nurl = "s3://abc"\nsecret_key = "hush-99"\n', "lab.toml")
