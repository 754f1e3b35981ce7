"""What a bug report replaces in a text: addresses, whichever they are, and nothing that only looks like one."""

from __future__ import annotations

import pytest

from labctl.checks.bugreport import _Hide


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no answer from 192.0.2.7 at 12:34:56", "no answer from <address> at 12:34:56"),
        ("no answer from [2001:db8::7]:5555", "no answer from [<address>]:5555"),  # RFC 3849
        ("fe80::1ff:fe23:4567:890a%eth0 is away", "<address>%eth0 is away"),
        ("fe80::1: connection refused by 2001:db8::7.", "<address>: connection refused by <address>."),
        ("2026-11-26T01:02:03.5+00:00 std::string", "2026-11-26T01:02:03.5+00:00 std::string"),
    ],
)
def test_an_address_of_either_kind_is_replaced_and_a_time_is_not(said: str, shown: str) -> None:
    assert _Hide({})(said) == shown


@pytest.mark.parametrize("said", ["velociraptor-7b", "Velociraptor 7B", "velociraptor_7b.py", "VELOCIRAPTOR.7B"])
def test_a_name_is_replaced_however_it_is_written(said: str) -> None:
    hidden = _Hide({"arm": ["velociraptor-7b"], "person": ["ann_b"]})(f"{said}, of Ann-B: done")
    assert "raptor" not in hidden.lower() and hidden.startswith("<arm>") and "of <person>: done" in hidden


def test_a_version_of_four_numbers_is_no_address_among_versions() -> None:
    assert _Hide({"arm": ["1.0"]})('"libusb-package": "1.0.30.1"', addresses=False) == '"libusb-package": "<arm>.30.1"'
    assert _Hide({})('"libusb-package": "1.0.30.1"', addresses=False) == '"libusb-package": "1.0.30.1"'
