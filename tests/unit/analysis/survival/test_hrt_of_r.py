"""The ratio of restricted mean times is the ratio of R's own restricted means, on published data."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.analysis.operations_table.analyze import analyze
from labctl.analysis.reading import read_table

DATA = Path(__file__).parents[1] / "data"
# R survival 3.5.3, Freireich et al. 1963: summary(survfit(Surv(t, e) ~ 1), rmean = tau)$table["rmean"] of each arm
RMEAN = {35.0: (8.6666666667, 23.2873949580), 20.0: (8.4285714286, 16.1165266106)}


@pytest.mark.parametrize("tau", RMEAN)
def test_hrt_is_the_ratio_of_rs_restricted_means(tau: float) -> None:
    placebo, drug = RMEAN[tau]
    result = analyze(read_table(DATA / "freireich.csv"), tau=tau, reference="placebo", boot=19, perm=19)
    found = {arm["arm"]: arm["hrt"] for arm in result["arms"]}
    (name,) = set(found) - {"placebo"}
    assert found[name] == pytest.approx(placebo / drug, abs=1e-9)
    assert found["placebo"] == pytest.approx(1.0, abs=1e-9)
