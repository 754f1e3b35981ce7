"""`labctl verify`: re-hash everything recorded and name what is broken.

May not: mend anything.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from labctl.cli.options import CONTEXT, campaign_argument, example, json_option, lab_option, print_json

EPILOG = example("labctl verify first", "labctl verify first --head 3f9a...  # as printed after an episode")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@campaign_argument(required=False)
@click.option(
    "--head", default=None, metavar="HASH", help="A head of the chain noted down earlier; it must still be in it."
)
@lab_option
@json_option
def verify(campaign: str | None, head: str | None, lab: Path | None, as_json: bool) -> int:
    """Check hash chain, commitment, trace and video digests and read models; exit 1 and name what is broken.

    Without CAMPAIGN every campaign of the lab is checked.
    """
    from labctl.errors import InputError
    from labctl.store.lab_folder import campaign_folder, campaigns, find_lab
    from labctl.store.verify import verify_campaign

    folders = [campaign_folder(campaign, lab)] if campaign else campaigns(find_lab(lab))
    if not folders:
        raise InputError("no campaign to verify; start one with: labctl open PROTOCOL.toml --cell CELL.toml")
    if head is not None and len(folders) > 1:
        raise InputError("--head belongs to one campaign; name it: labctl verify CAMPAIGN --head HASH")
    found = [(folder.name, verify_campaign(folder, head=head)) for folder in folders]
    if as_json:
        print_json(
            [
                {
                    "campaign": name,
                    "ok": not verified.problems,
                    "counts": asdict(verified.counts),
                    "head": verified.head,
                    "problems": [asdict(problem) for problem in verified.problems],
                    "notes": verified.notes,
                }
                for name, verified in found
            ]
        )
    else:
        for name, verified in found:
            for problem in verified.problems:
                click.echo(f"{name}: {problem}")
            state = f"{len(verified.problems)} problem(s)" if verified.problems else "holds"
            for note in verified.notes:
                click.echo(f"{name}: note: {note}")
            click.echo(f"{name}: {state} ({verified.counts}); head {verified.head}")
    return 1 if any(verified.problems for _, verified in found) else 0
