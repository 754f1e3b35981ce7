"""Which dependency would report how it is used, and that none does where labctl has it unless the lab says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.checks.computer import check_usage_reports
from labctl.checks.usage_reports import LIBREALSENSE, reporting


def test_doctor_names_what_would_report_and_what_does(tmp_path: Path) -> None:
    plain = check_usage_reports({}, tmp_path)
    assert plain.level == "ok" and "off in what labctl starts" in plain.text
    assert f"{LIBREALSENSE}=0" in plain.text and "rerun analytics disable" in plain.text
    on = check_usage_reports({LIBREALSENSE: "1"}, tmp_path)
    assert on.level == "warn" and "librealsense" in on.text


def test_what_is_not_installed_or_was_switched_off_is_not_named(tmp_path: Path) -> None:
    settings = tmp_path / ".config/rerun/analytics.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"analytics_enabled": False}))
    assert reporting(lambda module: module == "rerun", {}, tmp_path) == ([], "off in what labctl starts")
    assert reporting(lambda module: False, {LIBREALSENSE: "1"}, tmp_path) == ([], "off in what labctl starts")


def test_librealsense_sends_nothing_unless_the_lab_says_so(tmp_path: Path) -> None:
    """Also where somebody once agreed to it in Intel's own viewer."""
    load = "from labctl.drivers.realsense.librealsense import rs; "  # finds a libusb where the system has none
    ask, agree = load + "print(rs.rum.is_cloud_enabled())", load + "rs.rum.set_cloud_enabled(True)"
    plain = {name: text for name, text in os.environ.items() if name != LIBREALSENSE} | {"HOME": str(tmp_path)}

    def said(what: str, **more: str) -> str:
        return subprocess.check_output([sys.executable, "-c", what], env={**plain, **more}, text=True).strip()

    if said(load + "print(hasattr(rs, 'rum'))") == "False":  # before 2.59
        pytest.skip("this librealsense counts nothing")
    said(agree, **{LIBREALSENSE: "1"})
    assert said(ask) == "False"
    assert said(ask, **{LIBREALSENSE: "1"}) == "True"


def test_tests_have_a_home_of_their_own() -> None:
    """What a test starts or loads writes nothing into the home of who runs them."""
    import pwd

    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir) and Path.home().name == "test-home"
