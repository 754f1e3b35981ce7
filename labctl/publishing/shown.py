"""A published campaign as a site shows it: verified, its report made anew, its rows and links.

May not: take a page or a number from the folder that its record does not give; whoever made it is not trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.table import Row
from labctl.core.event_bodies import CampaignOpened
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.errors import InputError
from labctl.publishing.check import Checked, reading_a_strangers, refuse_unless_it_holds
from labctl.publishing.leaving_out import sealed_episodes
from labctl.publishing.manifest import Manifest, by_episode, withheld_of
from labctl.publishing.publish import made_report
from labctl.reporting.facts import by_episodes
from labctl.reporting.operations_table import operations
from labctl.store.linking import Linked, opened_links
from labctl.store.verifying.verified import protocol_of, treatments_of, verified_but


@dataclass(frozen=True, slots=True)
class Shown:
    """One campaign. report: the folder of its report in the site; result: what the report's JSON holds; hashes: of its
    chain; people: the arms that a person drives; of_items: whether its tasks are counted in items, as linked
    comparisons have it; sealed: episodes whose recordings were sealed, in that order; treatments: as
    `linking.treatments` has them.
    """

    checked: Checked
    report: Path
    result: AnalysisResult
    record: Record
    rows: Sequence[Row]
    links: Sequence[Linked]
    hashes: frozenset[str]
    people: frozenset[str]
    tau_s: float | None
    estimator: str
    alpha: float
    of_items: bool
    sealed: Sequence[str]
    treatments: Mapping[str, tuple[str, str]]

    @property
    def manifest(self) -> Manifest:
        return self.checked.admitted.manifest

    @property
    def name(self) -> str:
        return self.manifest.campaign

    @property
    def opened(self) -> CampaignOpened:
        """What its first entry states."""
        return self.record.state.opened

    @property
    def folder(self) -> Path:
        return self.checked.admitted.record

    @property
    def unseen(self) -> Mapping[str, str]:
        """Episodes whose pictures, or the samples that date them, are withheld, and why."""
        samples, pictures = by_episode(self.manifest.withheld)
        return {**samples, **pictures}


def shown(folder: Path, reports: Path, say: Callable[[str], None]) -> Shown:
    """Verify a published folder and make its report anew, in a folder of its name below `reports`. Raises what
    `check.refuse_unless_it_holds` raises, and BrokenRecord where another campaign of that name is there already.
    """
    checked = refuse_unless_it_holds(folder)
    manifest, at = checked.admitted.manifest, checked.admitted.record
    report = reports / manifest.campaign
    if report.exists():
        raise InputError(
            f"{folder}: another campaign of a site is called {manifest.campaign} too; a site has each name once"
        )
    with reading_a_strangers(folder):
        made_report(at, manifest, report, report, say, linked=False)
        with verified_but(at, withheld=withheld_of(manifest.withheld)) as (campaign, events, _):
            record = record_of(events)
            protocol, of_arms = protocol_of(campaign), treatments_of(campaign)
            assert record.unblinding is not None, "what holds as a publication is unblinded"
            links = opened_links(campaign.opened, record.unblinding)
        document = json.loads((report / "report.json").read_text("utf-8"))
        return Shown(
            checked,
            report,
            document["result"],
            record,
            operations(record),
            links,
            frozenset(event.hash for event in events),
            frozenset(arm.name for arm in protocol.arm if arm.kind == "human"),
            protocol.analysis.tau_s,
            protocol.analysis.estimator,
            protocol.analysis.alpha,
            not by_episodes(record.state.opened),
            sealed_episodes(events),
            of_arms,
        )
