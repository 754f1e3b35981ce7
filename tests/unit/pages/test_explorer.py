"""The page of every episode is searched by campaign, arm, object, outcome and axis, and by word."""

from __future__ import annotations

import re

from labctl.pages.episode_rows import EpisodeRow, ShownCampaign, render

SOUGHT = {
    "campaign": ("may", "june"),
    "arm": ("human", "swift"),
    "object": ("towels", "cups"),
    "axis": ("none", "light+pose"),
    "outcome": ("success", "partial"),
}


def page(*, views: bool) -> str:
    campaigns = []
    for number in (0, 1):
        cells = {key: values[number] for key, values in SOUGHT.items()}
        view = "rerun.html?of=may/e-1" if views and not number else ""
        one = ShownCampaign(cells["campaign"], masked=False)
        one.rows.append(EpisodeRow({**cells, "episode": f"e-{number}", "view": view}, {}, ()))
        campaigns.append(one)
    return render(campaigns, [], (), ("index.html", "Published")).decode()


def test_each_of_the_five_has_a_choice_of_its_own_with_all_that_there_is() -> None:
    text = page(views=False)
    for key, values in SOUGHT.items():
        (choice,) = re.findall(rf'<select data-filter="{key}">(.*?)</select>', text)
        assert set(re.findall(r'<option value="[^"]+">(.*?)</option>', choice)) == set(values)
        assert all(f'data-{key}="{value}"' in text for value in values), "a row can be told by it"
    assert 'id="find" type="search"' in text and 'id="count" role="status"' in text
    assert "Rerun" not in text


def test_a_page_of_a_site_may_take_a_video_whole_from_its_own_host_and_no_other_page_may() -> None:
    """A host that sends no parts of files left each video where it begins, not at its go."""
    (rule,) = re.findall('Content-Security-Policy" content="([^"]*)"', page(views=False))
    assert "connect-src 'self';" in rule and "blob:; connect-src" in rule
    alone = render([ShownCampaign("may", masked=False)], [], ()).decode()
    assert "connect-src" not in alone and "blob:" not in alone and "createObjectURL" not in alone


def test_a_row_leads_to_its_view_in_rerun_where_there_is_one() -> None:
    text = page(views=True)
    assert re.findall('href="(rerun.html[^"]*)" aria-label="([^"]*)"', text) == [
        ("rerun.html?of=may/e-1", "open e-0 in Rerun")
    ]
    assert text.count('<td data-label="Rerun"') == 2, "the other row's place stays empty"
