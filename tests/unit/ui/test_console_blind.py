"""A blind trial by keys: no screen says an arm, and like arms give the same screens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import make_campaign, policy
from support.runs.run_bench import Bench
from support.screens.console_bench import NARROW, WIDE, Desk, at_console

from labctl.store.campaign import Campaign

BESIDE = ("scored",)  # when the pages beside the first screen are opened
ENDPOINT = "sim://10.9.8.7:5555"
SECRETS = ("zebra", "quagga", "sim://", "10.9.8.7", "swift", "sim_policy", "sim_person", "policy-server")
LATENCY = re.compile(r"\b\d+(\.\d+)?\s*(ms|µs|us|Hz|fps)\b|latenc", re.IGNORECASE)


def arms(*names: str) -> list[dict[str, Any]]:
    return [policy(name, skill="swift", endpoint=ENDPOINT) for name in names]


def played(folder: Path, size: tuple[int, int], *, pages: bool) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Every screen of a trial, as (text, picture) by where it was seen; and the order of the arms. pages: with every
    page and form too.
    """
    seen: dict[str, tuple[str, str]] = {}

    async def play(desk: Desk) -> None:
        async def look(where: str, *forms: str) -> None:
            found = await desk.everywhere(*(forms if pages else ()), pages=pages and where in BESIDE)
            seen.update({f"{where} {key}": screen for key, screen in found.items()})

        await look("no session", "enter")
        await desk.press("enter", "enter")
        await look("planned", "n", "H", "x")
        await desk.press("enter")
        await desk.home()
        await look("staging", "r", "R")
        await desk.press("enter")
        episode = await desk.ready()
        await look("armed", "v")
        await desk.press("enter")
        await desk.wait(4.0)
        await desk.go(episode)
        await desk.event("success", episode)
        await desk.press("m")
        await look("running")
        await desk.press("space")
        await desk.draw()
        await desk.sealed(episode)
        await look("stopped", "enter", "v", "w")
        await desk.press("enter", "1", "tab")
        await desk.type("it went for the lamp")
        await desk.press("ctrl+s", "enter")
        await look("score")
        await desk.press("ctrl+s")
        await look("guess")
        await desk.press("ctrl+s")
        await look("scored", "u")

    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        at_console(bench, play, size=size)
        order = [campaign.ledger.reveal(trial) for trial in bench.node._writer.state.trials]
    return seen, order


@pytest.mark.parametrize(
    ("size", "pages"),
    [
        pytest.param(NARROW, True, id="80x24-every-page", marks=pytest.mark.thorough),
        pytest.param(WIDE, False, id="200x60"),
    ],
)
def test_no_screen_says_an_arm_and_when_two_like_arms_are_swapped_each_is_the_same_byte_for_byte(tmp_path, size, pages):
    """The one screen with names of arms is the form that asks for a guess: it has them all, in the alphabet's order."""
    given: dict[str, Any] = {"items": 2, "budget": 20.0, "protocol": {"arming_s": "ask_guess = true\narming_s"}}
    one = make_campaign(tmp_path / "one", arms("zebra", "quagga"), **given).folder
    other = make_campaign(tmp_path / "other", arms("quagga", "zebra"), **given).folder
    (seen, order), (swapped, turned) = played(one, size, pages=pages), played(other, size, pages=pages)
    assert sorted(order) == ["quagga", "zebra"] and turned == order[::-1], "the arms did not change places"
    assert seen.keys() == swapped.keys() and len(seen) >= (25 if pages else 9)
    assert [where for where in seen if seen[where] != swapped[where]] == []
    assert "cannot tell" in seen["guess "][0]
    leaks = [(where, secret) for where, (text, _) in seen.items() for secret in SECRETS if secret in text]
    leaks = [(where, secret) for where, secret in leaks if where != "guess " or secret not in ("zebra", "quagga")]
    leaks += [(where, found[0]) for where, (text, _) in seen.items() if (found := LATENCY.search(text))]
    assert leaks == []
