"""Run by another interpreter: reads a published folder's metadata with the libraries of those who defined them.

Prints JSON: croissant (name, license, issues, rows: record set -> first row and how many) and results, a list.
"""

import itertools
import json
import sys
from pathlib import Path

import mlcroissant
import yaml
from huggingface_hub import parse_eval_result_entries

folder = Path(sys.argv[1])
dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
metadata = dataset.metadata
rows = {}
for record_set in metadata.record_sets:
    found = list(itertools.islice(dataset.records(record_set.uuid), 10_000))
    first = {str(k): v.decode() if isinstance(v, bytes) else str(v) for k, v in found[0].items()}
    rows[record_set.uuid] = [first, len(found)]
issues = {"errors": sorted(metadata.ctx.issues.errors), "warnings": sorted(metadata.ctx.issues.warnings)}
licence = metadata.license
results = []
for path in sorted((folder / "eval_results").glob("*.yaml")):
    for entry in parse_eval_result_entries(yaml.safe_load(path.read_text("utf-8"))):
        results.append({"arm": path.stem, **entry.__dict__})
croissant = {"name": metadata.name, "license": licence, "issues": issues, "rows": rows}
print(json.dumps({"croissant": croissant, "results": results}, default=str))
