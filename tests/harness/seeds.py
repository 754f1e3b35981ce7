"""Hypothesis tries other examples in each run: the seed is printed, and what was found is tried again next time.

May not: change examples where CI is set: there hypothesis draws the same ones every time, so that nothing lands or is
refused by luck.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

# How slow a machine is fails no example: hypothesis' own profile for CI has the same two.
settings.register_profile("found", print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("CI"):
        return
    settings.load_profile("found")
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))  # workers are given the options


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("hypothesis_seed", None)
    return None if seed is None else f"examples: the same again with --hypothesis-seed={seed}"
