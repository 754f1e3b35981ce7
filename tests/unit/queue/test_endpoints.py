"""Where a submitted policy may be asked: in the open internet over TLS, or in a network that the lab's owner named."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from labctl.errors import InputError
from labctl.queue import endpoints

LAB = (ipaddress.ip_network("10.20.0.0/24"),)
INSIDE = (
    "wss://127.0.0.1:8443",
    "wss://10.0.0.1",
    "wss://192.168.1.7:9000",
    "wss://169.254.169.254",  # where clouds keep credentials
    "wss://0.0.0.0:8000",
    "wss://[::1]:8000",
    "wss://[::ffff:127.0.0.1]:8000",
    "wss://[::ffff:10.0.0.1]:8000",
    "wss://[64:ff9b::7f00:1]:8000",
    "wss://[2002:7f00:1::]:8000",
    "wss://[fe80::1]:8000",
    "wss://[fd00::1]:8000",
    "wss://224.0.0.1:8000",
    "wss://100.64.0.1:8000",
    "ws://10.20.1.7:8000",
)
WRONG = (
    "http://policy.example",
    "file:///etc/passwd",
    "ws://policy.example:99999",
    "wss://",
    "wss://[::1",
    "wss://user:secret@policy.example",
    "wss://policy.example/?token=1",
    "wss://policy.example:22",
    "wss://policy.example:0",
    "ipc:///run/docker.sock",
    "tcp://8.8.8.8:5555",
    "",
)


@pytest.mark.parametrize("endpoint", [*INSIDE, *WRONG])
def test_an_endpoint_inside_or_of_another_kind_is_refused_without_its_secret(endpoint: str) -> None:
    with pytest.raises(InputError) as error:
        endpoints.check_endpoint(endpoint, "openpi", LAB, "r.json")
    assert "secret" not in str(error.value) and "\n" not in str(error.value)


def test_a_public_endpoint_is_encrypted_and_the_labs_own_need_not_be() -> None:
    for good in ("wss://policy.example", "wss://8.8.8.8:8443", "ws://10.20.0.7:8000", "wss://10.20.0.7:8000"):
        endpoints.check_endpoint(good, "openpi", LAB, "r.json")
    with pytest.raises(InputError, match="not encrypted"):
        endpoints.check_endpoint("ws://8.8.8.8:8000", "openpi", LAB, "r.json")
    endpoints.check_endpoint("tcp://10.20.0.7:5555", "gr00t", LAB, "r.json")


def led(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """From here on every name leads there."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_a_name_that_leads_inside_gets_no_connection_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    led(monkeypatch, "127.0.0.1", "10.0.0.1")
    endpoints.only_allowed(LAB, encrypted=True, endpoint="wss://gnu.example")
    with pytest.raises(OSError, match="an address inside"):
        socket.create_connection(("gnu.example", 443), timeout=1)


def test_of_several_addresses_those_inside_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    led(monkeypatch, "10.0.0.1", "8.8.8.8", "10.20.0.7")
    endpoints.only_allowed(LAB, encrypted=True, endpoint="wss://gnu.example")
    assert [one[4][0] for one in socket.getaddrinfo("gnu.example", 443)] == ["8.8.8.8", "10.20.0.7"]


def test_what_looks_names_up_by_itself_is_given_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    led(monkeypatch, "10.20.0.7")
    endpoints.only_allowed(LAB, encrypted=False, endpoint="tcp://gnu.example:5555")
    assert endpoints.resolved("tcp://gnu.example:5555") == "tcp://10.20.0.7:5555"
    led(monkeypatch, "127.0.0.1")
    endpoints.only_allowed(LAB, encrypted=False, endpoint="tcp://gnu.example:5555")
    with pytest.raises(InputError, match="an address inside"):
        endpoints.resolved("tcp://gnu.example:5555")
