"""RTDE's bytes: headers, set-up messages and packed fields, big-endian, protocol version 2.

May not: know a socket or a robot. Types and names are facts of Universal Robots' RTDE guide.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence

HEADER = struct.Struct(">HB")
PROTOCOL, VERSION, TEXT, DATA, OUTPUTS, INPUTS, START, PAUSE = map(ord, "VvMUOISP")
NOT_FOUND, IN_USE = "NOT_FOUND", "IN_USE"
ERROR = 1  # of the levels 0 exception, 1 error, 2 warning, 3 info

_CODES = {"BOOL": "?", "UINT8": "B", "UINT32": "I", "UINT64": "Q", "INT32": "i", "DOUBLE": "d"}
_CODES |= {"VECTOR3D": "3d", "VECTOR6D": "6d", "VECTOR6INT32": "6i", "VECTOR6UINT32": "6I"}
COUNTS = {"VECTOR3D": 3, "VECTOR6D": 6, "VECTOR6INT32": 6, "VECTOR6UINT32": 6}

OUTPUT_TYPES: dict[str, str] = {
    **dict.fromkeys(("target_q", "target_qd", "target_qdd", "target_current", "target_moment"), "VECTOR6D"),
    **dict.fromkeys(("actual_q", "actual_qd", "actual_current", "joint_control_output"), "VECTOR6D"),
    **dict.fromkeys(("actual_TCP_pose", "actual_TCP_speed", "actual_TCP_force"), "VECTOR6D"),
    **dict.fromkeys(("target_TCP_pose", "target_TCP_speed", "joint_temperatures", "actual_joint_voltage"), "VECTOR6D"),
    "ft_raw_wrench": "VECTOR6D",
    **dict.fromkeys(("actual_tool_accelerometer", "payload_cog"), "VECTOR3D"),
    **dict.fromkeys(("payload_inertia", "tcp_offset"), "VECTOR6D"),
    "joint_mode": "VECTOR6INT32",
    **dict.fromkeys(("actual_digital_input_bits", "actual_digital_output_bits"), "UINT64"),
    **dict.fromkeys(("robot_mode", "safety_mode"), "INT32"),
    **dict.fromkeys(("runtime_state", "robot_status_bits", "safety_status_bits"), "UINT32"),
    **dict.fromkeys(("timestamp", "actual_execution_time", "speed_scaling", "target_speed_fraction"), "DOUBLE"),
    **dict.fromkeys(("actual_momentum", "actual_main_voltage", "actual_robot_voltage"), "DOUBLE"),
    **dict.fromkeys(("actual_robot_current", "standard_analog_input0", "standard_analog_input1"), "DOUBLE"),
    **dict.fromkeys(("standard_analog_output0", "standard_analog_output1", "payload"), "DOUBLE"),
    **dict.fromkeys(("analog_io_types", "tool_mode", "tool_analog_input_types"), "UINT32"),
    "tool_output_voltage": "INT32",
    **dict.fromkeys(("tool_analog_input0", "tool_analog_input1", "tool_output_current", "tool_temperature"), "DOUBLE"),
    **dict.fromkeys(("actual_current_window", "actual_current_as_torque", "wrench_calc_from_currents"), "VECTOR6D"),
    **dict.fromkeys(("actual_TCP_acceleration", "target_TCP_acceleration"), "VECTOR6D"),
    **dict.fromkeys(("target_base_acceleration", "target_base_wrench"), "VECTOR6D"),
    **dict.fromkeys(("elbow_position", "elbow_velocity", "target_gravity"), "VECTOR3D"),
    **{f"actual_configurable_digital_{way}put_bits": "UINT64" for way in ("in", "out")},
    "control_step": "UINT64",
    **dict.fromkeys(("safety_status", "encoder0_raw", "encoder1_raw", "time_scale_source"), "INT32"),
    **dict.fromkeys(("script_control_line", "euromap67_input_bits", "euromap67_output_bits"), "UINT32"),
    **{f"{way}put_bit_registers{bits}": "UINT32" for way in ("in", "out") for bits in ("0_to_31", "32_to_63")},
    **dict.fromkeys(("tool_output_mode", "tool_digital_output0_mode", "tool_digital_output1_mode"), "UINT8"),
    **dict.fromkeys(("target_execution_time", "io_current", "tcp_force_scalar"), "DOUBLE"),
    **dict.fromkeys(("euromap67_24V_voltage", "euromap67_24V_current"), "DOUBLE"),
    **dict.fromkeys(("joint_position_deviation_ratio", "collision_detection_ratio"), "DOUBLE"),
    **dict.fromkeys(("actual_robot_energy_consumed", "actual_robot_braking_energy_dissipated"), "DOUBLE"),
}
INPUT_TYPES = {"speed_slider_mask": "UINT32", "speed_slider_fraction": "DOUBLE", "external_force_torque": "VECTOR6D"}
INPUT_TYPES |= {
    f"{kind}_digital_output{part}": "UINT8" for kind in ("standard", "configurable") for part in ("", "_mask")
}
INPUT_TYPES |= {"tool_digital_output": "UINT8", "tool_digital_output_mask": "UINT8"}
INPUT_TYPES |= {f"standard_analog_output_{part}": "UINT8" for part in ("mask", "type")}
INPUT_TYPES |= {f"standard_analog_output_{n}": "DOUBLE" for n in (0, 1)}
INPUT_TYPES |= {f"input_bit_registers{bits}": "UINT32" for bits in ("0_to_31", "32_to_63")}
_REGISTER = re.compile(r"(input|output)_(int|double|bit)_register_(\d+)$")


def type_of(name: str, known: Mapping[str, str], direction: str) -> str | None:
    """The type word of a field, None when there is no such field."""
    found = _REGISTER.match(name)
    if found and direction in (found[1], "output"):  # what was written is to be read as well
        top = 128 if found[2] == "bit" else 48
        return {"int": "INT32", "double": "DOUBLE", "bit": "BOOL"}[found[2]] if int(found[3]) < top else None
    return known.get(name)


def names(text: bytes) -> list[str]:
    """Field names of a set-up message; clients end the list with a comma."""
    return [name.strip() for name in text.decode("ascii").split(",") if name.strip()]


class Recipe:
    """An ordered set of fields. `pack(values)` and `unpack(payload)` by name; a short payload fills what is there."""

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.fields = tuple(fields)
        self._struct = struct.Struct(">" + "".join(_CODES[kind] for _, kind in fields))

    def pack(self, values: Mapping[str, object]) -> bytes:
        flat: list[object] = []
        for name, kind in self.fields:
            value = values.get(name, 0)
            if kind in COUNTS:
                flat.extend(value if value else (0,) * COUNTS[kind])  # type: ignore[arg-type]
            else:
                flat.append(value)
        return self._struct.pack(*flat)

    def unpack(self, payload: bytes) -> dict[str, object]:
        """Values of the fields that are wholly there; a surplus is ignored."""
        found: dict[str, object] = {}
        at = 0
        for name, kind in self.fields:
            code = struct.Struct(">" + _CODES[kind])
            if at + code.size > len(payload):
                break
            values = code.unpack_from(payload, at)
            found[name] = values if kind in COUNTS else values[0]
            at += code.size
        return found


def message(kind: int, body: bytes = b"") -> bytes:
    """A whole message."""
    return HEADER.pack(HEADER.size + len(body), kind) + body


def text_message(text: str) -> bytes:
    """A message for the log, of the level "error"."""
    body, source = text.encode()[:250], b"emulator"
    return message(TEXT, bytes([len(body)]) + body + bytes([len(source)]) + source + bytes([ERROR]))
