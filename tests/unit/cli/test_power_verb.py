"""`labctl power` as typed: exact answers for rates, simulated ones for times, one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.runs.campaigns import arms_toml
from support.runs.task_campaign import ARMS, tasks_text

from labctl import cli
from labctl.analysis.planning.power import connor_pairs
from labctl.cli.planning import pace, power_times
from labctl.store.lab_folder import read_plan

ROOT = Path(__file__).resolve().parents[3]
DEMO = ROOT / "protocols" / "demo.toml"
PILOT = ROOT / "tests" / "unit" / "analysis" / "report_table.csv"
QUICK = ["--runs", "20", "--perm", "99"]
FINER = ["--runs", "20", "--perm", "119"]  # for a level of .05 / 6


def protocol_of_tasks(lab: Path) -> Path:
    """Four tasks, one of each measure, in a lab without a campaign."""
    for folder in ("protocols", "fixtures"):
        (lab / folder).mkdir()
    (lab / "lab.toml").touch()
    (lab / "fixtures/two_totes.toml").write_text((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "utf-8")
    (lab / "protocols/p.toml").write_text(tasks_text() + arms_toml(ARMS), "utf-8")
    return lab / "protocols/p.toml"


def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.call(["power", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_rate_takes_the_published_number_of_trials(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("--half-width", "0.05", "--rate", "0.7", "--n", "25", capsys=capsys)
    # methodology 3.9: 320 at p = .7, 381 at .5; facts 4.8: N = 25 at .7 gives 16.9 points
    assert code == 0 and "takes 320 independent trials; 381 if" in out and "+-16.9" in out


def test_pairs_are_connor_s_and_exact_side_by_side(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("--discordant", "0.1", "--difference", "0.05", "--n", "312", "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0 and found["pairs_connor"] == 312
    assert 0.80 <= found["by_pairs"][0]["power"] < 0.82 and found["by_pairs"][0]["power_exact"] < 0.78
    assert abs(found["pairs"] - 312) < 20


def test_two_unpaired_rates_take_their_sizes_from_a_protocol(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("--rates", "0.9,0.4", "--protocol", str(DEMO), "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0 and [row["trials"] for row in found["by_trials"]] == [12]
    assert found["alpha"] == 0.05 and found["trials_per_arm"] < 30
    code, out, _ = typed("--rates", "0.51,0.50", capsys=capsys)
    assert code == 0 and "needs about 39240 trials per arm (by the normal approximation)" in out


@pytest.mark.parametrize(
    "words", [["--half-width", "0.05"], ["--rates", "0.9,0.4"], ["--discordant", "0.3", "--difference", "0.15"]]
)
def test_a_success_rate_is_planned_of_a_protocol_with_tasks_too(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Its four tasks have budgets of 16 s for the first four of seven conditions, and of 30 s for the others: a mean
    of (4 x 16 + 3 x 30) / 7 = 22 s.
    """
    at = protocol_of_tasks(tmp_path)
    (tmp_path / "lab.toml").touch()
    code, out, _ = typed(*words, "--protocol", str(at), "--lab", str(tmp_path), "--json", capsys=capsys)
    found = json.loads(out)
    by = found.get("by_trials") or found["by_pairs"]
    assert code == 0 and [one.get("trials", one.get("pairs")) for one in by] == [4], "four sets of seven blocks"
    assert found["cost"]["hours"] > 0
    code, out, _ = typed(*words, "--protocol", str(at), "--lab", str(tmp_path), "--evenings", "1", capsys=capsys)
    assert code == 0 and "Times:" in out


def test_times_per_item_are_refused_of_tasks_in_one_line_that_says_what_to_ask_instead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    at = protocol_of_tasks(tmp_path)
    code, _, err = typed("--rmst", "77,99", "--protocol", str(at), capsys=capsys)
    assert code == 2 and err.count("\n") == 1 and str(at) in err
    assert "labctl plan says how many blocks a drop of success takes" in err and "--discordant and --difference" in err


def test_the_mean_trial_of_tasks_has_the_mean_of_its_conditions_budgets(tmp_path: Path):
    assert pace._budget_of(read_plan(protocol_of_tasks(tmp_path)).protocol) == pytest.approx((4 * 16 + 3 * 30) / 7)


def test_times_are_simulated_from_stated_rmsts(capsys: pytest.CaptureFixture[str]):
    words = ["--rmst", "human=8,policy-a=40,policy-b=70", "--protocol", str(DEMO), "--n", "3,6", *QUICK]
    code, out, err = typed(*words, capsys=capsys)
    assert code == 0
    assert "Assumed (stated)" in out and "policy-a vs policy-b, level 0.017:" in out and "HRT % against human" in out
    assert "(blocks in all: 12, 24)" in out  # four objects
    assert "simulated: power" in err


PHAIL = ROOT / "protocols" / "phail_like.toml"  # five arms, a person among them as the reference; 40 blocks


@pytest.mark.parametrize(
    "words", [["--rates", "0.9,0.4"], ["--discordant", "0.3", "--difference", "0.15"], ["--half-width", "0.1"]]
)
def test_hours_and_evenings_are_those_of_all_arms_as_of_the_plan(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """*Seen:* 4 evenings for a protocol that takes 10, and 32 trials of each arm in 3 evenings that hold 12 blocks."""
    (tmp_path / "lab.toml").touch()
    lab = ["--lab", str(tmp_path), "--protocol", str(PHAIL)]
    out = typed(*words, *lab, capsys=capsys)[1]
    assert cli.call(["plan", str(PHAIL), "--lab", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    cost = said[said.index("At the robot: ") + 14 :].splitlines()[0]
    assert ("half" in words[0]) or cost in out
    out = typed(*words, *lab, "--evenings", "3", "--json", capsys=capsys)[1]
    found = json.loads(out)
    rows = found.get("by_trials") or found["by_pairs"]
    assert [row.get("trials", row.get("pairs")) for row in rows] == [12]
    needed = found.get("trials", found.get("trials_per_arm", found.get("pairs")))
    assert found["cost"]["trials"] == 5 * needed


def test_the_level_of_rates_is_by_holm_over_the_pairs_of_the_protocol(capsys: pytest.CaptureFixture[str]):
    """Six pairs of policies, as `labctl plan` counts them; none is corrected for where no protocol is given."""
    found = json.loads(typed("--rates", "0.9,0.6", "--protocol", str(PHAIL), "--json", capsys=capsys)[1])
    alone = json.loads(typed("--rates", "0.9,0.6", "--n", "40", "--json", capsys=capsys)[1])
    assert (found["alpha"], found["level"]) == (0.05, pytest.approx(0.05 / 6)) and "level" not in alone
    assert found["trials_per_arm"] > 1.4 * alone["trials_per_arm"]
    assert found["by_trials"][0]["power"] < alone["by_trials"][0]["power"] - 0.15
    out = typed("--discordant", "0.3", "--difference", "0.15", "--protocol", str(PHAIL), capsys=capsys)[1]
    assert "alpha 0.05, by Holm over 6 pairs 0.0083: 80% power" in out


def test_times_of_some_arms_are_held_to_the_level_and_cost_the_hours_of_all(capsys: pytest.CaptureFixture[str]):
    words = ["--rmst", "pi05-like=77,act-like=40", "--protocol", str(PHAIL), "--n", "3", "--json", *FINER]
    found = json.loads(typed(*words, "--trial-s", "100", capsys=capsys)[1])
    assert [round(pair["level"], 5) for pair in found["pairs"]] == [round(0.05 / 6, 5)]
    objects = len(found["objects"])
    assert [one["trials"] for one in found["cost"]["by_size"]] == [3 * objects * 5]


@pytest.mark.parametrize(
    ("rmst", "said"),
    [
        ("77,99", "--rmst has 2 times, and the protocol's arms are human, pi05-like"),
        (
            "pi05-like=77,act_like=99",
            "--rmst names 'act_like'; did you mean 'act-like'?; the protocol's arms",
        ),
    ],
)
def test_times_of_arms_that_the_protocol_has_not_are_refused(rmst: str, said: str, capsys: pytest.CaptureFixture[str]):
    """A misspelt arm was one more, and without its reference the table of HRT was left out without a word."""
    code, _, err = typed("--rmst", rmst, "--protocol", str(PHAIL), capsys=capsys)
    assert code == 2 and said in err and err.count("\n") == 1


def test_a_protocol_of_one_arm_compares_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = DEMO.read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures")).replace('reference = "human"\n', "")
    second = text.index("[[arm]]", text.index("[[arm]]") + 1)
    (tmp_path / "p.toml").write_text(text[:second].replace("ask_guess = true", "ask_guess = false"), "utf-8")
    for words in (["--rates", "0.9,0.4"], ["--rmst", "human=8,b=9"]):
        code, _, err = typed(*words, "--protocol", str(tmp_path / "p.toml"), capsys=capsys)
        assert code == 2 and "has one arm and compares nothing" in err
    assert typed("--half-width", "0.2", "--protocol", str(tmp_path / "p.toml"), capsys=capsys)[0] == 0


def test_bare_numbers_take_the_protocol_s_names_when_they_are_as_many(capsys: pytest.CaptureFixture[str]):
    words = ["--rmst", "8,40,70,90", "--protocol", str(DEMO), "--n", "3", "--json", *QUICK]
    code, out, _ = typed(*words, capsys=capsys)
    found = json.loads(out)
    assert code == 0 and [arm["arm"] for arm in found["arms"]] == ["human", "policy-a", "policy-b", "policy-c"]
    assert {law["budget_s"] for arm in found["arms"] for law in arm["laws"].values()} == {120.0}
    assert len(found["objects"]) == 4


@pytest.mark.thorough
def test_times_are_simulated_from_a_pilot(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("--pilot", str(PILOT), "--n", "3", *QUICK, capsys=capsys)
    assert code == 0
    assert "Assumed (fitted to the pilot)" in out and "policy-b" in out
    assert "Assured: the mean power over the arms that the pilot goes with as well" in out
    assert "for looks larger in it than it is" in out


RMST = ["--rmst", "77,99", "--tau", "240", "--items", "8", "--budget-s", "240"]


@pytest.mark.parametrize("share", ["1e-6", "0.5"])
def test_more_pairs_than_can_be_listed_are_named_by_the_formula(share: str, capsys: pytest.CaptureFixture[str]):
    """Hundreds of millions of pairs were listed one by one."""
    difference = {"1e-6": "1e-7", "0.5": "0.01"}[share]
    code, out, _ = typed("--discordant", share, "--difference", difference, capsys=capsys)
    connor = connor_pairs(float(share), float(difference))
    said = f"needs more than 10000 pairs by listing every outcome ({connor} by Connor's formula)"
    assert code == 0 and said in out


def test_pairs_that_the_formula_has_beyond_what_is_listed_are_listed_all_the_same(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("--discordant", "0.00075", "--difference", "0.00075", capsys=capsys)
    assert code == 0 and "needs 8960 pairs by listing every outcome (10463 by Connor's formula)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "found none of them"),
        (["--half-width", "0.05", "--rates", "0.5,0.6"], "found --half-width and --rates"),
        (["--half-width", "1.5"], "--half-width"),
        (["--rates", "0.5"], "two rates such as 0.85,0.70"),
        (["--rates", "0.5,0.5"], "two different rates"),
        (["--rates", "0.5,1.5"], "two different rates"),
        (["--discordant", "0.2"], "go together"),
        (["--discordant", "0.2", "--difference", "0.3"], "at most the share of discordant pairs"),
        (["--rates", "0.5,0.7", "--n", "500"], "listed up to 400"),
        (["--rates", "0.5,0.7", "--n", "20,-5"], "--n is '20,-5'"),
        (["--rmst", "77,99"], "--tau is needed without --protocol"),
        ([*RMST, "--rmst", "77"], "--rmst has one arm"),
        ([*RMST, "--rmst", "77,x"], "--rmst has 'x'"),
        ([*RMST, "--rmst", "a=77,a=99"], "names 'a' twice"),
        ([*RMST, "--rmst", "77,400"], "allowed is above 0 and below tau"),
        ([*RMST, "--rmst", "77,nan"], "--rmst has 'nan'"),
        ([*RMST, "--tau", "300"], "beyond the episode budget of 240 s"),
        ([*RMST, "--lost", "0.1,0.1,0.1"], "--lost is '0.1,0.1,0.1'"),
        ([*RMST, "--lost", "1"], "--lost is '1'"),
        ([*RMST, "--n", "1"], "allowed is 2 and more"),
        ([*RMST, "--reference", "human"], "no arm 'human' to refer to; the arms are A, B"),
        ([*RMST, "--perm", "19", "--alpha", "0.01"], "--perm 99"),
        (["--pilot", "none.csv"], "none.csv: cannot be read"),
        (["--half-width", "1e-300"], "a half-width of 1e-300 takes more than 1e+12 trials; ask for a wider one"),
        (["--discordant", "0.5", "--difference", "1e-9"], "a difference of 1e-09 takes more than 1e+12 trials"),
        (["--discordant", "0.5", "--difference", "1e-300"], "ask for a larger one"),
        (["--rates", "0,1e-300"], "ask for a larger one"),
        (["--rates", "0.1,0.2", "--n", "100000"], "per arm 100000 trials; exact power is listed up to 400"),
        (["--discordant", "0.5", "--difference", "0.3", "--n", "1000000"], "exact power is listed up to 10000"),
        (["--rates", "0.5,0.6", "--evenings", "1e300", "--trial-s", "100"], "'--evenings': 1e+300 is not in the range"),
        (["--rates", "0.5,0.6", "--evenings", "10", "--trial-s", "1e-300"], "'--trial-s': 1e-300 is not in the range"),
        (["--half-width", "0.1", "--evenings", "100000", "--trial-s", "0.1", "--session-h", "24"],
         "of each arm; at most 1000000 are planned: give fewer evenings"),
        ([*RMST, "--evenings", "100000", "--trial-s", "1"], "of each arm; at most 10000 are planned"),
        ([*RMST, "--tau", "1e308", "--budget-s", "1e308"], "is not in the range"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    code, out, err = typed(*words, capsys=capsys)
    assert code == 2 and out == ""
    assert said in err and err.startswith("error: ") and err.count("\n") == 1


def test_a_size_and_its_range_are_rounded_alike():
    """*Seen:* "5 [4, 4]": 4.3 episodes were five, and their range of 4.1 to 4.4 was four."""
    assert power_times._episodes({"episodes": 5, "low": 4.1, "high": 4.4}, [2, 8]) == "5 [5, 5]"
    assert power_times._episodes({"episodes": 20, "low": 15.2, "high": None}, [5, 20]) == "20 [16, >20]"


@pytest.mark.parametrize("named", [pytest.param(True, marks=pytest.mark.thorough), False])
def test_a_protocol_that_names_no_reference_has_none_though_an_arm_is_called_human(
    named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Its report adjusts over all pairs and has no HRT; so does its plan."""
    text = DEMO.read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures"))
    path = tmp_path / "p.toml"
    path.write_text(text if named else text.replace('reference = "human"\n', ""), "utf-8")
    words = ["--rmst", "human=8,policy-a=40,policy-b=70", "--protocol", str(path), "--n", "3", "--json", *FINER]
    found = json.loads(typed(*words, capsys=capsys)[1])
    assert found["reference"] == ("human" if named else None) and bool(found["hrt"]) is named
    assert {round(pair["level"], 6) for pair in found["pairs"]} == ({0.016667} if named else {0.008333})


@pytest.mark.parametrize("more", [["--target", "0.03"], ["--alpha", "0.95"]])
def test_a_power_that_no_difference_takes_is_said_and_no_traceback(more: list[str], capsys: pytest.CaptureFixture[str]):
    words = ["--discordant", "0.3", "--difference", "0.15", "--n", "40", "--json", *more]
    code, out, _ = typed(*words, capsys=capsys)
    assert code == 0 and json.loads(out)["by_pairs"][0]["resolvable"] == 0.0
