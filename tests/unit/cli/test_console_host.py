"""`labctl console --web --host`: off loopback by pairing alone, and an address that it cannot have in one line."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path

import pytest
from click.testing import CliRunner

from labctl.cli.console import console, free_port
from labctl.errors import InputError
from labctl.ui.console import web


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "192.0.2.7"])
def test_off_loopback_the_console_is_served_by_pairing_alone(host, tmp_path, monkeypatch):
    begun: list[str] = []
    monkeypatch.setattr("labctl.cli.console.campaign_folder", lambda *_: tmp_path)
    monkeypatch.setattr("labctl.runtime.attach.Attachment.__init__", lambda *_, **__: None)
    monkeypatch.setattr("labctl.runtime.attach.Attachment.close", lambda *_: None)
    monkeypatch.setattr("labctl.cli.console.free_port", lambda *_: 1)
    for kind in (web.TokenServer, web.PairedServer):
        monkeypatch.setattr(kind, "serve", lambda server: begun.append(type(server).__name__))
    result = CliRunner().invoke(console, ["first", "--web", "--host", host], catch_exceptions=False)
    assert result.exit_code == 0
    assert begun == ["TokenServer" if ip_address(host).is_loopback else "PairedServer"]


@pytest.mark.parametrize(
    ("host", "said"), [("0.0.0.0", "every network"), ("::", "every network"), ("rig", "give an address")]
)
def test_a_host_that_is_no_one_address_is_refused_in_one_line(host, said, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("labctl.cli.console.campaign_folder", lambda *_: tmp_path)
    error = CliRunner().invoke(console, ["first", "--web", "--host", host]).exception
    assert isinstance(error, InputError) and said in str(error)


def test_an_address_that_this_computer_does_not_have_is_refused_in_one_line():
    with pytest.raises(
        InputError, match=r"--host 192\.0\.2\.7 --port 9090 cannot .*; give another --host$"
    ):  # RFC 5737
        free_port("192.0.2.7", 9090)  # RFC 5737
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=rf"--port {port} cannot be served on \(Address .*; give another --port$"):
            free_port("127.0.0.1", port)
