"""RTDE's bytes, as ur_rtde 1.6.5 sends and reads them."""

import struct

import pytest

from labctl.drivers.ur.emulator import rtde_wire as wire


def test_lists_of_names_may_end_with_a_comma_as_ur_rtde_writes_them():
    assert wire.names(b"timestamp,actual_q,") == ["timestamp", "actual_q"]


@pytest.mark.parametrize(
    ("name", "known", "direction", "kind"),
    [
        ("timestamp", wire.OUTPUT_TYPES, "output", "DOUBLE"),
        ("actual_TCP_pose", wire.OUTPUT_TYPES, "output", "VECTOR6D"),
        ("joint_mode", wire.OUTPUT_TYPES, "output", "VECTOR6INT32"),
        ("actual_digital_input_bits", wire.OUTPUT_TYPES, "output", "UINT64"),
        ("tool_output_voltage", wire.OUTPUT_TYPES, "output", "INT32"),
        ("tool_analog_input_types", wire.OUTPUT_TYPES, "output", "UINT32"),
        ("output_int_register_47", wire.OUTPUT_TYPES, "output", "INT32"),
        ("output_int_register_48", wire.OUTPUT_TYPES, "output", None),
        ("input_double_register_0", wire.INPUT_TYPES, "input", "DOUBLE"),
        ("input_double_register_0", wire.OUTPUT_TYPES, "output", "DOUBLE"),  # to be read back
        ("speed_of_light", wire.OUTPUT_TYPES, "output", None),
    ],
)
def test_fields_have_the_guides_types(name, known, direction, kind):
    assert wire.type_of(name, known, direction) == kind


def test_a_recipe_packs_what_it_unpacks_big_endian():
    recipe = wire.Recipe([("timestamp", "DOUBLE"), ("actual_q", "VECTOR6D"), ("robot_mode", "INT32")])
    values = {"timestamp": 1.5, "actual_q": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "robot_mode": 7}
    data = recipe.pack(values)
    assert len(data) == 60 and struct.unpack_from(">d", data) == (1.5,)
    assert recipe.unpack(data) == {**values, "actual_q": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)}


def test_a_short_package_fills_what_is_there_and_a_surplus_is_ignored():
    recipe = wire.Recipe([("input_int_register_0", "INT32"), ("input_double_register_0", "DOUBLE")])
    assert recipe.unpack(struct.pack(">i", 5)) == {"input_int_register_0": 5}
    assert recipe.unpack(struct.pack(">id", 5, 2.0) + b"more")["input_double_register_0"] == 2.0


# Universal Robots' client library 2.13, src/rtde/data_package.cpp: what came to be served last
OUTPUTS = """actual_current_window actual_current_as_torque actual_TCP_acceleration target_TCP_acceleration
actual_configurable_digital_input_bits actual_configurable_digital_output_bits target_execution_time safety_status
elbow_position elbow_velocity io_current actual_robot_energy_consumed actual_robot_braking_energy_dissipated
encoder0_raw encoder1_raw euromap67_input_bits euromap67_output_bits euromap67_24V_voltage euromap67_24V_current
tool_output_mode tool_digital_output0_mode tool_digital_output1_mode tcp_force_scalar joint_position_deviation_ratio
collision_detection_ratio ft_raw_wrench wrench_calc_from_currents payload payload_cog payload_inertia
script_control_line time_scale_source target_gravity target_base_acceleration control_step target_base_wrench"""


def test_every_field_that_the_vendors_client_knows_has_a_type_and_can_be_packed() -> None:
    """Issue 20.24: 45 of its 419 were not there."""
    registers = [
        f"{way}_{kind}_register_{n}"
        for way in ("input", "output")
        for kind, numbers in (("int", range(48)), ("double", range(48)), ("bit", range(64, 128)))
        for n in numbers
    ]
    words = [f"{way}put_bit_registers{bits}" for way in ("in", "out") for bits in ("0_to_31", "32_to_63")]
    fields = [
        (name, wire.type_of(name, wire.OUTPUT_TYPES, "output")) for name in (*OUTPUTS.split(), *registers, *words)
    ]
    assert [name for name, kind in fields if kind is None] == []
    recipe = wire.Recipe([(name, kind) for name, kind in fields if kind])
    assert recipe.unpack(recipe.pack({"output_int_register_3": 7}))["output_int_register_3"] == 7
    assert wire.type_of("output_int_register_3", wire.INPUT_TYPES, "input") is None
