"""A policy that is a function: named in the protocol, called with what the card says, and no error of it escapes."""

from __future__ import annotations

import hashlib
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.policies.cards import card
from support.policies.observations import GIVEN, SEEN, Q

from labctl.devices import Controller, load
from labctl.errors import DeviceRefused, InputError

LAB = """
import numpy as np
resets = []

def act(seen):
    return np.append(np.tile(seen["observation/joint_position"], (5, 1)), np.zeros((5, 1)), axis=1)

def answer(seen):
    return {"actions": act(seen), "policy_timing": {"infer_ms": 3.0}}

class Policy:
    about = {"resources": {"model_mb": 12}}
    def __init__(self):
        self.asked = 0
    def __call__(self, seen):
        self.asked += 1
        return act(seen) + 0 * self.asked
    def reset(self):
        resets.append(self.asked)

def broken(seen):
    raise ZeroDivisionError("somewhere\\ndeep")

class Unmade:
    def __init__(self):
        raise MemoryError("weights")
"""


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_test_lab").mkdir()
    (tmp_path / "my_test_lab" / "__init__.py").touch()
    (tmp_path / "my_test_lab" / "policies.py").write_text(LAB)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("my_test_lab")]:
        del sys.modules[name]


def policy(name: str) -> Any:
    return load("policy_callable", {"card": card("callable"), "function": f"my_test_lab.policies:{name}"}, **GIVEN)


@pytest.mark.parametrize("name", ["act", "answer", "Policy"])
def test_a_function_a_table_and_a_class_are_policies(name: str):
    made = policy(name)
    assert isinstance(made, Controller)
    made.load()
    made.reset(1)
    made.warm(SEEN)
    made.reset(1)
    chunk = made.infer(SEEN)
    made.close()
    assert np.allclose(chunk.values, Q) and chunk.values.shape == (5, 7) and chunk.execute == 4
    assert made.told == ({"model_mb": 12.0} if name == "Policy" else {})
    assert chunk.server_s == pytest.approx(0.003 if name == "answer" else float("nan"), nan_ok=True)


def test_what_a_function_runs_on_is_every_distribution_that_it_brought_and_its_own_file() -> None:
    made = policy("act")
    made.load()
    made.warm(SEEN)
    assert made.software["numpy"] == metadata.version("numpy")
    own = Path(str(sys.modules["my_test_lab.policies"].__file__)).read_bytes()
    assert made.software["my_test_lab.policies (file)"] == hashlib.sha256(own).hexdigest()[:16]
    assert "pip" not in made.software or "pip" in sys.modules, "what is installed and not loaded is not there"


def test_an_object_is_told_when_an_episode_begins():
    made = policy("Policy")
    made.load()
    made.reset(1)
    made.warm(SEEN)
    made.reset(1)
    assert sys.modules["my_test_lab.policies"].resets == [0, 2]


def test_an_error_of_the_function_is_one_line_and_its_traceback_goes_to_the_log(capsys: pytest.CaptureFixture[str]):
    made = policy("broken")
    made.load()
    with pytest.raises(DeviceRefused) as caught:
        made.infer(SEEN)
    assert str(caught.value) == "my_test_lab.policies:broken failed: ZeroDivisionError: somewhere"
    assert "deep" in capsys.readouterr().err


def test_a_class_that_cannot_be_made_is_found_while_loading():
    with pytest.raises(DeviceRefused, match="failed: MemoryError: weights"):
        policy("Unmade").load()


def test_a_name_that_is_not_in_its_module_is_found_while_loading():
    with pytest.raises(DeviceRefused, match="has no function 'nothing'"):
        policy("nothing").load()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my_test_lab.policies", "write it as package.module:name"),
        ("my_test_lab/policies.py:act", "write it as package.module:name"),
        ("no_such_lab.policies:act", "there is no module 'no_such_lab.policies' here; put it beside lab.toml"),
        (3, "must be a function, named like"),
    ],
)
def test_a_function_that_is_none_is_refused_before_anything_runs(name: Any, says: str):
    with pytest.raises(InputError) as caught:
        load("policy_callable", {"card": card("callable"), "function": name}, **GIVEN)
    assert says in str(caught.value)


def test_a_package_that_fails_when_it_is_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "my_test_lab" / "spoilt").mkdir()
    (tmp_path / "my_test_lab" / "spoilt" / "__init__.py").write_text("1 / 0")
    says = r"'my_test_lab.spoilt.policies:act': the package .* cannot be imported \(ZeroDivisionError"
    with pytest.raises(InputError, match=says):
        load("policy_callable", {"card": card("callable"), "function": "my_test_lab.spoilt.policies:act"}, **GIVEN)
