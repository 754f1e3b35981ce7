"""Logrank tests agree with R survival 3.5.3, ordinary and clustered."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from labctl.analysis.logrank import logrank
from labctl.analysis.survival import NEVER_NS, Spells

NS = 1_000_000_000


def test_kidney_by_sex_with_two_catheters_per_patient() -> None:
    # facts §2 C4: survdiff(Surv(time, status) ~ sex), and the robust score of coxph(... cluster(id)) on R's kidney
    with (Path(__file__).parent / "data" / "kidney.csv").open() as f:
        rows = list(csv.DictReader(f))
    groups = []
    for sex in ("male", "female"):
        mine = [r for r in rows if r["sex"] == sex]
        ids = np.unique([int(r["patient"]) for r in mine], return_inverse=True)[1]
        time = np.array([int(r["time"]) for r in mine]) * NS
        groups.append(Spells(time, np.array([r["status"] == "1" for r in mine]), ids, int(ids.max()) + 1))
    found = logrank(*groups)
    assert found.chi2 == pytest.approx(8.3083275947, abs=1e-9)
    assert found.chi2_cluster == pytest.approx(3.1996890395, abs=1e-9)


def test_a_ghost_counts_as_censored_beyond_every_time() -> None:
    rng = np.random.default_rng(3)
    time = (rng.exponential(20, 40) * NS).astype(np.int64)
    event = rng.random(40) < 0.8
    ghost = np.arange(40) % 9 == 0

    def group(part: slice, *, as_ghost: bool) -> Spells:
        t = np.where(ghost, NEVER_NS if as_ghost else time.max() + 1, time)[part]
        e = np.where(ghost, as_ghost, event)[part]
        return Spells(t, e, np.arange(len(t)), len(t))

    one = logrank(group(slice(20), as_ghost=True), group(slice(20, 40), as_ghost=True))
    two = logrank(group(slice(20), as_ghost=False), group(slice(20, 40), as_ghost=False))
    assert one == two and one.chi2 is not None


def test_without_an_event_there_is_nothing_to_say() -> None:
    s = Spells(np.array([NS]), np.array([False]), np.array([0]), 1)
    assert logrank(s, s).chi2 is None and logrank(s, s).p_cluster is None
