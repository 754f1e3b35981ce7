"""A driver whose vendor's library is not installed is one line that names what brings it to this Python."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from labctl.drivers import BY_NAME, EXTRAS, extra_of

from labctl.devices import load
from labctl.errors import MissingExtra, how_to_install

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("driver", "module", "extra"),
    [("ur5", "dashboard_client", "ur"), ("franka", "franky", "franka"), ("opencv_camera", "cv2", "cameras")],
)
def test_it_names_the_extra_of_that_driver(monkeypatch: pytest.MonkeyPatch, driver: str, module: str, extra: str):
    for name in [*sys.modules]:
        if name == BY_NAME[driver] or name.startswith(f"{BY_NAME[driver].rpartition('.')[0]}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as raised:
        load(driver, {})
    assert str(raised.value).endswith(how_to_install(extra))
    assert f"driver {driver!r}" in str(raised.value)


def test_every_extra_named_is_one_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {*EXTRAS.values(), extra_of("their.robot")} <= {*declared}
    assert {*EXTRAS} <= {place.split(".")[2] for place in BY_NAME.values()}
