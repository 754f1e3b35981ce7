"""An address with a password is found in any table of a file, and named without what it holds."""

from __future__ import annotations

import pytest

from labctl.store.verifying.open_secrets import secrets_in

CELL = """[cell]
name = "one"

[[camera]]
name = "wrist"
[camera.options]
source = 0

[[camera]]
name = "room"
[camera.options]
source = "{}"
"""
LINE = "cell.toml:12: source of [camera room.options] holds"


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("http://viewer:hush-99@10.0.0.5/s.mjpg", "an address with a password"),
        ("rtsp://:hush-99@10.0.0.5", "an address with a password"),
        ("http://10.0.0.5/s.mjpg?size=2&token=hush-99", "an address with a key or password in its query"),
        ("http://10.0.0.5/s.mjpg?Authorization=hush-99", "an address with a key or password in its query"),
        ("ask wss://u:hush-99@host first", "an address with a password"),
    ],
)
def test_a_secret_in_an_address_is_named_and_never_shown(address: str, what: str) -> None:
    (line,) = secrets_in(CELL.format(address), "cell.toml")
    assert line == f"{LINE} {what}" and "hush" not in line


@pytest.mark.parametrize(
    "address",
    [
        *("http://10.0.0.5/s.mjpg", "rtsp://viewer@cam/1", "rtsp://viewer:@cam/1", "http://cam/?author=me&size=3"),
        *("/dev/v4l/by-id/usb-cam", "C:/?token=x", "http://cam/?token=", "who: a@b"),
    ],
)
def test_an_address_without_a_secret_is_not_named(address: str) -> None:
    assert secrets_in(CELL.format(address), "cell.toml") == []


def test_a_text_inside_a_list_or_an_inline_table_is_looked_at_and_what_is_no_toml_is_not() -> None:
    inline = (
        'arm = [{name = "swift", options = {endpoint = "wss://a:hush@h"}}]\n[server]\nstart = ["x", "http://a:b@c"]\n'
    )
    first, second = secrets_in(inline, "p.toml")
    assert first == "p.toml:1: endpoint of [arm swift.options] holds an address with a password"
    assert second == "p.toml:3: start of [server] holds an address with a password"
    assert secrets_in("source = ", "p.toml") == []
