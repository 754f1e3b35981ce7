"""A policy from outside, from its key to its arm: by the command line, against a policy server in a process of its own.

What an operator reads on the way has no word of who submitted, what, or under which name it is an arm.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.policies.cards import card_toml
from support.runs.campaigns import HUMAN, ROOT, make_campaign, policy, unblinded_copy
from support.runs.recordings import Recordings
from support.submissions.outside import unopened
from support.submissions.policy_process import serving

from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign

PUBLISHED = ROOT / "docs/published/simulated-cell"
SEALED = ("okapi", "zebra-policy", "giraffe", "gnu-", "why-it-fits", "127.0.0.1")
LOOPBACK = 'networks = ["127.0.0.0/8"]'
UNHURRIED = {"deadline": 30.0, "give_up": 60.0, "ready": 120.0}  # a busy machine's server answers well
Typed = Callable[..., Any]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab with a campaign that is open, from which its protocol can be opened once more."""
    folder = tmp_path / "lab"
    folder.mkdir()
    make_campaign(folder, [HUMAN, policy("swift", skill="swift")], blocks=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABCTL_LAB", str(folder))
    monkeypatch.delenv("LABCTL_WHO", raising=False)
    return folder


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Typed:
    """A command as typed with --json: its document, judged by its schema."""

    def run(*words: object, code: int = 0) -> Any:
        left = call([*map(str, words), "--json"])
        said = capsys.readouterr()
        assert left == code, (words, said.err)
        return judged(said.out)

    return run


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A command as typed, for people: all that it said."""

    def run(*words: object, code: int = 0) -> str:
        left = call([*map(str, words)])
        said = capsys.readouterr()
        assert left == code, (words, said.err)
        return said.out + said.err

    return run


def known(typed: Typed, lab: Path, networks: str = LOOPBACK) -> None:
    """A key that the lab trusts."""
    typed("submit", "key", "ours.pem", "--who", "okapi robotics", "--contact", "lab@okapi.example")
    assert typed("queue", "trust", "ours.toml", "--who", "p01")["who"] == "okapi robotics"
    keys = lab / "queue-keys.toml"
    keys.write_text(keys.read_text("utf-8").replace("networks = []", networks), "utf-8")


def submitted(typed: Typed, endpoint: str, name: str = "r.json", **card: Any) -> str:
    """A request signed outside and taken in; its id."""
    Path("card.toml").write_text(card_toml(**{**UNHURRIED, **card}), "utf-8")
    where = ["--container", endpoint] if "@" in endpoint else ["--endpoint", endpoint]
    typed(
        *("submit", "sign", "card.toml", "--key", "ours.pem", "--lab", "lab", "--campaign", "trial-run", *where),
        *("--policy", "zebra-policy", "--who", "okapi", "--contact", "lab@okapi.example"),
        *("--note", "the giraffe checkpoint", "--out", name),
    )
    return typed("queue", "submit", name, "--who", "p07")["name"]


def dry(typed: Typed, id: str, *more: object, code: int = 0, source: Path | str = PUBLISHED) -> Any:
    return typed("queue", "dry-run", id, source, "--who", "p01", "--questions", "6", *more, code=code)


def test_from_a_key_outside_to_an_arm_that_nobody_can_name(
    lab: Path, typed: Typed, printed: Callable[..., str]
) -> None:
    known(typed, lab)
    (lab / "shifts.toml").write_text(
        '[[shift]]\nfrom = 2099-01-01T18:00:00Z\nto = 2099-01-01T21:00:00Z\nwho = ["p07"]\n'
        '[[shift]]\nfrom = 2099-01-02T18:00:00Z\nto = 2099-01-02T21:00:00Z\nwho = ["p01"]\n'
    )
    typed("queue", "add", "trial-run", "--priority", "3", "--who", "p07")
    with serving("hold") as uri:
        id = submitted(typed, uri)
        found = dry(typed, id)
    assert found["passed"] and found["asked"] == 6 and found["bounds"]["beyond_box"] == 0
    assert found["latency"]["n"] == 6 and found["campaign"] == "simulated-cell"
    typed("queue", "approve", id, "--reason", "why-it-fits", "--who", "p01")
    listed = typed("queue")
    campaign, waiting = listed["entries"]
    assert (campaign["name"], campaign["trials"], campaign["ends"]) == ("trial-run", 4, campaign["fits"][0]["ends"])
    assert (waiting["name"], waiting["kind"], waiting["fits"]) == (id, "submission", [])
    assert "campaign trial-run was opened" in waiting["times"], "no arm more is recorded in it"
    assert [shift["not_blind"] for shift in listed["shifts"]] == [[], ["p01"]]

    opened = printed("queue", "arm", id, lab / "protocols/p.toml", "--who", "p01", code=1)
    assert "campaign trial-run was opened from protocol 'trial-run' and takes no arm any more" in opened
    protocol = unopened(lab)
    typed("queue", "arm", id, protocol, "--who", "p01")
    typed("queue", "arm", id, protocol, "--who", "p01", code=1)
    typed("plan", protocol)
    made = typed("open", protocol, "--cell", "lab/cells/c.toml", "--offline", "--who", "p01")
    typed("queue", "add", made["campaign"], "--who", "p07")
    assert [one["name"] for one in typed("queue")["entries"]] == ["trial-run", made["campaign"]]

    operator = [printed("queue"), printed("queue", "verify"), json.dumps(typed("queue")), printed("status")]
    operator += [printed("queue", "pause", made["campaign"], "--reason", "camera at repair", "--who", "p07")]
    assert "is an arm of campaign next" in printed("queue", "withdraw", id, "--reason", "asked for", code=1)
    alias = protocol.read_text("utf-8").rpartition('name = "arm-')[2].partition('"')[0]
    for text in operator:
        assert not [word for word in (*SEALED, f"arm-{alias}") if word in text.lower()]
    assert b"okapi" not in (lab / "queue/queue.db").read_bytes()
    assert "stays sealed until then" in printed("queue", "read", id, "--who", "p07", code=1)


def run_with(lab: Path, name: str) -> Path:
    """A campaign with an arm of this name, run to its end."""
    folder = make_campaign(lab, [HUMAN, policy(name, skill="swift")], name="ran").folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.mark.thorough
def test_whose_an_arm_is_can_be_read_once_its_campaign_is_unblinded(
    lab: Path, typed: Typed, recordings: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(typed, lab)
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    with serving("hold") as uri:
        id = submitted(typed, uri)
        dry(typed, id)
    typed("queue", "approve", id, "--reason", "why-it-fits", "--who", "p01")
    typed("queue", "arm", id, unopened(lab), "--who", "p01")
    other = recordings.of(run_with, name="arm-11111111")
    shutil.copytree(unblinded_copy(lab.parent / "other", str(other)), lab / "campaigns" / "other")
    assert typed("queue", "read", id, "--who", "p07", code=1)["kind"] == "refused"
    ran = recordings.of(run_with, name=f"arm-{'0' * 8}")
    shutil.copytree(unblinded_copy(lab.parent / "ran", str(ran)), lab / "campaigns" / "ran")
    found = typed("queue", "read", id, "--who", "p07")
    assert (found["alias"], found["who"], found["reasons"]) == ("arm-00000000", "okapi", {"approval": "why-it-fits"})
    assert found["dry_run"]["passed"]


@pytest.mark.thorough
def test_a_container_is_asked_where_the_lab_started_it(lab: Path, typed: Typed) -> None:
    known(typed, lab, "networks = []")
    id = submitted(typed, "registry.example/policy@sha256:" + "0a" * 32)
    assert "--endpoint" in dry(typed, id, code=2)["message"]
    with serving("hold") as uri:
        assert dry(typed, id, "--endpoint", uri)["passed"]
    typed("queue", "approve", id, "--reason", "it fits", "--who", "p01")
    protocol = unopened(lab)
    typed("queue", "arm", id, protocol, "--who", "p01")
    assert uri in protocol.read_text("utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("served", "given", "said"),
    [
        ("leap", {}, "lead out of the cell's box"),
        ("leap", {}, "more speed than the cell's limits"),
        ("slow", {"deadline": 0.2}, "after deadline_s = 0.2"),
        ("short", {}, "(8, 6)"),
        ("lend", {"ready": 1.0}, "sends elsewhere"),
    ],
)
def test_what_a_dry_run_finds_wrong_fails_it_and_nothing_moves(
    lab: Path, typed: Typed, served: str, given: dict[str, Any], said: str
) -> None:
    known(typed, lab)
    with serving("hold") as elsewhere, serving(served, ELSEWHERE=elsewhere) as uri:
        id = submitted(typed, uri, **given)
        found = dry(typed, id, code=1)
    assert not found["passed"] and said in " ".join(found["problems"])
    assert typed("queue", "approve", id, "--reason", "all the same", "--who", "p01", code=1)["kind"] == "refused"
    assert typed("queue")["submissions"][0]["step"] == "failed its dry run"


@pytest.mark.thorough
def test_a_server_that_hangs_is_left_when_the_time_is_over(lab: Path, typed: Typed) -> None:
    known(typed, lab)
    with serving("slow") as uri:
        id = submitted(typed, uri)
        found = dry(typed, id, "--within-s", "1", code=1)
    assert found["problems"] == ["it was not done within 1 s"]


def test_what_a_running_campaign_sees_is_shown_to_nobody_outside(lab: Path, typed: Typed) -> None:
    known(typed, lab)
    id = submitted(typed, "ws://127.0.0.1:9999")
    assert "shown to nobody outside" in dry(typed, id, code=1, source="trial-run")["message"]
    assert typed("queue")["submissions"][0]["step"] == "received"


def test_what_a_person_answers_for_takes_a_persons_id(lab: Path, typed: Typed) -> None:
    known(typed, lab)
    id = submitted(typed, "ws://127.0.0.1:9999")
    for words in (("approve", id, "--reason", "x"), ("refuse", id, "--reason", "x"), ("read", id)):
        assert "a person answers for this" in typed("queue", *words, code=2)["message"]
    assert typed("queue", "refuse", id, "--reason", " ", "--who", "p01", code=2)["exit_code"] == 2


def test_entries_are_ordered_paused_and_taken_out_by_the_command_line(lab: Path, typed: Typed) -> None:
    shutil.copy(lab / "protocols/p.toml", lab / "protocols/q.toml")
    text = (lab / "protocols/q.toml").read_text("utf-8").replace('name = "trial-run"', 'name = "second"')
    (lab / "protocols/q.toml").write_text(text, "utf-8")
    typed("queue", "add", "trial-run", "--who", "p07")
    typed("queue", "add", "lab/protocols/q.toml", "--who", "p07")
    typed("queue", "move", "second", "--before", "trial-run", "--who", "p07")
    assert [one["name"] for one in typed("queue")["entries"]] == ["second", "trial-run"]
    typed("queue", "priority", "trial-run", "1", "--who", "p07")
    typed("queue", "pause", "second", "--reason", "camera 2 is at repair", "--who", "p07")
    first, second = typed("queue")["entries"]
    assert (first["name"], second["name"], second["paused"]) == ("trial-run", "second", "camera 2 is at repair")
    assert second["kind"] == "protocol" and second["trials"] == 4
    typed("queue", "resume", "second", "--who", "p07")
    typed("queue", "withdraw", "second", "--reason", "another question", "--who", "p07")
    assert [one["name"] for one in typed("queue")["entries"]] == ["trial-run"]
    assert typed("queue", "verify")["entries"] == 8
    key = typed("submit", "key", "k.pem", "--who", "a", "--contact", "b")["public"]
    typed("queue", "trust", "k.toml", "--who", "p01")
    assert typed("queue", "revoke", key[:8], "--reason", "stolen", "--who", "p01")["did"] == "is revoked"
