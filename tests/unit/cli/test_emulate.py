"""`labctl emulate` says by which keys a cell reaches what it serves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from labctl.checks import emulator_run
from labctl.cli.emulate import emulate

SERVES = SimpleNamespace(ports={"robot": 1337}, faults={"reflex": "a reflex"})


@pytest.mark.parametrize(
    ("name", "emulator", "keys"),
    [
        ("fr3", SimpleNamespace(**vars(SERVES), in_cell={}), 'host = "127.0.0.5"'),
        ("ros2", SimpleNamespace(**vars(SERVES), in_cell={"domain": 42}), 'host = "127.0.0.5" and domain = 42'),
    ],
)
def test_a_cells_keys_are_all_named(
    monkeypatch: pytest.MonkeyPatch, name: str, emulator: SimpleNamespace, keys: str
) -> None:
    """The domain of ROS 2 was not, and a cell of another waited for a robot that was in front of it."""

    def serve(name: str, host: str, fixture: object, options: object, ready: Callable[[object], None]) -> dict:
        ready(emulator)
        return {"robot_time_s": 1.0, "states_sent": 1}

    monkeypatch.setattr(emulator_run, "serve", serve)
    said = CliRunner().invoke(emulate, [name, "--host", "127.0.0.5"]).output
    assert f'a cell reaches it with driver = "emulated" and {keys}; labctl new . --robot emulated_{name}\n' in said
