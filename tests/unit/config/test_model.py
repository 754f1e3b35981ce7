"""Claims about the three TOML files and the values: what is wrong is refused, at its line, with the remedy."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.config.cell_schema import parse_cell, parse_fixture, parse_lab
from labctl.config.conditions import Condition, protocol_conditions
from labctl.config.protocol_schema import check_against_fixture, parse_protocol
from labctl.config.toml_text import key_lines
from labctl.core.events import EndReason
from labctl.core.outcome import Outcome, outcome_from
from labctl.core.session import Person, Role, Session, missing_checks, session_from
from labctl.errors import InputError

ROOT = Path(__file__).parents[3]
PROTOCOL = files("labctl.protocols").joinpath("demo.toml").read_text("utf-8")
FIXTURE = files("labctl.fixtures").joinpath("two_totes.toml").read_text("utf-8")
CELL = (ROOT / "hw_configs" / "sim_fr3.toml").read_text()
STOPS = 'stops_count = ["danger", "contact"]'
PARSERS = {"protocol": (parse_protocol, PROTOCOL), "fixture": (parse_fixture, FIXTURE), "cell": (parse_cell, CELL)}


def refused(what: str, old: str, new: str, at: str) -> str:
    """The refusal of a file in which `old` was replaced by `new` once, after asserting that it names `at`'s line."""
    parser, text = PARSERS[what]
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        parser(changed, f"{what}.toml")
    message = str(caught.value)
    line = changed[: changed.index(at)].count("\n") + 1
    assert message.startswith(f"{what}.toml:{line}: ") and "\n" not in message, message
    return message


def test_the_packaged_files_parse_and_keep_their_names():
    protocol, fixture, cell = parse_protocol(PROTOCOL, "p"), parse_fixture(FIXTURE, "f"), parse_cell(CELL, "c")
    assert protocol.trial.budget_s_per_item == 30.0 and protocol.tasks[0].budget_s == 120.0
    assert [(arm.name, arm.kind) for arm in protocol.arm][:2] == [("human", "human"), ("policy-a", "policy")]
    assert protocol.arm[1].options == {"skill": "swift", "endpoint": "sim://policy-a"}
    assert protocol.trial.stops_count == ("danger", "contact")
    assert parse_protocol(PROTOCOL.replace(STOPS, ""), "p").trial.stops_count == ("danger", "contact"), "the default"
    assert fixture.layout[1].tote_side == "right"
    assert cell.robot.limits.velocity_rad_s[4] == 2.5 and cell.camera[0].options == {"view": "over_shoulder"}
    assert cell.lease.duration_s == 0.3 and cell.storage.min_free_gb == 1.0


@pytest.mark.parametrize(
    ("what", "old", "new", "says"),
    [
        (
            "protocol",
            "budget_s_per_item = 30.0",
            "budget_ms = 30000",
            r"unknown key 'budget_ms'.*mean 'budget_s_per_item'",
        ),
        ("protocol", "tau_s =", "tau =", r"unknown key 'tau'.*mean 'tau_s'.*unit.*known keys: tau_s"),
        ("protocol", "alpha =", "alhpa =", r"did you mean 'alpha'\?"),
        ("protocol", "[analysis]", "[analisys]", r"unknown key 'analisys'.*mean 'analysis'"),
        ("protocol", "budget_s_per_item = 30.0", "budget_s_per_item = 0", r"is 0; it must be greater than 0"),
        ("protocol", "budget_s_per_item = 30.0", "budget_s_per_item = -1.0", r"is -1.0; it must be greater than 0"),
        ("protocol", "budget_s_per_item = 30.0", "budget_s_per_item = nan", r"it must be a finite number"),
        ("protocol", "budget_s_per_item = 30.0", 'budget_s_per_item = "30"', r"is '30'; it must be a number"),
        ("protocol", "arming_s = 6.0", "arming_s = -0.1", r"greater than or equal to 0"),
        ("protocol", "items_staged = 4", "items_staged = 0", r"greater than or equal to 1"),
        ("protocol", "items_staged = 4", "items_staged = 4.5", r"it must be a whole number"),
        ("protocol", "items_staged = 4", "items_staged = true", r"is true; it must be a whole number"),
        ("protocol", "max_voids = 3", "max_voids = 0", r"greater than or equal to 1"),
        ("protocol", "tau_s = 120.0", "tau_s = 120.5", r"beyond the episode budget of 4 items x 30 s = 120 s"),
        ("protocol", '"uph"]', '"upp"]', r"'upp'; it must be 'ks_macro', 'ks_sup_mean', 'log_rmst_ratio' or 'uph'"),
        ("protocol", '"uph"]', '"uph", "uph"]', r"'uph' appears twice"),
        ("protocol", "alpha = 0.05", "alpha = 1.0", r"less than 1"),
        ("protocol", 'process_lost = "void"', 'process_lost = "drop"', r"'drop'; it must be 'void' or 'score'"),
        ("protocol", 'reference = "human"', 'reference = "humn"', r"unknown reference 'humn'; did you mean 'human'"),
        (
            "protocol",
            '"recorder_lost", "process_lost", "not_ready"',
            '"not_ready"',
            r"lacks recorder_lost, process_lost",
        ),
        ("protocol", 'objects = ["wooden spoons", ', 'objects = ["towels", ', r"'towels' appears twice"),
        ("protocol", 'layouts = ["layout-1"]', "layouts = []", r"layouts has 0 values; it must have at least 1"),
        ("protocol", 'layouts = ["layout-1"]', 'layouts = ["a/b"]', r"'a/b'"),
        ("protocol", "blocks_per_condition = 3", "blocks_per_condition = 0", r"greater than or equal to 1"),
        ("protocol", "[design]", "[design", r"not valid TOML"),
        ("protocol", 'name = "demo', 'name = "a demo', r"is 'a demo.*; allowed: letters, digits, `.`, `_` and `-`"),
        ("protocol", 'question = "', 'question = 5 # "', r"question is 5; it must be a text, in quotes"),
        ("protocol", "require_photo = true", 'require_photo = "yes"', r"is 'yes'; it must be true or false"),
        ("protocol", 'authors = ["labctl demo"]', 'authors = "me"', r"is 'me'; it must be a list, in brackets"),
        (
            "protocol",
            'authors = ["labctl demo"]',
            'authors = [""]',
            r"authors\[1\] is ''; it is empty; write something",
        ),
        ("cell", "[lease]", "[[lease]]", r"lease is a list of tables; it must be a table, with one pair of brackets"),
        ("fixture", 'tote_side = "left"', 'tote_side = "lefd"', r"unknown tote 'lefd'; did you mean 'left'"),
        ("fixture", 'camera_side = "left"', 'camera_side = "top"', r"'top'; it must be 'left' or 'right'"),
        (
            "fixture",
            'camera_side = "left"',
            'camera_side = "left"\naxes = ["V-LIGTH"]',
            r"axis 'V-LIGTH'; did you mean 'V-LIGHT'",
        ),
        (
            "fixture",
            'camera_side = "left"',
            'camera_side = "left"\ndistractors = ["towel"]',
            r"unknown object 'towel'; did you mean 'towels'",
        ),
        (
            "fixture",
            'camera_side = "left"',
            'camera_side = "left"\nyaw_rad = [1.0, 0.5]',
            r"yaw_rad is \[1, 0.5\]; the first must be below the second",
        ),
        ("fixture", "grasp_width_m = 0.030", "grasp_width_mm = 30", r"mean 'grasp_width_m' \(the unit"),
        ("fixture", "size_m = [0.34, 0.30, 0.12]", "size_m = [0.34, 0.30]", r"size_m has 2 values; it needs more"),
        (
            "cell",
            'kind = "sim"',
            'kind = "simulated"',
            r"'simulated'; it must be 'real', 'sim', 'replay' or 'emulated'",
        ),
        ("cell", "state_hz = 100.0", "state_hz = -100.0", r"greater than 0"),
        (
            "cell",
            "velocity_rad_s = [2.0",
            "velocity_rad_s = [0.0",
            r"velocity_rad_s\[1\] is 0.0; it must be greater than 0",
        ),
        ("cell", "duration_s = 0.3", "duration_s = 0", r"greater than 0"),
        ("cell", "duration_s = 0.3", "duration_s = 3600", r"less than or equal to 5"),
        ("cell", "duration_s = 0.3", "duration_ms = 300", r"did you mean 'duration_s' \(the unit"),
        ("cell", 'name = "wrist"', 'name = "../wrist"', r"'../wrist'"),
        (
            "protocol",
            STOPS,
            'stops_count = ["danger", "contact", "boredom"]',
            r"stops_count\[3\] is 'boredom'; it must be 'danger', 'contact' or 'mistaken_key'",
        ),
        ("protocol", STOPS, 'stops_count = ["contact", "contact"]', r"'contact' appears twice in 'stops_count'"),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_in_one_line_with_the_remedy(what, old, new, says):
    message = refused(what, old, new, at=new.split("\n")[-1])
    assert re.search(says, message), message


@pytest.mark.parametrize(
    ("what", "old", "new", "at", "says"),
    [
        (
            "protocol",
            'name = "policy-b"',
            'name = "policy-a"',
            'name = "policy-a"\nkind = "policy"\ncontroller = "sim_policy"\n[arm.options]\nskill = "steady"',
            "'policy-a' appears twice",
        ),
        (
            "protocol",
            'kind = "policy"',
            'kind = "human"',
            'kind = "human"\ncontroller = "sim_policy"',
            "second arm of kind 'human'",
        ),
        (
            "fixture",
            'name = "towels"',
            'name = "scissors"',
            'name = "scissors"\nitem_size_m = [0.15',
            "'scissors' appears twice",
        ),
        (
            "cell",
            "velocity_rad_s = [2.0, ",
            "velocity_rad_s = [",
            "acceleration_rad_s2",
            "acceleration_rad_s2 has 7 values, velocity_rad_s 6",
        ),
        ("cell", "box_min_m = [0.15", "box_min_m = [0.90", "box_max_m", "empty along x"),
        (
            "cell",
            'name = "wrist"',
            'name = "over_shoulder"',
            "name" + CELL.split("name")[-1].replace("wrist", "over_shoulder", 1),
            "'over_shoulder' appears twice",
        ),
    ],
)
def test_two_entries_that_contradict_each_other_are_refused_at_the_second(what, old, new, at, says):
    assert re.search(says, refused(what, old, new, at))


def test_a_missing_key_is_asked_for_at_its_table():
    assert refused("protocol", "arming_s = 6.0", "# gone", at="[trial]").endswith(
        ": [trial] needs the key 'arming_s'; add it"
    )


def test_a_missing_table_is_asked_for():
    with pytest.raises(InputError, match=r"^p.toml: the file needs the key 'protocol'; add it$"):
        parse_protocol("", "p.toml")


def test_fewer_than_two_arms_are_refused():
    """A person alone may be the only one (test_human.py), compared with nobody."""
    one = PROTOCOL[: PROTOCOL.index('[[arm]]\nname = "policy-a"')]
    with pytest.raises(InputError, match="reference with one arm: there is nothing to compare; take it out"):
        parse_protocol(one, "p.toml")


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('clock = "monotonic"', 'clock = "manual"', {"real": "only sim and replay", "emulated": "only sim and replay"}),
        ("durable = true", "durable = false", {k: "only a sim cell" for k in ("real", "replay", "emulated")}),
    ],
)
@pytest.mark.parametrize("kind", ["real", "sim", "replay", "emulated"])
def test_simulated_time_and_a_risked_record_belong_to_simulation_only(old, new, refusal, kind):
    text = CELL.replace(old, new).replace('kind = "sim"', f'kind = "{kind}"')
    if kind in refusal:
        with pytest.raises(InputError, match=refusal[kind]):
            parse_cell(text, "c.toml")
    else:
        assert parse_cell(text, "c.toml").cell.kind == kind


def test_a_cell_may_have_no_camera():
    assert parse_cell(CELL[: CELL.index("[[camera]]")], "c.toml").camera == ()


def test_a_linked_campaign_names_anchors_that_are_arms():
    link = f'[[link]]\ncampaign = "last-month"\nhead = "{"a" * 64}"\nanchors = ["human", "policy-z"]\n'
    assert parse_protocol(PROTOCOL + link.replace("policy-z", "policy-a"), "p").link[0].anchors == ("human", "policy-a")
    with pytest.raises(InputError, match=r"unknown anchor 'policy-z'"):
        parse_protocol(PROTOCOL + link, "p")


def test_a_design_is_checked_against_its_fixture_at_the_line_of_the_protocol():
    protocol = parse_protocol(PROTOCOL.replace('"towels"', '"towel"').replace('"layout-1"', '"layout-2"'), "p.toml")
    line = next(n for n, text in enumerate(PROTOCOL.split("\n"), 1) if text.startswith("objects"))
    with pytest.raises(InputError, match=rf"^q.toml:{line}: unknown object 'towel'; did you mean 'towels'"):
        check_against_fixture(protocol, parse_fixture(FIXTURE, "f"), "q.toml")


def test_conditions_are_objects_by_layouts_with_the_axes_and_tags_of_both():
    fixture = parse_fixture(
        FIXTURE.replace('name = "towels"', 'name = "towels"\ntags = ["soft"]').replace(
            'tote_side = "right"', 'tote_side = "right"\naxes = ["V-VIEW"]'
        ),
        "f",
    )
    protocol = parse_protocol(PROTOCOL.replace('layouts = ["layout-1"]', 'layouts = ["layout-1", "layout-2"]'), "p")
    conditions = protocol_conditions(protocol, fixture)
    assert len(conditions) == 8
    assert conditions[3] == Condition("towels/layout-2", "towels", "layout-2", ("V-VIEW",), ("soft",))


def test_lines_are_found_through_multi_line_strings_and_arrays_that_look_like_keys():
    text = '# x\na = """\n[b]\nc = 1\n"""\n\n[[t]]\nx = [\n  1,\n  2,\n]\n"odd key" = {in = 1}\n[[t]]\n[t.sub]\nx = 1\n'
    lines = key_lines(text)
    assert lines[("a",)] == 2 and ("b",) not in lines
    assert lines[("t", 0, "x")] == 8 and lines[("t", 0, "odd key", "in")] == 12
    assert lines[("t", 1)] == 13 and lines[("t", 1, "sub")] == 14 and lines[("t", 1, "sub", "x")] == 15


def test_a_session_goes_to_the_journal_and_back():
    session = Session(
        "s-1", (Person("p-1", (Role.OPERATOR, Role.SETTER)), Person("p-2", (Role.ASSESSOR,))), {"e-stop": True}
    )
    assert session_from(session.body()) == session


@pytest.mark.parametrize(
    ("people", "says"),
    [
        ([], "at least one person"),
        ([{"id": "p-1", "roles": ["boss"]}], "role 'boss'; roles are operator, setter, assessor, analyst"),
        ([{"id": "p-1", "roles": []}], "no role"),
        ([{"id": "p-1", "roles": ["setter"]}, {"id": "p-1", "roles": ["operator"]}], "twice"),
    ],
)
def test_a_session_without_people_in_roles_is_refused(people, says):
    with pytest.raises(InputError, match=says):
        session_from({"session": "s-1", "people": people})


def test_a_check_answered_with_no_or_not_at_all_is_missing():
    protocol = parse_protocol(PROTOCOL + '\n[session]\nchecks = ["e-stop", "gripper", "brightness"]\n', "p")
    session = Session("s-1", (Person("p-1", (Role.OPERATOR,)),), {"e-stop": True, "gripper": False})
    assert missing_checks(protocol, session) == ("gripper", "brightness")


GOOD = {"items_staged": 4, "moved": 2, "lost": 1, "remaining": 1, "end_reason": "budget"}


def test_an_outcome_goes_to_the_journal_and_back():
    outcome = outcome_from({**GOOD, "notes": "one under the tote"})
    assert outcome == Outcome(4, 2, 1, 1, EndReason.BUDGET, "one under the tote")
    assert outcome_from(outcome.body()) == outcome


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"moved": 3}, r"moved 3 \+ lost 1 \+ remaining 1 is not the 4 items staged"),
        ({"moved": -1, "remaining": 4}, "moved is -1"),
        ({"moved": True}, "moved is True"),
        ({"moved": 2.0}, "moved is 2.0"),
        ({"items_staged": 0, "moved": 0, "lost": 0, "remaining": 0}, "at least one item"),
        ({"end_reason": "all_done"}, "all_done, and 1 of 4 items remaining says that it was wrong: correct the counts"),
        ({"end_reason": "all_done", "moved": 0, "lost": 0, "remaining": 4}, "or say wrong_end = true"),
        ({"wrong_end": True}, "wrong_end is for an episode that a device ended as all_done .* ended by budget"),
        ({"end_reason": "all_done", "lost": 2, "remaining": 0, "wrong_end": True}, "with 0 remaining"),
        ({"end_reason": "all_done", "wrong_end": 1}, "wrong_end is 1; it must be true or false"),
        ({"end_reason": "bored"}, "unknown end reason 'bored'; known: all_done"),
        ({"grade": 3}, "unknown 'grade'"),
        ({"score": 3}, "score is 3; it must be a number from 0 to 1"),
        ({"reached_s": [2.0, 1.0]}, r"reached_s\[2\] is 1.0; it must be seconds after go, not before the stage before"),
    ],
)
def test_an_outcome_that_contradicts_itself_is_refused(change, says):
    with pytest.raises(InputError, match=says):
        outcome_from({**GOOD, **change})


def test_an_episode_a_device_ended_as_done_while_items_remained_is_scored_as_that():
    outcome = outcome_from({**GOOD, "end_reason": "all_done", "wrong_end": True})
    assert outcome.wrong_end and outcome.remaining == 1 and outcome.end_reason == EndReason.ALL_DONE
    assert outcome_from(outcome.body()) == outcome and outcome.body()["wrong_end"] is True
    assert "wrong_end" not in outcome_from(GOOD).body(), "every other outcome reads as it always did"


@given(moved=st.integers(0, 6), lost=st.integers(0, 6), remaining=st.integers(0, 6), staged=st.integers(1, 6))
def test_no_wrong_end_makes_an_episode_a_success(moved: int, lost: int, remaining: int, staged: int):
    """Whatever is said, at least one staged item was not moved: a wrong end only ever takes away."""
    counts = {"items_staged": staged, "moved": moved, "lost": lost, "remaining": remaining}
    try:
        outcome = outcome_from({**counts, "end_reason": "all_done", "wrong_end": True})
    except InputError:
        return
    assert outcome.moved < outcome.items_staged


def test_an_outcome_lacking_a_count_is_refused():
    with pytest.raises(InputError, match="no 'lost'"):
        outcome_from({key: value for key, value in GOOD.items() if key != "lost"})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("2020-01-01", "options.view is 2020-01-01; it must be a text, a number, true or false, a list"),
        ("[1, {at = 07:30:00}]", "options.view[2].at is 07:30:00; it must be a text"),
        ("nan", "options.view is nan; it must be a finite number"),
    ],
)
def test_a_date_among_options_is_refused_at_its_line(value, says):
    """A record keeps options as JSON, which knows neither dates nor nan."""
    line = 'view = "over_shoulder"'
    with pytest.raises(InputError) as caught:
        parse_cell(CELL.replace(line, f"view = {value}"), "cell.toml")
    message = str(caught.value)
    assert message.startswith(f"cell.toml:{CELL[: CELL.index(line)].count(chr(10)) + 1}: ") and says in message, message


@pytest.mark.parametrize("kind", PARSERS)
def test_a_file_saved_with_a_byte_order_mark_is_told_so(kind: str):
    """It is a character that no editor shows, and what TOML says of it is no valid statement."""
    parser, text = PARSERS[kind]
    with pytest.raises(InputError, match=r"^x\.toml:1: it begins with a byte order mark; save it as UTF-8 without"):
        parser("\ufeff" + text, "x.toml")


def test_a_line_is_counted_alike_whatever_ends_it():
    text = '[cell]\nname = "a"\n\n[robot]\ndriver = "x"\n'
    assert key_lines(text.replace("\n", "\r\n")) == key_lines(text)
    assert key_lines(text)["robot", "driver"] == 5


@pytest.mark.parametrize(("key", "value"), [("sender", '"a@b.c\\nBcc: d@e.f"'), ("to", '["x@y.z\\rBcc: d@e.f"]')])
def test_an_address_of_a_mail_is_one_line(key: str, value: str):
    keys = {"server": '"m"', "sender": '"a@b.c"', "to": '["x@y.z"]', key: value}
    text = "[alerts.email]\n" + "".join(f"{name} = {one}\n" for name, one in keys.items())
    with pytest.raises(InputError, match=r"lab\.toml:\d: .*allowed: one line"):
        parse_lab(text, "lab.toml")
