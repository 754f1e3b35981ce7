"""Quaternions turn as scipy's rotations do, one at a time and many at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from labctl import rotations

SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return rotations.unit(np.random.default_rng(seed).normal(size=(*shape, 4)))


@given(SEEDS, st.sampled_from([(), (5,)]))
def test_a_product_is_the_turn_b_and_then_a(seed: int, shape: tuple[int, ...]) -> None:
    a, b = drawn(seed, *shape), drawn(seed + 1, *shape)
    found, wanted = rotations.product(a, b), (Rotation.from_quat(a) * Rotation.from_quat(b)).as_quat()
    assert found.shape == a.shape
    assert np.abs(np.abs((found * wanted).sum(axis=-1)) - 1).max() < 1e-12, "q and -q are the same rotation"


@given(SEEDS, st.sampled_from([(), (5,)]))
def test_a_point_is_turned_as_its_matrix_turns_it(seed: int, shape: tuple[int, ...]) -> None:
    q, point = drawn(seed, *shape), np.random.default_rng(seed).normal(size=(*shape, 3))
    assert np.abs(rotations.turned(q, point) - Rotation.from_quat(q).apply(point)).max() < 1e-12
    assert np.abs(rotations.turned(q * rotations.INVERSE, rotations.turned(q, point)) - point).max() < 1e-12


@given(SEEDS)
def test_matrices_are_scipys(seed: int) -> None:
    q = drawn(seed, 5)
    assert np.abs(rotations.matrix(q) - Rotation.from_quat(q).as_matrix()).max() < 1e-12


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-9, 1e-8, 0.1, 3.0, np.pi, 7.0])
def test_a_rotation_vector_of_any_length_has_its_quaternion(angle: float) -> None:
    vector = angle * np.array([[0.6, 0.0, -0.8], [0.0, 1.0, 0.0]])
    found, wanted = rotations.of_vector(vector), Rotation.from_rotvec(vector).as_quat()
    assert np.abs(np.abs((found * wanted).sum(axis=1)) - 1).max() < 1e-12
    assert np.allclose(rotations.of_vector(vector[0]), found[0])


@given(SEEDS, st.floats(0, 1))
def test_between_two_it_goes_the_shorter_way_at_a_steady_speed(seed: int, part: float) -> None:
    a, b = drawn(seed, 1), drawn(seed + 1, 1)
    found = rotations.between(a, b, np.array([[part]]))
    wanted = Slerp([0.0, 1.0], Rotation.from_quat(np.vstack([a, b])))([part]).as_quat()
    assert np.abs(np.abs((found * wanted).sum(axis=1)) - 1).max() < 1e-9
    assert np.allclose(rotations.between(a, a, np.array([[part]])), a), "nor is there a way between a turn and itself"
