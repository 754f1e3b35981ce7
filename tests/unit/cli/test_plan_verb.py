"""`labctl plan` says where a protocol leaves open what it means to close."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.runs.campaigns import ROOT

from labctl.cli import call


def planned(folder: Path, capsys: pytest.CaptureFixture[str], *lines: str, analysis: str = "") -> str:
    for name in ("protocols", "fixtures"):
        (folder / name).mkdir()
    fixture = "fixtures/two_totes.toml"
    (folder / fixture).write_text((ROOT / fixture).read_text("utf-8"), "utf-8")
    text = (ROOT / "protocols/demo.toml").read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.startswith(("early_end", "stops_count"))]
    at = kept.index("[trial]") + 1
    path = folder / "protocols" / "p.toml"
    told = "\n".join([*kept[:at], *lines, *kept[at:]]) + "\n"
    path.write_text(told.replace("alpha = 0.05\n", f"alpha = 0.05\n{analysis}"), "utf-8")
    assert call(["plan", str(path)]) == 0
    return capsys.readouterr().out


ALL = 'stops_count = ["danger", "contact", "mistaken_key"]'


@pytest.mark.parametrize(
    ("lines", "warned"),
    [((), False), (('early_end = "forbidden"',), True), (('early_end = "forbidden"', ALL), False), ((ALL,), False)],
)
def test_a_mistaken_key_is_a_way_to_end_early_that_is_said_where_early_ends_are_forbidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: tuple[str, ...], warned: bool
) -> None:
    """A protocol forbids early ends since they inform: a stop that counts as the operator's wish is one."""
    out = planned(tmp_path, capsys, *lines)
    assert ("called mistaken key ends an episode early all the same" in out) is warned


@pytest.mark.parametrize(
    ("table", "asked", "warned"),
    [
        ("rmst_ratio = 1.25", "Margin:       RMST ratio 1.25: is every pair equivalent?", True),
        ("rmst_ratio = 3.0", "RMST ratio 3: is every pair equivalent?", False),
        ('rmst_ratio = 1.25\nnon_inferior_to = "policy-a"', "is every other arm non-inferior to policy-a?", True),
    ],
)
def test_a_margin_is_said_and_one_that_so_many_blocks_cannot_show_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, asked: str, warned: bool
) -> None:
    out = planned(tmp_path, capsys, analysis=f"[analysis.margin]\n{table}\n")
    assert asked in out and ("arms that are alike are shown to be so within a ratio of" in out) is warned


def test_without_a_margin_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Margin" not in planned(tmp_path, capsys)


def test_too_few_evenings_for_an_interval_over_further_ones_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = planned(tmp_path, capsys, analysis='random_factors = ["session"]\n')
    assert "an interval over further evenings takes 4; the trials fit in 2: spread them" in " ".join(out.split())
    assert "further evenings" not in planned_again(tmp_path, capsys, "--evenings", "4")


def planned_again(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert call(["plan", str(folder / "protocols" / "p.toml"), *words]) == 0
    return capsys.readouterr().out


def test_cells_have_their_hours_and_days_and_what_a_spread_between_them_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "protocols").mkdir()
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures/two_totes.toml").write_text((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "utf-8")
    text = (ROOT / "protocols/demo.toml").read_text("utf-8")
    kept = [line if not line.startswith("blocks_per") else "blocks_per_condition = 4" for line in text.splitlines()]
    path = tmp_path / "protocols" / "p.toml"
    cells = ["[cells]", 'names = ["north", "south"]', "blocks_per_day = 4"]
    path.write_text("\n".join([*kept, *cells]) + "\n", "utf-8")
    assert call(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Each cell:    8 blocks of north, south, 32 trials: at most" in out
    assert "Each day:" in out and "2 days in each cell" in out
    assert "a report is of these 2; of further ones from 5 cells on." in out
    assert "labctl joint open" in out and "labctl open" not in out
    assert call(["plan", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["cells"]
    assert found["names"] == ["north", "south"] and found["each"]["days"] == 2
    assert all(row["like_these"] is None for row in found["resolvable"]["by_spread"])


def test_where_no_p_is_small_enough_no_ratio_of_times_is_promised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two cells of one block each: the smallest p is .5, and a factor of 4.8 was said to be found with 80 % power."""
    (tmp_path / "protocols").mkdir()
    text = (ROOT / "protocols/demo.toml").read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures"))
    text = text.replace("blocks_per_condition = 3", "blocks_per_condition = 2")
    text = text.replace('["wooden spoons", "towels", "scissors", "batteries"]', '["towels"]')
    path = tmp_path / "protocols" / "p.toml"
    path.write_text(f'{text}\n[cells]\nnames = ["north", "south"]\n', "utf-8")
    assert call(["plan", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "time: no ratio of RMSTs, whatever it is: no p can be as small as that level" in out
    assert "factor of" not in out and "0.1 none - -" in out
    assert call(["plan", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["resolution"]["resolvable"]["rmst_ratio"] is None
    assert {(row["of_these"], row["turned"]) for row in found["cells"]["resolvable"]["by_spread"]} == {(None, None)}


@pytest.mark.parametrize(("reference", "pairs"), [("human", 3), ("policy-a", 3), (None, 6)])
def test_holm_goes_by_the_reference_that_the_protocol_names_and_not_by_who_is_a_person(
    reference: str | None, pairs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person and three policies: 7 blocks reach .0156 of a pair, .047 by Holm over 3 pairs and .094 over all six."""
    changes = {
        'reference = "human"\n': f'reference = "{reference}"\n' if reference else "",
        "blocks_per_condition = 3": "blocks_per_condition = 7",
        '["wooden spoons", "towels", "scissors", "batteries"]': '["towels"]',
    }
    text = (ROOT / "protocols/demo.toml").read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures"))
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "p.toml"
    path.write_text(text, "utf-8")
    assert call(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"by Holm over {pairs} pairs" in out and ("7 blocks cannot reach" in out) is (pairs == 6)
