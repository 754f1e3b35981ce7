"""The report folder: whole or absent, self-contained, and never at a loss for a null."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from support.machine.busy_executor import Behind

from labctl.analysis.report import diagrams, figures, success_curves, tables
from labctl.analysis.report import page as report
from labctl.errors import ReportError
from labctl.processes import processes

HERE = Path(__file__).parents[1]
TITLE = "Bin to bin"


@pytest.fixture(scope="module")
def case():
    return json.loads((HERE / "report_case.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows():
    with (HERE / "report_table.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def built(case, rows, tmp_path_factory):
    return report.build_report(case["result"], rows, tmp_path_factory.mktemp("r") / "out", lab=case["lab"], title=TITLE)


@pytest.fixture
def undrawn(monkeypatch):
    """Leaves matplotlib out where only text is looked at."""
    for name in ("curve_figures", "pp_figures"):
        monkeypatch.setattr(success_curves, name, lambda *_: [])
    monkeypatch.setattr(figures, "hrt_figure", lambda *_: None)


def html_of(result, rows, lab):
    page, _ = report.build_page(result, rows, lab=lab, title=TITLE)
    return report.render_html(page)


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<(style|svg).*?</\1>", " ", html, flags=re.DOTALL)))


def test_a_report_is_html_markdown_json_and_three_files_per_figure(built, case):
    names = set(files(built.folder))
    assert {"report.html", "report.md", "report.json"} <= names
    for figure in ("hrt", "success-wooden-spoons", "success-towels", "pp-scissors", "pp-batteries"):
        assert {f"figures/{figure}.{end}" for end in ("svg", "png", "csv")} <= names
    body = json.loads(built.json.read_text(encoding="utf-8"))
    assert body["result"] == case["result"] and body["lab"] == case["lab"]
    assert not list(built.folder.parent.glob(".*"))


def test_the_same_input_gives_the_same_bytes(built, case, rows, tmp_path):
    again = report.build_report(case["result"], rows, tmp_path / "b", lab=case["lab"], title=TITLE)
    assert files(again.folder) == files(built.folder)


def test_figures_that_another_process_draws_have_the_same_bytes(built, case, rows, tmp_path):
    with processes(1) as beside:
        again = report.build_report(case["result"], rows, tmp_path / "b", lab=case["lab"], title=TITLE, beside=beside)
    assert files(again.folder) == files(built.folder)


def test_what_nobody_beside_has_come_to_is_drawn_here_before_anything_is_waited_for(built, case, rows, tmp_path):
    """A report waited for its other process while figures were left that this one had not begun."""
    behind = Behind()
    again = report.build_report(case["result"], rows, tmp_path / "b", lab=case["lab"], title=TITLE, beside=behind)
    assert files(again.folder) == files(built.folder)
    assert len(behind.asked) > 2 and not behind.left()


def test_a_figure_is_drawn_once_for_each_of_its_files(monkeypatch):
    """Four times until issue 18.28: a figure with a layout engine is drawn to no end before each file."""
    drawn = []
    whole = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: (drawn.append(renderer), whole(self, renderer)))
    figures.make("f", "F", (3.0, 2.0), lambda ax: ax.set(xlabel="t, s"), "")
    assert len(drawn) == 2


def test_clips_are_asked_for_once_and_when_every_figure_is_drawn(case, rows, tmp_path, monkeypatch):
    """Whoever cuts them does so meanwhile; a report waited for them before it drew until issue 18.28."""
    order = []
    whole = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: (order.append("figure"), whole(self, renderer)))

    def clips():
        order.append("clips")
        return {}

    report.build_report(case["result"], rows, tmp_path / "r", lab=case["lab"], title=TITLE, files=clips)
    assert order.count("clips") == 1 and order[-1] == "clips" and len(order) > 10


class Links(HTMLParser):
    """Collects every tag and every address an HTML file holds."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.addresses = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [
            v for n, v in attrs if n in ("src", "href", "xlink:href", "action", "data", "poster", "srcset")
        ]


def test_the_html_needs_no_script_and_no_outside_request(built):
    text = built.html.read_text(encoding="utf-8")
    seen = Links()
    seen.feed(text)
    assert not {"script", "iframe", "object", "embed", "img"} & set(seen.tags)
    assert not [a for a in seen.addresses if a.startswith(("http", "//", "file:", "/"))]
    assert not re.search(r"@import|url\((?!#)", text)
    assert "default-src 'none'" in text
    assert {a[1:] for a in seen.addresses if a.startswith("#")} <= set(seen.ids)


def test_the_first_page_has_one_row_per_arm_with_the_numbers_of_the_result(built, case):
    first = built.html.read_text(encoding="utf-8").split('id="flow"')[0]
    body = first.split("<tbody>")[1].split("</tbody>")[0]
    lines = [text_of(row) for row in body.split("</tr>")][:-1]
    assert len(lines) == 4
    policy = next(line for line in lines if "policy-c" in line)
    arm = next(a for a in case["result"]["arms"] if a["arm"] == "policy-c")
    assert "42 / 96 (43.8 %)" in policy
    assert f"{arm['rmst']:.1f} [{arm['rmst_ci'][0]:.1f}, {arm['rmst_ci'][1]:.1f}]" in policy
    assert f"{100 * arm['hrt']:.1f} [{100 * arm['hrt_ci'][0]:.1f}, {100 * arm['hrt_ci'][1]:.1f}]" in policy
    assert policy.split()[-4:] == ["4", "1", "18", "24"]  # lost, safety stop, timed out, episodes
    assert "tau = 120 s" in text_of(first) and "would score 10.6 %" in text_of(first)


def test_html_and_markdown_print_the_very_same_cells(built, case):
    page, html = built.markdown.read_text(encoding="utf-8"), text_of(built.html.read_text(encoding="utf-8"))
    for table in (tables.rmst_table(case["result"]), tables.hrt_table(case["result"])):
        for row in table.rows:
            assert f"| {' | '.join(row)} |" in page
            assert all(cell in html for cell in row)


def test_simulated_and_provisional_are_said_in_big_letters_and_only_then(case, rows, undrawn):
    assert "<strong>SIMULATED</strong>" in html_of(case["result"], rows, case["lab"])
    assert "<strong>PROVISIONAL</strong>" in html_of(case["result"], rows, case["lab"])
    final = html_of(case["result"], rows, case["lab"] | {"kind": "real", "provisional": False})
    assert "SIMULATED" not in final and "PROVISIONAL" not in final
    assert "<strong>REPLAY</strong>" in html_of(case["result"], rows, case["lab"] | {"kind": "replay"})


def test_the_flow_prints_the_real_counts(case):
    drawing = diagrams.flow(case["lab"], ["human", "policy-a", "policy-b", "policy-c"])
    words = re.findall(r">([^<>]+)</text>", drawing)
    for heading, n in (("Trials planned", "98"), ("Episodes run", "102"), ("Episodes scored", "96"), ("Not run", "2")):
        assert words[words.index(heading) + 1] == n
    assert {"before go: 2, after go: 4", "camera lost: 3", "scored 24 of 26", "ended early 1"} <= set(words)


def test_voids_after_go_are_counted_again_as_no_success(case, rows, undrawn):
    text = text_of(html_of(case["result"], rows, case["lab"]))
    assert "policy-c 42 / 96 (43.8 %) 42 / 104 (40.4 %)" in text


NO_TABLE = {0: "No episode was voided", 1: "1 episode voided after go counts as", 4: "4 episodes voided after go count"}


@pytest.mark.parametrize("after_go", NO_TABLE)
def test_without_that_table_it_is_said_whether_none_was_voided_or_each_counts_already(case, rows, undrawn, after_go):
    lab = case["lab"] | {"flow": case["lab"]["flow"] | {"voids_after_go": after_go}, "void_as_failure": []}
    assert NO_TABLE[after_go] in text_of(html_of(case["result"], rows, lab))
    del lab["void_as_failure"]
    assert ("voided after go, so" in text_of(html_of(case["result"], rows, lab))) == (after_go == 0), "nor else"


def test_failures_come_from_the_rows_when_no_lab_says_them(case, rows):
    told, counted = tables.failures([], case["lab"]), tables.failures(rows, None)
    assert told["policy-c"] == {"lost": 4, "safety stop": 1, "timed out": 18}
    assert counted == {arm: {b: n for b, n in causes.items() if n} for arm, causes in told.items()}
    voided = [r | {"void": "1"} for r in rows]
    assert not any(tables.failures(voided, None).values())


def test_what_was_open_when_a_device_ended_an_episode_by_mistake_is_no_failure():
    open_row = {"arm": "a", "kind": "censored", "cause": "wrong_end", "void": 0}
    assert tables.failures([open_row, {**open_row, "cause": "budget"}], None) == {"a": {"timed out": 1}}


def test_what_was_not_computed_is_said_and_infinity_is_not_reached(case, rows, undrawn):
    result = json.loads(json.dumps(case["result"]))
    result["pairs"][0]["p"]["ks_macro"] = None
    result["cells"][0]["median"] = "inf"
    text = text_of(html_of(result, rows, case["lab"]))
    assert "not computed" in text and "not reached" in text
    assert "Not computed: p logrank, clustered." in text
    assert "Not computed: Wang–Chang s, Aalen–Johansen s." in text
    assert not re.search(r"\bnan\b|\bNone\b(?! recorded)", text)


def nulled(result, part, key):
    return result | {part: [row | {key: None} for row in result[part]]}


def nullable(result):
    keys = {part: list(result[part][0]) for part in ("cells", "arms", "pairs")}
    return [(part, key) for part in keys for key in keys[part] if key not in ("arm", "object", "a", "b")]


@pytest.mark.thorough
def test_any_key_of_the_result_may_be_null(case, undrawn):
    for part, key in nullable(case["result"]):
        text = text_of(html_of(nulled(case["result"], part, key), [], case["lab"]))
        assert "policy-c" in text and not re.search(r"\bnan\b|\bNone\b(?! recorded)", text), (part, key)


def test_all_keys_of_the_result_may_be_null_at_once(case, rows, tmp_path):
    result = case["result"] | {"reference": None, "warnings": None}
    for part, key in nullable(result):
        result = nulled(result, part, key)
    paths = report.build_report(result, [], tmp_path / "n", title=TITLE)
    text = text_of(paths.html.read_text(encoding="utf-8"))
    assert "no reference arm" in text and "Not tested: " in text
    assert not list(paths.folder.glob("figures/*"))
    report.build_report(result | {"cells": [], "arms": [], "pairs": []}, rows, tmp_path / "e", title=TITLE)


@pytest.mark.thorough
def test_any_key_of_the_lab_may_be_missing_or_null(case, undrawn):
    for key in case["lab"]:
        less = {k: v for k, v in case["lab"].items() if k != key}
        for lab in (less, less | {key: None}):
            assert "policy-c" in html_of(case["result"], [], lab), key
    assert "A bare table" in html_of(case["result"], [], None)
    assert "policy-c" in html_of(case["result"], [], {})


def test_names_from_a_table_cannot_become_markup(case, undrawn):
    evil = '<img src=x onerror="1">|'
    text = json.dumps(case).replace("policy-c", json.dumps(evil)[1:-1])
    other = json.loads(text)
    page, _ = report.build_page(other["result"], [], lab=other["lab"], title=evil)
    assert "<img" not in report.render_html(page)
    assert "<img" not in report.markdown.render(page)


def test_videos_are_relative_links_whatever_their_names(case, rows, undrawn):
    episodes = [case["lab"]["episodes"][0] | {"video": ["../video/e 1/wrist.mp4", "javascript:alert(1).mp4"]}]
    text = html_of(case["result"], rows, case["lab"] | {"episodes": episodes})
    assert 'href="../video/e%201/wrist.mp4">wrist</a>' in text
    assert 'href="javascript:' not in text
    assert "labctl show e-001" in text


def test_an_earlier_report_is_replaced_whole(case, rows, undrawn, tmp_path):
    first = report.build_report(case["result"], rows, tmp_path / "out", lab=case["lab"], title="first")
    (first.folder / "figures").mkdir()
    (first.folder / "figures" / "stale.csv").write_text("old", encoding="utf-8")
    report.build_report(case["result"], rows, tmp_path / "out", lab=case["lab"], title="second")
    assert "second" in first.html.read_text(encoding="utf-8")
    assert not (first.folder / "figures" / "stale.csv").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_someone_else_is_refused_and_left_alone(case, rows, undrawn, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ReportError, match="is no earlier report; give --out a new or empty folder"):
        report.build_report(case["result"], rows, tmp_path, title=TITLE)
    (tmp_path / "report.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ReportError, match="no earlier report"):
        report.build_report(case["result"], rows, tmp_path, title=TITLE)
    with pytest.raises(ReportError, match="is a file; give --out a folder"):
        report.build_report(case["result"], rows, tmp_path / "thesis.txt", title=TITLE)
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_a_note_left_in_an_earlier_report_is_not_deleted(case, rows, undrawn, tmp_path):
    paths = report.build_report(case["result"], rows, tmp_path / "out", title=TITLE)
    (paths.folder / "note.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ReportError, match=r"files that no report wrote \(note.txt\)"):
        report.build_report(case["result"], rows, tmp_path / "out", title=TITLE)


def test_a_disk_that_fills_up_leaves_the_earlier_report(case, rows, undrawn, tmp_path, monkeypatch):
    paths = report.build_report(case["result"], rows, tmp_path / "out", title="first")
    before, write = files(paths.folder), Path.write_bytes

    def full(path, data):
        if path.name == "report.json":
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        report.build_report(case["result"], rows, tmp_path / "out", title="second")
    assert files(paths.folder) == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_how_fast_each_arm_was_answered_is_a_table_where_it_was_recorded(case, rows, undrawn):
    spread = {"p50": 0.0801, "p95": 0.2149}
    entry = {
        "arm": "policy-a",
        "episodes": 24,
        "questions": 1200,
        "late": 3,
        "unanswered": 1,
        "answers_per_s": 1.84,
        "answer_s": spread,
        "command_s": spread,
        "picture_s": None,
        "server_s": {"p50": 0.07, "p95": 0.08},
        "load_s": {"p50": 12.04, "p95": 14.0},
        "warm_s": {"p50": 3.2, "p95": 4.0},
    }
    told = text_of(html_of(case["result"], rows, case["lab"] | {"answer_times": [entry]}))
    assert "How fast each arm answered" in told and "Answer times" in told
    line = told[told.index("Loading s") :]
    for shown in ("1200", "3", "1.8", "80 / 215", "70 / 80", "12.0 / 14.0", "3.2 / 4.0"):
        assert shown in line, shown
    assert "How fast each arm answered" not in text_of(html_of(case["result"], rows, case["lab"]))


def test_a_report_of_what_was_frozen_without_a_review_promises_none(case, rows, undrawn):
    line = "a-name was frozen by p-1 without a review: an assessor went through 0 of 4 episodes"
    lab = case["lab"] | {"provisional": True, "provisional_why": [], "unreviewed": [line]}
    page = html_of(case["result"], rows, lab)
    assert "NOT REVIEWED" in page and line in page
    assert "PROVISIONAL" not in page and "until the campaign is reviewed" not in page
    assert "of episodes that nobody went through stand as recorded" in page, "those of the others are the review's"


def never_scored(lab):
    by_arm = {**lab["flow"]["by_arm"], "policy-z": {"planned": 9, "run": 4, "scored": 0, "not_run": 9, "voids": 4}}
    return lab | {"flow": lab["flow"] | {"by_arm": by_arm}}


def test_an_arm_that_was_never_scored_stays_in_headlines_and_table_with_why(case, rows, undrawn):
    page, _ = report.build_page(case["result"], rows, lab=never_scored(case["lab"]), title="a title")
    why = "each of 4 attempts at its 9 trials was void"
    (claim,) = [claim for claim in page["claims"] if "policy-z" in claim.text]
    assert claim.text == f"Nothing can be said of policy-z: it was never scored, {why}."
    (row,) = [row for row in page["main"].rows if row[0] == "policy-z"]
    assert row[1] == "never scored" and row[-1] == "0" and len(row) == len(page["main"].columns)
    assert f"Never scored: policy-z: {why}." in page["main"].note
    assert "policy-z" in report.render_html(page)


def test_the_verdicts_of_linked_campaigns_are_headlines(case, rows, undrawn):
    told = {"ratio": 0.8, "interval": [0.7, 0.9], "p": 0.01, "p_holm": 0.01, "naive": 0.8, "objects": ["towels"]}
    told |= {"anchors": ["human"], "drift": []}
    pairs = [
        {"a": "old", "b": "new", "verdict": "old takes less time", **told},
        {"a": "old", "b": "other", "verdict": "not resolved at this N", **told},
    ]
    linked = {"campaigns": ["one", "two"], "pairs": pairs, "anchors": ["human"], "tau": 120.0, "alpha": 0.05}
    lab = case["lab"] | {"linked": linked | {"warnings": [], "head": "0" * 64}}
    page, _ = report.build_page(case["result"], rows, lab=lab, title="a title")
    told = [(claim.standing, claim.text) for claim in page["claims"] if "(two)" in claim.text]
    assert told == [
        ("resolved", "Of old (one) and new (two), old takes less time: RMST ratio 0.80 [0.70, 0.90] through human."),
        ("unresolved", "Not resolved between the two campaigns: old (one) and other (two)."),
    ]


def test_every_section_folds_and_leads_back_to_the_contents(case, rows, undrawn):
    page = html_of(case["result"], rows, case["lab"])
    assert page.count("<section") == page.count('href="#contents"') > 5 and 'id="contents"' in page
    assert page.count("<details") == page.count("</details>") >= page.count("<section")


def test_long_heads_of_the_first_table_have_room_with_whiskers_and_without(case, rows, undrawn):
    """On a desktop "Robot s per item moved" stood in four lines beside a table that was half empty, and where a column
    of whiskers took the room: a whisker stands below the HRT that it draws.
    """
    page, _ = report.build_page(case["result"], rows, lab=case["lab"], title="a title")
    assert page["whiskers"]
    for made in (page, {**page, "whiskers": {}}):
        text = report.render_html(made)
        heads = re.findall(r'<th class="([^"]*)" scope="col">Items per robot-hour</th>', text)
        assert heads == ["num tight long"] and ".main th.long { width:" in text
        table = text[text.index('<div class="box main">') :].partition("</table>")[0]
        assert table.count("<th ") == len(made["main"].columns), "no column of whiskers alone"
        cells = re.findall(r'<td class="num" data-of="HRT[^"]*">(.*?)</td>', table)
        drawn = sum("svg" in cell for cell in cells)
        assert drawn == (len(made["whiskers"]) if made["whiskers"] else 0) and len(cells) >= drawn
