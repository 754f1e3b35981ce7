"""Figures: the numbers drawn are the numbers written, the bytes repeat, and arms differ without colour."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from labctl.analysis.report import figures
from labctl.analysis.survival.bands import curve_bands

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def case():
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))["result"]


@pytest.fixture(scope="module")
def rows():
    with (HERE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def drawn(case, rows):
    one = case | {"cells": [c for c in case["cells"] if c["object"] in ("towels", "scissors")]}
    looks = figures.looks([a["arm"] for a in case["arms"]], "human")
    bands, _ = curve_bands(one, rows)
    return one, looks, bands, figures.curve_figures(one, looks, bands)


def test_arms_differ_in_dash_and_marker_not_only_in_colour():
    looks = figures.looks(["human", *"abcdef"], "human")
    assert looks["human"] == figures.Look("#000000", "", "")
    for part in ("colour", "dash", "mark"):
        assert len({getattr(look, part) for look in looks.values()}) == 7


def test_there_is_one_panel_per_object_and_the_same_input_gives_the_same_bytes(drawn):
    one, looks, bands, first = drawn
    assert [f.name for f in first] == ["success-towels", "success-scissors"]
    for a, b in zip(first, figures.curve_figures(one, looks, bands), strict=True):
        assert (a.svg, a.png, a.csv) == (b.svg, b.png, b.csv)
        assert "<dc:date>" not in a.svg


def test_the_csv_of_a_panel_holds_the_curve_and_its_band(drawn):
    one, _, _, (panel, _) = drawn
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
    bands, note = curve_bands(case, rows)
    assert len(bands) == 16 and "simultaneous 95 % bands" in note
    wrong = [r | {"time_s": "1.0"} if r["arm"] == "policy-a" else r for r in rows]
    bands, note = curve_bands(case, wrong)
    assert {arm for arm, _ in bands} == {"human", "policy-b", "policy-c"}
    assert "No band for policy-a on" in note
    assert curve_bands(case, []) == ({}, "No bands: the rows behind the curves were not given.")


def test_a_band_holds_the_curve_and_collapses_where_all_episodes_are_alike(case, rows):
    bands, _ = curve_bands(case, rows)
    for cell in case["cells"]:
        times, low, high = bands[cell["arm"], cell["object"]]
        at = np.searchsorted(times, cell["curve"]["t"], side="right") - 1
        inside = (low[at] - 1e-4 <= cell["curve"]["F"]) & (cell["curve"]["F"] <= high[at] + 1e-4)
        assert inside.mean() > 0.95
    twins = [dict(episode=e, arm="x", object="o", kind="success", time_s="7") for e in "abc"]
    one = {"tau": 10.0, "seed": 0, "cells": [{"arm": "x", "object": "o", "curve": {"t": [0, 7], "F": [0, 1]}}]}
    (band,) = curve_bands(one, twins)[0].values()
    assert [part.tolist() for part in band] == [[0, 7, 10], [0, 1, 1], [0, 1, 1]]


def test_the_pp_plot_reads_both_curves_at_the_same_times(case):
    one = {"tau": 10.0, "reference": "human", "cells": [
        {"arm": "human", "object": "o", "curve": {"t": [0, 2, 4], "F": [0, 0.5, 1]}},
        {"arm": "x", "object": "o", "curve": {"t": [0, 3, 12], "F": [0, 0.25, 1]}},
    ]}  # fmt: skip
    (panel,) = figures.pp_figures(one, figures.looks(["human", "x"], "human"))
    points = [tuple(map(float, r[2:])) for r in list(csv.reader(io.StringIO(panel.csv)))[1:]]
    assert points == [(0, 0, 0), (2, 0.5, 0), (3, 0.5, 0.25), (4, 1, 0.25), (10, 1, 0.25)]


def test_without_a_reference_there_is_no_hrt_and_no_pp_figure(case):
    looks = figures.looks(["human", "policy-a"], None)
    bare = case | {"reference": None, "arms": [a | {"hrt": None} for a in case["arms"]]}
    assert figures.hrt_figure(bare, looks) is None
    assert figures.pp_figures(bare, looks) == []


def test_the_hrt_figure_survives_missing_intervals_and_floors(case):
    looks = figures.looks([a["arm"] for a in case["arms"]], "human")
    for gone in ("hrt_ci", "hrt_ci_percentile", "hrt_floor"):
        figure = figures.hrt_figure(case | {"arms": [a | {gone: None} for a in case["arms"]]}, looks)
        assert figure is not None and "policy-c,0.2" in figure.csv
