"""What a stranger's journal says of its joint campaign, before a file is named by it or blocks are counted by it."""

from __future__ import annotations

from typing import Any

import pytest

from labctl.publishing.cells.check import is_formed

GOOD: dict[str, Any] = {
    "name": "two",
    "cell": "a",
    "part": 1,
    "cells": ["a", "b"],
    "blocks": [0, 2],
    "of": 4,
    "commitment": "5ed7",
    "head": {"seq": 1, "hash": "ab"},
}
BAD: list[dict[str, Any]] = [
    *({"name": name} for name in ("../x", "", "a/b", "a\x1b[2J", 3, None)),
    *({"cell": cell} for cell in ("c", "..", ["a"])),
    *({"cells": cells} for cells in ("ab", ["a", "../b"], ["a", 3], {"a": 1})),
    *({"of": of} for of in (10**12, -1, True, "4", 4.0)),
    *({"blocks": blocks} for blocks in ([4], [-1], ["0"], [[0]], 0)),
    *({"head": head} for head in ({}, {"seq": "1", "hash": "ab"}, {"seq": 1}, [])),
    *({"part": part} for part in ("1", None, 10**9)),
    {"commitment": 5},
]


@pytest.mark.parametrize("said", BAD, ids=str)
def test_what_labctl_never_writes_of_a_joint_campaign_is_none(said: dict[str, Any]) -> None:
    assert is_formed(GOOD) and not is_formed({**GOOD, **said})


@pytest.mark.parametrize("key", GOOD)
def test_a_part_that_leaves_something_out_is_none(key: str) -> None:
    assert not is_formed({name: value for name, value in GOOD.items() if name != key})
    assert not is_formed(None) and not is_formed([GOOD])
