"""A second site against the first's kit: objects, the person's band, assessors on common videos; all of it kept."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from labctl.checks.site.judging import check_objects, check_reference, judge_assessor
from labctl.checks.site.kit import TEMPLATE, SiteKit, parse_kit
from labctl.cli import call
from labctl.core.events import Event
from labctl.errors import InputError
from labctl.people import qualifications as kept
from labctl.people.qualifications import FOLDER, Kind, calibrated, qualifications, write_down

KIT = parse_kit(TEMPLATE, "kit.toml")


def table(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def measured(folder: Path, **more: object) -> Path:
    (folder / "S1.jpg").write_bytes(b"a picture")
    row = {"id": "S1", "length_m": 0.252, "width_m": 0.0452, "height_m": 0.0151, "mass_kg": 0.0315}
    return table(folder / "measured.csv", [{**row, **more}])


def reference(path: Path, mean_s: float, blocks: int = 30, seed: int = 1) -> Path:
    rng = np.random.default_rng(seed)
    times = (mean_s * rng.gamma(9, 1 / 9, blocks)).round(3).tolist()
    return table(
        path,
        [
            {"episode": f"e{i}", "arm": arm, "object": "wooden spoon", "kind": "success", "time_s": time,
             "budget_s": 240.0, "end_s": time, "items_staged": 1, "block": i}
            for i, time in enumerate(times) for arm in ("human",)
        ],
    )  # fmt: skip


def test_the_template_is_a_kit() -> None:
    assert [one.id for one in KIT.object] == ["S1"] and KIT.reference.rmst_ratio == 1.5


def test_an_object_passes_within_the_tolerance_and_with_its_picture(tmp_path: Path) -> None:
    (check,) = check_objects(KIT, measured(tmp_path))
    assert check.level == "ok"
    (tmp_path / "S1.jpg").unlink()
    (check,) = check_objects(KIT, tmp_path / "measured.csv")
    assert (check.level, check.text) == ("fail", "no picture S1.jpg beside measured.csv")


@pytest.mark.parametrize(
    ("more", "text"),
    [({"mass_kg": 0.034}, "mass_kg 0.034, not 0.031 +- 5%"), ({"length_m": 0.26}, "length_m 0.26, not 0.25 +- 3%")],
)
def test_an_object_of_another_size_or_mass_fails_by_its_numbers(
    tmp_path: Path, more: dict[str, float], text: str
) -> None:
    (check,) = check_objects(KIT, measured(tmp_path, **more))
    assert (check.level, check.text) == ("fail", text)


@pytest.mark.parametrize(
    ("more", "text"),
    [({"id": "S9"}, "no object 'S9' in the kit; it has S1"), ({"mass_kg": "heavy"}, "mass_kg is 'heavy'")],
)
def test_a_row_that_is_no_measurement_is_refused_by_line(tmp_path: Path, more: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text) as refused:
        check_objects(KIT, measured(tmp_path, **more))
    assert "measured.csv:2" in str(refused.value)


def test_a_person_like_the_first_sites_is_shown_to_be_within_the_band_and_a_slow_one_is_not(tmp_path: Path) -> None:
    first = reference(tmp_path / "first.csv", 10.0)
    alike = check_reference(KIT, first, reference(tmp_path / "own.csv", 10.0, seed=2))
    assert alike.level == "ok", alike
    slow = check_reference(KIT, first, reference(tmp_path / "slow.csv", 16.0, seed=3))
    assert slow.level == "fail" and slow.text.startswith("RMST of this site over the first's 1.")
    few = check_reference(KIT, first, reference(tmp_path / "few.csv", 10.0, blocks=3, seed=4))
    assert few.level == "fail", "what is not shown does not pass, however near it lies"


def labelled(path: Path, labels: Sequence[object]) -> Path:
    return table(path, [{"episode": f"v{i}", "label": label} for i, label in enumerate(labels)])


def test_an_assessor_passes_by_the_lower_end_of_the_interval(tmp_path: Path) -> None:
    truth = [i % 4 for i in range(40)]
    should = labelled(tmp_path / "reference.csv", truth)
    good = judge_assessor(KIT, should, labelled(tmp_path / "good.csv", [*truth[:-1], 2]))
    assert good["passed"] and good["weighted"] and good["disagreements"] == ["v39"]
    same = judge_assessor(KIT, should, labelled(tmp_path / "same.csv", truth))
    # Clopper and Pearson of 40 of 40: .025 ** (1 / 40) = .9119; chance of four labels alike .25
    assert same["kappa"] == 1.0 and same["interval"] == pytest.approx([(0.9119 - 0.25) / 0.75, 1.0], abs=2e-4)
    wild = [(i * 7) % 4 if i % 3 else i % 4 for i in range(40)]
    poor = judge_assessor(KIT, should, labelled(tmp_path / "poor.csv", wild))
    assert not poor["passed"] and "the lower end of the interval is" in poor["why"]


def test_words_are_held_by_plain_kappa_and_too_few_or_like_videos_pass_nobody(tmp_path: Path) -> None:
    words = ["moved", "lost", "moved", "open"] * 10
    should = labelled(tmp_path / "reference.csv", words)
    found = judge_assessor(KIT, should, labelled(tmp_path / "words.csv", words))
    assert found["passed"] and not found["weighted"]
    few = labelled(tmp_path / "few.csv", words[:12])
    assert judge_assessor(KIT, few, few)["why"] == "12 episodes, and the kit asks for 40"
    alike = labelled(tmp_path / "alike.csv", ["moved"] * 40)
    assert judge_assessor(KIT, alike, alike)["why"].startswith("the reference's labels do not vary")


@pytest.mark.parametrize(
    ("labels", "text"),
    [(["a"] * 3, "episode v3 has no label"), (["a"] * 5, "episode v4 is none of the reference's")],
)
def test_labels_of_other_videos_are_refused(tmp_path: Path, labels: list[str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        judge_assessor(KIT, labelled(tmp_path / "r.csv", ["a"] * 4), labelled(tmp_path / "l.csv", labels))


def test_every_try_is_kept_and_who_passed_once_has_passed_since_then(tmp_path: Path) -> None:
    for passed in (False, True, False):
        body = {"person": "p9", "passed": passed, "kappa": 0.7, "interval": [0.5, 0.9]}
        write_down(tmp_path, Kind.ASSESSOR, body, who="lee")
    events = qualifications(tmp_path)
    found = calibrated(events)["p9"]
    assert (found["tries"], found["passed"], found["since"]) == (3, True, events[1].wall)


def test_a_first_entry_that_was_broken_off_leaves_nothing_and_the_next_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `kill -9` leaves it, between the journal's entry and the head beside it."""
    body = {"person": "p9", "passed": True, "kappa": 0.7, "interval": [0.5, 0.9]}

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as held:
        held.setattr("labctl.people.qualifications.append_head", killed)
        with pytest.raises(KeyboardInterrupt):
            write_down(tmp_path, Kind.ASSESSOR, body, who="lee")
    assert qualifications(tmp_path) == []
    write_down(tmp_path, Kind.ASSESSOR, body, who="lee")
    assert [event.seq for event in qualifications(tmp_path)] == [1]


def test_entries_are_read_while_somebody_writes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"person": "p9", "passed": True, "kappa": 0.7, "interval": [0.5, 0.9]}
    write_down(tmp_path, Kind.ASSESSOR, body, who="lee")
    read = kept.events_of

    def then_another_is_written(folder: Path) -> list[Event]:
        found = read(folder)
        monkeypatch.setattr(kept, "events_of", read)
        write_down(tmp_path, Kind.ASSESSOR, body, who="lee")
        return found

    monkeypatch.setattr(kept, "events_of", then_another_is_written)
    assert len(qualifications(tmp_path)) == 1


def test_the_verb_writes_down_what_it_found_and_ends_with_1_where_it_is_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lab.toml").touch()
    lab, kit = ["--lab", str(tmp_path)], tmp_path / "kit.toml"
    assert call(["qualify", "new", str(kit)]) == 0
    assert call(["qualify", "new", str(kit)]) == 2
    should = labelled(tmp_path / "reference.csv", [i % 3 for i in range(40)])
    wrong = labelled(tmp_path / "wrong.csv", [(i + 1) % 3 for i in range(40)])
    assert call(["qualify", "assessor", str(kit), str(should), str(wrong), "--person", "p9", *lab]) == 1
    assert "p9 does not pass: the lower end" in capsys.readouterr().out
    assert call(["qualify", "assessor", str(kit), str(should), str(should), "--person", "p9", "--json", *lab]) == 0
    assert json.loads(capsys.readouterr().out)["assessor"]["passed"]
    assert call(["qualify", "list", *lab]) == 0
    assert "p9: passed, since" in capsys.readouterr().out
    assert (tmp_path / FOLDER / "journal.db").is_file()
    assert isinstance(KIT, SiteKit)
