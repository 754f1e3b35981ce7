"""The schemas of queue-keys.toml and shifts.toml mark what labctl refuses, and nothing that it takes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from labctl.cli.contract.files import schema_of_file
from labctl.errors import InputError
from labctl.queue.lab_files import read_keys, read_shifts

QUEUE_KEYS = 'lab = "okapi"\nnetworks = ["10.20.0.0/24"]\n[[key]]\npublic = "PUBLIC"\nwho = "p"\ncontact = "c"\n'
QUEUE_KEYS = QUEUE_KEYS.replace("PUBLIC", "0a" * 32)
SHIFTS = '[[shift]]\nfrom = 2099-01-01T18:00:00Z\nto = 2099-01-01T21:00:00Z\nwho = ["p07"]\n'


@pytest.mark.parametrize(
    ("kind", "text", "good", "bad"),
    [
        ("queue-keys", QUEUE_KEYS, "", ""),
        ("queue-keys", QUEUE_KEYS, "0a0a0a", "zz0a0a"),
        ("queue-keys", QUEUE_KEYS, "lab =", "name ="),
        ("queue-keys", QUEUE_KEYS, "contact =", "mail ="),
        ("shifts", SHIFTS, "", ""),
        ("shifts", SHIFTS, "to = 2099-01-01T21:00:00Z\n", ""),
        ("shifts", SHIFTS, '["p07"]', '"p07"'),
    ],
)
def test_the_schemas_of_the_two_files_of_a_queue_are_what_labctl_takes(
    tmp_path: Path, kind: str, text: str, good: str, bad: str
):
    broken = text.replace(good, bad, 1)
    (tmp_path / f"{kind}.toml").write_text(broken)
    read = {"queue-keys": read_keys, "shifts": read_shifts}[kind]
    plain = json.loads(json.dumps(tomllib.loads(broken), default=str))
    found = list(jsonschema.Draft202012Validator(schema_of_file(kind)).iter_errors(plain))
    if not good:
        read(tmp_path)
        assert found == []
        return
    with pytest.raises(InputError):
        read(tmp_path)
    assert found
