"""What each arm's policy ran on stands in the report, and where it changed between two of its episodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from labctl.reporting.policy_software import changes_of_policies, policy_software


def record(*episodes: tuple[str, str, dict[str, str] | None], unblinded: bool = True) -> Any:
    """(episode, arm, software that its controller said), in the order in which they started."""
    trials = {f"t-{name}": SimpleNamespace(id=f"t-{name}", episodes=[name]) for name, _, _ in episodes}
    openings = [
        {"episode": name, "field": "start_up", "value": {"load_s": 1.0, **({} if of is None else {"software": of})}}
        for name, _, of in episodes
    ]
    return SimpleNamespace(
        episodes=dict.fromkeys(name for name, _, _ in episodes),
        arms={f"t-{name}": arm for name, arm, _ in episodes},
        state=SimpleNamespace(trials=trials),
        unblinding={"openings": openings} if unblinded else None,
    )


OLD, NEW = {"torch": "2.6.0", "openpi": "0.1"}, {"torch": "2.7.1", "openpi": "0.1"}
THREE = (("e1", "a", OLD), ("e2", "b", None), ("e3", "a", OLD), ("e4", "a", NEW))


def test_the_same_versions_are_one_row_and_a_person_has_none() -> None:
    found = policy_software(record(*THREE[:3]), ["a", "b"])
    assert found == {"a:": "torch 2.6.0, openpi 0.1"}
    assert changes_of_policies(record(*THREE[:3]), ["a", "b"]) == []


def test_one_differing_version_within_a_campaign_is_a_line() -> None:
    whole = record(*THREE)
    assert policy_software(whole, ["a", "b"])["a:"].startswith("e1 to e3 (2): torch 2.6.0, openpi 0.1; e4 to e4 (1): ")
    assert changes_of_policies(whole, ["a", "b"]) == [
        "the software of a changed before episode e4: torch 2.6.0 to 2.7.1"
    ]


def test_nothing_is_known_before_unblinding() -> None:
    assert policy_software(record(*THREE, unblinded=False), ["a"]) == {}
