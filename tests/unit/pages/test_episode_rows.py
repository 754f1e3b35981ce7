"""Parts of a joint campaign on a page of episodes: what masks them together, their names, and what is not there."""

from __future__ import annotations

import re
from typing import Any

from labctl.messages.joint import JointPart
from labctl.pages.episode_rows import EpisodeRow, ShownCampaign, cells_away, mask_together, render


def shown(cell: str, *, part: int = 1, masked: bool = False, joint: str = "two", **seen: Any) -> ShownCampaign:
    """A part with one episode, whose arm is known."""
    of: JointPart = {
        "name": joint,
        "cell": cell,
        "part": part,
        "cells": ("a", "b"),
        "blocks": (0, 1),
        "of": 4,
        "commitment": f"sealed-{joint}",
        "head": {"seq": 1, "hash": ""},
    }
    one = ShownCampaign(f"{joint}-{cell}{'' if part == 1 else f'-{part}'}", masked, of)
    row = {"campaign": one.name, "cell": cell, "episode": f"e-{cell}{part}", **seen}
    one.rows.append(EpisodeRow(row, {"arm": f"arm-{cell}{part}"}, (), "a visitor" if seen else ""))
    return one


def page(*parts: ShownCampaign) -> str:
    mask_together(parts)
    return render(parts, cells_away(parts), ()).decode()


def test_cells_whose_arms_were_drawn_apart_are_masked_apart() -> None:
    text = page(shown("a"), shown("b", masked=True))
    assert "arm-a1" in text and "arm-b1" not in text and "two-b: masked" in text


def test_where_a_block_went_to_another_cell_one_masked_part_masks_all_of_its_campaign() -> None:
    """The arms of a block that was given away were drawn with those that its first cell kept."""
    for masked in ("a", "b"):
        own = [shown("a", masked=masked == "a"), shown("a", part=2), shown("b", masked=masked == "b")]
        text = page(*own, shown("a", joint="other"))
        assert "arm-a2" not in text and "arm-b1" not in text and "two-a, two-a-2, two-b: masked" in text
        assert text.count("arm-a1") > 0, "another joint campaign is another seal"
    assert "arm-a2" in page(shown("a"), shown("a", part=2), shown("b")), "and none is masked, where none was"


def test_parts_of_one_campaign_go_by_its_name_and_by_their_cells() -> None:
    text = page(shown("a"), shown("b"))
    assert "<h1>two: episodes</h1>" in text and 'data-sort="campaign"' not in text and 'data-sort="cell"' in text
    further = page(shown("a"), shown("a", part=2), shown("b"))
    assert "<h1>two: episodes</h1>" in further and 'data-filter="campaign"' in further, "two parts of one cell"
    beside = page(shown("a"), shown("b"), shown("a", joint="other"))
    assert "<h1>two · other-a: episodes</h1>" in beside and 'data-filter="campaign"' in beside
    assert "<h1>two-a: episodes</h1>" in page(shown("a")), "a part by itself by its own"


def test_videos_of_each_part_have_a_place_of_their_own() -> None:
    places = [one.place() for one in (shown("a"), shown("a", part=2), shown("b"), ShownCampaign("one", masked=False))]
    assert places == ["a/", "a/2/", "b/", ""]


def test_a_cell_that_is_not_there_is_named_once_for_each_campaign() -> None:
    parts = [shown("a"), shown("a", part=2), shown("a", joint="other"), shown("b", joint="other")]
    assert cells_away(parts) == ["cell b of two is not on this page: its folder was not given"]


def test_why_there_is_no_video_stands_in_its_row() -> None:
    (said,) = re.findall('<td class="films"><div[^>]*>(.*?)</div>', page(shown("a", block=1)))
    assert said == "no video: a visitor"
