"""Figures: the numbers drawn are the numbers written, the bytes repeat, and arms differ without colour."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from labctl.analysis.report import figures, success_curves
from labctl.analysis.survival import cells
from labctl.analysis.survival.bands import curve_bands
from labctl.analysis.table import table_from_rows

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def case():
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))["result"]


@pytest.fixture(scope="module")
def rows():
    with (HERE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cells_of(rows):
    return cells.cells_of(table_from_rows(rows, extra=True))


@pytest.fixture(scope="module")
def drawn(case, rows):
    one = case | {"cells": [c for c in case["cells"] if c["object"] in ("towels", "scissors")]}
    looks = figures.looks([a["arm"] for a in case["arms"]], "human")
    bands, _ = curve_bands(one, cells_of(rows))
    return one, looks, bands, success_curves.curve_figures(one, looks, bands)


def test_arms_differ_in_dash_and_marker_not_only_in_colour():
    looks = figures.looks(["human", *"abcdef"], "human")
    assert looks["human"] == figures.Look("#000000", "", "")
    for part in ("colour", "dash", "mark"):
        assert len({getattr(look, part) for look in looks.values()}) == 7


def test_there_is_one_panel_per_object_and_the_same_input_gives_the_same_bytes(drawn):
    one, looks, bands, first = drawn
    assert [f.name for f in first] == ["success-macro", "success-towels", "success-scissors"]
    for a, b in zip(first, success_curves.curve_figures(one, looks, bands), strict=True):
        assert (a.svg, a.png, a.csv) == (b.svg, b.png, b.csv)
        assert "<dc:date>" not in a.svg


def test_the_csv_of_a_panel_holds_the_curve_and_its_band(drawn):
    one, _, _, (_, panel, _) = drawn
    found = [r for r in csv.DictReader(io.StringIO(panel.csv)) if r["arm"] == "policy-c"]
    curve = next(c["curve"] for c in one["cells"] if (c["arm"], c["object"]) == ("policy-c", "towels"))
    at = {float(r["t_s"]): float(r["f"]) for r in found}
    for t, f in zip(curve["t"], curve["F"], strict=True):
        assert at[t] == pytest.approx(f, abs=1e-5)
    assert all(float(r["f_low"]) <= float(r["f_high"]) for r in found)


def test_inlined_drawings_share_no_id_and_ask_for_nothing(drawn):
    *_, panels = drawn
    ids = [set(re.findall(r'id="([^"]+)"', panel.inline)) for panel in panels]
    assert ids[0] and not ids[0] & ids[1]
    for panel in panels:
        assert panel.inline.startswith("<svg") and "<metadata" not in panel.inline
        for used in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', panel.inline):
            assert f'id="{"".join(used)}"' in panel.inline
        assert not re.search(r'(href|src)="(?!#)|@import|url\((?!#)', panel.inline)


def test_a_band_is_drawn_only_round_a_curve_the_rows_reproduce(case, rows):
    bands, note = curve_bands(case, cells_of(rows))
    assert len(bands) == 16 and "simultaneous 95 % bands" in note
    wrong = [r | {"time_s": "1.0"} if r["arm"] == "policy-a" else r for r in rows]
    bands, note = curve_bands(case, cells_of(wrong))
    assert {arm for arm, _ in bands} == {"human", "policy-b", "policy-c"}
    assert "No band for policy-a on" in note
    assert curve_bands(case, {}) == ({}, "No bands: the rows behind the curves were not given.")


def test_a_band_holds_the_curve_and_collapses_where_all_episodes_are_alike(case, rows):
    bands, _ = curve_bands(case, cells_of(rows))
    for cell in case["cells"]:
        times, low, high = bands[cell["arm"], cell["object"]]
        at = np.searchsorted(times, cell["curve"]["t"], side="right") - 1
        inside = (low[at] - 1e-4 <= cell["curve"]["F"]) & (cell["curve"]["F"] <= high[at] + 1e-4)
        assert inside.mean() > 0.95
    twins = [dict(episode=e, arm="x", object="o", kind="success", time_s="7") for e in "abc"]
    one = {"tau": 10.0, "seed": 0, "cells": [{"arm": "x", "object": "o", "curve": {"t": [0, 7], "F": [0, 1]}}]}
    (band,) = curve_bands(one, cells_of(twins))[0].values()
    assert [part.tolist() for part in band] == [[0, 7, 10], [0, 1, 1], [0, 1, 1]]


def test_the_pp_plot_reads_both_curves_at_the_same_times(case):
    one = {"tau": 10.0, "reference": "human", "cells": [
        {"arm": "human", "object": "o", "curve": {"t": [0, 2, 4], "F": [0, 0.5, 1]}},
        {"arm": "x", "object": "o", "curve": {"t": [0, 3, 12], "F": [0, 0.25, 1]}},
    ]}  # fmt: skip
    (panel,) = success_curves.pp_figures(one, figures.looks(["human", "x"], "human"))
    points = [tuple(map(float, r[2:])) for r in list(csv.reader(io.StringIO(panel.csv)))[1:]]
    assert points == [(0, 0, 0), (2, 0.5, 0), (3, 0.5, 0.25), (4, 1, 0.25), (10, 1, 0.25)]


def test_without_a_reference_there_is_no_hrt_and_no_pp_figure(case):
    looks = figures.looks(["human", "policy-a"], None)
    bare = case | {"reference": None, "arms": [a | {"hrt": None} for a in case["arms"]]}
    assert figures.hrt_figure(bare, looks) is None
    assert success_curves.pp_figures(bare, looks) == []


@pytest.mark.filterwarnings("error")
def test_where_nobody_moved_anything_the_hrt_figure_is_drawn_without_a_warning(case):
    """All are 100 %, and so is the floor: what is drawn lies at one place, and the axis is none until it is told."""
    looks = figures.looks([a["arm"] for a in case["arms"]], "human")
    alike = {"hrt": 1.0, "hrt_ci": [1.0, 1.0], "hrt_ci_percentile": None, "hrt_floor": 1.0}
    figure = figures.hrt_figure(case | {"arms": [a | alike for a in case["arms"]]}, looks)
    assert "100.0 %" in figure.svg


def test_the_hrt_figure_survives_missing_intervals_and_floors(case):
    looks = figures.looks([a["arm"] for a in case["arms"]], "human")
    for gone in ("hrt_ci", "hrt_ci_percentile", "hrt_floor"):
        figure = figures.hrt_figure(case | {"arms": [a | {gone: None} for a in case["arms"]]}, looks)
        assert figure is not None and "policy-c,0.2" in figure.csv


def of_towels(arm: str, moved: int) -> list[dict[str, str]]:
    """Four episodes of three towels each: `moved` of them move one after 10 s, then the budget of 60 s runs out."""
    done = [dict(episode=f"{arm}{i}", arm=arm, object="towels", kind="success", time_s="10") for i in range(moved)]
    tails = [dict(r, kind="censored", time_s="50") for r in done]
    never = [dict(episode=f"{arm}{i}", arm=arm, object="towels", kind="censored", time_s="60") for i in range(moved, 4)]
    rows = [r for pair in zip(done, tails, strict=True) for r in pair] + never
    return [{**r, "items_staged": "3", "budget_s": "60"} for r in rows]


def test_a_panel_says_what_its_axis_is_what_the_curve_rests_on_and_how_many_items_were_moved():
    # 4 of 12 towels moved, the first each within 10 s: 8 operations, of which 4 are done and 4 open to 50 s; F is .5
    rows = [*of_towels("x", 4), *of_towels("human", 4)]
    counts = {"object": "towels", "operations": 8, "items_moved": 4, "items_staged": 12}
    cells = [{"arm": arm, **counts, "curve": {"t": [0, 10], "F": [0, 0.5]}} for arm in ("human", "x")]
    result = {"tau": 60.0, "reference": "human", "cells": cells}
    looks, risk = figures.looks(["human", "x"], "human"), success_curves.risk_times(result, cells_of(rows))
    (panel,) = success_curves.curve_figures(result, looks, {}, risk)
    text = " ".join(re.findall(r">([^<>]+)<", panel.svg))
    assert "operations done within t, %" in text and "(Kaplan–Meier)" in text and "items moved, %" not in text
    assert text.count("4/12") == 2 and "operations at risk" in text
    table = list(csv.DictReader(io.StringIO(panel.csv)))
    assert [(r["t_s"], r["f"], r["at_risk"]) for r in table if r["arm"] == "x"] == [
        ("0", "0", "8"), ("0", "0", "8"), ("10", "0.5", "8"), ("60", "0.5", "0"),
    ]  # fmt: skip
    others = {**result, "cells": [{**c, "operations": 9} for c in result["cells"]]}
    assert not success_curves.risk_times(others, cells_of(rows))


def test_a_curve_is_pale_from_where_fewer_than_five_operations_carry_it():
    solid, pale = success_curves._split((np.array([0.0, 2, 7, 20]), np.array([0.0, 0.1, 0.4, 0.4])), 5.0)
    assert [part.tolist() for part in (*solid, *pale)] == [[0, 2, 5], [0, 0.1, 0.1], [5, 7, 20], [0.1, 0.4, 0.4]]
    times = np.array([1, 2, 3, 4, 5, 6, 7]) * 10**9
    assert success_curves._few_from([times], 20.0) == 3.0 and success_curves.at_risk(times, 3.0) == 5
    assert success_curves._few_from([times, times[:4]], 20.0) == 4.0
    assert success_curves._few_from([times[:4]], 20.0) == 0.0


def test_the_mean_over_objects_is_drawn_first_and_names_who_missed_one():
    def cell(arm, obj, t, f):
        return {"arm": arm, "object": obj, "curve": {"t": [0, t], "F": [0, f]}}

    cells = [cell("x", "o", 2, 0.5), cell("x", "p", 4, 1.0), cell("y", "o", 3, 0.2)]
    one = {"tau": 10.0, "reference": None, "cells": cells}
    macro, *panels = success_curves.curve_figures(one, figures.looks(["x", "y"], None), {})
    assert (macro.name, len(panels)) == ("success-macro", 2) and "y: of those it met" in macro.title
    points = [(r["arm"], float(r["t_s"]), float(r["f"])) for r in csv.DictReader(io.StringIO(macro.csv))]
    assert points[:4] == [("x", 0, 0), ("x", 2, 0.25), ("x", 4, 0.75), ("x", 10, 0.75)]
    assert points[4:] == [("y", 0, 0), ("y", 3, 0.2), ("y", 10, 0.2)]


def test_a_band_that_says_nothing_is_left_out_and_named():
    t = np.array([0.0, 10.0])
    wide, narrow = (t, np.zeros(2), np.ones(2)), (t, np.array([0.3, 0.3]), np.array([0.6, 0.6]))
    said = success_curves.band_sentence({("x", "o"): wide, ("y", "o"): narrow}, "Shaded: bands.")
    assert said.startswith("Shaded: bands. The 95 % bands of x on o cover more than two thirds of the plane")
    assert "Shaded" not in success_curves.band_sentence({("x", "o"): wide}, "Shaded: bands.")
    assert success_curves.band_sentence({("y", "o"): narrow}, "Shaded: bands.") == "Shaded: bands."


def of(arm: str, obj: str, f: float) -> dict[str, object]:
    return {"arm": arm, "object": obj, "curve": {"t": [0, 5], "F": [0, f]}}


def test_every_pair_without_the_reference_has_its_pp_plot():
    cells = [of(arm, obj, f) for obj in "op" for arm, f in (("human", 1.0), ("a", 0.5), ("b", 0.25))]
    one = {"tau": 10.0, "reference": "human", "cells": cells, "arms": [{"arm": arm} for arm in ("human", "a", "b")]}
    (panel,) = success_curves.arm_pp_figures(one, figures.looks(["human", "a", "b"], "human"))
    assert panel.name == "pp-a-b"
    last = [tuple(r.values()) for r in csv.DictReader(io.StringIO(panel.csv)) if r["t_s"] == "10"]
    assert last == [("a", "b", obj, "10", "0.5", "0.25") for obj in ("o", "p", "Mean over objects")]


def test_objects_whose_names_are_alike_in_latin_letters_keep_a_figure_each():
    objects = ("杯", "碗", "Cup 1", "cup_1", "macro")
    cells = [of(arm, obj, f) for obj in objects for arm, f in (("human", 1.0), ("x", 0.5))]
    one = {"tau": 10.0, "reference": "human", "cells": cells}
    looks = figures.looks(["human", "x"], "human")
    names = [f.name for f in (*success_curves.curve_figures(one, looks, {}), *success_curves.pp_figures(one, looks))]
    assert names[:6] == [
        "success-macro",
        "success-x",
        "success-x-2",
        "success-cup-1",
        "success-cup-1-2",
        "success-macro-2",
    ]
    assert len(set(names)) == len(names) == 11


def test_a_name_with_dollars_is_drawn_as_it_is():
    arm = "$5 %$ and $10"
    one = {"tau": 10.0, "reference": None, "cells": [of(arm, "o", 1.0)]}
    (panel,) = success_curves.curve_figures(one, figures.looks([arm], None), {})
    assert f">{arm}<" in panel.svg
