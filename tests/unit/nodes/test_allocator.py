"""Memory that was freed is there for the next picture."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PICTURES = """
import resource, sys
import numpy as np
from labctl.nodes.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def show():
    some = [np.ones((480, 640, 3), np.uint8) for _ in range(4)]
for _ in range(5):
    show()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    show()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-P", "-c", PICTURES, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has its own ways")
def test_pictures_after_pictures_fault_nothing_in_again() -> None:
    pages = 50 * 4 * 480 * 640 * 3 // 4096
    assert faults("keep") < pages // 100
    # The kernel may give large pages at once, so not every small one is faulted in: 43,400 of 45,000 as a rule, 20,900
    # once in a while.
    assert faults("as it is") > pages // 20, "the C library does so by itself now: keep_freed_memory has nothing to do"
