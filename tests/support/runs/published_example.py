"""The published campaign of the simulated cell in docs/published: `python -m support.runs.published_example DIR`.

A person and two policies, four blocks, an evening of simulated time; samples of two episodes, no cameras.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from labctl.core.events import Kind
from labctl.publishing.leaving_out import Choice
from labctl.publishing.publish import Request, publish
from labctl.runtime.campaign_run import run_campaign
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind

NAME = "simulated-cell"
ARMS = (HUMAN, policy("swift", skill="swift"), policy("steady", skill="steady"))
QUESTION = {'question = "a test"': 'question = "Does the steady policy move towels as fast as the swift one?"'}


def example(lab: Path, out: Path) -> Path:
    """Run, unblind and publish it; the published folder."""
    folder = make_campaign(lab, ARMS, name=NAME, blocks=4, items=2, budget=30.0, protocol=QUESTION).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    sealed = [str(event.episode) for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED]
    choice = Choice(episodes=frozenset(sealed[:2]))
    asked = Request("CC0-1.0", creator="labctl", choice=choice, boot=999, perm=999, force=True)
    return publish(folder, out, asked).folder


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        example(Path(work), Path(sys.argv[1]))
