"""What a reader of an episodes table's statistics has to know, one sentence each.

May not: change a number.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from labctl.analysis.episodes_table.cohort import Cohort
from labctl.analysis.episodes_table.further import tag_units
from labctl.analysis.episodes_table.stages import stage_count, stages_reached
from labctl.analysis.numerals import counted, listing

FEW_BLOCKS = 10


def cautions(cohort: Cohort) -> list[str]:
    """The warnings of a table, those about most of it first."""
    table = cohort.table
    sentences: list[str] = []
    complete, blocks = int(cohort.complete.sum()), len(table.blocks)
    if complete < blocks and len(table.arms) > 1:
        sentences.append(
            f"{blocks - complete} of {blocks} blocks lack an arm; tests of all arms at once use the other {complete}"
        )
    if 0 < complete < FEW_BLOCKS and len(table.arms) > 1:
        sentences.append(
            f"the chi-square tests of {counted(complete, 'complete block')} are rough; "
            f"they are meant for {FEW_BLOCKS} and more"
        )
    missing = int(np.isnan(table.number["score"]).sum())
    if table.has("score") and missing:
        sentences.append(f"{missing} of {len(table.lines)} episodes have no score and are in no comparison of scores")
    voided = [f"{n} of {arm}" for arm, n in table.voids.items() if n]
    if voided:
        sentences.append(f"void episodes are left out: {listing(voided)}")
    if not cohort.single:
        units = len(np.unique(cohort.unit))
        sentences.append(
            f"{counted(blocks, 'block')} in {counted(units, 'set')}: a set is one unit in intervals "
            "and exchanges of labels, and looked at once its last block has run; Friedman's, Cochran's and McNemar's "
            "tests and the trend take blocks for independent"
        )
    staged = np.isfinite(stages_reached(table))
    if stage_count(table) and len({task for task, own in zip(table.words["task"], staged, strict=True) if own}) > 1:
        sentences.append("stages of several tasks are counted by number in one funnel; give one task to read it as one")
    tagged = Counter(task for task, _ in dict.fromkeys(tag_units(table))) if table.has("tags") else Counter[str]()
    several = [task for task, count in tagged.items() if count > 1]
    if several:
        sentences.append(
            f"tags differ within {listing(several)}: each set of tags there counts as a task of its own in tags"
        )
    helped = np.nansum(table.number["interventions"] > 0)
    if helped:
        sentences.append(f"a person helped in {counted(int(helped), 'episode')} (interventions), counted as they went")
    contradicted = int(((table.number["success"] == 1) & (table.number["score"] < 1)).sum())
    if contradicted:
        sentences.append(f"{counted(contradicted, 'episode')} succeeded with a score below 1")
    return sentences
