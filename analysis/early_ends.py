"""Ends of an episode before its budget that leave an operation open, by how that operation counts.

May not: need numpy, which whoever reads a campaign does not wait for.
"""

from __future__ import annotations

INTERLOCK = "interlock"
OBSERVED = "interlock_observed"  # one that counts until it ended: no person ended it
CARRIED = ("futility", INTERLOCK)
"""Ends that say nothing of the time that was left: what was open is carried to the budget."""
WITH_THE_RUN = "shutdown"  # Ctrl-C, `labctl stop --now`, a lost terminal: open until then, whatever else is declared
ENDED_EARLY = ("operator", "futility", WITH_THE_RUN)
"""Ends whose moment somebody chose, or might have: counted per arm, wherever "ended early" is said."""
EARLY = ("operator", *CARRIED)
