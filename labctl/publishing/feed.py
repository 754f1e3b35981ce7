"""The site's Atom feed (RFC 4287): an entry a campaign, dated by when it was frozen.

May not: read a clock; the same campaigns give the same feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from labctl.publishing.cells.on_site import JointShown
from labctl.publishing.shown import Shown

ATOM = "http://www.w3.org/2005/Atom"
LONG_AGO = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry: what dates it, names it and is read of it."""

    frozen: str
    name: str
    title: str
    commitment: str
    summary: str


def feed(title: str, address: str, campaigns: Sequence[Shown], joint: Sequence[JointShown] = ()) -> str:
    """The document. address: of the site, "" where it is not known: links are then relative to the feed; joint:
    campaigns in several cells, an entry each.
    """
    base = address.rstrip("/") + "/" if address else ""
    found = [*map(_of_one, campaigns), *map(_of_joint, joint)]
    entries = sorted(found, key=lambda one: (one.frozen, one.name), reverse=True)
    root = ElementTree.Element("feed", xmlns=ATOM)
    _add(root, "title", title)
    _add(root, "id", base or f"urn:labctl:site:{entries[0].commitment if entries else ''}")
    _add(root, "updated", entries[0].frozen or LONG_AGO if entries else LONG_AGO)
    ElementTree.SubElement(root, "link", rel="self", href=f"{base}feed.xml")
    ElementTree.SubElement(root, "link", rel="alternate", href=f"{base}index.html")
    _add(ElementTree.SubElement(root, "author"), "name", "labctl")
    for one in entries:
        entry = ElementTree.SubElement(root, "entry")
        _add(entry, "title", one.title)
        _add(entry, "id", f"urn:sha256:{one.commitment}")
        _add(entry, "updated", one.frozen or LONG_AGO)
        ElementTree.SubElement(entry, "link", rel="alternate", href=f"{base}reports/{one.name}/report.html")
        _add(entry, "summary", one.summary)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _of_one(one: Shown) -> _Entry:
    manifest, arms = one.manifest, ", ".join(arm["arm"] for arm in one.result["arms"])
    said = f"{one.name} ({manifest.kind}): {arms}; head {manifest.head}"
    return _Entry(manifest.frozen, one.name, manifest.title, manifest.commitment, said)


def _of_joint(one: JointShown) -> _Entry:
    heads = ", ".join(f"{part.name} {part.manifest.head}" for part in one.parts)
    said = f"{one.name} ({one.kind}, in several cells): {', '.join(one.arms)}; heads {heads}"
    return _Entry(one.frozen, one.name, one.title, one.together.commitment, said)


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = "".join(c for c in text if c.isprintable() or c in "\n\t")
