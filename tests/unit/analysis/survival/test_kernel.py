"""The compiled kernel says what the reference says, the reference what a person would write out by hand."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.statistics.cohorts import NS, TAU_NS, durations, kidney, random_durations

from labctl.analysis.survival import kernel_reference as reference
from labctl.analysis.survival.curves import Durations, rmst_with_error
from labctl.analysis.survival.event_order import EventOrder, event_order
from labctl.analysis.survival.kernel import (
    Given,
    Pool,
    Redraw,
    Request,
    Swap,
    backend,
    moments,
    order_probability,
    pair_values,
)
from labctl.analysis.survival.resample import stream_key

FAST = "labctl.analysis.survival.kernel_fast"
compiled = pytest.importorskip(FAST, reason="no C compiler here; the reference is tested below", exc_type=ImportError)
KEY, OTHER = stream_key(0, "kernel"), stream_key(1, "kernel")
PART = range(7, 47)


def cells(rounded: bool) -> list[Durations]:
    rng = np.random.default_rng(3)
    return [random_durations(rng, n, rounded=rounded) for n in (9, 6, 11)]


def draws(walk: EventOrder) -> dict[str, Given | Redraw | Pool | Swap]:
    rng = np.random.default_rng(4)
    sizes = np.array([9, 6, 11])
    ends = np.cumsum([0, *sizes])
    strata = tuple(np.arange(a, b) for a, b in itertools.pairwise(ends))
    a, b = (rng.integers(0, 3, (60, walk.units)).astype(float) for _ in range(2))
    return {
        "given": Given(a, b),
        "redraw": Redraw((KEY, OTHER, KEY), tuple(sizes.tolist())),
        "pool": Pool(KEY, OTHER, sizes // 2, sizes - sizes // 2),
        "swap": Swap(KEY, strata, (4, 3, 5)),
    }


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("kind", ["given", "redraw", "pool", "swap"])
def test_two_arms_walk_alike_in_both_kernels(kind: str, rounded: bool) -> None:
    walk = event_order(cells(rounded), TAU_NS)
    request = Request(
        walk.steps_until(120 * NS),
        (walk.steps_until(0), walk.steps_until(30 * NS), walk.steps_until(TAU_NS)),
        np.random.default_rng(5).random((walk.units, 2)),
    )
    slow, fast = (k.pair_values(walk, draws(walk)[kind], PART, request) for k in (reference, compiled))
    for name in fast.__dataclass_fields__:
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), abs=1e-12), name


@pytest.mark.parametrize("most", [255, 256, 0.5])
def test_weights_that_no_byte_holds_are_kept_as_they_are(most: float) -> None:
    walk = event_order(cells(rounded=False), TAU_NS)
    weights = np.ones((1, walk.units))
    weights[0, ::3] = most
    slow, fast = (k.moments(walk, Given(weights), range(1)) for k in (reference, compiled))
    assert fast.rmst == pytest.approx(slow.rmst, abs=1e-12)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_moments_and_order_probabilities_agree_in_both_kernels(shared: bool, rounded: bool) -> None:
    groups = [Durations(s.time_ns, s.event, s.episode, 11) for s in cells(rounded)] if shared else cells(rounded)
    draw = Redraw((KEY,), (11,)) if shared else Redraw((KEY, OTHER, KEY), (9, 6, 11))
    walk = event_order(groups, TAU_NS, shared=shared)
    slow, fast = (k.moments(walk, draw, PART) for k in (reference, compiled))
    assert fast.rmst == pytest.approx(slow.rmst, abs=1e-12)
    assert fast.covariance == pytest.approx(slow.covariance, rel=1e-12, abs=1e-10)  # of some 1000 s²
    walk = event_order(groups[:2], TAU_NS, shared=shared)
    draw = Redraw((KEY,), (11,)) if shared else Redraw((KEY, OTHER), (9, 6))
    slow, fast = (k.order_probability(walk, draw, PART) for k in (reference, compiled))
    assert fast.value == pytest.approx(slow.value, abs=1e-12)
    assert fast.variance == pytest.approx(slow.variance, abs=1e-12)


def test_the_compiled_kernel_is_the_one_in_use() -> None:
    assert backend() is compiled


rows = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 3, 5, 8, np.inf]), st.booleans(), st.integers(0, 3)), min_size=1, max_size=14
)
counts = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@settings(deadline=None, max_examples=80)
@given(rows, counts, counts)
def test_weights_are_the_same_as_writing_the_episodes_out(
    found: list[tuple[float, bool, int]], of_a: list[int], of_b: list[int]
) -> None:
    found = [(t, e or np.isinf(t), k) for t, e, k in found]
    s = durations([t for t, _, _ in found], [int(e) for _, e, _ in found], [k for _, _, k in found])
    walk = event_order([Durations(s.time_ns, s.event, s.episode, 4)], 6 * NS)
    a, b = np.array([of_a], dtype=float), np.array([of_b], dtype=float)
    written = [[(t, e) for t, e, k in found for _ in range(side[k])] for side in (of_a, of_b)]
    request = Request(len(walk.group), (walk.steps_until(3 * NS),))
    for kernel in (reference, compiled):
        got = kernel.pair_values(walk, Given(a, b), range(1), request)
        fa, fb = (lambda t, w=w: 1 - survivors(w, t) for w in written)
        times = [0, 1, 2, 3, 5]
        assert got.rmst_a[0, 0] == pytest.approx(area(written[0], 6.0), abs=1e-12)
        assert got.rmst_b[0, 0] == pytest.approx(area(written[1], 6.0), abs=1e-12)
        assert got.sup[0, 0] == pytest.approx(max(abs(fa(t) - fb(t)) for t in times), abs=1e-12)
        assert (got.read_a[0, 0, 0], got.read_b[0, 0, 0]) == pytest.approx((fa(3), fb(3)), abs=1e-12)
        steps = [*times, 6]
        gaps = [abs(fa(t) - fb(t)) * (u - t) for t, u in itertools.pairwise(steps)]
        assert got.area[0, 0] == pytest.approx(sum(gaps), abs=1e-12)
        alone = kernel.moments(walk, Given(a), range(1))
        if written[0]:
            assert alone.rmst[0, 0] == pytest.approx(area(written[0], 6.0), abs=1e-12)
        else:
            assert np.isnan(alone.rmst[0, 0])


def survivors(observations: list[tuple[float, bool]], time: float) -> float:
    """Kaplan and Meier's product, by hand."""
    out = 1.0
    for t in sorted({t for t, e in observations if e and t <= time}):
        out *= 1 - sum(e and u == t for u, e in observations) / sum(u >= t for u, _ in observations)
    return out


def area(observations: list[tuple[float, bool]], tau: float) -> float:
    times = sorted({0.0, tau, *(t for t, _ in observations if t < tau)})
    return sum(survivors(observations, t) * (u - t) for t, u in itertools.pairwise(times))


def test_the_supremum_over_objects_is_of_the_mean_gap_and_only_at_the_end_of_a_tie() -> None:
    # object 1: a at 2 s, b at 4 s; object 2: b at 2 s, a at 4 s. The mean gap is 0 at all times, also within the tie.
    walk = event_order([durations([2, 4], [1, 1]), durations([4, 2], [1, 1])], 10 * NS)
    labels = np.array([[1.0, 0.0, 1.0, 0.0]])
    for kernel in (reference, compiled):
        got = kernel.pair_values(walk, Given(labels, 1 - labels), range(1), Request(len(walk.group)))
        assert got.sup_mean[0] == 0.0 and got.sup[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kernel", [reference, compiled], ids=["reference", "compiled"])
def test_the_covariance_is_that_of_the_derivatives_with_respect_to_the_weights(kernel) -> None:
    s = random_durations(np.random.default_rng(8), 9, rounded=True)
    t = random_durations(np.random.default_rng(9), 9)
    walk, h = event_order([s, t], TAU_NS, shared=True), 1e-5
    nudged = np.concatenate((np.ones((9, 9)) + h * np.eye(9), np.ones((9, 9)) - h * np.eye(9)))
    values = kernel.moments(walk, Given(nudged), range(18)).rmst
    influence = (values[:9] - values[9:]) / (2 * h)
    found = kernel.moments(walk, Given(np.ones((1, 9))), range(1)).covariance[0]
    assert found == pytest.approx(influence.T @ influence, rel=1e-5)
    values = kernel.order_probability(walk, Given(nudged), range(18)).value
    influence = (values[:9] - values[9:]) / (2 * h)
    assert kernel.order_probability(walk, Given(np.ones((1, 9))), range(1)).variance[0] == pytest.approx(
        float((influence**2).sum()), rel=1e-5
    )


def test_the_moments_of_the_kidney_data_are_rs() -> None:
    # facts §2 C4, R survival 3.5.3: residuals(survfit(Surv(time, status) ~ 1), times = 240, type = "rmst"), rowsum(id)
    found = moments(event_order([kidney()], 240 * NS), Given(np.ones((1, 38))), range(1))
    assert found.rmst[0, 0] == pytest.approx(105.8103251410, abs=1e-9)
    assert np.sqrt(found.covariance[0, 0, 0]) == pytest.approx(12.1615700482, abs=1e-9)


def test_order_probability_by_hand() -> None:
    # a: 1, 3, ghost; b: 3, 5+; tau 10. P(a<b) = 1/3·1 + 1/3·(1/2·1/2 + 1/2) + ties of the never-done 1/3·1/2·1/2
    walk = event_order([durations([1, 3, np.inf], [1, 1, 1]), durations([3, 5], [1, 0])], 10 * NS)
    for kernel in (reference, compiled):
        got = kernel.order_probability(walk, Given(np.ones((1, 5))), range(1)).value[0]
        assert got == pytest.approx(1 / 3 + (1 / 4 + 1 / 2) / 3 + 1 / 12, abs=1e-12)
        both = event_order([durations([1, np.inf], [1, 1])] * 2, 10 * NS)
        assert kernel.order_probability(both, Given(np.ones((1, 4))), range(1)).value[0] == pytest.approx(
            0.5, abs=1e-12
        )


@pytest.mark.parametrize("found", [([5], [1]), ([5], [0]), ([3, 5, 7], [0, 0, 0]), ([0, 1, 2], [1, 1, 0])])
def test_the_smallest_cells_have_an_answer(found: tuple[list[float], list[int]]) -> None:
    s = durations(*found)
    walk = event_order([s], 10 * NS)
    for kernel in (reference, compiled):
        got = kernel.moments(walk, Given(np.ones((1, s.episodes))), range(1))
        value, se = rmst_with_error(s, 10 * NS)
        assert (got.rmst[0, 0], got.covariance[0, 0, 0]) == pytest.approx((value, se**2), abs=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads: int) -> None:
    walk = event_order(cells(False), TAU_NS)
    request = Request(len(walk.group))
    for draw in (draws(walk)["swap"], draws(walk)["pool"]):
        one = compiled.pair_values(walk, draw, range(900), request)
        many = pair_values(walk, draw, range(900), request, threads=threads)
        assert all(np.array_equal(getattr(one, n), getattr(many, n)) for n in one.__dataclass_fields__)
    draw = Redraw((KEY, OTHER, KEY), (9, 6, 11))
    many = moments(walk, draw, range(900), threads=threads)
    assert np.array_equal(compiled.moments(walk, draw, range(900)).covariance, many.covariance)
    two = event_order(cells(False)[:2], TAU_NS)
    draw = Redraw((KEY, OTHER), (9, 6))
    assert np.array_equal(
        compiled.order_probability(two, draw, range(900)).variance,
        order_probability(two, draw, range(900), threads=threads).variance,
    )


def test_statistics_make_no_library_until_a_replicate_is_asked_for_and_do_without_a_compiler(tmp_path) -> None:
    code = (
        "import labctl.analysis.operations_table.analyze, labctl.analysis.report.page, sys\n"
        "assert 'labctl.analysis.survival.kernel_build' not in sys.modules\n"
        "from labctl.analysis.survival.kernel import backend\n"
        "print(backend().__name__)\n"
    )
    told = {**os.environ, "CC": "no-such-compiler", "XDG_CACHE_HOME": str(tmp_path)}
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=told).stdout
    assert out.strip() == "labctl.analysis.survival.kernel_reference"
    assert not any(tmp_path.iterdir())
