"""A site of published campaigns: ranked through anchors only, every string is text, nothing is asked of anybody."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.json_documents import judged
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.runs.published import FEW, altered, forged, listed, request
from support.runs.recordings import Recordings, copied, digests

from labctl.cli import call
from labctl.core.events import Event, Kind
from labctl.errors import BrokenRecord, InputError
from labctl.publishing.again import report_linked_published
from labctl.publishing.publish import publish
from labctl.publishing.site import make_site
from labctl.runtime.campaign_run import run_campaign
from labctl.store.opened_body import text_digest

pytestmark = pytest.mark.thorough
FROZEN = policy("frozen", skill="steady")
HTML = "<img src=x onerror=alert(1)><script>alert(2)</script>&\"'"
ATOM = "{http://www.w3.org/2005/Atom}"


def three(lab: Path) -> Path:
    """Campaigns may and june, which was opened linked to may, and elsewhere, linked to none: published in lab/p."""

    def ended(folder: Path) -> Path:
        run_campaign(folder, lambda line: None, manual=True)
        unblind(folder)
        publish(folder, lab / "p" / folder.name, request())
        return folder

    size = {"blocks": 3, "items": 1, "budget": 30.0}
    may = ended(make_campaign(lab, [HUMAN, FROZEN, policy("swift", skill="swift")], name="may", **size).folder)
    again = {"extends": may, "anchors": ["human", "frozen"]}
    ended(make_campaign(lab, [HUMAN, FROZEN, policy("slow", skill="slow")], name="june", **size, **again).folder)
    ended(make_campaign(lab, [HUMAN, policy("swift", skill="swift")], name="elsewhere", items=1, budget=30.0).folder)
    return lab / "p"


@pytest.fixture
def folders(recordings: Recordings) -> Path:
    return recordings.of(three)


class Reader(HTMLParser):
    """What a browser would load or run of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_arms_are_ranked_through_anchors_and_the_page_says_why_others_are_not(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(folders / name) for name in ("elsewhere", "june", "may")]
    assert call(["site", *words, "--out", str(tmp_path / "s"), "--address", "https://lab.example/r", "--json"]) == 0
    assert judged(capsys.readouterr().out)["boards"] == [["may", "june"]]
    made = make_site([Path(word) for word in words], tmp_path / "again")
    assert (tmp_path / "s/index.html").read_bytes() == (tmp_path / "again/index.html").read_bytes()
    (board,) = made.boards.boards
    assert set(board.campaigns) == {"may", "june"} and board.reference == "human"
    places = {place.arm: place for place in board.places}
    assert board.places[0].arm == "human" and places["human"].ratio == 1
    assert set(places) == {"human", "frozen", "swift", "slow"}, "an anchor has one place"
    assert places["frozen"].campaign == "may" and places["frozen"].also == ("june",)
    report = json.loads((tmp_path / "s/reports/june/report.json").read_text())["result"]
    rmst = {arm["arm"]: arm["rmst"] for arm in report["arms"]}
    assert places["slow"].ratio == pytest.approx(rmst["slow"] / rmst["human"])
    assert made.boards.apart == {"elsewhere": "linked to no other campaign of this site"}
    text = Reader((tmp_path / "s/index.html").read_text()).text
    assert "elsewhere" in text.partition("Not ranked")[2] and "linked to no other campaign" in text
    feed = ElementTree.parse(tmp_path / "s/feed.xml").getroot()
    assert len(feed.findall(f"{ATOM}entry")) == 3
    links = {link.get("href") for entry in feed.findall(f"{ATOM}entry") for link in entry.findall(f"{ATOM}link")}
    assert "https://lab.example/r/reports/may/report.html" in links


def test_a_link_to_another_record_of_that_name_ranks_nothing(folders: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    other = make_campaign(lab, [HUMAN, FROZEN], name="may", items=1, budget=30.0).folder
    run_campaign(other, lambda line: None, manual=True)
    unblind(other)
    publish(other, tmp_path / "may", request())
    made = make_site([tmp_path / "may", folders / "june"], tmp_path / "s")
    assert made.boards.boards == []
    assert made.boards.apart["june"] == "it was linked to another may: the one here has no such head"
    alone = make_site([folders / "june"], tmp_path / "t")
    assert alone.boards.apart["june"] == "it was opened linked to may, which is not in this site"


def test_an_anchor_that_was_made_another_policy_joins_nothing(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes a record anew can call any policy by an anchor's name; both opened protocols lie there."""
    june = shutil.copytree(folders / "june", tmp_path / "june")
    monkeypatch.setattr("support.runs.published.AT", "campaigns/june")
    protocol = june / "campaigns/june/seal/protocol.toml"
    text = protocol.read_text("utf-8").replace('skill = "steady"', 'skill = "clumsy"', 1)
    assert text != protocol.read_text("utf-8")
    protocol.write_text(text, "utf-8")
    listed(june, "campaigns/june/seal/protocol.toml")

    def another(event: Event) -> Event:
        if event.kind != Kind.CAMPAIGN_OPENED:
            return event
        return replace(event, body={**event.body, "protocol": {**event.body["protocol"], "sha256": text_digest(text)}})

    forged(june, another)
    (board,) = make_site([folders / "may", june], tmp_path / "s").boards.boards
    said = "frozen of june is not the frozen of may"
    assert any(said in note and "joins nothing" in note for note in board.notes)
    assert {place.campaign for place in board.places if place.arm == "frozen"} == {"may", "june"}
    assert said in report_linked_published([folders / "may", june], tmp_path / "r").read_text("utf-8")
    whole = report_linked_published([folders / "may", folders / "june"], tmp_path / "q").read_text("utf-8")
    assert "is not the" not in whole


def test_no_page_asks_another_host_or_holds_a_link_that_leads_nowhere(folders: Path, tmp_path: Path) -> None:
    make_site([folders / "may", folders / "june"], tmp_path / "s")
    for page in (tmp_path / "s").rglob("*.html"):
        read = Reader(page.read_text())
        policies = [of for tag, of in read.tags if of.get("http-equiv") == "Content-Security-Policy"]
        assert policies and "default-src 'none'" in str(policies[0]["content"]), page
        for _, of in read.tags:
            for key in ("src", "href", "data-src"):
                value = (of.get(key) or "").partition("#")[0]
                assert "//" not in value, (page, value)
                if value and not value.startswith("data:"):
                    assert (page.parent / value).is_file(), (page, value)


def test_html_in_every_string_is_text(tmp_path: Path) -> None:
    arms = [HUMAN, policy(HTML.replace('"', "'"), skill="swift")]
    said = {'question = "a test"': f"question = '''{HTML}'''", 'instruction = "Move': f"instruction = '''{HTML} Move"}
    said['the items."'] = "the items.'''"
    folder = make_campaign(tmp_path / "lab", arms, items=1, budget=6.0, protocol=said).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    made = publish(folder, tmp_path / "p", request(title=HTML, creator=HTML, dataset=HTML))
    make_site([made.folder], tmp_path / "s", title=HTML)
    pages = [*(tmp_path / "s").rglob("*.html"), *(tmp_path / "p").rglob("*.html")]
    assert len(pages) == 6
    for page in pages:
        read = Reader(page.read_text())
        assert not [of for tag, of in read.tags if "onerror" in of or of.get("src") == "x"], page
        scripts = page.read_text().count("<script>")
        assert scripts <= 1 and "alert(2)</script>" not in page.read_text(), page
    assert "alert(2)" in Reader((tmp_path / "s/index.html").read_text()).text, "it is there, as text"
    for card in (tmp_path / "p/README.md", tmp_path / "p/report/report.md"):
        assert not re.search(r"(?<!\\)<(img|script)", card.read_text()), card
    ElementTree.parse(tmp_path / "s/feed.xml")


TEXTS = {
    *("question", "notes", "reason", "handover", "client", "model", "labctl", "python", "code", "commit", "setter"),
    *("operator", "arm_mode", "text", "why", "driver", "software", "format", "source", "serial"),
}
"""Keys of entries that hold words for people: none of them decides what is done."""
WORDS_OF = {"reason": ("RunStopped", "CampaignClosed", "CampaignFrozen")}


def with_html(value: Any, kind: str) -> Any:
    """What an entry says, with HTML in each of its words for people."""
    if isinstance(value, dict):
        words = {
            key: HTML if isinstance(one, str) and key in TEXTS and kind in WORDS_OF.get(key, (kind,)) else one
            for key, one in value.items()
        }
        words |= {"packages": {HTML: HTML, **value["packages"]}} if "packages" in value else {}
        return {key: with_html(one, kind) for key, one in words.items()}
    return [with_html(one, kind) for one in value] if isinstance(value, list) else value


def spoilt(event: Event) -> Event:
    """But for the opened seal, whose values have digests in other entries."""
    body = event.body if event.kind == Kind.CAMPAIGN_UNBLINDED else with_html(event.body, event.kind)
    return replace(event, who=HTML, body=body)


def test_html_in_every_word_of_a_journal_that_was_chained_anew_is_text(mine: Path, tmp_path: Path) -> None:
    forged(mine, spoilt)
    made = make_site([mine], tmp_path / "s")
    pages = [*(tmp_path / "s").rglob("*.html")]
    assert made and len(pages) > 2
    for page in pages:
        read = Reader(page.read_text("utf-8"))
        assert not [of for _, of in read.tags if "onerror" in of or of.get("src") == "x"], page
        assert "alert(2)</script>" not in page.read_text("utf-8"), page
    assert any("alert(2)" in Reader(page.read_text("utf-8")).text for page in pages), "it is there, as text"
    assert not re.search(r"(?<!\\)<(img|script)", (tmp_path / "s/reports/trial-run/report.md").read_text("utf-8"))
    ElementTree.parse(tmp_path / "s/feed.xml")


def test_a_page_that_a_publisher_made_is_not_copied(folders: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(folders / "may", tmp_path / "may")
    (mine / "report/report.html").write_text("<script>alert(1)</script>")
    listed(mine, "report/report.html")
    make_site([mine], tmp_path / "s")
    assert "alert(1)" not in (tmp_path / "s/reports/may/report.html").read_text()


def test_a_folder_that_does_not_hold_makes_no_site(folders: Path, tmp_path: Path) -> None:
    mine = copied(folders / "may", tmp_path / "may")
    altered(mine, "campaigns/may/journal.db", "DELETE FROM event WHERE seq > 20")
    with pytest.raises(BrokenRecord):
        make_site([folders / "june", mine], tmp_path / "s")
    with pytest.raises(InputError, match="a site has each name once"):
        make_site([folders / "june", folders / "june"], tmp_path / "s")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/a.tex").touch()
    with pytest.raises(InputError, match=r"no site of labctl's"):
        make_site([folders / "june"], tmp_path / "thesis", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["may", "thesis"]


def test_two_linked_campaigns_are_reported_from_their_folders_as_in_the_lab(
    folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same comparison through anchors, and the same bytes from the same folders, whichever is named first."""
    lab, may, june = folders.parent, str(folders / "may"), str(folders / "june")
    assert call(["report", may, june, "--out", str(tmp_path / "a")]) == 0
    assert call(["report", june, may, "--out", str(tmp_path / "b")]) == 0
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    words = ["report", "may", "june", "--lab", str(lab), "--out", str(tmp_path / "lab")]
    assert call([*words, "--boot", str(FEW), "--perm", str(FEW)]) == 0
    here, there = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("a", "lab"))
    assert here["lab"]["linked"] == there["lab"]["linked"] and here["lab"]["linked"]
    assert here["result"] == there["result"]
    assert call(["report", may, "june", "--lab", str(lab), "--out", str(tmp_path / "c")]) == 2
    assert "publish both, or name both in the lab" in capsys.readouterr().err
    assert call(["report", may, str(folders / "elsewhere"), "--out", str(tmp_path / "c")]) == 1
    assert "share no anchor" in capsys.readouterr().err
    assert call(["report", may, june, "--out", str(folders / "may/report/x")]) == 2
