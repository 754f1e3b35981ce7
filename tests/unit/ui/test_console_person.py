"""A person as the only arm, and blocks of a person alone, by key presses."""

from __future__ import annotations

from pathlib import Path

from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.console_bench import WIDE, Desk, at_console, flat

from labctl.core.events import Kind
from labctl.store.campaign import Campaign

EXTRA = "[human]\nextra_blocks = 2\n"


def test_a_reference_of_a_person_alone_is_run_and_scored_by_keys(tmp_path: Path) -> None:
    async def play(desk: Desk) -> None:
        for done in (1, 2):
            episode = await desk.running()
            await desk.press("m")
            await desk.event("success", episode)
            await desk.sealed(episode)
            await desk.press("enter", "ctrl+s")
            assert f"{done}/2 trials" in desk.text()

    folder = make_campaign(tmp_path, [HUMAN], items=1, budget=20.0, blocks=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        at_console(bench, play)
        outcomes = [event.body["outcome"]["moved"] for event in bench.events(Kind.OUTCOME_RECORDED)]
    assert outcomes == [1, 1]


def test_an_extra_block_of_the_person_is_called_so_on_the_screen_and_others_are_not(tmp_path: Path) -> None:
    called: list[bool] = []

    async def play(desk: Desk) -> None:
        for _ in range(4):
            episode = await desk.armed()
            called.append(", the person alone" in flat(desk.text()))
            await desk.press("enter")
            await desk.wait(4.0)
            await desk.go(episode)
            await desk.event("success", episode)
            await desk.sealed(episode)
            await desk.press("enter", "ctrl+s")

    arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
    made = make_campaign(tmp_path, arms, items=1, budget=20.0, blocks=1, link=EXTRA)
    with Campaign.open(made.folder, writer=True) as campaign:
        alone = campaign.opened["alone"]
        assert len(alone) == 2
        at_console(Bench(campaign), play, size=WIDE)
        trials = sorted(campaign.state.trials.values(), key=lambda trial: (trial.block, trial.position))
        assert called == [trial.block in alone for trial in trials]
