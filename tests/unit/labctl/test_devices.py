"""A driver that cannot be loaded is one clear line."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.devices import load
from labctl.errors import InputError


def test_a_library_that_the_system_lacks_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a wheel expects a shared object that no package of the system brought."""
    (tmp_path / "rig").mkdir()
    (tmp_path / "rig" / "__init__.py").write_text("")
    says = "libusb-1.0.so.0: cannot open shared object file"
    (tmp_path / "rig" / "usb_arm.py").write_text(f"raise ImportError({says!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as caught:
        load("rig.usb_arm:build", {}, where="cell.toml:3")
    assert str(caught.value) == f"cell.toml:3: driver 'rig.usb_arm:build' cannot load its library: {says}"
