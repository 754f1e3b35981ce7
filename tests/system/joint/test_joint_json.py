"""Every word of `labctl joint` prints one document with --json, as its schema says, and no arm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.joint.joint_labs import answering, make_labs
from support.json_documents import judged

from labctl.cli import call
from labctl.store.campaign import close_campaign, freeze_campaign

Typed = Callable[..., Any]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """A word of `labctl joint` with --json, in a lab: its document, judged; no arm stands in it."""
    monkeypatch.setenv("LABCTL_WHO", "lee")

    def run(lab: Path, *words: object) -> Any:
        capsys.readouterr()
        code = call(["joint", *map(str, words), "--lab", str(lab), "--json"])
        told = capsys.readouterr()
        assert code == 0, told.err
        assert "policy-a" not in told.out and "human" not in told.out
        return judged(told.out)

    return run


def test_a_cell_s_words_are_documents(tmp_path: Path, typed: Typed) -> None:
    labs = make_labs(tmp_path)
    lab = labs.cells["a"]
    files = (labs.invitation("a"), lab / "protocols/two.toml", "--cell", lab / "cells/cell.toml")
    with answering(labs):
        first, again = typed(lab, "join", *files), typed(lab, "join", *files)
        assert (first["joined_again"], again["joined_again"]) == (False, True)
        assert first["campaign"] == "two-a" and first["commitment"] == again["commitment"]
        folder = Path(first["folder"])
        close_campaign(folder, who="lee", reason="over")
        freeze_campaign(folder, who="lee", unreviewed=True)
        told = typed(lab, "tell", folder)
    assert told["campaign"] == "two-a" and told["said"][0].startswith("the seal host knows that two-a is frozen")


def test_the_seal_host_s_words_are_documents_with_the_head_of_its_journal(tmp_path: Path, typed: Typed) -> None:
    labs = make_labs(tmp_path)
    acts = [
        typed(labs.host, "gone", "two", "b", "--reason", "in repair"),
        typed(labs.host, "back", "two", "b", "--reason", "repaired"),
        typed(labs.host, "gone", "two", "b", "--reason", "for good"),
        typed(labs.host, "give", "two", "--reason", "it will not return"),
        typed(labs.host, "unblind", "two", "--reason", "a trial of the verbs"),
    ]
    assert [one["did"] for one in acts] == ["gone", "back", "gone", "give", "unblind"]
    assert acts[0]["cell"] == "b" and acts[0]["free_blocks"] == acts[1]["blocks"] == 2
    assert acts[3]["parts"] == [{"cell": "a", "part": 2, "blocks": 2}]
    assert acts[4]["early"] is True and acts[4]["reason"] == "a trial of the verbs"
    assert acts[4]["head"] == typed(labs.host, "status", "two")["head"]
    assert [one["head"]["seq"] for one in acts] == sorted({one["head"]["seq"] for one in acts})


def test_a_seal_host_that_serves_prints_where_and_ends_when_it_is_asked_to(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_at_once(put: Callable[[object], None]) -> Callable[[], None]:
        put({"type": "stop"})
        return lambda: None

    monkeypatch.setattr("labctl.runtime.hosting.ending.on_signals", asked_at_once)
    labs = make_labs(tmp_path)
    served = typed(labs.host, "serve", "two")
    assert served["joint"] == "two" and served["address"].startswith("tcp://127.0.0.1:")


def test_a_frozen_part_says_that_its_seal_host_is_told_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABCTL_WHO", "lee")
    labs = make_labs(tmp_path)
    with answering(labs):
        folder = labs.join("a")
    close_campaign(folder, who="lee", reason="over")
    assert call(["freeze", str(folder), "--unreviewed"]) == 0
    assert f"next: labctl joint tell {folder}" in capsys.readouterr().out


@pytest.mark.parametrize("parts", [(), ("two-a",)], ids=["alone", "beside a part"])
def test_a_seal_host_s_name_of_a_campaign_whose_parts_are_elsewhere_is_told_how_to_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], parts: tuple[str, ...]
) -> None:
    labs = make_labs(tmp_path)
    asked = ["report", "two", *parts, "--lab", str(labs.host), "--out", str(tmp_path / "out")]
    assert call(asked) == 2
    assert "name its parts instead, those elsewhere by their paths" in capsys.readouterr().err
