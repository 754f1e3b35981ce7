"""A person takes the arm from a policy in a running episode: real processes, the gamepad driver, a joystick in SDL."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.robots.virtual_hand import CLUTCH, Fingers
from support.runs.campaigns import ROOT, cell_toml, events_of, make_campaign, policy
from support.runs.live_campaign import running, wait_for

from labctl.clock import SECOND, MonotonicClock
from labctl.core.events import Event, Kind
from labctl.errors import InputError
from labctl.store.campaign import Campaign
from labctl.store.traces import TraceStore

HAND = "support.robots.virtual_hand:build"
PUSHED_NS = round(1.2 * SECOND)
SLOW = [policy("slow-1", skill="slow"), policy("slow-2", skill="slow")]
ALLOWED = {'camera_lost = "mark"': 'camera_lost = "mark"\ntakeover = "allowed"'}


def of_kind(folder: Path, kind: Kind) -> Event | None:
    return next((event for event in events_of(folder) if event.kind == kind), None)


def read(folder: Path, event: Event, stream: str) -> tuple[np.ndarray, np.ndarray]:
    with Campaign.open(folder) as campaign:
        store = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True)
        try:
            return store.read(str(event.episode), stream)
        finally:
            store.close()


def test_a_protocol_that_allows_it_needs_a_cell_with_a_device(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"p\.toml:\d+: .*no \[teleop\] table to take over with"):
        make_campaign(tmp_path, SLOW, protocol=ALLOWED)


@pytest.mark.real_time
@pytest.mark.thorough
def test_the_hand_has_the_arm_from_grip_to_release_and_the_journal_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests") + os.pathsep + os.environ.get("PYTHONPATH", ""))
    table = f'[teleop]\ndevice = "{HAND}"\n[teleop.options]\nsocket = "{tmp_path / "hand.sock"}"\n'
    cell = {"[video]": f"{table}[video]"}
    assert "[video]" in cell_toml(cameras=False)
    folder = make_campaign(tmp_path, SLOW, live=True, items=40, budget=30.0, protocol=ALLOWED, cell=cell).folder
    hand, clock = Fingers(tmp_path / "hand.sock"), MonotonicClock()
    with running(folder, tmp_path / "run.log"):
        wait_for("go", lambda: of_kind(folder, Kind.GO))
        assert hand.press(CLUTCH) and hand.push(a0=1.0)
        wait_for("the grip", lambda: of_kind(folder, Kind.INTERVENTION_BEGAN))
        clock.sleep_until(clock.now_ns() + PUSHED_NS)
        assert hand.press(up=(CLUTCH,))
        wait_for("the release", lambda: of_kind(folder, Kind.INTERVENTION_ENDED))
        over = of_kind(folder, Kind.INTERVENTION_ENDED)
        assert over is not None
        wait_for(
            "a question after the release", lambda: (read(folder, over, "policy")[1][:, 1] >= over.body["t_ns"]).any()
        )
        wait_for(
            "the arm's states up to it", lambda: (read(folder, over, "arm/state")[0] >= over.body["t_ns"]).any()
        )  # each stream is written at its own times
    hand.close()
    begun = of_kind(folder, Kind.INTERVENTION_BEGAN)
    assert begun is not None
    assert (begun.body["kind"], begun.body["by"], over.body["kind"]) == ("take_over", "device", "take_over")
    from_ns, to_ns = begun.body["t_ns"], over.body["t_ns"]
    assert to_ns - from_ns >= PUSHED_NS
    _, asked = read(folder, begun, "policy")
    state_ns, state = read(folder, begun, "arm/state")
    with Campaign.open(folder) as campaign:
        store = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True)
        columns = next(spec.columns for spec in store.streams(begun.episode) if spec.name == "arm/state")
        store.close()
    driven = (state_ns > from_ns) & (state_ns < to_ns)
    path = state[driven][:, [columns.index(f"tcp.{axis}") for axis in "xyz"]]
    assert np.linalg.norm(path[-1] - path[0]) > 0.05, "the hand moved the tool"
    requested = asked[:, 1]
    assert not ((requested > from_ns) & (requested < to_ns)).any(), "the policy was not asked while the hand drove"
    assert (requested >= to_ns).any(), "and was asked again after the release"
