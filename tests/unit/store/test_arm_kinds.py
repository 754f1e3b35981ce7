"""An arm of a new plan is of the kind that its controller is: what is said of blindness is worked out from kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.cli import call
from labctl.config.protocol_schema import Protocol, parse_protocol
from labctl.errors import InputError
from labctl.store.driver_options import check_controllers

ROOT = Path(__file__).resolve().parents[3]


def demo(kind: str, controller: str, options: str = "") -> Protocol:
    """The shipped protocol of a person and three policies, its first policy another arm; read as a sealed one is."""
    text = (ROOT / "protocols/demo.toml").read_text("utf-8")
    start = text.index('name = "policy-a"')
    end = text.index("[[arm]]", start)
    arm = f'name = "policy-a"\nkind = "{kind}"\ncontroller = "{controller}"\n[arm.options]\n{options}\n'
    text = text[:start] + arm + text[end:]
    if kind == "human":  # there is one person in a protocol
        person = 'kind = "human"\ncontroller = "sim_person"'
        assert person in text
        text = text.replace(person, 'kind = "policy"\ncontroller = "a.b:c"')
    return parse_protocol(text, "p.toml")


@pytest.mark.parametrize(
    ("kind", "controller", "options", "says"),
    [
        ("policy", "teleop", "", "kind is 'policy', and teleop is a person who leads the robot: say 'human', or name"),
        ("policy", "sim_person", "", "sim_person is a person"),
        ("policy", "labctl.drivers.teleop.person:build", "", "is a person who leads the robot"),
        ("policy", "faults", 'driver = "sim_person"\nverb = "infer"\nfault = "raise"', "sim_person is a person"),
        ("human", "policy_callable", "", "kind is 'human', and policy_callable is a policy: say 'policy'"),
        ("human", "sim_policy", "", "sim_policy is a policy"),
    ],
)
def test_an_arm_of_another_kind_than_its_controller_is_refused_at_its_line(
    kind: str, controller: str, options: str, says: str
) -> None:
    """A person listed as a policy made `plan` and every report say that nothing could be deduced."""
    with pytest.raises(InputError) as told:
        check_controllers(demo(kind, controller, options))
    assert says in str(told.value) and str(told.value).startswith("p.toml:")


@pytest.mark.parametrize("kind", ["human", "policy"])
@pytest.mark.parametrize("controller", ["support.robots.hand_to_robot:build", "a.b:c"])
def test_controllers_of_others_are_of_either_kind(kind: str, controller: str) -> None:
    check_controllers(demo(kind, controller))


def test_a_plan_says_so_before_anything_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "protocols/demo.toml").read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures"))
    at = text.index('kind = "human"')
    (tmp_path / "p.toml").write_text(text.replace('kind = "human"', 'kind = "policy"', 1), "utf-8")
    assert call(["plan", str(tmp_path / "p.toml")]) == 2
    assert f"p.toml:{text[:at].count(chr(10)) + 1}: kind is 'policy', and sim_person" in capsys.readouterr().err
