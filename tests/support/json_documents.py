"""Judges what --json printed against the schema that `labctl schema` gives for it, by a validator nobody here wrote."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from labctl.cli.contract.documents import schema_of_document


def judged(printed: str, name: str | None = None) -> Any:
    """The one document that was printed, which has no key that its schema lacks. name: of one that has no place for it,
    else as it says itself.
    """
    found = json.loads(printed)
    told = name or found["schema"].removeprefix("labctl.")
    schema = schema_of_document(told, closed=True)
    Draft202012Validator.check_schema(schema)
    wrong = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(found)]
    assert not wrong, f"{told}: {wrong[:5]}"
    return found
