"""Blinding: who may still stage, operate or score sees the same bytes whichever arm runs, and no arm by any name."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, NEVER_HELD, events_of, make_campaign, policy, start_run

import labctl.clock
import labctl.runtime.campaign_run
import labctl.store.campaign
from labctl.cli import call
from labctl.clock import SECOND, ManualClock, MonotonicClock
from labctl.core.design import Schedule, draw
from labctl.core.events import Event, Kind, canonical
from labctl.core.trial import State, fold
from labctl.errors import StateError
from labctl.runtime.campaign_run import run_campaign

ENTROPY = hashlib.sha256(b"blinding").digest()
SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
CLOCK = MonotonicClock()

# The only fields that may differ between two runs whose arms are exchanged, each a sha256 that says nothing of the arms
# to whoever lacks the campaign's secret: the first cover a nonce or a key made from it (ledger.py); a link of the
# chain covers an entry that holds them.
MASKED = {
    (Kind.CAMPAIGN_OPENED, "commitment"): "sha256(schedule, nonce)",
    (Kind.ARM_REVEALED, "sealed"): "sha256(arm, nonce of the episode)",
    (Kind.EPISODE_STARTED, "sealed"): "sha256(controller, its options and seed, nonce of the episode)",
    (Kind.ARM_REVEALED, "openings_root"): "chain of sha256 of all sealed values so far, begun with a key of the secret",
    (Kind.EPISODE_STARTED, "openings_root"): "the same",
    (Kind.RECORDING_SEALED, "openings_root"): "the same",
}
CHAIN = ("prev", "hash")  # of every entry; printed as the head by run, status, verify and in heads.log


@pytest.fixture(autouse=True)
def steady_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit journals the free disk space, which other programs change."""
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)


def exchanged(first: str, second: str) -> Any:
    """`draw` with two arms in each other's place, and nothing else changed."""
    other = {first: second, second: first}

    def drawn(*given: Any) -> Schedule:
        slots = draw(*given).slots
        return Schedule(tuple(replace(slot, arm=other.get(slot.arm, slot.arm)) for slot in slots))

    return drawn


def see_all(lab: Path, folder: Path, said: Iterable[str], capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Everything a blind role can look at: what was printed, what every verb prints, every file outside the seal."""
    seen = {"run": "\n".join(said)}
    table, name = lab / "table.csv", folder.name
    for words in (
        ["status", name],
        ["status", name, "--json"],
        ["status", name, "--hours", "--page", str(lab / "hours.html")],
        ["status", name, "--hours", "--json"],
        ["status"],
        ["episodes", name],
        ["episodes", name, "--json"],
        ["plan", str(lab / "protocols/p.toml")],
        ["plan", str(lab / "protocols/p.toml"), "--json"],
        ["export", name, "--to", "table", "--out", str(table)],
        ["verify", name],
        ["verify", name, "--json"],
        ["report", name, "--out", str(lab / "report")],
        ["unblind", name],
        ["freeze", name],
    ):
        place = [] if words[0] == "plan" else ["--lab", str(lab)]
        code = call([*words, *place])
        printed = capsys.readouterr()
        seen[" ".join(words)] = f"{code}\n{printed.out}\n{printed.err}"
    seen["hours.html"] = (lab / "hours.html").read_text("utf-8")
    if table.exists():
        seen["table.csv"] = table.read_text()
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and "seal" not in path.relative_to(folder).parts
    )
    # SQLite's -wal and -shm hold pages of the database beside them, with salts; the database is read whole, as rows.
    files = [path for path in files if not path.name.endswith(("-wal", "-shm"))]
    seen["names of files"] = "\n".join(str(path.relative_to(folder)) for path in files)
    for path in files:
        if path.suffix == ".db":
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                seen[path.name] = "\n".join(db.iterdump())
        else:
            seen[str(path.relative_to(folder))] = path.read_bytes().decode("latin-1")
    return seen


def mask(seen: dict[str, str], events: list[Event]) -> dict[str, str]:
    """The values of the MASKED fields and of the chain, wherever they stand, replaced by the place they come from."""
    names: dict[str, str] = {}
    for event in events:
        for key in CHAIN:
            names.setdefault(getattr(event, key), f"<{key} of {event.seq}>")
        for (kind, key), what in MASKED.items():
            if event.kind == kind:
                names[event.body[key]] = f"<{what} of {event.seq}>"
    digest = re.compile("[0-9a-f]{64}")
    return {surface: digest.sub(lambda found: names.get(found[0], found[0]), text) for surface, text in seen.items()}


def run_and_look(
    lab: Path, arms: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], **given: Any
) -> tuple[dict[str, str], list[Event]]:
    """Open with ENTROPY, run in simulated time, look at everything."""
    lab.mkdir()
    opened = make_campaign(lab, arms, entropy=ENTROPY, **given)
    said: list[str] = [opened.commitment]
    run_campaign(opened.folder, said.append, manual=True)
    events = events_of(opened.folder)
    return mask(see_all(lab, opened.folder, said, capsys), events), events


def run_twice(
    tmp_path: Path, arms: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], **given: Any
) -> tuple[tuple[dict[str, str], list[Event]], tuple[dict[str, str], list[Event]]]:
    """The same campaign in the same place, the second time with its first two arms exchanged in the drawn schedule."""
    lab = tmp_path / "lab"
    first = run_and_look(lab, arms, capsys, **given)
    lab.rename(tmp_path / "before")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(labctl.store.campaign, "draw", exchanged(arms[0]["name"], arms[1]["name"]))
        second = run_and_look(lab, arms, capsys, **given)
    assert (tmp_path / "before/campaigns/trial-run/seal/schedule.json").read_bytes() != (
        lab / "campaigns/trial-run/seal/schedule.json"
    ).read_bytes(), "the arms were exchanged"
    return first, second


def assert_same(first: dict[str, str], second: dict[str, str]) -> None:
    assert list(first) == list(second), "different things to look at"
    differing = [surface for surface in first if first[surface] != second[surface]]
    assert differing == [], "a blind role could tell two arms that behave alike apart"


def test_exchanging_two_arms_that_behave_alike_changes_no_byte_a_blind_role_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Alike but for name and endpoint, with a person, both cameras and a switch of the instruction; only digests of
    MASKED and CHAIN may differ.
    """
    switch = '[[switch]]\nname = "small"\nat_s = 5.0\ninstruction = "Move the small items."\n'
    arms = [
        policy("first", endpoint="sim://first", skill="swift"),
        policy("second", endpoint="sim://second", skill="swift"),
        HUMAN,
    ]
    (first, events), (second, _) = run_twice(tmp_path, arms, capsys, cameras=True, budget=12.0, cell=SMALL, link=switch)
    assert_same(first, second)
    kinds = Counter(event.kind for event in events)
    assert kinds[Kind.OUTCOME_RECORDED] == 3 and kinds[Kind.OPERATION_RECORDED] >= 1
    assert kinds[Kind.INSTRUCTION_SWITCHED] == 3
    assert sum(surface.endswith(".mp4") for surface in first) == 6
    assert first["table.csv"].count("\n") >= 4


def test_the_comparison_sees_arms_that_do_not_behave_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A control: one arm answers 0.3 s later, and the comparison above would say so."""
    arms = [policy("first", skill="swift"), policy("second", skill="swift", latency_s=0.4)]
    (first, _), (second, _) = run_twice(tmp_path, arms, capsys)
    with pytest.raises(AssertionError, match="could tell"):
        assert_same(first, second)


def test_only_the_listed_digests_differ_unmasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mask hides nothing it need not: field by field, exactly the listed ones differ, and each of them does."""
    arms = [
        policy("first", endpoint="sim://first", skill="swift"),
        policy("second", endpoint="sim://second", skill="swift"),
    ]
    (_, before), (_, after) = run_twice(tmp_path, arms, capsys)
    differ = set()
    for one, other in zip(before, after, strict=True):
        assert replace(one, body={}, prev="", hash="") == replace(other, body={}, prev="", hash="")
        differ |= {(one.kind, key) for key in one.body if one.body[key] != other.body[key]}
    assert differ == set(MASKED)


def test_what_open_prints_does_not_depend_on_the_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`labctl open`, text and JSON, with the entropy and the clock held; only the commitment differs, and the head that
    covers it.
    """
    lab, printed = tmp_path / "lab", []
    lab.mkdir()
    make_campaign(lab, [policy("first", skill="swift"), policy("second", skill="swift")])
    monkeypatch.setattr(labctl.clock, "MonotonicClock", lambda: ManualClock(0))
    monkeypatch.setattr(os, "urandom", lambda n: ENTROPY[:n])
    for drawn in (draw, exchanged("first", "second")):
        monkeypatch.setattr(labctl.store.campaign, "draw", drawn)
        out = []
        for words in ([], ["--json"]):
            assert (
                call(
                    [
                        "open",
                        str(lab / "protocols/p.toml"),
                        "--cell",
                        str(lab / "cells/c.toml"),
                        "--lab",
                        str(lab),
                        *words,
                    ]
                )
                == 0
            )
            folder = max((lab / "campaigns").iterdir())
            first = events_of(folder)[0]
            said = capsys.readouterr().out.replace(first.body["commitment"], "<commitment>")
            out.append(said.replace(first.hash, "<head>"))
            folder.rename(tmp_path / f"{drawn.__name__}{len(words)}")
        printed.append(out)
    assert printed[0] == printed[1]
    assert "<commitment>" in printed[0][0] and "<head>" in printed[0][0] and "first" not in printed[0][0]


def test_a_policy_slow_to_load_starts_when_a_quick_one_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Boot time, first call and endpoint exchanged: every start is arming_s after commit, go and operations come at the
    same moments. The report, which is only there after unblinding, tells them apart.
    """
    arms = [
        policy("first", skill="swift", load_s=4, warm_s=1.5, endpoint="sim://far"),
        policy("second", skill="swift", endpoint="sim://near"),
    ]
    (first, events), (second, others) = run_twice(tmp_path, arms, capsys, arming=6.0, budget=60.0)
    assert_same(first, second)
    for told in (events, others):
        committed = [event.at_ns for event in told if event.kind == Kind.SCENE_COMMITTED]
        started = [event.at_ns for event in told if event.kind == Kind.EPISODE_STARTED]
        assert [b - a for a, b in zip(committed, started, strict=True)] == [6 * SECOND] * 2
    moments = [
        [since_go(event, told) for event in told if event.kind == Kind.OPERATION_RECORDED] for told in (events, others)
    ]
    assert moments[0] == moments[1] and moments[0]
    folder = tmp_path / "lab/campaigns/trial-run"
    assert (
        call(["close", str(folder)])
        == call(["freeze", str(folder), "--unreviewed"])
        == call(["unblind", str(folder)])
        == 0
    )
    assert call(["report", str(folder), "--out", str(tmp_path / "report")]) == 0
    told = json.loads((tmp_path / "report/report.json").read_text())["lab"]["answer_times"]
    started = {entry["arm"]: (entry["load_s"]["p50"], entry["warm_s"]["p50"]) for entry in told}
    assert started == {"first": (4.0, 1.5), "second": (0.0, 0.0)}
    assert all(entry["questions"] > 3 and 0.05 < entry["answer_s"]["p50"] < 0.2 for entry in told), "0.1 s is modelled"


def since_go(event: Event, told: list[Event]) -> int:
    """When an operation happened, in ns since its episode's go."""
    go = next(other for other in told if other.kind == Kind.GO and other.episode == event.episode)
    return event.body["t_ns"] - go.body["go_ns"]


def test_a_policy_that_always_dies_is_not_run_and_the_campaign_goes_on(tmp_path: Path) -> None:
    """Dying while loading is void before go, dying on the clock after it; after max_voids the trial is skipped. A cell
    has to ask for that: by default nothing moves before every arm answers, and like voids are a hold.
    """
    arms = [policy("well", skill="swift"), policy("loader", crash_at="load"), policy("thinker", crash_at="infer")]
    folder = make_campaign(tmp_path, arms, max_voids=2, cell=NEVER_HELD).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    events = events_of(folder)
    with labctl.store.campaign.Campaign.open(folder, writer=True) as campaign:
        trial_of = {campaign.ledger.reveal(trial): trial for trial in campaign.state.trials}
    trials = fold(events).trials
    assert {arm: str(trials[trial].state) for arm, trial in trial_of.items()} == {
        "well": State.SCORED,
        "loader": State.NOT_RUN,
        "thinker": State.NOT_RUN,
    }
    voids = {
        arm: [
            (e.body["reason"], e.body["after_go"]) for e in events if e.kind == Kind.EPISODE_VOIDED and e.trial == trial
        ]
        for arm, trial in trial_of.items()
    }
    assert voids == {"well": [], "loader": [("controller_lost", False)] * 2, "thinker": [("controller_lost", True)] * 2}
    skipped = {(e.trial, e.body["reason"]) for e in events if e.kind == Kind.TRIAL_SKIPPED}
    assert skipped == {(trial_of["loader"], "max_voids"), (trial_of["thinker"], "max_voids")}


ZEBRAS = [
    policy("zebra-policy", endpoint="sim://zebra-endpoint:6161/v7", skill="swift", latency_s=0.0731),
    policy("quagga-policy", endpoint="sim://quagga-endpoint:6262/v9", skill="swift", load_s=0.0917),
]
DYING = {**policy("okapi-policy", words="no okapi here"), "controller": "support.policies.dying_policy:build"}
WORDS = ("zebra", "quagga", "okapi", "0.0731", "0.0917", "73.1", "91.7", "swift", "sim_policy")


def telling(arms: list[dict[str, Any]]) -> set[str]:
    """What would name an arm: distinctive words, and digests of name, endpoint and options that anyone could make."""
    plain = [
        value
        for arm in arms
        for value in (arm["name"], arm["options"], *(v for v in arm["options"].values() if isinstance(v, str)))
    ]
    forms = [
        form for value in plain for form in (canonical(value), *([value.encode()] if isinstance(value, str) else []))
    ]
    digests = [getattr(hashlib, how)(form).hexdigest() for form in forms for how in ("sha256", "sha1", "md5")]
    return {*WORDS, *digests}


def found_in(seen: dict[str, str], words: Iterable[str]) -> list[tuple[str, str]]:
    return [(surface, word) for surface, text in seen.items() for word in words if word in text.lower()]


def test_nothing_outside_the_seal_names_an_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, endpoints, options, digests of them, the dying policy's last words; refusals of report and unblind too."""
    lab, arms = tmp_path / "lab", [*ZEBRAS, DYING]
    lab.mkdir()
    folder = make_campaign(lab, arms, entropy=ENTROPY, budget=12.0, max_voids=1, cell=NEVER_HELD).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, said, capsys)
    assert found_in(seen, telling(arms)) == []
    sealed = "".join(path.read_text() for path in (folder / "seal").iterdir())
    assert "no okapi here" in sealed, "why it died is kept, in the seal"
    assert seen["report trial-run --out " + str(lab / "report")].startswith("1\n"), (
        "a report is refused before unblinding"
    )
    assert seen["unblind trial-run"].startswith("1\n") and seen["freeze trial-run"].startswith("1\n")


def test_no_score_runs_along_while_blinded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """status, episodes, verify and what a run says have no word for an outcome."""
    lab = tmp_path / "lab"
    lab.mkdir()
    folder = make_campaign(lab, ZEBRAS, entropy=ENTROPY, budget=12.0).folder
    said: list[str] = []
    run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, said, capsys)
    shown = {name: text for name, text in seen.items() if name.startswith(("run", "status", "episodes", "verify"))}
    assert len(shown) >= 8
    assert found_in(shown, ("moved", "remaining", "success", "outcome", '"lost"', "items", "score:", "rate")) == []


def test_a_run_that_ends_at_an_arm_that_does_not_answer_names_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Why it does not answer is kept beside the seal alone."""
    lab, arms, said = tmp_path / "lab", [*ZEBRAS, DYING], []
    lab.mkdir()
    folder = make_campaign(lab, arms, entropy=ENTROPY).folder
    with pytest.raises(StateError) as ended:
        run_campaign(folder, said.append, manual=True)
    seen = see_all(lab, folder, [*said, str(ended.value)], capsys)
    assert "2 of 3 arms answer" in seen["run"] and found_in(seen, telling(arms)) == []
    assert "no okapi here" in (folder / "seal/readiness.log").read_text()


def test_which_arm_does_not_answer_cannot_be_seen(tmp_path: Path) -> None:
    """The same bytes whether the first or the second arm of the protocol is the one that does not answer."""
    seen = []
    for place in range(2):
        lab, said = tmp_path / f"lab{place}" / "lab", []
        lab.mkdir(parents=True)
        arms = [policy("zebra-policy", skill="swift"), HUMAN]
        arms.insert(place, DYING)
        folder = make_campaign(lab, arms, entropy=ENTROPY).folder
        with pytest.raises(StateError) as ended:
            run_campaign(folder, said.append, manual=True)
        bodies = [event.body for event in events_of(folder)[1:] if event.kind != Kind.RUN_STARTED]
        seen.append((said, str(ended.value), bodies))
    assert seen[0] == seen[1]


@pytest.mark.real_time
def test_no_process_shows_an_arm_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Command line and environment of every process of a live run, its locks, logs and output, all the while."""
    lab, arms, log = tmp_path / "lab", [*ZEBRAS, DYING], tmp_path / "run.log"
    lab.mkdir()
    given = {"live": True, "budget": 2.0, "arming": 8.0, "max_voids": 1, "cell": NEVER_HELD}
    folder = make_campaign(lab, arms, entropy=ENTROPY, **given).folder
    words, leaks, watched = telling(arms), [], Counter[str]()
    run = start_run(folder, live=True, log=log)
    until = CLOCK.now_ns() + 240 * SECOND
    try:
        while run.poll() is None and CLOCK.now_ns() < until:
            for pid in family(run.pid):
                shown = look_at_process(pid)
                watched[str(pid)] += 1
                leaks += found_in(shown, words)
            locks = {
                str(path): path.read_text() for path in (*lab.rglob("*.lock"), *(lab / "campaigns").glob("*/.lock"))
            }
            leaks += found_in(locks, words)
            CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 10)
    finally:
        run.terminate()
        assert run.wait(timeout=30) == 0, log.read_text()
    kinds = Counter(event.kind for event in events_of(folder))
    assert kinds[Kind.OUTCOME_RECORDED] == 2 and kinds[Kind.TRIAL_SKIPPED] == 1
    assert len(watched) >= 6, "run, recorder, arm and three controllers were watched"
    assert leaks == []
    assert found_in(see_all(lab, folder, [log.read_text()], capsys), words) == []


def family(parent: int) -> list[int]:
    """A process and its children."""
    found = [parent]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
        except OSError:
            continue  # it ended while it was looked at
    return found


def look_at_process(pid: int) -> dict[str, str]:
    """What any user of the host can see of a process; its environment as the same user can."""
    shown = {}
    for name in ("cmdline", "environ", "comm"):
        try:
            shown[name] = Path(f"/proc/{pid}/{name}").read_bytes().decode("latin-1")
        except OSError:
            continue  # it ended while it was looked at
    return shown
