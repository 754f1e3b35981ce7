"""The report folder of an episodes table, or of a campaign of tasks: the page of `analysis/report` with its own parts.

May not: estimate, claim (`claims` does), or lay out a page by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.analysis.episodes_report import (
    arms_section,
    asked_section,
    claims,
    diagnosis_section,
    latency_section,
    notes,
    pairs_section,
    people_section,
    stages_section,
)
from labctl.analysis.episodes_table.result import EpisodesResult
from labctl.analysis.report import again, diagrams, figures, headlines, lab_tables, page_words, wording
from labctl.analysis.report import page as page_of_operations
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.report.page import Page, Paths, badges, clips_of, meta, videos_of, write_folder
from labctl.analysis.report.report_folder import SCHEMA, check_folder
from labctl.analysis.report.sections import lab_sections
from labctl.analysis.report.sections.supplementary_sections import Section, all_figures
from labctl.analysis.report.tables import Table

EMPTY = Table((), ())


def build_report(
    result: EpisodesResult,
    out: Path,
    *,
    title: str,
    lab: Lab | None = None,
    files: Mapping[str, bytes] | None = None,
    made_by: str = "",
    draws: tuple[int, int] | tuple[()] = (),
) -> Paths:
    """Write the report of `result` into folder `out`, all of it or nothing; the same input, the same bytes.

    lab: what only a campaign knows, None for a bare table; files: the content of what it names (its clips);
    made_by: the version that computes; draws: how many bootstrap samples and label swaps. Raises `ReportError` if
    `out` is a file or holds anything that no report wrote.
    """
    out = Path(out).resolve()
    check_folder(out)
    page, drawn = build_page(result, title=title, lab=lab, files=files, made_by=made_by, draws=draws)
    body = {"schema": SCHEMA, "title": title, "analysed_by": made_by or None, "result": result, "lab": lab}
    record = json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return write_folder(out, page, drawn, record, {**(files or {}), **lab_sections.files(lab or {})})


def sections_of(result: EpisodesResult, looks: Mapping[str, figures.Look]) -> list[Section]:
    """Every section that the table has something for, in the report's order."""
    made = [
        arms_section.means(result, looks),
        pairs_section.effects(result),
        stages_section.section(result, looks),
        arms_section.times(result, looks),
        *diagnosis_section.sections(result, looks),
        *people_section.sections(result, looks),
        pairs_section.monitoring(result),
        pairs_section.enough(result),
    ]
    return [section for section in made if section is not None]


def build_page(
    result: EpisodesResult,
    *,
    title: str,
    lab: Lab | None = None,
    files: Mapping[str, bytes] | None = None,
    made_by: str = "",
    draws: tuple[int, int] | tuple[()] = (),
) -> tuple[Page, list[figures.Figure]]:
    """Everything the HTML and the Markdown print; and the figures to be saved."""
    order, facts = claims.ordered(result), lab or Lab()
    reference = result["reference"]
    looks = figures.looks([arm["arm"] for arm in result["arms"]], reference)
    looks = {arm: looks[arm] for arm in order}
    missing = headlines.unscored(facts, order)
    late = latency_section.section(facts.get("lateness"), looks, claims.level(result))
    asked = asked_section.section(facts.get("asked"), files or {})
    of_lab = lab_sections.sections(facts, {}, looks)
    sections = [*sections_of(result, looks), *(one for one in (late, asked) if one), *of_lab]
    asked_of: again.Asked = {
        "reference": reference,
        "tau": result["tau"],
        "alpha": result["alpha"],
        "seed": result["seed"],
    }
    analysis = lab_tables.analysis_line(result["schema"], result["seed"], result["tau"])
    page: Page = {
        "of_operations": False,
        "compares": True,
        "title": title,
        "head": {**page_words.HEADINGS},
        "question": facts.get("question"),
        "meta": meta(facts),
        "badges": badges(facts),
        "claims": [*claims.claims(result), *headlines.claims(facts, missing)],
        "cautions": [line for line in (wording.disputed(facts.get("disputed")),) if line],
        "main": headlines.with_unscored(arms_section.main_table(result), missing),
        "whiskers": {},
        "keys": {arm: diagrams.key(look) for arm, look in looks.items()},
        "contents": _contents(sections, facts),
        "has_lab": lab is not None,
        "flow": diagrams.flow(facts, order) if facts.get("flow") else None,
        "flow_table": lab_tables.flow_table(order, facts),
        "void_table": arms_section.void_table(result, facts.get("voids_after_go") or {}, facts.get("voids_judged")),
        "answer_table": lab_tables.answer_table(facts),
        "reference": reference,
        "curves": [],
        "band_note": "",
        "hrt_table": EMPTY,
        "hrt_figure": None,
        "pp": [],
        "pair_matrix": EMPTY,
        "pair_table": EMPTY,
        "test_table": EMPTY,
        "rmst_table": EMPTY,
        "cell_table": EMPTY,
        "supplementary": sections,
        "deviations": list(facts.get("deviations") or []),
        "warnings": list(result["warnings"]),
        "blinding": wording.blinding(facts.get("blinding")),
        "notes": list(facts.get("notes") or []),
        "provenance_table": lab_tables.provenance_table(lab, analysis, made_by),
        "sessions": lab_tables.session_lines(facts),
        "verify": again.of_episodes(asked_of, facts, *draws),
        "methods": notes.NOTES,
        "episode_table": lab_tables.episode_table(facts),
        "clips": clips_of(facts, files or {}, order),
        "episodes_page": facts.get("episodes_page"),
        "videos": [videos_of(e.get("video") or ()) for e in facts.get("episodes") or []],
        "say": {},
    }
    page["say"] = {**page_words.sentences(page, facts), "footer": notes.FOOTER}
    return page, all_figures(sections)


def _contents(sections: Sequence[Section], facts: Lab) -> list[tuple[str, str]]:
    further = (
        ("answer_times", "answers", "Answer times"),
        ("clips", "clips", "Clips"),
        ("episodes", "episodes", "Episodes"),
    )
    entries = [(anchor, name) for key, anchor, name in further if facts.get(key)]
    return [
        *([("flow", "From plan to score")] if facts.get("flow") else []),
        *((section.id, section.title) for section in sections),
        *entries[:1],
        *page_of_operations.LAST_CONTENTS,
        *entries[1:],
    ]
