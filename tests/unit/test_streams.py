"""What a blind role may see of a stream: what its declaration opens, and nothing that nobody spoke of."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.states import state_specs
from labctl.nodes.policy_stream import POLICY
from labctl.nodes.tracing import LEASE_SPEC
from labctl.nodes.video_recorder import index_spec
from labctl.streams import StreamSpec, spec_of

GRIPPER = StreamSpec(
    "gripper", ("force", "opening", "width"), "", 1.0, private_columns=("force",), public_columns=("opening", "width")
)
STATE = ("q.j1", "dq.j1", "tau.j1", "tcp.x", "gripper", "device_s")


def test_a_column_is_seen_that_is_public_and_no_other() -> None:
    assert GRIPPER.open_columns() == (1, 2) and GRIPPER.unclear_columns() == ()


def test_a_stream_that_declares_nothing_is_hidden() -> None:
    silent = StreamSpec("gripper", GRIPPER.columns, "", 1.0)
    assert silent.open_columns() == () and silent.unclear_columns() == GRIPPER.columns


def test_a_column_in_neither_list_or_in_both_is_hidden_and_named() -> None:
    neither = replace(GRIPPER, columns=(*GRIPPER.columns, "suction"))
    both = replace(GRIPPER, private_columns=("force", "width"))
    assert (neither.open_columns(), neither.unclear_columns()) == ((1, 2), ("suction",))
    assert (both.open_columns(), both.unclear_columns()) == ((1,), ("width",))


def test_a_name_that_is_no_column_is_named() -> None:
    assert replace(GRIPPER, public_columns=("opening", "width", "wdth")).unclear_columns() == ("wdth",)


def test_a_stream_that_depends_on_the_arm_has_nothing_open_and_needs_to_say_no_more() -> None:
    told = replace(GRIPPER, arm_dependent=True)
    assert told.open_columns() == () and told.unclear_columns() == ()


@pytest.mark.parametrize("spec", [GRIPPER, replace(GRIPPER, public_columns=()), index_spec("wrist", 30.0)])
def test_a_declaration_comes_back_from_a_recording_as_it_was(spec: StreamSpec) -> None:
    assert spec_of(json.loads(json.dumps(asdict(spec)))) == spec


def recorded(name: str, columns: tuple[str, ...], **more: Any) -> StreamSpec:
    """A declaration as it lies in a recording made before a stream could name its public columns."""
    return spec_of({"name": name, "columns": list(columns), "unit": "", "rate_hz": 1.0, **more})


@pytest.mark.parametrize("more", [{}, {"private_columns": None}])
def test_an_old_recording_that_declared_nothing_keeps_its_rule(more: dict[str, None]) -> None:
    """Speeds, torques and device times are hidden, and all of the setpoints; the rest is open."""
    assert recorded("arm/state", STATE, **more).open_columns() == (0, 3, 4)
    assert recorded("arm/action", STATE, **more).open_columns() == ()
    assert recorded("policy", STATE, arm_dependent=True, **more).open_columns() == ()


def test_an_old_recording_that_declared_private_columns_leaves_the_others_open() -> None:
    assert recorded("gripper", ("force", "dq.finger", "width"), private_columns=["force"]).open_columns() == (1, 2)
    assert recorded("gripper", ("force",), private_columns=["force"]).open_columns() == ()


def test_labctls_own_streams_say_of_every_column_which_it_is() -> None:
    own = [LEASE_SPEC, POLICY, index_spec("wrist", 30.0), *state_specs(FR3, 1000.0, {"success_rate": "1"})]
    assert {spec.name: spec.unclear_columns() for spec in own} == {spec.name: () for spec in own}
