"""What sensors measured is drawn by arm and episode; no peak is lost by thinning, and nothing is tested."""

from __future__ import annotations

import numpy as np

from labctl.analysis.report.figures import looks
from labctl.analysis.report.lab_facts import SensorColumn
from labctl.analysis.report.sections.sensor_section import section
from labctl.reporting.times.sensor_times import POINTS, _thinned

LOOKS = looks(["a", "b"], None)


def column(name: str, *, drawn: bool = True, **values: list[float]) -> SensorColumn:
    curves = [
        {"arm": arm, "episode": f"e-{arm}", "t_s": [float(i) for i in range(len(of))], "value": of}
        for arm, of in values.items()
    ]
    return {"sensor": "palm", "column": name, "unit": "kPa", "drawn": drawn, "curves": curves}  # type: ignore[typeddict-item]


def test_a_figure_for_each_column_that_is_drawn_and_a_row_for_each_arm() -> None:
    made = section([column("t1", a=[0.0, 2.0, 9.0], b=[1.0]), column("t7", drawn=False, a=[1.0])], LOOKS)
    assert made is not None and [figure.name for figure in made.figures] == ["sensor-palm-t1"]
    assert made.figures[0].csv.splitlines()[:2] == ["arm,episode,t_s,value", "a,e-a,0,0"]
    rows = made.tables[0][1].rows
    assert [row[:3] for row in rows] == [
        ("palm: t1, kPa", "a", "1"),
        ("palm: t1, kPa", "b", "1"),
        ("palm: t7, kPa", "a", "1"),
    ]
    assert rows[0][3:] == ("0.000", "2.000", "9.000")
    assert "1 further column" in made.note


def test_two_columns_whose_names_run_together_alike_have_a_figure_each() -> None:
    """Sensor "a b" with a column "c", and sensor "a" with a column "b c": one figure was drawn, of the later."""
    columns = [column("c", a=[1.0]), column("b c", a=[2.0])]
    columns[0]["sensor"], columns[1]["sensor"] = "a b", "a"
    made = section(columns, LOOKS)
    assert made is not None
    assert [figure.name for figure in made.figures] == ["sensor-a-b-c", "sensor-a-b-c-2"]
    assert [figure.csv.splitlines()[1] for figure in made.figures] == ["a,e-a,0,1", "a,e-a,0,2"]


def test_no_sensor_and_one_that_gave_nothing_is_no_section() -> None:
    assert section(None, LOOKS) is None and section([column("t1", a=[])], LOOKS) is None


def test_a_long_curve_keeps_its_least_and_greatest_and_is_short() -> None:
    values = np.zeros(50_000)
    values[12_345], values[40_001], values[7] = 9.0, -4.0, np.nan
    t_s, shown = _thinned(np.arange(50_000) / 500, values)
    assert len(shown) <= POINTS and max(shown) == 9.0 and min(shown) == -4.0
    assert t_s == sorted(t_s) and t_s[shown.index(9.0)] == 24.69
