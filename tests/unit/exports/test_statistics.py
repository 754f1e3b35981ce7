"""Statistics as numpy gives them, and of pictures as if every level had been kept."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labctl.exports.statistics import QUANTILES, Histogram, of_columns

numbers = st.floats(-1e6, 1e6, width=32)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=numbers))
def test_columns_have_numpys_statistics(values: np.ndarray) -> None:
    found = of_columns(values)
    wanted = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
    wanted |= {name: np.quantile(values, share, axis=0) for name, share in QUANTILES.items()}
    assert found.pop("count") == [len(values)] and set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-6)


def test_what_is_not_a_number_does_not_count() -> None:
    found = of_columns(np.array([[np.nan, np.nan], [1.0, np.nan], [3.0, np.nan]]))
    assert (found["min"], found["max"], found["mean"]) == ([1.0, 0.0], [3.0, 0.0], [2.0, 0.0])
    assert of_columns(np.array([1, 2, 6]))["mean"] == [3.0]


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_pictures_have_the_statistics_of_their_levels(seed: int, pictures: int) -> None:
    drawn = np.random.default_rng(seed).integers(0, 256, (pictures, 8, 6, 3), dtype=np.uint8)
    whole = Histogram()
    for picture in drawn:
        one = Histogram()
        one.add(picture)
        whole.merge(one)
    found, levels = whole.stats(), drawn.reshape(-1, 3) / 255
    assert found["count"] == [pictures] and np.shape(found["mean"]) == (3, 1, 1)
    for name, value in (("min", levels.min(0)), ("max", levels.max(0)), ("mean", levels.mean(0))):
        np.testing.assert_allclose(np.ravel(found[name]), value, atol=1e-12)
    np.testing.assert_allclose(np.ravel(found["std"]), levels.std(0), atol=1e-9)
    exact = np.quantile(levels, 0.5, axis=0, method="inverted_cdf")
    np.testing.assert_allclose(np.ravel(found["q50"]), exact, atol=1e-12)
