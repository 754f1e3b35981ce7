"""What a policy's server says that it runs on is taken as names and versions, and nothing else of it is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from labctl.drivers.bridges.lerobot_openpi import installed
from labctl.drivers.policy.software import loaded, reported


def test_tables_and_versions_of_a_servers_metadata_are_read() -> None:
    told = {
        "versions": {"torch": "2.7.1", "openpi": "0.3 dev"},
        "software": {"jax": "0.5.3"},
        "checkpoint_version": 12,
        "action_space": "joint_velocity",
    }
    assert reported(told) == {"torch": "2.7.1", "openpi": "0.3 dev", "jax": "0.5.3", "checkpoint": "12"}


def test_the_lerobot_bridge_says_which_versions_it_runs_on_as_far_as_they_are_there() -> None:
    assert installed("numpy", "no-such-distribution") == {"numpy": np.__version__}


def test_what_is_no_name_or_no_version_is_passed_over() -> None:
    assert reported({"versions": {"a b": "1", "x": ["1"], "y": "v" * 200, "": "1", "z": ""}, "packages": 3}) == {}
    assert len(reported({"packages": {f"p{i}": str(i) for i in range(1000)}})) == 300
    assert reported({}) == {}


def test_a_module_whose_file_is_gone_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "passing_policy.py"
    path.write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("passing_policy")
    path.unlink()
    assert loaded("passing_policy")["passing_policy (file)"] == "no longer there"
    del sys.modules["passing_policy"]
