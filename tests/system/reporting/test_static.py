"""`labctl static` on a recorded campaign: what a policy that never moves scores is known from the human's trace."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.json_documents import judged
from support.policies.cards import CAMERA, card_toml
from support.policies.planner_stand_in import MODEL, stand_in
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind

from labctl.checks.keyframe_questions import ask
from labctl.checks.offline_evaluation import screen
from labctl.checks.planner import Planner
from labctl.cli import group
from labctl.clock import SECOND
from labctl.core.trial import State
from labctl.errors import InputError, StateError
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.store.traces import TraceStore

pytestmark = pytest.mark.thorough

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
LAB = """
import numpy as np
def stay(seen):
    assert seen["picture"].shape == (48, 64, 3)
    return np.tile(np.concatenate([seen["joint_position"], [0.0]]), (4, 1))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("lab")
    arms = [HUMAN, policy("policy-a", skill="swift")]
    folder = make_campaign(lab, arms, cameras=True, items=1, budget=30.0, cell=SMALL).folder
    run_campaign(folder, lambda line: None, manual=True)
    with pytest.raises(StateError, match="sealed until it is unblinded: take an earlier campaign"):
        screen(folder, ["policy-a"])
    unblind(folder)
    return folder


@pytest.fixture
def candidates(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A protocol of policies that have not run yet."""
    (tmp_path / "static_lab.py").write_text(LAB, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    lab = folder.parent.parent
    (lab / "protocols" / "stay.toml").write_text(
        card_toml("callable", prefix="", inputs=CAMERA.format(key="picture", camera="over_shoulder")), "utf-8"
    )
    text = (lab / "protocols" / "p.toml").read_text("utf-8")
    added = '[[arm]]\nname = "stay"\nkind = "policy"\ncontroller = "policy_callable"\n'
    added += '[arm.options]\ncard = "stay.toml"\nfunction = "static_lab:stay"\n'
    (lab / "protocols" / "next.toml").write_text(text + added, "utf-8")
    return lab / "protocols" / "next.toml"


def test_a_policy_that_never_moves_is_as_far_off_as_the_human_went(folder: Path, candidates: Path) -> None:
    words = ["static", str(folder), "--protocol", str(candidates), "--policy", "stay", "--keyframes", "20", "--json"]
    done = CliRunner().invoke(group, words, catch_exceptions=False)
    found = judged(done.stdout)
    (stay,) = found["policies"]
    (towels,) = stay["objects"]
    assert (towels["object"], towels["keyframes"], towels["moved"]) == ("towels", 20, None)
    assert stay["agreement"] is None, "it never ran"
    with Campaign.open(folder) as campaign:
        trial = next(
            t for t in campaign.state.trials.values() if t.episode == found["episodes"][0] and t.state == State.SCORED
        )
        store = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True)
        t_ns, values = store.read(str(trial.episode), "arm/state")
        columns = next(s.columns for s in store.streams(str(trial.episode)) if s.name == "arm/state")
        store.close()
    assert trial.go_ns is not None and trial.end_ns is not None
    tool = values[:, [columns.index(f"tcp.{axis}") for axis in "xyz"]]
    at = np.linspace(trial.go_ns, trial.end_ns, 22)[1:-1].astype(np.int64)
    # four actions at 20 Hz: where the tool is 0.2 s later; the last keyframe may be nearer to the end than that
    later = np.minimum(at + round(0.2 * SECOND), trial.end_ns)
    went = np.linalg.norm(tool[np.searchsorted(t_ns, later)] - tool[np.searchsorted(t_ns, at)], axis=1)
    assert towels["position_m"] == pytest.approx(went.mean(), abs=0.003)
    assert 0 < towels["score"] < 100
    # its card has an action of the gripper of its own, so that it is a standing arm by position and orientation alone
    for key in ("score", "position_m"):
        assert towels["floors"]["still"][key] == pytest.approx(towels[key], rel=0.02)
    assert towels["between"]["score"] == pytest.approx(1.0, abs=0.03)
    assert towels["floors"]["random"]["score"] < towels["floors"]["still"]["score"]


def test_no_score_is_printed_without_its_floors(folder: Path, candidates: Path) -> None:
    words = ["static", str(folder), "--protocol", str(candidates), "--policy", "stay", "--keyframes", "20"]
    told = CliRunner().invoke(group, words, catch_exceptions=False).stdout
    (line,) = [line for line in told.splitlines() if line.startswith("stay: static score")]
    assert "(standing still " in line and ", random " in line and "from random to standing still" in line
    assert [word for word in ("position", "orientation", "gripper") if f" {word} " not in told] == []


def test_what_cannot_be_asked_is_refused(folder: Path, candidates: Path) -> None:
    with pytest.raises(InputError, match="policy-a has no policy card"):
        screen(folder, ["policy-a"])
    with pytest.raises(InputError, match="no arm 'nobody' in that protocol; there: human, policy-a, stay"):
        screen(folder, ["nobody"], protocol=candidates)


def test_at_the_moments_that_traces_mark_a_policy_is_scored_by_kind_of_moment(folder: Path, candidates: Path) -> None:
    words = ["static", str(folder), "--protocol", str(candidates), "--policy", "stay", "--marks", "--json"]
    (stay,) = json.loads(CliRunner().invoke(group, words, catch_exceptions=False).stdout)["policies"]
    counts = {one["mark"]: one["keyframes"] for one in stay["marks"]}
    assert {"go", "grasp", "release"} <= set(counts) and sum(counts.values()) == stay["objects"][0]["keyframes"]
    for one in stay["marks"]:
        assert one["score"] == pytest.approx(one["floors"]["still"]["score"], abs=1), "it never moves"


def test_a_planner_is_a_witness_of_each_view_and_changes_nothing(folder: Path) -> None:
    def head() -> str:
        return events_of(folder)[-1].hash

    before = head()
    with stand_in(lambda text, image: "A") as server:
        words = ["static", str(folder), "--planner", f"{MODEL}={server.url}", "--json"]
        found = judged(CliRunner().invoke(group, words, catch_exceptions=False).stdout)
    cells = {(one["kind"], one["view"]): one for one in found["planners"]}
    assert {kind for kind, _ in cells} == {"plan", "perception", "stage", "all"}
    assert {view for _, view in cells} == {"over_shoulder", "wrist", "all"}
    assert cells["all", "all"]["asked"] == len(server.asked) == 3 * 2 * sum(found["keyframes"].values())
    assert {shape for _, shape in server.asked} == {(72, 96, 3)}
    for one in found["planners"]:
        assert one["share"] <= one["same"] and one["unread"] == 0, "always the first option is a constant answer"
    assert head() == before


def test_a_blinded_campaign_shows_a_planner_nothing(tmp_path: Path) -> None:
    blinded = make_campaign(tmp_path, items=1).folder
    with stand_in(lambda text, image: "A") as server, pytest.raises(StateError, match="go to nobody before"):
        ask(blinded, [Planner(MODEL, server.url)])
    assert server.asked == []
