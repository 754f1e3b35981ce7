"""A robot's state is read from its bytes as it was packed; that libfranka reads it so too is tested on the emulator."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.drivers.franka import state as fci
from labctl.drivers.franka.emulator import wire as wire
from labctl.drivers.franka.state import Datagram, samples

ANGLES = st.lists(st.floats(-3.0, 3.0, width=32), min_size=7, max_size=7).map(np.array)
QUATERNIONS = (
    st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: q / np.linalg.norm(q))
)


def datagram(number: int = 7, errors: tuple[int, ...] = (), mode: int = fci.IDLE, **fields: np.ndarray) -> Datagram:
    state, bits = wire.StateBuffer(), bytearray(41)
    for name, value in fields.items():
        state.set(name, value)
    for bit in errors:
        bits[bit] = 1
    return Datagram(state.pack(number, wire.NO_GENERATOR, wire.NO_CONTROLLER, bytes(bits), bytes(41), mode))


@settings(deadline=None)
@given(st.integers(0, 2**63), ANGLES, ANGLES, QUATERNIONS)
def test_what_was_packed_is_read(number: int, q: np.ndarray, q_d: np.ndarray, turn: np.ndarray) -> None:
    pose = wire.matrix((0.1, -0.2, 0.3, *turn))
    state = datagram(number, q=q, q_d=q_d, dq=-q, tau_J=2 * q, O_T_EE=pose, O_T_EE_c=pose)
    assert state.number == number and np.array_equal(state.q_d, q_d)
    assert np.allclose(state.pose_c, pose.reshape(4, 4).T, atol=1e-7) and np.array_equal(state.pose_c[3], [0, 0, 0, 1])
    rows = samples([state, state])
    for row in (0, 1):
        assert np.array_equal(rows.q[row], q) and np.array_equal(rows.dq[row], -q)
        assert np.allclose(rows.tau[row], 2 * q, rtol=1e-7)
        assert np.allclose(rows.tcp[row, :3], [0.1, -0.2, 0.3], atol=1e-7)
        assert abs(rows.tcp[row, 3:] @ turn) > 1 - 1e-6 and abs(np.linalg.norm(rows.tcp[row, 3:]) - 1) < 1e-12
    assert np.array_equal(rows.device_s, [number / 1000] * 2)


def test_success_rate_and_external_torques_are_of_each_state() -> None:
    state, outside = wire.StateBuffer(), np.arange(7.0) / 4
    state.set("tau_ext_hat_filtered", outside)
    packed = [state.pack(at, 2, 1, bytes(41), bytes(41), fci.MOVING, rate) for at, rate in enumerate((0.0, 0.5))]
    more = samples([Datagram(data) for data in packed]).more
    assert more.tolist() == [[0.0, *outside], [0.5, *outside]]


def test_modes_and_errors_have_the_clients_names() -> None:
    assert [datagram(mode=mode).mode for mode in range(7)] == list(fci.MODES)
    assert datagram(mode=9).mode == "Other", "what a later robot may say"
    assert datagram().errors == []
    assert datagram(errors=(7, 25)).errors == ["cartesian_reflex", "communication_constraints_violation"]
    assert datagram(errors=(40,)).errors == ["error_40"]


def test_the_external_wrench_is_of_each_state_in_the_base_frame() -> None:
    wrench = np.array([1.0, -2.0, 3.5, 0.25, 0.5, -0.75])
    found = samples([datagram(O_F_ext_hat_K=wrench), datagram()]).wrench
    assert found.tolist() == [wrench.tolist(), [0.0] * 6]
