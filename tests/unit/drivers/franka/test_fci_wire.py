"""The FCI's bytes as seen on the wire with libfranka 0.21.2 (sizes and offsets measured with the real client)."""

import struct

import numpy as np

from labctl.drivers.franka import state as fci
from labctl.drivers.franka.emulator import wire as wire


def test_sizes_are_exact():
    assert wire.COMMAND.size == 371 and wire.HAND_STATE.size == 23
    assert len(wire.StateBuffer().pack(1, 0, 3, bytes(41), bytes(41), 1)) == fci.STATE_BYTES == 1377
    assert wire.SIZES[wire.MOVE] == 113 and wire.SIZES[3] == 416, "SetCollisionBehavior"


def test_fields_lie_where_the_client_reads_them():
    offsets = {"O_T_EE": 8, "elbow": 496, "tau_J": 512, "q": 596, "q_d": 624, "dq": 652, "O_T_EE_c": 976}
    assert {name: 8 + 4 * fci.SLICES[name].start for name in offsets} == offsets
    state = wire.StateBuffer()
    state.set("q", np.arange(7.0))
    data = state.pack(77, 2, 1, bytes(41), bytes(41), 4)
    assert struct.unpack_from("<Q", data) == (77,) and struct.unpack_from("<7f", data, 596) == tuple(range(7))
    assert (data[1288], data[1289], data[1372]) == (2, 1, 4)


def test_the_error_bits_have_the_fcis_numbers():
    named = {
        "joint_reflex": 6,
        "cartesian_reflex": 7,
        "joint_motion_generator_velocity_discontinuity": 14,
        "communication_constraints_violation": 25,
        "power_limit_violation": 26,
        "controller_torque_discontinuity": 32,
        "instability_detected": 35,
    }
    assert {name: fci.BIT[name] for name in named} == named


def test_a_command_is_read_field_by_field_and_another_size_is_none():
    data = bytearray(371)
    struct.pack_into("<Q", data, 0, 9)
    struct.pack_into("<7d", data, 8, *range(7))
    struct.pack_into("<7d", data, 64, *range(10, 17))
    data[313] = 1
    command = wire.read_command(bytes(data))
    assert command is not None and command.id == 9 and command.finished and not command.torque_finished
    assert command.q.tolist() == list(range(7)) and command.dq.tolist() == list(range(10, 17))
    assert wire.read_command(bytes(370)) is None


def test_a_pose_as_a_matrix_is_column_major_with_a_last_row_of_0_0_0_1():
    half_turn_about_x = wire.matrix((0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0)).reshape(4, 4).T
    assert np.allclose(half_turn_about_x, [[1, 0, 0, 0.1], [0, -1, 0, 0.2], [0, 0, -1, 0.3], [0, 0, 0, 1]])
