"""`labctl schema`: what a file may say, and what --json prints, for editors and other people's programs.

May not: state anything of a key by itself; both are made of the types that check and print.
"""

from __future__ import annotations

from pathlib import Path

import click

from labctl.cli.options import PATH, example, is_standard
from labctl.errors import InputError
from labctl.store.atomic_files import file_errors, replace_file


@click.command(
    epilog=example("labctl schema cell", "labctl schema card --out schemas/card.json", "labctl schema status")
)
@click.argument("kind", metavar="FILE|DOCUMENT")
@click.option(
    "--out",
    type=PATH,
    metavar="FILE",
    help="Write it to this file; an older schema is replaced; - is standard output.",
)
def schema(kind: str, out: Path | None) -> None:
    """What a kind of file may say, or what --json prints, as a JSON Schema (draft 2020-12).

    \b
    FILE      protocol, cell, fixture, lab, card, queue-keys, shifts: editors complete and check TOML by it
    DOCUMENT  a name that stands in a document's "schema", such as status or labctl.status/2; `all` lists them

    A TOML file names its schema in its first line, `#:schema` and the schema's path from there; `labctl new` writes
    both. docs/configuration.md has the same for people. docs/json.md says what can be relied on in a document.
    """
    from labctl.cli.contract.documents import DOCUMENTS, NAMES, document_text
    from labctl.cli.contract.files import FILES, schema_text

    if kind == "all":
        for name in DOCUMENTS:
            click.echo(f"labctl.{name}")
        return
    name = kind.removeprefix("labctl.")
    if kind not in FILES and name not in (*DOCUMENTS, *NAMES):
        raise InputError(f"no schema {kind!r}; of files: {', '.join(FILES)}; of documents: {', '.join(NAMES)}")
    text = schema_text(kind) if kind in FILES else document_text(name)
    if is_standard(out):
        click.echo(text, nl=False)
        return
    assert out is not None
    with file_errors(str(out)):
        if out.exists() and b'"$schema"' not in out.read_bytes():
            raise InputError(f"--out {out} is there and is no schema; choose another place")
        replace_file(out, text.encode())
    hint = f"; the first line of a {kind} file in the same folder: #:schema {out.name}" if kind in FILES else ""
    click.echo(f"wrote {out}{hint}")
