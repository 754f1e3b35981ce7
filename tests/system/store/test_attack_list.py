"""The attack list: what somebody changes in a campaign's folder is named by whatever reads it, what somebody orders who
may not is refused at the door.

A new attack is one line: in `EDITS` what is changed and what `verify` has to call it; in `ORDERS` what is ordered, by
whom, and what the refusal has to say; in `VERBS` the same for a verb of the command line. The campaigns are recorded
once and copied; a refused order changes nothing, so that all of one state share a run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, recorded_with_cameras, unblind
from support.runs.forging import cut_heads, forge, rewrite_heads
from support.runs.recordings import Recordings, copied
from support.runs.run_bench import Bench

from labctl.cli import call
from labctl.core.trial import fold
from labctl.runtime.command_handler import OF_ANYBODY
from labctl.runtime.command_handler import ORDERS as KNOWN
from labctl.store.campaign import Campaign
from labctl.store.ledger import Ledger

Attack = Callable[[Path], object]


# -- how a folder is attacked


def sql(database: str, statement: str) -> Attack:
    """What its owner does with sqlite3: the triggers go, then rows change."""

    def attack(folder: Path) -> None:
        with closing(sqlite3.connect(folder / database)) as raw, raw:
            for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                raw.execute(f"DROP TRIGGER {trigger}")
            assert raw.execute(statement).rowcount > 0, "the attack itself must have worked"

    return attack


def declared(old: str, new: str, database: str = "traces.db") -> Attack:
    """What a stream is declared to be."""
    return sql(database, f"UPDATE stream SET spec = replace(spec, '{old}', '{new}')")


def declared_twice(folder: Path) -> None:
    """A stream of the one database in the other one too, with other columns: which of them is read?"""
    with closing(sqlite3.connect(folder / APART)) as raw, raw:
        row = raw.execute("SELECT campaign, episode, name, replace(spec, 'left_s', 'right_s') FROM stream").fetchone()
    with closing(sqlite3.connect(folder / "traces.db")) as raw, raw:
        raw.execute("INSERT INTO stream (campaign, episode, name, spec) VALUES (?, ?, ?, ?)", row)


def _one(folder: Path, pattern: str) -> Path:
    return next(path for path in sorted(folder.glob(pattern)) if path.is_file())


def byte(pattern: str) -> Attack:
    """One bit in the middle of the first file that is called so."""

    def attack(folder: Path) -> None:
        content = bytearray(_one(folder, pattern).read_bytes())
        content[len(content) // 2] ^= 1
        _one(folder, pattern).write_bytes(bytes(content))

    return attack


def gone(pattern: str) -> Attack:
    return lambda folder: _one(folder, pattern).unlink()


def line_gone(pattern: str, number: int) -> Attack:
    def attack(folder: Path) -> None:
        lines = _one(folder, pattern).read_text().splitlines(keepends=True)
        del lines[number]
        _one(folder, pattern).write_text("".join(lines))

    return attack


def text(name: str, old: str, new: str) -> Attack:
    def attack(folder: Path) -> None:
        before = (folder / name).read_text()
        assert old in before, "the attack itself must have worked"
        (folder / name).write_text(before.replace(old, new, 1))

    return attack


def invented(field: str) -> Attack:
    """By whoever has the secret, with a digest that fits, of an episode that is over."""

    def attack(folder: Path) -> None:
        ledger = Ledger.open(folder)
        ledger.seal_value(ledger.open_all()["openings"][0]["episode"], field, {"load_s": 60.0})

    return attack


def other_campaigns_line(folder: Path) -> None:
    """What else the lab opened, under another name: the file drawer of a report."""
    text("../../opened.log", '"campaign":"trial-run"', '"campaign":"trial-ran"')(folder)


def without(folder: Path, events: object) -> None:
    (folder / "heads.log").unlink()


def rehashed_with(heads: Callable[[Path, Any], None]) -> Attack:
    return lambda folder: heads(folder, forge(folder))


APART = "seal/traces.db"  # of streams that tell arms apart
OUTCOME = "WHERE kind = 'OutcomeRecorded'"
STATE = "WHERE name = 'arm/state'"
DECLARATION = "changed stream declaration"
FIRST = "WHERE rowid = (SELECT min(rowid) FROM chunk WHERE stream = 'arm/state')"
STRAY = "INSERT INTO chunk SELECT campaign, 'e-0', stream, seq, t0_ns, t1_ns, n, sha256, payload FROM chunk LIMIT 1"
BACKDATED = "UPDATE event SET at_ns = at_ns - 1 WHERE kind = 'Go'"
ALL = ("verify", "report", "export")
SHOWN = ("verify", "report")  # of what no table has
LISTED = ("verify",)  # a report prints that the lab's list is broken, whatever its own record does

# what is changed, and how; what it has to be called; by which doors
EDITS: list[tuple[str, Attack, str, tuple[str, ...]]] = [
    ("an outcome's person", sql("journal.db", f"UPDATE event SET who = 'mallory' {OUTCOME}"), "edited entry", ALL),
    ("an outcome", sql("journal.db", f"UPDATE event SET body = '{{}}' {OUTCOME}"), "edited entry", ALL),
    ("an outcome taken away", sql("journal.db", f"DELETE FROM event {OUTCOME}"), "missing entry", ALL),
    ("the tail cut", sql("journal.db", "DELETE FROM event WHERE seq > 5"), "cut tail", ALL),
    ("when the robot was let go", sql("journal.db", BACKDATED), "edited entry", ALL),
    ("outcomes, rehashed", forge, "rehashed chain", ALL),
    ("outcomes, rehashed, heads gone", rehashed_with(without), "missing heads.log", ALL),
    ("a head", text("heads.log", "1 ", "2 "), "rehashed chain", ALL),
    ("a stream's columns", declared("joint1", "joint9"), DECLARATION, ALL),
    ("what tells arms apart", declared("true", "false", APART), DECLARATION, ALL),
    ("what tells arms apart declared twice", declared_twice, DECLARATION, ALL),
    ("samples of those", sql(APART, "UPDATE chunk SET payload = zeroblob(9)"), "changed trace chunk", ALL),
    ("some of them gone", sql(APART, "DELETE FROM chunk WHERE rowid = 1"), "missing or added trace chunk", ALL),
    ("all of them gone", gone(APART), "trace", ALL),
    ("a stream's declaration gone", sql("traces.db", f"DELETE FROM stream {STATE}"), DECLARATION, ALL),
    ("samples", sql("traces.db", f"UPDATE chunk SET payload = zeroblob(9) {FIRST}"), "changed trace chunk", ALL),
    ("samples with their digest", sql("traces.db", f"UPDATE chunk SET sha256 = 'x' {FIRST}"), "changed trace", ALL),
    ("times of a chunk", sql("traces.db", f"UPDATE chunk SET t0_ns = t0_ns + 1 {FIRST}"), "changed trace index", ALL),
    ("samples gone", sql("traces.db", f"DELETE FROM chunk {FIRST}"), "missing or added trace chunk", ALL),
    ("samples of nobody", sql("traces.db", STRAY), "unsealed trace", ALL),
    ("a picture of a video", byte("video/*/*.mp4"), "changed video", ALL),
    ("a video gone", gone("video/*/*.mp4"), "missing video", ALL),
    ("a photo of a scene", byte("photos/*/*.png"), "changed photo", SHOWN),
    ("a photo gone", gone("photos/*/*.png"), "missing photo", SHOWN),
    ("the cell", text("cell.toml", "test-cell", "best-cell"), "changed frozen file", ALL),
    ("the fixture", byte("fixture.toml"), "changed frozen file", ALL),
    ("the protocol", byte("seal/protocol.toml"), "changed frozen file", ALL),
    ("the lab's list of what it opened", other_campaigns_line, "broken list of opened campaigns", LISTED),
]  # fmt: skip

# before unblinding: what only the seal has, so that whoever rewrites it in time would rewrite the report
SEALED: list[tuple[str, Attack, str, tuple[str, ...]]] = [
    ("which trial has which arm", byte("seal/schedule.json"), "seal", ALL),
    ("the schedule gone", gone("seal/schedule.json"), "seal", ALL),
    ("a sealed value", text("seal/openings.jsonl", '"value":"', '"value":"x'), "changed seal", ALL),
    ("a sealed value gone", line_gone("seal/openings.jsonl", 1), "changed seal", ALL),
    ("the last sealed value gone", line_gone("seal/openings.jsonl", -1), "changed seal", ALL),
    ("a failure invented between two runs", invented("failure:1"), "changed seal", ALL),
    ("a load time invented between two runs", invented("start_up"), "changed seal", ALL),
    ("all sealed values gone", gone("seal/openings.jsonl"), "seal", ALL),
]  # fmt: skip


@pytest.fixture
def blind(recordings: Recordings, tmp_path: Path) -> Path:
    original = recordings.of(recorded_with_cameras)
    copied(original.parents[1], tmp_path / "lab")
    return tmp_path / "lab" / "campaigns" / original.name


@pytest.fixture
def unblinded(blind: Path) -> Path:
    unblind(blind)
    return blind


def is_named(folder: Path, attack: Attack, what: str, doors: tuple[str, ...], said: pytest.CaptureFixture[str]) -> None:
    out = folder.parents[1] / "out"
    attack(folder)
    asked = {
        "verify": ["verify", str(folder)],
        "report": ["report", str(folder), "--out", str(out)],
        "export": ["export", str(folder), "--to", "npz", "--out", str(out)],
    }
    for door in doors:
        assert call(asked[door]) == (1 if door == "verify" else 65), f"{door} takes it for sound"
        printed = said.readouterr()
        assert what in (printed.out if door == "verify" else printed.err), door
        assert not out.exists()


@pytest.mark.parametrize(("attack", "what", "doors"), [line[1:] for line in EDITS], ids=[line[0] for line in EDITS])
def test_what_was_changed_in_the_folder_is_named(unblinded, attack, what, doors, capsys):
    is_named(unblinded, attack, what, doors, capsys)


@pytest.mark.parametrize(("attack", "what", "doors"), [line[1:] for line in SEALED], ids=[line[0] for line in SEALED])
def test_what_was_changed_in_the_seal_before_unblinding_is_named(blind, attack, what, doors, capsys):
    is_named(blind, attack, what, doors, capsys)


@pytest.mark.parametrize("heads", [rewrite_heads, cut_heads])
def test_a_record_made_anew_is_named_by_a_head_noted_before_and_no_door_says_that_it_is_bound(unblinded, heads, capsys):
    """What nothing inside the folder can tell (decision 0026): the one line of this list that needs an outside head."""
    noted = events_of(unblinded)[-1]
    rehashed_with(heads)(unblinded)
    assert call(["verify", str(unblinded)]) == 0 and "not checked against an outside head" in capsys.readouterr().out
    assert call(["verify", str(unblinded), "--head", f"{noted.seq}:{noted.hash}"]) == 1


# -- what is ordered of a run

SCORE = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
STRANGER = "'mallory' is in no session here"
REASON = "arm_lost"

# where the trial stands; what is ordered, by whom, claiming which role; what the refusal says. ann is everything, bea
# assessor, cal setter, mallory nobody.
ORDERS: list[tuple[str, str, str, str, dict[str, Any], str]] = [
    ("planned", "stage", "mallory", "setter", {}, STRANGER),
    ("planned", "stage", "bea", "setter", {}, "bea is assessor here, not setter"),
    ("planned", "skip", "mallory", "operator", {"reason": "x"}, STRANGER),
    ("planned", "practice", "mallory", "operator", {"person": "p", "object": "towels"}, STRANGER),
    ("planned", "session", "mallory", "operator", {"people": [{"id": "mallory", "roles": ["operator"]}]}, "still open"),
    ("planned", "session", "ann", "king", {"people": []}, "role is 'king'"),
    ("planned", "people", "mallory", "operator", {"people": [{"id": "mallory", "roles": ["operator"]}]}, STRANGER),
    ("planned", "people", "ann", "operator", {"people": [{"id": "ann", "roles": ["king"]}]}, "king"),
    ("staged", "commit", "mallory", "operator", {}, STRANGER),
    ("staged", "commit", "bea", "operator", {}, "bea is assessor here, not operator"),
    ("staged", "release", "mallory", "setter", {"reason": "x"}, STRANGER),
    ("staged", "reference", "mallory", "setter", {"reason": "x"}, STRANGER),
    ("staged", "reference", "bea", "assessor", {"reason": "x"}, "assessor"),
    ("staged", "start", "ann", "operator", {}, "not allowed"),
    ("staged", "reveal", "ann", "operator", {}, "not allowed"),
    ("staged", "reveal", "mallory", "operator", {}, STRANGER),
    ("running", "start", "mallory", "operator", {}, STRANGER),
    ("running", "end", "mallory", "operator", {}, STRANGER),
    ("running", "end", "bea", "operator", {}, "bea is assessor here, not operator"),
    ("running", "end", "ann", "operator", {"reason": "all_done"}, "not 'all_done'"),
    ("running", "end", "ann", "operator", {"reason": "budget"}, "not 'budget'"),
    ("running", "end", "ann", "operator", {"reason": "lease_lapsed"}, "not 'lease_lapsed'"),
    ("running", "count", "mallory", "operator", {"by": 1}, STRANGER),
    ("running", "reach", "mallory", "operator", {"stage": 1}, STRANGER),
    ("running", "touch", "mallory", "operator", {"phase": "begin"}, STRANGER),
    ("running", "wait", "mallory", "operator", {"after": "trial"}, STRANGER),
    ("running", "note", "mallory", "operator", {"text": "x"}, STRANGER),
    ("running", "score", "ann", "assessor", SCORE, "not allowed"),
    ("running", "void", "ann", "operator", {"reason": REASON, "confirmed_by": "bea"}, "not allowed"),
    ("running", "acknowledge", "mallory", "operator", {"code": "operator_stop"}, STRANGER),
    ("running", "acknowledge", "ann", "operator", {"code": "no_such"}, "no hold 'no_such' stands"),
    ("scoring", "score", "mallory", "assessor", SCORE, STRANGER),
    ("scoring", "score", "cal", "assessor", SCORE, "cal is setter here, not assessor"),
    ("scoring", "score", "bea", "assessor", {**SCORE, "items_staged": 1, "remaining": 0}, "items_staged"),
    ("scoring", "score", "bea", "assessor", {**SCORE, "moved": 3, "remaining": -1}, "remaining"),
    ("scoring", "score", "bea", "assessor", {**SCORE, "arm": "zebra"}, "arm is unknown"),
    ("scoring", "score", "bea", "assessor", {**SCORE, "tags": ["no such tag"]}, "no such tag"),
    ("scoring", "score", "bea", "assessor", {**SCORE, "stage_reached": "no such stage"}, "no such stage"),
    ("scoring", "void", "mallory", "operator", {"reason": REASON, "confirmed_by": "bea"}, STRANGER),
    ("scoring", "void", "ann", "operator", {"reason": REASON}, "second person"),
    ("scoring", "void", "ann", "operator", {"reason": REASON, "evidence": 1}, "is no machine's report"),
    ("scoring", "void", "ann", "operator", {"reason": REASON, "confirmed_by": "ann"}, "another one"),
    ("scoring", "void", "ann", "operator", {"reason": REASON, "confirmed_by": "nobody"}, "'nobody' is in no session"),
    ("scoring", "void", "ann", "operator", {"reason": REASON, "confirmed_by": "bea", "personal_code": "1"}, "no perso"),
    ("scoring", "void", "ann", "operator", {"reason": REASON, "confirmed_by": "bea", "personal_code": 1234}, "be text"),
    ("scoring", "confirm", "mallory", "operator", {"episode": "EPISODE", "reason": REASON}, STRANGER),
    ("scoring", "confirm", "cal", "assessor", {"episode": "EPISODE", "reason": REASON}, "cal is setter here"),
    ("scoring", "confirm", "bea", "assessor", {"episode": "e-no-such", "reason": REASON}, "look again"),
    ("running", "confirm", "bea", "assessor", {"episode": "EPISODE", "reason": REASON}, "nothing to confirm"),
    ("scoring", "void", "ann", "operator", {"reason": "it looked bad", "confirmed_by": "bea"}, "not in the protocol"),
    ("scored", "correct", "mallory", "assessor", {"trial": "TRIAL", "why": "x", **SCORE}, STRANGER),
    ("scored", "correct", "cal", "assessor", {"trial": "TRIAL", "why": "x", **SCORE}, "cal is setter here"),
    ("scored", "correct", "bea", "assessor", {"trial": "TRIAL", "why": "x", **SCORE, "moved": 3}, "is not the 2"),
    ("scored", "correct", "bea", "assessor", {"trial": "TRIAL", "why": "", **SCORE}, "the reason for"),
    ("scored", "review", "cal", "setter", {"trial": "TRIAL"}, "review is for the assessor"),
    ("scored", "review", "mallory", "assessor", {"trial": "TRIAL"}, STRANGER),
    ("scored", "prefer", "mallory", "assessor", {"first": "e-1", "second": "e-2", "preferred": "first"}, STRANGER),
    ("scored", "prefer", "cal", "assessor", {"first": "e-1", "second": "e-2", "preferred": "first"}, "cal is setter"),
    ("scored", "judge", "mallory", "assessor", {"trial": "TRIAL", **SCORE}, STRANGER),
    ("scored", "guess", "mallory", "operator", {"trial": "TRIAL", "guess": "zebra"}, STRANGER),
    ("scored", "guess", "cal", "assessor", {"trial": "TRIAL", "guess": "zebra"}, "cal is setter here"),
]  # fmt: skip


def run_up_to(bench: Bench, state: str) -> None:
    """A run whose first trial stands there."""
    bench.begin_session(bea=["assessor"], cal=["setter"])
    if state == "planned":
        return
    bench.stage()
    if state == "staged":
        return
    episode = bench.start()
    bench.go(episode)
    if state == "running":
        return
    assert bench.command("end")["ok"]
    bench.seal(episode)
    if state == "scored":
        assert bench.command("score", who="bea", role="assessor", **SCORE)["ok"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Bench]]:
    """One run for each state that is asked for."""
    made: dict[str, Bench] = {}

    def run(state: str) -> Bench:
        if state not in made:
            arms = [HUMAN, policy("zebra", endpoint="sim://zebra")]
            folder = make_campaign(tmp_path_factory.mktemp(state), arms, items=2).folder
            made[state] = Bench(Campaign.open(folder, writer=True))
            run_up_to(made[state], state)
        return made[state]

    yield run
    for bench in made.values():
        bench.campaign.close()


@pytest.mark.parametrize(
    ("state", "verb", "who", "role", "args", "says"), ORDERS, ids=[f"{o[1]} by {o[2]}, {o[0]}" for o in ORDERS]
)
def test_what_somebody_orders_who_may_not_is_refused_and_changes_nothing(runs, state, verb, who, role, args, says):
    bench = runs(state)
    if args.get("trial") == "TRIAL":
        args = {**args, "trial": next(t.id for t in fold(bench.events()).trials.values() if t.outcome)}
    before = bench.events()[-1].seq
    reply = bench.command(verb, who=who, role=role, **args)
    assert not reply["ok"] and says in reply["error"], reply
    assert bench.events()[-1].seq == before


def test_each_order_has_a_line():
    """A verb that is added is attacked too; those of anybody are a stop, a look, and a session that was left open."""
    assert {str(verb) for verb in KNOWN} - {line[1] for line in ORDERS} == {*OF_ANYBODY} - {"session"}


# -- what is asked of the command line, without a run

TABLE = ("--to", "table", "--out", "{}/../../x.csv")
VERBS: list[tuple[str, list[str], str]] = [
    ("a review by nobody", ["review", "{}", "--who", "mallory"], "--register"),
    ("a freeze of an open campaign", ["freeze", "{}"], "close"),
    ("an unblinding of an open campaign", ["unblind", "{}"], "close"),
    ("a head of eight digits", ["verify", "{}", "--head", "5:01234567"], "16"),
    ("the arms of what is sealed", ["export", "{}", *TABLE, "--for-arm", "zebra"], "unblind"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "says"), [line[1:] for line in VERBS], ids=[line[0] for line in VERBS])
def test_what_a_verb_may_not_is_refused_and_changes_nothing(blind, words, says, capsys):
    before = [event.hash for event in events_of(blind)]
    assert call([word.format(blind) for word in words]) in (1, 2)
    assert says in capsys.readouterr().err
    assert [event.hash for event in events_of(blind)] == before
