"""What may be said of campaigns side by side: the differences through anchors that a linked report has, or why there
are none.

May not: compare campaigns that share no anchor, or any while one of them is blinded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

from labctl.errors import BrokenRecord, InputError, LinkError, StateError
from labctl.pages.episode_rows import Grid
from labctl.reporting.campaign_report import linked_with, opened_seal
from labctl.reporting.episodes_page import grids
from labctl.reporting.facts import refuse_mixed
from labctl.reporting.label_streams import label_facts, witnesses
from labctl.reporting.operations_table import operations
from labctl.store.linking import Pairing, opened_links, pair_up
from labctl.store.verifying.verified import protocol_of, verified

LABELS = "best"


def side_by_side(folders: Sequence[Path], joint: Mapping[Path, str] = MappingProxyType({})) -> list[Grid]:
    """For each two of these campaigns what `labctl report` says of them, or a line why they are not compared; nothing
    of two parts of one joint campaign, which is one comparison over all cells. joint: of a part, the commitment of all.

    Raises BrokenRecord for what does not hold.
    """
    found: list[Grid] = []
    for two in combinations(folders, 2):
        one, other = (joint.get(folder) for folder in two)
        if one is not None and one == other:
            continue
        try:
            found += _compared(pair_up(two))
        except BrokenRecord:
            raise
        except (LinkError, StateError, InputError) as error:
            names = " and ".join(folder.name for folder in two)
            found.append(Grid(f"{names} are not compared", (), (), f"{error}."))
    return found


def _compared(pairing: Pairing) -> list[Grid]:
    with verified(pairing.earlier) as shown:
        opened_seal(shown.campaign.record(), pairing.earlier)
    with verified(pairing.later) as shown:
        record, opened = shown.campaign.record(), shown.campaign.opened
        unblinding = opened_seal(record, pairing.later)
        protocol = protocol_of(shown.campaign)
    refuse_mixed(record, pairing.later.name)
    label_facts(LABELS, witnesses(record))
    link = next(link for link in opened_links(opened, unblinding) if link.campaign == pairing.link["campaign"])
    rows = operations(record, labels=LABELS)
    both = f"{pairing.earlier.name} {pairing.later.name}"
    found = grids(linked_with(pairing.earlier, link, record, rows, protocol, LABELS)[0])
    there = f"All digits, in the report of both (labctl report {both} --out DIR): "  # beside this page there is no file
    return [replace(grid, note=grid.note.replace("All digits: ", there)) for grid in found]
