"""Ends of an episode before its budget that leave an operation open, by how that operation counts.

May not: need numpy, which whoever reads a campaign does not wait for.
"""

from __future__ import annotations

INTERLOCK = "interlock"
OBSERVED = "interlock_observed"  # one that counts until it ended: no person ended it
CARRIED = ("futility", INTERLOCK)
"""Ends that say nothing of the time that was left: what was open is carried to the budget."""
BY_A_PERSON = ("operator", "futility")
EARLY = ("operator", *CARRIED)
