"""A driver whose vendor's library is not installed is one line that names what brings it to this Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from labctl.devices import load
from labctl.drivers import BY_NAME
from labctl.errors import InputError, MissingExtra, how_to_install


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


def test_what_a_lab_s_own_module_lacks_is_not_blamed_on_an_extra_of_labctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is a library that labctl has an extra for: nobody knows which version that driver wants."""
    (tmp_path / "our_parts").mkdir()
    (tmp_path / "our_parts" / "suction.py").write_text("import cv2\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(InputError, match=r"driver 'our_parts.suction' needs the module 'cv2': install it$"):
        load("our_parts.suction", {})


def test_what_an_installed_library_lacks_itself_is_not_blamed_on_labctl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "franky").mkdir()
    (tmp_path / "franky" / "__init__.py").write_text("import pyarrow\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith((BY_NAME["franka"], "franky"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"driver 'franka' needs the module 'pyarrow': install it$"):
        load("franka", {})
