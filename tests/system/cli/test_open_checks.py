"""`labctl open` seals nothing that could not run: options, drivers, modules, cards, robot, devices and servers."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from support.policies.cards import card_toml
from support.policies.policy_servers import closed_port

from labctl import cli

POLICY = """
import json

def act(seen):
    return [[0.0] * 8] * 4
"""


def opened(lab: Path, *words: str) -> tuple[int, str]:
    err = io.StringIO()
    given = [str(lab / "protocols/first.toml"), "--cell", str(lab / "cells/sim_fr3.toml"), "--lab", str(lab)]
    with redirect_stdout(err), redirect_stderr(err):
        code = cli.call(["open", *given, *words])
    return code, err.getvalue()


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    with redirect_stdout(io.StringIO()):
        assert cli.call(["new", str(tmp_path / "lab")]) == 0
    return tmp_path / "lab"


def last_arm(lab: Path, controller: str, *options: str) -> None:
    """Replace the starter's last arm."""
    path = lab / "protocols/first.toml"
    text = path.read_text()
    head = text[: text.index('[[arm]]\nname = "policy-b"')]
    rows = ["[[arm]]", 'name = "tried"', 'kind = "policy"', f'controller = "{controller}"', "[arm.options]", *options]
    path.write_text(head + "\n".join(rows) + "\n")


def nothing_sealed(lab: Path) -> bool:
    return not list((lab / "campaigns").iterdir())


@pytest.mark.parametrize(
    ("controller", "options", "said"),
    [
        ("sim_policy", ['skill = "fast"'], 'skill must be one of "swift"'),
        ("sim_policy", ['skil = "swift"'], "has no option 'skil'"),
        ("no_such_lab.policies:build", [], "no driver named 'no_such_lab.policies:build'"),
        ("json.tool:no_such_function", [], "has no function 'no_such_function'"),
        ("support.policies.dying_policy:build", ['words = "weights are not there"'], "weights are not there"),
    ],
)
def test_an_arm_that_cannot_run_is_not_sealed(
    lab: Path, controller: str, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    last_arm(lab, controller, *options)
    code, told = opened(lab)
    assert code == 2 and said in told and "protocols/first.toml:" in told and "Traceback" not in told
    assert nothing_sealed(lab)


def test_a_module_that_does_not_import_is_not_sealed_even_offline(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = lab / "modules"
    modules.mkdir()
    (modules / "openers_lab.py").write_text(POLICY.replace("import json", "import no_such_module_here"))
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.syspath_prepend(modules)
    (lab / "protocols/card.toml").write_text(card_toml("callable"))
    last_arm(lab, "policy_callable", 'card = "card.toml"', 'function = "openers_lab:act"')
    code, told = opened(lab, "--offline")
    assert code == 2 and "no_such_module_here" in told and nothing_sealed(lab)
    (modules / "openers_lab.py").write_text(POLICY)
    code, told = opened(lab, "--offline")
    assert code == 0, told


def test_a_server_that_is_not_there_is_not_sealed_unless_offline(lab: Path) -> None:
    (lab / "protocols/card.toml").write_text(card_toml("openpi", ready=0.3))
    last_arm(lab, "policy_openpi", 'card = "card.toml"', f'endpoint = "ws://127.0.0.1:{closed_port()}"')
    code, told = opened(lab)
    assert code == 2 and "nothing listens at ws://127.0.0.1:" in told and "--offline" in told and nothing_sealed(lab)
    code, told = opened(lab, "--offline")
    assert code == 0, told


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("min_free_gb = 1.0", "min_free_gb = 1000000.0", "the cell asks for 1e+06"),
        ('codec = "libx264"', 'codec = "no_such_codec"', "no_such_codec"),
    ],
)
def test_a_cell_that_doctor_fails_is_not_sealed(lab: Path, old: str, new: str, said: str) -> None:
    cell = lab / "cells/sim_fr3.toml"
    assert old in cell.read_text()
    cell.write_text(cell.read_text().replace(old, new))
    code, told = opened(lab, "--offline")
    assert code == 2 and said in told and "sim_fr3.toml" in told and nothing_sealed(lab)


def test_a_robot_that_does_not_answer_is_not_sealed_unless_offline(lab: Path) -> None:
    pytest.importorskip("rtde_control")
    cell = lab / "cells/sim_fr3.toml"
    text = cell.read_text().replace('kind = "sim" ', 'kind = "emulated" ').replace('"sim_fr3"\nstate', '"ur5"\nstate')
    text = text.replace('driver = "sim_fr3"', 'driver = "ur5"').replace(", 2.5]", "]").replace(", 8.0]", "]")
    cell.write_text(text.replace("[robot.limits]", '[robot.options]\nhost = "127.0.0.231"\n[robot.limits]'))
    code, told = opened(lab)
    assert code == 2 and "robot: does not answer" in told and nothing_sealed(lab), told
