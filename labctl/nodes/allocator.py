"""What a process does with memory it has freed.

May not: matter to a result, or fail where the C library is another than glibc.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
KEPT_BYTES = 256 << 20
LARGEST_BYTES = 32 << 20  # the most glibc takes


def keep_freed_memory() -> bool:
    """Keep what was freed for the next picture; says whether the C library agreed.

    Otherwise a megabyte goes back to the kernel with each picture and is faulted in again, page by page, with the next:
    two fifths of what receiving and decoding one costs.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES)) and bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
