"""Every episode of a site in Rerun's viewer, from the record alone; in a publication where it is asked for."""

from __future__ import annotations

import gzip
import hashlib
import re
from base64 import b64encode
from pathlib import Path

import pytest
from support.json_documents import judged
from support.runs.published import FEW, manifest_of
from support.runs.recordings import copied
from support.screens.rerun_files import decoded

from labctl.cli import call
from labctl.errors import BrokenRecord
from labctl.publishing.check import check_published
from labctl.publishing.drawing import draw
from labctl.publishing.rerun_views import PAGE
from labctl.publishing.site import make_site
from labctl.store.verifying.withheld import NOTHING_WITHHELD
from labctl.ui.rerun import viewer_process

pytestmark = pytest.mark.thorough


def test_a_site_shows_each_episode_by_a_page_that_may_speak_to_its_own_host_alone(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["site", str(whole), "--out", str(tmp_path / "s"), "--json"]) == 0
    assert judged(capsys.readouterr().out)["rerun"] == 2
    site = tmp_path / "s"
    page = (site / PAGE).read_text()
    (rule,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in rule and "//" not in rule and "*" not in rule and "'unsafe-eval'" not in rule
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    assert f"'sha256-{b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in rule
    program = (site / "viewer/re_viewer.js").read_bytes()
    assert f'integrity="sha384-{b64encode(hashlib.sha384(program).digest()).decode()}"' in page
    assert not re.search("https?://", page), "no address of another host stands in it"
    assert gzip.decompress((site / "viewer/re_viewer_bg.wasm.gz").read_bytes())[:4] == b"\0asm"
    assert {"LICENSE-MIT", "LICENSE-APACHE", "THIRD_PARTY_NOTICES.md"} < {path.name for path in site.glob("viewer/*")}
    links = re.findall(rf'href="{PAGE}\?of=([^"]+)"', (site / "runs.html").read_text())
    assert len(links) == 2 and all((site / "recordings" / f"{one}.rrd").is_file() for one in links)


def test_what_is_withheld_is_in_no_recording(without: Path, tmp_path: Path) -> None:
    episode = next(one["episode"] for one in manifest_of(without)["withheld"] if one["what"] == "video")
    said: list[str] = []
    made = make_site([without], tmp_path / "s", rerun=500_000_000, say=said.append)
    assert [line.partition(" ")[0] for line in said] == ["1/4", "2/4", "3/4", "3/4", "4/4"], "recordings are one step"
    assert made.views is not None and len(made.views.links) == 2 and made.views.left == 0
    for path in (tmp_path / "s/recordings/trial-run").iterdir():
        entities = decoded(path)
        assert any("joint" in name or "arm" in name for name in entities), "its curves are there"
        assert any("cameras" in name for name in entities) == (path.stem != episode)


def test_recordings_stop_at_the_size_that_is_given(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["site", str(whole), "--out", str(tmp_path / "s"), "--rerun-mb", "2"]) == 0
    assert "1 more do not fit into 2 MB (--rerun-mb)" in capsys.readouterr().out
    assert len(list((tmp_path / "s/recordings").rglob("*"))) == 2, "one campaign's folder, one recording"
    assert call(["site", str(whole), "--out", str(tmp_path / "t"), "--rerun-mb", "0"]) == 0
    assert not (tmp_path / "t" / PAGE).exists() and "Rerun" not in (tmp_path / "t/runs.html").read_text()


def test_a_publication_has_each_episode_for_rerun_where_it_is_asked_for(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = copied(whole.parent, tmp_path / "lab")
    words = ["publish", "trial-run", "--lab", str(lab), "--licence", "CC0-1.0", "--out", str(tmp_path / "p")]
    assert call([*words, "--rerun", "--boot", str(FEW), "--perm", str(FEW)]) == 0
    there = sorted(path.stem for path in (tmp_path / "p/recordings").iterdir())
    assert there == sorted(path.name for path in (tmp_path / "p/campaigns/trial-run/video").iterdir())
    assert "recordings/" in (tmp_path / "p/README.md").read_text()
    checked = check_published(tmp_path / "p")
    assert checked.problems == [] and any("recordings/ shows" in line for line in checked.unchecked)
    assert call(["report", str(tmp_path / "p"), "--out", str(tmp_path / "r")]) == 0
    assert "byte for byte the published report" in capsys.readouterr().out


def test_without_rerun_a_site_is_made_and_says_what_is_left_out(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labctl.cli.publishing.site.find_spec", lambda name: None)
    monkeypatch.setattr(viewer_process, "binary", lambda: pytest.fail("it is not there"))
    assert call(["site", str(whole), "--out", str(tmp_path / "s")]) == 0
    assert "without Rerun's viewer: pip install 'labctl[rerun]'" in capsys.readouterr().out


@pytest.mark.parametrize(
    "about",
    [
        {"intrinsics": "wide", "extrinsics": {"base_from_camera": 3}},
        {"intrinsics": {"fx": "1e400"}, "extrinsics": {"base_from_camera": {"rotation": [1], "translation_m": {}}}},
    ],
)
def test_an_episode_that_no_labctl_wrote_is_refused_in_a_line(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, about: dict[str, object]
) -> None:
    """What a stranger says beside a video, in a record whose every digest holds."""
    monkeypatch.setattr("labctl.viewing.episode.note_beside", lambda path: {"about": about})
    (episode, *_) = sorted(path.name for path in (whole / "campaigns/trial-run/video").iterdir())
    with pytest.raises(BrokenRecord, match="cannot be drawn"):
        draw(whole / "campaigns/trial-run", episode, NOTHING_WITHHELD, tmp_path / "a.rrd")
    assert list(tmp_path.iterdir()) == []


def test_a_driver_that_a_strangers_cell_names_is_not_imported(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of labctl's own alone the options are read; a module of this computer may do anything when it is imported."""
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted/__init__.py").touch()
    (tmp_path / "planted/trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\ndef build(): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    cell = mine / "campaigns/trial-run/cell.toml"
    cell.write_text(cell.read_text().replace('driver = "sim_fr3"', 'driver = "planted.trap:build"'))
    (episode, *_) = sorted(path.name for path in (mine / "campaigns/trial-run/video").iterdir())
    draw(mine / "campaigns/trial-run", episode, NOTHING_WITHHELD, tmp_path / "a.rrd")
    assert (tmp_path / "a.rrd").is_file() and not (tmp_path / "sprung").exists()
    (mine / "published.json").unlink()  # a lab's own
    draw(mine / "campaigns/trial-run", episode, NOTHING_WITHHELD, tmp_path / "b.rrd")
    assert (tmp_path / "sprung").exists(), "the trap works"
