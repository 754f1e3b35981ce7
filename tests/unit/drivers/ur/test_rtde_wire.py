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
        ("input_double_register_0", wire.OUTPUT_TYPES, "output", None),
        ("speed_of_light", wire.OUTPUT_TYPES, "output", None),
    ],
)
def test_fields_have_the_guides_types(name, known, direction, kind):
    assert wire.type_of(name, known, direction) == kind


def test_a_recipe_packs_what_it_unpacks_big_endian():
    recipe = wire.Recipe([("timestamp", "DOUBLE"), ("actual_q", "VECTOR6D"), ("robot_mode", "INT32")])
    values = {"timestamp": 1.5, "actual_q": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "robot_mode": 7}
    data = recipe.pack(values)
    assert len(data) == recipe.size == 60 and struct.unpack_from(">d", data) == (1.5,)
    assert recipe.unpack(data) == {**values, "actual_q": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)}


def test_a_short_package_fills_what_is_there_and_a_surplus_is_ignored():
    recipe = wire.Recipe([("input_int_register_0", "INT32"), ("input_double_register_0", "DOUBLE")])
    assert recipe.unpack(struct.pack(">i", 5)) == {"input_int_register_0": 5}
    assert recipe.unpack(struct.pack(">id", 5, 2.0) + b"more")["input_double_register_0"] == 2.0
