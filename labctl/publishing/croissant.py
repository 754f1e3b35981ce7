"""The metadata of a publication as Croissant 1.0 (JSON-LD of MLCommons), for search engines and data loaders.

May not: describe a file that is not there.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from labctl.plain import Json
from labctl.publishing.manifest import Manifest
from labctl.publishing.tables import EPISODES, JOURNAL, OPERATIONS
from labctl.store.footage import file_digest

CONFORMS = "http://mlcommons.org/croissant/1.0"
CONTEXT: Mapping[str, Json] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
WHOLE = {
    "block",
    "position",
    "op_index",
    "items_staged",
    "moved",
    "staged",
    "steps",
    "void",
    "success",
    "interventions",
}
SECONDS = {"time_s", "end_s", "budget_s", "score", "stage"}
JOURNAL_FIELDS = {"seq": "sc:Integer", "kind": "sc:Text", "wall": "sc:Text", "trial": "sc:Text", "episode": "sc:Text"}


def croissant(manifest: Manifest, description: str, folder: Path) -> dict[str, Json]:
    """The document, of the tables and databases in `folder`."""
    record = f"campaigns/{manifest.campaign}"
    files = {
        f"tables/{OPERATIONS}": "text/csv",
        f"tables/{EPISODES}": "text/csv",
        f"tables/{JOURNAL}": "application/jsonlines",
        f"{record}/journal.db": "application/vnd.sqlite3",
        f"{record}/traces.db": "application/vnd.sqlite3",
    }
    document: dict[str, Json] = {
        "@context": dict(CONTEXT),
        "@type": "sc:Dataset",
        "name": manifest.campaign,
        "description": f"{manifest.title}\n\n{description.partition('## Check it')[0].partition('# ')[2]}".strip(),
        "conformsTo": CONFORMS,
        "license": manifest.licence.url or "LICENSE.txt",
        "url": manifest.dataset,
        "version": "1.0.0",
        "citeAs": f"{manifest.creator or 'labctl campaign'}: {manifest.title}. Head {manifest.head}.",
        "distribution": [_file(folder, name, kind) for name, kind in files.items()],
        "recordSet": [
            _set("operations", f"tables/{OPERATIONS}", _columns(folder / f"tables/{OPERATIONS}")),
            _set("episodes", f"tables/{EPISODES}", _columns(folder / f"tables/{EPISODES}")),
            _set("journal", f"tables/{JOURNAL}", JOURNAL_FIELDS),
        ],
    }
    if manifest.frozen:
        document["datePublished"] = manifest.frozen[:10]
    if manifest.creator:
        document["creator"] = {"@type": "sc:Organization", "name": manifest.creator}
    return document


def _file(folder: Path, name: str, kind: str) -> dict[str, str]:
    path = folder / name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": kind,
        "sha256": file_digest(path),
    }


def _columns(path: Path) -> dict[str, str]:
    """The columns of a CSV file, each with its type."""
    with path.open(newline="", encoding="utf-8") as opened:
        return {column: _kind(column) for column in next(csv.reader(opened), [])}


def _set(name: str, file: str, fields: Mapping[str, str]) -> dict[str, Json]:
    made = [_field(name, key, kind, file) for key, kind in fields.items()]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": made}


def _kind(column: str) -> str:
    if column in WHOLE:
        return "sc:Integer"
    return "sc:Float" if column in SECONDS or (column.startswith("stage_") and column.endswith("_s")) else "sc:Text"


def _field(table: str, name: str, kind: str, file: str) -> dict[str, Json]:
    source = {"fileObject": {"@id": file}, "extract": {"column": name}}
    at = {"@id": f"{table}/{name}", "name": f"{table}/{name}"}
    return {"@type": "cr:Field", **at, "dataType": kind, "source": source}
