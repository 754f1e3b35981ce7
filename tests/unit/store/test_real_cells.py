"""A cell that says kind = "real" has no device, controller or operator that only plays the part: neither when a
campaign is opened, nor when a device is built. The badges of a report come from that word, unless episodes come out of
a recording or have faults put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.robots.cells import cell_named, changed
from support.runs.campaigns import HUMAN, ROOT, make_campaign, policy

from labctl.analysis.report.page import badges
from labctl.config.protocol_schema import Arm
from labctl.devices import load, no_stand_in
from labctl.drivers import BY_NAME
from labctl.drivers.common.options import check_place
from labctl.errors import InputError
from labctl.store.driver_options import check_cell_options, stamped_kind
from labctl.store.journal import events_of
from labctl.store.lab_folder import read_cell

PERSON, SCRIPT = HUMAN, policy("zebra", skill="swift")
SIMULATED = sorted(name for name, place in BY_NAME.items() if place.startswith("labctl.drivers.sim."))
ROBOT, CAMERA = 'driver = "franka"', 'driver = "realsense"'
OTHERWISE: Mapping[str, tuple[str, str]] = {
    "robot": (ROBOT, 'driver = "sim_fr3"'),
    "recorded robot": (ROBOT, 'driver = "replay"'),
    "emulated robot": (ROBOT, 'driver = "emulated"'),
    "robot with faults": (ROBOT, 'driver = "faults"'),
    "gripper": ('driver = "robotiq_serial"', 'driver = "sim_fr3"'),
    "camera": (CAMERA, 'driver = "sim_camera"'),
    "operator": ('operator = "console"', 'operator = "sim_operator"'),
}


def opened(lab: Path, arms: list[dict[str, Any]], **cell: str) -> None:
    make_campaign(lab, arms, base="fr3_droid_cell", cameras=True, durable=True, cell=cell)


@pytest.mark.parametrize("part", OTHERWISE)
def test_no_part_of_a_real_cell_is_simulated(tmp_path: Path, part: str) -> None:
    """Issue 17.8: a simulated robot in a cell of kind real had a report without the badge SIMULATED."""
    old, new = OTHERWISE[part]
    with pytest.raises(InputError, match=r'c\.toml:\d+: .*says kind = "real"'):
        opened(tmp_path, [PERSON, SCRIPT], **{old: new})
    assert not list((tmp_path / "campaigns").iterdir())


@pytest.mark.parametrize("arms", [[PERSON, SCRIPT], [SCRIPT, PERSON]])
def test_no_arm_in_a_real_cell_is_simulated(tmp_path: Path, arms: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=rf'p\.toml:\d+: {arms[0]["controller"]} is no real device.*kind = "real"'):
        opened(tmp_path, arms)
    assert not list((tmp_path / "campaigns").iterdir())


@pytest.mark.parametrize("name", ["fr3_droid_cell", "ur5e_cell"])
def test_the_real_cells_that_labctl_ships_have_no_such_part(name: str) -> None:
    check_cell_options(read_cell(ROOT / "hw_configs" / f"{name}.toml"))


HOST = 'host = "172.16.0.2"'


@pytest.mark.parametrize("host", ["127.0.0.2", "127.1.2.3", "localhost", "::1"])
def test_no_robot_of_a_real_cell_is_at_an_address_of_this_very_computer(tmp_path: Path, host: str) -> None:
    """Issue 17.8: a real driver pointed at an emulator. labctl's listen on loopback only, and no robot does."""
    with pytest.raises(InputError, match=rf'c\.toml:\d+: .*{host}.*this very computer.*says kind = "real"'):
        opened(tmp_path, [PERSON, SCRIPT], **{HOST: f'host = "{host}"'})
    assert not list((tmp_path / "campaigns").iterdir())


def test_a_name_that_leads_to_this_very_computer_is_found_when_the_driver_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = {"fr3.lab": [(2, 1, 6, "", ("127.0.0.2", 0))], "other.lab": [(2, 1, 6, "", ("172.16.0.2", 0))]}

    def look_up(host: str, port: object) -> list[Any]:
        if host not in found:
            raise OSError("no such name")
        return found[host]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    with pytest.raises(InputError, match=r"fr3\.lab.*this very computer"):
        check_place("franka", cell_named("fr3_droid_cell"), "fr3.lab")
    check_place("franka", cell_named("emulated_fr3"), "fr3.lab")
    for host in ("other.lab", "nobody.knows", "172.16.0.2"):
        check_place("franka", cell_named("fr3_droid_cell"), host)


@pytest.mark.parametrize("name", ["emulated_fr3", "emulated_ur5", "emulated_ur5e"])
def test_an_emulated_cell_is_where_its_emulator_is(name: str) -> None:
    check_cell_options(read_cell(ROOT / "hw_configs" / f"{name}.toml"))


class Playing:
    """A device of another package, which tells only when it is built that it plays a part."""

    kind = "sim"


@pytest.mark.parametrize("kind", ["sim", "replay", "emulated", "real"])
def test_what_a_device_says_of_itself_counts_when_it_is_built(kind: str) -> None:
    if kind == "real":
        with pytest.raises(InputError, match='theirs is sim with these options, and the cell says kind = "real"'):
            no_stand_in(Playing(), "theirs", kind)
    else:
        assert no_stand_in(Playing(), "theirs", kind).kind == "sim"


def test_each_driver_of_a_simulation_says_so_of_itself() -> None:
    """`load` asks what it has built; here is that it has something to ask."""
    assert len(SIMULATED) >= 8
    with pytest.raises(InputError, match="sim_operator is sim"):
        no_stand_in(load("sim_operator", {}), "sim_operator", "real")


INSIDE = {"driver": "sim_fr3", "driver_options": {}}
FAULTS: dict[str, Any] = {**INSIDE, "verb": "observe", "fault": "raise"}
REPLAY: dict[str, Any] = {"file": "r.npz"}


@pytest.mark.parametrize(
    ("robot", "kind", "stamped"),
    [
        (("sim_fr3", {}), "sim", "sim"),
        (("sim_fr3", {}), "replay", "replay"),
        (("replay", REPLAY), "sim", "replay"),
        (("faults", FAULTS), "sim", "faults"),
        (("faults", {**FAULTS, "driver": "replay", "driver_options": REPLAY}), "replay", "faults"),
        (("emulated", {"driver": "faults", "driver_options": FAULTS}), "emulated", "faults"),
        (("emulated", {"driver": "franka", "driver_options": {"host": "127.0.0.9"}}), "emulated", "emulated"),
    ],
)
def test_a_cell_s_episodes_are_of_the_kind_of_what_its_drivers_do(
    robot: tuple[str, dict[str, Any]], kind: str, stamped: str
) -> None:
    made = changed(cell_named("sim_fr3"), {"cell": {"kind": kind}})
    table = made.robot.model_copy(update={"driver": robot[0], "options": robot[1]})
    assert stamped_kind(made.model_copy(update={"robot": table}), []) == stamped


def test_either_of_two_robots_and_any_arm_counts() -> None:
    pair = cell_named("sim_pair")
    assert pair.second_robot is not None and stamped_kind(pair, []) == "sim"
    second = pair.second_robot.model_copy(update={"driver": "faults", "options": FAULTS})
    assert stamped_kind(pair.model_copy(update={"second_robot": second}), []) == "faults"
    arm = Arm(name="a", kind="policy", controller="faults", options={**FAULTS, "driver": "sim_policy"})
    assert stamped_kind(pair, [arm]) == "faults", "of the whole campaign: an episode of its own kind would name its arm"


def test_a_campaign_is_opened_and_every_report_headed_with_what_its_drivers_do(tmp_path: Path) -> None:
    wrapped = 'driver = "faults"\noptions = { driver = "sim_fr3", verb = "recover", fault = "raise" }'
    made = make_campaign(tmp_path, [HUMAN, policy("zebra")], cell={'driver = "sim_fr3"': wrapped})
    (entry,) = events_of(made.folder)
    assert entry.body["kind"] == "faults"
    (badge,) = badges({"kind": "faults"})
    assert (badge["label"], badge["text"][:20]) == ("FAULTS", "Faults were put into")
