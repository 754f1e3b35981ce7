"""Every column of a shipped stream has a unit."""

from __future__ import annotations

import pytest
from support.robots.cells import cell_named
from support.robots.emulators import leave_out_without_client

from labctl.devices import StreamSpec, load
from labctl.exports.units import column_units
from labctl.nodes.policy_stream import POLICY
from labctl.nodes.tracing import action_spec
from labctl.nodes.video_recorder import index_spec
from labctl.testing.given import FIXTURE


@pytest.mark.parametrize("name", ["sim_fr3", "sim_ur5", "emulated_ur5e"])
def test_a_robots_columns_have_the_units_of_the_device_seam(name: str) -> None:
    leave_out_without_client(name)
    cell = cell_named(name)
    robot = load(cell.robot.driver, cell.robot.options, cell=cell, fixture=FIXTURE)
    try:
        specs = {spec.name: spec for spec in (*robot.streams, action_spec(robot))}
    finally:
        robot.close()
    for spec in specs.values():
        units = dict(zip(spec.columns, column_units(spec), strict=True))
        assert all(units.values()), (spec.name, units)
    state, action = specs["arm/state"], specs["arm/action"]
    units = dict(zip(state.columns, column_units(state), strict=True))
    joint = robot.joint_names[0]
    assert [units[f"{what}.{joint}"] for what in ("q", "dq", "tau")] == ["rad", "rad/s", "N.m"]
    assert [units[name] for name in ("tcp.x", "tcp.qw", "gripper")] == ["m", "1", "m"]
    units = dict(zip(action.columns, column_units(action), strict=True))
    assert [units[f"sent.{part}"] for part in (joint, "gripper")] == ["rad", "m"] and units["delay_s"] == "s"


def test_cameras_and_policies_tell_theirs() -> None:
    assert column_units(index_spec("wrist", 10.0)) == ("1", "us", "ns", "us", "1", "ms")
    policy = dict(zip(POLICY.columns, column_units(POLICY), strict=True))
    assert [policy[name] for name in ("request_ns", "executed", "gpu_memory_mb")] == ["ns", "1", "MB"] and all(
        policy.values()
    ), policy


def test_a_strange_stream_has_the_unit_it_declares_or_none() -> None:
    assert column_units(StreamSpec("scale", ("mass",), "kg", 1.0)) == ("kg",)
    assert column_units(StreamSpec("scale", ("mass", "temperature"), "kg K", 1.0)) == ("kg", "K")
    assert column_units(StreamSpec("odd", ("a", "b", "c"), "kg K", 1.0)) == ("", "", "")
