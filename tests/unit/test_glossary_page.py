"""docs/glossary.md holds the words that reports explain: run this file to write it, run the test to hold it current."""

from __future__ import annotations

import sys
from pathlib import Path

from labctl.analysis.episodes_report import notes as of_episodes
from labctl.analysis.report import page_words as of_operations

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"
HEAD = (
    "# Glossary\n\n"
    "What the words of reports, screens and tables mean, as each report explains them in its last section. Written by "
    "`make docs`.\n"
)
# Words of everywhere, which no report needs to explain.
EVERYWHERE = (
    (
        "Arm",
        "What is compared: a policy, or a person who teleoperates, as a trial of medicine says it. The machine is "
        "the robot.",
    ),
    (
        "Block",
        "One condition (an object in a layout) attempted once by each arm, in a drawn order. Arms are compared within "
        "blocks.",
    ),
    (
        "Blind",
        "Whoever stages, operates or scores does not learn which arm a trial has, until the campaign is closed, "
        "reviewed, frozen and unblinded.",
    ),
    ("Campaign", "All trials of one frozen protocol, with everything that was recorded of them."),
    (
        "Commitment",
        "A hash of the sealed schedule, printed before the first trial: who has it can check later that nothing was "
        "drawn anew.",
    ),
    ("Head", "Number and hash of the journal's last entry. Noted elsewhere, it proves later what stood before it."),
    ("Trial, episode", "A trial is one place of the schedule; an episode is one attempt at it. A void is run again."),
)
SECTIONS = (
    ("Everywhere", EVERYWHERE),
    ("Reports of operations", of_operations.NOTES),
    ("Reports of episodes", of_episodes.NOTES),
)


def page() -> str:
    """The page as the reports explain their words now; in alphabetical order within a section."""
    parts = [HEAD]
    for title, notes in SECTIONS:
        parts.append(f"\n## {title}\n\n")
        parts += [f"**{word}**: {text}\n\n" for word, text in sorted(notes, key=lambda note: note[0].lower())]
    return "".join(parts).rstrip("\n") + "\n"


def test_the_page_is_what_the_reports_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


if __name__ == "__main__":
    sys.stdout.write(page())
