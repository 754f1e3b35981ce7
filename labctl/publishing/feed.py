"""The site's Atom feed (RFC 4287): an entry a campaign, dated by when it was frozen.

May not: read a clock; the same campaigns give the same feed.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from labctl.publishing.shown import Shown

ATOM = "http://www.w3.org/2005/Atom"
LONG_AGO = "1970-01-01T00:00:00Z"


def feed(title: str, address: str, campaigns: Sequence[Shown]) -> str:
    """The document. address: of the site, "" where it is not known: links are then relative to the feed."""
    base = address.rstrip("/") + "/" if address else ""
    entries = sorted(campaigns, key=lambda one: (one.manifest.frozen, one.name), reverse=True)
    root = ElementTree.Element("feed", xmlns=ATOM)
    _add(root, "title", title)
    _add(root, "id", base or f"urn:labctl:site:{entries[0].manifest.commitment if entries else ''}")
    _add(root, "updated", entries[0].manifest.frozen or LONG_AGO if entries else LONG_AGO)
    ElementTree.SubElement(root, "link", rel="self", href=f"{base}feed.xml")
    ElementTree.SubElement(root, "link", rel="alternate", href=f"{base}index.html")
    _add(ElementTree.SubElement(root, "author"), "name", "labctl")
    for one in entries:
        entry = ElementTree.SubElement(root, "entry")
        _add(entry, "title", one.manifest.title)
        _add(entry, "id", f"urn:sha256:{one.manifest.commitment}")
        _add(entry, "updated", one.manifest.frozen or LONG_AGO)
        ElementTree.SubElement(entry, "link", rel="alternate", href=f"{base}reports/{one.name}/report.html")
        arms = ", ".join(arm["arm"] for arm in one.result["arms"])
        _add(entry, "summary", f"{one.name} ({one.manifest.kind}): {arms}; head {one.manifest.head}")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = "".join(c for c in text if c.isprintable() or c in "\n\t")
