"""The report folder: one self-contained HTML page, Markdown, JSON and every figure with its numbers.

May not: estimate or claim (see `analyze` and `wording`), read a campaign, or leave a half-written folder behind.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypedDict, TypeVar
from urllib.parse import quote

from labctl.analysis.report import (
    again,
    anew_words,
    diagrams,
    figures,
    headlines,
    lab_tables,
    margin_words,
    markdown,
    page_words,
    pair_tables,
    success_curves,
    tables,
    wording,
)
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.report.report_folder import SCHEMA, check_folder, replace_folder
from labctl.analysis.report.sections import (
    cell_section,
    counting_section,
    lab_sections,
    operator_sections,
    stop_sections,
    supplementary_sections,
)
from labctl.analysis.supplement_result import Supplement
from labctl.analysis.survival.bands import curve_bands
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.result import AnalysisResult, Counting, PairResult
from labctl.analysis.table import Row, table_from_rows

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
_CONTENTS = (
    *(("flow", "From plan to score"), ("success", "Success over time"), ("hrt", "Against the reference")),
    *(("pairs", "Pairs of arms"), ("objects", "Arm by object")),
)
_OF_SEVERAL = ("hrt", "pairs")
LAST_CONTENTS = (
    *(("limits", "Deviations and blinding"), ("provenance", "Provenance"), ("methods", "What the words mean")),
)


Given = ParamSpec("Given")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Paths:
    """Where a report was written."""

    folder: Path
    html: Path
    markdown: Path
    json: Path
    figures: Path


class Page(TypedDict):
    """What the HTML and the Markdown print. of_operations: whether its parts between the flow and `supplementary`
    (success over time to arm by object) are there; a page of episodes has sections of its own; compares:
    whether there are several arms. head, say: headings,
    and sentences beside a part or in its place, by part; claims: the first page's; keys,
    whiskers, flow: drawings as SVG, of arms by arm; contents: (anchor, title); verify: alternating text and command;
    videos: (camera, link) of each episode; None and "" are left out.
    """

    of_operations: bool
    compares: bool
    title: str
    head: dict[str, str]
    question: str | None
    meta: str
    badges: list[dict[str, str]]
    claims: list[wording.Claim]
    cautions: list[str]
    main: tables.Table
    whiskers: dict[str, str]
    keys: dict[str, str]
    contents: list[tuple[str, str]]
    has_lab: bool
    flow: str | None
    flow_table: tables.Table | None
    void_table: tables.Table | None
    answer_table: tables.Table | None
    reference: str | None
    curves: list[figures.Figure]
    band_note: str
    hrt_table: tables.Table
    hrt_figure: figures.Figure | None
    pp: list[figures.Figure]
    pair_matrix: tables.Table
    pair_table: tables.Table
    test_table: tables.Table
    rmst_table: tables.Table
    cell_table: tables.Table
    supplementary: list[supplementary_sections.Section]
    deviations: list[str]
    warnings: list[str]
    blinding: list[str]
    notes: list[str]
    provenance_table: tables.Table
    sessions: list[str]
    verify: list[tuple[str, str]]
    methods: Sequence[tuple[str, str]]
    episode_table: tables.Table | None
    clips: dict[str, list[dict[str, str]]]
    episodes_page: str | None
    videos: list[list[tuple[str, str]]]
    say: dict[str, str]


def build_report(
    result: AnalysisResult,
    table_rows: Sequence[Row],
    out: Path,
    *,
    lab: Lab | None = None,
    title: str,
    files: Callable[[], Mapping[str, bytes]] = dict,
    supplement: Supplement | None = None,
    counting: Counting | None = None,
    beside: Executor | None = None,
    made_by: str = "",
    perm: int | None = None,
) -> Paths:
    """Write the report of an analysis `result` into folder `out`, all of it or nothing; the same input, the same bytes.

    `table_rows` are the rows of the operations table behind `result`; `lab` is what only a campaign knows, None for
    a bare table; `files` gives the content of the files it names (its clips), and is asked once all is drawn, or
    while `beside` draws; `supplement` is what stands beside the headline numbers, of the same table; `counting` what
    counts as what, and every other way; `beside` draws the figures; `made_by` is the version that computes, `perm` how
    many label swaps were tried. An earlier report at `out` is replaced. Raises `ReportError` if `out` is a file or
    holds anything that no report wrote, and `TableError` on a row that breaks a rule of the table.
    """
    out = Path(out).resolve()
    check_folder(out)
    more = {"lab": lab, "supplement": supplement, "counting": counting}
    files = cache(files)
    given = {"files": files, "beside": beside, "made_by": made_by, "perm": perm}
    page, drawn = build_page(result, table_rows, title=title, **given, **more)
    body = {"schema": SCHEMA, "title": title, "analysed_by": made_by or None, "result": result, **more}
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return write_folder(out, page, drawn, text, {**files(), **lab_sections.files(lab or {})})


def write_folder(
    out: Path, page: Page, drawn: Sequence[figures.Figure], record: str, files: Mapping[str, bytes]
) -> Paths:
    """The report folder `out` of a page, its figures, the text of report.json and further files by name."""
    made: dict[str, bytes] = {
        **files,
        "report.html": render_html(page).encode(),
        "report.md": markdown.render(page).encode(),
        "report.json": record.encode(),
    }
    for figure in drawn:
        made[f"figures/{figure.name}.svg"] = figure.svg.encode()
        made[f"figures/{figure.name}.png"] = figure.png
        made[f"figures/{figure.name}.csv"] = figure.csv.encode()
    replace_folder(out, made)
    return Paths(out, out / "report.html", out / "report.md", out / "report.json", out / "figures")


def _meanwhile(
    beside: Executor | None, work: Callable[Given, Made], /, *given: Given.args, **named: Given.kwargs
) -> Callable[[], Made]:
    """Begin on the work; what came of it, when asked. Without anybody beside, it is done when asked, and so is what
    whoever is beside has not come to by then.
    """
    here = partial(work, *given, **named)
    if beside is None:
        return here
    begun = beside.submit(work, *given, **named)
    return lambda: here() if begun.cancel() else begun.result()


def build_page(
    result: AnalysisResult,
    rows: Sequence[Row],
    *,
    lab: Lab | None,
    title: str,
    files: Callable[[], Mapping[str, bytes]] = dict,
    supplement: Supplement | None = None,
    counting: Counting | None = None,
    beside: Executor | None = None,
    made_by: str = "",
    perm: int | None = None,
) -> tuple[Page, list[figures.Figure]]:
    """Everything the HTML and the Markdown print, as text, tables and drawings; and the figures to be saved."""
    order = tables.arm_order(result)
    reference = result.get("reference") if result.get("reference") in order else None
    looks = figures.looks([*order, *(c["arm"] for c in result.get("cells") or [])], reference)
    cells = cells_of(table_from_rows(rows, extra=True)) if rows else {}
    bands, band_note = curve_bands(result, cells)
    risk = success_curves.risk_times(result, cells)
    # The longest first, and the second longest last: whoever is done here takes that over, if it is not begun.
    sections = _meanwhile(beside, supplementary_sections.sections, supplement, result, looks) if supplement else list
    against = _meanwhile(beside, success_curves.pp_figures, result, looks)
    hrt_figure = _meanwhile(beside, figures.hrt_figure, result, looks)
    curves = _meanwhile(beside, success_curves.curve_figures, result, looks, bands, risk)
    files = cache(files)
    if beside is not None:
        files()
    drawn, hrt, pp, more = curves(), hrt_figure(), against(), sections()
    made = files()  # which may add to `lab`
    arms = tables.arms_of(result)
    facts: Lab = lab or {}
    cautions = [wording.floor_caution(arm, reference=reference) for arm in arms]
    cautions.append(counting_section.sentence(counting, result))
    cautions.append(wording.stops(facts.get("stops"), result))
    cautions.append(wording.disputed(facts.get("disputed")))
    missing = headlines.unscored(facts, order)
    people = operator_sections.section(supplement.get("people") if supplement else None, facts.get("practice"))
    stops = stop_sections.section(facts.get("stops"), result)
    ways = counting_section.section(counting, result)
    parts = lab_sections.sections(facts, {arm["arm"]: arm.get("intervention_rate") for arm in arms}, looks)
    table = margin_words.table(result)
    margin = table and supplementary_sections.Section("margin", margin_words.TITLE, tables=(("", table),))
    further = anew_words.table(result)
    anew = further and supplementary_sections.Section("anew", anew_words.TITLE, tables=(("", further),))
    within = margin_words.claims(result, protocol=lab is not None, otherwise=_otherwise(counting, facts.get("stops")))
    more = [
        *filter(None, (cell_section.section(result), margin, anew, ways, *more, people)),
        *parts,
        *filter(None, (stops,)),
    ]
    page: Page = {
        "of_operations": True,
        "compares": (compares := len(order) > 1),
        "title": title,
        "head": {**page_words.HEADINGS, "hrt": f"Compared with {reference or 'a reference'}"},
        "question": facts.get("question"),
        "meta": meta(facts),
        "badges": badges(facts),
        "claims": [
            *(*wording.summary(result), *cell_section.claims(result), *anew_words.claims(result)),
            *(*within, *headlines.claims(facts, missing)),
        ],
        "cautions": [line for line in cautions if line],
        "main": headlines.with_unscored(tables.main_table(result, rows, lab), missing),
        "whiskers": diagrams.whiskers(result, looks),
        "keys": {arm: diagrams.key(look) for arm, look in looks.items()},
        "contents": [
            *(part for part in _CONTENTS if compares or part[0] not in _OF_SEVERAL),
            *((section.id, section.title) for section in more),
            *([("answers", "Answer times")] if facts.get("answer_times") else []),
            *LAST_CONTENTS,
            *([("clips", "Clips")] if facts.get("clips") else []),
            *([("episodes", "Episodes")] if facts.get("episodes") else []),
        ],
        "has_lab": lab is not None,
        "flow": diagrams.flow(facts, order) if facts.get("flow") else None,
        "flow_table": lab_tables.flow_table(order, facts),
        "void_table": lab_tables.void_table(result, facts),
        "answer_table": lab_tables.answer_table(facts),
        "reference": reference,
        "curves": drawn,
        "band_note": success_curves.band_sentence(bands, band_note),
        "hrt_table": tables.hrt_table(result, facts.get("reviewed")),
        "hrt_figure": hrt,
        "pp": pp,
        "pair_matrix": pair_tables.pair_matrix(result),
        "pair_table": pair_tables.pair_table(result),
        "test_table": pair_tables.test_table(result),
        "rmst_table": tables.rmst_table(result),
        "cell_table": tables.cell_table(result),
        "supplementary": more,
        "deviations": list(facts.get("deviations") or []),
        "warnings": list(result.get("warnings") or []),
        "blinding": wording.blinding(facts.get("blinding")),
        "notes": list(facts.get("notes") or []),
        "provenance_table": lab_tables.provenance_table(
            lab, lab_tables.analysis_line(result["schema"], result["seed"], result["tau"]), made_by
        ),
        "sessions": lab_tables.session_lines(facts),
        "verify": again.of_operations(result, facts, perm),
        "methods": page_words.NOTES,
        "episode_table": lab_tables.episode_table(facts),
        "clips": clips_of(facts, made, order),
        "episodes_page": facts.get("episodes_page"),
        "videos": [videos_of(e.get("video") or ()) for e in facts.get("episodes") or []],
        "say": {},
    }
    page["say"] = page_words.sentences(page, facts)
    return page, [*page["curves"], *pp, *([hrt] if hrt else []), *supplementary_sections.all_figures(more)]


def render_html(page: Page) -> str:
    """The page as one HTML file: styles and drawings inline, no script, nothing fetched."""
    from markupsafe import Markup

    drawn = {"keys": {arm: Markup(svg) for arm, svg in page["keys"].items()}}
    css = (HERE / "report.css").read_text(encoding="utf-8")
    return _environment().get_template("report.html.j2").render({**page, **drawn, "css": css})


@cache
def _environment() -> Environment:
    """It keeps the templates that it has compiled: a compilation takes longer than a page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _otherwise(counting: Counting | None, stops: wording.Stops | None) -> list[tuple[str, Sequence[PairResult]]]:
    """The pairs again, counted every other way, each with its way in words."""
    all_stops = stops.get("repeated") if stops else None
    found: list[tuple[str, Sequence[PairResult]]] = []
    if counting:
        found += [(counting_section.way(again), again["pairs"]) for again in counting["repeated"]]
    if all_stops:
        found.append(("every stop counted", all_stops["pairs"]))
    return found


def meta(lab: Lab) -> str:
    """The line below the title: campaign, cell, robot, when."""
    named = (("campaign", "Campaign"), ("cell", "cell"), ("robot", "robot"))
    parts = [f"{name} {lab.get(key)}" for key, name in named if lab.get(key)]
    if times := lab.get("times"):
        parts.append(f"{times['opened']} to {times['closed'] or 'now'}")
    elif opened := lab.get("opened_wall"):  # of a record that another labctl wrote
        parts.append(f"{_minute(opened)} to {_minute(lab.get('closed_wall') or 'now')}")
    if labels := lab.get("labels"):
        parts.append(f"labels: {labels['stream']}")
    return " · ".join(parts)


def _minute(wall: str) -> str:
    """A wall time (ISO 8601) as people read it; anything else as it is."""
    return f"{wall[:10]} {wall[11:16]} UTC" if wall.endswith("+00:00") else wall


def badges(lab: Lab) -> list[dict[str, str]]:
    """What a reader must know before any number: simulated, given up, not reviewed, provisional."""
    found: list[dict[str, str]] = []
    kind, unreviewed = lab.get("kind"), lab.get("unreviewed")
    if kind == "sim":
        found.append({"kind": "simulated", "label": "SIMULATED", "text": wording.SIMULATED})
    elif kind not in (None, "real"):
        text = wording.FAULTS if kind == "faults" else wording.NOT_REAL
        found.append({"kind": "simulated", "label": str(kind).upper(), "text": text})
    if given_up := lab.get("abandoned"):
        found.append({"kind": "provisional", "label": "ABANDONED", "text": f"{'; '.join(given_up)}."})
    if unreviewed:
        text = page_words.never_reviewed(unreviewed)
        found.append({"kind": "provisional", "label": "NOT REVIEWED", "text": text})
    if lab.get("provisional") and (lab.get("provisional_why") or not unreviewed):
        why = wording.provisional(lab.get("provisional_why") or [])
        found.append({"kind": "provisional", "label": "PROVISIONAL", "text": why})
    return found


def videos_of(paths: Sequence[str]) -> list[tuple[str, str]]:
    """(camera, link) of every video; quoting keeps a path a relative path, whatever its letters."""
    return [(Path(path).stem, quote(str(path))) for path in paths]


def clips_of(lab: Lab, files: Mapping[str, bytes], order: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """By arm, in the report's order: what each clip shows and why it was chosen, and the clip itself: the page needs no
    other file.
    """
    found: dict[str, list[dict[str, str]]] = {}
    for clip in lab.get("clips") or []:
        pace = "as fast as it happened" if clip["speed"] == 1 else f"{clip['speed']} times the pace"
        entry = {
            "kind": str(clip["kind"]),
            "caption": f"{clip['why']}. {clip['episode']}, {pace}.",
            "file": quote(clip["file"]),
            "src": f"data:video/mp4;base64,{base64.b64encode(files[clip['file']]).decode()}",
        }
        found.setdefault(str(clip["arm"]), []).append(entry)
    return {arm: found[arm] for arm in sorted(found, key=lambda arm: order.index(arm) if arm in order else len(order))}
