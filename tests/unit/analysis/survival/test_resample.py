"""Replicates are a pure function of seed, names, replicate and draw."""

from __future__ import annotations

import itertools
import sys

import numpy as np

from labctl.analysis.survival.resample import (
    PART,
    Exchange,
    all_swaps,
    design_labels,
    hashes,
    multiplicities,
    parts_of,
    random_swaps,
    stream_key,
    swap_count,
)

MASK = (1 << 64) - 1


def splitmix64(state: int) -> int:
    """One output of Vigna's reference splitmix64.c, state already advanced."""
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_words_are_splitmix64_at_their_counter() -> None:
    key = stream_key(7, "boot", "a", "cup")
    words = hashes(key, range(3, 5), range(2))
    for i, j in itertools.product(range(2), range(2)):
        counter = ((3 + i) << 24) + j + 1
        assert int(words[i, j]) == splitmix64((int(key) + counter * 0x9E3779B97F4A7C15) & MASK)


def test_splitmix64_gives_its_published_first_output() -> None:
    # splitmix64 seeded with 1234567: first output 6457827717110365317 (Rosetta Code, Vigna's splitmix64.c)
    assert int(hashes(np.uint64(1234567), range(1), range(1))[0, 0]) == 6457827717110365317


def test_the_order_in_which_replicates_are_asked_for_changes_nothing() -> None:
    key = stream_key(0, "boot", "a", "cup")
    whole = multiplicities(key, range(100), 13, 13)
    parts = [multiplicities(key, r, 13, 13) for r in (range(60, 100), range(60))]
    assert np.array_equal(whole, np.concatenate(parts[::-1]))
    assert (whole.sum(axis=1) == 13).all()


def test_seeds_and_names_give_other_draws() -> None:
    keys = {int(stream_key(*k)) for k in ((0, "a", "b"), (1, "a", "b"), (0, "ab"), (0, "b", "a"))}
    assert len(keys) == 4


def test_every_episode_is_drawn_about_equally_often() -> None:
    counts = multiplicities(stream_key(0, "x"), range(20_000), 7, 7).mean(axis=0)
    assert np.abs(counts - 1).max() < 4 * np.sqrt(6 / 7 / 20_000)  # 4 standard errors of a multinomial mean


def test_swaps_keep_the_number_of_labels_in_every_block_and_are_uniform() -> None:
    strata = [np.array([0, 1]), np.array([2, 3]), np.array([4, 5, 6])]
    chosen = np.array([1, 0, 0, 1, 1, 0, 0], dtype=bool)
    everything = all_swaps(strata, chosen)
    assert len(everything) == swap_count(strata, chosen) == 2 * 2 * 3
    assert len(np.unique(everything, axis=0)) == 12
    assert all((everything[:, s].sum(axis=1) == chosen[s].sum()).all() for s in strata)
    drawn = random_swaps(stream_key(0, "swap"), range(12_000), strata, (1, 1, 1), 7)
    for s in strata:
        assert (drawn[:, s].sum(axis=1) == chosen[s].sum()).all()
    share = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(share) == 12 and np.abs(share - 1000).max() < 4 * np.sqrt(12_000 * (1 / 12) * (11 / 12))


def test_a_choice_from_a_large_stratum_is_uniform_too() -> None:
    drawn = random_swaps(stream_key(0, "swap"), range(12_000), [np.arange(3, 8)], (2,), 9)
    assert (drawn.sum(axis=1) == 2).all() and not drawn[:, :3].any() and not drawn[:, 8].any()
    share = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(share) == 10 and np.abs(share - 1200).max() < 4 * np.sqrt(12_000 * 0.1 * 0.9)


def test_draws_later_in_a_stream_are_other_draws() -> None:
    key = stream_key(0, "x")
    whole = multiplicities(key, range(9), 5, 7)
    parts = multiplicities(key, range(9), 5, 3), multiplicities(key, range(9), 5, 4, first_draw=3)
    assert np.array_equal(whole, parts[0] + parts[1])


def designed(squares: int) -> tuple[list[Exchange], list[str], np.ndarray]:
    """Exchanges of two blocks each, and two arms' units in those blocks, the first arm's first."""
    exchanges: list[Exchange] = [((f"{2 * n}", f"{2 * n + 1}"), ((0, 0), (1, 0), (0, 1))) for n in range(squares)]
    blocks = [str(block) for _ in "ab" for block in range(2 * squares)]
    return exchanges, blocks, np.arange(4 * squares) < 2 * squares


def test_a_label_moves_where_the_way_drawn_for_its_block_says_so() -> None:
    exchanges, blocks, is_a = designed(5)
    blocks[3] = "of no exchange"
    key = stream_key(1, "schedule", "a", "b")
    drawn = design_labels(exchanges, blocks, is_a, key, range(7, 40))
    words = hashes(key, range(7, 40), range(len(exchanges)))
    for row, labels in enumerate(drawn):
        way = {}
        for n, (names, options) in enumerate(exchanges):
            # the high half of the word times the number of ways, as `below` has it
            way |= zip(names, options[(int(words[row, n]) >> 32) * len(options) >> 32], strict=True)
        assert labels.tolist() == [bool(was ^ way.get(block, 0)) for was, block in zip(is_a, blocks, strict=True)]


def test_labels_of_twice_the_blocks_take_twice_the_work_and_not_four_times() -> None:
    def calls(squares: int) -> int:
        made: list[str] = []
        given = designed(squares)
        before = sys.getprofile()
        sys.setprofile(lambda frame, what, more: made.append(what))
        try:
            design_labels(*given, stream_key(0, "x"), range(16))
        finally:
            sys.setprofile(before)
        return len(made)

    assert calls(200) < 2.1 * calls(100)


def test_replicates_in_parts_are_all_of_them_once() -> None:
    for replicates in (0, 1, PART, PART + 1, 9999):
        assert [one for part in parts_of(replicates) for one in part] == list(range(replicates))
    assert max(map(len, parts_of(9999))) == PART
