"""The faults put in on purpose fit the code as it is now.

May not: put one in (`tests/faults/try_faults.py` does).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FAULTS = tomllib.loads((ROOT / "tests/faults/faults.toml").read_text())["fault"]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["name"] for fault in FAULTS])
def test_a_fault_of_the_list_can_still_be_put_in(fault):
    source = (ROOT / fault["file"]).read_text()
    assert source.count(fault["find"]) == 1, f"{fault['file']} changed under it: change its line in faults.toml too"
    assert fault["find"] != fault["replace"]
    compile(source.replace(fault["find"], fault["replace"]), fault["file"], "exec")
    assert all((ROOT / near).exists() for near in fault["near"])
