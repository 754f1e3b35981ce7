"""What servers tell of themselves: by name and unit, wherever it stands, and nothing of it can end an episode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.drivers.policy.server_metadata import (
    CALL_TIMES,
    MODEL_TIMES,
    MOST,
    greatest,
    resources_reported,
    seconds_reported,
)


@pytest.mark.parametrize(
    ("answer", "model_s", "call_s"),
    [
        ({"policy_timing": {"infer_ms": 80.0}}, 0.08, 0.08),
        (
            {"policy_timing": {"infer_ms": 80.0}, "server_timing": {"infer_ms": 95.0, "prev_total_ms": 99.0}},
            0.08,
            0.095,
        ),
        ({"server_timing": {"infer_ms": np.float32(50)}, "policy_timing": {}}, 0.05, 0.05),
        ({"server_timing": {"infer_ms": "fast"}}, math.nan, math.nan),
        ({"server_timing": {"infer_ms": -1.0}, "policy_timing": {"infer_ms": math.inf}}, math.nan, math.nan),
        ({"server_timing": "fast"}, math.nan, math.nan),
        ({}, math.nan, math.nan),
    ],
)
def test_the_models_own_time_and_the_whole_call(answer: dict, model_s: float, call_s: float):
    """openpi's servers tell both: the policy's inference, and the call around it with its transforms."""
    assert seconds_reported(answer, MODEL_TIMES) == pytest.approx(model_s, nan_ok=True)
    assert seconds_reported(answer, CALL_TIMES) == pytest.approx(call_s, nan_ok=True)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"gpu_memory_gib": 2}, {"gpu_memory_mb": 2147.483648}),  # 2 * 2**30 bytes
        ({"resources": {"VRAM_MB": 7100, "num_params": 3_300_000_000}}, {"gpu_memory_mb": 7100, "parameters": 3.3e9}),
        ({"gpu_memory_bytes": np.int64(5e9), "server": {"peak_gpu_memory_gb": 6.5}}, {"gpu_memory_mb": 6500}),
        ({"rss_kb": 4096.0, "model_size_mib": 1}, {"memory_mb": 4.096, "model_mb": 1.048576}),
        ({"gpu_memory": 7100, "memory_total_mb": 9.0, "gpu_memory_mb": True}, {}),  # no unit; unknown; no number
        ({"memory_mb": -1, "model_mb": math.nan, "parameters": "7B", "gpu_memory_mb": 1e300}, {}),
        ({"actions": np.zeros((8, 8)), "far": {"down": {"gpu_memory_mb": 1.0}}}, {}),
        ({7: 1.0, b"gpu": {None: 2.0}}, {}),
    ],
)
def test_a_number_counts_by_its_name_and_unit(table: dict, told: dict):
    assert resources_reported(table) == pytest.approx(told)


def test_of_several_tellings_the_greatest_stays():
    assert greatest({"gpu_memory_mb": 5.0, "parameters": 1.0}, {}, {"gpu_memory_mb": 7.0}) == {
        "gpu_memory_mb": 7.0,
        "parameters": 1.0,
    }


KEYS = (
    st.sampled_from(["gpu_memory_mb", "rss_bytes", "parameters", "policy_timing", "server_timing", "infer_ms"])
    | st.text()
)
VALUES: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()


@given(st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS | st.integers(), VALUES)))
def test_whatever_a_server_says_only_plain_numbers_come_of_it(table: dict):
    times = [seconds_reported(table, names) for names in (MODEL_TIMES, CALL_TIMES)]
    assert all(math.isnan(s) or 0 <= s < MOST for s in times)
    assert all(0 <= number < MOST * 1100 for number in resources_reported(table).values())
