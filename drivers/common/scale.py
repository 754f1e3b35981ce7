"""What a scale records, whoever makes it.

May not: know a scale.
"""

from __future__ import annotations

from labctl.streams import StreamSpec

MASS, STABLE = "mass", "stable"


def scale_stream(rate_hz: float) -> StreamSpec:
    """Its mass in kg, and 1 while its own electronics say that it stands. Anybody may see what lies in a tote."""
    return StreamSpec("scale", (MASS, STABLE), "kg 1", rate_hz, public_columns=(MASS, STABLE))
