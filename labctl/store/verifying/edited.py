"""Which files of a lab were edited after a campaign was opened from them: it goes on by what was sealed, and whoever
edits one, and expects that to hold, hears of it.

May not: open a seal, name an arm or a policy card, or refuse anything.
"""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import digest
from labctl.core.trial import Phase
from labctl.errors import LabctlError
from labctl.plain import Json
from labctl.store.campaign import Campaign
from labctl.store.journal import events_of
from labctl.store.lab_folder import as_seen, campaigns, lab_with, read_text
from labctl.store.opened_body import text_digest
from labctl.store.verifying.verified import in_passing


@dataclass(frozen=True, slots=True)
class Edited:
    """What is said of one campaign, and what to do; `str` is both in a line."""

    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}"


def edited_since(campaign: Campaign) -> Edited | None:
    """Of an open campaign whose files in the lab are no longer as they were; None of any other. One that does not
    lie where it was is not looked for.
    """
    lab = lab_with(campaign.folder)
    if lab is None or campaign.state.phase != Phase.OPEN:
        return None
    changed = [*_changed(lab, campaign.opened)]
    if not changed:
        return None
    name, were = campaign.folder.name, "was" if len(changed) == 1 else "were"
    text = f"{' and '.join(changed)} {were} edited after campaign {name} was opened: it goes on by what was sealed then"
    return Edited(text, f"for an edit to hold, {_another(lab, campaign.opened)}")


def edited_among(paths: Collection[Path]) -> list[Edited]:
    """The same of every open campaign of a lab that was opened from one of these files of it."""
    found: dict[Path, Edited] = {}
    for path in paths:
        lab = lab_with(path)
        for folder in _opened_from(lab, path) if lab is not None else ():
            with suppress(LabctlError), in_passing(folder) as campaign:  # one that cannot be read is for `verify`
                if (edited := edited_since(campaign)) is not None:
                    found[folder] = edited
    return list(found.values())


def _opened_from(lab: Path, path: Path) -> Iterator[Path]:
    here = path.resolve().relative_to(lab).as_posix()
    for folder in campaigns(lab):
        with suppress(LabctlError):
            if here in body_of(events_of(folder, most=1)[0], CampaignOpened).get("files", {}).values():
                yield folder


def _changed(lab: Path, opened: CampaignOpened) -> Iterator[str]:
    sealed = {"cell": opened["cell"], "fixture": opened["fixture"], "protocol": opened["protocol"]}
    for kind, file in opened.get("files", {}).items():
        with suppress(LabctlError):
            text = read_text(lab / file)
            if text_digest(text) != sealed[kind]["sha256"]:
                yield file
            elif kind == "protocol" and _cards_changed(lab / file, text, opened):
                yield f"a policy card of {file}"


def _cards_changed(protocol: Path, text: str, opened: CampaignOpened) -> bool:
    """Of a protocol that is as it was sealed. Raises InputError where a card is not where it was."""
    arms: list[Mapping[str, Mapping[str, Json]]] = tomllib.loads(text)["arm"]
    named = [name for arm in arms if isinstance(name := arm.get("options", {}).get("card"), str)]
    cards = {name: read_text(protocol.parent / name) for name in named}
    return bool(cards) and digest(cards) != opened["protocol"].get("cards_sha256")


def _another(lab: Path, opened: CampaignOpened) -> str:
    files = opened.get("files", {})
    if "joint" in opened:
        return "open another joint campaign: labctl joint open"
    named = [
        str(as_seen(lab / files[kind])) if kind in files else f"{kind.upper()}.toml" for kind in ("protocol", "cell")
    ]
    return f"open another campaign: {shlex.join(['labctl', 'open', named[0], '--cell', named[1]])}"
