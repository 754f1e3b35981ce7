"""`labctl submit`: what somebody outside does to have a policy tried in a lab: a key, and a signed request.

May not: send anything, know a lab's folder, or show a private key.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from labctl.cli.options import PATH, Words, example, file_argument, json_option, print_json
from labctl.clock import MonotonicClock
from labctl.errors import InputError
from labctl.store.atomic_files import replace_file
from labctl.store.lab_folder import read_text

KEY = example(
    "labctl submit key ours.pem --who 'North Robotics' --contact lab@north.example   # writes ours.pem, ours.toml"
)
SIGN = example(
    "labctl submit sign card.toml --key ours.pem --lab arm-lab --campaign second --policy pi-towels-3 \\",
    "    --endpoint wss://policy.north.example --who 'North Robotics' --contact lab@north.example --out request.json",
)


@click.group(cls=Words, epilog=KEY)
def submit() -> None:
    """Ask a lab to try a policy: make a key, have the lab trust it, sign a request, hand its file over.

    Nothing is sent from here: how the two files reach the lab is up to both. The lab looks at the request, asks the
    policy about recorded observations, and a person there approves it or not (docs/queue.md).
    """


@submit.command(epilog=KEY)
@file_argument("key", "KEY.pem")
@click.option("--who", required=True, metavar="NAME", help="Who you are, for the lab's file of keys.")
@click.option("--contact", required=True, metavar="TEXT", help="How the lab reaches you.")
@json_option
def key(key: Path, who: str, contact: str, as_json: bool) -> None:
    """Make a key (Ed25519): KEY.pem stays with you, readable by you alone; KEY.toml is for the lab.

    Have its first digits compared by another way than the one the file went: whoever changes it on the way signs in
    your name.
    """
    from labctl.queue.lab_files import key_table
    from labctl.queue.request import new_key

    if key.suffix == ".toml" or not key.name:
        raise InputError(f"{key} is no name for a key, whose table for the lab ends in .toml; name it such as ours.pem")
    table = key.with_suffix(".toml")
    if table.exists():
        raise InputError(f"{table} is there already; nothing was written: choose another name")
    key_table("0" * 64, who, contact)
    public = new_key(key)
    replace_file(table, key_table(public, who, contact).encode())
    if as_json:
        print_json({"schema": "labctl.key_made/1", "file": str(key), "table": str(table), "public": public})
        return
    click.echo(f"{key}: keep it; whoever has it signs in your name")
    click.echo(f"{table}: give it to the lab, which adds it with: labctl queue trust {shlex.quote(table.name)}")
    click.echo(f"its first digits, to be compared: {public[:16]}")


@submit.command(epilog=SIGN)
@file_argument("card", "CARD.toml")
@click.option("--key", required=True, type=PATH, metavar="KEY.pem", help="The key that signs.")
@click.option("--lab", required=True, metavar="NAME", help="For which lab: `lab` of its queue-keys.toml.")
@click.option("--campaign", required=True, metavar="NAME", help="The campaign or protocol that you wish for.")
@click.option("--policy", required=True, metavar="NAME", help="What you call the policy; sealed in the lab.")
@click.option("--endpoint", metavar="ADDRESS", help="Where the policy answers: wss://HOST[:PORT].")
@click.option(
    "--container", metavar="IMAGE@sha256:…", help="Or an image under its digest, which the lab starts itself."
)
@click.option("--who", required=True, metavar="NAME", help="Who submits.")
@click.option("--contact", required=True, metavar="TEXT", help="How the lab reaches you.")
@click.option("--note", default="", metavar="TEXT", help="Anything else the lab should know, at most 1000 characters.")
@click.option("--days", default=14, show_default=True, type=click.IntRange(1, 90), help="Days until it expires.")
@click.option("--out", required=True, type=PATH, metavar="FILE", help="The request to write.")
@json_option
def sign(
    card: Path,
    key: Path,
    lab: str,
    campaign: str,
    policy: str,
    endpoint: str | None,
    container: str | None,
    who: str,
    contact: str,
    note: str,
    days: int,
    out: Path,
    as_json: bool,
) -> None:
    """Sign a request that a lab tries the policy of CARD.toml; its file goes to the lab once.

    The card says what the policy reads and what its answers mean; it starts nothing in the lab and names nothing of the
    lab's computers. An endpoint is encrypted and public, unless the lab named your network in its file of keys.
    """
    from labctl.queue.making import request_of
    from labctl.queue.request import sign as signed

    if out.exists():
        raise InputError(f"{out} is there already; a request is signed anew under another name")
    asked = request_of(
        read_text(card),
        str(card),
        MonotonicClock().anchor().wall,
        days,
        {
            "lab": lab,
            "campaign": campaign,
            "policy": policy,
            "who": who,
            "contact": contact,
            "note": note,
            "endpoint": endpoint,
            "container": container,
        },
    )
    data = signed(asked, key)
    replace_file(out, data, mode=0o600)
    if as_json:
        made = {"file": str(out), "bytes": len(data), "lab": lab, "campaign": campaign, "expires": asked.expires}
        print_json({"schema": "labctl.request_made/1", **made})
        return
    take = f"labctl queue submit {shlex.quote(out.name)}"
    click.echo(f"{out}: signed for {lab}, until {asked.expires}; the lab takes it in with: {take}")
