"""What tests of servoed robots share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.robots.servo_bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.arm.close()
